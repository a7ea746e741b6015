"""Activations, their gradients, and the maps behind them."""

import math

import numpy as np
import pytest

import mxcore as mx
from mxcore._core import tables
from mxcore.plugin import Spec
from mxcore_cpu import threads
from mxcore_cpu.kernels import elementwise as ew

rng = np.random.default_rng(0)
erf = np.vectorize(math.erf)

FORMULAS = {
    "relu": lambda x, s: np.maximum(x, 0),
    "sigmoid": lambda x, s: 1 / (1 + np.exp(-x)),
    "tanh": lambda x, s: np.tanh(x),
    "softrelu": lambda x, s: np.log1p(np.exp(x)),
    "softsign": lambda x, s: x / (1 + abs(x)),
    "leaky": lambda x, s: np.where(x > 0, x, s * x),
    "elu": lambda x, s: np.where(x > 0, x, s * np.expm1(x)),
    "selu": lambda x, s: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    "gelu": lambda x, s: x * (1 + erf(x / np.sqrt(2))) / 2,
}


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("workers", [1, 3])
def test_activation_and_gradient(name, workers, monkeypatch):
    f = FORMULAS[name]
    x, dy = rng.standard_normal((40, 50)) * 3, rng.standard_normal((40, 50))
    out, dx = np.empty_like(x), np.empty_like(x)
    monkeypatch.setattr(threads, "maximum", lambda: workers)
    for table in (ew.UNARY, ew.ACTIVATIONS, ew.GRADIENTS):
        if name in table:
            monkeypatch.setattr(table[name], "threshold", 1)
    ew.activation(name, x, out, slope=0.3)
    np.testing.assert_allclose(out, f(x, 0.3), rtol=1e-13, atol=1e-15)
    ew.activation_backward(name, dy, x if name in ew.ACTIVATIONS else out, dx, slope=0.3)
    expected = dy * (f(x + 1e-6, 0.3) - f(x - 1e-6, 0.3)) / 2e-6
    np.testing.assert_allclose(dx, expected, rtol=1e-6, atol=1e-8)
    same, grad = x.copy(), dy.copy()  # in place
    ew.activation(name, same, same, slope=0.3)
    np.testing.assert_array_equal(same, out)
    ew.activation_backward(name, grad, x if name in ew.ACTIVATIONS else out, grad, slope=0.3)
    np.testing.assert_array_equal(grad, dx)


@pytest.mark.parametrize("name", FORMULAS)
def test_nan_stays_and_zero_is_on_the_left(name):
    x = np.array([np.nan, 0.0], "f4")
    out = np.empty_like(x)
    ew.activation(name, x, out)
    assert np.isnan(out[0])
    ew.activation_backward(name, np.ones(2, "f4"), x if name in ew.ACTIVATIONS else out, out, slope=0.25)
    left = {"relu": 0, "leaky": 0.25, "elu": 0.25, "selu": 1.7580993, "sigmoid": 0.25, "gelu": 0.5, "softrelu": 0.5}
    assert out[1] == pytest.approx(left.get(name, 1))


@pytest.mark.parametrize("name", ["exp", "expm1", "log", "log1p", "erf"])
def test_unary(name):
    x = rng.uniform(0.1, 3, (30, 4)).astype("f4")
    out = np.empty((4, 30), "f4").T
    ew.unary(name, x, out)
    expected = erf(x.astype("f8")) if name == "erf" else getattr(np, name)(x.astype("f8"))
    np.testing.assert_allclose(out, expected, rtol=4e-7)


@pytest.mark.parametrize("shape, gammas", [((4, 3, 5), 3), ((4, 3), 3), ((4, 3, 5), 1), ((0, 3, 5), 3)])
@pytest.mark.parametrize("workers", [1, 3])
def test_prelu(shape, gammas, workers, monkeypatch):
    for kernel in (ew._prelu, ew._prelu_gradient):
        monkeypatch.setattr(kernel, "workers", lambda work: workers)
    x, dy, gamma = rng.standard_normal(shape), rng.standard_normal(shape), rng.uniform(0.1, 1, gammas)
    g = gamma.reshape(1, -1, *(1,) * (x.ndim - 2))
    out, dx, dg = np.empty_like(x), np.empty_like(x), np.empty(gammas)
    ew.prelu(x, gamma, out)
    np.testing.assert_array_equal(out, np.where(x > 0, x, x * g))
    ew.prelu_backward(dy, x, gamma, dx, dg)
    np.testing.assert_array_equal(dx, np.where(x > 0, dy, dy * g))
    each = np.where(x > 0, 0, x * dy)
    axes = (0, *range(2, x.ndim))
    np.testing.assert_allclose(dg, each.sum(axes) if gammas > 1 else [each.sum()], atol=1e-13)


def test_dropout():
    x, u = rng.standard_normal(1000), rng.random(1000)
    out = np.empty(1000)
    ew.dropout(x, u, 0.7, out)
    np.testing.assert_allclose(out, np.where(u < 0.7, x / 0.7, 0))
    ew.dropout(np.full(3, np.nan), np.array([0.1, 0.9, 0.9]), 0.7, out[:3])
    assert np.isnan(out[0]) and out[1] == out[2] == 0


@pytest.mark.parametrize("act_type", ["leaky", "elu", "selu", "gelu"])
def test_slopes_have_loops(act_type):
    x = np.empty((100, 100), np.float32)
    for name, ins in (("LeakyReLU", [x]), ("_backward_LeakyReLU", [x, x])):
        op = tables.ops.get(name)
        found = tables.kernels.resolve(
            op, mx.cpu().device, op.parser({"act_type": act_type}), [Spec(a.shape, a.dtype) for a in ins]
        )
        assert found[0] is not op.body, name
