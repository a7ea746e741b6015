"""Arithmetic, comparison and logic: between equal shapes, with broadcasting, and with a number.

One row of a table per operator. Gradients of broadcasting operators are summed back to the shape of their input by
``_sum_like``, which does nothing where the shapes agree.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..._core.op import op
from ..._core.params import Params
from ...elementwise import binary, broadcast, scalar
from ...parameters import Int
from ...typing import Array, Call, Operand, Operators
from ..common.bodies import wide

__all__ = ["ARITHMETIC", "HIGHER", "MATH", "add_n", "elementwise_rule"]


def _div(xp: Any, a: Any, b: Any) -> Any:
    if a.dtype.kind not in "iub":
        return xp.true_divide(a, b)
    # Integers divide as in C: towards zero. No float holds those of 64 bits, except what is divided by 0.
    if a.dtype.itemsize < 8:
        return xp.trunc(xp.true_divide(a, b))
    zero = b == 0
    by = b + zero
    low = xp.floor_divide(a, by)
    exact = low + ((low < 0) & (low * by != a))
    if isinstance(b, np.generic):
        return exact if b else xp.true_divide(a, b)
    return xp.where(zero, xp.true_divide(a, b).astype(a.dtype), exact)


def _mod(xp: Any, a: Any, b: Any) -> Any:
    # MXNet: the sign of the divisor, and 0 where the divisor is 0.
    if a.dtype.kind not in "iub":
        return xp.where(b == 0, a.dtype.type(0), xp.mod(a, b))
    safe = xp.where(b == 0, xp.ones_like(a), b)
    return xp.where(b == 0, xp.zeros_like(a), xp.mod(a, safe))


def _power(xp: Any, a: Any, b: Any) -> Any:
    # Of whole numbers, MXNet cuts the floating power: a half is 0, and what does not fit, infinity too, is the lowest
    # int32 or int64, of which smaller types keep the low bits. What fits is exact here.
    if isinstance(b, float) or b.dtype.kind not in "iu":
        return xp.power(a, b)
    t = b.dtype
    held, end = (_INT64, 2.0**63) if t.itemsize == 8 else (_INT32, 2.0**31)
    about = xp.power(a.astype(np.float64), b)
    fits = abs(about) < end
    return xp.where(
        fits & (b >= 0), xp.power(a, xp.maximum(b, t.type(0))), xp.where(fits, about, -end).astype(held).astype(t)
    )


_power.direct = "power:float"  # type: ignore[attr-defined]


def _logic(fn: Any) -> Any:
    return lambda xp, a, b: getattr(xp, fn)(a != 0, b != 0)


#: name of the family -> (function, expr over a and b, gradient of a, gradient of b) ; gradients over F, dy, a, b
MATH: dict[str, tuple[Any, str, Any]] = {
    "add": ("add", "a + b", lambda F, dy: (dy, dy)),
    "sub": ("subtract", "a - b", lambda F, dy: (dy, -dy)),
    "mul": ("multiply", "a * b", lambda F, dy, a, b: (dy * b, dy * a)),
    "div": (_div, "a / b", lambda F, dy, a, b: (dy / b, -dy * a / (b * b))),
    "mod": (_mod, "0 if b == 0 else mod(a, b)", lambda F, dy, a, b: (dy, -dy * F.floor(a / b))),
    "power": (_power, "power(a, b)", lambda F, dy, a, b: (dy * b * a ** (b - 1), dy * F.log(a) * a**b)),
    "maximum": ("maximum", "maximum(a, b)", lambda F, dy, a, b: (dy * (a >= b), dy * (a < b))),
    "minimum": ("minimum", "minimum(a, b)", lambda F, dy, a, b: (dy * (a <= b), dy * (a > b))),
    "hypot": (
        "hypot",
        "hypot(a, b)",
        lambda F, dy, a, b: (dy * a / F.broadcast_hypot(a, b), dy * b / F.broadcast_hypot(a, b)),
    ),
}


def _powers_again(F: Operators, dy: Operand, a: Operand, b: Operand) -> Any:
    # The slope is 1 for every a where b is 1, so its own slope is 0; of 0**0 it would be 0 times infinity. A sum would
    # make 0 of -0, whose negative powers are others.
    base = a - (0 - (a == 0) * (b == 1))
    return dy * b * base ** (b - 1), dy * F.log(a) * a**b


#: Families whose gradients are made in another way if they are differentiated again.
HIGHER = {"power": _powers_again}
_COMPARE = {
    "equal": ("equal", "a == b"),
    "not_equal": ("not_equal", "a != b"),
    "greater": ("greater", "a > b"),
    "greater_equal": ("greater_equal", "a >= b"),
    "lesser": ("less", "a < b"),
    "lesser_equal": ("less_equal", "a <= b"),
    "logical_and": (_logic("logical_and"), "a != 0 and b != 0"),
    "logical_or": (_logic("logical_or"), "a != 0 or b != 0"),
    "logical_xor": (_logic("logical_xor"), "(a != 0) != (b != 0)"),
}
_ELEMENTWISE_NAMES = {
    "add": ("elemwise_add", "_plus", "_Plus", "_add"),
    "sub": ("elemwise_sub", "_minus", "_Minus", "_sub"),
    "mul": ("elemwise_mul", "_mul", "_Mul"),
    "div": ("elemwise_div", "_div", "_Div"),
    "mod": ("_mod", "_Mod"),
    "power": ("_power", "_Power"),
    "maximum": ("_maximum", "_Maximum"),
    "minimum": ("_minimum", "_Minimum"),
    "hypot": ("_hypot", "_Hypot"),
    "equal": ("_equal", "_Equal"),
    "not_equal": ("_not_equal", "_Not_Equal"),
    "greater": ("_greater", "_Greater"),
    "greater_equal": ("_greater_equal", "_Greater_Equal"),
    "lesser": ("_lesser", "_Lesser"),
    "lesser_equal": ("_lesser_equal", "_Lesser_Equal"),
    "logical_and": ("_logical_and", "_Logical_And"),
    "logical_or": ("_logical_or", "_Logical_Or"),
    "logical_xor": ("_logical_xor", "_Logical_Xor"),
}
_BROADCAST_NAMES = {"add": ("broadcast_add", "broadcast_plus"), "sub": ("broadcast_sub", "broadcast_minus")}
_INT32, _INT64 = np.dtype("int32"), np.dtype("int64")


def elementwise_rule(g: Any) -> Any:
    """The gradient rule of arrays of one shape and dtype, of a row of the table."""
    n = g.__code__.co_argcount
    if n == 2:
        return lambda F, dy: g(F, dy)
    return lambda F, dy, lhs, rhs: g(F, dy, lhs, rhs)


def _broadcast_rule(g: Any) -> Any:
    def linear(F: Operators, dy: Operand, like_lhs: Operand, like_rhs: Operand) -> Any:
        da, db = g(F, dy)
        return F._sum_like(da, like_lhs), F._sum_like(db, like_rhs)

    def rule(F: Operators, dy: Operand, lhs: Operand, rhs: Operand) -> Any:
        da, db = g(F, dy, lhs, rhs)
        return F._sum_like(da, lhs), F._sum_like(db, rhs)

    return linear if g.__code__.co_argcount == 2 else rule


def _tables() -> Iterator[Any]:
    for family, (fn, expr, g) in MATH.items():
        told = {"labels": "outputs"} if family == "add" else {}
        name, *aliases = _ELEMENTWISE_NAMES[family]
        alike = binary(name, fn, expr=expr, grad=elementwise_rule(g), aliases=aliases, **told)
        name, *aliases = _BROADCAST_NAMES.get(family, (f"broadcast_{family}",))
        spread = broadcast(name, fn, expr=expr, grad=_broadcast_rule(g), aliases=aliases)
        if family in HIGHER:
            alike.higher(elementwise_rule(HIGHER[family]))
            spread.higher(_broadcast_rule(HIGHER[family]))
        yield from (alike, spread)
    for family, (fn, expr) in _COMPARE.items():
        name, *aliases = _ELEMENTWISE_NAMES[family]
        yield binary(name, fn, expr=expr, grad=None, aliases=aliases)
        yield broadcast(f"broadcast_{family}", fn, expr=expr, grad=None)


def _rpower(xp: Any, x: Any, s: Any) -> Any:
    return _power(xp, s, x)


_rpower.direct = "power:swap"  # type: ignore[attr-defined]


def _scalar_name(base: str) -> tuple[str, str]:
    """The operator's name and the spelling of MXNet 0.x: ``_plus_scalar``, ``_PlusScalar``."""
    words = (
        base[:1].upper() + base[1:].capitalize()
        if base[:1] == "r" and base[1:] in _WITH_NUMBER
        else "".join(map(str.capitalize, base.split("_")))
    )
    return f"_{base}_scalar", f"_{words}Scalar"


