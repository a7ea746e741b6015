"""Element by element over eight bits: sums, products, slopes and offsets by channel, what is not negative.

Each step is rounded as in the reference: next to a half, a fused multiply-add would decide otherwise.
"""

from __future__ import annotations

import numpy as np

from ..jit import EXACT, kernel
from ..typing import Array, Scalar
from ._arrays import flat, lines, writable

__all__ = ["by_channel", "products", "relu", "rounded_products", "scaled_products", "sums"]


def _ends(out: Array) -> tuple[Scalar, Scalar]:
    """The ends of a dtype, as numbers that hold them: int32's need float64."""
    real = np.float64 if out.dtype.itemsize == 4 else np.float32
    ends = np.iinfo(out.dtype)
    return real(ends.min), real(ends.max)


@kernel(fastmath=EXACT)
def _sum(
    first: int, last: int, s: Scalar, t: Scalar, low: Scalar, high: Scalar, lhs: Array, rhs: Array, out: Array
) -> None:
    a, b, y = lhs[first:last], rhs[first:last], out[first:last]
    zero = low - low
    for i in range(y.size):
        v = np.rint(zero + (np.float32(a[i]) * s + np.float32(b[i]) * t))
        v = v if v < high else high  # NaN too
        y[i] = np.int32(v if v > low else low)


def sums(lhs: Array, rhs: Array, scales: tuple[float, float], out: Array) -> None:
    """Write the whole numbers nearest to ``lhs * scales[0] + rhs * scales[1]``, within the dtype of `out`.

    Examples
    --------
    >>> out = np.empty(2, np.int8)
    >>> sums(np.array([100, 3], np.int8), np.array([100, 4], np.uint8), (1.0, 0.5), out)
    >>> out
    array([127,   5], dtype=int8)
    """
    s, t = map(np.float32, scales)
    with writable(out) as (y,):
        _sum(out.size, s, t, *_ends(out), flat(lhs), flat(rhs), y.reshape(-1))


@kernel
def _product(first: int, last: int, lhs: Array, rhs: Array, out: Array) -> None:
    a, b, y = lhs[first:last], rhs[first:last], out[first:last]
    for i in range(y.size):
        y[i] = np.int32(a[i]) * np.int32(b[i])


def products(lhs: Array, rhs: Array, out: Array) -> None:
    """Write products in int32."""
    with writable(out) as (y,):
        _product(out.size, flat(lhs), flat(rhs), y.reshape(-1))


@kernel
def _scaled_product(first: int, last: int, s: Scalar, lhs: Array, rhs: Array, out: Array) -> None:
    a, b, y = lhs[first:last], rhs[first:last], out[first:last]
    for i in range(y.size):
        y[i] = np.float32(np.int32(a[i]) * np.int32(b[i])) * s


def scaled_products(lhs: Array, rhs: Array, scale: float, out: Array) -> None:
    """Write ``lhs * rhs * scale`` in float32."""
    with writable(out) as (y,):
        _scaled_product(out.size, np.float32(scale), flat(lhs), flat(rhs), y.reshape(-1))


@kernel
def _rounded_product(
    first: int, last: int, s: Scalar, low: Scalar, high: Scalar, lhs: Array, rhs: Array, out: Array
) -> None:
    a, b, y = lhs[first:last], rhs[first:last], out[first:last]
    for i in range(y.size):
        v = np.trunc(np.float32(np.int32(a[i]) * np.int32(b[i])) * s)
        v = v if v < high else high
        y[i] = np.int32(v if v > low else low)


def rounded_products(lhs: Array, rhs: Array, scale: float, out: Array) -> None:
    """Write ``lhs * rhs * scale``, cut towards zero, within the dtype of `out`.

    Examples
    --------
    >>> out = np.empty(2, np.int8)
    >>> rounded_products(np.array([100, 3], np.int8), np.array([-100, 5], np.int8), 0.1, out)
    >>> out
    array([-128,    1], dtype=int8)
    """
    with writable(out) as (y,):
        _rounded_product(out.size, np.float32(scale), *_ends(out), flat(lhs), flat(rhs), y.reshape(-1))


@kernel(fastmath=EXACT)
def _line(
    first: int, last: int, slope: Array, offset: Array, low: Scalar, high: Scalar, data: Array, out: Array
) -> None:
    for z in range(first, last):
        s, t, x, y = slope[z % slope.size], offset[z % slope.size], data[z], out[z]
        for i in range(y.size):
            v = np.rint(np.float32(x[i]) * s + t)
            v = v if v < high else high
            y[i] = np.int32(v if v > low else low)


def by_channel(data: Array, slope: Array, offset: Array, out: Array) -> None:
    """Write the whole numbers nearest to ``data * slope + offset``, of channels on axis 1, within the dtype of `out`.

    Examples
    --------
    >>> out = np.empty((1, 2, 1), np.int8)
    >>> by_channel(np.array([[[3], [100]]], np.int8), np.ones(2, np.float32), np.array([1, 99], np.float32), out)
    >>> out.ravel()
    array([  4, 127], dtype=int8)
    """
    with writable(out) as (y,):
        x, z = (lines(v).reshape(data.shape[0] * data.shape[1], -1) for v in (np.ascontiguousarray(data), y))
        _line.run(_line.workers(out.size), len(z), flat(slope), flat(offset), *_ends(out), flat(x).reshape(z.shape), z)


@kernel
def _relu(first: int, last: int, x: Array, y: Array) -> None:
    a, b = x[first:last], y[first:last]
    for i in range(b.size):
        b[i] = a[i] if a[i] > 0 else 0


def relu(data: Array, out: Array) -> None:
    """Write what is not negative, else zero."""
    with writable(out) as (y,):
        _relu(out.size, flat(data), y.reshape(-1))
