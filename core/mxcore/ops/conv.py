"""Convolution and its transpose in one to three dimensions, as matrix products over gathered windows.

Three functions do the work: `conv_forward`, `conv_data` and `conv_weight`, the convolution and its two adjoints.
`Deconvolution` is the same three with the parts exchanged. All work on channels-first arrays and on pieces of the
batch, so that the gathered windows stay small.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from typing import Any

from .._core.op import Op, op
from ..parameters import Bool, Enum, Int, Shape
from .dense import linear_grad, linear_grad_grad, wide
from .floating import floating
from .rules import fits, size_of
from .silent import silent

__all__ = ["Geometry", "conv_forward", "conv_data", "conv_weight", "geometry", "padded", "windows"]

#: Elements of gathered windows at a time: enough for BLAS to be busy, few enough to stay near the processor.
PIECE = 1 << 21


class Geometry:
    """How windows lie on an array: kernel, stride, dilation and padding per spatial dimension, and groups of
    channels.
    """

    __slots__ = ("kernel", "stride", "dilate", "pad", "groups", "extent")

    def __init__(
        self,
        kernel: tuple[int, ...],
        stride: tuple[int, ...],
        dilate: tuple[int, ...],
        pad: tuple[int, ...],
        groups: int,
    ):
        n = len(kernel)
        if not 1 <= n <= 3:
            raise ValueError(f"kernel {kernel} must have 1, 2 or 3 dimensions")
        self.kernel, self.groups = kernel, groups
        self.stride, self.dilate, self.pad = stride or (1,) * n, dilate or (1,) * n, pad or (0,) * n
        for name, v, low in (
            ("kernel", kernel, 1),
            ("stride", self.stride, 1),
            ("dilate", self.dilate, 1),
            ("pad", self.pad, 0),
        ):
            if len(v) != n or min(v) < low:
                raise ValueError(
                    f"{name} {v} must be {n} numbers of at least {low}, as kernel {kernel} has {n} dimensions"
                )
        #: Length that a dilated kernel covers.
        self.extent = tuple(d * (k - 1) + 1 for k, d in zip(kernel, self.dilate))

    def out(self, spatial: tuple[int, ...]) -> tuple[int, ...]:
        """Number of windows per dimension; -1 stays unknown."""
        sizes = []
        for i, (n, e, s, p) in enumerate(zip(spatial, self.extent, self.stride, self.pad)):
            if n != -1 and n + 2 * p < e:
                raise ValueError(
                    f"the kernel covers {e} in spatial dimension {i}, the padded data has only {n + 2 * p}"
                )
            sizes.append(-1 if n == -1 else (n + 2 * p - e) // s + 1)
        return tuple(sizes)


@lru_cache(512)
def geometry(
    kernel: tuple[int, ...], stride: tuple[int, ...], dilate: tuple[int, ...], pad: tuple[int, ...], groups: int = 1
) -> Geometry:
    """The (cached) geometry of an operator's parameters; empty tuples stand for ones and zeros."""
    return Geometry(kernel, stride, dilate, pad, groups)


