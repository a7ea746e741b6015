"""Matrices in compressed rows: products, transposition, sums of two, and what else goes row by row.

Rows are dealt to threads by what is stored in them. Every function checks the places first (:func:`checked`), so that
no array made elsewhere sends a loop out of its memory.
"""

from __future__ import annotations

import numpy as np

from mxcore.plugin import CSR

from .. import memory
from ..jit import Kernel, Lazy, helper, kernel
from ..typing import Array, Scalar
from ._arrays import flat

__all__ = ["at", "by_csr", "checked", "merged", "pack", "part", "sums", "take", "times", "transposed", "unpack"]

#: Above every column.
_LAST = np.iinfo(np.int64).max


@kernel(threshold=1 << 16)
def _find_bad(first: int, last: int, indices: Array, n: int, found: Array) -> None:
    low, high = indices[first], indices[first]
    for i in range(first, last):
        low, high = min(low, indices[i]), max(high, indices[i])
    if low < 0 or high >= n:
        found[0] = True


def checked(a: CSR) -> tuple[Array, Array, Array]:
    """Return `indptr`, `indices` and `values` in one layout; they are looked at once.

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
    if a.sound:
        return start, cols, values
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
    a.sound = True
    return start, cols, values


def _cuts(start: Array, workers: int, each: int = 1) -> Array:
    """Where the runs of rows begin that threads get, of about as much work each.

    `start` tells where each row begins, and the end of the last one; a row is worth `each` more than what it holds.
    """
    n = len(start) - 1
    parts = max(min(n, workers), 1)
    if parts == 1:
        return np.array([0, n])
    work = start + each * np.arange(n + 1)
    cuts = np.searchsorted(work, work[-1] * np.arange(1, parts) // parts)
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
    start, stop, ends = begin[:-1], begin[1:], begin
    if rows is not None:
        start, stop = start[rows], stop[rows]
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(stop - start)])
    width = matrix.shape[1]
    out = memory.empty((len(start), width), a.dtype)
    if out.size:
        run = _times if width > 1 else _times_vector
        workers = run.workers(len(cols) * width + out.size)
        cuts = _cuts(ends, workers)
        more = (flat(matrix), out.reshape(-1))
        run.run(workers, len(cuts) - 1, cuts, start, stop, cols, values, *((width, *more) if width > 1 else more))
    return out


@kernel(threshold=1 << 16)
def _count(first: int, last: int, cuts: Array, start: Array, cols: Array, n: int, counts: Array) -> None:
    for part in range(first, last):
        own = counts[part * n : (part + 1) * n]
        own[:] = 0
        for j in range(start[cuts[part]], start[cuts[part + 1]]):
            own[cols[j]] += 1


@kernel(threshold=1 << 16)
def _places(first: int, last: int, parts: int, n: int, begin: Array, counts: Array) -> None:
    for c in range(first, last):
        at = begin[c]
        for part in range(parts):
            found = counts[part * n + c]
            counts[part * n + c] = at
            at += found


@kernel(threshold=1 << 16)
def _turn(
    first: int,
    last: int,
    cuts: Array,
    start: Array,
    cols: Array,
    values: Array,
    n: int,
    places: Array,
    rows: Array,
    out: Array,
) -> None:
    for part in range(first, last):
        to = places[part * n : (part + 1) * n]
        for i in range(cuts[part], cuts[part + 1]):
            for j in range(start[i], start[i + 1]):
                at = to[cols[j]]
                rows[at], out[at] = i, values[j]
                to[cols[j]] = at + 1


def transposed(a: CSR) -> CSR:
    """Return the transpose: threads count the columns in their rows, and fill them in the order of rows.

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
        workers = _turn.workers(len(cols)) if len(cols) >= n else 1  # each has a counter for every column
        cuts = _cuts(start, workers, 0)
        parts = len(cuts) - 1
        places = memory.empty((parts, n), begin.dtype)
        _count.run(parts, parts, cuts, start, cols, n, places.reshape(-1))
        np.cumsum(places.sum(0) if parts > 1 else places[0], out=begin[1:])
        _places.run(_places.workers(n), n, parts, n, begin, places.reshape(-1))
        _turn.run(parts, parts, cuts, start, cols, values, n, places.reshape(-1), rows, out)
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
        work = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.diff(other[0])[cols])])[start]
        cuts = _cuts(work, workers, b.shape[1])
        _by_csr.run(workers, len(cuts) - 1, cuts, start, cols, values, *other, b.shape[1], out.reshape(-1))
    return out


