"""Convolution in groups of few channels against the path of all others, over many geometries."""

import numpy as np
import pytest

from mxcore_cpu.kernels import convolution as conv
from mxcore_cpu.kernels import grouped

rng = np.random.default_rng(0)

# images, groups, filters for each channel, size, kernel, stride, pad, dilate
CASES = {
    "line": (2, 3, 1, (50,), (5,), (1,), (2,), (1,)),
    "line, stride three": (2, 3, 2, (50,), (5,), (3,), (1,), (2,)),
    "no padding": (3, 4, 1, (7, 7), (3, 3), (1, 1), (0, 0), (1, 1)),
    "small": (3, 4, 1, (7, 7), (3, 3), (1, 1), (1, 1), (1, 1)),
    "even kernel, stride two": (2, 3, 1, (8, 9), (4, 4), (2, 2), (1, 1), (1, 1)),
    "uneven in every way": (2, 3, 2, (9, 12), (2, 5), (3, 1), (0, 3), (2, 1)),
    "rows and columns left over": (1, 2, 1, (11, 13), (3, 3), (4, 5), (1, 0), (1, 1)),
    "stride beyond the kernel": (2, 2, 1, (9, 9), (1, 1), (3, 2), (0, 0), (1, 1)),
    "dilation beyond the image": (1, 2, 1, (4, 4), (2, 2), (1, 1), (6, 6), (7, 9)),
    "one position": (2, 3, 1, (5, 5), (5, 5), (1, 1), (0, 0), (1, 1)),
    "volume": (2, 2, 2, (4, 5, 6), (3, 2, 3), (2, 1, 2), (1, 1, 1), (1, 2, 1)),
    "wide": (1, 2, 1, (3, 200), (3, 3), (1, 1), (1, 1), (1, 1)),
}


