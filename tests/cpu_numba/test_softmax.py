"""The softmax family against float64 formulas."""

import numpy as np
import pytest

from mxcore_cpu.kernels import softmax as soft

rng = np.random.default_rng(0)
SHAPES = [((5, 7), -1), ((300, 33), -1), ((3, 4, 5), 1), ((2, 5, 17, 19), 1), ((6, 3), 0), ((4, 1), -1), ((2, 1, 3), 1)]


def reference(x, axis, temperature=None):
    x = x / (temperature or 1)
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


@pytest.fixture(params=[1, 3])
def workers(request, monkeypatch):
    for name in (
        "_rows",
        "_columns",
        "_rows_gradient",
        "_columns_gradient",
        "_cross_entropy",
        "_cross_entropy_gradient",
        "_output_gradient",
    ):
        monkeypatch.setattr(getattr(soft, name), "workers", lambda work: request.param)


@pytest.mark.parametrize("shape, axis", SHAPES)
@pytest.mark.parametrize("temperature", [None, 2.5])
def test_softmax(shape, axis, temperature, workers):
    x, dy = rng.standard_normal(shape) * 5, rng.standard_normal(shape)
    p, out, dx = reference(x, axis, temperature), np.empty(shape), np.empty(shape)
    t = temperature or 1
    soft.softmax(x, out, axis, temperature)
    np.testing.assert_allclose(out, p, rtol=1e-13)
    soft.softmax_backward(dy, p, dx, axis, temperature)
    np.testing.assert_allclose(dx, p * (dy - (dy * p).sum(axis, keepdims=True)) / t, atol=1e-14)
    soft.log_softmax(x, out, axis, temperature)
    np.testing.assert_allclose(out, np.log(p), atol=1e-12)
    soft.log_softmax_backward(dy, np.log(p), dx, axis, temperature)
    np.testing.assert_allclose(dx, (dy - p * dy.sum(axis, keepdims=True)) / t, atol=1e-12)
    same = x.copy()  # in place
    soft.softmax(same, same, axis, temperature)
    np.testing.assert_allclose(same, p, rtol=1e-13)
    soft.softmax_backward(dy, p, dy, axis, temperature)


@pytest.mark.parametrize("axis, shape", [(-1, (3, 40)), (0, (40, 3))])
def test_extremes(axis, shape):
    x = rng.standard_normal((3, 40)).astype("f4")
    x[0, 5], x[1, 7], x[2] = np.nan, -np.inf, x[2] * 1e4
    y = np.empty(shape, "f4")
    soft.softmax(x if axis else x.T, y, axis)
    y = y if axis else y.T
    assert np.isnan(y[0]).all() and y[1, 7] == 0
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(y[1:], reference(x[1:].astype("f8"), -1), atol=1e-6)
    soft.softmax(np.empty((0, 3), "f4"), np.empty((0, 3), "f4"))


def test_cross_entropy(workers):
    x, label, d = rng.standard_normal((50, 9)) * 4, rng.integers(0, 9, 50), rng.standard_normal(50)
    loss, dx = np.empty(50), np.empty_like(x)
    p = reference(x, -1)
    for t in (np.int64, np.int32, np.float64):
        soft.softmax_cross_entropy(x, label.astype(t), loss)
        np.testing.assert_allclose(loss, -np.log(p[np.arange(50), label]), rtol=1e-12)
        soft.softmax_cross_entropy_backward(d, x, label.astype(t), dx)
        np.testing.assert_allclose(dx, d[:, None] * (p - np.eye(9)[label]), atol=1e-13)
    soft.softmax_cross_entropy(x[:2], np.array([-3, 99]), loss[:2])
    np.testing.assert_allclose(loss[:2], -np.log([p[0, 0], p[1, 8]]), rtol=1e-12)


@pytest.mark.parametrize("normalization", ["null", "batch", "valid"])
@pytest.mark.parametrize("ignore", [False, True])
@pytest.mark.parametrize("shape, axis", [((4, 3), -1), ((2, 3, 4), 1)])
def test_softmax_output(normalization, ignore, shape, axis, workers):
    y = reference(rng.standard_normal(shape), axis)
    label = np.array([0, 2, 1, -1, 1, 1, 2, 0][: y.size // 3], float).reshape(np.delete(shape, axis))
    dx = np.empty(shape)
    soft.softmax_output_backward(
        y,
        label,
        dx,
        axis=axis,
        grad_scale=2.0,
        use_ignore=ignore,
        ignore_label=1,
        normalization=normalization,
        smooth_alpha=0.1,
    )
    k = np.moveaxis(np.arange(3) == label[..., None], -1, axis)
    target = np.where(k, 0.9, 0.05)
    inner = 1 if axis == -1 else 4
    share = {"null": inner, "batch": inner * shape[0], "valid": (label != 1).sum()}[normalization]
    expected = (y - target) * 2 / share
    if ignore:
        expected = np.where(np.expand_dims(label, axis) == 1, 0, expected)
    np.testing.assert_allclose(dx, expected, atol=1e-15)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_lengths(dtype, workers):
    x = (rng.standard_normal((7, 41)) * 5).astype(dtype)
    lengths, out = np.array([41, 0, 1, 17, -3, 99, 16]), np.full((7, 41), np.nan, dtype)
    x[2, 1:] = np.nan  # what does not count does not matter
    x[6, :16] = -np.inf
    soft.softmax_of_lengths(x, lengths, out, 2.0)
    for row, n in enumerate(np.clip(lengths, 0, 41)):
        expected = np.zeros(41)
        if row == 6:
            expected[:n] = np.nan
        elif n:
            expected[:n] = reference(x[row, :n].astype("f8"), -1, 2.0)
        np.testing.assert_allclose(out[row], expected, rtol=1e-5 if dtype == "f4" else 1e-13)


@pytest.mark.parametrize("shape, axis", SHAPES)
def test_of_the_negative(shape, axis, workers):
    x, out = rng.standard_normal(shape) * 300, np.empty(shape)
    soft.softmax(x, out, axis, -2.0)
    np.testing.assert_allclose(out, reference(-x / 2, axis), rtol=1e-12, atol=1e-300)