#: base name -> (function over x and the number s, expr, gradient over F, p, dy, x)
_WITH_NUMBER: dict[str, tuple[Any, Any, Any]] = {
    "plus": ("add", "x + s", lambda F, dy: dy),
    "minus": ("subtract", "x - s", lambda F, dy: dy),
    "rminus": ("subtract:swap", "s - x", lambda F, dy: -dy),
    "mul": ("multiply", "x * s", lambda F, p, dy: dy * p.scalar),
    "div": (_div, "x / s", lambda F, p, dy: dy / p.scalar),
    "rdiv": (
        lambda xp, x, s: _div(xp, xp.full_like(x, x.dtype.type(s)), x),
        "s / x",
        lambda F, p, dy, data: dy * -p.scalar / (data * data),
    ),
    "mod": (
        lambda xp, x, s: _mod(xp, x, xp.full_like(x, x.dtype.type(s))),
        "0 if s == 0 else mod(x, s)",
        lambda F, dy: dy,
    ),
    "rmod": (
        lambda xp, x, s: _mod(xp, xp.full_like(x, x.dtype.type(s)), x),
        "0 if x == 0 else mod(s, x)",
        lambda F, p, dy, data: -dy * F.floor(p.scalar / data),
    ),
    "power": (
        _power,
        lambda p: _POWERS.get(float(p.scalar), "power(x, s)"),
        # The slope of 1 is a number, whose own slope is 0; of 0**0 it would be 0 times infinity.
        lambda F, p, dy, data: dy if p.scalar == 1 else dy * p.scalar * data ** (p.scalar - 1),
    ),
    "rpower": (_rpower, "power(s, x)", lambda F, p, dy, y: dy * y * _log(p.scalar)),
    "maximum": ("maximum", "maximum(x, s)", lambda F, p, dy, data: dy * (data >= p.scalar)),
    "minimum": ("minimum", "minimum(x, s)", lambda F, p, dy, data: dy * (data <= p.scalar)),
    "hypot": (
        lambda xp, x, s: xp.hypot(x, xp.full_like(x, x.dtype.type(s))),
        "hypot(x, s)",
        lambda F, dy, data, y: dy * data / y,
    ),
}
_NUMBER_COMPARE: dict[str, tuple[Any, str]] = {
    "equal": ("equal", "x == s"),
    "not_equal": ("not_equal", "x != s"),
    "greater": ("greater", "x > s"),
    "greater_equal": ("greater_equal", "x >= s"),
    "lesser": ("less", "x < s"),
    "lesser_equal": ("less_equal", "x <= s"),
    "logical_and": (lambda xp, x, s: (x != 0) & bool(s), "x != 0 and s != 0"),
    "logical_or": (lambda xp, x, s: (x != 0) | bool(s), "x != 0 or s != 0"),
    "logical_xor": (lambda xp, x, s: (x != 0) ^ bool(s), "(x != 0) != (s != 0)"),
}