@pytest.mark.parametrize("per", [1, 2, 5])
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("case", CASES)
def test_as_others(case, dtype, workers, per, monkeypatch):
    for kernel in (grouped._forward, grouped._data_gradient, grouped._weight_gradient):
        monkeypatch.setattr(kernel, "workers", lambda work: workers)
    n, groups, times, size, window, stride, pad, dilate = CASES[case]
    out = [(s + 2 * p - (k - 1) * d - 1) // t + 1 for s, p, k, d, t in zip(size, pad, window, dilate, stride)]
    c, filters = groups * per, groups * (times + per - 1)
    g = conv.geometry((c, *size), window, stride, pad, dilate, out)
    x, weight, bias = (rng.standard_normal(s).astype(dtype) for s in ((n, c, *size), (filters, per, *window), filters))
    dy, low = rng.standard_normal((n, filters, *out)).astype(dtype), rng.standard_normal(c).astype(dtype)
    close = dict(rtol=1e-4, atol=1e-4) if dtype == "f4" else dict(rtol=1e-11, atol=1e-11)
    for b in (None, bias):
        y, expected = np.full_like(dy, np.nan), np.empty_like(dy)
        grouped.forward(x, weight, b, y, g, groups)
        conv._run_forward(x, weight, b, expected, g, groups)
        np.testing.assert_allclose(y, expected, **close)
    for b in (None, low):
        dx, expected = np.full_like(x, np.nan), np.empty_like(x)
        grouped.data_gradient(dy, weight, b, dx, g, groups)
        conv._run_data_gradient(dy, weight, b, expected, g, groups)
        np.testing.assert_allclose(dx, expected, **close)
    dw, expected = np.full_like(weight, np.nan), np.empty_like(weight)
    grouped.weight_gradient(x, dy, dw, g, groups)
    conv._run_weight_gradient(x, dy, expected, g, groups)
    np.testing.assert_allclose(dw, expected, **close)


def test_threads_do_not_show(monkeypatch):
    """However many threads share the work, every bit is the same."""
    x, dy = (rng.standard_normal((9, 60, 9, 9)).astype("f4") for _ in range(2))
    g, results = conv.geometry((60, 9, 9), (3, 3), (1, 1), (1, 1), (1, 1), (9, 9)), []
    for workers in (1, 2, 7):
        monkeypatch.setattr(grouped._weight_gradient, "workers", lambda work: workers)
        results.append(np.empty((60, 3, 3, 3), "f4"))
        grouped.weight_gradient(x, dy, results[-1], g, 20)
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


@pytest.mark.parametrize(
    ("shape", "groups", "window", "yes"),
    [
        ((8, 7, 7), 8, (3, 3), True),
        ((64, 56, 56), 4, (3, 3), True),
        ((64, 56, 56), 4, (1, 1), False),
        ((96, 27, 27), 2, (5, 5), False),
        ((512, 14, 14), 32, (3, 3), True),
        ((8, 7, 7), 1, (3, 3), False),
        ((8, 600, 600), 2, (3, 3), False),
    ],
)
def test_which_convolutions_it_takes(shape, groups, window, yes):
    assert grouped.fits(conv.geometry(shape, window, (1, 1), (0, 0), (1, 1), (1, 1)), shape[0], groups) is yes


def test_what_lies_between_the_rows_does_not_show():
    """An infinity in the image reaches the outputs whose windows hold it, and no others."""
    x, weight, y = np.zeros((1, 1, 5, 5)), np.ones((1, 1, 3, 3)), np.empty((1, 1, 5, 5))
    x[0, 0, 2, 4] = np.inf
    grouped.forward(x, weight, None, y, conv.geometry((1, 5, 5), (3, 3), (1, 1), (1, 1), (1, 1), (5, 5)), 1)
    expected = np.zeros((5, 5))
    expected[1:4, 3:] = np.inf
    np.testing.assert_array_equal(y[0, 0], expected)


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_infinity_reaches_the_gradients_that_it_meets(dtype, stride):
    """An infinity at an edge is no reason for NaN: not every tap meets it."""
    x, dy = np.ones((1, 20, 6, 7), dtype), np.ones((1, 20, 5 // stride + 1, 6 // stride + 1), dtype)
    weight, dw, dx = np.ones((20, 1, 3, 3), dtype), np.empty((20, 1, 3, 3), dtype), np.empty_like(x)
    g = conv.geometry((20, 6, 7), (3, 3), (stride, stride), (1, 1), (1, 1), dy.shape[2:])
    x[0, 17, 0, 6] = np.inf
    grouped.weight_gradient(x, dy, dw, g, 20)
    meets = {1: [(1, 1), (1, 2), (0, 1), (0, 2)], 2: [(1, 1)], 3: [(1, 1)]}[stride]
    assert sorted(map(tuple, np.argwhere(np.isinf(dw))[:, 2:])) == sorted(meets) and not np.isnan(dw).any()
    assert np.isfinite(dw[:17]).all() and np.isfinite(dw[18:]).all()
    dy[0, 17, 0, -1] = np.inf
    grouped.data_gradient(dy, weight, None, dx, g, 20)
    last = (dy.shape[3] - 1) * stride
    expected = np.zeros((6, 7), bool)
    expected[:2, last - 1 : last + 2] = True
    np.testing.assert_array_equal(np.isinf(dx[0, 17]), expected)
    assert not np.isnan(dx).any() and np.isfinite(dx[0, :17]).all() and np.isfinite(dx[0, 18:]).all()


@pytest.mark.parametrize("n", [1, 7, 16, 17, 37])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_rows_end_where_they_should(dtype, n):
    """A row that is laid leaves zeros behind it within its space; one that is put leaves all behind it as it was."""
    from mxcore_cpu.jit import kernel
    from mxcore_cpu.kernels import vectors

    lay, lay_halves, put, put_halves = vectors.lay, vectors.lay_halves, vectors.put, vectors.put_halves

    @kernel
    def rows(first, last, n, x, laid, halves, back, joined):
        lay(x, 1, n, laid, 2)
        lay_halves(x, 1, n, halves, 0, 100)
        put(laid, 2, n, back, 3)
        put_halves(halves, 0, 100, n, joined, 3)

    x = np.arange(1, n + 2, dtype=dtype)
    laid, halves, back, joined = (np.full(200, -1, dtype) for _ in range(4))
    rows(1, n, x, laid, halves, back, joined)
    data = x[1:]
    np.testing.assert_array_equal(laid[2 : 2 + n], data)
    behind = laid[2 + n :]
    zeros = np.argmin(behind == 0)
    assert (laid[:2] == -1).all() and zeros < vectors.SPARE and (behind[zeros:] == -1).all()
    np.testing.assert_array_equal(halves[: (n + 1) // 2], data[::2])
    np.testing.assert_array_equal(halves[100 : 100 + n // 2], data[1::2])
    for given in (back, joined):
        np.testing.assert_array_equal(given[3 : 3 + n], data)
        assert (given[:3] == -1).all() and (given[3 + n :] == -1).all()
