"""Picking and placing single elements: pick, one_hot, gather_nd, scatter_nd, index arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.infer import known, merge_dtype
from ..._core.op import op
from ..._core.params import Params
from ...elementwise import held
from ...parameters import Bool, Enum, Float, Int, Shape
from ...typing import Array, Call
from ..common.dtypes import Among
from ..common.rules import axis_of, first_dtype, reduced, size_of, whole
from .take import within

__all__: list[str] = []


PICK_PARAMS = {"axis": Int(-1, optional=True), "keepdims": Bool(False), "mode": Enum("clip wrap", "clip")}


def pick_axis(p: Params, ndim: int) -> int:
    """The axis of pick, counted from the front; it must be given."""
    if p.axis is None:
        raise ValueError("pick needs an axis")
    return axis_of(p.axis, ndim)


def pick_places(k: Call, p: Params, shape: tuple[int, ...], index: Any) -> tuple[Any, int]:
    """The indices as places along the axis, one kept dimension there, and the axis."""
    axis = pick_axis(p, len(shape))
    places = within(k.xp, index, shape[axis], p.mode)
    return places.reshape(reduced(shape, (axis,), True)), axis


@op(
    "pick",
    "choose_element_0index",
    inputs="data index",
    **PICK_PARAMS,
    grad=lambda F, p, dy, like_data, index: (
        F._backward_pick(dy, like_data, index, axis=p.axis, keepdims=p.keepdims, mode=p.mode),
        None,
    ),
)
def pick(k: Call, p: Params, data: Array, index: Array) -> Array:
    """One element for each place along an axis.

    Parameters
    ----------
    data : array
    index : array
        Which element: of the shape of `data` without the axis, or with length 1 there.
    axis : int
    keepdims : bool
        Keep the axis with length 1.
    mode : {'clip', 'wrap'}
        What becomes of an index out of range: the nearest valid one, or the index modulo the length.
    """
    places, axis = pick_places(k, p, data.shape, index)
    return k.xp.take_along_axis(data, places, axis).reshape(reduced(data.shape, (axis,), p.keepdims))


@pick.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    data, index = ins
    if data is None:
        return ins, outs
    axis = pick_axis(p, len(data))
    if known(data) and known(index) and index not in (reduced(data, (axis,), False), reduced(data, (axis,), True)):
        raise ValueError(
            f"index {index} must have the shape of data {data} without axis {p.axis}, or with length 1 there"
        )
    return [data, reduced(data, (axis,), False) if index is None else index], [reduced(data, (axis,), p.keepdims)]


pick.dtype(first_dtype)


@op(
    "batch_take",
    inputs="a indices",
    grad=lambda F, dy, like_a, indices: (F._backward_pick(dy, like_a, indices, axis=1), None),
)
def batch_take(k: Call, p: Params, a: Array, indices: Array) -> Array:
    """One element of each row.

    Parameters
    ----------
    a : array, (n, m)
    indices : array, (n,)
        Columns; those out of range are clipped.
    """
    places = within(k.xp, indices, a.shape[1], "clip").reshape(-1, 1)
    return k.xp.take_along_axis(a, places, 1).reshape(indices.shape)


@batch_take.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    a, i = ins
    if len(a) != 2 or i not in ((a[0],), (a[0], 1)):
        raise ValueError(f"a {a} must be a matrix and indices {i} hold one column for each row")
    return [i]


@batch_take.dtype
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    return [ins[0] or outs[0], ins[1] or np.dtype("int32")], [ins[0] or outs[0]]


def _two_alike(*which: int) -> Any:
    """A dtype rule: two of the inputs, and the output, have one dtype."""

    def rule(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
        t = merge_dtype(merge_dtype(*[ins[i] for i in which]), outs[0])
        return [t if i in which else old for i, old in enumerate(ins)], [t]

    return rule


@op("fill_element_0index", inputs="lhs mhs rhs")
def fill_element_0index(k: Call, p: Params, lhs: Array, mhs: Array, rhs: Array) -> Array:
    """`lhs` with one element of each row replaced.

    Parameters
    ----------
    lhs : array, (n, m)
    mhs : array, (n,)
        The new elements.
    rhs : array, (n,)
        Their columns; a row whose column is out of range stays as it is.
    """
    xp = k.xp
    out, cols = lhs.copy(), whole(xp, rhs)
    rows = xp.flatnonzero((cols >= 0) & (cols < lhs.shape[1]))
    out[rows, cols[rows]] = mhs[rows]
    return out


@fill_element_0index.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    lhs, mhs, rhs = ins
    if len(lhs) != 2 or mhs != lhs[:1] or rhs != lhs[:1]:
        raise ValueError(f"lhs {lhs} must be a matrix, mhs {mhs} and rhs {rhs} hold one item for each row")
    return [lhs]


fill_element_0index.dtype(_two_alike(0, 1))


@op(
    "one_hot",
    inputs="indices",
    depth=Int(ge=0),
    on_value=Float(1.0),
    off_value=Float(0.0),
    dtype=Among("float32", names="uint8 int8 int32 int64 float16 float32 float64 bfloat16"),
    grad=None,
)
def one_hot(k: Call, p: Params, indices: Array) -> Array:
    """Rows with one element set: the index-th.

    Parameters
    ----------
    indices : array
        Of any shape; an index out of range sets nothing.
    depth : int
        Length of the rows.
    on_value, off_value : float
        The element set, and the others; integers wrap, as those of `full`.
    dtype : dtype
    """
    xp = k.xp
    flat = whole(xp, indices).reshape(-1)
    out = xp.full((flat.shape[0], p.depth), held(p.off_value, p.dtype), p.dtype)
    rows = xp.flatnonzero((flat >= 0) & (flat < p.depth) & (indices == indices).reshape(-1))  # NaN is no index
    out[rows, flat[rows]] = held(p.on_value, p.dtype)
    return out.reshape(*indices.shape, p.depth)


one_hot.shape(lambda p, ins: [(*ins[0], p.depth)])


@one_hot.dtype
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    if p.dtype.kind in "iu" and not (np.isfinite(p.on_value) and np.isfinite(p.off_value)):
        raise ValueError(f"on_value={p.on_value} and off_value={p.off_value} must be finite for dtype {p.dtype}")
    return ins, [p.dtype]


def point_places(indices: Any) -> tuple[Any, ...]:
    """A NumPy index from an array whose rows are the coordinates."""
    i = indices.astype(np.int64)
    return tuple(i[j] for j in range(i.shape[0]))


def _gathered(data: tuple[int, ...], indices: tuple[int, ...]) -> tuple[int, ...]:
    if len(indices) < 2 or not indices[0]:
        raise ValueError(f"indices {indices} need two dimensions, coordinates and places, and at least one coordinate")
    if indices[0] > len(data):
        raise ValueError(f"indices {indices} give {indices[0]} coordinates for an array of {len(data)} dimensions")
    return (*indices[1:], *data[indices[0] :])


@op(
    "gather_nd",
    inputs="data indices",
    grad=lambda F, dy, like_data, indices: (F._backward_gather_nd(dy, indices, like_data), None),
)
def gather_nd(k: Call, p: Params, data: Array, indices: Array) -> Array:
    """The elements (or sub-arrays) at given coordinates; coordinates out of range are an error.

    Parameters
    ----------
    data : array
    indices : array, (m, ...)
        Row i holds the coordinates along axis i; negative ones count from the end.
    """
    return data[point_places(indices)]


gather_nd.shape(lambda p, ins: [_gathered(*ins)])
gather_nd.dtype(first_dtype)


def _scattered(shape: tuple[int, ...], data: tuple[int, ...], indices: tuple[int, ...]) -> tuple[int, ...]:
    wanted = _gathered(shape, indices)
    if data != wanted:
        raise ValueError(f"the elements have shape {data}; indices {indices} into {shape} need {wanted}")
    return shape


@op("scatter_nd", inputs="data indices", shape=Shape(), grad=lambda F, dy, indices: (F.gather_nd(dy, indices), None))
def scatter_nd(k: Call, p: Params, data: Array, indices: Array) -> Array:
    """Zeros with elements (or sub-arrays) at given coordinates; of equal coordinates the last wins.

    Parameters
    ----------
    data : array
    indices : array, (m, ...)
        Row i holds the coordinates along axis i.
    shape : tuple of int
        Of the result.
    """
    out = k.xp.zeros(p.shape, data.dtype)
    out[point_places(indices)] = data
    return out


@scatter_nd.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    if known(ins[0]) and known(ins[1]):
        _scattered(p.shape, *ins)
    return ins, [p.shape]


scatter_nd.dtype(first_dtype)


@op(
    "_scatter_set_nd",
    inputs="lhs rhs indices",
    shape=Shape(),
    alias="lhs->output",
    grad=lambda F, p, dy, like_rhs, indices: (
        F._scatter_set_nd(dy, F.zeros_like(like_rhs), indices, shape=p.shape),
        F.gather_nd(dy, indices),
        None,
    ),
)
def scatter_set_nd(k: Call, p: Params, lhs: Array, rhs: Array, indices: Array) -> Array:
    """`lhs` with the elements at given coordinates replaced.

    Parameters
    ----------
    lhs : array
    rhs : array
        The new elements.
    indices : array, (m, ...)
        Row i holds the coordinates along axis i.
    shape : tuple of int
        That of `lhs`.
    """
    out = lhs.copy()
    out[point_places(indices)] = rhs
    return out


scatter_set_nd.shape(lambda p, ins: [_scattered(*ins)])
scatter_set_nd.dtype(_two_alike(0, 1))


def _inside(places: Any, n: int, what: str) -> Any:
    """Whole numbers from 0 to below `n`, which is open if it is below 0."""
    i = places.astype(np.int64)
    if i.size:
        low, high = i.min().item(), i.max().item()
        if low < 0 or high >= n >= 0:
            raise IndexError(
                f"{what} {low if low < 0 else high} is out of range"
                + (f" [0, {n})" if n >= 0 else ": it must not be below 0")
            )
    return i


def _strides(shape: tuple[int, ...]) -> list[int]:
    return [size_of(shape[i + 1 :]) for i in range(len(shape))]


@op("_ravel_multi_index", "ravel_multi_index", inputs="data", labels="inputs", shape=Shape(None), grad=None)
def ravel_multi_index(k: Call, p: Params, data: Array) -> Array:
    """Coordinates to places in the flattened array.

    Parameters
    ----------
    data : array, (len(shape), ...)
        Row i holds the coordinates along axis i.
    shape : tuple of int
        Of the array; the first length may be -1, and is as long as it takes then.
    """
    flat: Any = 0
    for axis, (d, stride) in enumerate(zip(p.shape, _strides(p.shape))):
        flat = flat + _inside(data[axis : axis + 1], d, f"on axis {axis} of shape {p.shape}, coordinate") * stride
    return flat.reshape(data.shape[1:] or (1,))


@ravel_multi_index.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    data, flat = ins[0], outs[0]
    if not p.shape:
        raise ValueError("the parameter shape is missing")
    if data is None:
        return [None if flat is None else (len(p.shape), *flat)], outs
    if data[:1] not in ((len(p.shape),), (-1,)):
        raise ValueError(f"data {data} must have one row for each dimension of shape {p.shape}")
    return [(len(p.shape), *data[1:])], [data[1:] or (1,)]


@op("_unravel_index", "unravel_index", inputs="data", labels="inputs", shape=Shape(None), grad=None)
def unravel_index(k: Call, p: Params, data: Array) -> Array:
    """Places in the flattened array to coordinates.

    Parameters
    ----------
    data : array
    shape : tuple of int
        Of the array; the first length may be -1, and is as long as it takes then.
    """
    flat = _inside(data, size_of(p.shape), f"in shape {p.shape}, place")
    rows = [
        flat // stride % d if i else flat // stride for i, (d, stride) in enumerate(zip(p.shape, _strides(p.shape)))
    ]
    return k.xp.stack(rows, 0)


@unravel_index.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    if not p.shape:
        raise ValueError("the parameter shape is missing")
    flat = ins[0] if ins[0] is not None else outs[0] and outs[0][1:]
    return [flat], [flat and (len(p.shape), *flat)]


@op(
    "_contrib_index_copy",
    inputs="old_tensor index_vector new_tensor",
    grad=lambda F, dy, index_vector, like_new_tensor: (
        F._contrib_index_copy(dy, index_vector, F.zeros_like(like_new_tensor)),
        None,
        F.take(dy, index_vector, axis=0),
    ),
)
def index_copy(k: Call, p: Params, old_tensor: Array, index_vector: Array, new_tensor: Array) -> Array:
    """An array with rows replaced.

    Parameters
    ----------
    old_tensor : array
    index_vector : array, 1-D
        Which rows.
    new_tensor : array
        The new rows.
    """
    out = old_tensor.copy()
    out[index_vector.astype(np.int64)] = new_tensor
    return out


@index_copy.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    old, index, new = ins
    if len(index) != 1 or new != index + old[1:]:
        raise ValueError(f"new_tensor {new} must be the rows that index_vector {index} names in old_tensor {old}")
    return [old]


index_copy.dtype(_two_alike(0, 2))


@op("_contrib_index_array", inputs="data~", labels="inputs outputs", axes=Shape(None), grad=None)
def index_array(k: Call, p: Params, data: Array) -> Array:
    """The coordinates of every element.

    Parameters
    ----------
    data : array
        Only its shape is used.
    axes : tuple of int, optional
        Which coordinates; all unless told.
    """
    xp, shape = k.xp, tuple(data.shape)
    axes = range(len(shape)) if p.axes is None else [axis_of(a, len(shape)) for a in p.axes]
    out = xp.empty((*shape, len(axes)), np.int64)
    for j, a in enumerate(axes):
        out[..., j] = xp.arange(shape[a]).reshape(tuple(-1 if i == a else 1 for i in range(len(shape))))
    return out


@index_array.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    n = len(ins[0])
    return [(*ins[0], n if p.axes is None else len([axis_of(a, n) for a in p.axes]))]


index_array.dtype(lambda p, ins, outs: (ins, [np.dtype("int64")]))
