"""Steps that need no kernel: a compiled chain, or the array function that an elementwise operator is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeGuard

import numpy as np

from .._core.call import BoundCall

__all__ = ["bind", "takes_out"]

#: What NumPy wants `out` by name of.
_BY_NAME = {"maximum", "minimum"}


def bind(bound: BoundCall, k: Any, p: Any, ins: Sequence[Any], outs: Sequence[Any]) -> Callable[[], Any] | None:
    """A step as a call without arguments that fills `outs` from `ins`; None where its kernel is the shortest way."""
    chain = getattr(bound.op, "fused", None)
    if chain is not None:
        compiled = k.device.compile_fused(chain)
        if compiled is not None:
            call: Callable[[], Any] = compiled.bind(outs, ins, [getattr(p, n) for n in chain.scalars])
            return call
    return None if bound.out else _function(bound, k, p, ins, outs[0])


def takes_out(fn: Any) -> TypeGuard[np.ufunc]:
    """Whether an array function is a universal one, which can write into a given array."""
    return hasattr(fn, "nin") and hasattr(fn, "nout")


def _function(bound: BoundCall, k: Any, p: Any, ins: Sequence[Any], out: Any) -> Callable[[], Any] | None:
    """The universal function that an elementwise operator is, with its arguments."""
    op = bound.op
    if op.direct is None or bound.fn is not op.body:
        return None
    name, _, order = op.direct.partition(":")
    fn, dtype = getattr(k.xp, name, None), bound.specs[0].dtype
    if (
        not takes_out(fn)
        or dtype.kind == "b"
        or order == "float"
        and dtype.kind != "f"
        or any(v.dtype != dtype for v in ins)
    ):
        return None
    args = list(ins)
    if "scalar" in op.params:
        if dtype.kind != "f":
            return None
        args.insert(0 if order == "swap" else 1, k.xp.asarray(p.scalar, dtype=dtype))
    if len(args) != fn.nin:
        return None
    one = np.ones((1,), dtype)
    with np.errstate(all="ignore"):
        if getattr(np, name)(*[one] * len(args)).dtype != dtype:
            return None  # comparisons give bool
    # By position it costs half as much.
    return partial(fn, *args, out=out) if name in _BY_NAME else partial(fn, *args, out)
