"""Gradients of the operators of :mod:`mxcore.ops.slicing`."""

from __future__ import annotations

from typing import Any

from ..._core.op import op
from ..._core.params import Params
from ...typing import Array, Call
from ..common.gradients import spread
from ..common.rules import cut_along, gradient_of, undoing
from .operators import CROP_PARAMS, RANGE, SLICE_AXIS_PARAMS, axis_part_shape, axis_range, crop_box, ranges_of, sliced

__all__: list[str] = []


slice_spread = spread(
    "slice", RANGE, ranges_of, gradient_of(lambda p, ins: sliced(ins[0], ranges_of(p, ins[0]))), "in the given range"
)


def _on_axis(p: Params, shape: Any) -> Any:
    axis, begin, end = axis_range(p, shape)
    return cut_along(len(shape), axis, slice(begin, end))


slice_axis_spread = spread(
    "slice_axis", SLICE_AXIS_PARAMS, _on_axis, undoing(axis_part_shape), "in a range along one axis"
)


@op("_corner_spread", inputs="data like~", grad=lambda F, dy, like_data: (F.slice_like(dy, like_data), None))
def corner_spread(k: Call, p: Params, data: Array, like: Array) -> Array:
    """Zeros like `like` with `data` in the leading corner: the gradient of `slice_like`.

    Parameters
    ----------
    data, like : array
    """
    out = k.xp.zeros(tuple(like.shape), data.dtype)
    out[tuple(slice(0, n) for n in data.shape)] = data
    return out


@corner_spread.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    data, like = ins
    if len(data) != len(like) or any(n > d for n, d in zip(data, like)):
        raise ValueError(f"data {data} is no corner of {like}")
    return [like]


@op(
    "_crop_spread",
    inputs="part data~*",
    **CROP_PARAMS,
    grad=lambda F, p, dy, like_data: [
        F._crop_again(dy, *like_data, offset=p.offset, h_w=p.h_w, center_crop=p.center_crop),
        [None] * len(like_data),
    ],
)
def crop_spread(k: Call, p: Params, part: Array, *data: Array) -> Array:
    """Zeros like the images with `part` in the part: the gradient of `Crop`.

    Parameters
    ----------
    part : array
    data : arrays
        As in `Crop`; only their shapes are used.
    num_args, offset, h_w, center_crop
        As in `Crop`.
    """
    top, left, h, w = crop_box(p, [tuple(x.shape) for x in data])
    out = k.xp.zeros(tuple(data[0].shape), part.dtype)
    out[:, :, top : top + h, left : left + w] = part
    return out


@crop_spread.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    part = (*ins[1][:2], *crop_box(p, ins[1:])[2:])
    if ins[0] != part:
        raise ValueError(f"part {ins[0]} must have the shape of what Crop keeps, {part}")
    return [ins[1]]


@op(
    "_crop_again",
    inputs="images data~*",
    **CROP_PARAMS,
    grad=lambda F, p, dy, like_data: [
        F._crop_spread(dy, *like_data, offset=p.offset, h_w=p.h_w, center_crop=p.center_crop),
        [None] * len(like_data),
    ],
)
def crop_again(k: Call, p: Params, images: Array, *data: Array) -> Array:
    """The part of other images that `Crop` keeps of `data`: the gradient of its gradient.

    Parameters
    ----------
    images : array
        Of the shape of the first of `data`.
    data : arrays
        As in `Crop`; only their shapes are used.
    num_args, offset, h_w, center_crop
        As in `Crop`.
    """
    top, left, h, w = crop_box(p, [tuple(x.shape) for x in data])
    return images[:, :, top : top + h, left : left + w].copy()


@crop_again.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    if ins[0] != ins[1]:
        raise ValueError(f"images {ins[0]} must have the shape of the first of data, {ins[1]}")
    return [(*ins[0][:2], *crop_box(p, ins[1:])[2:])]
