"""Gradients beside truth values and integers that are computed under record: through comparisons come zeros."""

import numpy as onp
import pytest

import mxcore as mx
from mxcore import autograd, gluon, np, npx

X = onp.float32([0.5, -1.5, 2.5])
M = onp.float32([1, 0, 1])
#: What is computed of x and a mask of it, and the gradient for x.
MASKED = {
    "sum": (lambda x, m: (x * m).sum() / m.sum(), M / 2),
    "mean": (lambda x, m: x * m / m.mean(), M * 1.5),
    "inverse": (lambda x, m: m * x + (1 - m) * x * 0.5, M / 2 + 0.5),
    "negative": (lambda x, m: x * (-m) * m, -M),
    "power": (lambda x, m: x * (m**2) * m, M),
    "maximum": (lambda x, m: x * np.maximum(m, 0) * m, M),
    "relu": (lambda x, m: npx.relu(m * 2) * x + m * x, 3 * M),
    "product": (lambda x, m: x * m.prod() + x * m, M),
    "square": (lambda x, m: x * np.square(m) * m, M),
    "absolute": (lambda x, m: x * np.abs(m) * m, M),
    "deviation": (lambda x, m: x * m.std() * m, M * onp.sqrt(2) / 3),
    "stack": (lambda x, m: np.stack([m, m * 2]) * x + m * x, 5 * M),
}


class Block(gluon.HybridBlock):
    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, x, m):
        return self.f(x, m)


@pytest.fixture(autouse=True)
def numpy_shapes():
    npx.set_np()
    yield
    npx.reset_np()


def _marked():
    x = np.array(X)
    x.attach_grad()
    x.grad[:] = 7
    return x


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("f, want", MASKED.values(), ids=MASKED)
def test_a_mask_used_twice(f, want, hybrid):
    block, x = Block(f), _marked()
    if hybrid:
        block.hybridize()
    with autograd.record():
        y = block(x, x > 0)
    y.backward()
    onp.testing.assert_allclose(x.grad.asnumpy(), want, rtol=1e-6)
    with autograd.record():
        found = autograd.grad(block(x, x > 0), [x])[0]
    onp.testing.assert_allclose(found.asnumpy(), want, rtol=1e-6)


@pytest.mark.parametrize("hybrid", [False, True])
def test_a_mask_alone_gives_zeros(hybrid):
    block, x = gluon.nn.HybridLambda(lambda F, m: m.sum() * (m * 2)), _marked()
    if hybrid:
        block.hybridize()
    with autograd.record():
        y = block(x > 0)
    y.backward()
    assert (x.grad.asnumpy() == 0).all()


def test_gradients_of_what_lies_behind_a_step_of_zeros():
    x = _marked()
    with autograd.record():
        k = np.floor(x)
        y = (k * k).sum() + (x * k).sum()
    found = autograd.grad(y, [k], retain_graph=True)[0]
    onp.testing.assert_array_equal(found.asnumpy(), 2 * onp.floor(X) + X)
    onp.testing.assert_array_equal(autograd.grad(y, [x], retain_graph=True)[0].asnumpy(), onp.floor(X))
    y.backward()
    onp.testing.assert_array_equal(x.grad.asnumpy(), onp.floor(X))
    with pytest.raises(RuntimeError, match="freed"):
        y.backward()


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("dtype", ["int32", "bool"])
def test_a_cast_gets_gradients_of_several_dtypes(dtype, hybrid):
    def f(F, x):
        k = x.astype(dtype)
        return k.mean() * x * k

    block, x = gluon.nn.HybridLambda(f), _marked()
    if hybrid:
        block.hybridize()
    with autograd.record():
        y = block(x)
    y.backward()
    k = X.astype(dtype).astype("float32")
    # As if the cast gave x itself, but that a product gives its factor a gradient of the factor's dtype.
    want = k.mean() * k + (X * k).sum() / 3 + (k.mean() * X).astype(dtype)
    onp.testing.assert_allclose(x.grad.asnumpy(), want, rtol=1e-6)


def test_masks_of_the_old_face():
    x = mx.nd.array(X)
    x.attach_grad()
    with autograd.record():
        m = x > 0
        y = (x * m).sum() / m.sum() + (m.astype("int32") * 2).sum().astype("float32")
    y.backward()
    onp.testing.assert_array_equal(x.grad.asnumpy(), M / 2)
