"""Triangular systems: all sides, transpositions and triangles, sizes around blocks, scattered arrays, zeros."""

import itertools

import numpy as np
import pytest

import mxcore as mx
from mxcore_cpu import threads
from mxcore_cpu.kernels import triangular as tri

rng = np.random.default_rng(0)
USES = list(itertools.product((False, True), repeat=3))


def system(lead, n, m, right, dtype="f8"):
    a = rng.uniform(-1, 1, (*lead, n, n)) / np.sqrt(n) + 2 * np.eye(n)
    return a.astype(dtype), rng.standard_normal((*lead, m, n) if right else (*lead, n, m)).astype(dtype)


def op_of(a, transpose, lower):
    a = np.tril(a) if lower else np.triu(a)
    return a.swapaxes(-1, -2) if transpose else a


@pytest.mark.parametrize("transpose, right, lower", USES)
@pytest.mark.parametrize(
    "lead, n, m", [((), 1, 1), ((), 5, 3), ((7,), 8, 8), ((2, 3), 13, 70), ((), 64, 1), ((2,), 65, 130), ((), 150, 9)]
)
@pytest.mark.parametrize("workers", [1, 3])
def test_solves(transpose, right, lower, lead, n, m, workers, monkeypatch):
    monkeypatch.setattr(threads, "maximum", lambda: workers)
    monkeypatch.setattr(tri._solve, "threshold", 1)
    a, b = system(lead, n, m, right)
    out = np.full_like(b, np.nan)
    hidden = np.triu(np.full((n, n), np.nan), 1)
    tri.solve(a + (hidden if lower else hidden.T), b, out, transpose=transpose, right=right, lower=lower, alpha=-0.5)
    t = op_of(a, transpose, lower)
    np.testing.assert_allclose(out @ t if right else t @ out, -0.5 * b, rtol=1e-11, atol=1e-12)


def test_any_layout():
    a, b = system((3,), 6, 4, False, "f4")
    expected, out = np.empty_like(b), np.empty((4, 3, 6), "f4").transpose(1, 2, 0)
    tri.solve(a, b, expected)
    tri.solve(np.asfortranarray(a), b[::-1, ::-1][::-1, ::-1], out)
    np.testing.assert_array_equal(out, expected)
    tri.solve(a, b, b)  # in place
    np.testing.assert_array_equal(b, expected)


@pytest.mark.parametrize("shape, rhs", [((0, 2, 2), (0, 2, 3)), ((2, 2), (2, 0)), ((0, 0), (0, 3))])
def test_nothing(shape, rhs):
    out = np.empty(rhs)
    tri.solve(np.ones(shape), np.ones(rhs), out)
    a, b = mx.nd.array(np.ones(shape)), mx.nd.array(np.ones(rhs))
    assert mx.nd.linalg.trsm(a, b).shape == rhs


def test_zero_on_the_diagonal():
    out = np.empty((3, 1))
    with np.errstate(all="ignore"):
        tri.solve(np.array([[2.0, 0, 0], [1, 0, 0], [-0.5, 0, 1]]), np.array([[1.0], [2], [3]]), out)
    np.testing.assert_array_equal(out, [[0.5], [np.inf], [np.nan]])


@pytest.mark.parametrize("shape", [(1, 1), (128, 128), (129, 129), (2, 300, 300)])
@pytest.mark.parametrize("dtype, tolerance", [("f4", 1e-4), ("f8", 1e-12)])
def test_factor(shape, dtype, tolerance):
    g = rng.standard_normal(shape)
    a = (g @ g.swapaxes(-1, -2) / shape[-1] + np.eye(shape[-1])).astype(dtype)
    out = np.full_like(a, np.nan)
    tri.factor(np.tril(a) + np.triu(np.full_like(a, np.nan), 1), out)
    np.testing.assert_allclose(out, np.linalg.cholesky(a), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("lower", [True, False])
def test_the_operator_factors_large_matrices(lower, monkeypatch):
    used = []
    monkeypatch.setattr(tri, "_factor", lambda *a, f=tri._factor: (used.append(a), f(*a)))
    g = rng.standard_normal((2, 520, 520))
    a = g @ g.swapaxes(-1, -2) / 520 + np.eye(520)
    y = mx.nd.linalg.potrf(mx.nd.array(a, dtype="float64"), lower=lower).asnumpy()
    np.testing.assert_allclose(y if lower else y.swapaxes(-1, -2), np.linalg.cholesky(a), rtol=1e-11, atol=1e-12)
    assert len(used) == 2
    a[1, 400, 400] = -1
    with pytest.raises(mx.MXNetError, match=r"operator _linalg_potrf.*: the matrix A\[1\] is not positive definite"):
        mx.nd.linalg.potrf(mx.nd.array(a), lower=lower).asnumpy()
