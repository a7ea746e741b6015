"""Proposals: where a region proposal network thinks that objects are."""

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
from .boxes import Boxes
from .suppression import Meeting, best_first, survivors

__all__ = ["base_anchors"]

PROPOSAL_PARAMS = dict(
    rpn_pre_nms_top_n=Int(6000),
    rpn_post_nms_top_n=Int(300, ge=1),
    threshold=Float(0.7),
    rpn_min_size=Int(16, ge=0),
    scales=Floats((4.0, 8.0, 16.0, 32.0)),
    ratios=Floats((0.5, 1.0, 2.0)),
    feature_stride=Int(16, ge=1),
    output_score=Bool(False),
    iou_loss=Bool(False),
)


def base_anchors(p: Params) -> np.ndarray[Any, Any]:
    """Anchors of the first place: corners in whole pixels' terms, a ratio after another, float32."""
    real = np.float32
    centre, area = real(0.5) * real(p.feature_stride - 1), real(p.feature_stride) * real(p.feature_stride)
    rows = []
    for ratio in p.ratios:
        width = np.floor(np.sqrt(np.floor(area / real(ratio))) + real(0.5))
        height = np.floor(width * real(ratio) + real(0.5))
        for scale in p.scales:
            w, h = (real(0.5) * (v * real(scale) - real(1)) for v in (width, height))
            rows.append((centre - w, centre - h, centre + w, centre + h))
    return np.array(rows, real).reshape(len(rows), 4)


def _proposed(xp: Any, p: Params, bbox_pred: Any, im_info: Any) -> tuple[Any, Any]:
    """Corners (N, H * W * A, 4), cut at the images, and which lie on them."""
    n, _, h, w = bbox_pred.shape
    one, half, anchors = bbox_pred.dtype.type(1), bbox_pred.dtype.type(0.5), base_anchors(p)
    a, stride = anchors.shape[0], p.feature_stride
    y, x = xp.arange(h, dtype=bbox_pred.dtype) * stride, xp.arange(w, dtype=bbox_pred.dtype) * stride
    shift = xp.empty((h, w, 1, 4), bbox_pred.dtype)
    shift[:, :, 0, 0] = shift[:, :, 0, 2] = x
    shift[:, :, 0, 1] = shift[:, :, 0, 3] = y[:, None]
    box = (shift + xp.asarray(anchors, dtype=bbox_pred.dtype)).reshape(1, h * w * a, 4)
    delta = bbox_pred.reshape(n, a, 4, h, w).transpose(0, 3, 4, 1, 2).reshape(n, h * w * a, 4)
    if p.iou_loss:
        found = box + delta
    else:
        size = box[..., 2:] - box[..., :2] + one
        centre = delta[..., :2] * size + (box[..., :2] + (size - one) * half)
        reach = (xp.exp(delta[..., 2:]) * size - one) * half
        found = xp.concatenate((centre - reach, centre + reach), -1)
    last = (im_info[:, 1::-1] - one)[:, None, :]  # width, height
    found = xp.maximum(xp.minimum(found, xp.concatenate((last, last), -1)), bbox_pred.dtype.type(0))
    rows, columns = (xp.floor(im_info[:, i] / stride).reshape(n, 1, 1, 1) for i in (0, 1))
    there = (xp.arange(h).reshape(h, 1, 1) < rows) & (xp.arange(w).reshape(w, 1) < columns)
    return found, xp.broadcast_to(there, (n, h, w, a)).reshape(n, h * w * a)


@silent
def _proposals(xp: Any, p: Params, ins: Any, survivors: Any) -> Any:
    """What proposals there are, by any way to find survivors."""
    cls_prob, bbox_pred, im_info = ins
    prob, info = wide(cls_prob), wide(im_info)
    n, a = prob.shape[0], prob.shape[1] // 2
    real = prob.dtype.type
    count = size_of(prob.shape[2:]) * a
    box, there = _proposed(xp, p, wide(bbox_pred), info)
    score = xp.where(there, prob[:, a:].transpose(0, 2, 3, 1).reshape(n, count), real(-1))
    least = (info[:, 2] * real(p.rpn_min_size)).reshape(n, 1)
    size = box[..., 2:] - box[..., :2] + real(1)
    small = (size[..., 0] < least) | (size[..., 1] < least)
    more = xp.where(small, least * real(0.5), real(0))[..., None]
    box = xp.concatenate((box[..., :2] - more, box[..., 2:] + more), -1)
    score = xp.where(small | xp.isnan(score), real(-1), score)

    first = count if p.rpn_pre_nms_top_n <= 0 else min(p.rpn_pre_nms_top_n, count)
    post = p.rpn_post_nms_top_n
    order = best_first(xp, score, xp.ones(score.shape, np.bool_))[:, :first]
    box, score = xp.take_along_axis(box, order[..., None], 1), xp.take_along_axis(score, order, 1)
    left, top, right, bottom = (box[..., i] for i in range(4))
    boxes = Boxes(left, top, right, bottom, (right - left + real(1)) * (bottom - top + real(1)))

    meeting = Meeting(p.threshold, longer=1)
    kept = survivors(xp, xp.ones(score.shape, np.bool_), boxes, None, meeting, min(post, first))
    found = xp.sum(kept, axis=1, keepdims=True)
    place = xp.argsort((~kept).astype(np.int8), axis=1, kind="stable")
    # Where there are too few, they come again.
    place = xp.take_along_axis(place, xp.arange(post) % xp.maximum(found, 1), 1)
    box, score = xp.take_along_axis(box, place[..., None], 1), xp.take_along_axis(score, place, 1)
    image = xp.broadcast_to(xp.arange(n, dtype=box.dtype).reshape(n, 1, 1), (n, post, 1))
    return xp.concatenate((image, box), -1).reshape(n * post, 5), score.reshape(n * post, 1)


