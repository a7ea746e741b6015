"""Pooling."""

from __future__ import annotations

import math

import numpy as np

from mxcore.layouts import axes, channels_first
from mxcore.plugin import Call, Params, Spec

from .common import Array, Outs, binds, countable, kernel_for, three


def _fits(p: Params, data: Spec, *rest: Spec) -> bool:
    return (
        channels_first(p)
        and (p.global_pool or p.pooling_convention != "same")
        and 3 <= data.ndim <= 5
        and countable(data)
    )


def _windows(p: Params, image: tuple[int, ...], out: tuple[int, ...]) -> tuple[int, ...]:
    """The arguments that all kernels share."""
    n = len(image)
    if p.global_pool:
        window, stride, pad = image, (1,) * n, (0,) * n
    else:
        window, stride, pad = tuple(p.kernel), axes(p.stride, n, 1), axes(p.pad, n, 0)
    return (*three(image), *three(out), *three(window), *three(stride), *three(pad, 0))


def _how(p: Params) -> tuple[int, bool, bool]:
    """Power, whether it is an average, whether that counts padding."""
    return p.p_value if p.pool_type == "lp" else 1, p.pool_type == "avg", p.count_include_pad is not False


def _lowest(a: Array) -> float:
    return float(np.finfo(a.dtype).min) if a.dtype.kind == "f" else -math.inf  # as the body has it for bfloat16


@binds("Pooling", when=_fits)
def _pool(k: Call, p: Params, outs: Outs, data: Array) -> None:
    y, windows = outs[0], _windows(p, data.shape[2:], outs[0].shape[2:])
    planes, size = data.shape[0] * data.shape[1], math.prod(y.shape[2:])
    if p.pool_type == "max":
        run = kernel_for(k, "pooling", "max_pool", y.dtype)
        run.planes(planes, size, data, y, None, planes, _lowest(data), *windows)
    else:
        run = kernel_for(k, "pooling", "sum_pool", y.dtype)
        run.planes(planes, size, data, y, planes, *_how(p), *windows)


@binds("_backward_Pooling", when=lambda p, dy, data, out: _fits(p, data))
def _backward_pool(k: Call, p: Params, outs: Outs, dy: Array, data: Array, out: Array) -> None:
    dx, windows = outs[0], _windows(p, data.shape[2:], dy.shape[2:])
    planes, size = data.shape[0] * data.shape[1], math.prod(data.shape[2:])
    if p.pool_type == "max":
        where = k.device.empty(dy.shape, np.dtype(np.int32), k.ctx.device_id)
        find = kernel_for(k, "pooling", "max_pool", dx.dtype)
        find.planes(planes, math.prod(dy.shape[2:]), data, None, where, planes, _lowest(data), *windows)
        kernel_for(k, "pooling", "max_pool_backward", dx.dtype).planes(planes, size, dy, where, dx, planes, *windows)
    else:
        run = kernel_for(k, "pooling", "sum_pool_backward", dx.dtype)
        run.planes(planes, size, dy, data, out, dx, planes, *_how(p), *windows)
