"""Local response normalization, forward; the library's gradient of it is slower than ours."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from mxcore.plugin import Call, Params, Spec

from .calls import PRIORITY, kernels, otherwise, run, takes
from .library import Library
from .plan import DST, INFERENCE, SRC, Desc, Plan, plan_for

__all__ = ["forward"]

_ACROSS = 0xAFF


def forward(lib: Library, shape: tuple[int, ...], size: int, alpha: float, beta: float, base: float) -> Plan:
    """Of an array (n, c, h, w), to one like it."""
    desc = Desc.dense(lib, shape)
    plan = Plan(lib, [desc, Desc.dense(lib, shape)])
    made = lib.new(
        "lrn_forward_primitive_desc_create",
        *(lib.engine, INFERENCE, _ACROSS, desc.handle, desc.handle),
        *(size, alpha, beta, base, lib.attr),
    )
    plan.add(made, {SRC: 0, DST: 1})
    return plan.done()


def _plan(p: Params, shape: tuple[int, ...]) -> Plan | None:
    args = shape, p.nsize, p.alpha, p.beta, p.knorm
    return plan_for(("LRN", *args), lambda lib: forward(lib, *args), prod(shape) * (p.nsize + 10))


def _responds(p: Params, data: Spec) -> bool:
    return data.ndim == 4 and takes([data]) and _plan(p, data.shape) is not None


@kernels.kernel("LRN", when=_responds, priority=PRIORITY, out=True)
def _respond(k: Call, p: Params, outs: Sequence[Any], data: Any) -> None:
    run("LRN", _plan(p, data.shape), [data], outs[:1], otherwise("LRN", k, p, outs, data))
