"""Pooling over windows in one to three dimensions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool, Enum, Int, Shape
from ...typing import Array, Call
from ..common.bodies import silent, wide
from ..common.gradients import given
from ..common.rules import floating, size_of
from ..convolution.windows import Geometry, geometry, padded, windows

__all__: list[str] = []


POOLING_PARAMS = dict(
    kernel=Shape(()),
    pool_type=Enum("avg lp max sum", "max"),
    global_pool=Bool(False),
    cudnn_off=Bool(False),
    pooling_convention=Enum("full same valid", "valid"),
    stride=Shape(()),
    pad=Shape(()),
    p_value=Int(None, ge=1, le=3),
    count_include_pad=Bool(None),
    layout=Enum("NCDHW NCHW NCW NDHWC NHWC NWC", None),
)


def _last(p: Params) -> bool:
    return p.layout is not None and p.layout[-1] == "C"


def _spatial(p: Params, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The lengths that are pooled over; raises ValueError if the data does not fit the parameters."""
    if p.pool_type == "lp" and p.p_value is None:
        raise ValueError("pool_type lp needs p_value, one of 1, 2, 3")
    if len(shape) not in (3, 4, 5):
        raise ValueError(f"data {shape} must have batch, channels and 1, 2 or 3 spatial dimensions")
    if p.layout is not None and len(p.layout) != len(shape):
        raise ValueError(f"layout {p.layout} does not fit data {shape}")
    if not p.global_pool and len(p.kernel) != len(shape) - 2:
        raise ValueError(f"kernel {p.kernel} must have {len(shape) - 2} numbers for data {shape}")
    return tuple(shape[1:-1] if _last(p) else shape[2:])


def pooling_geometry(p: Params, spatial: tuple[int, ...]) -> Geometry:
    """How windows lie on data of these lengths."""
    if p.global_pool:
        return geometry(tuple(max(n, 1) for n in spatial), (), (), ())
    g = geometry(p.kernel, p.stride, (), p.pad)
    if any(q >= k for q, k in zip(g.pad, g.kernel)):
        raise ValueError(f"pad {g.pad} must be smaller than kernel {g.kernel}: a window would see padding only")
    if p.pooling_convention == "same" and any(g.pad):  # as MXNet has it
        raise ValueError(
            f"pad {g.pad} must be {(0,) * len(g.pad)} with pooling_convention same: "
            "the last windows would see padding only"
        )
    return g


