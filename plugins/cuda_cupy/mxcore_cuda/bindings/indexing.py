"""Rows and elements chosen by index, and the gradients of the choice, summed up in one order."""

from __future__ import annotations

import math

import numpy as np

from mxcore.layouts import spread
from mxcore.plugin import Call, Params, RowSparse, Spec, held

from ..dtypes import FLOATS, MOVED, name_of
from ..places import INDICES, Places, index
from .common import Array, Outs, binds, few, gpu, helpers, is_float, kernel_for


def _fits(a: Spec, indices: Spec, *rest: Spec, dtypes: tuple[str, ...] = MOVED) -> bool:
    return name_of(a.dtype) in dtypes and name_of(indices.dtype) in INDICES and few(a, indices, *rest)


def _places(k: Call, count: int) -> Places:
    return Places(k.device, k.ctx.device_id, count)


# -- rows --------------------------------------------------------------------------------------------------------------
def _take(k: Call, a: Array, indices: Array, out: Array, axis: int, wraps: bool) -> None:
    _, n, tail = spread(a.shape, axis)
    run = kernel_for(k, "indexing", "take", out.dtype)
    run.each(out.size, a, *index(indices), out, out.size, indices.size, n, tail, wraps)


def _taken(p: Params, a: Spec, indices: Spec) -> bool:
    # Who wants an error for what is out of range waits for the indices to be looked at.
    return p.mode != "raise" and a.size > 0 and _fits(a, indices) and a.size * indices.size < 2**31 * a.shape[p.axis]


@binds("take", dtypes=None, when=_taken)
def _take_rows(k: Call, p: Params, outs: Outs, a: Array, indices: Array) -> None:
    _take(k, a, indices, outs[0], p.axis, p.mode == "wrap")


@binds("Embedding", dtypes=None, when=lambda p, data, weight: _fits(weight, data) and data.size * p.output_dim < 2**31)
def _embedding(k: Call, p: Params, outs: Outs, data: Array, weight: Array) -> None:
    _take(k, weight, data, outs[0], 0, False)


@binds(
    "_backward_take",
    dtypes=None,
    when=lambda p, dy, indices, like: p.mode != "raise" and like.size > 0 and _fits(dy, indices, like, dtypes=FLOATS),
)
def _backward_take(k: Call, p: Params, outs: Outs, dy: Array, indices: Array, like: Array) -> None:
    lead, n, tail = spread(like.shape, p.axis)
    places = _places(k, indices.size)
    places.along(indices, n, p.mode == "wrap")
    places.add_rows(dy, outs[0], lead, n, tail)


def _embedded(p: Params, dy: Spec, data: Spec, weight: Spec) -> bool:
    return dy.stype == "default" and _fits(dy, data, weight, dtypes=FLOATS)


@binds("_backward_Embedding", dtypes=None, when=lambda p, *specs: not p.sparse_grad and _embedded(p, *specs))
def _backward_embedding(k: Call, p: Params, outs: Outs, dy: Array, data: Array, weight: Array) -> None:
    places = _places(k, data.size)
    places.along(data, p.input_dim, False)
    places.add_rows(dy, outs[0], 1, p.input_dim, p.output_dim)


@gpu.kernel("_backward_Embedding", when=lambda p, *specs: p.sparse_grad and _embedded(p, *specs))
def _sparse_backward_embedding(k: Call, p: Params, dy: Array, data: Array, weight: Array) -> RowSparse:
    dense, data = map(k.xp.ascontiguousarray, (dy, data))
    places = _places(k, data.size)
    places.along(data, p.input_dim, False)
    rows = places.distinct()
    values = k.device.empty((rows.size, p.output_dim), dy.dtype, k.ctx.device_id)
    places.add_rows(dense, values, 1, rows.size, p.output_dim)
    return RowSparse((p.input_dim, p.output_dim), rows.astype(np.int64), values)


