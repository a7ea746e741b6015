"""Convolutions with windows of 3 x 3 over images with their channels last, by products of transformed tiles.

Four results beside each other need 16 products of each channel instead of 36 (Winograd, "Arithmetic Complexity of
Computations", 1980; Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016, F(2 x 2, 3 x 3)). Tiles
of 4 x 4 places and filters are transformed; for each of the 16 places of what they become there is one product of
matrices, tiles by filters, whose transforms back are the results. The gradient of the filters is the adjoint: from
tiles of the data and of the gradient of the results.

A thread works on so many tiles at once as its cache holds, or, where there are few, all threads on all of them, one
phase after the other. Each result is computed in one order, however many threads there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import memory, threads
from ..jit import Lazy, helper, kernel
from ..native import products
from ..typing import Array
from ._arrays import dense, flat, writable
from .packed import address, multiply_packed, multiply_strided, packed_size
from .vectors import Code, written

__all__ = ["Tiling", "convolution", "filters", "filters_into", "filters_size", "usable", "weight_gradient"]

#: Places of a transformed tile.
_PLACES = 16
#: Channels of images fill vectors.
LANES = 16
#: What a thread has of transformed tiles and their products at once, in bytes; where the filters exceed the cache, too,
#: tiles are so many that reading these takes less than the products.
_NEAR, _LARGE, _MANY = 3 << 18, 1 << 22, 128
#: Cache lines, of as many as a cache has sets, by which places lie apart.
_SPREAD = 4
#: What all threads together have, at most, where they work on all tiles.
_SHARED = 1 << 25
#: Tiles and their gradients that are summed up together, in bytes; tiles of them, at least, and where sums are large.
_SUMMED, _LEAST, _MANY_SUMS = 1 << 22, 64, 256


class Tiling(NamedTuple):
    """How images (n, height, width, channels) are cut into tiles.

    Attributes
    ----------
    images, height, width, channels : int
        Of the data.
    filters : int
    pad : tuple of int
        Places that lie before the first row and column.
    out : tuple of int
        Rows and columns of the results.
    """

    images: int
    height: int
    width: int
    channels: int
    filters: int
    pad: tuple[int, int]
    out: tuple[int, int]

    @classmethod
    def of(cls, shape: Sequence[int], filters: int, pad: Sequence[int]) -> Tiling:
        """For data of a shape (n, height, width, channels)."""
        n, height, width, channels = shape
        out = height + 2 * pad[0] - 2, width + 2 * pad[1] - 2
        return cls(n, height, width, channels, filters, (pad[0], pad[1]), out)

    @property
    def back(self) -> Tiling:
        """Of the gradient of the data, which is a convolution of the results' one."""
        pad = 2 - self.pad[0], 2 - self.pad[1]
        return Tiling(self.images, *self.out, self.filters, self.channels, pad, (self.height, self.width))

    @property
    def rows(self) -> int:
        """Of tiles."""
        return -(-self.out[0] // 2)

    @property
    def columns(self) -> int:
        """Of tiles."""
        return -(-self.out[1] // 2)

    @property
    def total(self) -> int:
        """Tiles."""
        return self.images * self.rows * self.columns

    @property
    def numbers(self) -> tuple[int, ...]:
        """For kernels."""
        return (self.height, self.width, self.channels, self.filters, *self.pad, *self.out, self.rows, self.columns)


def usable(channels: int, filters: int) -> bool:
    """Whether there is code for so many channels and filters on this processor."""
    return not (channels | filters) % LANES and address(np.dtype(np.float32)) != 0


def _gap(n: int) -> int:
    """Numbers from one of the 16 places of something to the next: those of one tile do not share sets of a cache."""
    line, sets = 64 // 4, 64
    lines = -(-n // line)
    return line * (lines + (_SPREAD - lines) % sets)


# -- transforms, in vectors of channels --------------------------------------------------------------------------------
_Rule = Callable[[Any, Sequence[Any]], list[Any]]


def _data(b: Any, d: Sequence[Any]) -> list[Any]:
    return [b.fsub(d[0], d[2]), b.fadd(d[1], d[2]), b.fsub(d[2], d[1]), b.fsub(d[1], d[3])]


def _results(b: Any, m: Sequence[Any]) -> list[Any]:
    return [b.fadd(b.fadd(m[0], m[1]), m[2]), b.fsub(b.fsub(m[1], m[2]), m[3])]


def _results_back(b: Any, e: Sequence[Any]) -> list[Any]:
    return [e[0], b.fadd(e[0], e[1]), b.fsub(e[0], e[1]), b.fneg(e[1])]


def _halved(b: Any, x: Any) -> Any:
    kind = x.type
    return b.fmul(x, type(x.type)(kind.element, kind.count)([0.5] * kind.count))


def _filters(b: Any, g: Sequence[Any]) -> list[Any]:
    ends, middle = _halved(b, b.fadd(g[0], g[2])), _halved(b, g[1])
    return [g[0], b.fadd(ends, middle), b.fsub(ends, middle), g[2]]


def _filters_back(b: Any, u: Sequence[Any]) -> list[Any]:
    both = _halved(b, b.fadd(u[1], u[2]))
    return [b.fadd(u[0], both), _halved(b, b.fsub(u[1], u[2])), b.fadd(both, u[3])]


#: What functions for edges take as well.
_GUARDS = "spare", "first_row", "end_row", "first_column", "end_column"


#: What is done with results: see :func:`convolution`.
_THEN = "bias", "add", "low", "slope"


def _then(c: Code, first: int, kind: Any, z: Any) -> Callable[[Any, Any], Any]:
    """What is done with the results of some channels, by the arguments from the `first` on: ``(value, place)``."""
    b, (add, low) = c.builder, c.args[first + 1 : first + 3]
    bias, slope = (c.load(c.data(i), z, kind) for i in (first, first + 3))
    least, nothing = c.splat(low, c.lanes), c.ir.Constant(kind, None)

    def apply(value: Any, place: Any) -> Any:
        there = b.select(b.icmp_signed("!=", add, c.whole(0)), c.load(place, z, kind), nothing)
        value = b.fadd(b.fadd(value, bias), there)
        value = b.select(b.fcmp_unordered(">=", value, least), value, least)  # NaN stays
        return b.select(b.fcmp_ordered(">", value, nothing), value, b.fmul(value, slope))

    return apply


def _transform(name: str, rule: _Rule, taken: int, given: int, edge: str, then: bool = False) -> tuple[Lazy, Lazy]:
    """Functions that transform `taken` x `taken` vectors to `given` x `given`, along both axes, for n channels.

    The second one is for tiles over the `edge` of an image, of what is ``'read'`` or ``'written'``: vectors outside of
    some rows and columns lie in n numbers to spare instead. `then`: they are told what to do with results.
    """
    n_args = 9 + len(_THEN) * then

    def places(c: Code, data: Any, args: Sequence[Any], side: int, guarded: bool) -> list[list[Any]]:
        """Where the vectors of each row begin."""
        b, (start, line, step) = c.builder, args
        rows = [b.add(start, b.mul(line, c.whole(i))) for i in range(side)]
        found = [[b.gep(data, [b.add(row, b.mul(step, c.whole(j)))]) for j in range(side)] for row in rows]
        if not guarded:
            return found
        spare, limits = c.data(n_args), c.args[n_args + 1 :]
        rows, columns = (
            [b.and_(b.icmp_signed("<=", low, c.whole(i)), b.icmp_signed(">", high, c.whole(i))) for i in range(side)]
            for low, high in (limits[:2], limits[2:])
        )
        return [
            [b.select(b.and_(row, column), place, spare) for column, place in zip(columns, line)]
            for row, line in zip(rows, found)
        ]

    def made(guarded: bool) -> Lazy:
        def write(c: Code) -> None:
            b, kind = c.builder, c.vector(c.lanes)
            _, x0, line, step, n, _, y0, out_line, out_step = c.args[:9]
            sources = places(c, c.data(0), (x0, line, step), taken, guarded and edge == "read")
            targets = places(c, c.data(5), (y0, out_line, out_step), given, guarded and edge == "written")
            with c.each(n, c.lanes) as (z, _):
                read = [[c.load(sources[i][j], z, kind) for i in range(taken)] for j in range(taken)]
                columns = [rule(b, column) for column in read]
                finished = _then(c, 9, kind, z) if then else lambda value, place: value
                for i in range(given):
                    for j, value in enumerate(rule(b, [column[i] for column in columns])):
                        c.store(finished(value, targets[i][j]), targets[i][j], z)

        write.__name__ = f"{name}_at_edge" if guarded else name
        parameters = ["x, x0, line, step, n, y, y0, out_line, out_step", *_THEN * then, *_GUARDS * guarded]
        write.__doc__ = f"""{write.__name__}({", ".join(parameters)}).

        Transforms {taken} x {taken} vectors from x[x0] on to {given} x {given}. Those of a row lie `step` numbers
        apart, rows `line`; the others likewise. n is a multiple of LANES.
        """
        return written(n_args + 5 * guarded)(write)

    return made(False), made(True)


transform_data, transform_data_at_edge = _transform("transform_data", _data, 4, 4, "read")
transform_results, transform_results_at_edge = _transform("transform_results", _results, 4, 2, "written", then=True)
transform_gradients, transform_gradients_at_edge = _transform("transform_gradients", _results_back, 2, 4, "read")
transform_filters, _ = _transform("transform_filters", _filters, 3, 4, "read")
transform_filters_back, _ = _transform("transform_filters_back", _filters_back, 4, 3, "read")


# -- tiles -------------------------------------------------------------------------------------------------------------
@helper(inline=False)
def _place(t: int, rows: int, columns: int) -> tuple[int, int, int]:
    """Image, row and column of a tile's first result."""
    image = t // (rows * columns)
    t -= image * rows * columns
    i = t // columns
    return image, 2 * i, 2 * (t - i * columns)


@helper(inline=False)
def _tiles(first: int, last: int, before: int, x: Array, v: Array, gap: int, numbers: tuple[int, ...]) -> None:
    """Transformed tiles of the data; the `before`-th is the first of v, whose places lie `gap` numbers apart."""
    height, width, channels, _, above, left, _, _, rows, columns = numbers
    zeros = np.zeros(channels, x.dtype)
    for t in range(first, last):
        image, i, j = _place(before + t, rows, columns)
        r, q = i - above, j - left
        at, line = ((image * height + r) * width + q) * channels, width * channels
        if r >= 0 and q >= 0 and r + 4 <= height and q + 4 <= width:
            transform_data(x, at, line, channels, channels, v, t * channels, 4 * gap, gap)
        else:
            ends = -r, height - r, -q, width - q
            transform_data_at_edge(x, at, line, channels, channels, v, t * channels, 4 * gap, gap, zeros, *ends)


@helper(inline=False)
def _gradients(first: int, last: int, before: int, dy: Array, e: Array, gap: int, numbers: tuple[int, ...]) -> None:
    """Likewise of the gradients of results."""
    _, _, _, filters, _, _, height, width, rows, columns = numbers
    zeros = np.zeros(filters, dy.dtype)
    for t in range(first, last):
        image, i, j = _place(before + t, rows, columns)
        at, line = ((image * height + i) * width + j) * filters, width * filters
        if i + 2 <= height and j + 2 <= width:
            transform_gradients(dy, at, line, filters, filters, e, t * filters, 4 * gap, gap)
        else:
            ends = 0, height - i, 0, width - j
            transform_gradients_at_edge(dy, at, line, filters, filters, e, t * filters, 4 * gap, gap, zeros, *ends)


@helper(inline=False)
def _put(
    first: int,
    last: int,
    before: int,
    m: Array,
    gap: int,
    y: Array,
    bias: Array,
    add: bool,
    low: np.float32,
    slope: Array,
    numbers: tuple[int, ...],
) -> None:
    """The results of tiles, of products whose places lie `gap` numbers apart."""
    _, _, _, filters, _, _, height, width, rows, columns = numbers
    spare = np.empty(filters, y.dtype)
    for t in range(first, last):
        image, i, j = _place(before + t, rows, columns)
        at, line = ((image * height + i) * width + j) * filters, width * filters
        if i + 2 <= height and j + 2 <= width:
            transform_results(m, t * filters, 4 * gap, gap, filters, y, at, line, filters, bias, add, low, slope)
        else:
            ends = 0, height - i, 0, width - j
            then = bias, add, low, slope
            transform_results_at_edge(m, t * filters, 4 * gap, gap, filters, y, at, line, filters, *then, spare, *ends)


# -- kernels -----------------------------------------------------------------------------------------------------------
@kernel(threshold=2)
def _by_blocks(
    first: int,
    last: int,
    x: Array,
    u: Array,
    y: Array,
    bias: Array,
    add: bool,
    low: np.float32,
    slope: Array,
    numbers: tuple[int, ...],
    total: int,
    block: int,
    v_gap: int,
    m_gap: int,
    product: int,
) -> None:
    """Items are blocks of tiles."""
    channels, filters = numbers[2], numbers[3]
    room, size = np.empty(_PLACES * (v_gap + m_gap) + LANES, x.dtype), u.size // _PLACES
    start = (-room.ctypes.data % 64) // room.itemsize
    v = room[start : start + _PLACES * v_gap]
    m = room[start + _PLACES * v_gap :]
    for item in range(first, last):
        before = item * block
        n = min(block, total - before)
        _tiles(0, n, before, x, v, v_gap, numbers)
        for p in range(_PLACES):
            multiply_packed(product, n, filters, channels, v, p * v_gap, u, p * size, 0, m, p * m_gap)
        _put(0, n, before, m, m_gap, y, bias, add, low, slope, numbers)


@kernel(threshold=2)
def _all_tiles(first: int, last: int, before: int, x: Array, v: Array, gap: int, numbers: tuple[int, ...]) -> None:
    _tiles(first, last, before, x, v, gap, numbers)


@kernel(threshold=2)
def _all_gradients(first: int, last: int, before: int, dy: Array, e: Array, gap: int, numbers: tuple[int, ...]) -> None:
    _gradients(first, last, before, dy, e, gap, numbers)


@kernel(threshold=2)
def _all_products(
    first: int,
    last: int,
    n: int,
    v: Array,
    v_gap: int,
    u: Array,
    m: Array,
    m_gap: int,
    channels: int,
    filters: int,
    product: int,
) -> None:
    """Items are places."""
    size = u.size // _PLACES
    for p in range(first, last):
        multiply_packed(product, n, filters, channels, v, p * v_gap, u, p * size, 0, m, p * m_gap)


@kernel(threshold=2)
def _all_results(
    first: int,
    last: int,
    m: Array,
    gap: int,
    y: Array,
    bias: Array,
    add: bool,
    low: np.float32,
    slope: Array,
    numbers: tuple[int, ...],
) -> None:
    _put(first, last, 0, m, gap, y, bias, add, low, slope, numbers)


@kernel(threshold=2)
def _all_sums(
    first: int,
    last: int,
    n: int,
    e: Array,
    e_gap: int,
    v: Array,
    v_gap: int,
    add: bool,
    du: Array,
    du_gap: int,
    channels: int,
    filters: int,
    product: int,
) -> None:
    """Add up products of tiles and gradients; items are places."""
    for p in range(first, last):
        multiply_strided(
            product,
            filters,
            channels,
            n,
            e,
            p * e_gap,
            1,
            filters,
            v,
            p * v_gap,
            channels,
            add,
            du,
            p * du_gap,
            channels,
        )


@kernel(threshold=2)
def _pack_filters(
    first: int, last: int, w: Array, row: int, column: int, turned: bool, rows: int, columns: int, panel: int, u: Array
) -> None:
    """Transformed filters as packed matrices; items are vectors of columns, which may lie in two panels."""
    taps, found, size = np.empty(9 * LANES, w.dtype), np.empty(_PLACES * LANES, w.dtype), u.size // _PLACES
    whole = panel % LANES == 0
    for item in range(first, last):
        begin = item * LANES
        start = begin // panel * panel
        wide = min(panel, columns - start)
        for i in range(rows):
            for j in range(LANES):
                at = i * row + (begin + j) * column
                for t in range(9):
                    taps[LANES * t + j] = w[at + (8 - t if turned else t)]
            if whole:
                transform_filters(
                    taps, 0, 3 * LANES, LANES, LANES, u, start * rows + i * wide + begin - start, 4 * size, size
                )
                continue
            transform_filters(taps, 0, 3 * LANES, LANES, LANES, found, 0, 4 * LANES, LANES)
            for half in range(0, LANES, LANES // 2):
                start = (begin + half) // panel * panel
                wide = min(panel, columns - start)
                to = start * rows + i * wide + begin + half - start
                for p in range(_PLACES):
                    for j in range(LANES // 2):
                        u[p * size + to + j] = found[LANES * p + half + j]


@kernel(threshold=2)
def _all_filters(first: int, last: int, du: Array, gap: int, channels: int, dw: Array) -> None:
    """The gradient of filters (filters, channels, 3, 3); items are filters."""
    taps = np.empty(9 * LANES, dw.dtype)
    for f in range(first, last):
        for c in range(0, channels, LANES):
            transform_filters_back(du, f * channels + c, 4 * gap, gap, LANES, taps, 0, 3 * LANES, LANES)
            at = (f * channels + c) * 9
            for j in range(LANES):
                for t in range(9):
                    dw[at + 9 * j + t] = taps[LANES * t + j]


def _room(n: int) -> Array:
    """Numbers that begin where a line of a cache does."""
    a = memory.empty((n + LANES,), np.dtype(np.float32), 1)
    start = -a.ctypes.data % 64 // a.itemsize
    return a[start : start + n]


# -- arrays ------------------------------------------------------------------------------------------------------------
def filters_size(channels: int, filters: int) -> int:
    """Numbers of transformed filters."""
    return _PLACES * _gap(packed_size(channels, filters, np.dtype(np.float32)))


def filters(weight: Array, back: bool = False) -> Array:
    """Transformed filters, as :func:`convolution` takes them.

    Parameters
    ----------
    weight : ndarray, (filters, channels, 3, 3)
    back : bool
        For the gradient of the data: what is a filter there is a channel here, and windows are turned.

    Returns
    -------
    ndarray
        Of one dimension.
    """
    n, channels = weight.shape[:2]
    u = _room(filters_size(n, channels) if back else filters_size(channels, n))
    filters_into(weight, u, back)
    return u


def filters_into(weight: Array, u: Array, back: bool = False) -> None:
    """Write transformed filters to an array of :func:`filters_size` numbers."""
    weight = dense(weight)
    n, channels = weight.shape[:2]
    rows, columns, row, column = (n, channels, 9 * channels, 9) if back else (channels, n, 9, 9 * channels)
    panel = products.PANEL * products.vector(weight.itemsize)
    _pack_filters(columns // LANES, weight.reshape(-1), row, column, back, rows, columns, panel, u)


def convolution(
    t: Tiling,
    x: Array,
    u: Array,
    bias: Array | None,
    out: Array,
    add: bool = False,
    low: float = -np.inf,
    slope: Array | None = None,
) -> None:
    """Convolve images; `u` are transformed filters.

    Parameters
    ----------
    t : Tiling
    x : ndarray, (n, height, width, channels)
    u : ndarray
        From :func:`filters`.
    bias : ndarray, (filters,), optional
    out : ndarray, (n, *t.out, filters)
    add : bool
        To what is there.
    low : float
        Smaller sums become this.
    slope : ndarray, (filters,), optional
        By which negative sums are then multiplied.
    """
    x, product = flat(x), address(out.dtype)
    bias = np.zeros(t.filters, out.dtype) if bias is None else dense(bias)
    slope = np.ones(t.filters, out.dtype) if slope is None else dense(slope)
    then = bias, add, np.float32(low), slope
    bytes_, total = _PLACES * (t.channels + t.filters) * out.itemsize, t.total
    block = max(24, _NEAR // bytes_)
    if u.nbytes > _LARGE:
        block = max(block, _MANY)
    with writable(out) as (y,):
        y = y.reshape(-1)
        if total < 4 * block * threads.count() and total * bytes_ <= _SHARED:
            v_gap, m_gap = _gap(total * t.channels), _gap(total * t.filters)
            v, m = (_room(_PLACES * gap) for gap in (v_gap, m_gap))
            _all_tiles(total, 0, x, v, v_gap, t.numbers)
            _all_products(_PLACES, total, v, v_gap, u, m, m_gap, t.channels, t.filters, product)
            _all_results(total, m, m_gap, y, *then, t.numbers)
        else:
            gaps = _gap(block * t.channels), _gap(block * t.filters)
            _by_blocks(-(-total // block), x, u, y, *then, t.numbers, total, block, *gaps, product)


def weight_gradient(t: Tiling, x: Array, dy: Array, out: Array) -> None:
    """The gradient of the filters.

    Parameters
    ----------
    t : Tiling
    x : ndarray, (n, height, width, channels)
    dy : ndarray, (n, *t.out, filters)
        Of the results.
    out : ndarray, (filters, channels, 3, 3)
    """
    x, dy, product = flat(x), flat(dy), address(out.dtype)
    bytes_ = _PLACES * (t.channels + t.filters) * out.itemsize
    least = _LEAST if _PLACES * t.channels * t.filters * out.itemsize <= _LARGE else _MANY_SUMS
    some = min(t.total, max(least, _SUMMED // bytes_))
    gaps = v_gap, e_gap, du_gap = [_gap(n) for n in (some * t.channels, some * t.filters, t.filters * t.channels)]
    v, e, du = (_room(_PLACES * gap) for gap in gaps)
    for before in range(0, t.total, some):
        n = min(some, t.total - before)
        _all_tiles(n, before, x, v, v_gap, t.numbers)
        _all_gradients(n, before, dy, e, e_gap, t.numbers)
        _all_sums(_PLACES, n, e, e_gap, v, v_gap, before > 0, du, du_gap, t.channels, t.filters, product)
    with writable(out) as (dw,):
        _all_filters(t.filters, du, du_gap, t.channels, dw.reshape(-1))
