"""Families of operators as tables: unary, elementwise binary, broadcasting binary, array with scalar."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ._core.expr import Expr
from ._core.infer import broadcast_shapes
from ._core.op import MISSING, Op
from ._core.params import Bool, Float, Params

__all__ = ["Fused", "wrapped", "unary", "binary", "broadcast", "scalar", "broadcast_rule"]

Fn = str | Callable[..., Any]


def _doc(text: str, name: str, lines: Sequence[str]) -> str:
    return "\n".join([text or f"Apply {name} to each element.", "", "Parameters", "----------", *lines])


def _named(fn: Fn) -> tuple[Callable[..., Any], str | None]:
    """A function over (xp, *arrays), and the name of the array function if it is no more than that."""
    if isinstance(fn, str):
        name, _, order = fn.partition(":")
        if order == "swap":
            return (lambda xp, a, b: getattr(xp, name)(b, a)), fn
        return (lambda xp, *a: getattr(xp, name)(*a)), fn
    return fn, None


def unary(name: str, fn: Fn, *, grad: Any = MISSING, expr: str | None = None, aliases: Iterable[str] = (), doc: str = "",
          samples: Sequence[Any] = (), view: bool = False) -> Op:
    """Declare an elementwise operator of one input `data`.

    Parameters
    ----------
    name : str
    fn : str or callable
        ``(xp, x) -> array``, or the name of a function of the array namespace.
    grad : callable or None
        Gradient rule, e.g. ``lambda F, dy, y: dy * (1 - y * y)``; None: zero.
    expr : str
        The meaning over the name ``x``, for fusion.
    """
    f, direct = _named(fn)
    text = None if expr is None else expr.replace("x", "data") if expr == "x" else _rename(expr, {"x": "data"})
    op = Op(name, lambda k, p, data: f(k.xp, data), inputs="data", grad=grad, expr=text, aliases=aliases, samples=samples,
            direct=direct, alias="data->output", view=view,
            doc=_doc(doc, name, ["data : array", "    Any shape."]))
    op.module = getattr(grad, "__module__", None) or getattr(fn, "__module__", None)
    return op


def binary(name: str, fn: Fn, *, grad: Any = MISSING, expr: str | None = None, aliases: Iterable[str] = (), doc: str = "",
           samples: Sequence[Any] = ()) -> Op:
    """Declare an elementwise operator of two inputs of one shape, `lhs` and `rhs`; `expr` is over ``a`` and ``b``."""
    f, direct = _named(fn)
    return Op(name, lambda k, p, lhs, rhs: f(k.xp, lhs, rhs), inputs="lhs rhs", grad=grad, aliases=aliases, samples=samples,
              expr=None if expr is None else _rename(expr, {"a": "lhs", "b": "rhs"}), direct=direct, alias="lhs->output",
              doc=_doc(doc, name, ["lhs, rhs : array", "    Of one shape and dtype."]))


def broadcast(name: str, fn: Fn, *, grad: Any = MISSING, expr: str | None = None, aliases: Iterable[str] = (), doc: str = "",
              samples: Sequence[Any] = ()) -> Op:
    """Declare a broadcasting operator of two inputs, `lhs` and `rhs`; `expr` is over ``a`` and ``b``."""
    f, direct = _named(fn)
    op = Op(name, lambda k, p, lhs, rhs: f(k.xp, lhs, rhs), inputs="lhs rhs", grad=grad, aliases=aliases, samples=samples,
            expr=None if expr is None else _rename(expr, {"a": "lhs", "b": "rhs"}), direct=direct, alias="lhs->output",
            doc=_doc(doc, name, ["lhs, rhs : array", "    Shapes that broadcast, one dtype."]))
    op.shape(broadcast_rule)
    return op


def broadcast_rule(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    """Shapes of a broadcasting operator; an unknown input is filled from the output where nothing else can fit."""
    a, b = ins
    if a is not None and b is not None:
        return ins, [broadcast_shapes(a, b)]
    return ins, outs


def scalar(name: str, fn: Fn, *, grad: Any = MISSING, expr: str | None = None, aliases: Iterable[str] = (), doc: str = "",
           samples: Sequence[Any] = ()) -> Op:
    """Declare an operator of an array and a number; `expr` is over ``x`` and ``s``.

    The number is cast to the array's dtype first, so an int32 array times 2.5 is a multiplication by 2.
    """
    f, direct = _named(fn)

    def body(k: Any, p: Params, data: Any) -> Any:
        s: Any = p.scalar  # type: ignore[attr-defined]
        return f(k.xp, data, s if data.dtype.kind not in "iub" else wrapped(s, data.dtype))

    return Op(name, body, inputs="data", params={"scalar": Float(1.0, dynamic=True), "is_int": Bool(True)}, grad=grad,
              aliases=aliases, samples=samples, direct=direct, alias="data->output",
              expr=None if expr is None else _rename(expr, {"x": "data", "s": "scalar"}),
              doc=_doc(doc, name, ["data : array", "    Any shape.", "scalar : float", "    Cast to the dtype of `data`.",
                                   "is_int : bool", "    Whether the number was given as an int; has no effect."]))


def wrapped(value: float, dtype: Any) -> Any:
    """A number as an integer dtype holds it: cut towards zero, and wrapped around as C does."""
    return np.float64(value).astype(np.int64).astype(dtype) if not isinstance(value, int) else np.int64(value).astype(dtype)


def _rename(expr: str, names: dict[str, str]) -> str:
    """Exchange whole-word names in an expression."""
    import re

    return re.sub(r"[A-Za-z_]\w*", lambda m: names.get(m.group(), m.group()), expr)


class Fused:
    """A chain of elementwise operators as one: what ``Device.compile_fused`` compiles.

    Attributes
    ----------
    inputs : tuple of str
        Names of the input arrays; they broadcast against each other.
    outputs : tuple of Expr
        One expression over the inputs per output array.
    dtype : str
        'float32' or 'float64', of inputs, arithmetic and outputs.
    """

    __slots__ = ("inputs", "outputs", "dtype")

    def __init__(self, inputs: Iterable[str], outputs: Iterable[Expr | str], dtype: str = "float32") -> None:
        self.inputs, self.dtype = tuple(inputs), dtype
        self.outputs = tuple(e if isinstance(e, Expr) else Expr(e, self.inputs) for e in outputs)

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for equal chains."""
        return (self.inputs, tuple(e.tree for e in self.outputs), self.dtype)
