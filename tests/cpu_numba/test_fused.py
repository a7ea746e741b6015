"""Fused chains compute what NumPy computes."""
import numpy as np
import pytest

import mxcore as mx
from mxcore.plugin import Expr, Fused


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_chain_with_broadcast_inputs_and_two_outputs(dtype):
    f = mx.cpu().device.compile_fused(Fused(["x", "b"], ["tanh(x * x + 1) * exp(-x) + sigmoid(x)", "maximum(x, b) if x > 0 else b"], dtype))
    rs = np.random.RandomState(0)
    x, b = rs.randn(7, 50).astype(dtype), rs.randn(50).astype(dtype)
    outs = [np.empty_like(x), np.empty_like(x)]
    f(outs, x, b)
    np.testing.assert_allclose(outs[0], np.tanh(x * x + 1) * np.exp(-x) + 1 / (1 + np.exp(-x)), rtol=2e-6 if dtype == "float32" else 1e-12)
    np.testing.assert_array_equal(outs[1], np.where(x > 0, np.maximum(x, b), np.broadcast_to(b, x.shape)))


def test_equal_chains_are_compiled_once():
    device = mx.cpu().device
    assert device.compile_fused(Fused(["x"], ["x + 1"])) is device.compile_fused(Fused(["x"], [Expr("x + 1")]))


def test_a_strided_output_is_written():
    f = mx.cpu().device.compile_fused(Fused(["x"], ["x + 1"]))
    whole = np.zeros((4, 6), "float32")
    f([whole[:, ::2]], np.ones((4, 3), "float32"))
    assert whole[:, ::2].tolist() == [[2] * 3] * 4 and not whole[:, 1::2].any()


def test_a_dtype_that_is_not_compiled_gives_none():
    assert mx.cpu().device.compile_fused(Fused(["x"], ["x + 1"], "float16")) is None
