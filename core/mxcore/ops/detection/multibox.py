"""Anchors of the single shot detector: where they are, what each is to predict, and what is detected."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.infer import merge_shape
from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool, Float, Floats, Int
from ...typing import Array, Call
from ..common.bodies import silent, wide
from ..common.rules import floating, size_of
from .boxes import boxes_of, overlaps
from .suppression import Meeting, best_first, survivors

__all__: list[str] = []


def _anchor_shape(shape: Any, count: int) -> Any:
    """The shape of anchors, (1, count, 4), merged with what is known of it."""
    if shape is not None and (len(shape) != 3 or shape[0] not in (1, -1) or shape[2] not in (4, -1)):
        raise ValueError(
            f"anchor has shape {tuple(shape)}; all images share one set of boxes, (1, number of anchors, 4)"
        )
    return merge_shape(shape, (1, count, 4))


def _variances(p: Params) -> tuple[float, ...]:
    if len(p.variances) != 4 or 0 in p.variances:
        raise ValueError(f"variances must be four numbers other than zero, got {p.variances}")
    found: tuple[float, ...] = p.variances
    return found


# -- anchors --------------------------------------------------------------------------------------------------------


def _check_prior(p: Params) -> None:
    for name in ("sizes", "ratios"):
        if not getattr(p, name):
            raise ValueError(f"{name} must be at least one number, got {getattr(p, name)}")
    if min(p.ratios) <= 0:
        raise ValueError(f"ratios must be above zero, got {p.ratios}")
    for name in ("steps", "offsets"):
        if len(getattr(p, name)) != 2:
            raise ValueError(f"{name} must be two numbers, down and to the right, got {getattr(p, name)}")
    if (p.steps[0] > 0) != (p.steps[1] > 0):
        raise ValueError(f"steps must both be above zero, or none (then they follow from the data), got {p.steps}")


@op(
    "_contrib_MultiBoxPrior",
    "_npx_multibox_prior",
    inputs="data~",
    sizes=Floats((1.0,)),
    ratios=Floats((1.0,)),
    clip=Bool(False),
    steps=Floats((-1.0, -1.0)),
    offsets=Floats((0.5, 0.5)),
    grad=None,
)
def multibox_prior(k: Call, p: Params, data: Array) -> Array:
    """Anchors around each place of a feature map: of all sizes with the first ratio, of the first with the others.

    Parameters
    ----------
    data : array
        The feature map, shape (N, C, H, W); only its shape is used.
    sizes : tuple of float
        Heights of square anchors, in parts of the image.
    ratios : tuple of float
        Of width to height; areas stay.
    clip : bool
        Cut anchors at the image.
    steps : (float, float)
        How far places are apart, down and to the right, in parts of the image; one over height and width unless above
        zero.
    offsets : (float, float)
        Where in its step an anchor's centre lies.

    Returns
    -------
    array
        Corners in parts of the image, shape (1, H * W * (number of sizes + number of ratios - 1), 4).

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``contrib.MultiBoxPrior``, which makes float32 only; its gradient is zero. Source:
    Liu et al., "SSD: Single shot multibox detector", 2016.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.nd.contrib.MultiBoxPrior(mx.nd.zeros((1, 8, 1, 2)), sizes=[0.5]).asnumpy()
    array([[[0.125, 0.25 , 0.375, 0.75 ],
            [0.625, 0.25 , 0.875, 0.75 ]]], dtype=float32)
    """
    xp = k.xp
    h, w = data.shape[2:]
    dtype = np.dtype(np.float32 if data.dtype.itemsize == 2 else data.dtype)
    real = dtype.type
    root = [np.sqrt(real(r)) for r in p.ratios]
    shapes = [(real(s), root[0]) for s in p.sizes] + [(real(p.sizes[0]), r) for r in root[1:]]
    across = real(h) / real(max(w, 1))
    half = [(s * across * r / real(2), s / r / real(2)) for s, r in shapes]

    def centres(n: int, step: float, offset: float) -> Any:
        each = real(step) if step > 0 else real(1) / real(max(n, 1))
        return (xp.arange(n, dtype=dtype) + real(offset)) * each

    y, x = centres(h, p.steps[0], p.offsets[0]), centres(w, p.steps[1], p.offsets[1])
    out = xp.empty((h, w, len(half), 4), dtype)
    for i, (dx, dy) in enumerate(half):
        out[:, :, i, 0], out[:, :, i, 2] = x - dx, x + dx
        out[:, :, i, 1], out[:, :, i, 3] = (y - dy)[:, None], (y + dy)[:, None]
    if p.clip:
        out = xp.clip(out, 0, 1)
    return out.reshape(1, h * w * len(half), 4)


@multibox_prior.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    _check_prior(p)
    data = merge_shape(ins[0], (-1,) * 4)
    count = -1 if -1 in data[2:] else data[2] * data[3] * (len(p.sizes) + len(p.ratios) - 1)
    return [data], [merge_shape(outs[0], (1, count, 4))]


# -- targets --------------------------------------------------------------------------------------------------------


def _matched(xp: Any, overlap: Any, present: Any, p: Params) -> tuple[Any, Any, Any]:
    """For each anchor (N, A): whether it has a box, which one, and how far it overlaps with its best one."""
    n, a, m = overlap.shape
    real, batch = overlap.dtype.type, xp.arange(n)
    overlap = xp.where(present[:, None, :], overlap, real(-1))
    nearest, best = xp.argmax(overlap, axis=2), xp.max(overlap, axis=2)
    positive = (best > real(p.overlap_threshold)) if p.overlap_threshold > 0 else xp.zeros((n, a), np.bool_)
    # Each box has its best anchor first, whatever the threshold: the two that overlap most, then of the others …
    free = overlap
    for _ in range(min(a, m)):
        at = xp.argmax(free.reshape(n, a * m), axis=1)
        row, column = at // m, at % m
        good = free[batch, row, column] > real(1e-6)
        if not good.any().item():
            break
        nearest[batch, row] = xp.where(good, column, nearest[batch, row])
        positive[batch, row] = positive[batch, row] | good
        taken = (xp.arange(a) == row[:, None])[:, :, None] | (xp.arange(m) == column[:, None])[:, None, :]
        free = xp.where(taken | ~good[:, None, None], real(-1), free)
    return positive, nearest, best


def _hard_negatives(xp: Any, positive: Any, best: Any, cls_pred: Any, p: Params) -> Any:
    """Anchors without a box that look least like background, a number of them for each that has one."""
    real = best.dtype.type
    count = xp.sum(positive, axis=1, keepdims=True)
    wanted = (count.astype(best.dtype) * real(p.negative_mining_ratio)).astype(np.int64)
    wanted = xp.minimum(wanted, positive.shape[1] - count)
    shifted = xp.exp(cls_pred - xp.max(cls_pred, axis=1, keepdims=True))
    background = shifted[:, 0] / xp.sum(shifted, axis=1)
    candidate = ~positive & (best < real(p.negative_mining_thresh))
    key = xp.where(candidate, xp.where(xp.isnan(background), real(2), background), real(np.inf))
    rank = xp.argsort(xp.argsort(key, axis=1, kind="stable"), axis=1, kind="stable")
    return candidate & (rank < wanted)


@op(
    "_contrib_MultiBoxTarget",
    "_npx_multibox_target",
    inputs="anchor label cls_pred",
    outputs="loc_target loc_mask cls_target",
    overlap_threshold=Float(0.5),
    ignore_label=Float(-1.0),
    negative_mining_ratio=Float(-1.0),
    negative_mining_thresh=Float(0.5),
    minimum_negative_samples=Int(0),
    variances=Floats((0.1, 0.1, 0.2, 0.2)),
    grad=None,
)
@silent
def multibox_target(k: Call, p: Params, anchor: Array, label: Array, cls_pred: Array) -> Any:
    """What each anchor is to predict: a class, and how far its box is off.

    Parameters
    ----------
    anchor : array
        Corners of the anchors, shape (1, A, 4), in parts of the image.
    label : array
        Shape (N, L, 5 or more): the class of each box in an image, from 0, its corners, and what is not looked at. The
        first class of -1 ends the boxes of an image.
    cls_pred : array
        Predicted scores of the classes, the first for background, before softmax: shape (N, C, A).
    overlap_threshold : float
        Anchors that overlap with a box by more than this are to predict it. So is the one that overlaps most with a
        box, whatever the threshold.
    ignore_label : float
        The class of anchors that are not to be trained.
    negative_mining_ratio : float
        If above zero, so many anchors for each one with a box are background, those that look least like it, and others
        are not to be trained.
    negative_mining_thresh : float
        Only anchors that overlap with every box by less than this are taken for background then.
    minimum_negative_samples : int
        No effect, as in MXNet's code for CPUs.
    variances : tuple of four float
        Offsets are divided by these.

    Returns
    -------
    loc_target : array
        Shape (N, A * 4): moves of the centre, in parts of the anchor's sides, and logarithms of how much longer the
        sides of the box are; zero for anchors without a box.
    loc_mask : array
        1 for anchors with a box, of the same shape.
    cls_target : array
        Shape (N, A): 0 for background, one more than the class of the box, or `ignore_label`. In an image without boxes
        all are ignored.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``contrib.MultiBoxTarget`` on CPUs; its gradient is zero. Boxes that are NaN or
    inside out are matched with no anchor. Where there are fewer anchors for background than wanted, all are taken.
    Source: Liu et al., "SSD: Single shot multibox detector", 2016.
    """
    xp = k.xp
    variances, real = _variances(p), wide(anchor).dtype.type
    a, labels = wide(anchor), wide(label)
    n, count, many = labels.shape[0], a.shape[1], labels.shape[1]
    if not n * count * many:
        return [xp.zeros((n, count * 4), a.dtype)] * 2 + [xp.full((n, count), p.ignore_label, a.dtype)]
    present = xp.cumsum(labels[:, :, 0] == -1, axis=1) == 0
    overlap = overlaps(xp, boxes_of(xp, a[:, :, None], "corner"), boxes_of(xp, labels[:, None, :, 1:5], "corner"))
    positive, nearest, best = _matched(xp, overlap, present, p)
    if p.negative_mining_ratio > 0:
        negative = _hard_negatives(xp, positive, best, wide(cls_pred), p)
    else:
        negative = ~positive
    box = xp.take_along_axis(labels[:, :, :5], nearest[:, :, None], 1)
    any_box = present[:, :1]
    found = xp.where(positive, box[:, :, 0] + real(1), xp.where(negative & any_box, real(0), real(p.ignore_label)))
    half, (a0, a1), (b0, b1) = real(0.5), (a[..., :2], a[..., 2:]), (box[..., 1:3], box[..., 3:])
    size, scale = a1 - a0, xp.asarray(variances, dtype=a.dtype)
    moved = ((b0 + b1) * half - (a0 + a1) * half) / size / scale[:2]
    longer = xp.log((b1 - b0) / size) / scale[2:]
    mask = xp.broadcast_to(positive[:, :, None], (n, count, 4))
    target = xp.where(mask, xp.concatenate((moved, longer), -1), real(0))
    return target.reshape(n, count * 4), mask.astype(a.dtype).reshape(n, count * 4), found


@multibox_target.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    _variances(p)
    label, scores = ins[1], merge_shape(ins[2], (-1, -1, -1))
    if label is not None and (len(label) != 3 or -1 < label[2] < 5):
        raise ValueError(
            f"label has shape {tuple(label)}; wanted is (images, boxes, 5 or more): class, left, top, right, bottom, …"
        )
    anchor = _anchor_shape(ins[0], scores[2])
    label = merge_shape(label, (scores[0], -1, -1))
    n, a = label[0], anchor[1]
    scores = (n, scores[1], a)
    if scores[1] == 0:
        raise ValueError(f"cls_pred has shape {scores}; there is at least one class, background")
    places = merge_shape(outs[0], (n, -1 if a == -1 else a * 4))
    return [anchor, label, scores], [places, places, merge_shape(outs[2], (n, a))]


# -- detection ------------------------------------------------------------------------------------------------------


def _located(xp: Any, offset: Any, anchor: Any, p: Params) -> Any:
    """Corners of boxes (N, A, 4) from their offsets."""
    real = offset.dtype.type
    scale = xp.asarray(_variances(p), dtype=offset.dtype)
    size, centre = anchor[..., 2:] - anchor[..., :2], (anchor[..., :2] + anchor[..., 2:]) / real(2)
    centre = offset[..., :2] * scale[:2] * size + centre
    half = xp.exp(offset[..., 2:] * scale[2:]) * size / real(2)
    found = xp.concatenate((centre - half, centre + half), -1)
    return xp.clip(found, 0, 1) if p.clip else found


def _suppressed(xp: Any, rows: Any, valid: Any, p: Params) -> Any:
    """Rows (N, A, 6), the best first, with class -1 for those that a better one suppresses or that are too many."""
    count, real = rows.shape[1], rows.dtype.type
    most = count if p.nms_topk <= 0 else min(p.nms_topk, count)
    order = best_first(xp, rows[..., 1], valid)
    seen = valid & (xp.arange(count) < most)
    rows = xp.where(seen[..., None], xp.take_along_axis(rows, order[..., None], 1), rows)
    flat = boxes_of(xp, rows[..., 2:], "corner")
    boxes = flat._replace(area=(flat.right - flat.left) * (flat.bottom - flat.top))

    meeting = Meeting(p.nms_threshold, inclusive=True)
    kept = survivors(xp, seen, boxes, None if p.force_suppress else rows[..., 0], meeting)
    return xp.concatenate((xp.where(kept, rows[..., 0], real(-1))[..., None], rows[..., 1:]), -1)


@op(
    "_contrib_MultiBoxDetection",
    "_npx_multibox_detection",
    inputs="cls_prob loc_pred anchor",
    clip=Bool(True),
    threshold=Float(0.01),
    background_id=Int(0),
    nms_threshold=Float(0.5),
    force_suppress=Bool(False),
    variances=Floats((0.1, 0.1, 0.2, 0.2)),
    nms_topk=Int(-1),
    grad=None,
)
@silent
def multibox_detection(k: Call, p: Params, cls_prob: Array, loc_pred: Array, anchor: Array) -> Array:
    """Boxes from what was predicted for each anchor, but for those that overlap with a better one.

    Parameters
    ----------
    cls_prob : array
        Probabilities of the classes, the first for background: shape (N, C, A).
    loc_pred : array
        Offsets of the boxes from their anchors, as `MultiBoxTarget` makes them: shape (N, A * 4).
    anchor : array
        Corners of the anchors, shape (1, A, 4).
    clip : bool
        Cut boxes at the image.
    threshold : float
        Anchors whose best class is less probable than this detect nothing.
    background_id : int
        No effect, as in MXNet: the first class is background.
    nms_threshold : float
        A box that overlaps with a better one of its class by this part of what they cover together, or more, goes;
        outside (0, 1] none does, and they are not sorted.
    force_suppress : bool
        Boxes of other classes suppress one another, too.
    variances : tuple of four float
        Offsets are multiplied by these.
    nms_topk : int
        Only so many of the best boxes of an image are looked at, if above zero.

    Returns
    -------
    array
        Shape (N, A, 6): class (less one, for there is background), probability and corners of boxes, the best first;
        the class of those that went is -1, and what follows the last one is -1.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``contrib.MultiBoxDetection``; its gradient is zero. Probabilities that are NaN
    detect nothing, and a box that is NaN neither suppresses nor is suppressed. Source: Liu et al., "SSD: Single shot
    multibox detector", 2016.
    """
    xp = k.xp
    prob, real = wide(cls_prob), wide(cls_prob).dtype.type
    n, classes, count = prob.shape
    if classes < 2 or not n * count:
        return xp.full((n, count, 6), -1, prob.dtype)
    scores = xp.where(xp.isnan(prob[:, 1:]), real(-1), prob[:, 1:])
    best, score = xp.argmax(scores, axis=1), xp.max(scores, axis=1)
    valid = (score > -1) & (score >= real(p.threshold))
    boxes = _located(xp, wide(loc_pred).reshape(n, count, 4), wide(anchor), p)
    rows = xp.concatenate((best.astype(prob.dtype)[..., None], score[..., None], boxes), -1)
    first = xp.argsort((~valid).astype(np.int8), axis=1, kind="stable")
    rows, valid = xp.take_along_axis(rows, first[..., None], 1), xp.take_along_axis(valid, first, 1)
    if 0 < p.nms_threshold <= 1:
        rows = _suppressed(xp, rows, valid, p)
    return xp.where(valid[..., None], rows, real(-1))


@multibox_detection.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    _variances(p)
    prob = merge_shape(ins[0], (-1, -1, -1))
    out = merge_shape(outs[0], (prob[0], prob[2], 6))
    anchor = _anchor_shape(ins[2], out[1])
    n, a = out[0], anchor[1]
    places = merge_shape(ins[1], (n, -1 if a == -1 else 4 * a))
    n = places[0]
    return [(n, prob[1], a), places, anchor], [(n, a, 6)]


for _op in (multibox_prior, multibox_target, multibox_detection):
    _op.dtype(floating())
multibox_prior.cost(lambda p, ins, outs: 4 * size_of(outs[0]))
multibox_target.cost(lambda p, ins, outs: 20 * size_of(outs[2]) * max(ins[1][1], 1))
multibox_detection.cost(lambda p, ins, outs: 20 * size_of(ins[0]) + 60 * size_of(outs[0]))
