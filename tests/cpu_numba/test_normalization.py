"""Normalizations against float64 formulas and finite differences."""

import numpy as np
import pytest

import mxcore_cpu.kernels.batch_norm as kernels
from mxcore_cpu.kernels import normalization as norm

rng = np.random.default_rng(0)
EPS = 1e-3


def batch(x, gamma, beta, axis, mean=None, var=None):
    axes = tuple(a for a in range(x.ndim) if a != axis % x.ndim)
    shape = [1] * x.ndim
    shape[axis] = -1
    mean = (x.mean(axes) if mean is None else mean).reshape(shape)
    var = (x.var(axes) if var is None else var).reshape(shape)
    return (x - mean) / np.sqrt(var + EPS) * gamma.reshape(shape) + beta.reshape(shape)


@pytest.fixture(params=[1, 3])
def workers(request, monkeypatch):
    for module, names in (
        (kernels, ("_moments", "_sums", "_combine", "_apply")),
        (norm, ("_layer", "_layer_gradient", "_group", "_group_gradient", "_unit")),
    ):
        for name in names:
            monkeypatch.setattr(getattr(module, name), "workers", lambda work: request.param)


def slope(f, x, v):
    return (f(x + 1e-6 * v) - f(x - 1e-6 * v)) / 2e-6


@pytest.mark.parametrize(
    "shape, axis", [((6, 4, 5), 1), ((7, 4), 1), ((3, 5, 6, 4), -1), ((4, 9), 0), ((2, 3, 2, 2, 2), 2)]
)
def test_batch_norm(shape, axis, workers):
    x, dy = rng.standard_normal(shape) + 3, rng.standard_normal(shape)
    c = shape[axis]
    gamma, beta = rng.standard_normal(c), rng.standard_normal(c)
    out, mean, var = np.empty_like(x), np.empty(c), np.empty(c)
    axes = tuple(a for a in range(x.ndim) if a != axis % x.ndim)
    for fixed in (False, True):
        g = np.ones(c) if fixed else gamma
        kernels.batch_norm(x, gamma, beta, out, mean, var, eps=EPS, axis=axis, fix_gamma=fixed)
        np.testing.assert_allclose(out, batch(x, g, beta, axis), atol=1e-12)
        np.testing.assert_allclose(mean, x.mean(axes))
        np.testing.assert_allclose(var, x.var(axes))
        dx, dgamma, dbeta = (np.full_like(a, np.nan) for a in (x, gamma, beta))
        kernels.batch_norm_backward(dy, x, gamma, mean, var, dx, dgamma, dbeta, eps=EPS, axis=axis, fix_gamma=fixed)
        v, w = rng.standard_normal(shape), rng.standard_normal(c)
        expected = slope(lambda a, g=g: (dy * batch(a, g, beta, axis)).sum(), x, v)
        np.testing.assert_allclose((dx * v).sum(), expected, rtol=1e-5, atol=1e-7)
        expected = slope(lambda b, g=g: (dy * batch(x, g, b, axis)).sum(), beta, w)
        np.testing.assert_allclose((dbeta * w).sum(), expected, rtol=1e-6)
        expected = 0 if fixed else slope(lambda a: (dy * batch(x, a, beta, axis)).sum(), gamma, w)
        np.testing.assert_allclose((dgamma * w).sum(), expected, rtol=1e-6, atol=1e-7)

    kernels.batch_norm_inference(x, gamma, beta, mean + 1, var + 2, out, eps=EPS, axis=axis)
    np.testing.assert_allclose(out, batch(x, gamma, beta, axis, mean + 1, var + 2), atol=1e-12)
    kernels.batch_norm_backward(
        dy, x, gamma, mean + 1, var + 2, dx, None, None, eps=EPS, axis=axis, use_global_stats=True
    )
    v = rng.standard_normal(shape)
    moved = batch(x + v, gamma, beta, axis, mean + 1, var + 2)
    np.testing.assert_allclose((dx * v).sum(), (dy * (moved - out)).sum())