def pooled_lengths(p: Params, g: Geometry, spatial: tuple[int, ...]) -> tuple[int, ...]:
    """Number of windows per dimension; -1 stays unknown."""
    if p.pooling_convention == "valid" or p.global_pool:
        return g.out(spatial)
    g.out(spatial)  # refuses windows larger than the data
    if p.pooling_convention == "same":
        return tuple(-1 if n == -1 else -(-n // s) for n, s in zip(spatial, g.stride))
    return tuple(
        -1 if n == -1 else -(-(n + 2 * q - k) // s) + 1 for n, k, s, q in zip(spatial, g.kernel, g.stride, g.pad)
    )


def channels_first(p: Params, xp: Any, x: Any) -> Any:
    """Move the channels to the second place."""
    return xp.moveaxis(x, -1, 1) if _last(p) else x


def channels_back(p: Params, xp: Any, x: Any) -> Any:
    """Move the channels back to where the layout has them."""
    return xp.ascontiguousarray(xp.moveaxis(x, 1, -1)) if _last(p) else x


def end_padding(g: Geometry, spatial: tuple[int, ...], out: tuple[int, ...]) -> tuple[int, ...]:
    """Padding at the end, so that the last windows are whole."""
    return tuple(max((o - 1) * s + k - q - n, 0) for n, o, k, s, q in zip(spatial, out, g.kernel, g.stride, g.pad))


def window_values(xp: Any, x: Any, g: Geometry, out: tuple[int, ...], value: Any) -> Iterator[Any]:
    """What all windows see at each place in the kernel, row by row."""
    x = padded(xp, x, g.pad, end_padding(g, x.shape[2:], out), value)
    return (x[(slice(None),) * 2 + see] for _, see in windows(g, out))


def window_counts(xp: Any, p: Params, g: Geometry, spatial: tuple[int, ...], out: tuple[int, ...], dtype: Any) -> Any:
    """Elements in each window: with padding, but not beyond it, or without."""
    total = None
    include = p.count_include_pad is None or p.count_include_pad
    for n, o, k, s, q in zip(spatial, out, g.kernel, g.stride, g.pad):
        start = xp.arange(o) * s - q
        end = xp.minimum(start + k, n + q)
        if not include:
            start, end = xp.maximum(start, 0), xp.minimum(end, n)
        length = xp.maximum(end - start, 1).astype(dtype)
        total = length if total is None else total[..., None] * length
    return total


def lowest(dtype: Any) -> Any:
    """What every number is above: NaN never wins, and a window of nothing else gives this."""
    return np.iinfo(dtype).min if dtype.kind in "iub" else np.finfo(dtype).min if dtype.kind == "f" else -np.inf


@op(
    "Pooling",
    inputs="data",
    labels="inputs outputs",
    mxnet_outputs=lambda p: 1 + (p.pool_type == "max" and bool(p.kernel) and not str(p.layout).endswith("C")),
    **POOLING_PARAMS,
    grad=lambda F, p, dy, data, y: F._backward_Pooling(dy, data, y, **given(p, POOLING_PARAMS)),
)
@silent
def pooling(k: Call, p: Params, data: Array) -> Array:
    """Reduce windows of the spatial dimensions to one value each.

    Parameters
    ----------
    data : array
        Shape (N, C, \\*spatial), or as `layout` says.
    kernel : tuple of int
        Lengths of the window, one per spatial dimension; not needed with `global_pool`.
    pool_type : {'max', 'avg', 'sum', 'lp'}
        What to compute; ``lp`` is the p-norm, but without absolute values: ``sum(x**p) ** (1/p)``.
    global_pool : bool
        One window over everything; kernel, stride and pad are ignored.
    cudnn_off : bool
        A hint of MXNet's own backend; no effect.
    pooling_convention : {'valid', 'full', 'same'}
        The number of windows in n padded elements: ``floor((n - k) / s) + 1``, ``ceil((n - k) / s) + 1`` or, without
        padding, ``ceil(n / s)``.
    stride, pad : tuple of int
        Step between windows (1), padding at both ends (0).
    p_value : {1, 2, 3}, optional
        The p of ``lp``.
    count_include_pad : bool, optional
        Whether averages count padding (they do unless told).
    layout : {'NCW', 'NCHW', 'NCDHW', 'NWC', 'NHWC', 'NDHWC'}, optional
        Order of the dimensions; channels first unless told.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``Pooling``.
    """
    xp = k.xp
    x = channels_first(p, xp, data)
    spatial = tuple(x.shape[2:])
    g = pooling_geometry(p, spatial)
    out = pooled_lengths(p, g, spatial)
    if not x.size:
        return xp.zeros(pooled_shape(p, data.shape), data.dtype)
    axes = tuple(range(2, x.ndim))
    if p.pool_type == "max":
        low = x.dtype.type(lowest(x.dtype))
        if p.global_pool:
            return channels_back(p, xp, xp.where(x > low, x, low).max(axes, keepdims=True))
        y = xp.full((*x.shape[:2], *out), low, x.dtype)
        for part in window_values(xp, x, g, out, low):
            y = xp.where(part > y, part, y)
        return channels_back(p, xp, y)
    x = wide(x)
    n = p.p_value if p.pool_type == "lp" else 1
    if n > 1:
        x = x**n
    if p.global_pool:
        y = x.sum(axes, keepdims=True)
    else:
        parts = window_values(xp, x, g, out, 0)
        y = next(parts).copy()
        for part in parts:
            y += part
    if p.pool_type == "avg":
        y /= window_counts(xp, p, g, spatial, out, y.dtype)
    elif n > 1:
        y = xp.sqrt(y) if n == 2 else xp.cbrt(y)
    return channels_back(p, xp, y)


def pooled_shape(p: Params, data: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of the output for a data shape."""
    spatial = _spatial(p, data)
    out = (1,) * len(spatial) if p.global_pool else pooled_lengths(p, pooling_geometry(p, spatial), spatial)
    return (data[0], *out, data[-1]) if _last(p) else (*data[:2], *out)


@pooling.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    data, out = ins[0], outs[0]
    if data is None:
        return ins, outs
    if out is not None and len(out) == len(data):  # batch and channels pass through
        at = (0, len(data) - 1) if _last(p) else (0, 1)
        data = tuple(out[i] if d == -1 and i in at else d for i, d in enumerate(data))
    return [data], [pooled_shape(p, data)]


_FLOATS = floating()


@pooling.dtype
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    t = ins[0] or outs[0]
    if p.pool_type == "max" and t is not None and t.kind in "iu":  # which is exact
        return [t], [t]
    return _FLOATS(p, ins, outs)


@pooling.cost
def _(p: Params, ins: list[Any], outs: list[Any]) -> float:
    return 2 * size_of(ins[0]) if p.global_pool else size_of(outs[0]) * (size_of(p.kernel) + 1)
