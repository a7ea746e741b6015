"""Pooling over regions of interest."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.infer import merge_shape
from ..._core.op import op
from ..._core.params import Params
from ...parameters import Float, Shape
from ...typing import Array, Call
from ..common.bodies import wide
from ..common.rules import floating, size_of

__all__: list[str] = []


_PARAMS = dict(pooled_size=Shape(), spatial_scale=Float(ge=0, le=1))


def _size(p: Params) -> tuple[int, int]:
    if len(p.pooled_size) != 2 or min(p.pooled_size) < 1:
        raise ValueError(f"pooled_size must be a height and a width of at least 1, got {p.pooled_size}")
    height, width = p.pooled_size
    return height, width


def _rounded(xp: Any, v: Any) -> Any:
    """To the nearest whole number, halves away from zero."""
    whole = xp.trunc(v)
    return whole + xp.sign(v) * (xp.abs(v - whole) >= v.dtype.type(0.5))


def _bins(xp: Any, first: Any, last: Any, count: int, size: int) -> tuple[Any, Any]:
    """First and end of each of `count` bins along one axis: whole numbers (regions, count), cut at the image of `size`.

    The arithmetic is that of the data's dtype, as in MXNet: where a bin ends on a whole number, rounding decides.
    """
    real = first.dtype.type
    length = xp.maximum(last - first + real(1), real(1)) / real(count)
    at = xp.arange(count, dtype=first.dtype)
    start = xp.floor(length[:, None] * at) + first[:, None]
    end = xp.ceil(length[:, None] * (at + real(1))) + first[:, None]
    return xp.clip(start, 0, size).astype(np.int64), xp.clip(end, 0, size).astype(np.int64)


@op(
    "ROIPooling",
    inputs="data rois",
    labels="outputs",
    outputs="output maxidx",
    visible=1,
    **_PARAMS,
    grad=lambda F, p, dy, like_data, out_maxidx, rois: (F._backward_ROIPooling(dy, like_data, out_maxidx, rois), None),
)
def roi_pooling(k: Call, p: Params, data: Array, rois: Array) -> Any:
    """Cut regions out of images into a fixed number of bins, and take the maximum of each bin.

    Parameters
    ----------
    data : array
        Images, shape (N, C, H, W).
    rois : array
        Regions, shape (R, 5): number of the image, and the places x1, y1, x2, y2 of the first and the last element.
        Regions of images that there are not, or that are not finite, are zero. Gets no gradient.
    pooled_size : (int, int)
        Number of bins: rows and columns.
    spatial_scale : float
        Places times this number are places of the images, from 0 to 1.

    Returns
    -------
    array
        Shape (R, C, \\*pooled_size); zero where a bin is empty.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``ROIPooling``. Source: Girshick, "Fast R-CNN", 2015.
    """
    xp = k.xp
    n, c, h, w = data.shape
    ph, pw = _size(p)
    r = rois.shape[0]
    x, corners = wide(data), wide(rois)
    place = _rounded(xp, corners[:, 1:] * corners.dtype.type(p.spatial_scale))
    y0, y1 = _bins(xp, place[:, 1], place[:, 3], ph, h)
    x0, x1 = _bins(xp, place[:, 0], place[:, 2], pw, w)
    there = (corners[:, 0] >= 0) & (corners[:, 0] < n) & xp.isfinite(place).all(1)
    image = xp.where(there, corners[:, 0], corners.dtype.type(0)).astype(np.int64)
    there = there.reshape(r, 1, 1, 1)
    if not r or not x.size:
        return xp.zeros((r, c, ph, pw), x.dtype), xp.full((r, c, ph, pw), -1, np.int64)
    mine = xp.take(x, image, 0)
    # First the rows of each bin, column by column of the image, then its columns. Of equals the first row wins, then
    # the first column.
    lowest = x.dtype.type(-np.inf)
    best, row = xp.full((r, c, ph, w), lowest, x.dtype), xp.full((r, c, ph, w), -1, np.int64)
    for y in range(h):
        inside = ((y0 <= y) & (y < y1))[:, None, :, None] & there
        v = xp.where(inside, mine[:, :, None, y], lowest)
        better = v > best
        best, row = xp.where(better, v, best), xp.where(better, y, row)
    most, at = xp.full((r, c, ph, pw), lowest, x.dtype), xp.full((r, c, ph, pw), -1, np.int64)
    for z in range(w):
        inside = ((x0 <= z) & (z < x1))[:, None, None, :]
        v, y = best[..., z : z + 1], row[..., z : z + 1]
        better = inside & ((v > most) | (v == most) & (y >= 0) & (y < at // w))
        most, at = xp.where(better, v, most), xp.where(better, y * w + z, at)
    return xp.where(at < 0, x.dtype.type(0), most), at


@roi_pooling.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    data, rois, out = (
        merge_shape(ins[0], (-1,) * 4),
        merge_shape(ins[1], (-1, 5)),
        merge_shape(outs[0], (-1, -1, *_size(p))),
    )
    r, c = merge_shape(rois[:1], out[:1]), merge_shape(data[1:2], out[1:2])
    out = (*r, *c, *out[2:])
    return [(data[0], *c, *data[2:]), (*r, 5)], [out, out]


@roi_pooling.dtype
@floating
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    t = ins[0] or ins[1] or outs[0]
    return [t, t], [t, np.dtype(np.int64)]


roi_pooling.cost(lambda p, ins, outs: 4 * ins[1][0] * size_of(ins[0][1:]))
