"""Pooling against plain loops over windows; the facts about ties, NaN and edges are MXNet 1.9.1's."""

import itertools

import numpy as np
import pytest

from mxcore_cpu.kernels import pooling as pool

rng = np.random.default_rng(0)

# size, window, stride, pad, output size (so any convention: the last of these is 'full')
CASES = {
    "1d": ((8,), (3,), (2,), (1,), (4,)),
    "2x2": ((6, 8), (2, 2), (2, 2), (0, 0), (3, 4)),
    "2x2, odd": ((7, 9), (2, 2), (2, 2), (0, 0), (3, 4)),
    "wider than the data": ((5, 4), (9, 11), (2, 3), (4, 5), (3, 2)),
    "as wide as no data": ((4,), (1 << 31,), (1,), (1 << 30,), (5,)),
    "3x3 stride 2 pad 1": ((9, 10), (3, 3), (2, 2), (1, 1), (5, 5)),
    "3d": ((4, 5, 6), (2, 3, 2), (1, 2, 3), (1, 1, 0), (5, 3, 2)),
    "all of it": ((5, 6), (5, 6), (1, 1), (0, 0), (1, 1)),
    "full, windows without elements": ((8,), (2,), (3,), (1,), (4,)),
}


def windows(size, window, stride, pad, positions):
    """Yield (position, slices of the data, places that count with padding) of every window."""
    for at in itertools.product(*map(range, positions)):
        start = [p * s - q for p, s, q in zip(at, stride, pad)]
        cut = tuple(slice(max(a, 0), max(0, a, min(a + k, n))) for a, k, n in zip(start, window, size))
        yield at, cut, np.prod([min(a + k, n + q) - a for a, k, n, q in zip(start, window, size, pad)])


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("workers", [1, 3])
def test_pooling_and_gradients(case, workers, monkeypatch):
    for name in ("_max", "_max_gradient", "_max_2x2", "_max_2x2_gradient", "_sum", "_sum_gradient"):
        monkeypatch.setattr(getattr(pool, name), "workers", lambda work: workers)
    size, window, stride, pad, positions = CASES[case]
    x = rng.integers(-4, 5, (2, 3, *size)).astype(float)  # many ties
    dy = rng.standard_normal((2, 3, *positions))
    how = {"window": window, "stride": stride, "pad": pad}
    kinds = ("max", "sum", "average", "average without padding", 1, 2, 3)
    y = {k: np.zeros(dy.shape) for k in kinds}
    dx = {k: np.zeros_like(x) for k in kinds}
    for n, c in itertools.product(range(2), range(3)):
        for at, cut, places in windows(size, window, stride, pad, positions):
            w, at = x[n, c][cut], (n, c, *at)
            g = {k: d[n, c][cut] for k, d in dx.items()}
            y["max"][at] = w.max(initial=np.finfo(float).min)
            if w.size:
                g["max"].reshape(w.shape)[np.unravel_index(w.argmax(), w.shape)] += dy[at]
            shares = {"sum": 1.0, "average": places, "average without padding": max(w.size, 1), 1: 1.0}
            for kind, share in shares.items():
                y[kind][at] = w.sum() / share
                g[kind] += dy[at] / share
            y[2][at], y[3][at] = np.sqrt((w**2).sum()), np.cbrt((w**3).sum())
            for p in (2, 3):
                if y[p][at]:
                    g[p] += dy[at] * (w / y[p][at]) ** (p - 1)

    out, back = np.full(dy.shape, np.nan), np.full_like(x, np.nan)
    pool.max_pool(x, out, **how)
    np.testing.assert_array_equal(out, y["max"])
    pool.max_pool_backward(dy, x, back, **how)
    np.testing.assert_allclose(back, dx["max"], atol=1e-12)
    for kind, more in (
        ("sum", {"average": False}),
        ("average", {}),
        ("average without padding", {"include_pad": False}),
    ):
        pool.average_pool(x, out, **how, **more)
        np.testing.assert_allclose(out, y[kind], atol=1e-12)
        pool.average_pool_backward(dy, back, **how, **more)
        np.testing.assert_allclose(back, dx[kind], atol=1e-12)
    for p in (1, 2, 3):
        pool.lp_pool(x, out, p=p, **how)
        np.testing.assert_allclose(out, y[p], atol=1e-12)
        pool.lp_pool_backward(dy, x, y[p], back, p=p, **how)
        np.testing.assert_allclose(back, dx[p], rtol=1e-9, atol=1e-9)


