"""Boxes and regions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mxcore.plugin import Call, Params, Spec

from ..kernels import boxes, multibox, regions, suppression
from ..typing import Array, Outs
from .common import FLOATS, cpu, helpers


def _survivors(xp: Any, alive: Any, found: Any, classes: Any, meeting: Any, most: int | None = None) -> Any:
    return suppression.survivors(alive, np.stack(found[:4]), found.area, classes, tuple(meeting), most)


#: What float16 loses is lost at the end: boxes are compared in float32.
_ALL = f"f2 {FLOATS}"


@cpu.kernel("_contrib_box_nms", dtypes=_ALL)
def _box_nms(k: Call, p: Params, data: Array) -> Any:
    found, index = helpers("_contrib_box_nms").computed(k.xp, p, data, _survivors)
    return found.astype(data.dtype, copy=False), index


for _name in ("_contrib_Proposal", "_contrib_MultiProposal"):

    @cpu.kernel(_name, dtypes=_ALL)
    def _suppressed(k: Call, p: Params, *ins: Array, _name: str = _name) -> Any:
        found = helpers(_name).computed(k.xp, p, ins, _survivors)
        parts = found if isinstance(found, tuple) else (found,)
        return [y.astype(ins[0].dtype, copy=False) for y in parts]


@cpu.kernel("_contrib_box_iou", dtypes=FLOATS, out=True)
def _box_iou(k: Call, p: Params, outs: Outs, lhs: Array, rhs: Array) -> None:
    n, m = math.prod(lhs.shape[:-1]), math.prod(rhs.shape[:-1])
    suppression.box_iou(lhs.reshape(n, 4), rhs.reshape(m, 4), outs[0].reshape(n, m), centred=p.format == "center")


@cpu.kernel("_contrib_box_encode", dtypes=FLOATS, when=lambda p, *ins: bool(ins[3].size))
def _box_encode(
    k: Call, p: Params, samples: Array, matches: Array, anchors: Array, refs: Array, means: Array, stds: Array
) -> Any:
    targets, masks = np.empty_like(anchors), np.empty_like(anchors)
    boxes.encode(samples, matches, anchors, refs, means, stds, targets, masks)
    return targets, masks


@cpu.kernel("_contrib_box_decode", dtypes=FLOATS, out=True)
def _box_decode(k: Call, p: Params, outs: Outs, data: Array, anchors: Array) -> None:
    stds = p.std0, p.std1, p.std2, p.std3
    boxes.decode(data, anchors[0], outs[0], stds=stds, clip=p.clip, centred=p.format == "center")


@cpu.kernel("_contrib_bipartite_matching", dtypes=FLOATS)
def _bipartite_matching(k: Call, p: Params, data: Array) -> Any:
    *batch, n, m = data.shape
    count = math.prod(batch)
    rows, columns = np.empty((count, n), data.dtype), np.empty((count, m), data.dtype)
    suppression.match(data.reshape(count, n, m), rows, columns, ascend=p.is_ascend, threshold=p.threshold, topk=p.topk)
    return rows.reshape(*batch, n), columns.reshape(*batch, m)


def _some_boxes(p: Params, anchor: Spec, label: Spec, scores: Spec) -> bool:
    return bool(anchor.size and label.size)


@cpu.kernel("_contrib_MultiBoxTarget", dtypes=FLOATS, when=_some_boxes)
def _multibox_target(k: Call, p: Params, anchor: Array, label: Array, scores: Array) -> Any:
    n, count = label.shape[0], anchor.shape[1]
    place, mask = np.empty((n, count, 4), anchor.dtype), np.empty((n, count, 4), anchor.dtype)
    found = np.empty((n, count), anchor.dtype)
    multibox.multibox_target(
        anchor[0],
        label,
        scores,
        place,
        mask,
        found,
        threshold=p.overlap_threshold,
        ignore=p.ignore_label,
        ratio=p.negative_mining_ratio,
        limit=p.negative_mining_thresh,
        variances=p.variances,
    )
    return place.reshape(n, count * 4), mask.reshape(n, count * 4), found


def _some_classes(p: Params, scores: Spec, offset: Spec, anchor: Spec) -> bool:
    return bool(scores.size) and scores.shape[1] > 1


@cpu.kernel("_contrib_MultiBoxDetection", dtypes=_ALL, when=_some_classes)
def _multibox_detection(k: Call, p: Params, scores: Array, offset: Array, anchor: Array) -> Array:
    n, _, count = scores.shape
    real = np.promote_types(scores.dtype, np.float32)
    suppressing = 0 < p.nms_threshold <= 1
    most = min(p.nms_topk, count) if p.nms_topk > 0 else count
    rows, many = multibox.located(
        scores.astype(real, copy=False),
        offset.astype(real, copy=False).reshape(n, count, 4),
        anchor[0].astype(real, copy=False),
        threshold=p.threshold,
        variances=p.variances,
        clip=p.clip,
        most=most if suppressing else 0,
    )
    if suppressing:
        most = min(most, int(many.max()))
        classes, _, *sides = np.ascontiguousarray(rows[:, :most].transpose(2, 0, 1))
        left, top, right, bottom = sides
        kept = suppression.survivors(
            np.arange(most) < many[:, None],
            np.stack(sides),
            (right - left) * (bottom - top),
            None if p.force_suppress else classes,
            (p.nms_threshold, True, 0),
            None,
        )
        rows[:, most:, 0] = -1
        rows[:, :most, 0][~kept] = -1
    return rows.astype(scores.dtype, copy=False)


# -- regions --------------------------------------------------------------------------------------------------------


def _aligned(p: Params, size: Any, rois: Array) -> regions.Bins:
    groups = math.prod(p.pooled_size) if p.position_sensitive else 1
    shift = 0.5 if p.aligned else 0.0
    return regions.aligned(
        rois, size, p.pooled_size, scale=p.spatial_scale, ratio=p.sample_ratio, shift=shift, groups=groups
    )


def _rotated(p: Params, size: Any, rois: Array) -> regions.Bins:
    most = helpers("_contrib_RROIAlign").most_places(size[1:])
    return regions.rotated(rois, size, p.pooled_size, scale=p.spatial_scale, ratio=p.sampling_ratio, most=most)


def _whole_pixels(p: Params, size: Any, rois: Array) -> regions.Bins:
    return regions.whole_pixels(rois, size, p.pooled_size, scale=p.spatial_scale, groups=p.group_size or p.pooled_size)


def _bent(p: Params, size: Any, rois: Array, trans: Array | None) -> regions.Bent:
    return regions.Bent(
        rois,
        trans,
        size,
        p.pooled_size,
        scale=p.spatial_scale,
        groups=p.group_size,
        parts=p.part_size or p.pooled_size,
        samples=p.sample_per_part,
        std=p.trans_std,
    )


def _size(data: Any) -> tuple[int, int, int]:
    n, _, h, w = data.shape
    return n, h, w


def _some(p: Params, data: Spec, rois: Spec, *rest: Spec) -> bool:
    return bool(data.size and rois.size)


def _some_gradients(p: Params, dy: Spec, data: Spec, rois: Spec, *rest: Spec) -> bool:
    return bool(data.size and rois.size)


for _name, _bins in (("ROIAlign", _aligned), ("RROIAlign", _rotated), ("PSROIPooling", _whole_pixels)):

    @cpu.kernel(f"_contrib_{_name}", dtypes=FLOATS, when=_some, out=True)
    def _pooled(k: Call, p: Params, outs: Outs, data: Array, rois: Array, _bins: Any = _bins) -> None:
        regions.pooled(data, _bins(p, _size(data), rois), outs[0])

    @cpu.kernel(f"_backward_{_name}", dtypes=FLOATS, when=_some_gradients, out=True)
    def _backward(k: Call, p: Params, outs: Outs, dy: Array, data: Any, rois: Array, _bins: Any = _bins) -> None:
        regions.pooled_backward(dy, _bins(p, _size(data), rois), outs[0])


@cpu.kernel("_contrib_DeformablePSROIPooling", dtypes=FLOATS, when=_some, out=True)
def _bent_regions(k: Call, p: Params, outs: Outs, data: Array, rois: Array, trans: Array | None = None) -> None:
    regions.pooled(data, _bent(p, _size(data), rois, trans), outs[0])


@cpu.kernel("_backward_DeformablePSROIPooling", dtypes=FLOATS, when=_some_gradients, out=True)
def _backward_bent_regions(
    k: Call, p: Params, outs: Outs, dy: Array, data: Array, rois: Array, trans: Array | None = None
) -> None:
    bins = _bent(p, _size(data), rois, trans)
    if outs[0] is not None:
        regions.pooled_backward(dy, bins, outs[0])
    if trans is not None and outs[1] is not None:
        bins.moves(dy, data, outs[1])
