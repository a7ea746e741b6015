"""The operators of ``mx.np`` that put elements into arrays along an axis, or leave some out, and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.infer import known
from ..._core.op import op
from ..._core.params import Params
from ...parameters import Float, Int, Str
from ...typing import Array, Call, Operators
from ..common.gradients import given
from ..common.rules import axis_of, first_dtype, size_of

__all__: list[str] = []

_PLACES = {"start": Int(None), "stop": Int(None), "step": Int(None), "int_ind": Int(None), "axis": Int(None)}


def _seen(p: Params, shape: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    """The shape in which an operator sees its array, flat without an axis, and the axis."""
    if p.axis is None:
        return (size_of(shape),), 0
    return shape, axis_of(p.axis, len(shape))


def _told(p: Params, n: int, inserts: bool) -> Any:
    """The places along an axis of length `n` that the parameters tell: one, or those of a slice."""
    if p.int_ind is None:
        return np.arange(*slice(p.start, p.stop, p.step).indices(n))
    if not -n <= p.int_ind < n + inserts:
        raise IndexError(f"index {p.int_ind} is out of bounds for an axis of length {n}")
    return np.array([p.int_ind + n * (p.int_ind < 0)])


def _listed(xp: Any, obj: Any, n: int, inserts: bool) -> Any:
    """The places that an array of integers holds, negative ones counted from the end."""
    i = obj.astype(np.int64).reshape(-1)
    if i.size and not (i.min().item() >= -n and i.max().item() < n + inserts):
        raise IndexError(f"an index is out of bounds for an axis of length {n}")
    return xp.where(i < 0, i + n, i)


# -- delete ----------------------------------------------------------------------------------------------------


def _kept(k: Call, p: Params, n: int, obj: Any) -> Any:
    """Which places along the axis stay."""
    stays = k.xp.ones((n,), dtype=np.bool_)
    if obj:
        stays[_listed(k.xp, obj[0], n, False)] = False
    else:
        stays[k.xp.asarray(_told(p, n, False))] = False
    return k.xp.flatnonzero(stays)


def _by_tensor(p: Params) -> bool:
    return p.int_ind is None and p.start is None and p.stop is None and p.step is None


_NO_PLACE = "int_ind is None and start is None and stop is None and step is None"


@op(
    "_npi_delete",
    inputs=f"arr obj[{_NO_PLACE}]",
    **_PLACES,
    grad=lambda F, p, dy, like_arr, obj=None: (
        F._npi_delete_spread(dy, like_arr, *(() if obj is None else (obj,)), **given(p, _PLACES)),
        *(() if obj is None else (None,)),
    ),
)
def delete(k: Call, p: Params, arr: Array, *obj: Array) -> Array:
    """An array without some places along an axis.

    Parameters
    ----------
    arr : array
    obj : array
        The places, where no parameter tells them.
    start, stop, step : int, optional
        The places: those of a slice.
    int_ind : int, optional
        The place.
    axis : int, optional
        The flattened array unless told.
    """
    shape, axis = _seen(p, tuple(arr.shape))
    return k.xp.take(arr.reshape(shape), _kept(k, p, shape[axis], obj), axis)


@delete.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    shape, axis = _seen(p, ins[0])
    if len(ins) > 1:
        return [None]
    gone = len(set(_told(p, shape[axis], False).tolist()))
    return [(*shape[:axis], shape[axis] - gone, *shape[axis + 1 :])]


delete.dtype(first_dtype)


@op(
    "_npi_delete_spread",
    inputs=f"data like~ obj[{_NO_PLACE}]",
    **_PLACES,
    grad=lambda F, p, dy, obj=None: (
        F._npi_delete(dy, *(() if obj is None else (obj,)), **given(p, _PLACES)),
        None,
        *(() if obj is None else (None,)),
    ),
)
def delete_spread(k: Call, p: Params, data: Array, like: Array, *obj: Array) -> Array:
    """Zeros like `like` with `data` at the places that `_npi_delete` leaves: its gradient.

    Parameters
    ----------
    data : array
    like : array
        Only its shape is used.
    obj : array
    start, stop, step, int_ind, axis
        As in `_npi_delete`.
    """
    shape, axis = _seen(p, tuple(like.shape))
    out = k.xp.zeros(shape, data.dtype)
    out[(slice(None),) * axis + (_kept(k, p, shape[axis], obj),)] = data
    return out.reshape(like.shape)


delete_spread.shape(lambda p, ins: [ins[1]])
delete_spread.dtype(first_dtype)


# -- insert ----------------------------------------------------------------------------------------------------


def _values_shape(values: tuple[int, ...], ndim: int, axis: int, one: bool) -> tuple[tuple[int, ...], int]:
    """The shape in which values are put in, and how many places they take; for `one` place, their first axis is it."""
    full = (1,) * (ndim - len(values)) + values
    if one:  # NumPy's: values for one place stand along the axis, which comes first
        first, *rest = full
        full = (*rest[:axis], first, *rest[axis:])
    return full, full[axis]


def _targets(k: Call, p: Params, n: int, obj: Any, new: int) -> tuple[Any, Any]:
    """Where, along the axis of the result, the new elements and the old ones stand."""
    xp = k.xp
    at = _listed(xp, obj[0], n, True) if obj else xp.asarray(_told(p, n, True))
    if at.size == 1:
        places = at + xp.arange(new)
    else:
        order = xp.argsort(at, kind="stable")
        places = at.copy()
        places[order] = at[order] + xp.arange(at.size)
    old = xp.ones((n + places.size,), dtype=np.bool_)
    old[places] = False
    return places, xp.flatnonzero(old)


def _how_many(p: Params, n: int, obj: Any, new: int) -> int:
    """How many places the new elements take along the axis; `obj` holds the shape of places, if any."""
    count = size_of(obj[0]) if obj else _told(p, n, True).size
    return new if count == 1 else int(count)


def _one_place(p: Params, obj: Any) -> bool:
    return p.int_ind is not None or bool(obj) and len(obj[0]) == 0


def _inserting(name: str, where: str) -> Any:
    tensor = name.endswith("tensor")
    inputs = "arr values[val is None]" + (" obj" if tensor else "")
    params = {"val": Float(None), **_PLACES}

    def parts(F: Operators, p: Params, dy: Any, arr: Any, values: Any, *obj: Any) -> Any:
        told = {**given(p, _PLACES), "val": p.val, "of": name}
        found = F._npi_insert_parts(dy, arr, *([] if values is None else [values]), *obj, **told)
        if values is None:
            return (found, *[None] * len(obj))
        return (found[0], F._sum_like(F._cast_like(found[1], values), values), *[None] * len(obj))

    def of_told(F: Operators, p: Params, dy: Any, like_arr: Any, like_values: Any = None) -> Any:
        return parts(F, p, dy, like_arr, like_values)

    def of_tensor(F: Operators, p: Params, dy: Any, like_arr: Any, obj: Any, like_values: Any = None) -> Any:
        return parts(F, p, dy, like_arr, like_values, obj)

    @op(
        name,
        inputs=inputs,
        params=params,
        grad=of_tensor if tensor else of_told,
        doc=f"""An array with elements put in along an axis, {where}.

    Parameters
    ----------
    arr : array
    values : array
        What is put in, broadcast to the places.
    {"obj : array" if tensor else "start, stop, step : int, optional"}
        The places{"" if tensor else " of a slice"}, counted in `arr`.
    val : float, optional
        A number in the place of `values`.
    {"start, stop, step, int_ind" if tensor else "int_ind"} : int, optional
        {"Are not there." if tensor else "The place."}
    axis : int, optional
        The flattened array unless told.
    """,
    )
    def body(k: Call, p: Params, arr: Array, *more: Array) -> Array:
        values = k.xp.full((), p.val, arr.dtype) if p.val is not None else more[0].astype(arr.dtype, copy=False)
        obj = more[p.val is None :]
        shape, axis = _seen(p, tuple(arr.shape))
        full, new = _values_shape(tuple(values.shape), len(shape), axis, _one_place(p, [o.shape for o in obj]))
        if p.int_ind is not None or obj and obj[0].ndim == 0:
            lead = values.reshape((1,) * (len(shape) - values.ndim) + tuple(values.shape))
            values = k.xp.moveaxis(lead, 0, axis)
        places, old = _targets(k, p, shape[axis], obj, new)
        out = k.xp.empty((*shape[:axis], shape[axis] + places.shape[0], *shape[axis + 1 :]), arr.dtype)
        before = (slice(None),) * axis
        out[before + (places,)] = values
        out[before + (old,)] = arr.reshape(shape)
        return out

    @body.shape
    def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
        if not all(map(known, ins)):
            return ins, outs
        shape, axis = _seen(p, ins[0])
        if not shape:
            raise ValueError("arr must have dimensions")
        values = () if p.val is not None else ins[1]
        obj = ins[1 + (p.val is None) :]
        if len(values) > len(shape):
            raise ValueError(f"values {values} have more dimensions than arr {shape}")
        _, new = _values_shape(values, len(shape), axis, _one_place(p, obj))
        n = _how_many(p, shape[axis], obj, new)
        return ins, [(*shape[:axis], shape[axis] + n, *shape[axis + 1 :])]

    body.dtype(first_dtype)
    return body


INSERTS = [
    _inserting("_npi_insert_scalar", "at one place"),
    _inserting("_npi_insert_slice", "at the places of a slice"),
    _inserting("_npi_insert_tensor", "at the places that an array holds"),
]


def _together(F: Operators, p: Params, dys: Any, obj: Any = None) -> Any:
    """The gradient of taking apart: put together again."""
    told = {**given(p, _PLACES), **({} if p.val is None else {"val": 0.0})}
    parts = [*dys, *([] if obj is None else [obj])]
    return (getattr(F, p.of)(*parts, **told), *[None] * len(parts))


@op(
    "_npi_insert_parts",
    inputs="dy arr~ values~[val is None] obj[of == '_npi_insert_tensor']",
    outputs="old new[val is None]",
    grad=_together,
    of=Str(),
    val=Float(None),
    **_PLACES,
)
def insert_parts(k: Call, p: Params, dy: Array, arr: Array, *more: Array) -> Any:
    """The old elements of an array into which others were put, and those: the gradient of inserting.

    Parameters
    ----------
    dy : array
    arr, values : array
        Only their shapes are used.
    obj : array
    of : str
        The operator that put them in.
    val, start, stop, step, int_ind, axis
        As there.
    """
    shape, axis = _seen(p, tuple(arr.shape))
    values, obj = () if p.val is not None else tuple(more[0].shape), more[p.val is None :]
    one = _one_place(p, [o.shape for o in obj])
    full, new = _values_shape(values, len(shape), axis, one)
    places, old = _targets(k, p, shape[axis], obj, new)
    found = k.xp.take(dy, old, axis).reshape(arr.shape)
    if p.val is not None:
        return found
    part = k.xp.take(dy, places, axis)
    return found, k.xp.moveaxis(part, axis, 0).copy() if one else part


@insert_parts.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    dy, arr, *more = ins
    if p.val is not None:
        return [arr]
    shape, axis = _seen(p, arr)
    values, obj = more[0], more[1:]
    one = _one_place(p, obj)
    _, new = _values_shape(values, len(shape), axis, one)
    n = _how_many(p, shape[axis], obj, new)
    rest = (*shape[:axis], *shape[axis + 1 :])
    return [arr, (n, *rest) if one else (*shape[:axis], n, *shape[axis + 1 :])]


insert_parts.dtype(lambda p, ins, outs: (ins, [ins[0]] * len(outs)))
