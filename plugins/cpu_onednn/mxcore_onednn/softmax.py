"""The gradient of softmax in bfloat16.

Forward the library would round exponentials and quotients, and its gradient of log_softmax makes infinity of what is no
number, so these are left to kernels of float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from mxcore.plugin import Call, Params, Spec

from .calls import PRIORITY, alike, kernels, otherwise, run
from .descs import DIFF_DST, DIFF_SRC, DST, TRAINING, Desc
from .library import Library, library
from .plan import Plan
from .plans import plan_for
from .rules import narrows

__all__: list[str] = []

#: dnnl_softmax_accurate
_SOFTMAX = 0x30000


def _gradient(lib: Library, shape: tuple[int, int]) -> Plan:
    """Of the gradient that comes in and of the rows that were made, to a gradient."""
    descs = [Desc.dense(lib, shape, "bfloat16") for _ in range(3)]
    dy, out, dx = (d.handle for d in descs)
    plan = Plan(lib, descs)
    forward = lib.new("softmax_forward_primitive_desc_create", lib.engine, TRAINING, _SOFTMAX, out, out, 1, lib.attr)
    with lib.hinting(forward) as hint:
        made = lib.new("softmax_backward_primitive_desc_create", lib.engine, _SOFTMAX, dx, dy, out, 1, hint, lib.attr)
    plan.add(made, {DIFF_DST: 0, DST: 1, DIFF_SRC: 2})
    return plan.done()


def _plan(shape: tuple[int, ...]) -> Plan | None:
    rows = prod(shape[:-1]), shape[-1]
    return plan_for(("gradient of softmax", rows), lambda lib: _gradient(lib, rows), 8 * prod(shape))


def _differentiates(p: Params, dy: Spec, out: Spec) -> bool:
    lib = library()
    fits = alike(dy, out) == "bfloat16" and p.axis in (-1, out.ndim - 1) and p.temperature in (None, 1)
    return fits and lib is not None and narrows(lib.isa, out.size) and _plan(out.shape) is not None


@kernels.kernel("_backward_softmax", when=_differentiates, priority=PRIORITY, out=True)
def _differentiate(k: Call, p: Params, outs: Sequence[Any], dy: Any, out: Any) -> None:
    other = otherwise("_backward_softmax", k, p, outs, dy, out)
    run("_backward_softmax", _plan(out.shape), [dy, out], outs[:1], other)
