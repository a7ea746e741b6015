"""Gradients of the operators of :mod:`mxcore.ops.vision`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._core.op import op
from ..._core.params import Params
from ...typing import Array, Call, Operand, Operators
from ..common.bodies import silent, wide
from ..common.gradients import given, narrow, widen
from ..common.rules import fits, size_of
from ..convolution.windows import windows
from .correlation import CORRELATION_PARAMS, PatchLayout, correlation, padded_wide
from .resize import RESIZE_PARAMS, along_both_axes, averaging_matrix, bilinear_resize, shares
from .spatial import (
    GRID_PARAMS,
    bilinear_sampler,
    corners,
    half_lengths,
    homogeneous_places,
    pixels_at,
    spatial_transformer,
)
from .upsampling import UPSAMPLING_PARAMS, bilinear_params, up_sampling

__all__ = ["sample_gradients"]


@op("_backward_GridGenerator", inputs="dy", **GRID_PARAMS)
def backward_grid_generator(k: Call, p: Params, dy_: Array) -> Array:
    """Gradient of `GridGenerator`.

    Parameters
    ----------
    dy : array
        The incoming gradient, shape (N, 2, H, W).
    transform_type, target_shape
        As in `GridGenerator`.
    """
    xp, dy = k.xp, wide(dy_)
    if p.transform_type == "affine":
        places = homogeneous_places(xp, dy.shape[2:], dy.dtype)
        return xp.matmul(dy.reshape(-1, 2, places.shape[1]), places.T).reshape(-1, 6)
    with np.errstate(all="ignore"):
        return dy / half_lengths(xp, dy.shape, dy.dtype)


@backward_grid_generator.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    return [(ins[0][0], 6) if p.transform_type == "affine" else ins[0]]


@backward_grid_generator.grad
def _(F: Operators, p: Params, d_output: Operand) -> Any:  # it is linear, and scaling is its own adjoint
    return (
        F.GridGenerator(d_output, **given(p, GRID_PARAMS))
        if p.transform_type == "affine"
        else F._backward_GridGenerator(d_output, **given(p, GRID_PARAMS))
    )


def sample_gradients(xp: Any, dy: Any, data: Any, grid: Any, wanted: Any = (True, True)) -> list[Any]:
    """Gradients of :func:`sample` by data and by grid, None where not wanted."""
    n, c, h, w = data.shape
    places = size_of(grid.shape[2:])
    x, at, dy = wide(data).reshape(n, c, h * w), wide(grid), wide(dy).reshape(n, c, places)
    d_data = xp.zeros(n * c * h * w, x.dtype) if wanted[0] else None
    d_x, d_y = xp.zeros((n, places), x.dtype), xp.zeros((n, places), x.dtype)
    if x.size and places:
        plane = (xp.arange(n * c) * (h * w)).reshape(n, c, 1)
        with np.errstate(all="ignore"):
            for index, inside, sy, sx, by_y, by_x in corners(xp, at, h, w):
                if wanted[0]:
                    xp.add.at(d_data, (plane + index).reshape(-1), xp.where(inside, dy * (sy * sx), 0).reshape(-1))
                if wanted[1]:
                    along = (pixels_at(xp, x, index, inside) * dy).sum(1)
                    d_x += along * sy[:, 0] * by_x
                    d_y += along * sx[:, 0] * by_y
    d_grid = None
    if wanted[1]:
        real = x.dtype.type
        d_grid = xp.stack([d_x * real((w - 1) / 2), d_y * real((h - 1) / 2)], 1).reshape(grid.shape)
    return [None if d_data is None else d_data.reshape(data.shape), d_grid]


@op("_backward_BilinearSampler", inputs="dy data grid", outputs="data grid")
def backward_bilinear_sampler(k: Call, p: Params, dy_: Array, data: Array, grid: Array) -> Any:
    """Gradients of `BilinearSampler` with respect to images and places.

    Parameters
    ----------
    dy : array
        The incoming gradient.
    data, grid : array
        The inputs.
    """
    return sample_gradients(k.xp, dy_, data, grid, k.wanted or (True, True))


@backward_bilinear_sampler.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    dy, data, grid = ins
    wanted, outs = bilinear_sampler.shape_rule(p, [data, grid], [None])
    fits("data grid dy", (data, grid, dy), (*wanted, outs[0]))
    return [data, grid]


@backward_bilinear_sampler.dtype
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    t = ins[1] or ins[0] or outs[0]  # places may be more precise than images
    grid = ins[2] or outs[1] or t
    return [t, t, grid], [t, grid]


@spatial_transformer.grad
def _(F: Operators, p: Params, dy: Operand, data: Operand, loc: Operand, needs: Sequence[bool]) -> Any:
    how = {"transform_type": "affine", "target_shape": p.target_shape}
    # A grid in half precision would be rounded: in large images to the next places.
    grid = F.GridGenerator(widen(F, loc), **how)
    d_data, d_grid = F._backward_BilinearSampler(dy, data, grid, wanted=tuple(needs))
    return d_data, narrow(F, F._backward_GridGenerator(d_grid, **how), loc) if needs[1] else None


backward_bilinear_sampler.cost(lambda p, ins, outs: 40 * size_of(ins[0]))


@op("_backward_ROIPooling", inputs="dy data~ maxidx rois")
def backward_roi_pooling(k: Call, p: Params, dy_: Array, data: Array, maxidx: Array, rois: Array) -> Array:
    """Gradient of `ROIPooling` with respect to its images: to the first of the largest elements of each bin.

    Parameters
    ----------
    dy : array
        The incoming gradient.
    data : array
        Only its shape is used.
    maxidx : array
        Which element of its image each maximum is; -1 for none.
    rois : array
        The regions.
    """
    xp, dy = k.xp, wide(dy_)
    n, c, h, w = data.shape
    flat = xp.zeros(n * c * h * w, dy.dtype)
    if dy.size and flat.size:
        named = wide(rois)[:, :1]
        image = xp.clip(named.astype(np.int64), 0, n - 1)
        plane = (image * c + xp.arange(c)).reshape(-1, c, 1, 1) * (h * w)
        found = (maxidx >= 0) & (maxidx < h * w) & ((named >= 0) & (named < n)).reshape(-1, 1, 1, 1)
        xp.add.at(
            flat, (plane + xp.where(found, maxidx, 0)).reshape(-1), xp.where(found, dy, dy.dtype.type(0)).reshape(-1)
        )
    return flat.reshape(data.shape)


@backward_roi_pooling.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    dy, data, maxidx, rois = ins
    if len(dy) != 4 or len(data) != 4:
        raise ValueError(f"dy {dy} and data {data} must have 4 dimensions")
    fits("dy maxidx rois", (dy, maxidx, rois), ((dy[0], data[1], *dy[2:]), dy, (dy[0], 5)))
    return [data]


@backward_roi_pooling.dtype
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    t = ins[0] or outs[0]
    return [t, t, ins[2], t], [t]


backward_roi_pooling.cost(lambda p, ins, outs: 8 * size_of(ins[0]) + size_of(ins[1]))


@op("_backward_Correlation", inputs="dy data1 data2", outputs="data1 data2", **CORRELATION_PARAMS)
@silent
def backward_correlation(k: Call, p: Params, dy_: Array, data1: Array, data2: Array) -> Any:
    """Gradients of `Correlation` with respect to both its inputs.

    Parameters
    ----------
    dy : array
        The incoming gradient.
    data1, data2 : array
        The inputs.
    kernel_size, max_displacement, stride1, stride2, pad_size, is_multiply
        As in `Correlation`.
    """
    xp, wanted = k.xp, k.wanted or (True, True)
    a, b = padded_wide(xp, p, data1, data2)
    f = PatchLayout(p, data1.shape[2:])
    dy = wide(dy_) / a.dtype.type(p.kernel_size**2 * max(data1.shape[1], 1))
    grads = [xp.zeros_like(x) if w else None for x, w in zip((a, b), wanted)]
    left = f.part(a)
    for channel, y, x in f.moved() if dy.size else ():
        g = xp.zeros((dy.shape[0], 1, *f.reach), dy.dtype)
        for _, see in windows(f.geometry, f.size):
            g[(slice(None), 0) + see] += dy[:, channel]
        right = f.part(b, y, x)
        if p.is_multiply:
            slopes = g * right, g * left
        else:
            up = xp.where(left >= right, g, -g)
            slopes = up, -up
        for total, slope, move in zip(grads, slopes, ((0, 0), (y, x))):
            if total is not None:
                at = f.part(total, *move)
                at += slope
    q = p.pad_size
    h, w = data1.shape[2:]
    return [None if g is None else xp.ascontiguousarray(g[:, :, q : q + h, q : q + w]) for g in grads]


@backward_correlation.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    fits("dy", ins, correlation.shape_rule(p, ins[1:], [None])[1])
    return [ins[1], ins[2]]


backward_correlation.cost(lambda p, ins, outs: 2 * size_of(ins[0]) * ins[1][1] * p.kernel_size**2)


@op(
    "_backward_AdaptiveAvgPooling2D",
    inputs="dy data~",
    grad=lambda F, p, dys, like_dy: (F._forward_AdaptiveAvgPooling2D(dys[0], like_dy), None),
)
@silent
def backward_adaptive_avg_pooling(k: Call, p: Params, dy_: Array, data: Array) -> Array:
    """Gradient of `_contrib_AdaptiveAvgPooling2D`.

    Parameters
    ----------
    dy : array
        The incoming gradient.
    data : array
        Only its shape is used: that of the input.
    """
    xp, dy = k.xp, wide(dy_)
    if dy.shape[2:] == (1, 1):
        return xp.broadcast_to(dy / dy.dtype.type(max(size_of(data.shape[2:]), 1)), tuple(data.shape)).copy()
    rows, columns = (averaging_matrix(xp, n, m, dy.dtype) for n, m in zip(data.shape[2:], dy.shape[2:]))
    return along_both_axes(xp, dy, rows.T, columns.T)


@op(
    "_forward_AdaptiveAvgPooling2D",
    inputs="data like~",
    grad=lambda F, p, dy, like_data: (F._backward_AdaptiveAvgPooling2D(dy, like_data), None),
)
@silent
def forward_adaptive_avg_pooling(k: Call, p: Params, data: Array, like: Array) -> Array:
    """Average images over as many parts as another array has elements.

    Parameters
    ----------
    data : array
        Shape (N, C, H, W).
    like : array
        Only its shape is used: that of the result.
    """
    xp, x = k.xp, wide(data)
    rows, columns = (averaging_matrix(xp, n, m, x.dtype) for n, m in zip(x.shape[2:], like.shape[2:]))
    return along_both_axes(xp, x, rows, columns)


def _matrix(xp: Any, n: int, m: int, align_corners: bool, dtype: Any) -> Any:
    """The interpolation along one axis as a matrix (m, n)."""
    low, high, share = (v.reshape(-1, 1) for v in shares(xp, n, m, align_corners, dtype))
    at = xp.arange(n).reshape(1, -1)
    return (at == low).astype(dtype) * (1 - share) + (at == high).astype(dtype) * share


_ALIGN = dict(align_corners=RESIZE_PARAMS["align_corners"])


@bilinear_resize.grad
def _(F: Operators, p: Params, dy: Operand, like_data: Operand) -> Any:
    return F._backward_BilinearResize2D(dy, like_data, **given(p, _ALIGN)), *([None] if p.mode == "like" else [])


@op("_backward_BilinearResize2D", inputs="dy data~", **_ALIGN)
def backward_bilinear_resize(k: Call, p: Params, dy_: Array, data: Array) -> Array:
    """Gradient of `_contrib_BilinearResize2D`.

    Parameters
    ----------
    dy : array
        The incoming gradient.
    data : array
        Only its shape is used: that of the input.
    align_corners
        As in `_contrib_BilinearResize2D`.
    """
    xp, dy = k.xp, wide(dy_)
    if tuple(data.shape[2:]) == tuple(dy.shape[2:]):
        return dy.copy()
    rows, columns = (_matrix(xp, n, m, p.align_corners, dy.dtype) for n, m in zip(data.shape[2:], dy.shape[2:]))
    return along_both_axes(xp, dy, rows.T, columns.T)


@backward_bilinear_resize.grad
def _(F: Operators, p: Params, dys: Operand, like_dy: Operand) -> Any:  # it is linear: the adjoint of its adjoint
    return F._contrib_BilinearResize2D(dys[0], like_dy, mode="like", align_corners=p.align_corners), None


for _op in (backward_adaptive_avg_pooling, forward_adaptive_avg_pooling, backward_bilinear_resize):
    _op.shape(lambda p, ins: [(*ins[0][:2], *ins[1][2:])])
    _op.dtype(lambda p, ins, outs: ([ins[0] or outs[0], ins[1]], [ins[0] or outs[0]]))

for _op in (backward_adaptive_avg_pooling, forward_adaptive_avg_pooling, backward_bilinear_resize):
    _op.cost(lambda p, ins, outs: 6 * (size_of(ins[0]) + size_of(outs[0])))


def _grad(F: Operators, p: Params, dy: Any, data: Any, needs: Any) -> Any:
    if p.sample_type == "bilinear":
        return [F._backward_Deconvolution(dy, *data, wanted=tuple(needs), **bilinear_params(p))]
    parts = F._backward_UpSampling(dy, *data, scale=p.scale, multi_input_mode=p.multi_input_mode, num_args=p.num_args)
    return [list(parts) if isinstance(parts, (list, tuple)) else [parts]]


up_sampling.grad(_grad)


def _gathered(x: Any, h: int, w: int) -> Any:
    """Sums over the blocks that an image of h x w was enlarged to."""
    high, across = x.shape[2] // h, x.shape[3] // w
    total = x[:, :, ::high, ::across].copy()
    for i in range(high):
        for j in range(across):
            if i or j:
                total += x[:, :, i::high, j::across]
    return total


@op(
    "_backward_UpSampling",
    inputs="dy likes~*",
    outputs=lambda p: [f"output{i}" for i in range(p.num_args)],
    scale=UPSAMPLING_PARAMS["scale"],
    multi_input_mode=UPSAMPLING_PARAMS["multi_input_mode"],
    grad=lambda F, p, dys: (  # it is linear: the adjoint of its adjoint
        F.UpSampling(
            *dys, scale=p.scale, sample_type="nearest", multi_input_mode=p.multi_input_mode, num_args=p.num_args
        ),
        [None] * p.num_args,
    ),
)
def backward_up_sampling(k: Call, p: Params, dy_: Array, *likes: Array) -> Any:
    """Gradients of `UpSampling` by repetition with respect to its images.

    Parameters
    ----------
    dy : array
        The incoming gradient.
    likes : arrays
        Only their shapes are used: those of the images.
    scale, multi_input_mode
        As in `UpSampling`.
    num_args : int
    """
    grads, at = [], 0
    for x in likes:
        n, c, h, w = x.shape
        part = dy_
        if p.multi_input_mode == "concat":
            part, at = dy_[:, at : at + c], at + c
        grads.append(_gathered(wide(part), h, w) if x.size else wide(part).reshape(x.shape))
    return grads


backward_up_sampling.shape(lambda p, ins: list(ins[1:]))
