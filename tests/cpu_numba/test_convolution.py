"""Convolutions against a sum over windows; gradients against the transposed map."""

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from mxcore_cpu.kernels import convolution as conv
from mxcore_cpu.kernels import grouped

rng = np.random.default_rng(0)

# n, c, filters, groups, size, kernel, stride, pad, dilate
CASES = {
    "1d": (2, 3, 4, 1, (7,), (3,), (2,), (1,), (1,)),
    "2d groups dilate": (3, 4, 6, 2, (9, 8), (3, 2), (1, 2), (1, 0), (2, 1)),
    "3d": (2, 2, 3, 1, (5, 6, 7), (2, 3, 2), (1, 2, 1), (0, 1, 1), (1, 1, 2)),
    "3d padded": (2, 2, 3, 1, (5, 4, 6), (3, 2, 3), (2, 1, 1), (2, 1, 1), (2, 1, 1)),
    "1x1": (5, 8, 8, 1, (6, 6), (1, 1), (1, 1), (0, 0), (1, 1)),
    "1x1 groups, tiles": (2, 8, 8, 4, (16, 16), (1, 1), (1, 1), (0, 0), (1, 1)),
    "1x1 stride": (1, 16, 8, 1, (5, 5), (1, 1), (2, 2), (0, 0), (1, 1)),
    "1x1 pad": (1, 1, 4, 1, (12, 12), (1, 1), (1, 1), (1, 1), (1, 1)),
    "depthwise": (4, 6, 6, 6, (9, 9), (3, 3), (1, 1), (1, 1), (1, 1)),
    "depthwise stride, two filters": (3, 6, 12, 6, (9, 9), (3, 3), (2, 2), (1, 1), (1, 1)),
    "small images together": (70, 3, 5, 1, (4, 4), (3, 3), (1, 1), (1, 1), (1, 1)),
    "one output position": (9, 2, 4, 1, (3, 3), (3, 3), (1, 1), (0, 0), (1, 1)),
    "one image in tiles": (1, 300, 4, 1, (40, 9), (3, 3), (1, 1), (1, 1), (1, 1)),
    "padding beyond the kernel": (2, 3, 4, 1, (5, 5), (3, 3), (1, 1), (4, 4), (1, 1)),
}


