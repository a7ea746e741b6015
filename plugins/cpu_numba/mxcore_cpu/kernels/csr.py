"""Matrices in compressed rows: products, transposition, sums of two, and what else goes row by row.

Rows are dealt to threads by what is stored in them. Every function checks the places first (:func:`checked`), so that
no array made elsewhere, or changed since, sends a loop out of its memory.
"""

from __future__ import annotations

import numpy as np

from mxcore.plugin import CSR

from .. import memory
from ..jit import Kernel, Lazy, helper, kernel
from ..typing import Array, Scalar
from ._arrays import flat

__all__ = ["by_csr", "checked", "merged", "pack", "times", "transposed", "unpack"]

#: Above every column.
_LAST = np.iinfo(np.int64).max

#: Parts that each thread gets, so that one which is slow, or has the longer rows, holds up nobody for long.
_PARTS = 8


@kernel(threshold=1 << 16)
def _find_bad(first: int, last: int, indices: Array, n: int, found: Array) -> None:
    low, high = indices[first], indices[first]
    for i in range(first, last):
        low, high = min(low, indices[i]), max(high, indices[i])
    if low < 0 or high >= n:
        found[0] = True


def checked(a: CSR) -> tuple[Array, Array, Array]:
    """Return `indptr`, `indices` and `values` in one layout.

    Raises
    ------
    IndexError
        If they do not fit together, or name columns that there are not.

    Examples
    --------
    >>> checked(CSR((1, 2), np.array([0, 1]), np.array([2]), np.array([1.0])))
    Traceback (most recent call last):
    IndexError: csr matrix (1, 2): indices must lie in [0, 2)
    """
    start, cols, values = (flat(x) for x in a.parts)
    if start.dtype != np.int64 or cols.dtype != np.int64:
        start, cols = start.astype(np.int64), cols.astype(np.int64)
    n = len(cols)
    if (
        len(start) != a.shape[0] + 1
        or start[0] != 0
        or start[-1] != n
        or len(values) != n
        or (start[1:] < start[:-1]).any()
    ):
        raise IndexError(
            f"csr matrix {a.shape}: indptr must rise from 0 to the number of indices, {n}, which is that of values, "
            f"{len(values)}; got {len(start)} entries, {start.tolist()[:10]}"
        )
    if n:
        found = np.zeros(1, np.bool_)
        _find_bad(n, cols, a.shape[1], found)
        if found[0]:
            raise IndexError(f"csr matrix {a.shape}: indices must lie in [0, {a.shape[1]})")
    return start, cols, values


