"""Convolutions by transformed tiles, and their gradients, against sums over windows in float64."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mxcore as mx
from mxcore import autograd
from mxcore_cpu import threads
from mxcore_cpu.bindings import neural
from mxcore_cpu.kernels import gemm, packed, winograd
from mxcore_cpu.native import products

pytestmark = pytest.mark.skipif(not packed.address(np.dtype("f4")), reason="no AVX2 and FMA, or no GNU OpenMP")


@pytest.fixture(params=[512, 256])
def bits(request, monkeypatch):
    """Vectors of so many bits; where the processor has shorter ones LLVM makes two of each."""
    monkeypatch.setattr(products, "bits", lambda: request.param)
    monkeypatch.setattr(winograd, "address", lambda dtype: products.times(dtype.itemsize))


def numbers(seed, *shapes):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(s).astype("f4") for s in shapes]


def reference(x, w, pad):
    """The results and the padded data, in float64."""
    x = np.pad(x.astype("f8"), ((0, 0), (pad[0],) * 2, (pad[1],) * 2, (0, 0)))
    height, width = x.shape[1] - 2, x.shape[2] - 2
    y = sum(x[:, i : i + height, j : j + width] @ w[:, :, i, j].T.astype("f8") for i in range(3) for j in range(3))
    return y, x


def reference_back(dy, x, w, pad):
    """The gradients of data and filters, of data as :func:`reference` has padded them."""
    height, width = dy.shape[1:3]
    dx, dw = np.zeros(x.shape), np.zeros(w.shape)
    for i in range(3):
        for j in range(3):
            part = slice(None), slice(i, i + height), slice(j, j + width)
            dx[part] += dy @ w[:, :, i, j].astype("f8")
            dw[:, :, i, j] = np.einsum("nhwk,nhwc->kc", dy.astype("f8"), x[part])
    inside = (slice(p, size - p) for p, size in zip(pad, x.shape[1:3]))
    return dx[(slice(None), *inside)], dw


def close(found, expected):
    """Sums of some hundred products and transforms of them: a few last places of the largest."""
    return np.abs(found - expected).max() <= 3e-6 * np.abs(expected).max()


def check(x, w, pad, bias=None, seed=0):
    t = winograd.Tiling.of(x.shape, len(w), pad)
    expected, padded = reference(x, w, pad)
    y = np.full(expected.shape, np.nan, "f4")
    winograd.convolution(t, x, winograd.filters(w), bias, y)
    assert close(y, expected if bias is None else expected + bias)
    [dy] = numbers(seed + 1, y.shape)
    dx, dw = np.full(x.shape, np.nan, "f4"), np.full(w.shape, np.nan, "f4")
    winograd.convolution(t.back, dy, winograd.filters(w, back=True), None, dx)
    winograd.weight_gradient(t, x, dy, dw)
    for found, wanted in zip((dx, dw), reference_back(dy, padded, w, pad)):
        assert close(found, wanted)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    n=st.integers(1, 3),
    size=st.tuples(st.integers(1, 13), st.integers(1, 13)),
    channels=st.sampled_from([16, 32, 48, 64, 80]),
    filters=st.sampled_from([16, 32, 48, 112]),
    pad=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    parts=st.integers(1, 5),
    shared=st.booleans(),
    some=st.sampled_from([1, 3, 64]),
    biased=st.booleans(),
)
def test_every_shape(bits, monkeypatch, n, size, channels, filters, pad, parts, shared, some, biased):
    size = tuple(max(s, 3 - 2 * p) for s, p in zip(size, pad))
    monkeypatch.setattr(threads, "count", lambda: parts)
    monkeypatch.setattr(winograd, "_SHARED", 1 << 30 if shared else 0)
    monkeypatch.setattr(winograd, "_SUMMED", 0)
    monkeypatch.setattr(winograd, "_LEAST", some)
    x, w, b = numbers(n, (n, *size, channels), (filters, channels, 3, 3), (filters,))
    check(x, w, pad, b if biased else None)


def test_many_channels(bits):
    """So many that their filters exceed a cache, and sums are large."""
    x, w = numbers(0, (1, 5, 6, 304), (288, 304, 3, 3))
    check(x, w, (1, 1))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    biased=st.booleans(),
    add=st.booleans(),
    low=st.sampled_from([-np.inf, -2.0, 0.0, 1.5]),
    sloped=st.booleans(),
    size=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    shared=st.booleans(),
)
def test_what_is_done_with_results(bits, monkeypatch, biased, add, low, sloped, size, shared):
    monkeypatch.setattr(winograd, "_SHARED", 1 << 30 if shared else 0)
    x, w, b, s, there = numbers(5, (2, *size, 16), (48, 16, 3, 3), (48,), (48,), (2, *size, 48))
    plain, y = np.empty_like(there), (10 * there if add else np.full_like(there, np.nan))
    t, u = winograd.Tiling.of(x.shape, 48, (1, 1)), winograd.filters(w)
    winograd.convolution(t, x, u, None, plain)
    winograd.convolution(t, x, u, b if biased else None, y, add, low, s if sloped else None)
    expected = np.maximum(plain + b * biased + 10 * there * add, low)
    if sloped:
        expected = np.where(expected > 0, expected, expected * s)
    assert close(y, expected)


def test_activations_of_what_is_not_finite():
    """NaN stays, minus infinity becomes the least number before a slope multiplies it."""
    x, w = np.zeros((1, 2, 2, 16), "f4"), np.zeros((16, 16, 3, 3), "f4")
    t, u = winograd.Tiling.of(x.shape, 16, (1, 1)), winograd.filters(w)
    given = np.resize(np.float32([np.nan, -np.inf, np.inf, -2]), (1, 2, 2, 16))
    for low, slope, expected in (
        (-np.inf, 1, [np.nan, -np.inf, np.inf, -2]),
        (0.0, 1, [np.nan, 0, np.inf, 0]),
        (-1.0, 1, [np.nan, -1, np.inf, -1]),
        (-np.inf, 0.25, [np.nan, -np.inf, np.inf, -0.5]),
    ):
        y = given.copy()
        winograd.convolution(t, x, u, None, y, True, low, np.full(16, slope, "f4"))
        assert np.array_equal(y, np.resize(np.float32(expected), y.shape), equal_nan=True)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("rows", [0, 1, 256, 257, 4095, 4096, 4097, 100_000])
def test_sums_of_many_rows_are_as_exact_as_of_few(rows, dtype):
    a = np.random.default_rng(0).random((rows, 3)).astype(dtype)
    out = np.full(3, np.nan, dtype)
    gemm.sum_rows(a, out)
    expected = a.sum(0, dtype=np.longdouble)
    assert (np.abs(out - expected) <= 30 * np.finfo(dtype).eps * expected).all()


def test_it_is_the_same_with_any_number_of_threads(monkeypatch):
    """Also where one thread works on blocks, and several on all tiles."""
    x, w = numbers(0, (9, 21, 23, 32), (32, 32, 3, 3))
    t, found = winograd.Tiling.of(x.shape, 32, (1, 1)), []
    [dy] = numbers(1, (9, *t.out, 32))
    for parts in (1, 2, 5):
        monkeypatch.setattr(threads, "count", lambda parts=parts: parts)
        y, dw = np.empty(dy.shape, "f4"), np.empty(w.shape, "f4")
        winograd.convolution(t, x, winograd.filters(w), None, y)
        winograd.weight_gradient(t, x, dy, dw)
        found.append((y, dw))
    assert all(np.array_equal(a, b) for other in found[1:] for a, b in zip(found[0], other))


def test_what_is_not_finite_reaches_its_tile_and_no_further():
    x, w = numbers(0, (1, 12, 12, 16), (16, 16, 3, 3))
    t, y = winograd.Tiling.of(x.shape, 16, (1, 1)), np.empty((1, 12, 12, 16), "f4")
    winograd.convolution(t, x, winograd.filters(w), None, y)
    x[0, 5, 6, 3] = np.nan
    z = np.empty_like(y)
    winograd.convolution(t, x, winograd.filters(w), None, z)
    touched = np.isnan(z[0]).any(-1)
    assert touched[4:7, 5:8].all() and not touched[:4].any() and not touched[8:].any()
    assert not touched[:, :4].any() and not touched[:, 8:].any()
    assert np.array_equal(y[0][~touched], z[0][~touched])


def test_arrays_of_any_strides():
    x, w, dy = numbers(0, (2, 6, 7, 32), (16, 32, 3, 3), (2, 6, 7, 16))
    t, plain = winograd.Tiling.of(x.shape, 16, (1, 1)), np.empty((2, 6, 7, 16), "f4")
    winograd.convolution(t, x, winograd.filters(w), None, plain)
    wide = np.full((2, 6, 7, 32), 7, "f4")
    winograd.convolution(t, np.asfortranarray(x), winograd.filters(np.asfortranarray(w)), None, wide[..., ::2])
    assert np.array_equal(wide[..., ::2], plain) and (wide[..., 1::2] == 7).all()
    dw, turned = np.empty(w.shape, "f4"), np.empty((16, 3, 3, 32), "f4")
    winograd.weight_gradient(t, x, dy, dw)
    winograd.weight_gradient(t, x, dy, turned.transpose(0, 3, 1, 2))
    assert np.array_equal(turned, dw.transpose(0, 2, 3, 1))


CASES = {
    "tiles": ((3, 3), (1, 1), 32, 16, False),
    "tiles, bias, no pad": ((3, 3), (0, 0), 16, 48, True),
    "products": ((1, 1), (0, 0), 5, 7, False),
    "products, bias": ((1, 1), (0, 0), 64, 48, True),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("hybrid", [False, True])
def test_layers_with_channels_last(case, hybrid):
    """They have kernels, and give what the same layers give with channels first."""
    kernel, pad, channels, filters, biased = CASES[case]
    x, w, b = numbers(3, (2, 9, 8, channels), (filters, channels, *kernel), (filters,))
    found = []
    for layout in ("NCHW", "NHWC"):
        turn = (lambda a: a) if layout == "NCHW" else (lambda a: np.moveaxis(a, -1, 1))
        layer = mx.gluon.nn.Conv2D(filters, kernel, padding=pad, in_channels=channels, use_bias=biased, layout=layout)
        layer.initialize()
        layer.weight.set_data(mx.nd.array(w if layout == "NCHW" else np.moveaxis(w, 1, -1)))
        if biased:
            layer.bias.set_data(mx.nd.array(b))
        if hybrid:
            layer.hybridize(static_alloc=True, static_shape=True)
        data = mx.nd.array(np.moveaxis(x, -1, 1) if layout == "NCHW" else x)
        data.attach_grad()
        with autograd.record():
            y = layer(data)
            loss = (y * y).sum()
        loss.backward()
        grads = [turn(a.grad.asnumpy()) for a in (data,)] + [turn(layer.weight.grad().asnumpy())]
        found.append([turn(y.asnumpy()), *grads, *([layer.bias.grad().asnumpy()] if biased else [])])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=2e-5 * np.abs(a).max())


@pytest.mark.parametrize(
    "changed, fits",
    [
        ({}, True),
        ({"layout": "NCHW"}, False),
        ({"stride": (2, 1)}, False),
        ({"dilate": (1, 2)}, False),
        ({"num_group": 2}, False),
        ({"kernel": (3, 1)}, False),
        ({"pad": (0, 0)}, False),
        ({"channels": 24}, False),
        ({"filters": 40}, False),
        ({"n": 0}, False),
    ],
)
def test_which_convolutions_are_cut_into_tiles(changed, fits):
    given = {"layout": "NHWC", "kernel": (3, 3), "pad": (1, 1), "channels": 16, "filters": 32, "n": 1, **changed}
    n, c, k = (given.pop(name) for name in ("n", "channels", "filters"))
    p = mx.plugin.find_op("Convolution").parse({**given, "num_filter": k})
    specs = [mx.plugin.Spec(s, np.dtype("f4")) for s in ((n, 2, 2, c), (k, *given["kernel"], c))]
    assert neural._tiled(p, *specs) is fits