@pytest.mark.parametrize("shape, axis", [((6, 4, 5), 1), ((32, 4), 1), ((3, 6, 4, 3), -1), ((33, 700), 1), ((0, 3), 1)])
@pytest.mark.parametrize("constants", [False, True])
def test_batch_norm_with_relu(shape, axis, workers, constants):
    """As two layers."""
    x, dy = rng.standard_normal(shape), rng.standard_normal(shape)
    c = shape[axis]
    gamma, beta = rng.standard_normal(c), rng.standard_normal(c)
    out, mean, var = np.empty_like(x), np.empty(c), np.empty(c)
    kernels.batch_norm(x, gamma, beta, out, mean, var, eps=EPS, axis=axis)
    both, again = np.empty_like(x), np.empty((2, c))
    kernels.batch_norm(x, gamma, beta, both, *again, eps=EPS, axis=axis, relu=True)
    np.testing.assert_array_equal(both, np.maximum(out, 0))
    np.testing.assert_array_equal(again, [mean, var])
    kw = dict(eps=EPS, axis=axis, use_global_stats=constants)
    want, found = ([np.full_like(a, np.nan) for a in (x, gamma, beta)] for _ in range(2))
    kernels.batch_norm_backward(dy * (out > 0), x, gamma, mean, var, *want, **kw)
    kernels.batch_norm_backward(dy, x, gamma, mean, var, *found, relu=both, **kw)
    for a, b in zip(found, want):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_what_is_no_number_stays_so():
    x = np.array([[np.nan, 1.0], [2.0, -np.inf], [-3.0, 5.0]], np.float32)
    one, zero, out = np.ones(2, np.float32), np.zeros(2, np.float32), np.empty_like(x)
    kernels.batch_norm_inference(x, one, zero, zero, one, out, eps=0.0, relu=True)
    np.testing.assert_array_equal(out, [[np.nan, 1], [2, 0], [0, 5]])


@pytest.mark.parametrize("shape, axis", [((2, 3, 40000), 1), ((16, 60, 60, 3), 3), ((4, 7, 5, 513), 3), ((999, 2), 1)])
def test_statistics_of_a_large_mean(shape, axis, workers):
    """In parts, each around its own mean; between the parts it moves."""
    x = (rng.standard_normal(shape) + 3000).astype(np.float32)
    x[len(x) // 2 :] += 50
    c, axes = shape[axis], tuple(a for a in range(len(shape)) if a != axis)
    one, out, mean, var = np.ones(c, np.float32), np.empty_like(x), np.empty(c), np.empty(c)
    kernels.batch_norm(x, one, one, out, mean, var, eps=EPS, axis=axis)
    exact = x.astype(np.float64)
    np.testing.assert_allclose(mean, exact.mean(axes), rtol=1e-7)
    np.testing.assert_allclose(var, exact.var(axes), rtol=1e-5)


def test_a_large_mean_costs_no_digits():
    x = (rng.standard_normal((64, 3, 50)) + 1000).astype("f4")
    out, mean, var = np.empty_like(x), np.empty(3, "f4"), np.empty(3, "f4")
    kernels.batch_norm(x, np.ones(3, "f4"), np.zeros(3, "f4"), out, mean, var, eps=0.0)
    exact = x.astype("f8")
    np.testing.assert_allclose(var, exact.var((0, 2)), rtol=1e-5)
    np.testing.assert_allclose(mean, exact.mean((0, 2)), rtol=1e-6)
    normal = (exact - exact.mean((0, 2), keepdims=True)) / exact.std((0, 2), keepdims=True)
    np.testing.assert_allclose(out, normal, atol=2e-3)


def layer(x, gamma, beta, axis):
    x = np.moveaxis(x, axis, -1)
    y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + EPS) * gamma + beta
    return np.moveaxis(y, -1, axis)


