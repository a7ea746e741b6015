"""Pooling over windows in one to three dimensions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._core.op import op
from ..parameters import Bool, Enum, Int, Shape
from .conv import Geometry, geometry, padded, windows
from .dense import given, wide
from .floating import floating
from .rules import fits, size_of
from .silent import silent

__all__: list[str] = []

_PARAMS = dict(
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


def _last(p: Any) -> bool:
    return p.layout is not None and p.layout[-1] == "C"


def _spatial(p: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
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


def _geometry(p: Any, spatial: tuple[int, ...]) -> Geometry:
    if p.global_pool:
        return geometry(tuple(max(n, 1) for n in spatial), (), (), ())
    g = geometry(p.kernel, p.stride, (), p.pad)
    if any(q >= k for q, k in zip(g.pad, g.kernel)):
        raise ValueError(f"pad {g.pad} must be smaller than kernel {g.kernel}: a window would see padding only")
    if p.pooling_convention == "same" and any(g.pad):  # as MXNet has it
        raise ValueError(
            f"pad {g.pad} must be {(0,) * len(g.pad)} with pooling_convention same: the last windows would see "
            "padding only"
        )
    return g


def _sizes(p: Any, g: Geometry, spatial: tuple[int, ...]) -> tuple[int, ...]:
    """Number of windows per dimension; -1 stays unknown."""
    if p.pooling_convention == "valid" or p.global_pool:
        return g.out(spatial)
    g.out(spatial)  # refuses windows larger than the data
    if p.pooling_convention == "same":
        return tuple(-1 if n == -1 else -(-n // s) for n, s in zip(spatial, g.stride))
    return tuple(
        -1 if n == -1 else -(-(n + 2 * q - k) // s) + 1 for n, k, s, q in zip(spatial, g.kernel, g.stride, g.pad)
    )


def _first(p: Any, xp: Any, x: Any) -> Any:
    return xp.moveaxis(x, -1, 1) if _last(p) else x


def _back(p: Any, xp: Any, x: Any) -> Any:
    return xp.ascontiguousarray(xp.moveaxis(x, 1, -1)) if _last(p) else x


def _reach(g: Geometry, spatial: tuple[int, ...], out: tuple[int, ...]) -> tuple[int, ...]:
    """Padding at the end, so that the last windows are whole."""
    return tuple(max((o - 1) * s + k - q - n, 0) for n, o, k, s, q in zip(spatial, out, g.kernel, g.stride, g.pad))


def _seen(xp: Any, x: Any, g: Geometry, out: tuple[int, ...], value: Any) -> Iterator[Any]:
    """What all windows see at each place in the kernel, row by row."""
    x = padded(xp, x, g.pad, _reach(g, x.shape[2:], out), value)
    return (x[(slice(None), slice(None), *see)] for _, see in windows(g, out))


def _counts(xp: Any, p: Any, g: Geometry, spatial: tuple[int, ...], out: tuple[int, ...], dtype: Any) -> Any:
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


def _lowest(dtype: Any) -> Any:
    """What every number is above: NaN never wins, and a window of nothing else gives this."""
    return np.iinfo(dtype).min if dtype.kind in "iub" else np.finfo(dtype).min if dtype.kind == "f" else -np.inf


@op(
    "Pooling",
    inputs="data",
    labels="inputs outputs",
    mxnet_outputs=lambda p: 1 + (p.pool_type == "max" and bool(p.kernel) and not str(p.layout).endswith("C")),
    **_PARAMS,
    grad=lambda F, p, dy, data, y: F._backward_Pooling(dy, data, y, **given(p, _PARAMS)),
)
@silent
def pooling(k, p, data):
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
    x = _first(p, xp, data)
    spatial = tuple(x.shape[2:])
    g = _geometry(p, spatial)
    out = _sizes(p, g, spatial)
    if not x.size:
        return xp.zeros(_shape(p, data.shape), data.dtype)
    axes = tuple(range(2, x.ndim))
    if p.pool_type == "max":
        low = x.dtype.type(_lowest(x.dtype))
        if p.global_pool:
            return _back(p, xp, xp.where(x > low, x, low).max(axes, keepdims=True))
        y = xp.full((*x.shape[:2], *out), low, x.dtype)
        for part in _seen(xp, x, g, out, low):
            y = xp.where(part > y, part, y)
        return _back(p, xp, y)
    x = wide(x)
    n = p.p_value if p.pool_type == "lp" else 1
    if n > 1:
        x = x**n
    if p.global_pool:
        y = x.sum(axes, keepdims=True)
    else:
        parts = _seen(xp, x, g, out, 0)
        y = next(parts).copy()
        for part in parts:
            y += part
    if p.pool_type == "avg":
        y /= _counts(xp, p, g, spatial, out, y.dtype)
    elif n > 1:
        y = xp.sqrt(y) if n == 2 else xp.cbrt(y)
    return _back(p, xp, y)


def _shape(p: Any, data: tuple[int, ...]) -> tuple[int, ...]:
    spatial = _spatial(p, data)
    out = (1,) * len(spatial) if p.global_pool else _sizes(p, _geometry(p, spatial), spatial)
    return (data[0], *out, data[-1]) if _last(p) else (*data[:2], *out)


@pooling.shape
def _(p, ins, outs):
    data, out = ins[0], outs[0]
    if data is None:
        return ins, outs
    if out is not None and len(out) == len(data):  # batch and channels pass through
        at = (0, len(data) - 1) if _last(p) else (0, 1)
        data = tuple(out[i] if d == -1 and i in at else d for i, d in enumerate(data))
    return [data], [_shape(p, data)]


_FLOATS = floating()


@pooling.dtype
def _(p, ins, outs):
    t = ins[0] or outs[0]
    if p.pool_type == "max" and t is not None and t.kind in "iu":  # which is exact
        return [t], [t]
    return _FLOATS(p, ins, outs)


@pooling.cost
def _(p, ins, outs):
    return 2 * size_of(ins[0]) if p.global_pool else size_of(outs[0]) * (size_of(p.kernel) + 1)


@op("_backward_Pooling", inputs="dy data out", **_PARAMS)
@silent
def backward_pooling(k, p, dy_, data, out):
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
    x, y, dy = (_first(p, xp, a) for a in (data, out, dy_))
    spatial = tuple(x.shape[2:])
    g = _geometry(p, spatial)
    sizes = _sizes(p, g, spatial)
    if not x.size or not y.size:
        return xp.zeros(data.shape, data.dtype)
    low = _lowest(x.dtype) if p.pool_type == "max" else 0
    if p.pool_type == "max":
        x = xp.where(x > x.dtype.type(low), x, x.dtype.type(low))  # as the forward pass saw it
    if p.pool_type == "max" and p.global_pool:
        flat = x.reshape(*x.shape[:2], size_of(spatial))
        dx = xp.zeros(flat.shape, dy.dtype)
        xp.put_along_axis(dx, flat.argmax(2)[..., None], dy.reshape(*x.shape[:2], 1), 2)
        return _back(p, xp, dx.reshape(x.shape))
    x, y, dy = wide(x), wide(y), wide(dy)
    if p.pool_type == "avg":
        dy = dy / _counts(xp, p, g, spatial, sizes, dy.dtype)
    n = p.p_value if p.pool_type == "lp" else 1
    after = _reach(g, spatial, sizes)
    dx = xp.zeros((*x.shape[:2], *(q + m + a for q, m, a in zip(g.pad, spatial, after))), dy.dtype)
    if p.pool_type in ("avg", "sum"):
        for _, see in windows(g, sizes):
            dx[(slice(None), slice(None), *see)] += dy
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
        dx = xp.ascontiguousarray(dx[(slice(None), slice(None), *(slice(q, q + m) for q, m in zip(g.pad, spatial)))])
    return _back(p, xp, dx)


@backward_pooling.grad
def _(F, p, dy, dy_, data, out):
    if p.pool_type == "max":
        return F._max_pooling_at(dy, data, out, **given(p, _PARAMS)), None, None
    n = p.p_value if p.pool_type == "lp" else 1
    if n == 1:  # linear: the gradient of its gradient is the operator itself
        return F.Pooling(dy, **given(p, _PARAMS)), None, None
    # Of dx = x**(n-1) * spread(dy / y**(n-1)), where spreading is the gradient of a sum.
    plain = {**given(p, _PARAMS), "pool_type": "sum"}
    none = F._equal_scalar(out, scalar=0)
    safe = out + none
    power = (1 - none) / safe ** (n - 1)
    gathered = F.Pooling(dy * data ** (n - 1), **plain)
    d_data = (n - 1) * dy * F._backward_Pooling(dy_ * power, data, out, **plain)
    return gathered * power, d_data * data if n == 3 else d_data, (1 - n) * gathered * dy_ * power / safe


@op("_max_pooling_at", inputs="source data out", **_PARAMS)
@silent
def max_pooling_at(k, p, source, data, out):
    """What an array holds where max `Pooling` finds the maxima of another: what `_backward_Pooling` has for its
    gradient.

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
    s, x, y = (_first(p, xp, a) for a in (source, data, out))
    if not x.size or not y.size:
        return xp.zeros(out.shape, source.dtype)
    low = x.dtype.type(_lowest(x.dtype))
    x = xp.where(x > low, x, low)  # as `Pooling` saw it
    if p.global_pool:
        flat = (*x.shape[:2], size_of(x.shape[2:]))
        return _back(
            p, xp, xp.take_along_axis(s.reshape(flat), x.reshape(flat).argmax(2)[..., None], 2).reshape(y.shape)
        )
    g = _geometry(p, tuple(x.shape[2:]))
    sizes = tuple(y.shape[2:])
    found, free = xp.zeros(y.shape, s.dtype), xp.ones(y.shape, "bool")
    for part, seen in zip(_seen(xp, s, g, sizes, 0), _seen(xp, x, g, sizes, low)):
        hit = free & (seen == y)
        found = xp.where(hit, part, found)
        free &= ~hit
    return _back(p, xp, found)


max_pooling_at.grad(lambda F, p, dy, data, out: (F._backward_Pooling(dy, data, out, **given(p, _PARAMS)), None, None))
max_pooling_at.shape(lambda p, ins: [_shape(p, ins[1])])


def _norm_slope(xp: Any, x: Any, y: Any, n: int) -> Any:
    """Derivative of a p-norm by one of its elements."""
    if n == 1:
        return xp.ones_like(x)
    return xp.where(y == 0, y.dtype.type(0), (x / xp.where(y == 0, y.dtype.type(1), y)) ** (n - 1))


@backward_pooling.shape
def _(p, ins):
    fits("dy data out", ins, [_shape(p, ins[1]), ins[1], _shape(p, ins[1])])
    return [ins[1]]


@backward_pooling.cost
def _(p, ins, outs):
    return (
        3 * size_of(ins[1])
        if p.global_pool
        else size_of(ins[0]) * size_of(p.kernel) * (4 if p.pool_type == "max" else 2)
    )