def reference(x, w, b, stride, pad, dilate, groups):
    axes = len(stride)
    x = np.pad(x, ((0, 0), (0, 0), *((p, p) for p in pad)))
    span = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilate)]
    v = sliding_window_view(x, span, tuple(range(2, 2 + axes)))
    v = v[(slice(None), slice(None), *(slice(None, None, step) for step in (*stride, *dilate)))]
    n, c, f = x.shape[0], x.shape[1], w.shape[0]
    v = v.reshape(n, groups, c // groups, *v.shape[2:])
    place, tap = "xyz"[:axes], "abd"[:axes]
    y = np.einsum(f"ngc{place}{tap},gfc{tap}->ngf{place}", v, w.reshape(groups, f // groups, *w.shape[1:]))
    y = y.reshape(n, f, *y.shape[3:])
    return y if b is None else y + b.reshape(-1, *(1,) * axes)


@pytest.fixture(params=[1, 3])
def workers(request, monkeypatch):
    """Run every kernel here with this many threads."""
    for module in (conv, grouped):
        for name in ("_forward", "_weight_gradient", "_data_gradient"):
            monkeypatch.setattr(getattr(module, name), "workers", lambda work: request.param)
    return request.param


@pytest.mark.parametrize("case", CASES)
def test_every_map_and_its_transposes(case, workers):
    n, c, f, groups, size, kernel, stride, pad, dilate = CASES[case]
    x, w, b = (rng.standard_normal(s) for s in ((n, c, *size), (f, c // groups, *kernel), (f,)))
    how = {"stride": stride, "pad": pad, "dilate": dilate, "groups": groups}
    expected = reference(x, w, b, stride, pad, dilate, groups)
    for bias in (b, None):
        y = np.full(expected.shape, np.nan)
        conv.convolution(x, w, bias, y, **how)
        np.testing.assert_allclose(y, reference(x, w, bias, stride, pad, dilate, groups), atol=1e-10)

    dy = rng.standard_normal(expected.shape)
    dx, dw, db = np.full_like(x, np.nan), np.full_like(w, np.nan), np.full_like(b, np.nan)
    conv.convolution_backward(dy, x, w, dx, dw, db, **how)
    vx, vw, vb = (rng.standard_normal(a.shape) for a in (x, w, b))
    for direction, got, v in (
        (reference(vx, w, None, stride, pad, dilate, groups), dx, vx),
        (reference(x, vw, None, stride, pad, dilate, groups), dw, vw),
        (np.broadcast_to(vb.reshape(-1, *(1,) * len(size)), dy.shape), db, vb),
    ):
        np.testing.assert_allclose((got * v).sum(), (dy * direction).sum(), rtol=1e-9, atol=1e-9)

    back = np.full_like(x, np.nan)
    conv.deconvolution(dy, w, None, back, **how)
    np.testing.assert_allclose(back, dx, atol=1e-10)
    bias = rng.standard_normal(c)
    conv.deconvolution(dy, w, bias, back, **how)
    np.testing.assert_allclose(back, dx + bias.reshape(-1, *(1,) * len(size)), atol=1e-10)
    d_data, d_weight, d_bias = np.empty_like(dy), np.empty_like(w), np.empty(c)
    conv.deconvolution_backward(vx, dy, w, d_data, d_weight, d_bias, **how)
    np.testing.assert_allclose(d_data, reference(vx, w, None, stride, pad, dilate, groups), atol=1e-10)
    conv.convolution_backward(dy, vx, w, None, dw, None, **how)
    np.testing.assert_allclose(d_weight, dw, atol=1e-10)
    np.testing.assert_allclose(d_bias, vx.sum((0, *range(2, vx.ndim))))


def test_float32_and_any_layout():
    x = rng.standard_normal((6, 10, 4, 12)).astype("f4").transpose(0, 2, 1, 3)
    w = rng.standard_normal((3, 3, 4, 5)).astype("f4").transpose(3, 2, 0, 1)
    w.flags.writeable = False
    expected = reference(x.astype("f8"), w.astype("f8"), None, (1, 1), (1, 1), (1, 1), 1)
    out = np.empty(expected.shape[::-1], "f4").T
    conv.convolution(x, w, None, out, stride=(1, 1), pad=(1, 1), dilate=(1, 1))
    np.testing.assert_allclose(out, expected, atol=1e-5)


@pytest.mark.parametrize("n, c, f", [(0, 3, 4), (2, 0, 4), (2, 3, 0)])
def test_nothing_to_sum(n, c, f):
    x, w, b = np.ones((n, c, 5, 5)), np.ones((f, c, 3, 3)), np.ones(f)
    y = np.full((n, f, 3, 3), np.nan)
    how = {"stride": (1, 1), "pad": (0, 0), "dilate": (1, 1)}
    conv.convolution(x, w, b, y, **how)
    assert (y == 1).all()
    dx, dw, db = x * np.nan, w * np.nan, b * np.nan
    conv.convolution_backward(np.ones_like(y), x, w, dx, dw, db, **how)
    assert (dx == 0).all() and (dw == 0).all() and (db == 9 * n).all()


def test_large_sums_of_the_weight_gradient_are_shared_by_rows(monkeypatch):
    monkeypatch.setattr(conv, "_SUM_BYTES", 0)
    monkeypatch.setattr(conv._weight_gradient, "workers", lambda work: 4)
    x, dy = rng.standard_normal((5, 3, 8, 8)), rng.standard_normal((5, 4, 8, 8))
    how = {"stride": (1, 1), "pad": (1, 1), "dilate": (1, 1)}
    shared, summed = np.empty((4, 3, 3, 3)), np.empty((4, 3, 3, 3))
    conv.convolution_backward(dy, x, summed, None, shared, None, **how)
    monkeypatch.undo()
    conv.convolution_backward(dy, x, summed, None, summed, None, **how)
    np.testing.assert_allclose(shared, summed, atol=1e-12)
