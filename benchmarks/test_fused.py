"""A chain of elementwise operators compiled into one loop, beside NumPy's one loop for each."""

from __future__ import annotations

import numpy as np
import pytest

import mxcore as mx
from mxcore.plugin import Fused

SIZE = 4_000_000


def test_compile_fused(compare, ctx):
    fused = ctx.device.compile_fused(Fused(["x"], ["tanh(x*x+1)*exp(-x)+sigmoid(x)"]))
    if fused is None:
        pytest.skip(f"device {ctx.device_type!r} does not fuse")
    host = np.random.RandomState(0).uniform(-3, 3, SIZE).astype(np.float32)
    x, out = mx.nd.array(host, ctx=ctx), mx.nd.empty(SIZE, ctx=ctx)
    device, index = ctx.device, ctx.device_id

    def ours():
        fused([out._data], x._data)
        device.synchronize(index)

    def reference():
        return np.tanh(host * host + 1) * np.exp(-host) + 1 / (1 + np.exp(-host))

    ratio = compare("compile_fused of tanh, exp, sigmoid, 4 M", ours, reference, rounds=7, at_most=0.4)
    assert ratio > 0
    np.testing.assert_allclose(out.asnumpy(), reference(), rtol=1e-4, atol=1e-5)
