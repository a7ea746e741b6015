"""Straight-through estimators and the gradient multiplier."""

import numpy as np
import pytest

import mxcore as mx


@pytest.mark.parametrize(
    "name, want", [("round_ste", [-3, -2, -1, 0, 0, 1, 2]), ("sign_ste", [-1, -1, -1, 0, 1, 1, 1])]
)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_estimators(name, want, dtype):
    x = mx.nd.array([-2.5, -1.5, -0.5, 0, 0.3, 0.5, 1.5], dtype=dtype)
    x.attach_grad()
    with mx.autograd.record():
        y = getattr(mx.nd.contrib, name)(x)
    head = np.arange(7) - 3
    y.backward(mx.nd.array(head, dtype=dtype))
    assert y.asnumpy().tolist() == want and x.grad.asnumpy().tolist() == head.tolist() and y.dtype == np.dtype(dtype)


def test_integers_stay():
    x = mx.nd.array([-7, 0, 5], dtype="int32")
    assert mx.nd.contrib.round_ste(x).asnumpy().tolist() == [-7, 0, 5]
    assert mx.nd.contrib.sign_ste(x).asnumpy().tolist() == [-1, 0, 1]


@pytest.mark.parametrize("scalar", [-1, 0.25, "2.5", 0])
def test_gradient_multiplier(scalar):
    x = mx.nd.array([[1, 2], [3, 4]])
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.contrib.gradientmultiplier(x, scalar=scalar)
        z = (y * y).sum()
    z.backward()
    assert (y.asnumpy() == x.asnumpy()).all()
    assert (x.grad.asnumpy() == 2 * x.asnumpy() * float(scalar)).all()
    assert (mx.nd.contrib.backward_gradientmultiplier(x, scalar=scalar).asnumpy() == x.asnumpy() * float(scalar)).all()


def test_a_changing_factor_compiles_nothing_new():
    x = mx.nd.ones((2,))
    mx.nd.contrib.gradientmultiplier(x, scalar=0.5)
    from mxcore._core import tables

    op = tables.ops.get("_contrib_gradientmultiplier")
    before = len(op.parser.cache)
    for i in range(50):
        mx.nd.contrib.gradientmultiplier(x, scalar=i / 7)
    assert len(op.parser.cache) == before


def test_refusals():
    with pytest.raises(TypeError, match="gradientmultiplier: parameter 'scalar' must be float, got 'x'"):
        mx.nd.contrib.gradientmultiplier(mx.nd.ones((1,)), scalar="x")
    with pytest.raises(mx.MXNetError, match="round_ste"):
        mx.nd.contrib.round_ste()
    with pytest.raises(mx.MXNetError, match="sign_ste"):
        mx.nd.contrib.sign_ste(mx.nd.ones((1,)), mx.nd.ones((1,)), "name", 4)
