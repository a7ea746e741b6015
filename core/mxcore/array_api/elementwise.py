"""Elementwise functions: NumPy says which dtypes meet in which (``ufunc.resolve_dtypes``), the library computes."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from .arrays import Array

__all__ = ["NAMES", "function"]

#: NumPy's name -> an operator of Python, which every library's arrays have.
OPERATORS: dict[str, Any] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "true_divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "mod": operator.mod,
    "power": operator.pow,
    "negative": operator.neg,
    "abs": abs,
    "absolute": abs,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "left_shift": operator.lshift,
    "right_shift": operator.rshift,
    "invert": operator.invert,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "matmul": operator.matmul,
}
#: Over booleans, where the library has numbers only.
BOOLEAN = {
    "add": operator.or_,
    "multiply": operator.and_,
    "maximum": operator.or_,
    "minimum": operator.and_,
    "absolute": lambda x: x,
    "abs": lambda x: x,
    "fmax": operator.or_,
    "fmin": operator.and_,
    "less": lambda a, b: ~a & b,
    "less_equal": lambda a, b: ~a | b,
    "greater": lambda a, b: a & ~b,
    "greater_equal": lambda a, b: a | ~b,
    "isfinite": lambda x: x | ~x,
    "isinf": lambda x: x & ~x,
    "isnan": lambda x: x & ~x,
}
#: NumPy's name -> the standard's.
STANDARD = {
    **{
        n: n
        for n in "ceil cos cosh exp expm1 floor hypot isfinite isinf isnan log log10 log1p log2 maximum minimum sign "
        "sin sinh sqrt tan tanh trunc".split()
    },
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "rint": "round",
}
#: What the standard lacks, or defines for booleans only: functions of the library and of arrays of one dtype.
COMPOSED: dict[str, Any] = {
    "cbrt": lambda r, x: r("sign")(x) * abs(x) ** (1 / 3),
    "degrees": lambda r, x: x * (180 / np.pi),
    "exp2": lambda r, x: 2.0**x,
    "fmax": lambda r, a, b: r("where")(r("isnan")(a), b, r("where")(r("isnan")(b), a, r("maximum")(a, b))),
    "fmin": lambda r, a, b: r("where")(r("isnan")(a), b, r("where")(r("isnan")(b), a, r("minimum")(a, b))),
    "fmod": lambda r, a, b: r("where")(a < 0, -(abs(a) % abs(b)), abs(a) % abs(b)),
    "logical_and": lambda r, a, b: a & b,
    "logical_not": lambda r, x: ~x,
    "logical_or": lambda r, a, b: a | b,
    "logical_xor": lambda r, a, b: a ^ b,
    "radians": lambda r, x: x * (np.pi / 180),
    "reciprocal": lambda r, x: 1 / x,
    "square": lambda r, x: x * x,
}
NAMES = frozenset({*OPERATORS, *STANDARD, *COMPOSED} - {"matmul"})


def function(xp: Any, name: str, cls: type[Array]) -> Any:
    """NumPy's function of a name, over a namespace whose arrays are of class `cls`."""
    ufunc = getattr(np, name)
    plans: dict[tuple[Any, ...], Any] = {}
    takes_numbers = name in OPERATORS and name != "matmul"

    def kind(a: Any) -> Any:
        if isinstance(a, np.generic):
            return (a.dtype,)
        if isinstance(a, (bool, int, float, complex)):
            return type(a)
        raise TypeError(
            f"xp.{name}: {'a NumPy array' if isinstance(a, np.ndarray) else type(a).__name__} meets an array "
            "of a device; make a device array of it with xp.asarray"
        )

    def plan(kinds: tuple[Any, ...]) -> Any:
        """The function for kinds of arguments: what each is cast to, and what comes out; None for numbers alone."""
        numbers = [k.__class__ is tuple or isinstance(k, type) for k in kinds]
        if all(numbers):
            return None
        asked = [
            k[0] if k.__class__ is tuple else np.dtype(bool) if k is bool else k if number else xp.dtype_of[k]
            for k, number in zip(kinds, numbers)
        ]
        *ins, out = [xp.near(t) for t in ufunc.resolve_dtypes((*asked, None))]
        if name.startswith("logical"):
            ins = [np.dtype(bool)] * len(ins)
        fn = OPERATORS.get(name) or (
            xp.standard(STANDARD[name]) if name in STANDARD else lambda *a: COMPOSED[name](xp.standard, *a)
        )
        if ins[0].kind == "b" and name in BOOLEAN:
            fn = BOOLEAN[name]
        elif ins[0].kind in "iu" and name in ("floor_divide", "mod", "fmod"):
            fn = _whole(xp, fn)
        steps = []
        for k, t, number in zip(kinds, ins, numbers):
            steps.append(
                (
                    number,
                    None if not number and k == xp.raw[t] else xp.raw[t],
                    {"f": float, "c": complex, "b": bool}.get(t.kind, int),
                )
            )
        return fn, tuple(steps), xp.raw[out]

    def raw(args: tuple[Any, ...]) -> Any:
        kinds = tuple([a.value.dtype if a.__class__ is cls else kind(a) for a in args])
        found = plans.get(kinds, 0)
        if found == 0:
            found = plans[kinds] = plan(kinds)
        if found is None:
            return xp.asarray(ufunc(*args)).value
        fn, steps, out = found
        values = []
        for a, (number, dtype, plain) in zip(args, steps):
            if number:
                a = plain(a) if takes_numbers else xp.number(plain(a), dtype)
            else:
                a = a.value if dtype is None else xp.astype(a.value, dtype)
            values.append(a)
        r = fn(*values)
        return r if r.dtype == out else xp.astype(r, out)

    def into(out: Any, r: Any) -> Any:
        if r.dtype != out.value.dtype and not np.can_cast(xp.dtype_of[r.dtype], out.dtype, "same_kind"):
            raise TypeError(
                f"xp.{name}: its result, of {xp.dtype_of[r.dtype]}, cannot be written to an array of {out.dtype}"
            )
        xp.set(out, ..., cls(r))
        return out

    if ufunc.nin == 1:

        def call(x: Any, out: Any = None) -> Any:
            r = raw((x,))
            return cls(r) if out is None else into(out, r)
    else:

        def call(x1: Any, x2: Any, out: Any = None) -> Any:  # type: ignore[misc]  # the other arity
            r = raw((x1, x2))
            return cls(r) if out is None else into(out, r)

    call.__name__ = name
    return call


def _whole(xp: Any, fn: Any) -> Any:
    """A division of integers that does not fail at zeros."""

    def divide(a: Any, b: Any) -> Any:
        where = xp.standard("where")
        if hasattr(b, "dtype"):
            b = where(b == 0, xp.number(1, b.dtype), b)
        return fn(a, b if hasattr(b, "dtype") or b else 1)

    return divide
