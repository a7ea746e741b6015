"""Gradients of the operators of :mod:`mxcore.ops.convolution`."""

from __future__ import annotations

from typing import Any

from ..._core.op import Op, op
from ..._core.params import Params
from ...typing import Array, Call
from ..common.bodies import silent, wide
from ..common.gradients import linear_grad_grad
from ..common.rules import fits, floating, size_of, undoing
from .deformable import (
    MODULATED_PARAMS,
    PLAIN_PARAMS,
    corners,
    deformable_cost,
    deformable_shapes,
    group_matrices,
    image_geometry,
    pieces,
    pixels_at,
)
from .operators import (
    CONVOLUTION_PARAMS,
    DECONVOLUTION_PARAMS,
    bias_axis,
    channels_back,
    channels_first,
    convolution,
    convolution_geometry,
    deconvolution,
    transposed_geometry,
)
from .patches import WINDOW_PARAMS, column_shape, images_from_columns, window_arguments
from .windows import conv_data, conv_forward, conv_weight

__all__: list[str] = []


@silent
def _gradients(k: Call, p: Params, dy: Any, data: Any, weight: Any, transposed: bool) -> list[Any]:
    """Gradients of data, weight and bias as far as they are wanted; for the transposed convolution if so told."""
    xp, wanted = k.xp, k.wanted or (True,) * 3
    dy_, x, w = channels_first(xp, p, dy, data, weight)
    g = transposed_geometry(p, x.shape[2:])[0] if transposed else convolution_geometry(p)
    d_data = d_weight = None
    if wanted[0]:
        d_data = channels_back(
            xp, p, conv_forward(xp, dy_, w, g) if transposed else conv_data(xp, dy_, w, g, x.shape[2:])
        )
    if wanted[1]:
        d_weight = channels_back(xp, p, conv_weight(xp, dy_, x, g) if transposed else conv_weight(xp, x, dy_, g))
    if p.no_bias:
        return [d_data, d_weight]
    return [d_data, d_weight, dy_.sum((0, *range(2, dy_.ndim))) if wanted[2] else None]


@op(
    "_backward_Convolution",
    inputs="dy data weight",
    outputs="data weight bias[not no_bias]",
    **CONVOLUTION_PARAMS,
    grad=linear_grad_grad("Convolution", CONVOLUTION_PARAMS, bias_axis),
)
def backward_convolution(k: Call, p: Params, dy_: Array, data: Array, weight: Array) -> Any:
    """Gradients of `Convolution` with respect to data, weight and bias.

    Parameters
    ----------
    dy : array
        The incoming gradient, shaped as the output.
    data, weight : array
        The inputs.
    kernel, stride, dilate, pad, num_filter, num_group, workspace, no_bias, cudnn_tune, cudnn_off, layout
        As in `Convolution`.
    """
    return _gradients(k, p, dy_, data, weight, False)


def _gradient_shapes(forward: Op) -> Any:
    def rule(p: Params, ins: list[Any]) -> list[Any]:
        dy, data, weight = ins
        wanted, outs = forward.shape_rule(p, [data, weight], [None])
        fits("data weight dy", (data, weight, dy), (*wanted[:2], outs[0]))
        return [data, weight, (p.num_filter,)][: 2 if p.no_bias else 3]

    return rule


def _gradient_cost(p: Params, ins: list[Any], outs: list[Any]) -> Any:
    return size_of(ins[0]) * size_of(ins[2]) / p.num_filter / 5


backward_convolution.shape(_gradient_shapes(convolution))
backward_convolution.cost(_gradient_cost)
backward_convolution.attach(flops=True)


@op(
    "_backward_Deconvolution",
    inputs="dy data weight",
    outputs="data weight bias[not no_bias]",
    **DECONVOLUTION_PARAMS,
    grad=linear_grad_grad("Deconvolution", DECONVOLUTION_PARAMS, bias_axis),
)
def backward_deconvolution(k: Call, p: Params, dy_: Array, data: Array, weight: Array) -> Any:
    """Gradients of `Deconvolution` with respect to data, weight and bias.

    Parameters
    ----------
    dy : array
        The incoming gradient, shaped as the output.
    data, weight : array
        The inputs.
    kernel, stride, dilate, pad, adj, target_shape, num_filter, num_group, workspace, no_bias, cudnn_tune, cudnn_off,
    layout
        As in `Deconvolution`.
    """
    return _gradients(k, p, dy_, data, weight, True)


backward_deconvolution.shape(_gradient_shapes(deconvolution))


backward_deconvolution.attach(flops=True)


@backward_deconvolution.cost
def _(p: Params, ins: list[Any], outs: list[Any]) -> Any:
    return size_of(ins[1]) * size_of(ins[2]) / max(ins[2][0], 1) / 5


@op(
    "_col2im_like",
    inputs="data like~",
    **WINDOW_PARAMS,
    grad=lambda F, p, dy: (F.im2col(dy, **window_arguments(p)), None),
)
def col2im_like(k: Call, p: Params, data: Array, like: Array) -> Array:
    """Add patches up to images of a given shape: the gradient of `im2col`.

    Parameters
    ----------
    data : array, (batch, channel * elements of the kernel, patches)
    like : array, (batch, channel, height, width)
        Only its shape is used.
    kernel, stride, dilate, pad : tuple of int
        As in `im2col`.
    """
    return images_from_columns(k.xp, p, data, tuple(like.shape))


col2im_like.shape(undoing(column_shape))