def _cuts(start: Array, workers: int) -> Array:
    """Where runs of rows begin that hold about as many values each; `start` tells where each row begins."""
    n = len(start)
    parts = min(max(n, 1), workers * _PARTS if workers > 1 else 1)
    last = int(start[-1]) if n else 0
    cuts = np.searchsorted(start, np.arange(1, parts) * last // parts) if parts > 1 else np.zeros(0, np.int64)
    return np.concatenate([np.zeros(1, np.int64), cuts, np.array([n])])


# -- products ------------------------------------------------------------------------------------------------------
@kernel(threshold=1 << 15)
def _times(
    first: int,
    last: int,
    cuts: Array,
    start: Array,
    stop: Array,
    cols: Array,
    values: Array,
    width: int,
    matrix: Array,
    out: Array,
) -> None:
    for i in range(cuts[first], cuts[last]):
        row = out[i * width : (i + 1) * width]
        row[:] = row.dtype.type(0)
        for j in range(start[i], stop[i]):
            v, at = values[j], cols[j] * width
            other = matrix[at : at + width]
            for c in range(width):
                row[c] += v * other[c]


@kernel(threshold=1 << 15)
def _times_vector(
    first: int, last: int, cuts: Array, start: Array, stop: Array, cols: Array, values: Array, x: Array, out: Array
) -> None:
    for i in range(cuts[first], cuts[last]):
        total = out.dtype.type(0)
        for j in range(start[i], stop[i]):
            total += values[j] * x[cols[j]]
        out[i] = total


def times(a: CSR, matrix: Array, rows: Array | None = None) -> Array:
    """Return the product of a csr matrix and a dense one: (m, n), (n, w) -> (m, w), or some rows of it.

    Examples
    --------
    >>> a = CSR((2, 2), np.array([0, 0, 1]), np.array([0]), np.array([3.0]))
    >>> times(a, np.array([[1.0, 2.0], [4.0, 5.0]]))
    array([[0., 0.],
           [3., 6.]])
    """
    begin, cols, values = checked(a)
    start, stop = begin[:-1], begin[1:]
    if rows is not None:
        start, stop = start[rows], stop[rows]
    width = matrix.shape[1]
    out = memory.empty((len(start), width), a.dtype)
    if out.size:
        run = _times if width > 1 else _times_vector
        workers = run.workers(len(cols) * width + out.size)
        cuts = _cuts(start, workers)
        more = (flat(matrix), out.reshape(-1))
        run.run(workers, len(cuts) - 1, cuts, start, stop, cols, values, *((width, *more) if width > 1 else more))
    return out


@kernel(threshold=1 << 15)
def _turn(
    first: int, last: int, bounds: Array, start: Array, cols: Array, values: Array, to: Array, rows: Array, out: Array
) -> None:
    for part in range(first, last):
        low, high = bounds[part], bounds[part + 1]
        for i in range(start.size - 1):
            for j in range(start[i], start[i + 1]):
                c = cols[j]
                if low <= c < high:
                    at = to[c]
                    rows[at], out[at] = i, values[j]
                    to[c] = at + 1


@kernel(threshold=1 << 16)
def _count(first: int, last: int, bounds: Array, cols: Array, counts: Array) -> None:
    for part in range(first, last):
        low, high = bounds[part], bounds[part + 1]
        for j in range(cols.size):
            c = cols[j]
            if low <= c < high:
                counts[c] += 1


def transposed(a: CSR) -> CSR:
    """Return the transpose: columns are counted, then filled in the order of rows.

    Examples
    --------
    >>> a = CSR((1, 3), np.array([0, 2]), np.array([0, 2]), np.array([3.0, 4.0]))
    >>> transposed(a).indptr.tolist(), transposed(a).indices.tolist()
    ([0, 1, 1, 2], [0, 0])
    """
    start, cols, values = checked(a)
    m, n = a.shape
    begin = np.zeros(n + 1, np.int64)
    rows, out = memory.empty(cols.shape, np.dtype(np.int64)), memory.empty(values.shape, values.dtype)
    if len(cols):
        parts = min(n, _turn.workers(len(cols)))  # each reads all places and fills its own columns
        bounds = np.arange(parts + 1) * n // parts
        _count.run(parts, parts, bounds, cols, begin[1:])
        np.cumsum(begin, out=begin)
        _turn.run(parts, parts, bounds, start, cols, values, begin[:-1].copy(), rows, out)
    return CSR((n, m), begin, rows, out)


@kernel(threshold=1 << 15)
def _by_csr(
    first: int,
    last: int,
    cuts: Array,
    start: Array,
    cols: Array,
    values: Array,
    start2: Array,
    cols2: Array,
    values2: Array,
    width: int,
    out: Array,
) -> None:
    for i in range(cuts[first], cuts[last]):
        row = out[i * width : (i + 1) * width]
        row[:] = row.dtype.type(0)
        for j in range(start[i], start[i + 1]):
            v, k = values[j], cols[j]
            for q in range(start2[k], start2[k + 1]):
                row[cols2[q]] += v * values2[q]


def by_csr(a: CSR, b: CSR) -> Array:
    """Return the product of two csr matrices as a dense one.

    Examples
    --------
    >>> a = CSR((1, 2), np.array([0, 1]), np.array([1]), np.array([3.0]))
    >>> by_csr(a, transposed(a))
    array([[9.]])
    """
    start, cols, values = checked(a)
    other = checked(b)
    out = memory.empty((a.shape[0], b.shape[1]), a.dtype)
    if out.size:
        workers = _by_csr.workers(out.size + len(cols))
        cuts = _cuts(start[:-1], workers)
        _by_csr.run(workers, len(cuts) - 1, cuts, start, cols, values, *other, b.shape[1], out.reshape(-1))
    return out


# -- sums and the like of two --------------------------------------------------------------------------------------
@helper
def _sum(a: Scalar, b: Scalar) -> Scalar:
    return a + b


@helper
def _difference(a: Scalar, b: Scalar) -> Scalar:
    return a - b


@helper
def _product(a: Scalar, b: Scalar) -> Scalar:
    return a * b


def _merge_kernel(of: Lazy) -> Kernel:
    def merge(
        first: int,
        last: int,
        cuts: Array,
        start: Array,
        cols: Array,
        values: Array,
        start2: Array,
        cols2: Array,
        values2: Array,
        count: Array,
        to: Array,
        where: Array,
        out: Array,
    ) -> None:
        zero = values.dtype.type(0)
        for i in range(cuts[first], cuts[last]):
            a, end, b, end2 = start[i], start[i + 1], start2[i], start2[i + 1]
            n = 0
            base = to[i]
            before = np.int64(-1)
            while a < end or b < end2:
                c = min(cols[a] if a < end else _LAST, cols2[b] if b < end2 else _LAST)
                if c <= before:
                    n = -1
                    break
                before = c
                x = y = zero
                if a < end and cols[a] == c:
                    x = values[a]
                    a += 1
                if b < end2 and cols2[b] == c:
                    y = values2[b]
                    b += 1
                z = of(x, y)
                if z != zero:
                    where[base + n], out[base + n] = c, z
                    n += 1
            count[i] = n

    return kernel(merge, threshold=1 << 14)


@kernel(threshold=1 << 16)
def _close_up(
    first: int, last: int, begin: Array, to: Array, where: Array, values: Array, cols: Array, out: Array
) -> None:
    for i in range(first, last):
        n = begin[i + 1] - begin[i]
        cols[begin[i] : begin[i] + n] = where[to[i] : to[i] + n]
        out[begin[i] : begin[i] + n] = values[to[i] : to[i] + n]


_MERGES = {
    "elemwise_add": _merge_kernel(_sum),
    "elemwise_sub": _merge_kernel(_difference),
    "elemwise_mul": _merge_kernel(_product),
}


def merged(name: str, a: CSR, b: CSR) -> CSR:
    """Return the sum, difference or product of two csr matrices of one shape, without its zeros.

    Raises
    ------
    IndexError
        Where the columns of a row do not rise.

    Examples
    --------
    >>> a = CSR((1, 3), np.array([0, 2]), np.array([0, 2]), np.array([3.0, 4.0]))
    >>> merged("elemwise_mul", a, a).values
    array([ 9., 16.])
    """
    one, other = checked(a), checked(b)
    m, total = a.shape[0], len(one[1]) + len(other[1])
    to = one[0] + other[0]
    count = np.zeros(m, np.int64)
    where, values = memory.empty((total,), np.dtype(np.int64)), memory.empty((total,), a.dtype)
    if total:
        run = _MERGES[name]
        workers = run.workers(total)
        cuts = _cuts(to[:-1], workers)
        run.run(workers, len(cuts) - 1, cuts, *one, *other, count, to, where, values)
        if (count < 0).any():
            raise IndexError(f"csr matrix {a.shape}: the columns of a row must rise, each once")
    begin = np.zeros(m + 1, np.int64)
    np.cumsum(count, out=begin[1:])
    n = int(begin[-1])
    if n == total:
        return CSR(a.shape, begin, where, values)
    cols, out = memory.empty((n,), where.dtype), memory.empty((n,), a.dtype)
    _close_up.run(_close_up.workers(n), m, begin, to, where, values, cols, out)
    return CSR(a.shape, begin, cols, out)


# -- dense and back ------------------------------------------------------------------------------------------------
@kernel(threshold=1 << 16)
def _unpack(first: int, last: int, n: int, start: Array, cols: Array, values: Array, out: Array) -> None:
    for i in range(first, last):
        row = out[i * n : (i + 1) * n]
        row[:] = row.dtype.type(0)
        for j in range(start[i], start[i + 1]):
            row[cols[j]] = values[j]


def unpack(a: CSR) -> Array:
    """Return a csr matrix as a dense one.

    Examples
    --------
    >>> unpack(CSR((1, 3), np.array([0, 1]), np.array([2]), np.array([3.0])))
    array([[0., 0., 3.]])
    """
    start, cols, values = checked(a)
    out = memory.empty(a.shape, a.dtype)
    if out.size:
        _unpack.run(_unpack.workers(out.size), a.shape[0], a.shape[1], start, cols, values, out.reshape(-1))
    return out


@kernel(threshold=1 << 16)
def _count_stored(first: int, last: int, n: int, x: Array, count: Array) -> None:
    zero = x.dtype.type(0)
    for i in range(first, last):
        found = 0
        for c in range(i * n, (i + 1) * n):
            found += 1 if x[c] != zero else 0
        count[i] = found


@kernel(threshold=1 << 16)
def _pack(first: int, last: int, n: int, x: Array, start: Array, cols: Array, values: Array) -> None:
    zero = x.dtype.type(0)
    for i in range(first, last):
        at = start[i]
        for c in range(n):
            v = x[i * n + c]
            if v != zero:
                cols[at], values[at] = c, v
                at += 1


def pack(x: Array) -> CSR:
    """Return the elements of a matrix that are not zero, as csr.

    Examples
    --------
    >>> pack(np.array([[0.0, 2.0], [0.0, 0.0]])).indptr.tolist()
    [0, 1, 1]
    """
    m, n = x.shape
    start, line = np.zeros(m + 1, np.int64), flat(x)
    if x.size:
        workers = _pack.workers(x.size)
        _count_stored.run(workers, m, n, line, start[1:])
        np.cumsum(start, out=start)
        cols, values = memory.empty((int(start[-1]),), np.dtype(np.int64)), memory.empty((int(start[-1]),), x.dtype)
        _pack.run(workers, m, n, line, start, cols, values)
        return CSR(x.shape, start, cols, values)
    return CSR(x.shape, start, np.zeros(0, np.int64), np.zeros(0, x.dtype))