#: Exponents with an expression of their own. NumPy treats most of them so too.
_POWERS: dict[float, str] = {
    2.0: "square(x)",
    1.0: "x",
    0.5: "sqrt(x)",
    -1.0: "reciprocal(x)",
    3.0: "x * x * x",
    -0.5: "rsqrt(x)",
}
#: Numbers that change nothing.
_NEUTRAL = {"mul": 1.0, "div": 1.0, "power": 1.0}


def _log(s: Any) -> Any:
    return math.log(s) if s > 0 else -math.inf if s == 0 else math.nan


def _scalars() -> Iterator[Any]:
    for base, (fn, expr, g) in _WITH_NUMBER.items():
        name, old = _scalar_name(base)
        neutral = _NEUTRAL.get(base)
        yield scalar(
            name,
            fn,
            expr=expr,
            grad=g,
            aliases=[old],
            identity=False if neutral is None else lambda p, number=neutral: p.scalar == number,
        )
    for base, (fn, expr) in _NUMBER_COMPARE.items():
        name, old = _scalar_name(base)
        yield scalar(name, fn, expr=expr, grad=None, aliases=[old])


ARITHMETIC = [*_tables(), *_scalars()]

#: Terms of a sum that one expression holds; more operands than this make no chain.
_TERMS = 24


@op(
    "add_n",
    "ElementWiseSum",
    "_sparse_add_n",
    "_sparse_ElementWiseSum",
    inputs="args*",
    params={"num_args": Int(ge=1, le=1 << 16)},
    expr=lambda p: " + ".join(f"arg{i}" for i in range(p.num_args)) if p.num_args <= _TERMS else None,
    grad=lambda F, p, dy: [[dy] * p.num_args],
)
def add_n(k: Call, p: Params, *args: Array) -> Array:
    """Sum arrays of one shape.

    Parameters
    ----------
    args : arrays
    num_args : int
        How many; counted for you.
    """
    if len(args) == 1:
        return args[0].copy()
    total = (wide(args[0]) if len(args) > 2 else args[0]) + args[1]
    for x in args[2:]:
        total += x
    return total
