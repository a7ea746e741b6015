"""Which operators the library computes, and how their arrays become those of plans."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from mxcore.layouts import axes, channels_first
from mxcore.plugin import Call, KernelSet, Params, Spec
from mxcore_cpu.kernels import convolution as compiled

from . import convolution as conv
from .convolution import Geometry
from .library import Refused, library
from .plan import FLOAT, Kept, Plan, plan_for
from .rules import pays

__all__ = ["kernels"]

Shape = tuple[int, ...]
kernels = KernelSet("cpu")
_log = logging.getLogger("mxcore")
_told: set[str] = set()
#: Above that of kernels that are compiled here.
PRIORITY = 10
#: Arrays with more elements are left to others: offsets in the library's code may be of 32 bits.
_MOST = (1 << 31) - 1


def _takes(specs: Sequence[Spec]) -> bool:
    """Whether arrays are such as the library gets here."""
    return all(s.stype == "default" and s.dtype.name in FLOAT and 0 < s.size <= _MOST for s in specs)


def _pays(piece: str, g: Geometry) -> bool:
    lib = library()
    return lib is not None and prod(g.src) <= _MOST and prod(g.dst) <= _MOST and pays(lib.isa, piece, g)


def _dense(a: Any) -> Any:
    flags = a.flags
    return a if flags.c_contiguous and flags.aligned else np.array(a, order="C")


def _run(
    name: str,
    plan: Plan | None,
    ins: Sequence[Any],
    outs: Sequence[Any],
    other: Callable[[], None],
    kept: Kept | None = None,
) -> None:
    """Run a plan, or where the library cannot, the other kernel."""
    try:
        if plan is None:
            raise Refused("it has no code for some shapes")
        dense = [o if o.flags.c_contiguous and o.flags.aligned else np.empty(o.shape, o.dtype) for o in outs]
        plan.run(*[_dense(a) for a in ins], *dense, kept=kept)
        for o, d in zip(outs, dense):
            if o is not d:
                o[...] = d
    except Refused as e:
        if name not in _told:
            _told.add(name)
            _log.warning("operator %s runs without oneDNN: %s", name, e)
        other()


def _kept(k: Call, plan: Plan | None, i: int) -> Kept | None:
    """What the plan has kept of the i-th input; nothing before it has stayed as it is from one call to the next."""
    if k.keep is None or plan is None or not plan.ordered.get(i):
        return None
    values, stamp = k.keep.values, k.keep.stamp(i)
    if stamp is None or values.get("stamp") != stamp:
        values.clear()
        values["stamp"] = stamp
        return None
    found: Kept | None = values.get("kept")
    if found is None or found.plan is not plan:
        try:
            found = values["kept"] = Kept(plan, i)
        except Refused:
            return None
    return found


def _keeping(kernel: Callable[..., None]) -> Callable[..., None]:
    kernel.keeps = True  # type: ignore[attr-defined]
    return kernel


def _steps(g: Geometry) -> dict[str, Any]:
    return dict(stride=g.stride, pad=g.pad, dilate=g.dilate, groups=g.groups)


# -- convolutions ---------------------------------------------------------------------------------------------------
def _geometry(p: Params, data: Shape, weight: Shape) -> Geometry:
    n = len(data) - 2
    stride, pad, dilate = (axes(v, n, d) for v, d in ((p.stride, 1), (p.pad, 0), (p.dilate, 1)))
    size = [(m + 2 * b - d * (w - 1) - 1) // s + 1 for m, w, s, b, d in zip(data[2:], weight[2:], stride, pad, dilate)]
    return Geometry(data, weight, (data[0], weight[0], *size), tuple(stride), tuple(pad), tuple(dilate), p.num_group)


def _forward_plan(g: Geometry, biased: bool) -> Plan | None:
    return plan_for(("convolution", g, biased), lambda lib: conv.forward(lib, g, biased))


def _backward_plan(g: Geometry, wanted: tuple[bool, bool, bool]) -> Plan | None:
    return plan_for(("gradient of convolution", g, wanted), lambda lib: conv.backward(lib, g, wanted))


def _convolves(p: Params, data: Spec, weight: Spec, *bias: Spec) -> bool:
    if not (channels_first(p) and _takes((data, weight, *bias))):
        return False
    g = _geometry(p, data.shape, weight.shape)
    return _pays("forward", g) and _forward_plan(g, bool(bias)) is not None


def _convolution(name: str, k: Call, p: Params, outs: Sequence[Any], data: Any, weight: Any, bias: Any = None) -> None:
    g = _geometry(p, data.shape, weight.shape)
    plan = _forward_plan(g, bias is not None)
    ins = [data, weight] if bias is None else [data, weight, bias]

    def other() -> None:
        compiled.convolution(data, weight, bias, outs[0], **_steps(g))

    _run(name, plan, ins, outs[:1], other, _kept(k, plan, 1))


for _name in ("Convolution", "Convolution_v1"):
    kernels.kernel(_name, when=_convolves, priority=PRIORITY, out=True)(_keeping(partial(_convolution, _name)))


def _differentiates(p: Params, dy: Spec, data: Spec, weight: Spec) -> bool:
    if not (channels_first(p) and _takes((dy, data, weight))):
        return False
    g = _geometry(p, data.shape, weight.shape)
    return _pays("data", g) or _pays("weight", g)


@kernels.kernel("_backward_Convolution", when=_differentiates, priority=PRIORITY, out=True)
def _backward_convolution(k: Call, p: Params, outs: Sequence[Any], dy: Any, data: Any, weight: Any) -> None:
    g = _geometry(p, data.shape, weight.shape)
    places = [*outs, None][:3]
    ours = [places[0] is not None and _pays("data", g), places[1] is not None and _pays("weight", g)]
    ours.append(ours[1] and places[2] is not None)

    def other(which: bool = True) -> None:
        d_data, d_weight, d_bias = (o if mine is which else None for o, mine in zip(places, ours))
        compiled.convolution_backward(dy, data, weight, d_data, d_weight, d_bias, **_steps(g))

    if any(ours):
        plan, found = _backward_plan(g, tuple(ours)), [o for o, mine in zip(places, ours) if mine]
        _run("_backward_Convolution", plan, [dy, data, weight], found, other)
    if not all(ours):
        other(False)


# -- transposed ones ------------------------------------------------------------------------------------------------
def _around(p: Params, data: Shape, weight: Shape) -> Geometry:
    """The convolution of which this is the gradient."""
    n = len(data) - 2
    stride, pad, dilate, adj = (axes(v, n, d) for v, d in ((p.stride, 1), (p.pad, 0), (p.dilate, 1), (p.adj, 0)))
    size = [
        (m - 1) * s + d * (w - 1) + 1 - 2 * b + a
        for m, w, s, b, d, a in zip(data[2:], weight[2:], stride, pad, dilate, adj)
    ]
    src = data[0], weight[1] * p.num_group, *size
    return Geometry(src, weight, data, tuple(stride), tuple(pad), tuple(dilate), p.num_group)


def _transposed_plan(g: Geometry) -> Plan | None:
    return plan_for(("transposed", g), lambda lib: conv.transposed(lib, g))


def _transposed_backward_plan(g: Geometry, wanted: tuple[bool, bool]) -> Plan | None:
    return plan_for(("gradient of transposed", g, wanted), lambda lib: conv.transposed_backward(lib, g, wanted))


# The target shape decides the padding.
def _transposes(p: Params, data: Spec, weight: Spec, *bias: Spec) -> bool:
    if p.target_shape or not (channels_first(p) and _takes((data, weight, *bias))):
        return False
    g = _around(p, data.shape, weight.shape)
    return _pays("data", g) and _transposed_plan(g) is not None


@kernels.kernel("Deconvolution", when=_transposes, priority=PRIORITY, out=True)
@_keeping
def _deconvolution(k: Call, p: Params, outs: Sequence[Any], data: Any, weight: Any, bias: Any = None) -> None:
    g = _around(p, data.shape, weight.shape)
    plan, shift = _transposed_plan(g), bias

    def other() -> None:
        nonlocal shift
        shift = None
        compiled.deconvolution(data, weight, bias, outs[0], **_steps(g))

    _run("Deconvolution", plan, [data, weight], outs[:1], other, _kept(k, plan, 1))
    if shift is not None:
        outs[0][...] += shift.reshape(-1, *[1] * (data.ndim - 2))


def _differentiates_transposed(p: Params, dy: Spec, data: Spec, weight: Spec) -> bool:
    if p.target_shape or not (channels_first(p) and _takes((dy, data, weight))):
        return False
    g = _around(p, data.shape, weight.shape)
    return _pays("forward", g) or _pays("weight", g)


@kernels.kernel("_backward_Deconvolution", when=_differentiates_transposed, priority=PRIORITY, out=True)
def _backward_deconvolution(k: Call, p: Params, outs: Sequence[Any], dy: Any, data: Any, weight: Any) -> None:
    g = _around(p, data.shape, weight.shape)
    places = [*outs, None][:3]
    ours = [places[0] is not None and _pays("forward", g), places[1] is not None and _pays("weight", g), False]

    def other(which: bool = True) -> None:
        d_data, d_weight, d_bias = (o if mine is which else None for o, mine in zip(places, ours))
        compiled.deconvolution_backward(dy, data, weight, d_data, d_weight, d_bias, **_steps(g))

    if ours[0] or ours[1]:
        plan, found = _transposed_backward_plan(g, (ours[0], ours[1])), [o for o, mine in zip(places, ours) if mine]
        _run("_backward_Deconvolution", plan, [dy, data, weight], found, other)
    other(False)