def test_of_equal_maxima_the_first_takes_the_gradient():
    x = np.array([[[[1, 1, 0], [1, 1, 2], [2, 2, 2]]]], "f4")
    dx = np.empty_like(x)
    pool.max_pool_backward(np.array([[[[1, 10], [100, 1000]]]], "f4"), x, dx, window=(2, 2), stride=(1, 1), pad=(0, 0))
    assert dx.ravel().tolist() == [1, 0, 0, 0, 0, 1010, 100, 0, 0]
    square = np.ones((1, 1, 2, 2), "f4")
    pool.max_pool_backward(np.full((1, 1, 1, 1), 5, "f4"), square, square, window=(2, 2), stride=(2, 2), pad=(0, 0))
    assert square.ravel().tolist() == [5, 0, 0, 0]


@pytest.mark.parametrize("stride", [(1, 1), (2, 2)])
def test_nan_loses_and_nothing_gives_the_lowest_number(stride):
    x = np.full((1, 1, 2, 2), np.nan, "f4")
    x[0, 0, 1, 1] = 5
    y = np.empty((1, 1, 1, 1), "f4")
    pool.max_pool(x, y, window=(2, 2), stride=stride, pad=(0, 0))
    assert y.item() == 5
    pool.max_pool(np.full_like(x, -np.inf), y, window=(2, 2), stride=stride, pad=(0, 0))
    assert y.item() == np.finfo("f4").min


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("width", [1, 3, 12, 63, 64, 100])
@pytest.mark.parametrize("workers", [1, 3])
def test_pairs_of_eight_bits(dtype, width, workers, monkeypatch):
    """Narrow lines are compared some at a time, wide ones each for itself."""
    for name in ("_max_2x2", "_max_2x2_bytes"):
        monkeypatch.setattr(getattr(pool, name), "workers", lambda work: workers)
    ends = np.iinfo(dtype)
    x = np.random.default_rng(width).integers(ends.min, ends.max, (40, 3, 10, 2 * width), dtype, endpoint=True)
    y = np.zeros((40, 3, 5, 2 * width), dtype)[..., ::2]
    pool.max_pool(x, y, window=(2, 2), stride=(2, 2), pad=(0, 0))
    np.testing.assert_array_equal(y, x.reshape(40, 3, 5, 2, width, 2).max((3, 5)))


def test_no_images_and_views():
    y = np.empty((0, 3, 2, 2))
    for f in (pool.max_pool, pool.average_pool):
        f(np.empty((0, 3, 4, 4)), y, window=(2, 2), stride=(2, 2), pad=(0, 0))
    x = rng.standard_normal((4, 4, 3, 2)).T
    out, same = np.empty((2, 2, 3, 2)).T, np.empty((2, 3, 2, 2))
    for f in (pool.max_pool, pool.average_pool):
        f(x, out, window=(2, 2), stride=(2, 2), pad=(0, 0))
        f(x.copy(), same, window=(2, 2), stride=(2, 2), pad=(0, 0))
        np.testing.assert_array_equal(out, same)
    out = np.empty((1, 1, 3, 2)).T
    pool.average_pool(x, out, window=(4, 4), stride=(1, 1), pad=(0, 0))
    np.testing.assert_allclose(out[..., 0, 0], x.mean((2, 3)))