# -- coordinates -------------------------------------------------------------------------------------------------------
def _points(k: Call, indices: Array, shape: tuple[int, ...]) -> tuple[Places, int]:
    """The places of coordinates, and how many there are; negative coordinates count from the end."""
    m = indices.shape[0]
    places = _places(k, indices.size // m)
    for axis in range(m):
        places.along(indices, shape[axis], True, row=axis, first=axis == 0)
    return places, math.prod(shape[:m])


@binds(
    "_backward_gather_nd",
    dtypes=None,
    when=lambda p, dy, indices, like: like.size > 0 and _fits(dy, indices, like, dtypes=FLOATS),
)
def _backward_gather_nd(k: Call, p: Params, outs: Outs, dy: Array, indices: Array, like: Array) -> None:
    places, n = _points(k, indices, like.shape)
    places.add_rows(dy, outs[0], 1, n, like.size // n)


def _set_at(k: Call, rows: Array, indices: Array, out: Array) -> None:
    """Write rows to coordinates; of those with equal ones the last."""
    if not rows.size:
        return
    points, _ = _points(k, indices, out.shape)
    places, order = points.ranked()
    tail = rows.size // points.count
    run = kernel_for(k, "indexing", "set_last", out.dtype)
    run.each(rows.size, rows, places, order, out, points.count, tail)


@binds("scatter_nd", dtypes=None, when=lambda p, data, indices: 0 < math.prod(p.shape) < 2**31 and _fits(data, indices))
def _scatter_nd(k: Call, p: Params, outs: Outs, data: Array, indices: Array) -> None:
    outs[0][...] = 0
    _set_at(k, data, indices, outs[0])


@binds("_scatter_set_nd", dtypes=None, when=lambda p, lhs, rhs, indices: lhs.size > 0 and _fits(lhs, indices, rhs))
def _scatter_set_nd(k: Call, p: Params, outs: Outs, lhs: Array, rhs: Array, indices: Array) -> None:
    if outs[0] is not lhs:
        outs[0][...] = lhs
    _set_at(k, rhs, indices, outs[0])


# -- indices of NumPy's kind -------------------------------------------------------------------------------------------
def _subscripts(
    k: Call, p: Params, shape: tuple[int, ...], indices: tuple[Array, ...]
) -> tuple[Places, tuple[int, ...]]:
    """The places of the elements that are indexed, and the shape that they have together."""
    every = k.xp.arange(math.prod(shape), dtype=np.int32).reshape(shape)
    found = every[helpers("_advanced_index_spread").decoded(p.index, indices)]
    places = _places(k, found.size)
    places.found = found.reshape(-1)
    return places, found.shape


def _set_each(k: Call, places: Places, values: Array, out: Array) -> None:
    """Write values to places; of those for one place the last."""
    if places.count:
        run = kernel_for(k, "indexing", "set_last", out.dtype)
        run.each(places.count, values, *places.ranked(), out, places.count, 1)


@binds(
    "_advanced_index_spread",
    dtypes=None,
    when=lambda p, data, like, *indices: is_float(data.dtype) and like.size > 0 and few(data, like),
)
def _advanced_index_spread(k: Call, p: Params, outs: Outs, data: Array, like: Array, *indices: Array) -> None:
    places, _ = _subscripts(k, p, like.shape, indices)
    places.add_rows(data, outs[0], 1, like.size, 1)


def _set_in_order(p: Params, lhs: Spec, *indices: Spec) -> bool:
    # Masks name each place once.
    return name_of(lhs.dtype) in (*MOVED, "bool") and few(lhs) and not any(i.dtype == np.bool_ for i in indices)


@binds("_advanced_set", dtypes=None, when=lambda p, lhs, rhs, *indices: _set_in_order(p, lhs, *indices))
def _advanced_set(k: Call, p: Params, outs: Outs, lhs: Array, rhs: Array, *indices: Array) -> None:
    out = outs[0]
    if out is not lhs:
        out[...] = lhs
    places, shape = _subscripts(k, p, lhs.shape, indices)
    values = k.xp.ascontiguousarray(k.xp.broadcast_to(rhs.astype(out.dtype), shape))
    if out.dtype == np.bool_:
        out, values = out.view(np.uint8), values.view(np.uint8)
    _set_each(k, places, values, out)


@binds("_backward_advanced_set", dtypes=None, when=_set_in_order)
def _backward_advanced_set(k: Call, p: Params, outs: Outs, dy: Array, *indices: Array) -> None:
    places, shape = _subscripts(k, p, dy.shape, indices)
    order = k.xp.arange(places.count, dtype=np.int32)
    writer = k.device.empty((dy.size,), np.int32, k.ctx.device_id)
    _set_each(k, places, order, writer)
    # What is there of a place was written last.
    kept = writer[places.found] == order
    outs[0][...] = k.xp.where(kept, dy.reshape(-1)[places.found], k.xp.zeros((), dy.dtype)).reshape(shape)


# -- one element of each row -------------------------------------------------------------------------------------------
def _pick(k: Call, data: Array, indices: Array, out: Array, axis: int, wraps: bool) -> None:
    _, n, inner = spread(data.shape, axis)
    run = kernel_for(k, "indexing", "pick", out.dtype)
    run.each(out.size, data, *index(indices), out, out.size, n, inner, wraps)


def _picked(p: Params, data: Spec, indices: Spec) -> bool:
    return data.size > 0 and _fits(data, indices)


@binds("pick", dtypes=None, when=_picked)
def _pick_elements(k: Call, p: Params, outs: Outs, data: Array, indices: Array) -> None:
    _pick(k, data, indices, outs[0], p.axis, p.mode == "wrap")


@binds("batch_take", dtypes=None, when=_picked)
def _batch_take(k: Call, p: Params, outs: Outs, a: Array, indices: Array) -> None:
    _pick(k, a, indices, outs[0], 1, False)


@binds(
    "_backward_pick",
    dtypes=None,
    when=lambda p, dy, like, indices: _picked(p, like, indices) and name_of(dy.dtype) in MOVED,
)
def _backward_pick(k: Call, p: Params, outs: Outs, dy: Array, like: Array, indices: Array) -> None:
    _, n, inner = spread(like.shape, p.axis)
    run = kernel_for(k, "indexing", "pick_backward", dy.dtype)
    run.each(like.size, dy, *index(indices), outs[0], like.size, n, inner, p.mode == "wrap")


@binds(
    "one_hot",
    dtypes=None,
    when=lambda p, indices: (
        name_of(p.dtype) in MOVED and name_of(indices.dtype) in INDICES and indices.size * p.depth < 2**31
    ),
)
def _one_hot(k: Call, p: Params, outs: Outs, indices: Array) -> None:
    run = kernel_for(k, "indexing", "one_hot", outs[0].dtype)
    values = (float(held(v, p.dtype)) for v in (p.on_value, p.off_value))
    run.each(outs[0].size, *index(indices), outs[0], outs[0].size, p.depth, *values)
