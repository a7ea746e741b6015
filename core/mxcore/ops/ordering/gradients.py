"""Gradients of the operators of :mod:`mxcore.ops.ordering`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.op import op
from ..._core.params import Params
from ...parameters import Int
from ...typing import Array, Call
from ..common.rules import axis_of, first_dtype, fits, size_of

__all__: list[str] = []


def _scattered(xp: Any, shape: tuple[int, ...], axis: Any, places: Any, values: Any) -> Any:
    """Zeros of `shape` with `values` at `places` along an axis."""
    flat = axis is None
    out = xp.zeros((size_of(shape),) if flat else shape, values.dtype)
    xp.put_along_axis(out, places.astype(np.int64), values, 0 if flat else axis_of(axis, len(shape)))
    return out.reshape(shape)


@op(
    "_order_spread",
    inputs="data places like~",
    axis=Int(None),
    grad=lambda F, p, dy, places: (F._order_pick(dy, places, axis=p.axis), None, None),
)
def order_spread(k: Call, p: Params, data: Array, places: Array, like: Array) -> Array:
    """Zeros like `like` with `data` at `places` along an axis: the gradient of `topk` and `sort`.

    Parameters
    ----------
    data, places : array
        Of one shape; the places of a row are distinct.
    like : array
        Only its shape is used.
    axis : int or None
        None: `places` are those of the flattened array.
    """
    return _scattered(k.xp, tuple(like.shape), p.axis, places, data)


@order_spread.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    fits("data", ins, [ins[1]])
    _places_shape(p, ins[1], ins[2])
    return [ins[2]]


order_spread.dtype(first_dtype)


@op(
    "_order_pick",
    inputs="data places",
    axis=Int(None),
    grad=lambda F, p, dy, like_data, places: (F._order_spread(dy, places, like_data, axis=p.axis), None),
)
def order_pick(k: Call, p: Params, data: Array, places: Array) -> Array:
    """The elements of `data` at `places` along an axis.

    Parameters
    ----------
    data, places : array
    axis : int or None
        None: `places` are those of the flattened array.
    """
    if p.axis is None:
        return k.xp.take(data.reshape(-1), places.astype(np.int64))
    return k.xp.take_along_axis(data, places.astype(np.int64), axis_of(p.axis, data.ndim))


def _places_shape(p: Params, places: Any, shape: Any) -> Any:
    """The shape of places along an axis, or of any in the flattened array."""
    if p.axis is not None:
        axis = axis_of(p.axis, len(shape))
        fits("places", [places[:axis] + places[axis + 1 :]], [shape[:axis] + shape[axis + 1 :]])
    return [places]


order_pick.shape(lambda p, ins: _places_shape(p, ins[1], ins[0]))
order_pick.dtype(first_dtype)
