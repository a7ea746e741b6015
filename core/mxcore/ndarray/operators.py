"""Python's operators over arrays, with a short way for small dense ones."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import tables, tape
from .._core.array import Array, fresh
from .._core.call import observed
from .._core.context import Context
from .._core.engine import engine
from .._core.errors import error, raise_in_op
from .._core.gradplan import GradPlan
from .._core.kernels import Spec
from .._core.op import Op
from .._core.params import Params
from .._core.state import state
from .._core.transfer import guard_write, is_view
from .._locks import writing
from .._op_functions import mixed_faces
from ..ops.common.python_operators import COMPARISONS, OPERATORS, UNARY

__all__ = ["SHORT", "install"]

#: Arrays of more elements take the general path, where the device's kernels and the engine decide.
SMALL = 16384
_FAST_NUMBERS = (float, int)
_LEAST, _MOST = -(1 << 1023), 1 << 1023
_SHORT_WAY = "short way"  # where errors say they happened


class _Short:
    """The short way of an operator on small arrays of one dtype: its array function, and what the tape wants."""

    __slots__ = ("fn", "op", "p", "swap", "plain", "last", "plan")

    def __init__(self, fn: Callable[..., Any], op: Op, p: Params, swap: bool, plain: bool) -> None:
        self.fn, self.op, self.p, self.swap = fn, op, p, swap
        #: It takes numbers as they are, never as an array.
        self.plain = plain
        rule = op.facets.get("alike")
        #: The gradient rule of arrays that are alike, where the operator has one.
        self.plan = rule and GradPlan(op, rule)
        #: The last number that an array met, most often a constant in the code: itself, as an array once it comes
        #: again, which is faster, and as parameters once it is recorded.
        self.last: list[Any] = [None, None, None]


#: Name of an operator -> (context, dtype) -> its short way, None where it is known to have none.
SHORT: dict[str, dict[tuple[Context, Any], _Short | None]] = {}


def _forget() -> None:
    for ways in SHORT.values():
        ways.clear()


tables.on_forget.append(_forget)


def _learn(
    short: dict[tuple[Context, Any], _Short | None], ctx: Context, op: Op, dtype: Any, p: Params, two: bool, gives: Any
) -> None:
    """Enter the short way of an operator: that of its kernel, of a reference that is one array function, or None.

    `gives` is the dtype of its results.
    """
    device = ctx.device
    if (ctx, dtype) in short or engine.it.naive and device.async_ or device.computes_as not in ("", device.type):
        return
    begun = tables.generation[0]
    k = tables.kernels.best(op, device, p, [Spec((1,), dtype)] * (1 + two))
    if k is None:
        found = _of_body(ctx, op, dtype, two, gives)
    else:
        try:
            found = None if k.short is None or gives != dtype else (k.short(ctx, dtype), False)
        except Exception as e:
            raise_in_op(e, op.name, p, [Spec((1,), dtype)] * (1 + two), "`short`", k.owner)
    way = found and _Short(observed(found[0], op.name, ctx, None, None), op, p, found[1], k is not None)
    settled = device.type not in tables.kernels.fresh  # else kernels are still to come
    if settled and begun == tables.generation[0]:
        short[ctx, dtype] = way


def _of_body(ctx: Any, op: Any, dtype: Any, two: bool, gives: Any) -> tuple[Callable[..., Any], bool] | None:
    """The array function that a reference is, if it gives the right dtype; whether it takes its arrays turned round."""
    device = ctx.device
    if op.direct is None or device.xp is None:
        return None
    ctx.activate()
    name, _, order = op.direct.partition(":")
    fn = getattr(device.xp, name)
    if device.async_:
        fn = _launched(fn, device.activate, ctx.device_id)
    one = device.xp.ones((1,), dtype)
    got = fn(one, one) if two else fn(one, 1.0)
    return (fn, order == "swap") if got.dtype == gives and (dtype.kind == "f" or two and order != "float") else None


def _launched(fn: Callable[..., Any], activate: Callable[[int], None], index: int) -> Callable[..., Any]:
    def call(a: Any, b: Any) -> Any:
        activate(index)
        return fn(a, b)

    return call


def _general(elementwise: str, broadcast: str, scalar_op: str) -> Callable[[Any, Any], Any]:
    """A binary operator of Python's by the operators it means, whose short ways are learnt meanwhile."""
    short, short_scalar = SHORT.setdefault(elementwise, {}), SHORT.setdefault(scalar_op, {})

    def slow(self: Any, other: Any) -> Any:
        if isinstance(other, Array):
            if self.rules is not other.rules:
                raise mixed_faces(elementwise, self, other)
            d, e = self._data, other._data
            same = d.shape == e.shape
            # A dense array on the left keeps the result dense.
            op = tables.ops.get(
                elementwise if same and (self.stype != "default" or other.stype == "default") else broadcast
            )
            p = op.parse({})
            out = Op.apply(op, (self, other), p)
            if same and d.shape and self.stype == other.stype == "default" and d.dtype == e.dtype:
                _learn(short, self._st.ctx, op, d.dtype, p, True, out._data.dtype)
            return out
        if isinstance(other, numbers.Number) or (hasattr(other, "dtype") and getattr(other, "shape", None) == ()):
            op = tables.ops.get(scalar_op)
            p = op.parse({"scalar": other})
            out = Op.apply(op, (self,), p)
            d = self._data
            if self.stype == "default" and d.shape:
                _learn(short_scalar, self._st.ctx, op, d.dtype, p, False, out._data.dtype)
            return out
        if other is None or isinstance(other, (str, bytes)):
            return NotImplemented
        raise error(
            TypeError,
            f"{elementwise}: an array cannot be combined with {type(other).__name__}; "
            f"use an array (mx.{'nd' if self.rules is None else 'np'}.array(x, ctx=...)) or a number",
        )

    return slow


