"""Sorting: the first few of each row in order by a heap of those found so far, the worst on top; whole rows by keys.

The key of a value is its bits, so turned that whole numbers order them, above its place, so that equal values keep
their order: NumPy sorts such keys several times as fast as it finds the order of values.
"""

from __future__ import annotations

import numpy as np

from ..jit import helper, kernel
from ..typing import Array, Scalar
from ._arrays import dense, normal_axis

__all__ = ["few", "first_in_order", "order"]


def few(k: int, n: int) -> bool:
    """Tell whether a heap of k of n elements is faster than sorting them all."""
    return k > 0 and 4 * k < n


@helper
def _before(a: Scalar, b: Scalar, ascend: bool) -> Scalar:
    """Tell whether a comes before b; NaN is greater than every number."""
    return a < b or (b != b and a == a) if ascend else a > b or (a != a and b == b)


@helper
def _after(a: Scalar, i: int, b: Scalar, j: int, ascend: bool) -> Scalar:
    """Tell whether value a at place i comes after b at j: of equal values the earlier comes first."""
    return _before(b, a, ascend) or (not _before(a, b, ascend) and i > j)


@helper(inline=False)
def _sink(values: Array, places: Array, at: int, size: int, ascend: bool) -> None:
    """Restore the heap below a place."""
    value, place = values[at], places[at]
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _after(values[child + 1], places[child + 1], values[child], places[child], ascend):
            child += 1
        if not _after(values[child], places[child], value, place, ascend):
            break
        values[at], places[at] = values[child], places[child]
        at = child
    values[at], places[at] = value, place


@kernel(threshold=1 << 14)
def _select(first: int, last: int, n: int, k: int, ascend: bool, x: Array, values: Array, places: Array) -> None:
    for row in range(first, last):
        a, v, p = x[row * n : (row + 1) * n], values[row * k : (row + 1) * k], places[row * k : (row + 1) * k]
        for i in range(k):
            v[i], p[i] = a[i], i
        for i in range(k // 2 - 1, -1, -1):
            _sink(v, p, i, k, ascend)
        worst = v[0]
        for i in range(k, n):
            # The first test is false for almost all; NaN passes it and meets the second.
            if not (a[i] >= worst if ascend else a[i] <= worst) and _before(a[i], worst, ascend):
                v[0], p[0] = a[i], i
                _sink(v, p, 0, k, ascend)
                worst = v[0]
        for i in range(k - 1, 0, -1):
            v[0], v[i] = v[i], v[0]
            p[0], p[i] = p[i], p[0]
            _sink(v, p, 0, i, ascend)


def _rows(data: Array, axis: int | None) -> tuple[Array, tuple[int, ...]]:
    """Return the data with the axis last and the others in one, dense, and what these others are."""
    moved = data.reshape(1, -1) if axis is None else np.moveaxis(data, normal_axis(axis, data.ndim), -1)
    return dense(moved).reshape(-1, moved.shape[-1]), moved.shape[:-1]


def first_in_order(data: Array, k: int, axis: int | None, ascend: bool) -> tuple[Array, Array, tuple[int, ...]]:
    """Find the k largest (or smallest) elements along an axis.

    Parameters
    ----------
    data : ndarray of float32 or float64, not empty
    k : int
        From 1 to the length of the axis.
    axis : int or None
        None: of the flattened array.
    ascend : bool
        The smallest first. NaN counts as the greatest.

    Returns
    -------
    values : ndarray (rows, k)
    places : ndarray of int64 (rows, k)
        Equal values are in the order of their places.
    lead : tuple of int
        What the rows are: the shape without the axis.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 topk, and NumPy's stable sort where values are equal or NaN.

    Examples
    --------
    >>> first_in_order(np.array([[3.0, 1, 2]]), 2, -1, False)[:2]
    (array([[3., 2.]]), array([[0, 2]]))
    """
    rows, lead = _rows(data, axis)
    m, n = rows.shape
    values, places = np.empty((m, k), data.dtype), np.empty((m, k), np.int64)
    _select.run(_select.workers(data.size), m, n, k, ascend, rows.reshape(-1), values.reshape(-1), places.reshape(-1))
    return values, places, lead


U = np.uint64


@kernel(threshold=1 << 15)
def _keys(first: int, last: int, n: int, ascend: bool, bits: Array, keys: Array) -> None:
    for row in range(first, last):
        a, b = bits[row * n : (row + 1) * n], keys[row * n : (row + 1) * n]
        for i in range(n):
            v = U(a[i])
            size = v & U(0x7FFFFFFF)
            v = U(0xFFFFFFFF) - v if v != size else v + U(0x80000000)  # negative numbers: the larger, the earlier
            # Zeros are equal, and NaN.
            v = U(0x80000000) if size == U(0) else (U(0xFFFFFFFF) if size > U(0x7F800000) else v)
            b[i] = (v if ascend else U(0xFFFFFFFF) - v) << U(32) | U(i)


@kernel(threshold=1 << 15)
def _unpack(first: int, last: int, n: int, keys: Array, x: Array, values: Array, places: Array) -> None:
    for row in range(first, last):
        a, b = keys[row * n : (row + 1) * n], x[row * n : (row + 1) * n]
        c, d = values[row * n : (row + 1) * n], places[row * n : (row + 1) * n]
        for i in range(d.size):
            d[i] = a[i] & U(0xFFFFFFFF)
        for i in range(c.size):
            c[i] = b[a[i] & U(0xFFFFFFFF)]


def order(data: Array, axis: int | None, ascend: bool, wanted: bool = True) -> tuple[Array, Array, tuple[int, ...]]:
    """Sort along an axis.

    Parameters
    ----------
    data : ndarray of float32, not empty
        Fewer than 2 ** 32 elements.
    axis : int or None
        None: of the flattened array.
    ascend : bool
        The smallest first. NaN counts as the greatest.
    wanted : bool
        The values are.

    Returns
    -------
    values, places, lead
        As from :func:`first_in_order`, all of each row; without `wanted` no values.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 sort and argsort, and NumPy's stable sort where values are equal or NaN.

    Examples
    --------
    >>> order(np.array([3, 1, 2], np.float32), 0, True)[:2]
    (array([[1., 2., 3.]], dtype=float32), array([[1, 2, 0]]))
    """
    rows, lead = _rows(data, axis)
    keys = np.empty(rows.shape, U)
    values, places = np.empty(rows.shape if wanted else (0, 0), rows.dtype), np.empty(rows.shape, np.int64)
    workers, (m, n) = _keys.workers(data.size), rows.shape
    x = rows.reshape(-1)
    _keys.run(workers, m, n, ascend, x.view(np.uint32), keys.reshape(-1))
    keys.sort(axis=1)
    _unpack.run(workers, m, n, keys.reshape(-1), x, values.reshape(-1), places.reshape(-1))
    return values, places, lead
