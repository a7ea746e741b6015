"""Convolution and its transpose in one to three dimensions, as matrix products over gathered windows.

`Deconvolution` is `Convolution` with the parts of its three functions exchanged.
"""

from __future__ import annotations

from typing import Any

from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool, Enum, Int, Shape
from ...typing import Array, Call
from ..common.bodies import wide
from ..common.gradients import linear_grad
from ..common.rules import floating, size_of
from .windows import Geometry, conv_data, conv_forward, geometry

__all__ = [
    "CONVOLUTION_PARAMS",
    "DECONVOLUTION_PARAMS",
    "channels_back",
    "channels_first",
    "convolution",
    "convolution_geometry",
    "deconvolution",
    "transposed_geometry",
]


# -- layouts --------------------------------------------------------------------------------------------------------

_LAYOUTS = "NCW NCHW NCDHW NHWC NDHWC"


def _last(p: Params) -> bool:
    """Whether channels come last; raises ValueError if the layout does not fit the kernel."""
    if p.layout is None:
        return False
    if len(p.layout) != len(p.kernel) + 2:
        raise ValueError(f"layout {p.layout} does not fit kernel {p.kernel}")
    return bool(p.layout[-1] == "C")


def channels_first(xp: Any, p: Params, *arrays: Any) -> Any:
    """Arrays with channels moved to the second place, half precision widened."""
    last = _last(p)
    return [xp.moveaxis(wide(a), -1, 1) if last else wide(a) for a in arrays]


def channels_back(xp: Any, p: Params, x: Any) -> Any:
    """Move the channels back to where the layout has them."""
    return xp.ascontiguousarray(xp.moveaxis(x, 1, -1)) if _last(p) else x


def _put(p: Params, shape: Any) -> Any:
    """A channels-first shape in the operator's layout, and the other way by `_take`."""
    return shape if shape is None or not _last(p) else (shape[0], *shape[2:], shape[1])


def _take(p: Params, shape: Any, what: str) -> Any:
    if shape is None:
        return None
    if len(shape) != len(p.kernel) + 2:
        raise ValueError(f"{what} has {len(shape)} dimensions; kernel {p.kernel} needs {len(p.kernel) + 2}")
    return (shape[0], shape[-1], *shape[1:-1]) if _last(p) else tuple(shape)


def _grouped(p: Params, n: int, what: str) -> int:
    if n != -1 and n % p.num_group:
        raise ValueError(f"{what} {n} is no multiple of num_group={p.num_group}")
    return -1 if n == -1 else n // p.num_group


CONVOLUTION_PARAMS = dict(
    kernel=Shape(),
    stride=Shape(()),
    dilate=Shape(()),
    pad=Shape(()),
    num_filter=Int(ge=1),
    num_group=Int(1, ge=1),
    workspace=Int(1024, ge=0),
    no_bias=Bool(False),
    cudnn_tune=Enum("fastest limited_workspace off", None),
    cudnn_off=Bool(False),
    layout=Enum(_LAYOUTS, None),
)
_DECONV_PARAMS = {
    **CONVOLUTION_PARAMS,
    "adj": Shape(()),
    "target_shape": Shape((), optional=True),
    "workspace": Int(512, ge=0),
    "no_bias": Bool(True),
}
#: In MXNet's order.
DECONVOLUTION_PARAMS = {
    n: _DECONV_PARAMS[n]
    for n in (
        "kernel stride dilate pad adj target_shape num_filter num_group workspace no_bias cudnn_tune cudnn_off layout"
    ).split()
}


def convolution_geometry(p: Params) -> Geometry:
    """How the windows of a convolution lie."""
    return geometry(p.kernel, p.stride, p.dilate, p.pad, p.num_group)


def bias_axis(p: Params, ndim: int) -> int:
    """Along which axis of the output the bias is added."""
    return ndim - 1 if (p.layout or "NCW")[-1] == "C" else 1