@pytest.mark.parametrize("shape, axis", [((6, 5), -1), ((3, 4, 7), -1), ((3, 4, 7), 1), ((1, 1), -1), ((0, 4), -1)])
def test_layer_norm(shape, axis, workers):
    x, dy = rng.standard_normal(shape), rng.standard_normal(shape)
    n = shape[axis]
    gamma, beta = rng.standard_normal(n), rng.standard_normal(n)
    out = np.empty_like(x)
    mean = np.empty([1 if a == axis % x.ndim else s for a, s in enumerate(shape)])
    std = np.empty_like(mean)
    norm.layer_norm(x, gamma, beta, out, mean, std, eps=EPS, axis=axis)
    np.testing.assert_allclose(out, layer(x, gamma, beta, axis), atol=1e-12)
    np.testing.assert_allclose(mean, x.mean(axis, keepdims=True), atol=1e-15)
    np.testing.assert_allclose(std, np.sqrt(x.var(axis, keepdims=True) + EPS))
    dx, dgamma, dbeta = (np.full_like(a, np.nan) for a in (x, gamma, beta))
    norm.layer_norm_backward(dy, x, gamma, mean, std, dx, dgamma, dbeta, axis=axis)
    for got, v, f in (
        (dx, rng.standard_normal(shape), lambda a: layer(x + a, gamma, beta, axis)),
        (dgamma, rng.standard_normal(n), lambda a: layer(x, gamma + a, beta, axis)),
        (dbeta, rng.standard_normal(n), lambda a: layer(x, gamma, beta + a, axis)),
    ):
        expected = slope(lambda a, f=f: (dy * f(a)).sum(), 0 * v, v)
        np.testing.assert_allclose((got * v).sum(), expected, rtol=1e-5, atol=1e-6)
    norm.layer_norm_backward(dy, x, gamma, mean, std, dx, None, None, axis=axis)


def grouped(x, gamma, beta):
    z = x.reshape(len(x), gamma.size, -1)
    y = (z - z.mean(2, keepdims=True)) / np.sqrt(z.var(2, keepdims=True) + EPS) * gamma[:, None] + beta[:, None]
    return y.reshape(x.shape)


@pytest.mark.parametrize("shape, groups", [((3, 6, 5), 2), ((2, 4, 3, 3), 4), ((5, 3), 1), ((1, 1, 1), 1)])
def test_group_norm(shape, groups, workers):
    x, dy = rng.standard_normal(shape) + 100, rng.standard_normal(shape)
    gamma, beta = rng.standard_normal(groups), rng.standard_normal(groups)
    out, mean, std = np.empty_like(x), np.empty((shape[0], groups)), np.empty((shape[0], groups))
    norm.group_norm(x, gamma, beta, out, mean, std, eps=EPS)
    rows = x.reshape(shape[0], groups, -1)
    np.testing.assert_allclose(out, grouped(x, gamma, beta), atol=1e-10)
    np.testing.assert_allclose(mean, rows.mean(2))
    np.testing.assert_allclose(std, np.sqrt(rows.var(2) + EPS))
    dx, dgamma, dbeta = (np.full_like(a, np.nan) for a in (x, gamma, beta))
    norm.group_norm_backward(dy, x, gamma, mean, std, dx, dgamma, dbeta)
    for got, v, f in (
        (dx, rng.standard_normal(shape), lambda a: grouped(x + a, gamma, beta)),
        (dgamma, rng.standard_normal(groups), lambda a: grouped(x, gamma + a, beta)),
        (dbeta, rng.standard_normal(groups), lambda a: grouped(x, gamma, beta + a)),
    ):
        expected = slope(lambda a, f=f: (dy * f(a)).sum(), 0 * v, v)
        np.testing.assert_allclose((got * v).sum(), expected, rtol=1e-5, atol=1e-6)
    again = np.empty_like(dgamma)
    norm.group_norm_backward(dy, x, gamma, mean, std, None, again, None)
    np.testing.assert_array_equal(again, dgamma)


def test_unit_length(workers):
    x, out = rng.standard_normal((4, 3, 50)), np.empty((4, 3, 50))
    norm.unit_length(x, 12, 0.5, out)
    np.testing.assert_allclose(out, x / np.sqrt((x * x).sum(2, keepdims=True) + 0.5))
