"""Gradients of the operators of :mod:`mxcore.ops.detection`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._core.op import Op, op
from ..._core.params import Params
from ...typing import Array, Call, Operand, Operators
from ..common.bodies import silent, wide
from ..common.gradients import given
from ..common.rules import fits, size_of
from .regions import (
    ALIGN_PARAMS,
    DEFORMABLE_PARAMS,
    POSITION_PARAMS,
    ROTATED_PARAMS,
    align_planes,
    aligned,
    bent,
    deformable_psroi_pooling,
    group_planes,
    own_planes,
    parts_of,
    psroi_pooling,
    roi_align,
    rotated,
    rroi_align,
    scattered,
    whole_pixels,
)

__all__: list[str] = []


# -- box_nms: rows at places, and back ------------------------------------------------------------------------------


@op("_backward_box_nms", inputs="dy index", grad=lambda F, p, dys, index: (F._forward_box_nms(dys[0], index), None))
def backward_box_nms(k: Call, p: Params, dy_: Array, index: Array) -> Array:
    """Gradient of `_contrib_box_nms`: to the boxes that were left.

    Parameters
    ----------
    dy : array
        The incoming gradient, shape (\\*batch, N, numbers).
    index : array
        Which box each one is, shape (\\*batch, N); -1 for none.
    """
    xp, (n, width) = k.xp, dy_.shape[-2:]
    dy, at = dy_.reshape(-1, width), index.reshape(-1)
    # The row after the last one takes what belongs to nobody.
    out = xp.zeros((dy.shape[0] + 1, width), dy_.dtype)
    first = xp.arange(dy.shape[0]) // max(n, 1) * n
    out[xp.where(at < 0, dy.shape[0], first + at)] = dy
    return out[:-1].reshape(dy_.shape)


@op("_forward_box_nms", inputs="data index", grad=lambda F, p, dys, index: (F._backward_box_nms(dys[0], index), None))
def forward_box_nms(k: Call, p: Params, data: Array, index: Array) -> Array:
    """Rows of boxes at places, zeros for -1.

    Parameters
    ----------
    data : array
        Shape (\\*batch, N, numbers).
    index : array
        Shape (\\*batch, N).
    """
    xp = k.xp
    found = xp.take_along_axis(data, xp.maximum(index, 0)[..., None], data.ndim - 2) if data.size else data
    return xp.where(index[..., None] >= 0, found, xp.zeros_like(found))


for _op in (backward_box_nms, forward_box_nms):

    @_op.shape
    def _(p: Params, ins: list[Any]) -> list[Any]:
        fits("index", ins[1:], (ins[0][:-1],))
        return [ins[0]]

    _op.dtype(lambda p, ins, outs: ([ins[0] or outs[0], ins[1]], [ins[0] or outs[0]]))
    _op.cost(lambda p, ins, outs: 4 * size_of(ins[0]))


# -- regions: sums over pixels --------------------------------------------------------------------------------------


def _backward(forward: Op, name: str, params: Any, planes: Any, taps: Any) -> Op:
    """The gradient by images of pooling that is linear in them."""

    @silent
    def body(k: Call, p: Params, dy_: Array, data: Array, rois: Array) -> Array:
        dy, regions = wide(dy_), wide(rois)
        if not dy.size or not size_of(data.shape):
            return k.xp.zeros(tuple(data.shape), dy.dtype)
        seen = planes(k.xp, p, data, regions)
        return scattered(k.xp, dy, data, seen, taps(k.xp, p, regions, data.shape[2:]))

    names = ", ".join(params)
    body.__doc__ = f"""Gradient of `_contrib_{name}` with respect to its images.

    Parameters
    ----------
    dy : array
        The incoming gradient.
    data : array
        Only its shape is used.
    rois : array
        The regions.
    {names}
        As in `_contrib_{name}`.
    """

    def rule(F: Operators, p: Params, dys: Operand, like_dy: Operand, rois: Operand) -> Any:  # it is linear
        return getattr(F, f"_contrib_{name}")(dys[0], rois, **given(p, params)), None, None

    made = op(f"_backward_{name}", inputs="dy data~ rois", **params, grad=rule)(body)

    @made.shape
    def _(p: Params, ins: list[Any]) -> list[Any]:
        dy, data, rois = ins
        [(data, rois), (out,)] = forward.shape_rule(p, [data, rois], [None])
        fits("dy", (dy,), (out,))
        return [data]

    made.dtype(lambda p, ins, outs: ([ins[0] or outs[0]] * 3, [ins[0] or outs[0]]))
    made.cost(lambda p, ins, outs: 16 * size_of(ins[0]))
    return made


backward_roi_align = _backward(roi_align, "ROIAlign", ALIGN_PARAMS, align_planes, aligned)
backward_rroi_align = _backward(rroi_align, "RROIAlign", ROTATED_PARAMS, own_planes, rotated)
backward_psroi_pooling = _backward(psroi_pooling, "PSROIPooling", POSITION_PARAMS, group_planes, whole_pixels)


@deformable_psroi_pooling.grad
def _(F: Operators, p: Params, dy: Operand, data: Operand, rois: Operand, trans: Operand, needs: Sequence[bool]) -> Any:
    ins = (data, rois) if p.no_trans else (data, rois, trans)
    wanted = tuple(n for i, n in enumerate(needs) if i != 1)
    found = F._backward_DeformablePSROIPooling(dy, *ins, wanted=wanted, **given(p, DEFORMABLE_PARAMS))
    return (found, None) if p.no_trans else (found[0], None, found[1])


@op(
    "_backward_DeformablePSROIPooling",
    inputs="dy data rois trans[not no_trans]",
    outputs="data trans[not no_trans]",
    **DEFORMABLE_PARAMS,
)
@silent
def backward_deformable_psroi_pooling(
    k: Call, p: Params, dy_: Array, data: Array, rois: Array, trans: Array = None
) -> Any:
    """Gradients of `_contrib_DeformablePSROIPooling` with respect to images and moves.

    Parameters
    ----------
    dy : array
        The incoming gradient.
    data, rois, trans : array
        The inputs.
    spatial_scale, output_dim, group_size, pooled_size, part_size, sample_per_part, trans_std, no_trans
        As in `_contrib_DeformablePSROIPooling`.
    """
    xp, dy, x, regions = k.xp, wide(dy_), wide(data), wide(rois)
    bend = None if trans is None else wide(trans)
    wanted = k.wanted or (True, trans is not None)
    some = bool(dy.size and x.size)
    planes: Any = group_planes(xp, p, x, regions) if some else None
    d_data = d_trans = None
    if wanted[0]:
        d_data = scattered(xp, dy, x, planes, bent(xp, p, regions, bend, x.shape[2:])) if some else xp.zeros_like(x)
    if trans is None:
        return d_data
    if wanted[1]:
        d_trans = xp.zeros_like(bend)
        if some:
            by = [xp.zeros(tuple(dy.shape), dy.dtype)] * 2
            flat, pixels = x.reshape(-1), x.shape[2] * x.shape[3]
            for tap in bent(xp, p, regions, bend, x.shape[2:]):
                seen = xp.where(planes.there, xp.take(flat, planes.plane * pixels + tap.index) * dy, dy.dtype.type(0))
                by = [by[0] + seen * tap.by_x, by[1] + seen * tap.by_y]
            part, parts = parts_of(xp, p)
            classes, std = trans.shape[1] // 2, dy.dtype.type(p.trans_std)
            bins = (part[:, None] == xp.arange(parts)).astype(dy.dtype)
            for axis, slope in enumerate(by):
                slope = slope.reshape(dy.shape[0], classes, -1, *dy.shape[2:]).sum(2) * std
                d_trans[:, axis::2] = xp.matmul(bins.T, xp.matmul(slope, bins))
    return [d_data, d_trans]


@backward_deformable_psroi_pooling.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    dy, *rest = ins
    found, (out,) = deformable_psroi_pooling.shape_rule(p, rest, [None])
    fits("dy", (dy,), (out,))
    return [found[0], *found[2:]]


backward_deformable_psroi_pooling.cost(lambda p, ins, outs: 40 * size_of(ins[0]))
