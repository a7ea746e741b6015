"""Rows of a table: taking them, and adding gradients into them in a fixed order."""

from __future__ import annotations

import numpy as np

from .. import memory
from ..jit import helper, kernel
from ..math import bits_set, zeros_below
from ..typing import Array, Scalar
from ._arrays import flat, writable
from .columns import copy

__all__ = ["add_rows", "merged_rows", "nearest_row", "take_rows"]


@helper
def nearest_row(index: Scalar, n: int) -> Scalar:
    """Return the row an index names: fractions are cut, out of range means the nearest row, NaN row 0."""
    i = np.float64(index)
    return np.int64(min(i, np.float64(n - 1))) if i > 0.0 else np.int64(0)


@kernel(threshold=1 << 16)
def _take(first: int, last: int, n: int, width: int, table: Array, index: Array, out: Array) -> None:
    for i in range(first, last):
        copy(table, nearest_row(index[i], n) * width, width, out, i * width)


@kernel(threshold=1 << 16)
def _add(first: int, last: int, parts: int, n: int, width: int, index: Array, d_out: Array, d_table: Array) -> None:
    for part in range(first, last):
        low, high = part * n // parts, (part + 1) * n // parts
        target = d_table[low * width : high * width]
        target[:] = target.dtype.type(0)
        for i in range(index.size):
            row = nearest_row(index[i], n)
            if low <= row < high:
                a, b = d_out[i * width : (i + 1) * width], d_table[row * width : (row + 1) * width]
                for k in range(width):
                    b[k] += a[k]


def take_rows(table: Array, index: Array, out: Array) -> None:
    """Write the rows that `index` names: (n, *row), (…) -> (…, *row).

    Parameters
    ----------
    index : ndarray
        Of any number type. Fractions are cut and what is out of range is clipped.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 Embedding, and `take` along axis 0 with mode 'clip', but for infinite indices
    and those beyond 2**63, which are row 0 there.

    Examples
    --------
    >>> out = np.empty((2, 1))
    >>> take_rows(np.array([[1.0], [2.0]]), np.array([1, 9]), out)
    >>> out.ravel()
    array([2., 2.])
    """
    if out.size == 0:
        return
    n = table.shape[0]
    with writable(out) as (y,):
        _take.run(_take.workers(out.size), index.size, n, table.size // n, flat(table), _index(index), y.reshape(-1))


def add_rows(d_out: Array, index: Array, d_table: Array) -> None:
    """Write the gradient of :func:`take_rows`: rows named more than once add up, in the order of `index`."""
    n = d_table.shape[0]
    if d_out.size == 0 or d_table.size == 0:
        d_table[...] = 0
        return
    parts = min(n, _add.workers(max(d_table.size, d_out.size)))
    with writable(d_table) as (table,):
        _add.run(parts, parts, parts, n, d_table.size // n, _index(index), flat(d_out), table.reshape(-1))


@kernel(threshold=1 << 60)
def _number(
    first: int, last: int, n: int, index: Array, marks: Array, before: Array, rows: Array, place: Array
) -> None:
    """List the rows that are named, and say where in the list each is; of the first that names it, the complement.

    Rows are marked, a bit each; `before` counts those before each word of marks.
    """
    one = np.uint64(1)
    marks[:] = np.uint64(0)
    for i in range(first, last):
        row = np.uint64(nearest_row(index[i], n))
        marks[row >> np.uint64(6)] |= one << (row & np.uint64(63))
    found = 0
    for word in range(marks.size):
        before[word] = found
        left = marks[word]
        while left:
            rows[found] = ~(word * 64 + zeros_below(left))  # until somebody has named it
            left &= left - one
            found += 1
    before[marks.size] = found
    for i in range(first, last):
        row = np.uint64(nearest_row(index[i], n))
        word = row >> np.uint64(6)
        at = before[word] + bits_set(marks[word] & ((one << (row & np.uint64(63))) - one))
        if rows[at] < 0:
            rows[at] = ~rows[at]
            at = ~at
        place[i] = at


@kernel(threshold=1 << 16)
def _merge(first: int, last: int, parts: int, n: int, width: int, place: Array, d_out: Array, out: Array) -> None:
    """As `_add`, where every row has a first one, told by its complement: nothing needs to be cleared."""
    zero = out.dtype.type(0)
    for part in range(first, last):
        low, high = part * n // parts, (part + 1) * n // parts
        for i in range(place.size):
            at = np.int64(place[i])
            new = at < 0
            row = ~at if new else at
            if low <= row < high:
                a, b = d_out[i * width : (i + 1) * width], out[row * width : (row + 1) * width]
                if new:
                    for k in range(width):
                        b[k] = zero + a[k]  # so that -0.0 is as in sums of many
                else:
                    for k in range(width):
                        b[k] += a[k]


#: Tables of up to so many rows for each index are looked through; in longer ones the indices are sorted.
_SPARSE = 1024


def merged_rows(d_out: Array, index: Array, n: int) -> tuple[Array, Array]:
    """Return the gradient of :func:`take_rows` for a table of `n` rows: the rows that are named, and their sums.

    Examples
    --------
    >>> merged_rows(np.array([[1.0], [2.0], [4.0]]), np.array([5, 0, 5]), 9)
    (array([0, 5]), array([[2.],
           [5.]]))
    """
    index = _index(index)
    if n <= _SPARSE * len(index):
        words, whole = -(-n // 64), np.dtype(np.int64)
        marks, before = memory.empty((words,), np.dtype(np.uint64)), memory.empty((words + 1,), whole)
        rows, place = memory.empty((min(n, len(index)),), whole), memory.empty((len(index),), np.dtype(np.int32))
        _number(len(index), n, index, marks, before, rows, place)
        rows = rows[: before[words]].copy()
    else:
        # In float64, which holds the last row; in float32 it may be rounded to another one.
        near = np.clip(index if index.dtype.kind == "i" else np.nan_to_num(index.astype(np.float64)), 0, n - 1)
        rows, firsts, places = np.unique(near.astype(np.int64), return_index=True, return_inverse=True)
        place = places.reshape(-1).astype(np.int32)
        place[firsts] = ~place[firsts]
    out = memory.empty((len(rows), *d_out.shape[1:]), d_out.dtype)
    if out.size:
        parts = min(len(rows), _merge.workers(max(out.size, d_out.size)))
        _merge.run(parts, parts, parts, len(rows), out.size // len(rows), place, flat(d_out), out.reshape(-1))
    return rows, out


def _index(index: Array) -> Array:
    """Return indices in one of the types that kernels are compiled for, which holds them, or what is as far out."""
    if index.dtype not in _INDEX_TYPES:
        index = index.astype(np.int64 if np.can_cast(index.dtype, np.int64) else np.float64)
    return flat(index)


_INDEX_TYPES = (np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.int32), np.dtype(np.int64))
