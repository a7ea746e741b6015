"""Ranges along axes: taken out, and written."""

from __future__ import annotations

from typing import Any

from ..._core.op import op
from ..._core.params import Params
from ...elementwise import wrapped
from ...parameters import Bool, Float, Int, Shape
from ...typing import Array, Call
from ..common.rules import axis_of, cut_along, first_dtype, partly

__all__ = [
    "CROP_PARAMS",
    "RANGE",
    "SLICE_AXIS_PARAMS",
    "axis_part_shape",
    "axis_range",
    "crop_box",
    "ranges_of",
    "slice_",
    "sliced",
]


def ranges_of(p: Params, shape: tuple[int, ...]) -> tuple[slice, ...]:
    """The slices of begin, end, step; MXNet clips ends as Python does."""
    if len(p.begin) != len(p.end):
        raise ValueError(f"begin {p.begin} and end {p.end} have different lengths")
    if len(p.begin) > len(shape):
        raise ValueError(f"begin {p.begin} has more items than the {len(shape)} dimensions")
    step = p.step or ()
    if len(step) > len(p.begin):
        raise ValueError(f"step {step} has more items than begin {p.begin}")
    if 0 in step:
        raise ValueError(f"step {step} holds a zero")
    step += (None,) * (len(p.begin) - len(step))
    return tuple(slice(b, e, s) for b, e, s in zip(p.begin, p.end, step))


def sliced(shape: tuple[int, ...], ranges: tuple[slice, ...]) -> tuple[int, ...]:
    """The shape that slices of the leading dimensions leave."""
    return (*(len(range(d)[s]) if d != -1 else -1 for d, s in zip(shape, ranges)), *shape[len(ranges) :])


#: Parameters of operators over ranges of all dimensions.
RANGE = {"begin": Shape(none=True), "end": Shape(none=True), "step": Shape((), none=True, optional=True)}


@op(
    "slice",
    "crop",
    "_sparse_slice",
    inputs="data",
    **RANGE,
    view=True,
    grad=lambda F, p, dy, like_data: F._slice_spread(dy, like_data, begin=p.begin, end=p.end, step=p.step),
)
def slice_(k: Call, p: Params, data: Array) -> Array:
    """A range of each dimension.

    Parameters
    ----------
    data : array
    begin, end : tuple of int or None
        One item per leading dimension.
    step : tuple of int or None, optional
    """
    return data[ranges_of(p, data.shape)]


@slice_.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    return ins, [None if ins[0] is None else sliced(ins[0], ranges_of(p, ins[0]))]


def axis_range(p: Params, shape: tuple[int, ...]) -> tuple[int, int, int]:
    """(axis, first, last + 1), checked as MXNet does."""
    axis = axis_of(p.axis, len(shape))
    n = shape[axis]
    begin = p.begin + n if p.begin < 0 else p.begin
    end = n if p.end is None else p.end + n if p.end < 0 else p.end
    if not 0 <= begin <= n or not 0 <= end <= n or (begin >= end and n):
        raise ValueError(
            f"begin={p.begin} and end={p.end} select nothing, or more than there is, on axis {p.axis} of length {n}"
        )
    return axis, begin, end


SLICE_AXIS_PARAMS = {"axis": Int(), "begin": Int(), "end": Int(optional=True)}


@op(
    "slice_axis",
    inputs="data",
    **SLICE_AXIS_PARAMS,
    view=True,
    grad=lambda F, p, dy, like_data: F._slice_axis_spread(dy, like_data, axis=p.axis, begin=p.begin, end=p.end),
)
def slice_axis(k: Call, p: Params, data: Array) -> Array:
    """A range along one axis.

    Parameters
    ----------
    data : array
    axis : int
    begin : int
        The first; negative counts from the end.
    end : int or None
        One past the last; None: up to the end.
    """
    axis, begin, end = axis_range(p, data.shape)
    return data[cut_along(data.ndim, axis, slice(begin, end))]