def _eager_binary(elementwise: str, broadcast: str, scalar_op: str, fast: bool) -> Callable[[Any, Any], Any]:
    slow = _general(elementwise, broadcast, scalar_op)
    short, short_scalar = SHORT[elementwise], SHORT[scalar_op]

    def method(self: Any, other: Any) -> Any:
        cls = self.__class__
        st = self._st
        if st.write is None:
            ctx = st.ctx
            a = self._data
            dtype = a.dtype
            if other.__class__ is cls:
                b = other._data
                found = short.get((ctx, dtype))
                if found is not None and dtype is b.dtype:
                    shape = a.shape
                    so = other._st
                    if shape and shape == b.shape and a.size <= SMALL and so.write is None and so.ctx is ctx:
                        try:
                            out = fresh(cls, found.fn(a, b), ctx)
                        except Exception as e:
                            raise_in_op(e, found.op.name, found.p, (self, other), _SHORT_WAY)
                        if state.record:
                            tape.record(found.op, found.p, (self, other), (out,), None, found.plan)
                        return out
            elif other.__class__ in _FAST_NUMBERS:
                found = short_scalar.get((ctx, dtype))
                if found is not None and a.ndim and a.size <= SMALL:
                    last = found.last
                    if last[0] is not other and (last[0] != other or not other):  # zeros differ in their sign
                        if other.__class__ is int and not _LEAST < other < _MOST:
                            return slow(self, other)  # which refuses what is no float
                        last = found.last = [other, other, None]
                    elif last[1] is last[0] and not found.plain:
                        last[1] = ctx.device.full((), other, dtype, ctx.device_id)
                    try:
                        out = fresh(cls, found.fn(last[1], a) if found.swap else found.fn(a, last[1]), ctx)
                    except Exception as e:
                        raise_in_op(e, found.op.name, found.p, (self,), _SHORT_WAY)
                    if self._entry is not None and state.record:
                        last[2] = last[2] or found.p.with_dynamic({"scalar": float(other)})
                        tape.record(found.op, last[2], (self,), (out,))
                    return out
        return slow(self, other)

    return method if fast else slow


