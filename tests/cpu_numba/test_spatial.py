"""Sampling, resizing and region pooling against plain loops over places, in any number of threads."""

import numpy as np
import pytest

from mxcore_cpu.kernels import roi, spatial

rng = np.random.default_rng(0)


@pytest.fixture(params=[1, 3], autouse=True)
def workers(request, monkeypatch):
    for module, names in ((spatial, "sample to_data _to_grid _locate _resize"), (roi, "_pool _gradient")):
        for name in names.split():
            monkeypatch.setattr(getattr(module, name), "workers", lambda work: request.param)


def neighbours(x, y, h, w):
    """(row, column, share, slope in y, slope in x) of the pixels around a place."""
    px, py = (x + 1) * (w - 1) / 2, (y + 1) * (h - 1) / 2
    for j in (int(np.floor(py)), int(np.floor(py)) + 1):
        for i in (int(np.floor(px)), int(np.floor(px)) + 1):
            if 0 <= j < h and 0 <= i < w:
                sy, sx = 1 - abs(py - j), 1 - abs(px - i)
                yield j, i, sy * sx, np.sign(j - py) * sx * (h - 1) / 2, np.sign(i - px) * sy * (w - 1) / 2


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(2, 3, 5, 4, 3, 2), (1, 1, 1, 6, 2, 3), (1, 2, 7, 6, 17, 31)])
def test_sampling(shape, dtype):
    n, c, h, w, a, b = shape
    x, grid, dy = (
        rng.standard_normal((n, c, h, w)).astype(dtype),
        rng.uniform(-1.4, 1.4, (n, 2, a, b)).astype(dtype),
        rng.standard_normal((n, c, a, b)).astype(dtype),
    )
    y, dx, dg = np.zeros((n, c, a, b)), np.zeros(x.shape), np.zeros(grid.shape)
    for k in range(n):
        for p in range(a):
            for q in range(b):
                for j, i, share, by_y, by_x in neighbours(*grid[k, :, p, q].astype(float), h, w):
                    y[k, :, p, q] += share * x[k, :, j, i]
                    dx[k, :, j, i] += share * dy[k, :, p, q]
                    dg[k, :, p, q] += np.array([by_x, by_y]) * (x[k, :, j, i] * dy[k, :, p, q]).sum()
    out, d_data, d_grid = np.empty_like(dy), np.empty_like(x), np.empty_like(grid)
    spatial.bilinear_sample(x, grid, out)
    spatial.bilinear_sample_backward(dy, x, grid, d_data, d_grid)
    tol = {"rtol": 1e-4, "atol": 1e-4} if dtype == "float32" else {"rtol": 1e-9, "atol": 1e-9}
    for got, want in ((out, y), (d_data, dx), (d_grid, dg)):
        np.testing.assert_allclose(got, want, **tol)
    alone = np.empty_like(grid)
    spatial.bilinear_sample_backward(dy, x, grid, None, alone)
    assert (alone == d_grid).all()


@pytest.mark.parametrize("align", [True, False])
@pytest.mark.parametrize("size", [(9, 3), (5, 4), (1, 1), (6, 11)])
def test_resizing(size, align):
    x, out = rng.standard_normal((2, 3, 5, 4)), np.empty((2, 3, *size))
    spatial.bilinear_resize(x, out, align_corners=align)

    def weights(n, m):
        at = np.arange(m) * (n - 1) / max(m - 1, 1) if align else np.maximum((np.arange(m) + 0.5) * n / m - 0.5, 0)
        return np.maximum(1 - abs(np.minimum(at, n - 1)[:, None] - np.arange(n)), 0)

    np.testing.assert_allclose(
        out, np.einsum("ph,nchw,qw->ncpq", weights(5, size[0]), x, weights(4, size[1])), rtol=1e-9, atol=1e-12
    )


def test_regions():
    x = rng.standard_normal((2, 4, 6, 7))
    rois = np.array([[0, 0, 0, 4, 5], [1, 1, 2, 6, 3], [1, 5, 5, 9, 9], [2, 0, 0, 1, 1]], float)
    out, index, dx = np.empty((4, 4, 1, 1)), np.empty((4, 4, 1, 1), np.int64), np.empty_like(x)
    roi.roi_pool(x, rois, out, index, scale=1.0)
    parts = [x[0, :, 0:6, 0:5], x[1, :, 2:4, 1:7], x[1, :, 5:, 5:], None]
    for r, part in enumerate(parts):
        np.testing.assert_array_equal(out[r, :, 0, 0], 0 if part is None else part.max((1, 2)))
    assert (index[3] == -1).all()
    roi.roi_pool_backward(np.ones_like(out), rois, index, dx)
    assert dx.sum() == 12 and (x[dx > 0].reshape(-1) <= x.max()).all()
    for r, image in ((0, 0), (1, 1), (2, 1)):
        assert all(dx[image, c].flat[index[r, c, 0, 0]] >= 1 for c in range(4))