@op(
    "Convolution",
    inputs="data weight bias[not no_bias]",
    labels="outputs",
    recompute=False,
    bias=bias_axis,
    **CONVOLUTION_PARAMS,
    grad=linear_grad("Convolution", CONVOLUTION_PARAMS),
)
def convolution(k: Call, p: Params, data: Array, weight: Array, bias: Array = None) -> Array:
    """Convolve over one, two or three spatial dimensions (a correlation: the kernel is not flipped).

    Parameters
    ----------
    data : array
        Shape (N, C, \\*spatial), or as `layout` says.
    weight : array
        Shape (num_filter, C / num_group, \\*kernel); with channels last (num_filter, \\*kernel, C / num_group).
    bias : array
        Shape (num_filter,); absent with `no_bias`.
    kernel : tuple of int
        Lengths of the kernel, one per spatial dimension.
    stride, dilate, pad : tuple of int
        Step between windows (1), step within a window (1), zeros added at both ends (0).
    num_filter : int
        Channels of the output.
    num_group : int
        Channels are split into this many groups, each convolved by itself.
    workspace, cudnn_tune, cudnn_off
        What cuDNN may use and how it chooses, and whether it is left out, where a device has it; elsewhere no effect.
    no_bias : bool
        There is no bias.
    layout : {'NCW', 'NCHW', 'NCDHW', 'NHWC', 'NDHWC'}, optional
        Order of the dimensions; channels first unless told.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``Convolution``.
    """
    xp = k.xp
    x, w = channels_first(xp, p, data, weight)
    return channels_back(xp, p, conv_forward(xp, x, w, convolution_geometry(p), None if bias is None else wide(bias)))


@convolution.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    g = convolution_geometry(p)
    data, out = _take(p, ins[0], "data"), _take(p, outs[0], "the output")
    _grouped(p, p.num_filter, "num_filter")
    channels = -1
    if data is not None:
        channels = _grouped(p, data[1], "number of channels")
        sizes = g.out(data[2:])
        if out is not None:
            # From the output: the batch, and lengths wherever the stride is 1.
            n = data[0] if data[0] != -1 else out[0]
            spatial = (
                o + e - 1 - 2 * q if d == -1 and o != -1 and s == 1 else d
                for d, o, e, s, q in zip(data[2:], out[2:], g.extent, g.stride, g.pad)
            )
            data = (n, data[1], *spatial)
        out = (data[0], p.num_filter, *sizes)
    elif out is not None:
        out = (out[0], p.num_filter, *out[2:])
    if data is None:
        return [None, None, *((p.num_filter,) if b is not None else None for b in ins[2:])], [_put(p, out)]
    weight = _put(p, (p.num_filter, channels, *p.kernel))
    return [_put(p, data), weight, (p.num_filter,)][: len(ins)], [_put(p, out)]


convolution.dtype(floating())


convolution.attach(flops=True)


@convolution.cost
def _(p: Params, ins: list[Any], outs: list[Any]) -> Any:
    return size_of(outs[0]) * size_of(ins[1]) / p.num_filter / 10


