"""Convolutions, transposed ones, and their gradients: each part of the work by whoever is faster at it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from math import prod
from typing import Any

from mxcore.layouts import axes, channels_first
from mxcore.plugin import Call, Params, Spec

from . import convolution as conv
from .calls import MOST, PRIORITY, alike, keeping, kept, kernels, otherwise, run
from .convolution import Geometry, backward_plan, forward_plan
from .library import library
from .plan import Plan
from .plans import plan_for
from .rules import pays

__all__: list[str] = []

Shape = tuple[int, ...]


def _pays(piece: str, g: Geometry) -> bool:
    lib = library()
    return lib is not None and prod(g.src) <= MOST and prod(g.dst) <= MOST and pays(lib.isa, piece, g)


def _in_parts(
    name: str,
    k: Call,
    p: Params,
    outs: Sequence[Any],
    ins: Sequence[Any],
    ours: Sequence[bool],
    plan: Callable[[], Plan | None],
) -> None:
    """Those gradients that are `ours` (of data, weight, bias) by a plan, the others by the next kernel."""
    places = _places(outs)

    def others(which: bool) -> Callable[[], None]:
        left = [o if mine is which else None for o, mine in zip(places, ours)][: len(outs)]
        return otherwise(name, k, p, left, *ins)

    if any(ours):
        run(name, plan(), ins, [o for o, mine in zip(places, ours) if mine], others(True))
    if any(o is not None and not mine for o, mine in zip(places, ours)):
        others(False)()


def _places(outs: Sequence[Any]) -> list[Any]:
    """Where the gradients of data, weight and bias go; None: nowhere."""
    return [*outs, None][:3]


# -- convolutions ---------------------------------------------------------------------------------------------------
@lru_cache(512)
def _geometry(p: Params, data: Shape, weight: Shape, dtype: str) -> Geometry:
    return Geometry.of(p, data, weight, p.num_group, dtype)


def _convolves(p: Params, data: Spec, weight: Spec, *bias: Spec) -> bool:
    dtype = alike(data, weight, *bias)
    if not (channels_first(p) and dtype):
        return False
    g = _geometry(p, data.shape, weight.shape, dtype)
    return _pays("forward", g) and forward_plan(g, bool(bias)) is not None


def _convolution(name: str, k: Call, p: Params, outs: Sequence[Any], data: Any, weight: Any, bias: Any = None) -> None:
    g = _geometry(p, data.shape, weight.shape, data.dtype.name)
    plan = forward_plan(g, bias is not None)
    ins = [data, weight] if bias is None else [data, weight, bias]
    run(name, plan, ins, outs[:1], otherwise(name, k, p, outs, *ins), kept(k, plan))


for _name in ("Convolution", "Convolution_v1"):
    kernels.kernel(_name, when=_convolves, priority=PRIORITY, out=True)(keeping(partial(_convolution, _name)))


def _differentiates(p: Params, dy: Spec, data: Spec, weight: Spec) -> bool:
    dtype = alike(dy, data, weight)
    if not (channels_first(p) and dtype):
        return False
    g = _geometry(p, data.shape, weight.shape, dtype)
    return _pays("data", g) or _pays("weight", g)


@kernels.kernel("_backward_Convolution", when=_differentiates, priority=PRIORITY, out=True)
def _backward_convolution(k: Call, p: Params, outs: Sequence[Any], dy: Any, data: Any, weight: Any) -> None:
    g = _geometry(p, data.shape, weight.shape, data.dtype.name)
    a, b, c = (o is not None and _pays(piece, g) for o, piece in zip(_places(outs), ("data", "weight", "weight")))
    ours = a, b, b and c  # the library sums the bias's beside the weight's alone
    _in_parts("_backward_Convolution", k, p, outs, [dy, data, weight], ours, lambda: backward_plan(g, ours))


# -- transposed ones ------------------------------------------------------------------------------------------------
@lru_cache(512)
def _around(p: Params, data: Shape, weight: Shape, dtype: str) -> Geometry:
    """The convolution of which this is the gradient."""
    n = len(data) - 2
    stride, pad, dilate, adj = (axes(v, n, d) for v, d in ((p.stride, 1), (p.pad, 0), (p.dilate, 1), (p.adj, 0)))
    size = [
        (m - 1) * s + d * (w - 1) + 1 - 2 * b + a
        for m, w, s, b, d, a in zip(data[2:], weight[2:], stride, pad, dilate, adj)
    ]
    src = data[0], weight[1] * p.num_group, *size
    return Geometry(src, weight, data, tuple(stride), tuple(pad), tuple(dilate), p.num_group, dtype=dtype)


def _transposed_plan(g: Geometry) -> Plan | None:
    return plan_for(("transposed", g), lambda lib: conv.transposed(lib, g), g.work)


def _transposed_backward_plan(g: Geometry, wanted: tuple[bool, bool]) -> Plan | None:
    key = "gradient of transposed", g, wanted
    return plan_for(key, lambda lib: conv.transposed_backward(lib, g, wanted), g.work)


# The target shape decides the padding.
def _transposes(p: Params, data: Spec, weight: Spec, *bias: Spec) -> bool:
    dtype = alike(data, weight, *bias)
    if p.target_shape or not (channels_first(p) and dtype):
        return False
    g = _around(p, data.shape, weight.shape, dtype)
    return _pays("data", g) and _transposed_plan(g) is not None


@kernels.kernel("Deconvolution", when=_transposes, priority=PRIORITY, out=True)
@keeping
def _deconvolution(k: Call, p: Params, outs: Sequence[Any], data: Any, weight: Any, bias: Any = None) -> None:
    g = _around(p, data.shape, weight.shape, data.dtype.name)
    plan = _transposed_plan(g)
    other = otherwise("Deconvolution", k, p, outs, data, weight, *([] if bias is None else [bias]))
    if run("Deconvolution", plan, [data, weight], outs[:1], other, kept(k, plan)) and bias is not None:
        outs[0][...] += bias.reshape(-1, *[1] * (data.ndim - 2))


def _differentiates_transposed(p: Params, dy: Spec, data: Spec, weight: Spec) -> bool:
    dtype = alike(dy, data, weight)
    if p.target_shape or not (channels_first(p) and dtype):
        return False
    g = _around(p, data.shape, weight.shape, dtype)
    return _pays("forward", g) or _pays("weight", g)


@kernels.kernel("_backward_Deconvolution", when=_differentiates_transposed, priority=PRIORITY, out=True)
def _backward_deconvolution(k: Call, p: Params, outs: Sequence[Any], dy: Any, data: Any, weight: Any) -> None:
    g = _around(p, data.shape, weight.shape, data.dtype.name)
    a, b = (o is not None and _pays(piece, g) for o, piece in zip(_places(outs), ("forward", "weight")))
    ins = [dy, data, weight]
    _in_parts("_backward_Deconvolution", k, p, outs, ins, (a, b, False), lambda: _transposed_backward_plan(g, (a, b)))
