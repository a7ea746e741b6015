"""Which operators the library computes, and how their arrays become those of plans."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from mxcore.layouts import axes, channels_first
from mxcore.plugin import Call, KernelSet, Params, Spec, find_op

from . import convolution as conv
from .convolution import Geometry
from .library import Refused
from .plan import FLOAT, Plan, plan_for

__all__ = ["kernels"]

kernels = KernelSet("cpu")
_log = logging.getLogger("mxcore")
_told: set[str] = set()
#: Above that of kernels that are compiled here.
PRIORITY = 10


def _takes(plan: Callable[..., Plan | None]) -> Callable[..., bool]:
    """Whether the library computes inputs like these: it is asked, by making the plan."""

    def when(p: Params, *specs: Spec) -> bool:
        if any(s.stype != "default" or s.dtype.name not in FLOAT or not s.size for s in specs):
            return False
        return channels_first(p) and plan(p, *[s.shape for s in specs]) is not None

    return when


def _run(name: str, k: Call, p: Params, plan: Plan | None, ins: Sequence[Any], outs: Sequence[Any]) -> None:
    """Run a plan into those of the outputs that are not None; where the library fails, the reference body computes."""
    try:
        if plan is None:
            raise Refused("no primitive for this number of threads")
        found = [o for o in outs if o is not None]
        dense = [o if o.flags.carray else np.empty(o.shape, o.dtype) for o in found]
        plan.run(*[a if a.flags.carray else np.array(a, order="C") for a in ins], *dense)
        for o, d in zip(found, dense):
            if o is not d:
                o[...] = d
    except Refused as e:
        if name not in _told:
            _told.add(name)
            _log.warning("operator %s runs without oneDNN: %s", name, e)
        values = find_op(name).body(k, p, *ins)  # type: ignore[misc]
        for o, value in zip(outs, values if isinstance(values, (list, tuple)) else [values]):
            if o is not None:
                o[...] = value


# -- convolutions ---------------------------------------------------------------------------------------------------
def _geometry(p: Params, data: tuple[int, ...], weight: tuple[int, ...]) -> Geometry:
    n = len(data) - 2
    stride, pad, dilate = (axes(v, n, d) for v, d in ((p.stride, 1), (p.pad, 0), (p.dilate, 1)))
    size = [(m + 2 * b - d * (w - 1) - 1) // s + 1 for m, w, s, b, d in zip(data[2:], weight[2:], stride, pad, dilate)]
    return Geometry(data, weight, (data[0], weight[0], *size), tuple(stride), tuple(pad), tuple(dilate), p.num_group)


def _forward(p: Params, data: Any, weight: Any, *bias: Any) -> Plan | None:
    g = _geometry(p, data, weight)
    return plan_for(("convolution", g, bool(bias)), lambda lib: conv.forward(lib, g, bool(bias)))


def _backward(p: Params, dy: Any, data: Any, weight: Any, wanted: Any = None) -> Plan | None:
    g = _geometry(p, data, weight)
    wanted = (True, True, not p.no_bias) if wanted is None else wanted
    return plan_for(("gradient of convolution", g, wanted), lambda lib: conv.backward(lib, g, wanted))


def _convolution(name: str, k: Call, p: Params, outs: Sequence[Any], data: Any, weight: Any, bias: Any = None) -> None:
    ins = [data, weight] if bias is None else [data, weight, bias]
    _run(name, k, p, _forward(p, *[a.shape for a in ins]), ins, outs[:1])


for _name in ("Convolution", "Convolution_v1"):
    kernels.kernel(_name, when=_takes(_forward), priority=PRIORITY, out=True)(partial(_convolution, _name))


@kernels.kernel("_backward_Convolution", when=_takes(_backward), priority=PRIORITY, out=True)
def _backward_convolution(k: Call, p: Params, outs: Sequence[Any], dy: Any, data: Any, weight: Any) -> None:
    outs = [*outs, None][:3]
    wanted = tuple(o is not None for o in outs)
    if not any(wanted):
        return
    if wanted[2] and not wanted[1]:  # the library sums it beside the weight's alone
        outs[2][...] = dy.sum((0, *range(2, dy.ndim)))
        wanted, outs = (wanted[0], False, False), [outs[0], None, None]
        if not wanted[0]:
            return
    plan = _backward(p, dy.shape, data.shape, weight.shape, wanted)
    _run("_backward_Convolution", k, p, plan, [dy, data, weight], outs)


# -- transposed ones ------------------------------------------------------------------------------------------------
def _around(p: Params, data: tuple[int, ...], weight: tuple[int, ...]) -> Geometry:
    """The convolution of which this is the gradient."""
    n = len(data) - 2
    stride, pad, dilate, adj = (axes(v, n, d) for v, d in ((p.stride, 1), (p.pad, 0), (p.dilate, 1), (p.adj, 0)))
    size = [
        (m - 1) * s + d * (w - 1) + 1 - 2 * b + a
        for m, w, s, b, d, a in zip(data[2:], weight[2:], stride, pad, dilate, adj)
    ]
    src = data[0], weight[1] * p.num_group, *size
    return Geometry(src, weight, data, tuple(stride), tuple(pad), tuple(dilate), p.num_group)


def _transposed(p: Params, data: Any, weight: Any, *bias: Any) -> Plan | None:
    if p.target_shape:
        return None  # it decides the padding
    g = _around(p, data, weight)
    return plan_for(("transposed", g), lambda lib: conv.transposed(lib, g))


def _transposed_backward(p: Params, dy: Any, data: Any, weight: Any, wanted: Any = (True, True)) -> Plan | None:
    if p.target_shape:
        return None
    g = _around(p, data, weight)
    return plan_for(("gradient of transposed", g, wanted), lambda lib: conv.transposed_backward(lib, g, wanted))


@kernels.kernel("Deconvolution", when=_takes(_transposed), priority=PRIORITY, out=True)
def _deconvolution(k: Call, p: Params, outs: Sequence[Any], data: Any, weight: Any, bias: Any = None) -> None:
    _run("Deconvolution", k, p, _transposed(p, data.shape, weight.shape), [data, weight], outs[:1])
    if bias is not None:
        outs[0][...] += bias.reshape(-1, *[1] * (data.ndim - 2))


@kernels.kernel("_backward_Deconvolution", when=_takes(_transposed_backward), priority=PRIORITY, out=True)
def _backward_deconvolution(k: Call, p: Params, outs: Sequence[Any], dy: Any, data: Any, weight: Any) -> None:
    outs = [*outs, None][:3]
    if outs[2] is not None:
        dy.sum((0, *range(2, dy.ndim)), out=outs[2])
    wanted = outs[0] is not None, outs[1] is not None
    if any(wanted):
        plan = _transposed_backward(p, dy.shape, data.shape, weight.shape, wanted)
        _run("_backward_Deconvolution", k, p, plan, [dy, data, weight], outs[:2])
