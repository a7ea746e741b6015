"""Gradients of the operators of :mod:`mxcore.ops.normalization`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from ..._core.infer import merge_shape
from ..._core.op import op
from ..._core.params import Params
from ..._core.state import state
from ...typing import Array, Call, Operand, Operators
from ..common.bodies import silent, wide
from ..common.gradients import given, narrow, reshaped, standardized_gradients, widen
from ..common.rules import axis_of, size_of
from .batch_norm import BATCH_NORM_PARAMS, backward_dtypes, batch_norm, batch_norm_relu, by_channel, channel_column
from .local_response import L2_MODES, LRN_PARAMS, l2_normalization, lrn, lrn_base, neighbour_sums

__all__: list[str] = []


class _Channels:
    """How batch normalization sees data of a shape."""

    axes, along = (0, 2), 1

    def __init__(self, p: Params, shape: tuple[int, ...]) -> None:
        axis = axis_of(p.axis, len(shape))
        self.view = size_of(shape[:axis]), shape[axis], size_of(shape[axis + 1 :])


@batch_norm.higher
def _(
    F: Operators, p: Params, dy: Operand, data: Operand, gamma: Operand, moving_mean: Operand, moving_var: Operand
) -> Any:
    f, scale = _Channels(p, data.shape), None if p.fix_gamma else gamma
    if state.train and not p.use_global_stats:
        dx, d_gamma, d_beta = standardized_gradients(F, dy, data, scale, f, p.eps)
    else:
        inv = F.rsqrt(moving_var + p.eps)
        x, g = reshaped(F, data, f.view), reshaped(F, dy, f.view)
        z = F.broadcast_mul(
            F.broadcast_sub(x, F.Reshape(moving_mean, shape=(1, -1, 1))), F.Reshape(inv, shape=(1, -1, 1))
        )
        d_gamma, d_beta = F.sum(g * z, axis=f.axes), F.sum(g, axis=f.axes)
        dx = F.broadcast_mul(g, F.Reshape(inv if scale is None else inv * scale, shape=(1, -1, 1)))
        dx = F.Cast(F.Reshape(dx, shape=data.shape), dtype=data.dtype)
    return dx, None if p.fix_gamma else d_gamma, d_beta, None, None


@op(
    "_backward_BatchNorm",
    inputs="dy data gamma mean var moving_mean moving_var",
    outputs="data gamma beta",
    aux="moving_mean moving_var",
    mutates="moving_mean moving_var",
    **BATCH_NORM_PARAMS,
)
@silent
def backward_batch_norm(
    k: Call,
    p: Params,
    dy_: Array,
    data: Array,
    gamma: Array,
    mean: Array,
    var: Array,
    moving_mean: Array,
    moving_var: Array,
) -> Any:
    """Gradients of `BatchNorm` with respect to data, gamma and beta; moves the moving statistics.

    Parameters
    ----------
    dy : array
        The incoming gradient.
    data, gamma : array
        The inputs.
    mean, var : array
        What the forward pass used: mean and reciprocal standard deviation.
    moving_mean, moving_var : array
        Updated in training.
    eps, momentum, fix_gamma, use_global_stats, output_mean_var, axis, cudnn_off, min_calib_range, max_calib_range
        As in `BatchNorm`.
    """
    xp, wanted = k.xp, k.wanted or (True,) * 3
    x, dy = by_channel(p, data), by_channel(p, dy_)
    batch = k.is_train and not p.use_global_stats
    inv = var if batch or k.is_train else 1 / xp.sqrt(moving_var + p.eps)
    d = x - channel_column(mean if batch or k.is_train else moving_mean)
    total, along = dy.sum((0, 2)), (dy * d).sum((0, 2))
    scale = inv if p.fix_gamma else inv * gamma
    dx = None
    if wanted[0]:
        if batch:
            n = max(x.shape[0] * x.shape[2], 1)
            d *= channel_column(-inv * inv * along / n)
            d += dy
            d -= channel_column(total / n)
            dx = d
        else:
            dx = dy
        dx = (dx * channel_column(scale)).astype(data.dtype).reshape(data.shape)
    d_gamma = xp.zeros_like(gamma) if p.fix_gamma else along * inv
    if not batch:
        return dx, d_gamma, total, None, None
    keep = p.momentum
    return (
        dx,
        d_gamma,
        total,
        moving_mean * keep + mean * (1 - keep),
        moving_var * keep + (1 / (inv * inv) - p.eps) * (1 - keep),
    )


def _backward_shapes(images: int) -> Callable[..., tuple[list[Any], list[Any]]]:
    """Of gradients of a normalization, whose first inputs, so many, are like the data."""

    def infer(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
        data = reduce(merge_shape, [*ins[:images], outs[0]])
        channels = -1 if data is None else data[axis_of(p.axis, len(data))]
        return [*[data] * images, *[(channels,)] * 5], [data, (channels,), (channels,)]

    return infer


backward_batch_norm.shape(_backward_shapes(2))
backward_batch_norm.dtype(backward_dtypes)
backward_batch_norm.cost(lambda p, ins, outs: 6 * size_of(ins[1]))


@op(
    "_backward_contrib_BatchNormWithReLU",
    inputs="dy out data gamma mean var moving_mean moving_var",
    outputs="data gamma beta",
    aux="moving_mean moving_var",
    mutates="moving_mean moving_var",
    **BATCH_NORM_PARAMS,
)
@silent
def backward_batch_norm_relu(
    k: Call,
    p: Params,
    dy: Array,
    out: Array,
    data: Array,
    gamma: Array,
    mean: Array,
    var: Array,
    moving_mean: Array,
    moving_var: Array,
) -> Any:
    """Gradients of `BatchNormWithReLU` with respect to data, gamma and beta; moves the moving statistics.

    Parameters
    ----------
    dy : array
        The incoming gradient.
    out : array
        What the forward pass gave: it tells what was positive.
    data, gamma : array
        The inputs.
    mean, var : array
        What the forward pass used: mean and reciprocal standard deviation.
    moving_mean, moving_var : array
        Updated in training.
    eps, momentum, fix_gamma, use_global_stats, output_mean_var, axis, cudnn_off, min_calib_range, max_calib_range
        As in `BatchNorm`.
    """
    masked = k.xp.where(out > 0, dy, k.xp.where(out <= 0, dy.dtype.type(0), out))  # what is no number stays so
    return backward_batch_norm.body(k, p, masked, data, gamma, mean, var, moving_mean, moving_var)  # type: ignore[misc]


backward_batch_norm_relu.shape(_backward_shapes(3))


@backward_batch_norm_relu.dtype
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    found, made = backward_dtypes(p, [ins[0] or ins[1], *ins[2:]], outs)
    return [found[0], *found], made


backward_batch_norm_relu.cost(lambda p, ins, outs: 7 * size_of(ins[1]))


@batch_norm_relu.grad
def _(
    F: Operators,
    p: Params,
    dy: Operand,
    y: Operand,
    data: Operand,
    gamma: Operand,
    out_mean: Operand,
    out_var: Operand,
    moving_mean: Operand,
    moving_var: Operand,
    needs: Sequence[bool],
) -> Any:
    return (
        *F._backward_contrib_BatchNormWithReLU(
            dy,
            y,
            data,
            gamma,
            out_mean,
            out_var,
            moving_mean,
            moving_var,
            wanted=tuple(needs[:3]),
            **given(p, BATCH_NORM_PARAMS),
        ),
        None,
        None,
    )


@batch_norm_relu.higher
def _(
    F: Operators,
    p: Params,
    dy: Operand,
    y: Operand,
    data: Operand,
    gamma: Operand,
    moving_mean: Operand,
    moving_var: Operand,
) -> Any:
    return batch_norm.higher_rule(
        F, p, F._backward_Activation(dy, y, act_type="relu"), data, gamma, moving_mean, moving_var
    )


@l2_normalization.grad
def _(F: Operators, p: Params, dy: Operand, data: Operand) -> Any:
    along = {**L2_MODES[p.mode], "keepdims": True}
    x, g = widen(F, data), widen(F, dy)
    inv = F.rsqrt(F.sum(F.square(x), **along) + p.eps)
    y = F.broadcast_mul(x, inv)
    return narrow(F, F.broadcast_mul(g - F.broadcast_mul(y, F.sum(g * y, **along)), inv), data)


@lrn.higher
def _(F: Operators, p: Params, dy: Operand, data: Operand) -> Any:
    base, x = _near_again(F, p, data * data) * (p.alpha / p.nsize) + p.knorm, data
    power = base**-p.beta
    return dy * power - x * _near_again(F, p, dy * x * power / base) * (2 * p.alpha * p.beta / p.nsize)


def _near_again(F: Operators, p: Params, x: Any) -> Any:
    """`neighbour_sums` by differentiable operators."""
    parts = [x]
    for i in range(1, min(p.nsize // 2, x.shape[1] - 1) + 1):
        edge = F.zeros_like(F.slice_axis(x, axis=1, begin=0, end=i))
        parts += [
            F.concat(edge, F.slice_axis(x, axis=1, begin=0, end=-i), dim=1),
            F.concat(F.slice_axis(x, axis=1, begin=i, end=None), edge, dim=1),
        ]
    return F.add_n(*parts)


@op("_backward_LRN", inputs="dy data", **LRN_PARAMS)
def backward_lrn(k: Call, p: Params, dy_: Array, data: Array) -> Array:
    """Gradient of `LRN` with respect to its data.

    Parameters
    ----------
    dy : array
        The incoming gradient.
    data : array
        The input.
    alpha, beta, knorm, nsize
        As in `LRN`.
    """
    x, dy = wide(data), wide(dy_)
    base = lrn_base(k.xp, p, x)
    power = base**-p.beta
    return dy * power - (2 * p.alpha * p.beta / p.nsize) * x * neighbour_sums(k.xp, dy * x * power / base, p.nsize)


backward_lrn.cost(lambda p, ins, outs: (p.nsize + 10) * size_of(ins[0]))