# -- sums of rows and columns, and some of the rows ----------------------------------------------------------------
@kernel(threshold=1 << 16)
def _row_sums(first: int, last: int, cuts: Array, start: Array, values: Array, out: Array) -> None:
    for i in range(cuts[first], cuts[last]):
        total = 0.0
        for j in range(start[i], start[i + 1]):
            total += values[j]
        out[i] = total


@kernel(threshold=1 << 16)
def _column_sums(first: int, last: int, parts: int, n: int, cols: Array, values: Array, out: Array) -> None:
    for part in range(first, last):
        own = out[part * n : (part + 1) * n]
        own[:] = 0.0
        for j in range(part * cols.size // parts, (part + 1) * cols.size // parts):
            own[cols[j]] += values[j]


def sums(a: CSR, values: Array, axis: int) -> Array:
    """Return the sums along an axis, in float64, of a matrix with other values in the places of `a`.

    Examples
    --------
    >>> a = CSR((2, 2), np.array([0, 2, 3]), np.array([0, 1, 1]), np.array([3.0, 4.0, 5.0]))
    >>> sums(a, a.values, 0), sums(a, a.values**2, 1)
    (array([3., 9.]), array([25., 25.]))
    """
    start, cols, _ = checked(a)
    n, values = a.shape[1 - axis], flat(values)
    if axis == 1:
        out = memory.empty((n,), np.dtype(np.float64))
        workers = _row_sums.workers(len(cols) + n)
        cuts = _cuts(start, workers)
        if n:
            _row_sums.run(workers, len(cuts) - 1, cuts, start, values, out)
        return out
    parts = max(min(_column_sums.workers(len(cols)), len(cols) // max(n, 1)), 1)
    out = memory.empty((parts, n), np.dtype(np.float64))
    if n:
        _column_sums.run(parts, parts, parts, n, cols, values, out.reshape(-1))
    total: Array = out.sum(0) if parts > 1 else out[0]
    return total


@kernel(threshold=1 << 16)
def _take(
    first: int,
    last: int,
    cuts: Array,
    wanted: Array,
    start: Array,
    cols: Array,
    values: Array,
    begin: Array,
    to: Array,
    out: Array,
) -> None:
    for i in range(cuts[first], cuts[last]):
        at, n = start[wanted[i]], begin[i + 1] - begin[i]
        c, v, c2, v2 = cols[at : at + n], values[at : at + n], to[begin[i] :][:n], out[begin[i] :][:n]
        for j in range(n):
            c2[j] = c[j]
        for j in range(n):
            v2[j] = v[j]


def take(a: CSR, wanted: Array) -> CSR:
    """Return rows of a matrix, in any order; all of them must be there.

    Examples
    --------
    >>> a = CSR((2, 2), np.array([0, 2, 3]), np.array([0, 1, 1]), np.array([3.0, 4.0, 5.0]))
    >>> take(a, np.array([1, 0, 1])).values
    array([5., 3., 4., 5.])
    """
    start, cols, values = checked(a)
    begin = np.zeros(len(wanted) + 1, np.int64)
    np.cumsum(np.diff(start)[wanted], out=begin[1:])
    to, out = (memory.empty((int(begin[-1]),), x.dtype) for x in (cols, values))
    if len(out):
        workers = _take.workers(len(out))
        cuts = _cuts(begin, workers)
        _take.run(workers, len(cuts) - 1, cuts, flat(wanted), start, cols, values, begin, to, out)
    return CSR((len(wanted), a.shape[1]), begin, to, out)


@kernel(threshold=1 << 16)
def _within(first: int, last: int, cuts: Array, left: int, right: int, start: Array, cols: Array, found: Array) -> None:
    for i in range(cuts[first], cuts[last]):
        a, b = start[i], start[i + 1]
        while a < b and cols[a] < left:
            a += 1
        while b > a and cols[b - 1] >= right:
            b -= 1
        found[2 * i], found[2 * i + 1] = a, b - a


@kernel(threshold=1 << 16)
def _shift(
    first: int,
    last: int,
    cuts: Array,
    left: int,
    found: Array,
    cols: Array,
    values: Array,
    begin: Array,
    to: Array,
    out: Array,
) -> None:
    for i in range(cuts[first], cuts[last]):
        at, n = found[2 * i], begin[i + 1] - begin[i]
        c, v, c2, v2 = cols[at : at + n], values[at : at + n], to[begin[i] :][:n], out[begin[i] :][:n]
        for j in range(n):
            c2[j] = c[j] - left
        for j in range(n):
            v2[j] = v[j]


def part(a: CSR, rows: range, columns: range) -> CSR:
    """Return some rows and columns of a matrix; the columns of a row must rise.

    Examples
    --------
    >>> a = CSR((2, 3), np.array([0, 2, 3]), np.array([0, 2, 1]), np.array([3.0, 4.0, 5.0]))
    >>> part(a, range(2), range(1, 3)).indices, part(a, range(1, 2), range(3)).values
    (array([1, 0]), array([5.]))
    """
    start, cols, values = checked(a)
    start = start[rows.start : rows.start + len(rows) + 1]
    shape, n = (len(rows), len(columns)), int(start[-1] - start[0])
    if len(columns) == a.shape[1] or not n:
        kept = slice(start[0], start[-1])
        return CSR(shape, start - start[0], cols[kept].copy(), values[kept].copy())
    workers = _shift.workers(n)
    cuts, found = _cuts(start - start[0], workers), memory.empty((len(rows), 2), start.dtype)
    _within.run(workers, len(cuts) - 1, cuts, columns.start, columns.stop, start, cols, found.reshape(-1))
    begin = np.zeros(len(start), np.int64)
    np.cumsum(found[:, 1], out=begin[1:])
    to, out = (memory.empty((int(begin[-1]),), x.dtype) for x in (cols, values))
    more = (cuts, columns.start, found.reshape(-1), cols, values, begin, to, out)
    _shift.run(workers, len(cuts) - 1, *more)
    return CSR(shape, begin, to, out)


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
        cuts = _cuts(to, workers)
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


@kernel(threshold=1 << 13)
def _at(
    first: int,
    last: int,
    rows: Array,
    wanted: Array,
    start: Array,
    cols: Array,
    values: Array,
    missing: Scalar,
    out: Array,
) -> None:
    for i in range(first, last):
        a, end = start[rows[i]], start[rows[i] + 1]
        a += np.searchsorted(cols[a:end], wanted[i])
        out[i] = values[a] if a < end and cols[a] == wanted[i] else missing


def at(a: CSR, rows: Array, wanted: Array, missing: float) -> Array:
    """Return what a matrix holds at some rows, all of which there are, and columns; `missing` where nothing is stored.

    Examples
    --------
    >>> a = CSR((2, 4), np.array([0, 2, 3]), np.array([0, 3, 1]), np.array([3.0, 4.0, 5.0]))
    >>> at(a, np.array([0, 0, 1]), np.array([3, 1, 1]), -1)
    array([ 4., -1.,  5.])
    """
    start, cols, values = checked(a)
    out = np.empty(len(rows), values.dtype)
    if len(out):
        _at.run(
            _at.workers(len(out) * 8),
            len(out),
            flat(rows),
            flat(wanted),
            start,
            cols,
            values,
            values.dtype.type(missing),
            out,
        )
    return out
