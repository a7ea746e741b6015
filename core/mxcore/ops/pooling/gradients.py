"""Gradients of the operators of :mod:`mxcore.ops.pooling`."""

from __future__ import annotations

from typing import Any

from ..._core.op import op
from ..._core.params import Params
from ...typing import Array, Call, Operand, Operators
from ..common.bodies import silent, wide
from ..common.gradients import given
from ..common.rules import fits, size_of
from ..convolution.windows import padded, windows
from .operators import (
    POOLING_PARAMS,
    channels_back,
    channels_first,
    end_padding,
    lowest,
    pooled_lengths,
    pooled_shape,
    pooling_geometry,
    window_counts,
    window_values,
)

__all__: list[str] = []


@op("_backward_Pooling", inputs="dy data out", **POOLING_PARAMS)
@silent
def backward_pooling(k: Call, p: Params, dy_: Array, data: Array, out: Array) -> Array:
    """Gradient of `Pooling` with respect to its data; the first of several equal maxima of a window gets all.

    Where a window holds nothing above the lowest number, its first place does; if that is padding, nobody.

    Parameters
    ----------
    dy : array
        The incoming gradient.
    data, out : array
        The input, and what the forward pass returned.
    kernel, pool_type, global_pool, cudnn_off, pooling_convention, stride, pad, p_value, count_include_pad, layout
        As in `Pooling`.
    """
    xp = k.xp
    x, y, dy = (channels_first(p, xp, a) for a in (data, out, dy_))
    spatial = tuple(x.shape[2:])
    g = pooling_geometry(p, spatial)
    sizes = pooled_lengths(p, g, spatial)
    if not x.size or not y.size:
        return xp.zeros(data.shape, data.dtype)
    low = lowest(x.dtype) if p.pool_type == "max" else 0
    if p.pool_type == "max":
        x = xp.where(x > x.dtype.type(low), x, x.dtype.type(low))  # as the forward pass saw it
    if p.pool_type == "max" and p.global_pool:
        flat = x.reshape(*x.shape[:2], size_of(spatial))
        dx = xp.zeros(flat.shape, dy.dtype)
        xp.put_along_axis(dx, flat.argmax(2)[..., None], dy.reshape(*x.shape[:2], 1), 2)
        return channels_back(p, xp, dx.reshape(x.shape))
    x, y, dy = wide(x), wide(y), wide(dy)
    if p.pool_type == "avg":
        dy = dy / window_counts(xp, p, g, spatial, sizes, dy.dtype)
    n = p.p_value if p.pool_type == "lp" else 1
    after = end_padding(g, spatial, sizes)
    dx = xp.zeros((*x.shape[:2], *(q + m + a for q, m, a in zip(g.pad, spatial, after))), dy.dtype)
    if p.pool_type in ("avg", "sum"):
        for _, see in windows(g, sizes):
            dx[(slice(None),) * 2 + see] += dy
    else:
        full = padded(xp, x, g.pad, after, low)
        free = None
        for _, see in windows(g, sizes):
            at = (slice(None), slice(None), *see)
            if p.pool_type == "max":
                hit = full[at] == y
                if free is not None:
                    hit &= free
                dx[at] += dy * hit
                free = ~hit if free is None else free & ~hit
            else:
                dx[at] += dy * _norm_slope(xp, full[at], y, n)
    if any(g.pad) or any(after):
        dx = xp.ascontiguousarray(dx[(slice(None),) * 2 + tuple(slice(q, q + m) for q, m in zip(g.pad, spatial))])
    return channels_back(p, xp, dx)


@backward_pooling.grad
def _(F: Operators, p: Params, dy: Operand, dy_: Operand, data: Operand, out: Operand) -> Any:
    if p.pool_type == "max":
        return F._max_pooling_at(dy, data, out, **given(p, POOLING_PARAMS)), None, None
    n = p.p_value if p.pool_type == "lp" else 1
    if n == 1:  # linear: the gradient of its gradient is the operator itself
        return F.Pooling(dy, **given(p, POOLING_PARAMS)), None, None
    # Of dx = x**(n-1) * spread(dy / y**(n-1)), where spreading is the gradient of a sum.
    plain = {**given(p, POOLING_PARAMS), "pool_type": "sum"}
    none = F._equal_scalar(out, scalar=0)
    safe = out + none
    power = (1 - none) / safe ** (n - 1)
    gathered = F.Pooling(dy * data ** (n - 1), **plain)
    d_data = (n - 1) * dy * F._backward_Pooling(dy_ * power, data, out, **plain)
    return gathered * power, d_data * data if n == 3 else d_data, (1 - n) * gathered * dy_ * power / safe


@op("_max_pooling_at", inputs="source data out", **POOLING_PARAMS)
@silent
def max_pooling_at(k: Call, p: Params, source: Array, data: Array, out: Array) -> Array:
    """What an array holds where max `Pooling` finds the maxima of another: the gradient of `_backward_Pooling`.

    Parameters
    ----------
    source, data : array
        Of one shape: where the values come from, and where the maxima are.
    out : array
        The maxima, as `Pooling` returned them.
    kernel, pool_type, global_pool, cudnn_off, pooling_convention, stride, pad, p_value, count_include_pad, layout
        As in `Pooling`.
    """
    xp = k.xp
    s, x, y = (channels_first(p, xp, a) for a in (source, data, out))
    if not x.size or not y.size:
        return xp.zeros(out.shape, source.dtype)
    low = x.dtype.type(lowest(x.dtype))
    x = xp.where(x > low, x, low)  # as `Pooling` saw it
    if p.global_pool:
        flat = (*x.shape[:2], size_of(x.shape[2:]))
        return channels_back(
            p, xp, xp.take_along_axis(s.reshape(flat), x.reshape(flat).argmax(2)[..., None], 2).reshape(y.shape)
        )
    g = pooling_geometry(p, tuple(x.shape[2:]))
    sizes = tuple(y.shape[2:])
    found, free = xp.zeros(y.shape, s.dtype), xp.ones(y.shape, "bool")
    for part, seen in zip(window_values(xp, s, g, sizes, 0), window_values(xp, x, g, sizes, low)):
        hit = free & (seen == y)
        found = xp.where(hit, part, found)
        free &= ~hit
    return channels_back(p, xp, found)


max_pooling_at.grad(
    lambda F, p, dy, data, out: (F._backward_Pooling(dy, data, out, **given(p, POOLING_PARAMS)), None, None)
)
max_pooling_at.shape(lambda p, ins: [pooled_shape(p, ins[1])])


def _norm_slope(xp: Any, x: Any, y: Any, n: int) -> Any:
    """Derivative of a p-norm by one of its elements."""
    if n == 1:
        return xp.ones_like(x)
    return xp.where(y == 0, y.dtype.type(0), (x / xp.where(y == 0, y.dtype.type(1), y)) ** (n - 1))


@backward_pooling.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    fits("dy data out", ins, [pooled_shape(p, ins[1]), ins[1], pooled_shape(p, ins[1])])
    return [ins[1]]


@backward_pooling.cost
def _(p: Params, ins: list[Any], outs: list[Any]) -> float:
    return (
        3 * size_of(ins[1])
        if p.global_pool
        else size_of(ins[0]) * size_of(p.kernel) * (4 if p.pool_type == "max" else 2)
    )
