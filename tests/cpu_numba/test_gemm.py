"""Parallel matrix products against NumPy."""

import numpy as np
import pytest

from mxcore_cpu.kernels import gemm

rng = np.random.default_rng(0)


@pytest.mark.parametrize("dtype, tolerance", [("f4", 1e-4), ("f8", 1e-12)])
@pytest.mark.parametrize(
    "batch, m, n, k",
    [
        (None, 3, 4, 5),
        (None, 130, 90, 200),
        (None, 5, 2000, 150),
        (6, 70, 40, 90),
        (1, 200, 200, 50),
        (None, 0, 3, 2),
        (None, 3, 4, 0),
        (0, 2, 2, 2),
    ],
)
def test_matmul(dtype, tolerance, batch, m, n, k, monkeypatch):
    lead = () if batch is None else (batch,)
    a, b = rng.standard_normal((*lead, m, k)).astype(dtype), rng.standard_normal((*lead, k, n)).astype(dtype)
    expected = a.astype("f8") @ b.astype("f8")
    for workers in (1, 2, 5):
        monkeypatch.setattr(gemm._matmul, "workers", lambda work, n=workers: n)
        for ta in (False, True):
            for tb in (False, True):
                x = a.swapaxes(-1, -2) if ta else a
                y = b.swapaxes(-1, -2).copy() if tb else b
                out = np.full(expected.shape, 7, dtype)
                gemm.matmul(x, y, out, ta, tb)
                np.testing.assert_allclose(out, expected, rtol=tolerance, atol=tolerance)
                gemm.matmul(x, y, out, ta, tb, add=True)
                np.testing.assert_allclose(out, 2 * expected, rtol=tolerance, atol=2 * tolerance)


def test_one_matrix_for_a_whole_batch():
    a, b = rng.standard_normal((8, 60, 70)), rng.standard_normal((70, 80))
    out = np.empty((8, 60, 80))
    gemm.matmul(a, b, out)
    np.testing.assert_allclose(out, a @ b, rtol=1e-12, atol=1e-12)


def test_a_signal_handler_may_compute_while_blas_is_held(monkeypatch):
    """In the midst of a change of its threads, too."""
    from mxcore_cpu import blas

    put, seen = [], []
    fake = blas.find()._replace(get_threads=lambda: 4, set_threads=lambda n: (put.append(n), nested()))

    def nested():
        if not seen:
            seen.append(1)
            with blas.single:
                pass

    monkeypatch.setattr(blas, "find", lambda: fake)
    monkeypatch.setattr(blas, "_holds", blas._Holds())
    with blas.single:
        assert put[-1] == 1 and blas._holds.active == {1: 1}
    assert put[-1] == 4 and blas._holds.active == {} and blas._holds.now == 0


def test_fully_connected():
    x, w, b, dy = (rng.standard_normal(s) for s in ((9, 5), (4, 5), (4,), (9, 4)))
    y = np.empty((9, 4))
    gemm.fully_connected(x, w, b, y)
    np.testing.assert_allclose(y, x @ w.T + b)
    gemm.fully_connected(x, w, None, y)
    np.testing.assert_allclose(y, x @ w.T)
    dx, dw, db = np.empty_like(x), np.empty_like(w), np.empty_like(b)
    gemm.fully_connected_backward(dy, x, w, dx, dw, db)
    np.testing.assert_allclose(dx, dy @ w)
    np.testing.assert_allclose(dw, dy.T @ x)
    np.testing.assert_allclose(db, dy.sum(0))
    gemm.fully_connected_backward(dy, x, w, None, None, None)
