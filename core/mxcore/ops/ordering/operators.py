"""Sorting and selecting by order: topk, sort, argsort."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool, Enum, Int
from ...typing import Array, Call
from ..common.bodies import wide
from ..common.dtypes import Among
from ..common.rules import axis_of, size_of

__all__: list[str] = []


#: What places may be counted in.
_PLACES = Among("float32", names="uint8 int32 int64 float16 float32 float64")


def _best(xp: Any, rows: Any, k: int, ascend: bool) -> Any:
    """Places of the first k of each row in order; of equal values the earlier one comes first."""
    rows, n = _comparable(rows), rows.shape[1]
    if 4 * k < n and n > 32:
        found = _few(xp, rows, k, ascend)
        if found is not None:
            return found
    return _sorted(xp, rows, ascend)[:, :k]


def _comparable(rows: Any) -> Any:
    """The rows as NumPy can put them in order: of bfloat16 it knows no NaN, which is the largest."""
    return wide(rows) if rows.dtype.kind == "V" else rows


def _sorted(xp: Any, rows: Any, ascend: bool) -> Any:
    rows = _comparable(rows)
    if ascend:
        return xp.argsort(rows, 1, kind="stable")
    # A stable descending order is the reverse of a stable ascending one of the reversed row.
    return rows.shape[1] - 1 - xp.argsort(rows[:, ::-1], 1, kind="stable")[:, ::-1]


def _few(xp: Any, rows: Any, k: int, ascend: bool) -> Any:
    """As `_best` for k much smaller than the row, by a partition instead of a sort; None if there are NaNs."""
    m, n = rows.shape
    edge = xp.partition(rows, k - 1, 1)[:, k - 1 : k] if ascend else xp.partition(rows, n - k, 1)[:, n - k : n - k + 1]
    inside = rows < edge if ascend else rows > edge
    tied = rows == edge
    room = k - inside.sum(1, keepdims=True)
    places = xp.flatnonzero(inside | (tied & (xp.cumsum(tied, 1) <= room)))
    if places.shape[0] != m * k:
        return None
    places = places.reshape(m, k) % n
    return xp.take_along_axis(places, _sorted(xp, xp.take_along_axis(rows, places, 1), ascend), 1)


def _as_rows(xp: Any, data: Any, axis: Any) -> tuple[Any, Any]:
    """(the axis last and the rest collapsed, the function that brings a result of rows back)."""
    if axis is None:
        return data.reshape(1, -1), lambda rows: rows.reshape(-1)
    axis = axis_of(axis, data.ndim)
    moved = xp.moveaxis(data, axis, -1)
    lead = moved.shape[:-1]
    rows = xp.ascontiguousarray(moved).reshape(size_of(lead), moved.shape[-1])
    return rows, lambda r: xp.ascontiguousarray(xp.moveaxis(r.reshape(*lead, r.shape[1]), -1, axis))


def _kept(p: Params, shape: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    """(k, the shape with k entries along the axis)."""
    axis = None if p.axis is None else axis_of(p.axis, len(shape))
    n = size_of(shape) if axis is None else shape[axis]
    if p.k > n:
        raise ValueError(f"k={p.k} is more than the {n} elements to choose from")
    k = p.k if p.k > 0 else n
    return k, (k,) if axis is None else shape[:axis] + (k,) + shape[axis + 1 :]


@op(
    "topk",
    inputs="data",
    labels="numbers",
    axis=Int(-1, optional=True),
    k=Int(1),
    ret_typ=Enum("both indices mask value", "indices"),
    is_ascend=Bool(False),
    dtype=_PLACES,
    outputs="output0 output1[ret_typ in ('both', 'value')]",
    visible=lambda p: 2 if p.ret_typ == "both" else 1,
    grad=lambda F, p, d_output0, like_data, out_output1: (
        None if out_output1 is None else F._order_spread(d_output0, out_output1, like_data, axis=p.axis)
    ),
)
def topk(k: Call, p: Params, data: Array) -> Any:
    """The k largest (or smallest) elements along an axis, in order.

    Parameters
    ----------
    data : array
    axis : int or None
        None: of the flattened array.
    k : int
        How many; below 1: all.
    ret_typ : {'value', 'indices', 'mask', 'both'}
        The elements, their places, an array of ones where they are, or elements and places.
    is_ascend : bool
        The smallest instead. NaN counts as the greatest.
    dtype : {'uint8', 'int32', 'int64', 'float16', 'float32', 'float64'}
        Of the places.
    """
    xp = k.xp
    n, shape = _kept(p, data.shape)
    if not data.size:
        empty = xp.zeros(shape, data.dtype)
        return {"indices": empty, "mask": xp.zeros(data.shape, data.dtype)}.get(
            p.ret_typ, (empty, xp.zeros(shape, np.int64))
        )
    rows, back = _as_rows(xp, data, p.axis)
    places = _best(xp, rows, n, p.is_ascend)
    if p.ret_typ == "indices":
        return back(places)
    if p.ret_typ == "mask":
        mask = xp.zeros(rows.shape, data.dtype)
        xp.put_along_axis(mask, places, xp.ones(places.shape, data.dtype), 1)
        return back(mask).reshape(data.shape)
    return back(xp.take_along_axis(rows, places, 1)), back(places)


@topk.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    _, shape = _kept(p, ins[0])
    return {"mask": [ins[0]], "indices": [shape]}.get(p.ret_typ, [shape, shape])


@topk.dtype
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    if p.ret_typ == "indices":
        return ins, [p.dtype]
    t = ins[0] or outs[0]
    # Places that nobody sees but the gradient are kept exact.
    return [t], [t, p.dtype if p.ret_typ == "both" else np.dtype("int64")][: len(outs)]


_SORT = {"axis": Int(-1, optional=True), "is_ascend": Bool(True)}


def _sort_shape(p: Params, shape: tuple[int, ...]) -> tuple[int, ...]:
    if p.axis is None:
        return (size_of(shape),)
    axis_of(p.axis, len(shape))
    return shape


@op(
    "sort",
    "_npi_sort",
    inputs="data",
    **_SORT,
    outputs="output0 output1",
    visible=1,
    grad=lambda F, p, d_output0, like_data, out_output1: F._order_spread(
        d_output0, out_output1, like_data, axis=p.axis
    ),
)
def sort(k: Call, p: Params, data: Array) -> Any:
    """The elements in order along an axis.

    Parameters
    ----------
    data : array
    axis : int or None
        None: of the flattened array.
    is_ascend : bool
        Smallest first. NaN counts as the greatest.
    """
    if not data.size:
        return data.reshape(_sort_shape(p, data.shape)), k.xp.zeros(_sort_shape(p, data.shape), np.int64)
    rows, back = _as_rows(k.xp, data, p.axis)
    places = _sorted(k.xp, rows, p.is_ascend)
    return back(k.xp.take_along_axis(rows, places, 1)), back(places)


sort.shape(lambda p, ins: [_sort_shape(p, ins[0])] * 2)
sort.dtype(lambda p, ins, outs: ([ins[0] or outs[0]], [ins[0] or outs[0], np.dtype("int64")]))


@op("argsort", "_npi_argsort", inputs="data", **_SORT, dtype=_PLACES, grad=None)
def argsort(k: Call, p: Params, data: Array) -> Array:
    """The places that put the elements in order along an axis; equal elements keep their order.

    Parameters
    ----------
    data : array
    axis : int or None
        None: of the flattened array.
    is_ascend : bool
        Smallest first. NaN counts as the greatest.
    dtype : {'uint8', 'int32', 'int64', 'float16', 'float32', 'float64'}
        Of the places.
    """
    if not data.size:
        return k.xp.zeros(_sort_shape(p, data.shape), p.dtype)
    rows, back = _as_rows(k.xp, data, p.axis)
    return back(_sorted(k.xp, rows, p.is_ascend))


argsort.shape(lambda p, ins: [_sort_shape(p, ins[0])])
argsort.dtype(lambda p, ins, outs: (ins, [p.dtype]))
