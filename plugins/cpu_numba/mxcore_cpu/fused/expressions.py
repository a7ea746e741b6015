"""Expression trees as LLVM instructions, of the numbers that Numba would compute from the same expression.

Operators and the simplest functions are written here. The others are those of :mod:`mxcore_cpu.math`: Numba compiles
each once for each dtype, and its code is kept, to be merged into every chain that calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["REGISTERS", "Writer", "ir_type"]

#: The type in which code holds a number of each dtype that chains know.
REGISTERS = {
    "float16": "float32",
    "float32": "float32",
    "float64": "float64",
    "bool": "uint8",
    "uint8": "uint8",
    "int8": "int8",
    "int32": "int32",
    "int64": "int64",
}
_INTEGERS = {"uint8": 8, "int8": 8, "int32": 32, "int64": 64}
#: Liberties of every operation: to be merged into a multiply-add.
_CONTRACT = ("contract",)
#: What holds both sides of a comparison: the first type that is in the row of either.
_WIDER = ("float64", "float32", "int64", "int32", "int8", "uint8")

#: A value and the type that holds it, "truth" for a condition.
Value = tuple[Any, str]


def ir_type(held: str) -> Any:
    """LLVM's type for one of :data:`REGISTERS`."""
    from llvmlite import ir

    if held in _INTEGERS:
        return ir.IntType(_INTEGERS[held])
    return ir.FloatType() if held == "float32" else ir.DoubleType()


def _common(a: str, b: str) -> str:
    """What two types are compared in."""
    if a == b:
        return a
    floats = {a, b} & {"float32", "float64"}
    if not floats:
        return "int64"
    small = all(_INTEGERS.get(t, 0) <= 8 for t in (a, b))
    return "float32" if floats == {"float32"} and small else "float64"


