"""Convolutions with bent windows: every place is moved by an offset of its own, and maybe weighed by a mask.

The windows are gathered between the pixels, by bilinear interpolation, one deformable group of channels at a time; from
there on it is a matrix product, as any convolution.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from ..._core.infer import merge_shape
from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool, Enum, Int, Shape
from ...typing import Array, Call
from ..common.bodies import silent, wide
from ..common.gradients import given
from ..common.rules import floating, size_of
from .windows import PIECE, Geometry, geometry

__all__ = [
    "MODULATED_PARAMS",
    "PLAIN_PARAMS",
    "corners",
    "deformable_convolution",
    "deformable_cost",
    "deformable_shapes",
    "group_matrices",
    "image_geometry",
    "modulated_deformable_convolution",
    "pieces",
    "pixels_at",
]


_PARAMS = dict(
    kernel=Shape(),
    stride=Shape(()),
    dilate=Shape(()),
    pad=Shape(()),
    num_filter=Int(ge=1),
    num_group=Int(1, ge=1),
    num_deformable_group=Int(1, ge=1),
    workspace=Int(1024, ge=0),
    no_bias=Bool(False),
)
_LAYOUT = Enum("NCDHW NCHW NCW", None)
PLAIN_PARAMS = {**_PARAMS, "layout": _LAYOUT}
MODULATED_PARAMS = {**_PARAMS, "im2col_step": Int(64, ge=1), "layout": _LAYOUT}


def image_geometry(p: Params) -> Geometry:
    """How windows lie on images; raises ValueError for other dimensions and layouts."""
    if len(p.kernel) != 2:
        raise ValueError(f"kernel {p.kernel} must have 2 dimensions: windows of images are what can be bent")
    if p.layout not in (None, "NCHW"):
        raise ValueError(f"layout {p.layout} is not that of images, channels first: NCHW")
    return geometry(p.kernel, p.stride, p.dilate, p.pad, p.num_group)


# -- where windows look ---------------------------------------------------------------------------------------------


def _axis(xp: Any, at: Any, n: int, modulated: bool) -> list[tuple[Any, Any, Any]]:
    """Along `n` pixels, the one before each place and the one after: index, share, derivative by the place.

    Without a mask a place counts if it is on the image, up to where one more pixel would begin, and the last pixel
    reaches to there. With one, the image is surrounded by zeros, one pixel wide.
    """
    real = at.dtype.type
    low = xp.floor(at)
    after = at - low
    if modulated:
        inside = (at > -1) & (at < n)
        first, last = inside & (low >= 0), inside & (low + 1 < n)
        sides = [(low, first, 1 - after, -1), (low + 1, last, after, 1)]
    else:
        inside = (at >= 0) & (at < n)
        between = inside & (low < n - 1)
        sides = [(low, inside, xp.where(between, 1 - after, real(1)), -1), (low + 1, between, after, 1)]
        inside = between
    return [
        (
            xp.where(ok, index, 0).astype(np.int64),
            xp.where(ok, share, real(0)),
            xp.where(ok & inside, real(slope), real(0)),
        )
        for index, ok, share, slope in sides
    ]


def corners(
    xp: Any, p: Params, g: Geometry, offset: Any, size: tuple[int, int], modulated: bool
) -> list[tuple[Any, Any, Any, Any]]:
    """The four pixels around each place, (n, groups, 1, kernel * out): index, share, derivatives by y and x."""
    n, out, d = offset.shape[0], tuple(offset.shape[2:]), p.num_deformable_group
    moved = offset.reshape(n, d, size_of(g.kernel), 2, *out)
    axes = []
    for i in (0, 1):
        step = xp.arange(out[i], dtype=offset.dtype) * g.stride[i] - g.pad[i]
        within = xp.asarray([at[i] * g.dilate[i] for at in product(*map(range, g.kernel))], dtype=offset.dtype)
        regular = within.reshape(-1, 1, 1) + step.reshape((-1, 1) if i == 0 else (1, -1))
        at = (moved[:, :, :, i] + regular).reshape(n, d, 1, size_of(g.kernel) * size_of(out))
        axes.append(_axis(xp, at, size[i], modulated))
    return [(y * size[1] + x, sy * sx, by * sx, sy * bx) for y, sy, by in axes[0] for x, sx, bx in axes[1]]


def pixels_at(xp: Any, x: Any, index: Any) -> Any:
    """The pixels of all images at an index, one for every place of the windows."""
    return xp.take_along_axis(x, xp.broadcast_to(index, (*x.shape[:3], index.shape[3])), 3)


def group_matrices(x: Any, g: Geometry, out: Any) -> Any:
    """Windows (n, D, C/D, kernel * out) as a matrix per group of the product: (groups, C/groups * kernel, n * out)."""
    n, c, k, o = x.shape[0], x.shape[1] * x.shape[2], size_of(g.kernel), size_of(out)
    return x.reshape(n, c, k, o).transpose(1, 2, 0, 3).reshape(g.groups, c // g.groups * k, n * o)


def pieces(p: Params, data: Any, out: Any) -> list[slice]:
    """Parts of the batch whose windows take memory in bounds."""
    step = max(1, PIECE // max(1, data.shape[1] * size_of(p.kernel) * size_of(out)))
    return [slice(i, min(i + step, data.shape[0])) for i in range(0, data.shape[0], step)]


@silent
def _forward(k: Call, p: Params, data: Any, offset: Any, mask: Any, weight: Any, bias: Any) -> Any:
    xp, g, d = k.xp, image_geometry(p), p.num_deformable_group
    x, offset, w = wide(data), wide(offset), wide(weight)
    n, c, *size = x.shape
    out, f = tuple(offset.shape[2:]), w.shape[0]
    y = xp.zeros((n, f, *out), x.dtype)
    if y.size and x.size:
        matrix = w.reshape(g.groups, f // g.groups, size_of(w.shape[1:]))
        for piece in pieces(p, x, out):
            flat = x[piece].reshape(-1, d, c // d, size[0] * size[1])
            part: Any = 0
            for index, share, _, _ in corners(xp, p, g, offset[piece], size, mask is not None):
                part = part + pixels_at(xp, flat, index) * share
            if mask is not None:
                part = part * wide(mask)[piece].reshape(-1, d, 1, part.shape[3])
            found = xp.matmul(matrix, group_matrices(part, g, out)).reshape(f, -1, *out)
            y[piece] = found.swapaxes(0, 1)
    return y if bias is None else y + wide(bias).reshape(1, f, 1, 1)


# -- the operators --------------------------------------------------------------------------------------------------


def deformable_shapes(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    """Shapes of data, offset, mask, weight and bias, and of the output."""
    g, d, kernel = image_geometry(p), p.num_deformable_group, size_of(p.kernel)
    modulated = len(ins) == 5 - p.no_bias
    data, out = merge_shape(ins[0], (-1,) * 4), merge_shape(outs[0], (-1, p.num_filter, -1, -1))
    for what, n, parts in (
        ("number of channels", data[1], "num_group"),
        ("number of channels", data[1], "num_deformable_group"),
        ("num_filter", p.num_filter, "num_group"),
    ):
        if n != -1 and n % getattr(p, parts):
            raise ValueError(f"{what} {n} is no multiple of {parts}={getattr(p, parts)}")
    size = g.out(data[2:])
    offset = merge_shape(ins[1], (data[0], 2 * d * kernel, *size))
    bent = [offset]
    if modulated:
        bent.append(merge_shape(ins[2], (offset[0], d * kernel, *offset[2:])))
    out = merge_shape(out, (bent[-1][0], p.num_filter, *bent[-1][2:]))
    weight = (p.num_filter, -1 if data[1] == -1 else data[1] // p.num_group, *p.kernel)
    return [data, *bent, weight, (p.num_filter,)][: len(ins)], [out]


@op(
    "_contrib_DeformableConvolution",
    inputs="data offset weight bias[not no_bias]",
    **PLAIN_PARAMS,
    grad=lambda F, p, dy, data, offset, weight, needs: F._backward_DeformableConvolution(
        dy, data, offset, weight, wanted=tuple(needs), **given(p, PLAIN_PARAMS)
    ),
)
def deformable_convolution(k: Call, p: Params, data: Array, offset: Array, weight: Array, bias: Array = None) -> Array:
    """Convolve images over windows whose places are moved, each by an offset of its own.

    Parameters
    ----------
    data : array
        Images, shape (N, C, H, W).
    offset : array
        How far each place of each window is moved, down and to the right, in pixels: shape (N, num_deformable_group *
        places * 2, \\*out).
    weight : array
        Shape (num_filter, C / num_group, \\*kernel).
    bias : array
        Shape (num_filter,); absent with `no_bias`.
    kernel, stride, dilate, pad, num_filter, num_group, workspace, no_bias
        As in `Convolution`, in two dimensions.
    num_deformable_group : int
        Channels are split into this many groups with offsets of their own.
    layout : {'NCHW'}, optional
        MXNet knows the names of others.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``contrib.DeformableConvolution``: beyond its first pixels an image is zero; its last
    ones reach on for a pixel. Source: Dai et al., "Deformable convolutional networks", 2017.

    Examples
    --------
    A window of one place, moved by a row:

    >>> import mxcore as mx
    >>> image = mx.nd.arange(9).reshape((1, 1, 3, 3))
    >>> down = mx.nd.concat(mx.nd.ones((1, 1, 3, 3)), mx.nd.zeros((1, 1, 3, 3)), dim=1)
    >>> weight = mx.nd.ones((1, 1, 1, 1))
    >>> convolve = mx.nd.contrib.DeformableConvolution
    >>> convolve(image, down, weight, kernel=(1, 1), num_filter=1, no_bias=True)[0, 0, :2].asnumpy()
    array([[3., 4., 5.],
           [6., 7., 8.]], dtype=float32)
    """
    return _forward(k, p, data, offset, None, weight, bias)


@op(
    "_contrib_ModulatedDeformableConvolution",
    inputs="data offset mask weight bias[not no_bias]",
    **MODULATED_PARAMS,
    grad=lambda F, p, dy, data, offset, mask, weight, needs: F._backward_ModulatedDeformableConvolution(
        dy, data, offset, mask, weight, wanted=tuple(needs), **given(p, MODULATED_PARAMS)
    ),
)
def modulated_deformable_convolution(
    k: Call, p: Params, data: Array, offset: Array, mask: Array, weight: Array, bias: Array = None
) -> Array:
    """Convolve images over windows whose places are each moved by an offset and weighed by a number of its own.

    Parameters
    ----------
    data : array
        Images, shape (N, C, H, W).
    offset : array
        How far each place of each window is moved, down and to the right, in pixels: shape (N, num_deformable_group *
        places * 2, \\*out).
    mask : array
        What each place of each window counts: shape (N, num_deformable_group * places, \\*out).
    weight : array
        Shape (num_filter, C / num_group, \\*kernel).
    bias : array
        Shape (num_filter,); absent with `no_bias`.
    kernel, stride, dilate, pad, num_filter, num_group, workspace, no_bias
        As in `Convolution`, in two dimensions.
    num_deformable_group : int
        Channels are split into this many groups with offsets and masks of their own.
    im2col_step : int
        A hint of MXNet's own backend; no effect.
    layout : {'NCHW'}, optional
        MXNet knows the names of others.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``contrib.ModulatedDeformableConvolution``, whose gradients run on GPUs only: images
    fade to zero within a pixel of their edges. Source: Zhu et al., "Deformable ConvNets v2", 2018.

    Examples
    --------
    A window of one place, moved by nothing and weighed a half:

    >>> import mxcore as mx
    >>> image = mx.nd.arange(4).reshape((1, 1, 2, 2))
    >>> still, half, weight = mx.nd.zeros((1, 2, 2, 2)), mx.nd.full((1, 1, 2, 2), 0.5), mx.nd.ones((1, 1, 1, 1))
    >>> convolve = mx.nd.contrib.ModulatedDeformableConvolution
    >>> convolve(image, still, half, weight, kernel=(1, 1), num_filter=1, no_bias=True)[0, 0].asnumpy()
    array([[0. , 0.5],
           [1. , 1.5]], dtype=float32)
    """
    return _forward(k, p, data, offset, mask, weight, bias)


def deformable_cost(p: Params, ins: list[Any], outs: list[Any]) -> float:
    """Estimated work: what is sampled, for every offset and channel."""
    at = p._sig.index
    return float(size_of(ins[at["offset"]]) * ins[at["data"]][1])


for _op in (deformable_convolution, modulated_deformable_convolution):
    _op.shape(deformable_shapes)

for _op in (deformable_convolution, modulated_deformable_convolution):
    _op.dtype(floating())
    _op.cost(deformable_cost)