def _narrowed(self: Any, op: Op, other: Any) -> Any:
    """An operator that writes to its first array, of other dtypes: the result is cast, to no other kind of numbers."""
    p: Any = op.plain
    guard_write(self, op.name, tape.read_later(op, p, (self, other)) if state.record is True else ())
    wide = Op.apply(op, (self, other), p)
    if not np.can_cast(wide._data.dtype, self._data.dtype, "same_kind"):
        raise error(
            TypeError,
            f"operator {op.name}: a result of {wide._data.dtype} is not written to an array of {self._data.dtype}; "
            f"cast one of them: x.astype({str(self._data.dtype)!r})",
        )
    cast = tables.ops.get("Cast")
    Op.apply(cast, (wide,), cast.parse({"dtype": self._data.dtype}), self)
    return self


def flows(x: Array) -> bool:
    """Whether gradients flow to an array."""
    return x._entry is not None and bool(x._entry[0].flows and x._entry[0].live)


def guard_factor(x: Array, other: Any, what: str) -> None:
    """Refuse to write to `x` what was computed of it and `other`, whose gradient reads it."""
    if state.record is True and isinstance(other, Array) and flows(other):
        guard_write(x, what, [x])


def _eager_inplace(elementwise: str, broadcast: str, scalar_op: str) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        if isinstance(other, Array):
            if self.rules is not other.rules:
                raise mixed_faces(elementwise, self, other)
            op = tables.ops.get(elementwise if self._data.shape == other._data.shape else broadcast)
            if state.record is True and flows(other) and is_view(self):
                raise error(
                    RuntimeError,
                    f"operator {op.name}: inplace operations (+=, -=) by a value of the graph on a view of another "
                    "array are not supported while recording: gradients would not flow through that; use a new array",
                )
            if self.rules is not None and self._data.dtype != other._data.dtype:
                return writing(self, _narrowed, self, op, other)
            writing(self, Op.apply, op, (self, other), op.plain, self)
            return self
        if isinstance(other, numbers.Number) or getattr(other, "shape", None) == ():
            op = tables.ops.get(scalar_op)
            guard_write(self, op.name)
            writing(self, Op.apply, op, (self,), op.parse({"scalar": other}), self)
            return self
        return NotImplemented

    return method


def install(
    cls: type,
    fast: bool = True,
    operators: dict[str, tuple[str, str, str, str]] = OPERATORS,
    comparisons: dict[str, tuple[str, str, str]] = COMPARISONS,
    unary: dict[str, str] = UNARY,
) -> None:
    """Give an array class Python's operators; `fast` adds the short way of small dense arrays."""
    for name, (e, b, s, r) in operators.items():
        forward = _eager_binary(e, b, s, fast)
        backward = _eager_binary(e, b, r, fast)
        setattr(cls, f"__{name}__", _named(forward, f"__{name}__"))
        setattr(cls, f"__r{name}__", _named(_reflected(forward, backward), f"__r{name}__"))
        # `x **= y` gives x another array, as MXNet's classes do.
        setattr(cls, f"__i{name}__", forward if name == "pow" else _named(_eager_inplace(e, b, s), f"__i{name}__"))
    for name, (e, b, s) in comparisons.items():
        setattr(cls, f"__{name}__", _named(_eager_binary(e, b, s, fast), f"__{name}__"))
    for name, op_name in unary.items():
        setattr(cls, f"__{name}__", _named(_eager_unary(op_name), f"__{name}__"))
    cls.__hash__ = object.__hash__  # type: ignore[assignment, method-assign]


def _eager_unary(name: str) -> Callable[[Any], Any]:
    def method(self: Any) -> Any:
        op = tables.ops.get(name)
        return Op.apply(op, (self,), op.plain)

    return method


def _reflected(forward: Callable[[Any, Any], Any], backward: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        return forward(other, self) if isinstance(other, Array) else backward(self, other)

    return method


def _named(fn: Any, name: str) -> Any:
    fn.__name__ = fn.__qualname__ = name
    return fn
