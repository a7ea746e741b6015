"""Layers with weights, and pooling."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mxcore.layouts import axes, channels_first
from mxcore.plugin import Call, Params, Prepared, Spec

from ..kernels import convolution as conv
from ..kernels import gemm, packed, pooling, winograd
from ..kernels._arrays import dense, flat, writable
from ..typing import Array, Outs
from .common import FLOATS, cpu

__all__ = ["averaging", "rows_of", "windows_of"]


def _geometry(p: Params, data: Array) -> dict[str, Any]:
    n = data.ndim - 2
    return dict(stride=axes(p.stride, n, 1), pad=axes(p.pad, n, 0), dilate=axes(p.dilate, n, 1), groups=p.num_group)


@cpu.kernel("Convolution_v1", dtypes=FLOATS, when=channels_first, out=True)
@cpu.kernel("Convolution", dtypes=FLOATS, when=channels_first, out=True)
def _convolution(k: Call, p: Params, outs: Outs, data: Array, weight: Array, bias: Array | None = None) -> None:
    conv.convolution(data, weight, bias, outs[0], **_geometry(p, data))


@cpu.kernel("_backward_Convolution", dtypes=FLOATS, when=channels_first, out=True)
def _backward_convolution(k: Call, p: Params, outs: Outs, dy: Array, data: Array, weight: Array) -> None:
    d_bias = None if p.no_bias else outs[2]
    conv.convolution_backward(dy, data, weight, outs[0], outs[1], d_bias, **_geometry(p, data))


# -- images with their channels last, windows one place apart ----------------------------------------------------------
def _plain(p: Params, data: Spec, weight: Spec) -> bool:
    """Whether windows of one convolution are one place apart, and have no gaps."""
    steps = {*axes(p.stride, 2, 1), *axes(p.dilate, 2, 1), p.num_group}
    return p.layout == "NHWC" and steps == {1} and data.size > 0 and weight.size > 0


def _multiplied(p: Params, data: Spec, weight: Spec, *bias: Spec) -> bool:
    """Whether a convolution is a product of places and filters."""
    return _plain(p, data, weight) and weight.shape[1:3] == (1, 1) and not any(axes(p.pad, 2, 0))


def _tiled(p: Params, data: Spec, weight: Spec, *bias: Spec) -> bool:
    """Whether a convolution is one of transformed tiles."""
    return (
        _plain(p, data, weight)
        and weight.shape[1:3] == (3, 3)
        and winograd.usable(data.shape[3], weight.shape[0])
        and min(_tiling(p, data, weight.shape[0]).out) > 0
    )


def _tiling(p: Params, data: Array | Spec, filters: int) -> winograd.Tiling:
    return winograd.Tiling.of(data.shape, filters, axes(p.pad, 2, 0))


@cpu.kernel("Convolution", dtypes=FLOATS, when=_multiplied, out=True)
def _convolution_product(k: Call, p: Params, outs: Outs, data: Array, weight: Array, bias: Array | None = None) -> None:
    with writable(outs[0]) as (out,):
        gemm.fully_connected(
            dense(data).reshape(-1, data.shape[3]), weight[:, 0, 0], bias, out.reshape(-1, out.shape[3])
        )


@cpu.kernel("_backward_Convolution", dtypes=FLOATS, when=lambda p, dy, *rest: _multiplied(p, *rest), out=True)
def _backward_convolution_product(k: Call, p: Params, outs: Outs, dy: Array, data: Array, weight: Array) -> None:
    d_weight = None if outs[1] is None else outs[1][:, 0, 0]
    d_bias = None if p.no_bias else outs[2]
    given, read = dense(dy).reshape(-1, dy.shape[3]), dense(data).reshape(-1, data.shape[3])
    if d_weight is not None and packed.pays(dy.dtype, dy.shape[3], data.shape[3], len(read)):
        packed.product(given.T, read, d_weight)
        d_weight = None
    with writable(*(o for o in outs[:1] if o is not None)) as places:
        d_data = places[0].reshape(read.shape) if places else None
        gemm.fully_connected_backward(given, read, weight[:, 0, 0], d_data, d_weight, d_bias)


@cpu.kernel("Convolution", dtypes="f4", when=_tiled, out=True)
def _convolution_tiles(k: Call, p: Params, outs: Outs, data: Array, weight: Array, bias: Array | None = None) -> None:
    filters = winograd.filters(weight.transpose(0, 3, 1, 2))
    winograd.convolution(_tiling(p, data, weight.shape[0]), data, filters, bias, outs[0])


def _run_prepared(p: Params, data: Array, made: Array, bias: Array | None, out: Array, *then: Any) -> None:
    winograd.convolution(_tiling(p, data, out.shape[3]), data, made, bias, out, *then)


_convolution_tiles.prepared = Prepared(  # type: ignore[attr-defined]
    size=lambda p, data, weight: winograd.filters_size(data.shape[3], weight.shape[0]),
    make=lambda p, weight, out: winograd.filters_into(weight.transpose(0, 3, 1, 2), out),
    run=_run_prepared,
)


@cpu.kernel("_backward_Convolution", dtypes="f4", when=lambda p, dy, *rest: _tiled(p, *rest), out=True)
def _backward_convolution_tiles(k: Call, p: Params, outs: Outs, dy: Array, data: Array, weight: Array) -> None:
    tiling = _tiling(p, data, weight.shape[0])
    if outs[0] is not None:
        filters = winograd.filters(weight.transpose(0, 3, 1, 2), back=True)
        winograd.convolution(tiling.back, dy, filters, None, outs[0])
    if outs[1] is not None:
        winograd.weight_gradient(tiling, data, dy, outs[1].transpose(0, 3, 1, 2))
    if not p.no_bias and outs[2] is not None:
        gemm.sum_rows(dy.reshape(-1, dy.shape[3]), outs[2])


# MXNet gives the target shape of a transposed convolution or lets it follow from pad and adj; only the latter maps
# here.
def _transposed(p: Params, *specs: Spec) -> bool:
    return channels_first(p) and not p.target_shape


@cpu.kernel("Deconvolution", dtypes=FLOATS, when=_transposed, out=True)
def _deconvolution(k: Call, p: Params, outs: Outs, data: Array, weight: Array, bias: Array | None = None) -> None:
    conv.deconvolution(data, weight, bias, outs[0], **_geometry(p, data))


@cpu.kernel("_backward_Deconvolution", dtypes=FLOATS, when=_transposed, out=True)
def _backward_deconvolution(k: Call, p: Params, outs: Outs, dy: Array, data: Array, weight: Array) -> None:
    d_bias = None if p.no_bias else outs[2]
    conv.deconvolution_backward(dy, data, weight, outs[0], outs[1], d_bias, **_geometry(p, data))


@cpu.kernel("FullyConnected", dtypes=FLOATS, out=True)
def _fully_connected(k: Call, p: Params, outs: Outs, data: Array, weight: Array, bias: Array | None = None) -> None:
    gemm.fully_connected(rows_of(p, data), weight, bias, outs[0].reshape(-1, weight.shape[0]))


@cpu.kernel("_backward_FullyConnected", dtypes=FLOATS, out=True)
def _backward_fully_connected(k: Call, p: Params, outs: Outs, dy: Array, data: Array, weight: Array) -> None:
    d_data = None if outs[0] is None else rows_of(p, outs[0])
    gemm.fully_connected_backward(
        dy.reshape(-1, weight.shape[0]), rows_of(p, data), weight, d_data, outs[1], None if p.no_bias else outs[2]
    )


def _layer(p: Params, weight: Array, *arrays: Array) -> gemm.Layer | None:
    """A layer of a program that takes one call of a kernel, if it is such a one; the data come first."""
    if {a.dtype for a in (weight, *arrays)} != {np.dtype(np.float32)}:
        return None  # no code was brought, and compiling takes longer
    filters, width = weight.shape
    layer = gemm.Layer(len(rows_of(p, arrays[0])), filters, width, weight.dtype)
    return layer if layer.serves else None


def _connecting(k: Call, p: Params, ins: Sequence[Any], outs: Sequence[Any]) -> Callable[[], None] | None:
    data, weight, *bias = ins
    if (layer := _layer(p, weight, data, *bias)) is None:
        return None

    def call() -> None:
        layer.forward(flat(ins[0]), flat(ins[1]), flat(ins[2]) if bias else None, outs[0].reshape(-1))

    return call


_fully_connected.binds = _connecting  # type: ignore[attr-defined]


def _differentiating(k: Call, p: Params, ins: Sequence[Any], outs: Sequence[Any]) -> Callable[[], None] | None:
    dy, data, weight = ins
    if (layer := _layer(p, weight, data, dy)) is None:
        return None
    missing = [None] * (3 - len(outs))

    def call() -> None:
        places = [None if o is None else o.reshape(-1) for o in outs]
        layer.backward(*map(flat, ins), *places, *missing)

    return call


_backward_fully_connected.binds = _differentiating  # type: ignore[attr-defined]


def rows_of(p: Params, data: Array) -> Array:
    """The data of a fully connected layer as a matrix, one sample (or position) a row."""
    width = math.prod(data.shape[1:]) if p.flatten else data.shape[-1]
    return data.reshape(data.size // width if width else data.shape[0], width)


def _poolable(p: Params, data: Spec, *rest: Spec) -> bool:
    return channels_first(p) and (p.global_pool or p.pooling_convention != "same") and 3 <= data.ndim <= 5


def windows_of(p: Params, data: Array) -> dict[str, Any]:
    """Where the windows of a pooling lie."""
    n = data.ndim - 2
    if p.global_pool:
        return dict(window=data.shape[2:], stride=(1,) * n, pad=(0,) * n)
    return dict(window=p.kernel, stride=axes(p.stride, n, 1), pad=axes(p.pad, n, 0))


def averaging(p: Params) -> dict[str, Any]:
    """What sums over windows become."""
    return dict(average=p.pool_type == "avg", include_pad=p.count_include_pad is not False)


@cpu.kernel("Pooling", dtypes=FLOATS, when=_poolable, out=True)
def _pool(k: Call, p: Params, outs: Outs, data: Array) -> None:
    if p.pool_type == "max":
        pooling.max_pool(data, outs[0], **windows_of(p, data))
    elif p.pool_type == "lp":
        pooling.lp_pool(data, outs[0], p=p.p_value, **windows_of(p, data))
    else:
        pooling.average_pool(data, outs[0], **windows_of(p, data), **averaging(p))


@cpu.kernel("_backward_Pooling", dtypes=FLOATS, when=lambda p, dy, data, out: _poolable(p, data), out=True)
def _backward_pool(k: Call, p: Params, outs: Outs, dy: Array, data: Array, out: Array) -> None:
    if p.pool_type == "max":
        pooling.max_pool_backward(dy, data, outs[0], **windows_of(p, data))
    elif p.pool_type == "lp":
        pooling.lp_pool_backward(dy, data, out, outs[0], p=p.p_value, **windows_of(p, data))
    else:
        pooling.average_pool_backward(dy, outs[0], **windows_of(p, data), **averaging(p))
