"""Steps that need no kernel: a compiled chain, the array function that an elementwise operator is, or what a pass made.

The operator of a node that a plugin's pass made may have an attribute `bind`: ``(k, p, ins, outs) -> call``, a call
without arguments that fills the arrays in the list `outs` from those in `ins`, which it looks up whenever it runs; and
attributes `owner`, the plugin, `nbytes`, the memory that it has for itself, `scratch`, the memory of a call that it
shares with others of its kind, `consists`, the operators that it computes in words, and `pieces`, ``(call) -> list of
Piece``, which runs the call of a step and tells what took how long (:mod:`mxcore.looking`). A kernel may have the like
of `bind`, by the name `binds`, which may give None: then it is called as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import is_not
from typing import Any, TypeGuard

import numpy as np

from .._core.call import BoundCall, kept

__all__ = ["bind", "looks_up", "takes_out"]

#: What NumPy wants `out` by name of.
_BY_NAME = {"maximum", "minimum"}


def bind(
    bound: BoundCall, k: Any, p: Any, ins: Sequence[Any], outs: Sequence[Any], again: bool = False
) -> Callable[[], Any] | None:
    """A step as a call without arguments that fills `outs` from `ins`; None where its kernel is the shortest way.

    One that is bound `again` may look its arrays up in these lists whenever it runs: see `looks_up`.
    """
    own, binds = getattr(bound.op, "bind", None), getattr(bound.fn, "binds", None)
    if own is not None or binds is not None:
        maker = binds if own is None else own
        made = maker(k, p, ins, outs) if callable(maker) else maker
        if callable(made):
            return _Own(made, outs)
        if own is not None or made is not None:
            raise TypeError(f"its `bind{'s' * (own is None)}`, (k, p, ins, outs) -> call, made no call but {made!r}")
    chain = getattr(bound.op, "fused", None)
    if chain is not None:
        compiled = k.device.compile_fused(chain)
        if compiled is not None:
            call: Callable[[], Any] = compiled.bind(outs, ins, [getattr(p, n) for n in chain.scalars])
            return call
    return None if bound.out else _function(bound, k, p, ins, outs, again)


class _Own:
    """What the operator of a plugin's pass, or a kernel, made of a step."""

    __slots__ = ("call", "outs")

    def __init__(self, call: Callable[[], Any], outs: Sequence[Any]) -> None:
        self.call = call
        #: An array that it replaces there would be lost.
        self.outs: list[Any] | None = outs if isinstance(outs, list) else None

    def __call__(self) -> None:
        outs = self.outs
        if outs is None:
            self.call()
            return
        before = [*outs]
        try:
            self.call()
        except BaseException:
            outs[:] = before
            raise
        if len(outs) != len(before) or any(map(is_not, outs, before)):
            found, outs[:] = [*outs], before
            kept(found, before, None)


class _LookedUp:
    """A universal function over what stands in lists now."""

    __slots__ = ("fn", "ins", "outs", "scalar", "first")

    def __init__(self, fn: np.ufunc, ins: Sequence[Any], outs: Sequence[Any], scalar: Any, first: bool) -> None:
        self.fn, self.ins, self.outs, self.scalar, self.first = fn, ins, outs, scalar, first

    def __call__(self) -> None:
        if self.scalar is None:
            self.fn(*self.ins, out=self.outs[0])
        elif self.first:
            self.fn(self.scalar, *self.ins, out=self.outs[0])
        else:
            self.fn(*self.ins, self.scalar, out=self.outs[0])


def looks_up(call: Callable[[], Any]) -> bool:
    """Whether a call finds other arrays that are put into its lists."""
    return isinstance(call, (_LookedUp, _Own))


def takes_out(fn: Any) -> TypeGuard[np.ufunc]:
    """Whether an array function is a universal one, which can write into a given array."""
    return hasattr(fn, "nin") and hasattr(fn, "nout")


def _function(
    bound: BoundCall, k: Any, p: Any, ins: Sequence[Any], outs: Sequence[Any], again: bool
) -> Callable[[], Any] | None:
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
    args, scalar = list(ins), None
    if "scalar" in op.params:
        if dtype.kind != "f":
            return None
        scalar = k.xp.asarray(p.scalar, dtype=dtype)
        args.insert(0 if order == "swap" else 1, scalar)
    if len(args) != fn.nin:
        return None
    one = np.ones((1,), dtype)
    with np.errstate(all="ignore"):
        if getattr(np, name)(*[one] * len(args)).dtype != dtype:
            return None  # comparisons give bool
    if again:
        return _LookedUp(fn, ins, outs, scalar, order == "swap")
    # By position it costs half as much.
    return partial(fn, *args, out=outs[0]) if name in _BY_NAME else partial(fn, *args, outs[0])
