"""Eight bits: rounding to them and back, exact sums of products of them, and the search for a threshold.

Sums of products go through the products of float32: as long as no sum can be beyond 2**24 every number on the way is
whole and exact, in whatever order it was added. Longer sums are cut into parts that are added in int32.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..jit import kernel
from ..typing import Array, Scalar
from . import convolution as conv
from . import gemm, pooling
from ._arrays import flat, lines, writable

__all__ = ["average_pool", "convolution", "divergences", "fits", "fully_connected", "scaled", "scaled_back"]

#: Up to here every whole number is one of float32.
_EXACT = 1 << 24


@kernel
def _round(first: int, last: int, scale: Scalar, low: Scalar, high: Scalar, x: Array, y: Array) -> None:
    a, b = x[first:last], y[first:last]
    s, bottom, top = np.float32(scale), np.float32(low), np.float32(high)
    for i in range(b.size):
        v = np.rint(np.float32(a[i]) * s)
        v = v if v < top else top  # NaN too
        v = v if v > bottom else bottom
        b[i] = np.int32(v)


def scaled(x: Array, scale: float, out: Array) -> None:
    """Write the whole numbers nearest to ``x * scale``, halves to even, within the dtype of `out`; NaN is its end.

    Examples
    --------
    >>> out = np.empty(4, np.int8)
    >>> scaled(np.array([0.5, 1.5, -300, np.nan], np.float32), 1, out)
    >>> out
    array([   0,    2, -128,  127], dtype=int8)
    """
    ends = np.iinfo(out.dtype)
    with writable(out) as (y,):
        _round(x.size, float(scale), float(ends.min), float(ends.max), flat(x), y.reshape(-1))


@kernel
def _back(first: int, last: int, step: Scalar, x: Array, y: Array) -> None:
    a, b = x[first:last], y[first:last]
    s = np.float32(step)
    for i in range(b.size):
        b[i] = np.float32(a[i]) * s


def scaled_back(x: Array, step: float, out: Array) -> None:
    """Write ``x * step`` in float32.

    Examples
    --------
    >>> out = np.empty(2, np.float32)
    >>> scaled_back(np.array([-2, 4], np.int8), 0.5, out)
    >>> out
    array([-1.,  2.], dtype=float32)
    """
    with writable(out) as (y,):
        _back(x.size, float(step), flat(x), y.reshape(-1))


# ------------------------------------------------------------------------------------------------------- products


def _most(dtype: np.dtype) -> int:
    """How many products of a dtype and int8 no sum is too large of."""
    return _EXACT // ((128 if dtype == np.int8 else 255) * 128)


def fits(dtype: np.dtype, taps: int) -> bool:
    """Whether the products of one channel can be summed at once."""
    return taps <= _most(dtype)


@kernel
def _first(first: int, last: int, n: int, filters: int, bias: Array, sums: Array, out: Array) -> None:
    for line in range(first, last):
        b = bias[line % filters]
        x, y = sums[line * n : (line + 1) * n], out[line * n : (line + 1) * n]
        for i in range(n):
            y[i] = np.int32(x[i]) + b


@kernel
def _more(first: int, last: int, sums: Array, out: Array) -> None:
    x, y = sums[first:last], out[first:last]
    for i in range(y.size):
        y[i] += np.int32(x[i])


@kernel
def _first_rows(first: int, last: int, n: int, bias: Array, sums: Array, out: Array) -> None:
    for line in range(first, last):
        x, y = sums[line * n : (line + 1) * n], out[line * n : (line + 1) * n]
        for i in range(n):
            y[i] = np.int32(x[i]) + bias[i]


def convolution(
    data: Array,
    weight: Array,
    bias: Array | None,
    out: Array,
    *,
    stride: Sequence[int],
    pad: Sequence[int],
    dilate: Sequence[int],
) -> None:
    """Write a convolution of int8 or uint8 with int8, in int32; `bias` is int32.

    Examples
    --------
    >>> out = np.empty((1, 1, 1, 2), np.int32)
    >>> data, weight = np.array([[[[100, 100, 4]]]], np.uint8), np.array([[[[100, -1]]]], np.int8)
    >>> convolution(data, weight, np.array([7], np.int32), out, stride=(1, 1), pad=(0, 0), dilate=(1, 1))
    >>> out
    array([[[[ 9907, 10003]]]], dtype=int32)
    """
    filters, channels = weight.shape[:2]
    taps = weight[0, 0].size
    each = max(1, _most(data.dtype) // taps)
    if bias is None:
        bias = np.zeros(filters, np.int32)
    sums = np.empty(out.shape, np.float32)
    with writable(out) as (y,):
        for at in range(0, channels, each):
            part = slice(at, at + each)
            x, w = (np.ascontiguousarray(a[:, part], np.float32) for a in (data, weight))
            conv.convolution(x, w, None, sums, stride=stride, pad=pad, dilate=dilate)
            if at:
                _more(y.size, sums.reshape(-1), y.reshape(-1))
            else:
                planes = y.shape[0] * filters
                n = lines(y).shape[2]
                _first.run(_first.workers(y.size), planes, n, filters, bias, sums.reshape(-1), y.reshape(-1))


def fully_connected(data: Array, weight: Array, bias: Array | None, out: Array) -> None:
    """Write ``data @ weight.T + bias`` of int8 or uint8 with int8, in int32; `bias` is int32.

    Examples
    --------
    >>> out = np.empty((1, 2), np.int32)
    >>> weight = np.array([[100, 1], [0, -1]], np.int8)
    >>> fully_connected(np.array([[200, 3]], np.uint8), weight, None, out)
    >>> out
    array([[20003,    -3]], dtype=int32)
    """
    width, each = data.shape[1], _most(data.dtype)
    if bias is None:
        bias = np.zeros(weight.shape[0], np.int32)
    sums = np.empty(out.shape, np.float32)
    with writable(out) as (y,):
        for at in range(0, width, each):
            part = slice(at, at + each)
            x, w = (np.ascontiguousarray(a[:, part], np.float32) for a in (data, weight))
            gemm.fully_connected(x, w, None, sums)
            if at:
                _more(y.size, sums.reshape(-1), y.reshape(-1))
            else:
                workers = _first_rows.workers(y.size)
                _first_rows.run(workers, y.shape[0], y.shape[1], bias, sums.reshape(-1), y.reshape(-1))


def average_pool(
    data: Array,
    out: Array,
    *,
    window: Sequence[int],
    stride: Sequence[int],
    pad: Sequence[int],
    average: bool,
    include_pad: bool,
) -> None:
    """Write the average of each window of eight bits, to the nearest whole number."""
    means = np.empty(out.shape, np.float32)
    pooling.average_pool(
        data.astype(np.float32), means, window=window, stride=stride, pad=pad, average=average, include_pad=include_pad
    )
    scaled(means, 1, out)


# ------------------------------------------------------------------------------------------------------- thresholds


@kernel(threshold=64)
def _divergences(first: int, last: int, half: int, levels: int, epsilon: Scalar, hist: Array, found: Array) -> None:
    """For each half width from `half` on, the divergence of what lies within it from what became of it."""
    bins = hist.size
    middle = bins // 2
    p, q = np.empty(bins, np.float32), np.empty(bins, np.float32)
    small = np.float32(epsilon)
    for task in range(first, last):
        i = half + task
        start, stop = middle - i, middle + i + 1
        n = stop - start
        below, above = np.float32(0), np.float32(0)
        for j in range(start + 1):
            below += hist[j]
        for j in range(stop, bins):
            above += hist[j]
        p[0] = below
        for j in range(1, n):
            p[j] = hist[start + j]
        p[n - 1] += above
        merged = n // levels
        full_p, full_q = 0, 0
        for level in range(levels):
            a = level * merged
            b = n if level == levels - 1 else a + merged
            total, used = 0, 0
            for j in range(a, b):
                count = np.int64(hist[start + j]) if j > 0 else 0
                total += count
                used += 1 if count != 0 else 0
            share = np.float32(total) / np.float32(used) if used > 0 else np.float32(0)
            for j in range(a, b):
                q[j] = share if p[j] != 0 else np.float32(0)
                full_p += 1 if p[j] != 0 else 0
                full_q += 1 if q[j] != 0 else 0
        part_p = epsilon * (n - full_p) / full_p if full_p > 0 else 1.0
        part_q = epsilon * (n - full_q) / full_q if full_q > 0 else 1.0
        if part_p >= 1 or part_q >= 1:
            found[task] = np.float32(np.inf)
            continue
        less_p, less_q = np.float32(part_p), np.float32(part_q)
        sum_p, sum_q = np.float32(0), np.float32(0)
        for j in range(n):
            p[j] = p[j] - less_p if p[j] != 0 else small
            q[j] = q[j] - less_q if q[j] != 0 else small
            sum_p += p[j]
            sum_q += q[j]
        result = np.float32(0)
        for j in range(n):
            a_p, a_q = p[j] / sum_p, q[j] / sum_q
            result += a_p * np.log(a_p / a_q)
        found[task] = result


def divergences(hist: Array, levels: int, epsilon: float) -> Array:
    """Return the divergences of a histogram, for each half width from half the levels on, from its quantised form."""
    half = levels // 2
    found = np.empty(hist.size // 2 + 1 - half, np.float32)
    _divergences(found.size, half, levels, epsilon, flat(hist), found)
    return found
