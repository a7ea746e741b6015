"""Local response normalization, forward; the library's gradient of it is slower than ours."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from mxcore.plugin import Call, Params, Spec

from .calls import PRIORITY, alike, kernels, otherwise, run
from .descs import DST, INFERENCE, SRC, Desc
from .library import Library, library
from .plan import Plan
from .plans import plan_for
from .rules import narrows

__all__ = ["forward"]

_ACROSS = 0xAFF


def forward(
    lib: Library, dtype: str, shape: tuple[int, ...], size: int, alpha: float, beta: float, base: float
) -> Plan:
    """Of an array (n, c, h, w), to one like it; for bfloat16 as it lies the library has no code, so it is widened."""
    desc = Desc.dense(lib, shape)
    plan = Plan(lib, [Desc.dense(lib, shape, dtype), Desc.dense(lib, shape, dtype)])
    made = lib.new(
        "lrn_forward_primitive_desc_create",
        *(lib.engine, INFERENCE, _ACROSS, desc.handle, desc.handle),
        *(size, alpha, beta, base, lib.attr),
    )
    plan.add(made, {SRC: 0, DST: 1})
    return plan.done()


def _plan(p: Params, dtype: str, shape: tuple[int, ...]) -> Plan | None:
    args = dtype, shape, p.nsize, p.alpha, p.beta, p.knorm
    return plan_for(("LRN", *args), lambda lib: forward(lib, *args), prod(shape) * (p.nsize + 10))


def _responds(p: Params, data: Spec) -> bool:
    dtype, lib = alike(data), library()
    if data.ndim != 4 or not dtype or lib is None or dtype == "bfloat16" and not narrows(lib.isa, 4 * data.size):
        return False
    return _plan(p, dtype, data.shape) is not None


@kernels.kernel("LRN", when=_responds, priority=PRIORITY, out=True)
def _respond(k: Call, p: Params, outs: Sequence[Any], data: Any) -> None:
    run("LRN", _plan(p, data.dtype.name, data.shape), [data], outs[:1], otherwise("LRN", k, p, outs, data))
