"""Kernels over eight bits against plain NumPy, in parts of their range."""

import numpy as np
import pytest

from mxcore_cpu.kernels import quantization as q

rng = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("source", ["float32", "int32"])
def test_rounding(dtype, source):
    x = (rng.standard_normal((5, 70001)) * 200).astype(source)
    out = np.empty(x.shape, dtype)
    q.scaled(x, 0.75, out)
    ends = np.iinfo(dtype)
    want = np.clip(np.rint(x.astype("float32") * np.float32(0.75)), ends.min, ends.max)
    np.testing.assert_array_equal(out, want.astype(dtype))
    turned = np.empty(x.shape[::-1], dtype).T  # not contiguous
    q.scaled(x, 0.75, turned)
    np.testing.assert_array_equal(turned, out)
    back = np.empty(x.shape, np.float32)
    q.scaled_back(out, 0.3, back)
    np.testing.assert_array_equal(back, out.astype("float32") * np.float32(0.3))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("channels", [1, 57, 58, 200])  # up to 57 of nine taps each fit one sum of uint8
def test_long_sums(dtype, channels):
    top = np.iinfo(dtype).max
    x, w = np.full((2, channels, 4, 4), top, dtype), np.full((3, channels, 3, 3), -128, np.int8)
    bias, out = np.array([1, -2, 3], np.int32), np.empty((2, 3, 2, 2), np.int32)
    q.convolution(x, w, bias, out, stride=(1, 1), pad=(0, 0), dilate=(1, 1))
    want = -128 * int(top) * 9 * channels + bias
    np.testing.assert_array_equal(out, np.broadcast_to(want[:, None, None], out.shape))
    rows = np.empty((2, 3), np.int32)
    q.fully_connected(x.reshape(2, -1), w[:, :, :1, :1].repeat(4, 2).repeat(4, 3).reshape(3, -1), bias, rows)
    np.testing.assert_array_equal(rows, [-128 * int(top) * 16 * channels + bias] * 2)


@pytest.mark.parametrize("workers", [1, 3])
def test_divergences_in_parts(workers, monkeypatch):
    hist = np.histogram(rng.standard_normal(20000) ** 3, 401, (-20, 20))[0].astype(np.float32)
    whole = q.divergences(hist, 31, 1e-4)
    monkeypatch.setattr(q._divergences, "workers", lambda work: workers)
    np.testing.assert_array_equal(q.divergences(hist, 31, 1e-4), whole)
    assert whole.shape == (201 - 15,) and np.isfinite(whole).all() and (whole > 0).all()
