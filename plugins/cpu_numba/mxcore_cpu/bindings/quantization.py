"""Operators over eight bits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mxcore.layouts import axes
from mxcore.plugin import Call, Params, Spec

from ..kernels import eight_bits, pooling
from ..kernels import quantization as q
from ..typing import Array, Outs
from .common import LARGE, cpu, helpers, large
from .neural import averaging, rows_of, windows_of


def _large_floats(p: Params, data: Spec, *rest: Spec) -> bool:
    return data.size >= LARGE and data.dtype == np.float32


def _put(outs: Outs, *values: Array) -> None:
    """Write values into those outputs that anyone reads."""
    for out, value in zip(outs, values):
        if out is not None:
            out[...] = value


@cpu.kernel("_contrib_quantize", when=large, out=True)
def _quantize(k: Call, p: Params, outs: Outs, data: Array, low: Array, high: Array) -> None:
    scale, *ends = helpers("_contrib_quantize").plan(np, p, low, high)
    _put(outs[1:], *ends)
    if outs[0] is not None:
        q.scaled(data, scale[0], outs[0])


@cpu.kernel("_contrib_quantize_v2", when=_large_floats, out=True)
def _quantize_v2(k: Call, p: Params, outs: Outs, data: Array) -> None:
    scale, *ends = helpers("_contrib_quantize_v2").plan(np, p, data)
    _put(outs[1:], *ends)
    if outs[0] is not None:
        q.scaled(data, scale[0], outs[0])


@cpu.kernel("_contrib_requantize", when=large, out=True)
def _requantize(k: Call, p: Params, outs: Outs, data: Array, low: Array, high: Array) -> None:
    scale, *ends = helpers("_contrib_requantize").plan(np, p, data, low, high)
    _put(outs[1:], *ends)
    if outs[0] is not None:
        q.scaled(data, scale[0], outs[0])


@cpu.kernel("_contrib_dequantize", when=large, out=True)
def _dequantize(k: Call, p: Params, outs: Outs, data: Array, low: Array, high: Array) -> None:
    q.scaled_back(data, helpers("_contrib_dequantize").step(np, data.dtype, low, high)[0], outs[0])


def _parts(op: str, p: Params, arrays: tuple[Array, ...], outs: Outs) -> tuple[Array, Array, Array | None]:
    """Data, weight and the bias in int32; the range of the result is written."""
    data, weight, bias, (low, high) = helpers(op).prepared(np, p, arrays)
    _put(outs[1:], low, high)
    return data, weight, bias


def _summable(p: Params, data: Spec, *rest: Spec) -> bool:
    return q.fits(data.dtype, math.prod(p.kernel))


@cpu.kernel("_contrib_quantized_conv", when=_summable, out=True)
def _convolution(k: Call, p: Params, outs: Outs, *arrays: Array) -> None:
    data, weight, bias = _parts("_contrib_quantized_conv", p, arrays, outs)
    if outs[0] is None:
        return
    n = data.ndim - 2
    q.convolution(
        data, weight, bias, outs[0], stride=axes(p.stride, n, 1), pad=axes(p.pad, n, 0), dilate=axes(p.dilate, n, 1)
    )


@cpu.kernel("_contrib_quantized_fully_connected", when=lambda p, data, *rest: data.size > 0, out=True)
def _fully_connected(k: Call, p: Params, outs: Outs, *arrays: Array) -> None:
    data, weight, bias = _parts("_contrib_quantized_fully_connected", p, arrays, outs)
    if outs[0] is not None:
        q.fully_connected(rows_of(p, data), weight, bias, outs[0].reshape(-1, weight.shape[0]))


def _poolable(p: Params, data: Spec, *rest: Spec) -> bool:
    return data.size > 0 and (p.global_pool or p.pooling_convention != "same")


@cpu.kernel("_contrib_quantized_pooling", when=_poolable, out=True)
def _pool(k: Call, p: Params, outs: Outs, data: Array, low: Array, high: Array) -> None:
    _put(outs[1:], low, high)
    if outs[0] is None:
        return
    if p.pool_type == "max":
        pooling.max_pool(data, outs[0], **windows_of(p, data))
    else:
        q.average_pool(data, outs[0], **windows_of(p, data), **averaging(p))


def _some(p: Params, data: Spec, *rest: Spec) -> bool:
    return data.size > 0


@cpu.kernel("_contrib_quantized_act", when=_some, out=True)
def _act(k: Call, p: Params, outs: Outs, data: Array, low: Array, high: Array) -> None:
    _put(outs[1:], low, high)
    if outs[0] is not None:
        eight_bits.relu(data, outs[0])


@cpu.kernel("_contrib_quantized_concat", when=_some, out=True)
def _concat(k: Call, p: Params, outs: Outs, *data: Array) -> None:
    _, scales, ends = helpers("_contrib_quantized_concat").plan(np, p, data)
    _put(outs[1:], *ends)
    if outs[0] is None:
        return
    at, axis = 0, p.dim % data[0].ndim
    for x, scale in zip(data, scales):
        part = (slice(None),) * axis + (slice(at, at + x.shape[axis]),)
        q.scaled(x, scale[0], outs[0][part])
        at += x.shape[axis]


@cpu.kernel("_contrib_quantized_elemwise_add", when=_some, out=True)
def _add(k: Call, p: Params, outs: Outs, lhs: Array, rhs: Array, *ranges: Array) -> None:
    first, scales, ends = helpers("_contrib_quantized_elemwise_add").plan(np, p, [lhs.dtype, rhs.dtype], ranges)
    _put(outs[1:], *ends)
    if outs[0] is None:
        return
    arrays = [lhs, rhs]
    for i, scale in enumerate(first):
        if scale is not None:
            arrays[i] = np.empty(lhs.shape, np.int8)
            q.scaled((lhs, rhs)[i], scale[0], arrays[i])
    eight_bits.sums(arrays[0], arrays[1], (scales[0][0], scales[1][0]), outs[0])


@cpu.kernel("_contrib_quantized_elemwise_mul", when=_some, out=True)
def _multiply(k: Call, p: Params, outs: Outs, lhs: Array, rhs: Array, *ranges: Array) -> None:
    scale, ends = helpers("_contrib_quantized_elemwise_mul").plan(np, p, ranges)
    _put(outs[1:], *ends)
    if outs[0] is None:
        return
    if scale is None:
        eight_bits.products(lhs, rhs, outs[0])
    elif p.enable_float_output:
        eight_bits.scaled_products(lhs, rhs, scale[0], outs[0])
    else:
        eight_bits.rounded_products(lhs, rhs, scale[0], outs[0])


@cpu.kernel("_contrib_quantized_batch_norm", when=_some, out=True)
def _batch_norm(k: Call, p: Params, outs: Outs, data: Array, *rest: Array) -> None:
    half, slope, offset, *ends = helpers("_contrib_quantized_batch_norm").plan(np, p, rest[:4], *rest[4:])
    _put(outs[1:3], *ends)
    if outs[0] is None:
        return
    if data.dtype == np.uint8:
        whole, data = data, np.empty(data.shape, np.int8)
        q.scaled(whole, half, data)
    eight_bits.by_channel(data, slope, offset, outs[0])


@cpu.kernel("_contrib_calibrate_entropy")
def _calibrate(k: Call, p: Params, hist: Array, edges: Array) -> Any:
    found = helpers("_contrib_calibrate_entropy")
    return found.chosen(np, p, edges, q.divergences(hist, p.num_quantized_bins, found.epsilon()))