def axis_part_shape(p: Params, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of the part of an axis; an unknown length stays unknown."""
    axis = axis_of(p.axis, len(shape))
    if shape[axis] == -1:
        return shape
    _, begin, end = axis_range(p, shape)
    return shape[:axis] + (end - begin,) + shape[axis + 1 :]


slice_axis.shape(partly(axis_part_shape))


def _like_shape(p: Params, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    if not p.axes and len(a) != len(b):
        raise ValueError(f"data {a} and shape_like {b} have different ranks; give axes")
    out = list(a)
    for i in p.axes or range(len(a)):
        j = axis_of(i, len(a))
        n = b[axis_of(j, len(b))]
        if n > a[j] != -1:
            raise ValueError(f"axis {i} of data has length {a[j]}, less than the {n} of shape_like")
        out[j] = n
    return tuple(out)


@op(
    "slice_like",
    inputs="data shape_like~",
    axes=Shape(()),
    view=True,
    grad=lambda F, dy, like_data: (F._corner_spread(dy, like_data), None),
)
def slice_like(k: Call, p: Params, data: Array, shape_like: Array) -> Array:
    """The leading part of `data` that is as long as another array.

    Parameters
    ----------
    data : array
    shape_like : array
        Only its shape is used.
    axes : tuple of int
        The axes to shorten, negative ones counted in `data`; all unless told.
    """
    return data[tuple(slice(0, n) for n in _like_shape(p, tuple(data.shape), tuple(shape_like.shape)))]


@slice_like.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    return ins, [None if None in ins else _like_shape(p, *ins)]


slice_like.dtype(first_dtype)


def crop_box(p: Params, ins: Any) -> tuple[int, int, int, int]:
    """(top, left, height, width) of the part that Crop keeps."""
    shape = ins[0]
    if any(len(s) != 4 for s in ins):
        raise ValueError("Crop needs arrays of 4 dimensions (batch, channel, height, width)")
    if p.num_args not in (1, 2):
        raise ValueError(f"Crop takes one or two arrays, not {p.num_args}")
    h, w = ins[1][2:] if p.num_args == 2 else p.h_w
    room = shape[2] - h, shape[3] - w
    top, left = (room[0] // 2, room[1] // 2) if p.center_crop else p.offset
    if not (0 <= top <= room[0] and 0 <= left <= room[1]) or min(h, w) < 1:
        raise ValueError(
            f"a part of {h} x {w} at offset ({top}, {left}) does not lie in an image of {shape[2]} x {shape[3]}"
        )
    return top, left, h, w


CROP_PARAMS = {"offset": Shape((0, 0)), "h_w": Shape((0, 0)), "center_crop": Bool(False)}


@op(
    "Crop",
    inputs="data*",
    labels="inputs outputs",
    num_args=Int(ge=0, le=1 << 16),
    **CROP_PARAMS,
    grad=lambda F, p, dy, like_data: [
        [
            F._crop_spread(dy, *like_data, offset=p.offset, h_w=p.h_w, center_crop=p.center_crop),
            *[None] * (len(like_data) - 1),
        ]
    ],
)
def crop(k: Call, p: Params, *data: Array) -> Array:
    """Cut a part out of images.

    Parameters
    ----------
    data : arrays, (batch, channel, height, width)
        The images, and optionally an array whose height and width the part gets.
    num_args : int
        1 or 2; counted for you.
    offset : (int, int)
        Row and column of the part's corner.
    h_w : (int, int)
        Height and width of the part, if there is no second array.
    center_crop : bool
        Take the middle.
    """
    top, left, h, w = crop_box(p, [x.shape for x in data])
    return data[0][:, :, top : top + h, left : left + w].copy()


crop.shape(lambda p, ins: [(*ins[0][:2], *crop_box(p, ins)[2:])])


@op(
    "_slice_assign",
    "_crop_assign",
    inputs="lhs rhs",
    **RANGE,
    alias="lhs->output",
    grad=lambda F, p, dy, like_rhs: (
        F._slice_assign_scalar(dy, begin=p.begin, end=p.end, step=p.step, scalar=0.0),
        F.slice(dy, begin=p.begin, end=p.end, step=p.step),
    ),
)
def slice_assign(k: Call, p: Params, lhs: Array, rhs: Array) -> Array:
    """`lhs` with a range of each dimension replaced by `rhs`.

    Parameters
    ----------
    lhs : array
    rhs : array
        Of the shape of the range.
    begin, end, step : tuple of int or None
        As in `slice`.
    """
    out = lhs.copy()
    out[ranges_of(p, lhs.shape)] = rhs
    return out


@slice_assign.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    src = ins[0] if ins[0] is not None else outs[0]
    return [src, ins[1] if src is None else sliced(src, ranges_of(p, src))], [src]


@op(
    "_slice_assign_scalar",
    "_crop_assign_scalar",
    inputs="data",
    scalar=Float(0.0, dynamic=True),
    **RANGE,
    alias="data->output",
    grad=lambda F, p, dy: F._slice_assign_scalar(dy, begin=p.begin, end=p.end, step=p.step, scalar=0.0),
)
def slice_assign_scalar(k: Call, p: Params, data: Array) -> Array:
    """`data` with a range of each dimension set to a number.

    Parameters
    ----------
    data : array
    scalar : float
    begin, end, step : tuple of int or None
        As in `slice`.
    """
    out = data.copy()
    out[ranges_of(p, data.shape)] = p.scalar if data.dtype.kind not in "iub" else wrapped(p.scalar, data.dtype)
    return out


@slice_assign_scalar.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    shape = ins[0] if ins[0] is not None else outs[0]
    if shape is not None:
        ranges_of(p, shape)
    return [shape], [shape]
