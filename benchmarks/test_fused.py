"""A chain of elementwise operators compiled into one loop, beside NumPy's one loop for each."""

from __future__ import annotations

import numpy as np
import pytest

import mxcore as mx
from mxcore.plugin import Fused

SIZE = 4_000_000


def bound(ctx, chain, outs, inputs):
    """The compiled chain as a function without arguments that waits for the device, over NDArrays."""
    code = ctx.device.compile_fused(chain)
    if code is None:
        pytest.skip(f"device {ctx.device_type!r} does not fuse")
    run = code.bind([a._data for a in outs], [a._data for a in inputs])
    device, index = ctx.device, ctx.device_id

    def ours():
        run()
        device.synchronize(index)

    return ours


def uniform(*shape):
    return np.random.RandomState(0).uniform(-3, 3, shape).astype(np.float32)


def test_a_chain(compare, ctx):
    host = uniform(SIZE)
    x, out = mx.nd.array(host, ctx=ctx), mx.nd.empty(SIZE, ctx=ctx)
    ours = bound(ctx, Fused(["x"], ["tanh(x*x+1)*exp(-x)+sigmoid(x)"]), [out], [x])

    def reference():
        return np.tanh(host * host + 1) * np.exp(-host) + 1 / (1 + np.exp(-host))

    compare("fused tanh, exp, sigmoid, 4 M", ours, reference, rounds=15, at_most=0.2)
    np.testing.assert_allclose(out.asnumpy(), reference(), rtol=1e-4, atol=1e-5)


def test_a_chain_forward_and_backward(compare, ctx):
    host, grad = uniform(SIZE // 4), uniform(SIZE // 4) + 1
    x, dy, y, t, dx = (
        mx.nd.array(host, ctx=ctx),
        mx.nd.array(grad, ctx=ctx),
        *(mx.nd.empty(SIZE // 4, ctx=ctx) for _ in range(3)),
    )
    forward = bound(ctx, Fused(["x"], ["t", "t * sigmoid(x)"], steps=[("t", "tanh(x * x + 1)")]), [t, y], [x])
    backward = bound(
        ctx,
        Fused(["dy", "x", "t"], ["dy * (s * (1 - t * t) * 2 * x + t * s * (1 - s))"], steps=[("s", "sigmoid(x)")]),
        [dx],
        [dy, x, t],
    )

    def ours():
        forward()
        backward()

    def reference():
        tanh, s = np.tanh(host * host + 1), 1 / (1 + np.exp(-host))
        return tanh * s, grad * (s * (1 - tanh * tanh) * 2 * host + tanh * s * (1 - s))

    compare("fused forward and backward, 1 M", ours, reference, rounds=25, at_most=0.2)
    for mine, theirs in zip((y, dx), reference()):
        np.testing.assert_allclose(mine.asnumpy(), theirs, rtol=1e-4, atol=1e-5)


def test_a_bias_and_its_gradient(compare, ctx):
    """What follows a layer and what comes before its backward: broadcasting, and a sum over all axes but one."""
    host, vector, grad = uniform(32, 256, 28 * 28), uniform(256, 1), uniform(32, 256, 28 * 28)
    x, b, dy = (mx.nd.array(a, ctx=ctx) for a in (host, vector, grad))
    y, dx, db = mx.nd.empty(host.shape, ctx=ctx), mx.nd.empty(host.shape, ctx=ctx), mx.nd.empty((1, 256, 1), ctx=ctx)
    forward = bound(ctx, Fused(["x", "b"], ["relu(x + b)"]), [y], [x, b])
    backward = bound(
        ctx,
        Fused(["dy", "y"], ["g", "g"], steps=[("g", "dy if y > 0 else 0")], reduce=[None, "sum"]),
        [dx, db],
        [dy, y],
    )

    def ours():
        forward()
        backward()

    def reference():
        out = np.maximum(host + vector, 0)
        d_out = grad * (out > 0)
        return out, d_out, d_out.sum((0, 2), keepdims=True)

    compare("fused bias, relu and their gradients, 6.4 M", ours, reference, rounds=9, at_most=0.5)
    for mine, theirs in zip((y, dx, db), reference()):
        np.testing.assert_allclose(mine.asnumpy(), theirs, rtol=1e-4, atol=2e-2)


def test_a_tiny_chain(compare, ctx):
    """What a call costs beside the work."""
    host = uniform(8)
    x, out = mx.nd.array(host, ctx=ctx), mx.nd.empty(8, ctx=ctx)
    ours = bound(ctx, Fused(["x"], ["relu(x * x + 1) * x"]), [out], [x])
    compare(
        "fused chain of 8 elements",
        ours,
        lambda: np.maximum(host * host + 1, 0) * host,
        number=2000,
        rounds=9,
        at_most=0.3,
    )
    np.testing.assert_allclose(out.asnumpy(), np.maximum(host * host + 1, 0) * host, rtol=1e-6)