def transposed_geometry(p: Params, spatial: tuple[int, ...]) -> tuple[Geometry, tuple[int, ...]]:
    """Geometry and lengths of the output of a transposed convolution over data of these lengths."""
    g = convolution_geometry(p)
    n = len(p.kernel)
    whole = tuple(-1 if m == -1 else s * (m - 1) + e for m, s, e in zip(spatial, g.stride, g.extent))
    if p.target_shape and any(p.target_shape):
        # The padding follows from the wanted shape; an odd rest is cut at the end.
        if len(p.target_shape) != n:
            raise ValueError(
                f"target_shape {p.target_shape} must have {n} numbers, as kernel {p.kernel} has {n} dimensions"
            )
        if min(p.target_shape) < 1:
            raise ValueError(
                f"target_shape {p.target_shape} must be numbers above 0, or all of them 0, which means none"
            )
        if -1 in spatial:
            return g, p.target_shape
        if any(t > w for t, w in zip(p.target_shape, whole)):
            raise ValueError(f"target_shape {p.target_shape} is larger than {whole}, the lengths without padding")
        if any((w - t) % 2 >= s for t, w, s in zip(p.target_shape, whole, g.stride)):
            raise ValueError(
                f"target_shape {p.target_shape} leaves an odd rest of {whole} to cut, which needs a stride above 1"
            )
        pad = tuple((w - t + 1) // 2 for t, w in zip(p.target_shape, whole))
        return geometry(p.kernel, p.stride, p.dilate, pad, p.num_group), p.target_shape
    adj = p.adj or (0,) * n
    if len(adj) != n or any(not 0 <= a < s for a, s in zip(adj, g.stride)):
        raise ValueError(f"adj {adj} must be {n} numbers, each below stride {g.stride}")
    sizes = tuple(-1 if w == -1 else w - 2 * q + a for w, q, a in zip(whole, g.pad, adj))
    if any(s < 1 and m > 0 for s, m in zip(sizes, spatial)):
        raise ValueError(f"pad {g.pad} leaves nothing of lengths {whole}")
    return g, sizes


@op(
    "Deconvolution",
    inputs="data weight bias[not no_bias]",
    labels="outputs",
    recompute=False,
    bias=bias_axis,
    **DECONVOLUTION_PARAMS,
    grad=linear_grad("Deconvolution", DECONVOLUTION_PARAMS),
)
def deconvolution(k: Call, p: Params, data: Array, weight: Array, bias: Array = None) -> Array:
    """Transposed convolution: the adjoint of `Convolution` in its data.

    Parameters
    ----------
    data : array
        Shape (N, C, \\*spatial), or as `layout` says.
    weight : array
        Shape (C, num_filter / num_group, \\*kernel); with channels last (C, \\*kernel, num_filter / num_group).
    bias : array
        Shape (num_filter,); absent with `no_bias`, the default.
    kernel : tuple of int
        Lengths of the kernel, one per spatial dimension.
    stride, dilate, pad : tuple of int
        As in the convolution that this one is the adjoint of.
    adj : tuple of int
        Added to the lengths of the output, at the end; below the stride.
    target_shape : tuple of int
        Lengths of the output; decides `pad` and `adj`.
    num_filter : int
        Channels of the output.
    num_group : int
        Channels are split into this many groups.
    workspace, cudnn_tune, cudnn_off
        What cuDNN may use and how it chooses, and whether it is left out, where a device has it; elsewhere no effect.
    no_bias : bool
        There is no bias.
    layout : {'NCW', 'NCHW', 'NCDHW', 'NHWC', 'NDHWC'}, optional
        Order of the dimensions; channels first unless told.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``Deconvolution``.
    """
    xp = k.xp
    x, w = channels_first(xp, p, data, weight)
    g, sizes = transposed_geometry(p, x.shape[2:])
    y = conv_data(xp, x, w, g, sizes)
    if bias is not None:
        y += wide(bias).reshape(1, -1, *(1,) * len(sizes))
    return channels_back(xp, p, y)


@deconvolution.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    convolution_geometry(p)
    data, out = _take(p, ins[0], "data"), _take(p, outs[0], "the output")
    filters = _grouped(p, p.num_filter, "num_filter")
    channels = -1
    if data is not None:
        channels = data[1]
        _grouped(p, channels, "number of channels")
        if data[0] == -1 and out is not None:
            data = (out[0], *data[1:])
        out = (data[0], p.num_filter, *transposed_geometry(p, data[2:])[1])
    elif out is not None:
        out = (out[0], p.num_filter, *out[2:])
    weight = _put(p, (channels, filters, *p.kernel))
    return [_put(p, data), weight, (p.num_filter,)][: len(ins)], [_put(p, out)]


deconvolution.dtype(floating())


deconvolution.attach(flops=True)


@deconvolution.cost
def _(p: Params, ins: list[Any], outs: list[Any]) -> Any:
    return size_of(ins[0]) * size_of(ins[1]) / max(ins[1][0], 1) / 10