class Writer:
    """Writes the instructions of expressions at the place of a builder.

    Parameters
    ----------
    builder : llvmlite.ir.IRBuilder
    """

    def __init__(self, builder: Any) -> None:
        self.builder = builder
        #: Functions of :mod:`mxcore_cpu.math` that are called: name and types of arguments -> declaration.
        self.called: dict[tuple[str, tuple[str, ...]], Any] = {}

    def value(self, tree: tuple[Any, ...], names: Mapping[str, Value], dtype: str) -> Value:
        """The value of a step of this dtype."""
        held = REGISTERS[dtype]
        kind = tree[0]
        if kind == "name":
            return names[tree[1]]
        if kind == "num":
            return self.number(float(tree[1]), held)
        if kind == "cast":
            inner = tree[2]
            to = REGISTERS[tree[1]]
            if inner[0] == "num":
                found = self.number(inner[1], to)
            else:
                found = self.cast(self.value(inner, names, dtype), to)
            return self.rounded(found) if tree[1] == "float16" else found
        parts = [self.value(t, names, dtype) for t in tree[1:] if isinstance(t, tuple)]
        write: Callable[..., Value] | None = getattr(self, f"_{_NAMES.get(kind, kind)}", None)
        if kind == "cmp":
            return self.compare(tree[1], *parts)
        if kind == "call":
            return self.call(tree[1], parts)
        assert write is not None, kind
        return write(*parts)

    def number(self, v: float, held: str) -> Value:
        """A constant."""
        return ir_type(held)(int(v) if held in _INTEGERS else _single(v) if held == "float32" else float(v)), held

    def cast(self, value: Value, to: str) -> Value:
        """A number in another type."""
        x, of = value
        b, t = self.builder, ir_type(to)
        if of == to:
            return value
        if of == "truth":
            return (b.uitofp(x, t) if to not in _INTEGERS else b.zext(x, t)), to
        if of in _INTEGERS:
            if to not in _INTEGERS:
                return (b.uitofp if of == "uint8" else b.sitofp)(x, t), to
            if _INTEGERS[to] < _INTEGERS[of]:
                return b.trunc(x, t), to
            if _INTEGERS[to] == _INTEGERS[of]:
                return x, to
            return (b.zext if of == "uint8" else b.sext)(x, t), to
        if to in _INTEGERS:
            return (b.fptoui if to == "uint8" else b.fptosi)(x, t), to
        return (b.fpext if to == "float64" else b.fptrunc)(x, t), to

    def rounded(self, value: Value) -> Value:
        """A number as float16 has it."""
        from llvmlite import ir

        x, _ = self.cast(value, "float32")
        return self.builder.fpext(self.builder.fptrunc(x, ir.HalfType()), ir.FloatType()), "float32"

    def compare(self, how: str, a: Value, b: Value) -> Value:
        """A comparison; with NaN only ``!=`` holds."""
        if a[1] == b[1] == "truth":
            return self.builder.icmp_unsigned(how, a[0], b[0]), "truth"
        held = _common(*("uint8" if t == "truth" else t for t in (a[1], b[1])))
        x, y = self.cast(a, held)[0], self.cast(b, held)[0]
        if held in _INTEGERS:
            return (self.builder.icmp_unsigned if held == "uint8" else self.builder.icmp_signed)(how, x, y), "truth"
        write = self.builder.fcmp_unordered if how == "!=" else self.builder.fcmp_ordered
        return write(how, x, y, flags=_CONTRACT), "truth"

    def call(self, fn: str, args: list[Value]) -> Value:
        """A function of the expression language."""
        write: Callable[..., Value] | None = getattr(self, f"_call_{fn}", None)
        if write is not None and (fn == "where" or all(t in ("float32", "float64") for _, t in args)):
            return write(*args)
        args = [self.cast(a, "float64") if a[1] not in ("float32", "float64") else a for a in args]
        types = tuple(t for _, t in args)
        if len({*types}) > 1:
            types = ("float64",) * len(types)
            args = [self.cast(a, "float64") for a in args]
        declared = self.called.get((fn, types))
        held = "truth" if fn in ("isnan", "isinf") else types[0]
        if declared is None:
            from llvmlite import ir

            result = ir.IntType(1) if held == "truth" else ir_type(held)
            declared = self.called[fn, types] = ir.Function(
                self.builder.module,
                ir.FunctionType(result, [ir_type(t) for t in types]),
                f"mxcore.{fn}.{'.'.join(types)}",
            )
        fast = () if held == "truth" else _CONTRACT
        return self.builder.call(declared, [x for x, _ in args], fastmath=fast), held

    # -- operators -------------------------------------------------------------------------------------------------
    def _same(self, a: Value, b: Value) -> tuple[Any, Any, str]:
        if a[1] != b[1] or a[1] not in ("float32", "float64"):
            raise TypeError(f"arithmetic between {a[1]} and {b[1]}")
        return a[0], b[0], a[1]

    def _add(self, a: Value, b: Value) -> Value:
        x, y, t = self._same(a, b)
        return self.builder.fadd(x, y, flags=_CONTRACT), t

    def _sub(self, a: Value, b: Value) -> Value:
        x, y, t = self._same(a, b)
        return self.builder.fsub(x, y, flags=_CONTRACT), t

    def _mul(self, a: Value, b: Value) -> Value:
        x, y, t = self._same(a, b)
        return self.builder.fmul(x, y, flags=_CONTRACT), t

    def _div(self, a: Value, b: Value) -> Value:
        x, y, t = self._same(a, b)
        return self.builder.fdiv(x, y, flags=_CONTRACT), t

    def _neg(self, a: Value) -> Value:
        return self.builder.fneg(a[0]), a[1]

    def _and(self, a: Value, b: Value) -> Value:
        return self.builder.and_(a[0], b[0]), "truth"

    def _or(self, a: Value, b: Value) -> Value:
        return self.builder.or_(a[0], b[0]), "truth"

    def _not(self, a: Value) -> Value:
        return self.builder.not_(a[0]), "truth"

    # -- functions -------------------------------------------------------------------------------------------------
    def _call_where(self, condition: Value, a: Value, b: Value) -> Value:
        held = a[1] if a[1] == b[1] else _common(a[1], b[1])
        return self.builder.select(condition[0], self.cast(a, held)[0], self.cast(b, held)[0]), held

    def _call_relu(self, a: Value) -> Value:
        zero = self.number(0.0, a[1])
        return self._call_where(self.compare("<", a, zero), zero, a)

    def _call_square(self, a: Value) -> Value:
        return self._mul(a, a)

    def _intrinsic(self, name: str, a: Value) -> Value:
        from llvmlite import ir

        t = ir_type(a[1])
        f = self.builder.module.declare_intrinsic(f"llvm.{name}", [t], ir.FunctionType(t, [t]))
        return self.builder.call(f, [a[0]], fastmath=_CONTRACT), a[1]

    def _call_abs(self, a: Value) -> Value:
        return self._intrinsic("fabs", a)

    def _call_sqrt(self, a: Value) -> Value:
        return self._intrinsic("sqrt", a)

    def _call_rsqrt(self, a: Value) -> Value:
        return self._div(self.number(1.0, a[1]), self._call_sqrt(a))

    def _call_reciprocal(self, a: Value) -> Value:
        return self._div(self.number(1.0, a[1]), a)

    def _call_isnan(self, a: Value) -> Value:
        return self.builder.fcmp_unordered("uno", a[0], a[0], flags=_CONTRACT), "truth"

    def _extreme(self, how: str, a: Value, b: Value) -> Value:
        """The larger or smaller number, or the first NaN."""
        x, y, t = self._same(a, b)
        w = self.builder
        first, any_ = (w.fcmp_unordered("uno", x, z, flags=_CONTRACT) for z in (x, y))
        nan = w.select(first, x, y)
        return w.select(any_, nan, w.select(w.fcmp_ordered(how, x, y, flags=_CONTRACT), x, y)), t

    def _call_maximum(self, a: Value, b: Value) -> Value:
        return self._extreme(">=", a, b)

    def _call_minimum(self, a: Value, b: Value) -> Value:
        return self._extreme("<=", a, b)


_NAMES = {"+": "add", "-": "sub", "*": "mul", "/": "div"}


def _single(v: float) -> float:
    """The nearest float32; LLVM's language has no other for that type."""
    import numpy as np

    with np.errstate(over="ignore"):
        return float(np.float32(v))