@silent
def _deformable_gradients(k: Call, p: Params, dy: Any, data: Any, offset: Any, mask: Any, weight: Any) -> list[Any]:
    """Gradients of data, offset, mask (if there is one), weight and bias, as far as they are wanted."""
    xp, g, d = k.xp, image_geometry(p), p.num_deformable_group
    dy, x, offset, w = wide(dy), wide(data), wide(offset), wide(weight)
    modulated = mask is not None
    mask = wide(mask) if modulated else None
    n, c, *size = x.shape
    out, f, kernel = tuple(offset.shape[2:]), w.shape[0], size_of(g.kernel)
    d_data, d_weight = xp.zeros(x.size, x.dtype), xp.zeros((g.groups, f // g.groups, size_of(w.shape[1:])), x.dtype)
    d_offset, d_mask = xp.zeros((n, d, kernel, 2, *out), x.dtype), xp.zeros((n, d, kernel, *out), x.dtype)
    wanted = list(k.wanted or (True,) * 5)
    if not modulated:
        wanted.insert(2, False)
    matrix = w.reshape(d_weight.shape).swapaxes(1, 2)
    for piece in pieces(p, x, out) if dy.size and x.size else ():
        flat = x[piece].reshape(-1, d, c // d, size[0] * size[1])
        m = flat.shape[0]
        rows = dy[piece].swapaxes(0, 1).reshape(g.groups, f // g.groups, -1)
        d_cols = (
            xp.matmul(matrix, rows).reshape(c, kernel, m, size_of(out)).transpose(2, 0, 1, 3).reshape(m, d, c // d, -1)
        )
        scale = mask[piece].reshape(m, d, 1, -1) if modulated else None
        plane = ((xp.arange(m * c) + piece.start * c) * flat.shape[3]).reshape(m, d, c // d, 1)
        part: Any = 0
        by_y: Any = 0
        by_x: Any = 0
        weighed = d_cols if scale is None else d_cols * scale
        for index, share, along_y, along_x in corners(xp, p, g, offset[piece], size, modulated):
            seen = pixels_at(xp, flat, index)
            part = part + seen * share
            if wanted[0]:
                xp.add.at(d_data, (plane + index).reshape(-1), (weighed * share).reshape(-1))
            if wanted[1]:
                both = (weighed * seen).sum(2)
                by_y, by_x = by_y + both * along_y[:, :, 0], by_x + both * along_x[:, :, 0]
        if wanted[1]:
            d_offset[piece, :, :, 0], d_offset[piece, :, :, 1] = (
                by_y.reshape(m, d, kernel, *out),
                by_x.reshape(m, d, kernel, *out),
            )
        if wanted[2]:
            d_mask[piece] = (d_cols * part).sum(2).reshape(m, d, kernel, *out)
        if wanted[3]:
            d_weight += xp.matmul(rows, group_matrices(part if scale is None else part * scale, g, out).swapaxes(1, 2))
    found = [
        d_data.reshape(x.shape),
        d_offset.reshape(offset.shape),
        d_mask.reshape(n, d * kernel, *out),
        d_weight.reshape(w.shape),
    ]
    if not p.no_bias:
        found.append(dy.sum((0, 2, 3)))
    found = [v if want else None for v, want in zip(found, wanted)]
    return found if modulated else [*found[:2], *found[3:]]


@op(
    "_backward_DeformableConvolution",
    inputs="dy data offset weight",
    outputs="data offset weight bias[not no_bias]",
    **PLAIN_PARAMS,
)
def backward_deformable_convolution(k: Call, p: Params, dy_: Array, data: Array, offset: Array, weight: Array) -> Any:
    """Gradients of `DeformableConvolution` with respect to data, offset, weight and bias.

    Parameters
    ----------
    dy : array
        The incoming gradient, shaped as the output.
    data, offset, weight : array
        The inputs.
    kernel, stride, dilate, pad, num_filter, num_group, num_deformable_group, workspace, no_bias, layout
        As in `DeformableConvolution`.
    """
    return _deformable_gradients(k, p, dy_, data, offset, None, weight)


@op(
    "_backward_ModulatedDeformableConvolution",
    inputs="dy data offset mask weight",
    outputs="data offset mask weight bias[not no_bias]",
    **MODULATED_PARAMS,
)
def backward_modulated_deformable_convolution(
    k: Call, p: Params, dy_: Array, data: Array, offset: Array, mask: Array, weight: Array
) -> Any:
    """Gradients of `ModulatedDeformableConvolution` with respect to data, offset, mask, weight and bias.

    Parameters
    ----------
    dy : array
        The incoming gradient, shaped as the output.
    data, offset, mask, weight : array
        The inputs.
    kernel, stride, dilate, pad, num_filter, num_group, num_deformable_group, workspace, no_bias, im2col_step, layout
        As in `ModulatedDeformableConvolution`.
    """
    return _deformable_gradients(k, p, dy_, data, offset, mask, weight)


def _deformable_gradient_shapes(p: Params, ins: list[Any]) -> list[Any]:
    dy, *given_ = ins
    bias = [] if p.no_bias else [(p.num_filter,)]
    wanted, outs = deformable_shapes(p, [*given_, *bias], [None])
    fits(" ".join(p._sig.inputs[1:]) + " dy", (*given_, dy), (*wanted[: len(given_)], outs[0]))
    return [*given_, *bias]


for _op in (backward_deformable_convolution, backward_modulated_deformable_convolution):
    _op.shape(_deformable_gradient_shapes)

for _op in (backward_deformable_convolution, backward_modulated_deformable_convolution):
    _op.dtype(floating())
    _op.cost(deformable_cost)