def windows(g: Geometry, out: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """For each place in the kernel, in row-major order: its index, and what all windows see there."""
    for at in product(*map(range, g.kernel)):
        yield at, tuple(slice(i * d, i * d + s * (n - 1) + 1, s) for i, d, s, n in zip(at, g.dilate, g.stride, out))


def padded(xp: Any, x: Any, before: tuple[int, ...], after: tuple[int, ...], value: Any = 0) -> Any:
    """`x` with its spatial dimensions (all after the second) lengthened."""
    if not any(before) and not any(after):
        return x
    full = xp.full((*x.shape[:2], *(b + n + a for b, n, a in zip(before, x.shape[2:], after))), value, x.dtype)
    full[(slice(None), slice(None), *(slice(b, b + n) for b, n in zip(before, x.shape[2:])))] = x
    return full


def _pieces(n: int, each: int) -> Iterator[slice]:
    """Cut a batch of `n` samples, each of `each` elements of windows."""
    step = max(1, PIECE // max(each, 1))
    return (slice(i, min(i + step, n)) for i in range(0, n, step))


def _gather(xp: Any, x: Any, g: Geometry, out: tuple[int, ...]) -> Any:
    """Windows of a piece (n, C, *S) as a matrix per group: (groups, C/groups * kernel, n * out)."""
    x = padded(xp, x, g.pad, g.pad).swapaxes(0, 1)
    c, n = x.shape[:2]
    cols = xp.empty((c, *g.kernel, n, *out), x.dtype)
    for at, see in windows(g, out):
        cols[(slice(None), *at)] = x[(slice(None), slice(None), *see)]
    return cols.reshape(g.groups, c // g.groups * size_of(g.kernel), n * size_of(out))


def _flat(x: Any, groups: int) -> Any:
    """A piece (n, F, *O) as a matrix per group: (groups, F/groups, n * out)."""
    n, f = x.shape[:2]
    return x.swapaxes(0, 1).reshape(groups, f // groups, n * size_of(x.shape[2:]))


def _matrices(w: Any, groups: int) -> Any:
    return w.reshape(groups, w.shape[0] // groups, size_of(w.shape[1:]))


def conv_forward(xp: Any, x: Any, w: Any, g: Geometry, bias: Any = None) -> Any:
    """Convolve (N, C, *S) with (F, C/groups, *kernel) to (N, F, *O)."""
    n, f = x.shape[0], w.shape[0]
    out = g.out(x.shape[2:])
    y = xp.empty((n, f, *out), x.dtype)
    if not y.size:
        return y
    wm = _matrices(w, g.groups)
    for piece in _pieces(n, size_of(w.shape[1:]) * g.groups * size_of(out)):
        part = xp.matmul(wm, _gather(xp, x[piece], g, out)).reshape(f, -1, *out)
        if bias is not None:
            part += bias.reshape(f, *(1,) * (part.ndim - 1))
        y[piece] = part.swapaxes(0, 1)
    return y


def conv_data(xp: Any, dy: Any, w: Any, g: Geometry, spatial: tuple[int, ...]) -> Any:
    """Adjoint of `conv_forward` in its data: (N, F, *O) to (N, C, *spatial)."""
    n, out = dy.shape[0], tuple(dy.shape[2:])
    c = w.shape[1] * g.groups
    # Where windows do not reach the end of the padded data, the rest stays zero.
    dx = xp.zeros((n, c, *(s + 2 * p for s, p in zip(spatial, g.pad))), dy.dtype)
    if dx.size and dy.size:
        wt = _matrices(w, g.groups).swapaxes(1, 2)
        for piece in _pieces(n, size_of(w.shape[1:]) * g.groups * size_of(out)):
            cols = xp.matmul(wt, _flat(dy[piece], g.groups)).reshape(c, *g.kernel, -1, *out)
            part = dx[piece].swapaxes(0, 1)
            for at, see in windows(g, out):
                part[(slice(None), slice(None), *see)] += cols[(slice(None), *at)]
    if any(g.pad):
        dx = xp.ascontiguousarray(dx[(slice(None), slice(None), *(slice(p, p + s) for p, s in zip(g.pad, spatial)))])
    return dx


def conv_weight(xp: Any, x: Any, dy: Any, g: Geometry) -> Any:
    """Adjoint of `conv_forward` in its weight: (F, C/groups, *kernel) from data (N, C, *S) and (N, F, *O)."""
    n, f, out = dy.shape[0], dy.shape[1], tuple(dy.shape[2:])
    c = x.shape[1] // g.groups
    dw = xp.zeros((g.groups, f // g.groups, c * size_of(g.kernel)), x.dtype)
    if dy.size and x.size:
        for piece in _pieces(n, c * g.groups * size_of(g.kernel) * size_of(out)):
            dw += xp.matmul(_flat(dy[piece], g.groups), _gather(xp, x[piece], g, out).swapaxes(1, 2))
    return dw.reshape(f, c, *g.kernel)


# -- layouts --------------------------------------------------------------------------------------------------------

_LAYOUTS = "NCW NCHW NCDHW NHWC NDHWC"


def _last(p: Any) -> bool:
    """Whether channels come last; raises ValueError if the layout does not fit the kernel."""
    if p.layout is None:
        return False
    if len(p.layout) != len(p.kernel) + 2:
        raise ValueError(f"layout {p.layout} does not fit kernel {p.kernel}")
    return bool(p.layout[-1] == "C")


def _first(xp: Any, p: Any, *arrays: Any) -> Any:
    """Arrays with channels moved to the second place, half precision widened."""
    last = _last(p)
    return [xp.moveaxis(wide(a), -1, 1) if last else wide(a) for a in arrays]


def _back(xp: Any, p: Any, x: Any) -> Any:
    return xp.ascontiguousarray(xp.moveaxis(x, 1, -1)) if _last(p) else x


def _put(p: Any, shape: Any) -> Any:
    """A channels-first shape in the operator's layout, and the other way by `_take`."""
    return shape if shape is None or not _last(p) else (shape[0], *shape[2:], shape[1])


def _take(p: Any, shape: Any, what: str) -> Any:
    if shape is None:
        return None
    if len(shape) != len(p.kernel) + 2:
        raise ValueError(f"{what} has {len(shape)} dimensions; kernel {p.kernel} needs {len(p.kernel) + 2}")
    return (shape[0], shape[-1], *shape[1:-1]) if _last(p) else tuple(shape)


def _grouped(p: Any, n: int, what: str) -> int:
    if n != -1 and n % p.num_group:
        raise ValueError(f"{what} {n} is no multiple of num_group={p.num_group}")
    return -1 if n == -1 else n // p.num_group


_PARAMS = dict(
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
    **_PARAMS,
    "adj": Shape(()),
    "target_shape": Shape((), optional=True),
    "workspace": Int(512, ge=0),
    "no_bias": Bool(True),
}
#: In MXNet's order.
_DECONV = {
    n: _DECONV_PARAMS[n]
    for n in "kernel stride dilate pad adj target_shape num_filter num_group workspace no_bias cudnn_tune cudnn_off layout".split()
}


def _of(p: Any) -> Geometry:
    return geometry(p.kernel, p.stride, p.dilate, p.pad, p.num_group)


def _bias_axis(p: Any, ndim: int) -> int:
    return ndim - 1 if (p.layout or "NCW")[-1] == "C" else 1


@op(
    "Convolution",
    inputs="data weight bias[not no_bias]",
    labels="outputs",
    recompute=False,
    bias=_bias_axis,
    **_PARAMS,
    grad=linear_grad("Convolution", _PARAMS),
)
def convolution(k, p, data, weight, bias=None):
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
        Hints of MXNet's own backends; no effect.
    no_bias : bool
        There is no bias.
    layout : {'NCW', 'NCHW', 'NCDHW', 'NHWC', 'NDHWC'}, optional
        Order of the dimensions; channels first unless told.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``Convolution``.
    """
    xp = k.xp
    x, w = _first(xp, p, data, weight)
    return _back(xp, p, conv_forward(xp, x, w, _of(p), None if bias is None else wide(bias)))


@convolution.shape
def _(p, ins, outs):
    g = _of(p)
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


@convolution.cost
def _(p, ins, outs):
    return size_of(outs[0]) * size_of(ins[1]) / p.num_filter / 10


@silent
def _gradients(k: Any, p: Any, dy: Any, data: Any, weight: Any, transposed: bool) -> list[Any]:
    """Gradients of data, weight and bias as far as they are wanted; for the transposed convolution if so told."""
    xp, wanted = k.xp, k.wanted or (True,) * 3
    dy_, x, w = _first(xp, p, dy, data, weight)
    g = _transposed(p, x.shape[2:])[0] if transposed else _of(p)
    d_data = d_weight = None
    if wanted[0]:
        d_data = _back(xp, p, conv_forward(xp, dy_, w, g) if transposed else conv_data(xp, dy_, w, g, x.shape[2:]))
    if wanted[1]:
        d_weight = _back(xp, p, conv_weight(xp, dy_, x, g) if transposed else conv_weight(xp, x, dy_, g))
    if p.no_bias:
        return [d_data, d_weight]
    return [d_data, d_weight, dy_.sum((0, *range(2, dy_.ndim))) if wanted[2] else None]


@op(
    "_backward_Convolution",
    inputs="dy data weight",
    outputs="data weight bias[not no_bias]",
    **_PARAMS,
    grad=linear_grad_grad("Convolution", _PARAMS),
)
def backward_convolution(k, p, dy_, data, weight):
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
    def rule(p: Any, ins: list[Any]) -> list[Any]:
        dy, data, weight = ins
        wanted, outs = forward.shape_rule(p, [data, weight], [None])  # type: ignore[misc]
        fits("data weight dy", (data, weight, dy), (*wanted[:2], outs[0]))
        return [data, weight, (p.num_filter,)][: 2 if p.no_bias else 3]

    return rule


def _gradient_cost(p: Any, ins: list[Any], outs: list[Any]) -> float:
    return size_of(ins[0]) * size_of(ins[2]) / p.num_filter / 5


backward_convolution.shape(_gradient_shapes(convolution))
backward_convolution.cost(_gradient_cost)


def _transposed(p: Any, spatial: tuple[int, ...]) -> tuple[Geometry, tuple[int, ...]]:
    """Geometry and lengths of the output of a transposed convolution over data of these lengths."""
    g = _of(p)
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
    bias=_bias_axis,
    **_DECONV,
    grad=linear_grad("Deconvolution", _DECONV),
)
def deconvolution(k, p, data, weight, bias=None):
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
        Hints of MXNet's own backends; no effect.
    no_bias : bool
        There is no bias.
    layout : {'NCW', 'NCHW', 'NCDHW', 'NHWC', 'NDHWC'}, optional
        Order of the dimensions; channels first unless told.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``Deconvolution``.
    """
    xp = k.xp
    x, w = _first(xp, p, data, weight)
    g, sizes = _transposed(p, x.shape[2:])
    y = conv_data(xp, x, w, g, sizes)
    if bias is not None:
        y += wide(bias).reshape(1, -1, *(1,) * len(sizes))
    return _back(xp, p, y)


@deconvolution.shape
def _(p, ins, outs):
    _of(p)
    data, out = _take(p, ins[0], "data"), _take(p, outs[0], "the output")
    filters = _grouped(p, p.num_filter, "num_filter")
    channels = -1
    if data is not None:
        channels = data[1]
        _grouped(p, channels, "number of channels")
        if data[0] == -1 and out is not None:
            data = (out[0], *data[1:])
        out = (data[0], p.num_filter, *_transposed(p, data[2:])[1])
    elif out is not None:
        out = (out[0], p.num_filter, *out[2:])
    weight = _put(p, (channels, filters, *p.kernel))
    return [_put(p, data), weight, (p.num_filter,)][: len(ins)], [_put(p, out)]


deconvolution.dtype(floating())


@deconvolution.cost
def _(p, ins, outs):
    return size_of(ins[0]) * size_of(ins[1]) / max(ins[1][0], 1) / 10


@op(
    "_backward_Deconvolution",
    inputs="dy data weight",
    outputs="data weight bias[not no_bias]",
    **_DECONV,
    grad=linear_grad_grad("Deconvolution", _DECONV),
)
def backward_deconvolution(k, p, dy_, data, weight):
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


@backward_deconvolution.cost
def _(p, ins, outs):
    return size_of(ins[1]) * size_of(ins[2]) / max(ins[2][0], 1) / 5
