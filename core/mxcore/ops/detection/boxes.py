"""Boxes: how far they overlap, and as offsets from anchors.

A box is four numbers, by its corners ``(left, top, right, bottom)`` or by its centre ``(x, y, width, height)``. What is
NaN or inside out covers no area and overlaps with nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..._core.infer import merge_shape
from ..._core.op import op
from ..._core.params import Params
from ...parameters import Enum, Float
from ...typing import Array, Call
from ..common.bodies import silent, wide
from ..common.rules import floating, size_of

__all__ = ["FORMAT", "Boxes", "boxes_of", "converted", "intersection", "overlaps"]

FORMAT = Enum("center corner", "corner")


class Boxes(NamedTuple):
    """Many boxes: their sides and areas, arrays of one shape."""

    left: Any
    top: Any
    right: Any
    bottom: Any
    area: Any

    def at(self, xp: Any, index: Any) -> Boxes:
        """One of each row: boxes (B, N) at an index (B, 1)."""
        return Boxes(*(xp.take_along_axis(v, index, 1) for v in self))


def boxes_of(xp: Any, a: Any, form: str) -> Boxes:
    """Boxes from an array whose last axis holds the four numbers of each."""
    real = a.dtype.type
    first, second, third, fourth = (a[..., i] for i in range(4))
    if form == "corner":
        sides, width, height = (first, second, third, fourth), third - first, fourth - second
    else:
        width, height = third, fourth
        w, h = width / real(2), height / real(2)
        sides = (first - w, second - h, first + w, second + h)
    return Boxes(*sides, xp.where((width < 0) | (height < 0), real(0), width * height))


def intersection(xp: Any, a: Boxes, b: Boxes, more: float = 0) -> Any:
    """The area that two boxes have in common; sides of whole pixels are longer by one."""
    zero = a.left.dtype.type(0)
    width = xp.minimum(a.right, b.right) - xp.maximum(a.left, b.left)
    height = xp.minimum(a.bottom, b.bottom) - xp.maximum(a.top, b.top)
    if more:
        width, height = width + a.left.dtype.type(more), height + a.left.dtype.type(more)
    return xp.maximum(width, zero) * xp.maximum(height, zero)


def overlaps(xp: Any, a: Boxes, b: Boxes) -> Any:
    """The area that two boxes have in common, over the area that they cover together."""
    common = intersection(xp, a, b)
    return xp.where(common > 0, common / (a.area + b.area - common), common.dtype.type(0))


def converted(xp: Any, a: Any, form: str, wanted: str) -> Any:
    """Boxes (..., 4) in another form."""
    if form == wanted:
        return a
    half, (p, q) = a.dtype.type(0.5), (a[..., :2], a[..., 2:])
    both = ((p + q) * half, q - p) if wanted == "center" else (p - q * half, p + q * half)
    return xp.concatenate(both, -1)


# -- overlaps -------------------------------------------------------------------------------------------------------


@op("_contrib_box_iou", inputs="lhs rhs", format=FORMAT, grad=None)
@silent
def box_iou(k: Call, p: Params, lhs: Array, rhs: Array) -> Array:
    """How far boxes overlap: the area that two have in common, over the area that they cover together.

    Parameters
    ----------
    lhs, rhs : array
        Boxes, shapes (\\*n, 4) and (\\*m, 4).
    format : {'corner', 'center'}
        Boxes are left, top, right, bottom, or x and y of the centre, width, height.

    Returns
    -------
    array
        Of each with each, from 0 to 1: shape (\\*n, \\*m). Boxes that are NaN or inside out overlap with nothing.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``contrib.box_iou``; its gradient is zero.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.nd.contrib.box_iou(mx.nd.array([[0, 0, 2, 2]]), mx.nd.array([[1, 0, 3, 2], [0, 0, 2, 2]])).asnumpy().round(2)
    array([[0.33, 1.  ]], dtype=float32)
    """
    xp = k.xp
    n, m = lhs.shape[:-1], rhs.shape[:-1]
    a = boxes_of(xp, wide(lhs).reshape(size_of(n), 1, 4), p.format)
    b = boxes_of(xp, wide(rhs).reshape(1, size_of(m), 4), p.format)
    return overlaps(xp, a, b).reshape(*n, *m)


@box_iou.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    for name, shape in zip(("lhs", "rhs"), ins):
        if len(shape) < 2 or shape[-1] != 4:
            raise ValueError(f"{name} has shape {shape}; boxes have a last axis of 4 numbers, after at least one other")
    return [(*ins[0][:-1], *ins[1][:-1])]


# -- offsets --------------------------------------------------------------------------------------------------------


def _box_shape(name: str, shape: Any, wanted: tuple[Any, ...]) -> Any:
    """A shape of boxes (batch, boxes, 4), merged with what is known of it."""
    if shape is not None and (len(shape) != len(wanted) or wanted[-1] == 4 and shape[-1] not in (4, -1)):
        raise ValueError(f"{name} has shape {tuple(shape)}; wanted are boxes (batch, number of boxes, 4)")
    return merge_shape(shape, wanted)


@op("_contrib_box_encode", inputs="samples matches anchors refs means stds", outputs="output0 output1", grad=None)
@silent
def box_encode(
    k: Call, p: Params, samples: Array, matches: Array, anchors: Array, refs: Array, means: Array, stds: Array
) -> Any:
    """Offsets from anchors to the boxes that they are matched with: what a detector is to predict.

    Parameters
    ----------
    samples : array
        Shape (B, N), above 0.5 for anchors that are matched.
    matches : array
        Shape (B, N): number of the box that an anchor is matched with.
    anchors : array
        Boxes by corners, shape (B, N, 4).
    refs : array
        The boxes by corners, shape (B, M, 4).
    means, stds : array
        Shape (4,): offsets less these, over those.

    Returns
    -------
    targets : array
        Shape (B, N, 4): moves of the centre, in parts of the anchor's sides, and logarithms of how much longer the
        box's sides are; zero for other anchors.
    masks : array
        1 for those that are matched, of the same shape. A match with a box that there is not is none.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``contrib.box_encode``; its gradient is zero.
    """
    xp, real = k.xp, wide(anchors).dtype.type
    boxes, n = wide(refs), refs.shape[1]
    match = wide(matches)
    found = (wide(samples) > 0.5) & (match >= 0) & (match < n)
    if not n:
        return [xp.zeros(tuple(anchors.shape), boxes.dtype)] * 2
    at = xp.where(found, match, real(0)).astype("int64")
    a, b = wide(anchors), xp.take_along_axis(boxes, at[..., None], 1)
    a_size, b_size = a[..., 2:] - a[..., :2], b[..., 2:] - b[..., :2]
    half = real(0.5)
    moved = (b[..., :2] + b_size * half - (a[..., :2] + a_size * half)) / a_size
    offsets = xp.concatenate((moved, xp.log(b_size / a_size)), -1)
    targets = (offsets - wide(means)) / wide(stds)
    mask = xp.broadcast_to(found[..., None], tuple(targets.shape))
    return xp.where(mask, targets, real(0)), mask.astype(targets.dtype)


@box_encode.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    samples, matches, anchors, refs, means, stds = ins
    pair = merge_shape(merge_shape(samples, (-1, -1)), matches)
    anchors = _box_shape("anchors", anchors, (*pair, 4))
    for out in outs:
        anchors = merge_shape(anchors, out)
    refs = _box_shape("refs", refs, (anchors[0], -1, 4))
    batch = refs[:1] if anchors[0] == -1 else anchors[:1]
    anchors = (*batch, *anchors[1:])
    pair = anchors[:2]
    return [pair, pair, anchors, refs, merge_shape(means, (4,)), merge_shape(stds, (4,))], [anchors, anchors]


@op(
    "_contrib_box_decode",
    inputs="data anchors",
    std0=Float(1.0),
    std1=Float(1.0),
    std2=Float(1.0),
    std3=Float(1.0),
    clip=Float(-1.0),
    format=Enum("center corner", "center"),
    grad=None,
)
@silent
def box_decode(k: Call, p: Params, data: Array, anchors: Array) -> Array:
    """Boxes from offsets that a detector predicted.

    Parameters
    ----------
    data : array
        Offsets, shape (B, N, 4): moves of the centre, in parts of the anchor's sides, and logarithms of how much longer
        the sides are.
    anchors : array
        Shape (1, N, 4).
    std0, std1, std2, std3 : float
        Offsets are multiplied by these.
    clip : float
        Upper bound of the logarithms, if above zero.
    format : {'corner', 'center'}
        Of the anchors.

    Returns
    -------
    array
        Boxes by corners, shape (B, N, 4).

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``contrib.box_decode``; its gradient is zero.
    """
    xp = k.xp
    x, a = wide(data), converted(xp, wide(anchors), p.format, "center")
    real = x.dtype.type
    scaled = x * xp.asarray([p.std0, p.std1, p.std2, p.std3], dtype=x.dtype)
    longer = scaled[..., 2:]
    if p.clip > 0:
        longer = xp.minimum(longer, real(p.clip))
    centre, size = scaled[..., :2] * a[..., 2:] + a[..., :2], xp.exp(longer) * a[..., 2:] * real(0.5)
    return xp.concatenate((centre - size, centre + size), -1)


@box_decode.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    data = merge_shape(_box_shape("data", ins[0], (-1, -1, 4)), outs[0])
    anchors = _box_shape("anchors", ins[1], (1, data[1], 4))
    data = (data[0], anchors[1], 4)
    return [data, anchors], [data]


for _op in (box_iou, box_encode, box_decode):
    _op.dtype(floating())
box_iou.cost(lambda p, ins, outs: 12 * size_of(outs[0]))
for _op in (box_encode, box_decode):
    _op.cost(lambda p, ins, outs: 20 * size_of(outs[0]))