_DOC = """{summary}

    Parameters
    ----------
    cls_prob : array
        Probabilities, shape ({n}, 2 * anchors, H, W): the second half is that of objects.
    bbox_pred : array
        Offsets of boxes from their anchors, shape ({n}, 4 * anchors, H, W).
    im_info : array
        Shape ({n}, 3): height and width of an image, and how much it was enlarged.
    rpn_pre_nms_top_n : int
        Only so many of the best boxes are looked at; all unless above zero.
    rpn_post_nms_top_n : int
        How many boxes {each}come out. If there are fewer, they come again from the first on.
    threshold : float
        A box that overlaps with a better one by more than this part of what they cover together goes.
    rpn_min_size : int
        Boxes below this size, times how much the image was enlarged, come last.
    scales, ratios : tuple of float
        Anchors have the area of a step times the square of each scale, and each ratio of height to width.
    feature_stride : int
        How many pixels of the image a step is.
    output_score : bool
        Give the probabilities, too.
    iou_loss : bool
        Offsets are those of the corners, in pixels.

    Returns
    -------
    output : array
        Shape ({rows}, 5): number of the image, and places of the first and the last pixel, left, top,
        right, bottom.
    score : array
        With `output_score`: shape ({rows}, 1); -1 for what is too small, or beyond its image.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``contrib.{name}``; its gradient is zero. A probability that is NaN counts as -1.
    Source: Ren et al., "Faster R-CNN", 2015.
    """


def _declare(name: str, summary: str, many: bool) -> Any:
    rows = "N * rpn_post_nms_top_n" if many else "rpn_post_nms_top_n"
    told = {"n": "N" if many else "1", "each": "of each image " if many else "", "rows": rows}

    def body(k: Call, p: Params, cls_prob: Array, bbox_pred: Array, im_info: Array) -> Any:
        return _proposals(k.xp, p, (cls_prob, bbox_pred, im_info), survivors)

    body.__doc__ = _DOC.format(name=name, summary=summary, **told)
    made = op(
        f"_contrib_{name}",
        inputs="cls_prob bbox_pred im_info",
        outputs="output score",
        visible=lambda p: 1 + p.output_score,
        **PROPOSAL_PARAMS,
        grad=None,
        helpers={"computed": _proposals},
    )(body)

    @made.shape
    def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
        a, post = len(p.scales) * len(p.ratios), p.rpn_post_nms_top_n
        if not a or min(*p.ratios, *p.scales) <= 0:
            raise ValueError(f"scales and ratios must be numbers above zero, got {p.scales} and {p.ratios}")
        prob = merge_shape(ins[0], (-1 if many else 1, 2 * a, -1, -1))
        delta = merge_shape(ins[1], (prob[0], 4 * a, *prob[2:]))
        info = merge_shape(ins[2], (delta[0], 3))
        prob = (info[0], 2 * a, *delta[2:])
        if 0 in prob:
            raise ValueError(f"cls_prob has shape {prob}: there is no place to propose boxes at")
        total = -1 if info[0] == -1 else info[0] * post
        return [prob, (info[0], *delta[1:]), info], [merge_shape(outs[0], (total, 5)), merge_shape(outs[1], (total, 1))]

    made.dtype(floating())
    made.cost(lambda p, ins, outs: 100 * size_of(ins[1]))
    return made


proposal = _declare("Proposal", "Regions of an image in which objects may be, the likeliest first.", False)
multi_proposal = _declare("MultiProposal", "Regions of images in which objects may be, the likeliest first.", True)
