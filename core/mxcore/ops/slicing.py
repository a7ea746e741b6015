"""Ranges along axes: slice_axis, slice_like, Crop, splitting at indices, and writing ranges."""

from __future__ import annotations

from typing import Any

from .._core.errors import error
from .._core.op import op
from ..families import wrapped
from ..parameters import Bool, Float, Int, Shape
from .rules import axis_of, first_dtype, partly, undoing
from .shape import RANGE, ranges_of, sliced

__all__: list[str] = []


def _along(ndim: int, axis: int, part: slice) -> tuple[slice, ...]:
    return (slice(None),) * axis + (part,) + (slice(None),) * (ndim - axis - 1)


def _axis_range(p: Any, shape: tuple[int, ...]) -> tuple[int, int, int]:
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


_ON_AXIS = {"axis": Int(), "begin": Int(), "end": Int(optional=True)}


@op(
    "slice_axis",
    inputs="data",
    **_ON_AXIS,
    view=True,
    grad=lambda F, p, dy, like_data: F._slice_axis_spread(dy, like_data, axis=p.axis, begin=p.begin, end=p.end),
)
def slice_axis(k, p, data):
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
    axis, begin, end = _axis_range(p, data.shape)
    return data[_along(data.ndim, axis, slice(begin, end))]


def _axis_part(p: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    axis = axis_of(p.axis, len(shape))
    if shape[axis] == -1:
        return shape
    _, begin, end = _axis_range(p, shape)
    return shape[:axis] + (end - begin,) + shape[axis + 1 :]


slice_axis.shape(partly(_axis_part))


@op(
    "_slice_axis_spread",
    inputs="data like~",
    **_ON_AXIS,
    grad=lambda F, p, dy: (F.slice_axis(dy, axis=p.axis, begin=p.begin, end=p.end), None),
)
def slice_axis_spread(k, p, data, like):
    """Zeros like `like` with `data` in a range along one axis: the gradient of `slice_axis`.

    Parameters
    ----------
    data, like : array
    axis, begin, end : int
        As in `slice_axis`.
    """
    out = k.xp.zeros(tuple(like.shape), data.dtype)
    axis, begin, end = _axis_range(p, out.shape)
    out[_along(out.ndim, axis, slice(begin, end))] = data
    return out


slice_axis_spread.shape(undoing(_axis_part))


def _like_shape(p: Any, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
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
def slice_like(k, p, data, shape_like):
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
def _(p, ins, outs):
    return ins, [None if None in ins else _like_shape(p, *ins)]


slice_like.dtype(first_dtype)


@op("_corner_spread", inputs="data like~", grad=lambda F, dy, like_data: (F.slice_like(dy, like_data), None))
def corner_spread(k, p, data, like):
    """Zeros like `like` with `data` in the leading corner: the gradient of `slice_like`.

    Parameters
    ----------
    data, like : array
    """
    out = k.xp.zeros(tuple(like.shape), data.dtype)
    out[tuple(slice(0, n) for n in data.shape)] = data
    return out


@corner_spread.shape
def _(p, ins):
    data, like = ins
    if len(data) != len(like) or any(n > d for n, d in zip(data, like)):
        raise ValueError(f"data {data} is no corner of {like}")
    return [like]


def _crop_box(p: Any, ins: Any) -> tuple[int, int, int, int]:
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


_CROP = {"offset": Shape((0, 0)), "h_w": Shape((0, 0)), "center_crop": Bool(False)}


@op(
    "Crop",
    inputs="data*",
    labels="inputs outputs",
    num_args=Int(ge=0, le=1 << 16),
    **_CROP,
    grad=lambda F, p, dy, like_data: [
        [
            F._crop_spread(dy, *like_data, offset=p.offset, h_w=p.h_w, center_crop=p.center_crop),
            *[None] * (len(like_data) - 1),
        ]
    ],
)
def crop(k, p, *data):
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
    top, left, h, w = _crop_box(p, [x.shape for x in data])
    return data[0][:, :, top : top + h, left : left + w].copy()


crop.shape(lambda p, ins: [(*ins[0][:2], *_crop_box(p, ins)[2:])])


@op(
    "_crop_spread",
    inputs="part data~*",
    **_CROP,
    grad=lambda F, p, dy, like_data: [
        F._crop_again(dy, *like_data, offset=p.offset, h_w=p.h_w, center_crop=p.center_crop),
        [None] * len(like_data),
    ],
)
def crop_spread(k, p, part, *data):
    """Zeros like the images with `part` in the part: the gradient of `Crop`.

    Parameters
    ----------
    part : array
    data : arrays
        As in `Crop`; only their shapes are used.
    num_args, offset, h_w, center_crop
        As in `Crop`.
    """
    top, left, h, w = _crop_box(p, [tuple(x.shape) for x in data])
    out = k.xp.zeros(tuple(data[0].shape), part.dtype)
    out[:, :, top : top + h, left : left + w] = part
    return out


@crop_spread.shape
def _(p, ins):
    part = (*ins[1][:2], *_crop_box(p, ins[1:])[2:])
    if ins[0] != part:
        raise ValueError(f"part {ins[0]} must have the shape of what Crop keeps, {part}")
    return [ins[1]]


@op(
    "_crop_again",
    inputs="images data~*",
    **_CROP,
    grad=lambda F, p, dy, like_data: [
        F._crop_spread(dy, *like_data, offset=p.offset, h_w=p.h_w, center_crop=p.center_crop),
        [None] * len(like_data),
    ],
)
def crop_again(k, p, images, *data):
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
    top, left, h, w = _crop_box(p, [tuple(x.shape) for x in data])
    return images[:, :, top : top + h, left : left + w].copy()


@crop_again.shape
def _(p, ins):
    if ins[0] != ins[1]:
        raise ValueError(f"images {ins[0]} must have the shape of the first of data, {ins[1]}")
    return [(*ins[0][:2], *_crop_box(p, ins[1:])[2:])]


def _cuts(p: Any, n: int) -> list[tuple[int, int]]:
    """(begin, end) of each part along an axis of length n."""
    if p.sections > 0:
        small, more = divmod(n, p.sections)
        begins = [i * small + min(i, more) for i in range(p.sections)]
    else:
        begins = list(p.indices)
    ends = [*begins[1:], n]
    for b, e in zip(begins, ends):
        if not 0 <= b <= e <= n:
            raise ValueError(f"indices {p.indices} must rise and lie in an axis of length {n}")
    return list(zip(begins, ends))


def _parts(p: Any) -> list[str]:
    n = p.sections if p.sections > 0 else len(p.indices)
    if not n:
        raise error(ValueError, "operator _split_v2: needs indices, or a positive number of sections")
    return ["output"] if n == 1 else [f"output{i}" for i in range(n)]


def _joined(F: Any, p: Any, dys: Any, like: Any) -> Any:
    """The gradient of a split: the parts side by side, and zeros before the first."""
    whole = F.stack(*dys, axis=p.axis) if p.squeeze_axis else F.Concat(*dys, dim=p.axis)
    first = 0 if p.sections > 0 else p.indices[0]
    return F._slice_axis_spread(whole, like, axis=p.axis, begin=first, end=None) if first else whole


@op(
    "_split_v2",
    inputs="data",
    labels="inputs",
    indices=Shape(),
    axis=Int(1),
    squeeze_axis=Bool(False),
    sections=Int(0, le=2**16),
    outputs=lambda p: _parts(p),
    grad=lambda F, p, dys, like_data: _joined(F, p, dys, like_data),
)
def split_v2(k, p, data):
    """Split along an axis at indices, or into sections as equal as can be.

    Parameters
    ----------
    data : array
    indices : tuple of int
        Where each part begins; what lies before the first is left out.
    axis : int
    squeeze_axis : bool
        Drop the axis; its parts must have length 1.
    sections : int
        Number of parts, if positive; then `indices` has no effect.
    """
    axis = axis_of(p.axis, data.ndim)
    parts = [data[_along(data.ndim, axis, slice(b, e))].copy() for b, e in _cuts(p, data.shape[axis])]
    return [x.squeeze(axis) for x in parts] if p.squeeze_axis else parts


def _part_shapes(p: Any, shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    axis = axis_of(p.axis, len(shape))
    if shape[axis] == -1:
        return [shape[:axis] + shape[axis + p.squeeze_axis :]] * len(_parts(p))
    lengths = [e - b for b, e in _cuts(p, shape[axis])]
    if p.squeeze_axis:
        if any(n != 1 for n in lengths):
            raise ValueError(f"squeeze_axis needs parts of length 1, they have {lengths}")
        return [shape[:axis] + shape[axis + 1 :]] * len(lengths)
    return [shape[:axis] + (n,) + shape[axis + 1 :] for n in lengths]


split_v2.shape(partly(_part_shapes))


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
def slice_assign(k, p, lhs, rhs):
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
def _(p, ins, outs):
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
def slice_assign_scalar(k, p, data):
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
def _(p, ins, outs):
    shape = ins[0] if ins[0] is not None else outs[0]
    if shape is not None:
        ranges_of(p, shape)
    return [shape], [shape]
