"""Pooling over regions of interest, between the pixels: averages of the values at places of each bin.

What they have in common: each bin of each region is a weighted sum of pixels, *taps*. A layout of channels says of
which plane: in the position-sensitive operators each bin sees channels of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..._core.infer import merge_shape
from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool, Float, Int, Shape
from ...typing import Array, Call
from ..common.bodies import silent, wide
from ..common.gradients import given
from ..common.rules import floating, size_of

__all__ = [
    "ALIGN_PARAMS",
    "DEFORMABLE_PARAMS",
    "POSITION_PARAMS",
    "ROTATED_PARAMS",
    "Planes",
    "Tap",
    "align_planes",
    "aligned",
    "bent",
    "gathered",
    "group_planes",
    "moves",
    "own_planes",
    "parts_of",
    "planes_of",
    "rotated",
    "scattered",
    "whole_pixels",
]


class Tap(NamedTuple):
    """A pixel of each bin: where it is in its plane, what it counts; and for bent bins how that grows with y and x."""

    index: Any
    weight: Any
    by_y: Any = None
    by_x: Any = None


class Planes(NamedTuple):
    """Which plane of the images each bin sees, (R, C, PH, PW), and whether there is that image, (R, 1, 1, 1)."""

    plane: Any
    there: Any


def planes_of(xp: Any, data: Any, rois: Any, bins: tuple[int, int], channels: int, group: Any) -> Planes:
    """The planes of bins that see channels in turn, groups of `group` (PH, PW) of them, or all the same ones (None)."""
    n, c = data.shape[:2]
    image = rois[:, 0]
    there = ((image >= 0) & (image < n)).reshape(-1, 1, 1, 1)
    first = xp.where(there, image.reshape(-1, 1, 1, 1), 0).astype(np.int64) * c
    channel = xp.arange(channels).reshape(channels, 1, 1)
    if group is not None:
        channel = channel * (c // channels) + group
    return Planes(first + xp.broadcast_to(channel, (channels, *bins)), there)


def gathered(xp: Any, data: Any, planes: Planes, taps: Iterator[Tap]) -> Any:
    """The sum of what all taps see, (R, C, PH, PW)."""
    pixels = data.shape[2] * data.shape[3]
    flat, out = data.reshape(-1), xp.zeros(planes.plane.shape, data.dtype)
    for tap in taps:
        seen = xp.take(flat, planes.plane * pixels + tap.index)
        out = out + xp.where(planes.there & (tap.weight != 0), seen * tap.weight, data.dtype.type(0))
    return out


def scattered(xp: Any, dy: Any, data: Any, planes: Planes, taps: Iterator[Tap]) -> Any:
    """The gradient of :func:`gathered` by the images, of which only the shape is used."""
    pixels = data.shape[2] * data.shape[3]
    flat = xp.zeros((size_of(data.shape),), dy.dtype)
    for tap in taps:
        share = xp.where(planes.there & (tap.weight != 0), dy * tap.weight, dy.dtype.type(0))
        xp.add.at(flat, (planes.plane * pixels + tap.index).reshape(-1), share.reshape(-1))
    return flat.reshape(data.shape)


def _pair(name: str, size: tuple[int, ...]) -> tuple[int, int]:
    if len(size) != 2 or min(size) < 1:
        raise ValueError(f"{name} must be a height and a width of at least 1, got {size}")
    return size[0], size[1]


def _corners(xp: Any, y: Any, x: Any, size: Any, weight: Any) -> Iterator[Tap]:
    """Taps around places, which end at most a pixel beyond the image; the last pixels reach on."""
    axes = []
    for at, n in ((y, size[0]), (x, size[1])):
        inside, place = (at >= -1) & (at <= n), xp.maximum(at, at.dtype.type(0))
        low = xp.floor(xp.where(inside, place, 0))
        last = low >= n - 1
        after = xp.where(last, at.dtype.type(0), place - low)
        low = xp.minimum(low.astype(np.int64), n - 1)
        axes.append((inside, low, xp.minimum(low + 1, n - 1), after))
    (in_y, y0, y1, ly), (in_x, x0, x1, lx) = axes
    counts = xp.where(in_y & in_x, weight, y.dtype.type(0))
    for row, sy in ((y0, 1 - ly), (y1, ly)):
        for column, sx in ((x0, 1 - lx), (x1, lx)):
            yield Tap(row * size[1] + column, xp.where(counts != 0, sy * sx * counts, counts))


# -- ROIAlign -------------------------------------------------------------------------------------------------------

ALIGN_PARAMS = dict(
    pooled_size=Shape(),
    spatial_scale=Float(),
    sample_ratio=Int(-1),
    position_sensitive=Bool(False),
    aligned=Bool(False),
)


def _grid(xp: Any, size: Any, ratio: int) -> Any:
    """How many places a bin of this size has along an axis, as floats; none unless the size is a number above zero."""
    real = size.dtype.type
    return xp.where(xp.isfinite(size) & (size > 0), real(ratio) if ratio > 0 else xp.ceil(size), real(0))


def _reach(xp: Any, start: Any, step: Any, count: Any, n: int) -> tuple[Any, int]:
    """The first of `count` places from `start` on that can be seen from `n` pixels, and how many steps it may take."""
    ok = xp.isfinite(start) & (count > 0)
    count = xp.where(ok, count, start.dtype.type(0))
    each = xp.where(ok, step, start.dtype.type(1))
    from_ = xp.where(ok, start, start.dtype.type(0))
    first = xp.clip(xp.floor((-1 - from_) / each - 1.5), 0, count)
    last = xp.clip(xp.ceil((n - from_) / each + 0.5), first, count)
    return first, int(xp.max(last - first).item()) if size_of(first.shape) else 0


def aligned(xp: Any, p: Params, rois: Any, size: tuple[int, int]) -> Iterator[Tap]:
    """The taps of `ROIAlign`."""
    real, bins = rois.dtype.type, _pair("pooled_size", p.pooled_size)
    shift = real(0.5 if p.aligned else 0)
    axes: list[Any] = []
    places = real(1)
    for i, (count, n) in enumerate(zip(bins, size)):
        first, last = (rois[:, j] * real(p.spatial_scale) - shift for j in (2 - i, 4 - i))
        length = last - first if p.aligned else xp.maximum(last - first, real(1))
        each = (length / real(count)).reshape(-1, 1)
        grid = _grid(xp, each, p.sample_ratio)
        start = first.reshape(-1, 1) + xp.arange(count, dtype=rois.dtype) * each
        skip, steps = _reach(xp, start, each / xp.maximum(grid, real(1)), grid, n)
        shape = (-1, 1, count, 1) if i == 0 else (-1, 1, 1, count)
        spread = [xp.broadcast_to(v, tuple(start.shape)).reshape(shape) for v in (start, each, grid, skip)]
        axes.append((*spread, steps))
        places = grid.reshape(-1, 1, 1, 1) * places
    weight = 1 / xp.maximum(places, real(1))

    def along(axis: Any, i: int) -> tuple[Any, Any]:
        start, each, grid, skip, _ = axis
        at = skip + real(i)
        return start + (at + real(0.5)) * each / xp.maximum(grid, real(1)), at < grid

    for i in range(axes[0][4]):
        y, in_y = along(axes[0], i)
        for j in range(axes[1][4]):
            x, in_x = along(axes[1], j)
            yield from _corners(xp, y, x, size, xp.where(in_y & in_x, weight, real(0)))


def align_planes(xp: Any, p: Params, data: Any, rois: Any) -> Planes:
    """The planes of the bins of `ROIAlign`."""
    bins = _pair("pooled_size", p.pooled_size)
    own = xp.arange(size_of(bins)).reshape(bins) if p.position_sensitive else None
    return planes_of(xp, data, rois, bins, data.shape[1] // (size_of(bins) if p.position_sensitive else 1), own)


def _pooled_gradient(name: str, params: Any) -> Any:
    """The gradient rule of a sum over pixels: regions get none."""

    def rule(F: Any, p: Params, dy: Any, like_data: Any, rois: Any) -> Any:
        return getattr(F, f"_backward_{name}")(dy, like_data, rois, **given(p, params)), None

    return rule


@op("_contrib_ROIAlign", inputs="data rois", **ALIGN_PARAMS, grad=_pooled_gradient("ROIAlign", ALIGN_PARAMS))
@silent
def roi_align(k: Call, p: Params, data: Array, rois: Array) -> Array:
    """Cut regions out of images into a fixed number of bins, and average values at places of each bin.

    Parameters
    ----------
    data : array
        Images, shape (N, C, H, W).
    rois : array
        Regions, shape (R, 5): number of the image, and its corners x1, y1, x2, y2. Regions of images that there are not
        are zero. Gets no gradient.
    pooled_size : (int, int)
        Number of bins: rows and columns.
    spatial_scale : float
        Corners times this number are places of the images.
    sample_ratio : int
        How many places a bin has along each axis; unless above zero, about as many as pixels.
    position_sensitive : bool
        Each bin sees channels of its own: that many times fewer come out.
    aligned : bool
        Pixels are half a pixel before where they would be, and regions may be smaller than a pixel.

    Returns
    -------
    array
        Shape (R, C, \\*pooled_size).

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``contrib.ROIAlign``. What lies more than a pixel beyond an image is zero, and so are
    regions that are not finite. Source: He et al., "Mask R-CNN", 2017.

    Examples
    --------
    >>> import mxcore as mx
    >>> image = mx.nd.arange(16).reshape((1, 1, 4, 4))
    >>> align = mx.nd.contrib.ROIAlign
    >>> align(image, mx.nd.array([[0, 0, 0, 2, 2]]), pooled_size=(2, 2), spatial_scale=1).asnumpy()[0, 0]
    array([[2.5, 3.5],
           [6.5, 7.5]], dtype=float32)
    """
    xp, x, regions = k.xp, wide(data), wide(rois)
    planes = align_planes(xp, p, x, regions)
    if not x.size:
        return xp.zeros(planes.plane.shape, x.dtype)
    return gathered(xp, x, planes, aligned(xp, p, regions, data.shape[2:]))


@roi_align.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    bins = _pair("pooled_size", p.pooled_size)
    return _region_shapes(ins, outs, bins, size_of(bins) if p.position_sensitive else 1, 5)


def _region_shapes(
    ins: list[Any], outs: list[Any], bins: tuple[int, int], parts: int, width: int
) -> tuple[list[Any], list[Any]]:
    """Shapes of data, rois and output, which has `parts` times fewer channels."""
    data, rois = merge_shape(ins[0], (-1,) * 4), merge_shape(ins[1], (-1, width))
    if data[1] != -1 and data[1] % parts:
        raise ValueError(f"data has {data[1]} channels, which is no multiple of the {parts} bins that see their own")
    out = merge_shape(outs[0], (rois[0], -1 if data[1] == -1 else data[1] // parts, *bins))
    if out[1] != -1:
        data = (data[0], out[1] * parts, *data[2:])
    return [data, (out[0], width)], [out]


# -- rotated regions ------------------------------------------------------------------------------------------------


def _most_places(size: tuple[int, int]) -> int:
    """How many places a bin of a rotated region has along an axis, at most: more than can be seen apart."""
    return max(32, 2 * (size[0] + size[1]))


ROTATED_PARAMS = dict(pooled_size=Shape(), spatial_scale=Float(), sampling_ratio=Int(-1))


def rotated(xp: Any, p: Params, rois: Any, size: tuple[int, int]) -> Iterator[Tap]:
    """The taps of `RROIAlign`."""
    real, bins = rois.dtype.type, _pair("pooled_size", p.pooled_size)
    x, y, w, h = (rois[:, i] * real(p.spatial_scale) for i in range(1, 5))
    angle = rois[:, 5] * real(np.pi / 180)
    ok = xp.isfinite(x + y + w + h + angle)
    x, y, w, h, angle = (xp.where(ok, v, real(0)).reshape(-1, 1, 1, 1) for v in (x, y, w, h, angle))
    w, h = xp.maximum(w, real(1)), xp.maximum(h, real(1))
    each = h / real(bins[0]), w / real(bins[1])
    grid = [xp.minimum(_grid(xp, v, p.sampling_ratio), real(_most_places(size))) for v in each]
    if not rois.shape[0]:
        return
    steps = [int(xp.max(g).item()) for g in grid]
    weight = xp.where(ok.reshape(-1, 1, 1, 1), 1 / xp.maximum(grid[0] * grid[1], real(1)), real(0))
    sin, cos = xp.sin(angle), xp.cos(angle)
    row = xp.arange(bins[0], dtype=rois.dtype).reshape(1, 1, -1, 1) * each[0] - h / real(2)
    column = xp.arange(bins[1], dtype=rois.dtype).reshape(1, 1, 1, -1) * each[1] - w / real(2)
    for i in range(steps[0]):
        dy = row + each[0] * real(i + 0.5) / grid[0]
        for j in range(steps[1]):
            dx = column + each[1] * real(j + 0.5) / grid[1]
            counts = xp.where((grid[0] > i) & (grid[1] > j), weight, real(0))
            yield from _corners(xp, dy * cos - dx * sin + y, dx * cos + dy * sin + x, size, counts)


def own_planes(xp: Any, p: Params, data: Any, rois: Any) -> Planes:
    """The planes of bins that see all channels."""
    return planes_of(xp, data, rois, _pair("pooled_size", p.pooled_size), data.shape[1], None)


@op(
    "_contrib_RROIAlign",
    inputs="data rois",
    **ROTATED_PARAMS,
    grad=_pooled_gradient("RROIAlign", ROTATED_PARAMS),
    helpers={"most_places": _most_places},
)
@silent
def rroi_align(k: Call, p: Params, data: Array, rois: Array) -> Array:
    """Cut rotated regions out of images into a fixed number of bins, and average values at places of each bin.

    Parameters
    ----------
    data : array
        Images, shape (N, C, H, W).
    rois : array
        Regions, shape (R, 6): number of the image, x and y of the centre, width, height, and an angle in degrees.
        Regions of images that there are not are zero. Gets no gradient.
    pooled_size : (int, int)
        Number of bins: rows and columns.
    spatial_scale : float
        Centres and sizes times this number are those in the images.
    sampling_ratio : int
        How many places a bin has along each axis; unless above zero, about as many as pixels; at most 32
        or twice the image's height and width together.

    Returns
    -------
    array
        Shape (R, C, \\*pooled_size).

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``contrib.RROIAlign``, which has no gradient. What lies more than a pixel beyond an
    image is zero, and so are regions that are not finite. Source: Ma et al., "Arbitrary-oriented scene text detection
    via rotation proposals", 2018.
    """
    xp, x, regions = k.xp, wide(data), wide(rois)
    planes = own_planes(xp, p, x, regions)
    if not x.size:
        return xp.zeros(planes.plane.shape, x.dtype)
    return gathered(xp, x, planes, rotated(xp, p, regions, data.shape[2:]))


rroi_align.shape(lambda p, ins, outs: _region_shapes(ins, outs, _pair("pooled_size", p.pooled_size), 1, 6))


# -- position-sensitive pooling -------------------------------------------------------------------------------------

POSITION_PARAMS = dict(spatial_scale=Float(), output_dim=Int(ge=1), pooled_size=Int(ge=1), group_size=Int(0, ge=0))


def _rounded(xp: Any, v: Any) -> Any:
    """To the nearest whole number, halves away from zero."""
    return xp.trunc(v) + xp.sign(v) * (xp.abs(v - xp.trunc(v)) >= v.dtype.type(0.5))


def _groups(xp: Any, p: Params) -> Any:
    """Which of the groups of channels each bin sees, (PH, PW)."""
    n, groups = p.pooled_size, p.group_size or p.pooled_size
    one = xp.minimum(xp.arange(n) * groups // n, groups - 1)
    return one[:, None] * groups + one


def group_planes(xp: Any, p: Params, data: Any, rois: Any) -> Planes:
    """The planes of bins that see a group of channels each."""
    return planes_of(xp, data, rois, (p.pooled_size,) * 2, p.output_dim, _groups(xp, p))


def _sides(xp: Any, p: Params, rois: Any, i: int) -> tuple[Any, Any]:
    """Where regions begin along an axis, and how long they are: whole places of the image, times the scale."""
    scale, real = rois.dtype.type(p.spatial_scale), rois.dtype.type
    first = _rounded(xp, rois[:, 2 - i]) * scale
    last = (_rounded(xp, rois[:, 4 - i]) + real(1)) * scale
    return first, xp.maximum(last - first, real(0.1))


def whole_pixels(xp: Any, p: Params, rois: Any, size: tuple[int, int]) -> Iterator[Tap]:
    """The taps of `PSROIPooling`: all pixels of each bin."""
    real, axes, area = rois.dtype.type, [], 1
    at = xp.arange(p.pooled_size, dtype=rois.dtype)
    for i in (0, 1):
        first, length = _sides(xp, p, rois, i)
        each, first = (length / real(p.pooled_size)).reshape(-1, 1), first.reshape(-1, 1)
        start, end = xp.floor(at * each + first), xp.ceil((at + real(1)) * each + first)
        start, end = (xp.clip(xp.where(xp.isnan(v), real(0), v), 0, size[i]).astype(np.int64) for v in (start, end))
        shape = (-1, 1, p.pooled_size, 1) if i == 0 else (-1, 1, 1, p.pooled_size)
        axes.append((start.reshape(shape), end.reshape(shape)))
        area = area * xp.maximum(axes[-1][1] - axes[-1][0], 0)
    if not rois.shape[0]:
        return
    weight = 1 / xp.maximum(area, 1).astype(rois.dtype)
    (top, bottom), (left, right) = axes
    for y in range(max(int(xp.max(bottom - top).item()), 0)):
        for x in range(max(int(xp.max(right - left).item()), 0)):
            inside = (top + y < bottom) & (left + x < right)
            index = xp.where(inside, (top + y) * size[1] + left + x, 0)
            yield Tap(index, xp.where(inside, weight, real(0)))


def _position_shapes(p: Params, ins: list[Any], outs: list[Any]) -> Any:
    bins, groups = p.pooled_size, p.group_size or p.pooled_size
    data = merge_shape(ins[0], (-1,) * 4)
    wanted = p.output_dim * groups * groups
    if data[1] not in (-1, wanted):
        raise ValueError(
            f"data has {data[1]} channels; output_dim {p.output_dim} of {groups} x {groups} groups want {wanted}"
        )
    return _region_shapes([(data[0], wanted, *data[2:]), ins[1]], outs, (bins, bins), groups * groups, 5)


@op(
    "_contrib_PSROIPooling",
    inputs="data rois",
    **POSITION_PARAMS,
    grad=_pooled_gradient("PSROIPooling", POSITION_PARAMS),
)
@silent
def psroi_pooling(k: Call, p: Params, data: Array, rois: Array) -> Array:
    """Cut regions out of images into bins, and average each bin over channels of its own.

    Parameters
    ----------
    data : array
        Images, shape (N, output_dim * group_size ** 2, H, W).
    rois : array
        Regions, shape (R, 5): number of the image, and the places x1, y1, x2, y2 of the first and the last element.
        Regions of images that there are not are zero. Gets no gradient.
    spatial_scale : float
        Places times this number are places of the images.
    output_dim : int
        Channels of the result.
    pooled_size : int
        Number of bins along each axis.
    group_size : int
        Number of groups of channels along each axis; as many as bins for zero.

    Returns
    -------
    array
        Shape (R, output_dim, pooled_size, pooled_size); zero where a bin is empty.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``contrib.PSROIPooling``. Source: Dai et al., "R-FCN", 2016.
    """
    xp, x, regions = k.xp, wide(data), wide(rois)
    planes = group_planes(xp, p, x, regions)
    if not x.size:
        return xp.zeros(planes.plane.shape, x.dtype)
    return gathered(xp, x, planes, whole_pixels(xp, p, regions, data.shape[2:]))


psroi_pooling.shape(_position_shapes)


DEFORMABLE_PARAMS = dict(
    spatial_scale=Float(),
    output_dim=Int(ge=1),
    group_size=Int(ge=1),
    pooled_size=Int(ge=1),
    part_size=Int(0, ge=0),
    sample_per_part=Int(1, ge=1),
    trans_std=Float(0.0),
    no_trans=Bool(False),
)


def parts_of(xp: Any, p: Params) -> tuple[Any, int]:
    """Which part each bin lies in, along either axis, and how many there are."""
    parts = p.part_size or p.pooled_size
    return xp.arange(p.pooled_size) * parts // p.pooled_size, parts


def moves(xp: Any, p: Params, trans: Any) -> list[Any]:
    """How far bins are moved, down and to the right: parts of a region, (R, output_dim, bins, bins)."""
    real, (part, _) = trans.dtype.type, parts_of(xp, p)
    each = p.output_dim // (trans.shape[1] // 2)
    mine = trans[:, :, part[:, None], part] * real(p.trans_std)
    return [xp.repeat(mine[:, i::2], each, 1) for i in (1, 0)]


def bent(xp: Any, p: Params, rois: Any, trans: Any, size: tuple[int, int]) -> Iterator[Tap]:
    """The taps of `DeformablePSROIPooling`, with what its gradients want: weights by how far bins are moved."""
    real, bins, samples = rois.dtype.type, p.pooled_size, p.sample_per_part
    moved = [real(0)] * 2 if p.no_trans else moves(xp, p, trans)
    axes = []
    for i in (0, 1):
        scale = real(p.spatial_scale)
        first = _rounded(xp, rois[:, 2 - i]) * scale - real(0.5)
        last = (_rounded(xp, rois[:, 4 - i]) + real(1)) * scale - real(0.5)
        length = xp.maximum(last - first, real(0.1)).reshape(-1, 1, 1, 1)
        each = length / real(bins)
        at = xp.arange(bins, dtype=rois.dtype).reshape((1, 1, -1, 1) if i == 0 else (1, 1, 1, -1))
        start = at * each + first.reshape(-1, 1, 1, 1) + length * moved[i]
        axes.append((start, each / real(samples), length))

    def along(i: int, j: int) -> tuple[Any, ...]:
        start, step, length = axes[i]
        at, n = start + step * real(j), size[i]
        seen = (at >= real(-0.5)) & (at <= real(n - 0.5))
        at = xp.where(seen, xp.clip(at, 0, n - 1), real(0))
        low, high = xp.floor(at), xp.ceil(at)
        return seen, low.astype(np.int64), high.astype(np.int64), at - low, length

    count: Any = real(1)
    for i in (0, 1):
        count = sum(along(i, j)[0].astype(rois.dtype) for j in range(samples)) * count
    weight = xp.where(count > 0, 1 / xp.maximum(count, real(1)), real(0))
    for i in range(samples):
        in_y, y0, y1, ly, height = along(0, i)
        for j in range(samples):
            in_x, x0, x1, lx, width = along(1, j)
            each = xp.where(in_y & in_x, weight, real(0))
            for row, sy, up in ((y0, 1 - ly, -1), (y1, ly, 1)):
                for column, sx, right in ((x0, 1 - lx, -1), (x1, lx, 1)):
                    yield Tap(
                        row * size[1] + column,
                        sy * sx * each,
                        sx * real(up) * each * height,
                        sy * real(right) * each * width,
                    )


@op("_contrib_DeformablePSROIPooling", inputs="data rois trans[not no_trans]", **DEFORMABLE_PARAMS, mxnet_outputs=2)
@silent
def deformable_psroi_pooling(k: Call, p: Params, data: Array, rois: Array, trans: Array = None) -> Array:
    """Cut regions out of images into bins that are moved, and average values at places of each over its own channels.

    Parameters
    ----------
    data : array
        Images, shape (N, output_dim * group_size ** 2, H, W).
    rois : array
        Regions, shape (R, 5): number of the image, and the places x1, y1, x2, y2 of the first and the last element.
        Regions of images that there are not are zero. Gets no gradient.
    trans : array
        How far the parts of a region are moved, to the right and down, in parts of its sides over `trans_std`: shape
        (R, 2 * classes, part_size, part_size), where channels are dealt to classes. Absent with `no_trans`.
    spatial_scale : float
        Places times this number are places of the images.
    output_dim : int
        Channels of the result.
    group_size : int
        Number of groups of channels along each axis.
    pooled_size : int
        Number of bins along each axis.
    part_size : int
        Number of parts along each axis; as many as bins for zero.
    sample_per_part : int
        Number of places of a bin along each axis.
    trans_std : float
    no_trans : bool

    Returns
    -------
    array
        Shape (R, output_dim, pooled_size, pooled_size); zero where all places of a bin are beyond the image.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``contrib.DeformablePSROIPooling``. Source: Dai et al., "Deformable convolutional
    networks", 2017.
    """
    xp, x, regions = k.xp, wide(data), wide(rois)
    planes = group_planes(xp, p, x, regions)
    if not x.size or not regions.size:
        return xp.zeros(planes.plane.shape, x.dtype)
    return gathered(xp, x, planes, bent(xp, p, regions, None if trans is None else wide(trans), data.shape[2:]))


@deformable_psroi_pooling.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    bins, parts = p.pooled_size, p.part_size or p.pooled_size
    group = {"group_size": p.group_size or bins}
    wanted = p.output_dim * group["group_size"] ** 2
    data = merge_shape(ins[0], (-1,) * 4)
    if data[1] not in (-1, wanted):
        raise ValueError(
            f"data has {data[1]} channels; output_dim {p.output_dim} of {p.group_size} x {p.group_size} groups "
            f"want {wanted}"
        )
    found = _region_shapes([(data[0], wanted, *data[2:]), ins[1]], outs, (bins, bins), p.group_size**2, 5)
    if p.no_trans:
        return found
    (data, rois), out = found
    trans = merge_shape(ins[2], (rois[0], -1, parts, parts))
    if trans[1] != -1 and (trans[1] < 2 or trans[1] % 2 or p.output_dim % (trans[1] // 2)):
        raise ValueError(
            f"trans has {trans[1]} channels; wanted are two for each class, and output_dim {p.output_dim} as a "
            f"multiple of their number"
        )
    return [data, (trans[0], 5), trans], [(trans[0], *out[0][1:])]


for _op in (roi_align, rroi_align, psroi_pooling, deformable_psroi_pooling):
    _op.dtype(floating())
    _op.cost(lambda p, ins, outs: 16 * size_of(outs[0]))
