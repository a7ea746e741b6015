"""Arithmetic, comparison and logic of ``mx.np``: between arrays whose dtypes may differ, and with a number.

Rows of tables; what ``mx.nd`` has is shared with it. Whole numbers never widen floats, as in MXNet; where MXNet refuses
two dtypes, they are promoted as NumPy does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..._core.kernels import Spec
from ..._core.op import Op
from ..._core.params import Params
from ...elementwise import broadcast, scalar, with_number
from ...twins import twin
from ...typing import Array, Call, Operand, Operators
from .arithmetic import ARITHMETIC, HIGHER, MATH, elementwise_rule
from .numpy_rules import (
    BOOL,
    FLOAT64,
    INT8,
    cast_first,
    common_dtype,
    counted,
    floating,
    gradient_of_quotient,
    gradients_of_two,
    measured,
    rule_of_one,
    rule_of_two,
    signed,
    truth,
    whole,
)

__all__ = ["ARITHMETIC_OF_NUMPY"]

_OF = {op.name: op for op in ARITHMETIC}


# -- functions of two arrays ----------------------------------------------------------------------------------------


def _one_dtype(p: Params, *specs: Spec) -> bool:
    return bool(specs[0].dtype == specs[1].dtype and specs[0].dtype.kind not in "iub")


def _is_float(p: Params, *specs: Spec) -> bool:
    return specs[0].dtype.kind not in "iub"


def _never(p: Params, *specs: Spec) -> bool:
    return False


def _in_one_dtype(body: Any, dtype: Callable[..., Any]) -> Any:
    """A body over arrays of one dtype, over arrays that are cast to that of the result first."""

    def compute(k: Call, p: Params, lhs: Array, rhs: Array) -> Any:
        t = dtype(lhs.dtype, rhs.dtype)
        return body(k, p, lhs.astype(t, copy=False), rhs.astype(t, copy=False))

    return compute


#: Name in ``mx.np`` -> (family of ``mx.nd``, names of inputs, dtype of the result, the array function if it is one).
_TWINS: dict[str, tuple[str, str, Callable[..., Any], str | None]] = {
    "add": ("add", "lhs rhs", common_dtype, "add"),
    "subtract": ("sub", "lhs rhs", signed, "subtract"),
    "multiply": ("mul", "lhs rhs", common_dtype, "multiply"),
    "true_divide": ("div", "lhs rhs", floating, "true_divide"),
    "mod": ("mod", "lhs rhs", counted, None),
    "power": ("power", "lhs rhs", common_dtype, "power:float"),
    "maximum": ("maximum", "lhs rhs", common_dtype, "maximum"),
    "minimum": ("minimum", "lhs rhs", common_dtype, "minimum"),
    "hypot": ("hypot", "x1 x2", floating, None),
}
_COMPARISONS = {
    "equal": "equal",
    "not_equal": "not_equal",
    "less": "lesser",
    "less_equal": "lesser_equal",
    "greater": "greater",
    "greater_equal": "greater_equal",
}


def _copysign(xp: Any, a: Any, b: Any) -> Any:
    low = b < 0
    if b.dtype.kind not in "iub":
        low = low | (1 / b < 0)  # -0.0
    return xp.where(low, -xp.abs(a), xp.abs(a))


def _ldexp(xp: Any, a: Any, b: Any) -> Any:
    if a.dtype.kind in "iub":
        return xp.trunc(a * xp.exp2(b.astype(FLOAT64)))
    return a * xp.exp2(b)


def _gcd(xp: Any, a: Any, b: Any) -> Any:
    a, b = xp.abs(a), xp.abs(b)
    # Euclid's steps; numbers of n bits take at most 1.45 n of them.
    for _ in range(math.ceil(1.45 * 8 * a.dtype.itemsize)):
        zero = b == 0
        a, b = xp.where(zero, a, b), xp.where(zero, b, xp.mod(a, xp.where(zero, xp.ones_like(b), b)))
    return xp.abs(a)  # the least of all numbers has no absolute value


def _lcm(xp: Any, a: Any, b: Any) -> Any:
    divisor = _gcd(xp, a, b)
    return xp.abs(xp.floor_divide(a, xp.where(divisor == 0, xp.ones_like(a), divisor)) * b)


def _floor_divide(xp: Any, a: Any, b: Any) -> Any:
    if a.dtype.kind not in "iub":
        return xp.floor_divide(a, b)
    zero = b == 0
    return xp.where(zero, xp.zeros_like(a), xp.floor_divide(a, xp.where(zero, xp.ones_like(b), b)))


def _fmod(xp: Any, a: Any, b: Any) -> Any:
    if a.dtype.kind not in "iub":
        return xp.fmod(a, b)
    zero = b == 0
    return xp.where(zero, xp.zeros_like(a), xp.fmod(a, xp.where(zero, xp.ones_like(b), b)))


def _logic(name: str) -> Any:
    return lambda xp, a, b: getattr(xp, name)(a != 0, b != 0)


def _copysign_grads(F: Operators, dy: Operand, a: Operand, b: Operand) -> Any:
    return dy * F.sign(a) * F._npi_rcopysign_scalar(b, scalar=1.0), F.zeros_like(b)


def _ldexp_grads(F: Operators, dy: Operand, a: Operand, b: Operand) -> Any:
    factor = dy * F._rpower_scalar(b, scalar=2.0)
    return factor, factor * a * math.log(2)


def _arctan2_grads(F: Operators, dy: Operand, a: Operand, b: Operand) -> Any:
    square = F.square(a) + F.square(b)
    return dy * b / square, -dy * a / square


#: Name -> (function over two arrays of one dtype, expr, gradients, dtype of the result, whether order matters, what it
#: computes).
_FURTHER: dict[str, tuple[Any, str | None, Any, Callable[..., Any], bool, str]] = {
    "arctan2": ("arctan2", "arctan2(a, b)", _arctan2_grads, floating, True, "The angle of the point (rhs, lhs)."),
    "copysign": (
        _copysign,
        "-abs(a) if b < 0 or 1 / b < 0 else abs(a)",
        _copysign_grads,
        measured,
        True,
        "`lhs` with the signs of `rhs`; that of a NaN counts as plus.",
    ),
    "ldexp": (_ldexp, "a * power(2, b)", _ldexp_grads, measured, True, "``lhs * 2**rhs``."),
    "lcm": (_lcm, None, None, whole, False, "The least common multiple."),
    "gcd": (_gcd, None, None, whole, False, "The greatest common divisor."),
    "bitwise_and": ("bitwise_and", None, None, whole, False, "Bits that are set in both."),
    "bitwise_or": ("bitwise_or", None, None, whole, False, "Bits that are set in one or both."),
    "bitwise_xor": ("bitwise_xor", None, None, whole, False, "Bits that differ."),
    "bitwise_left_shift": (
        "left_shift",
        None,
        None,
        whole,
        True,
        "Bits moved to the left by as many places as `rhs` says, fewer than there are.",
    ),
    "bitwise_right_shift": (
        "right_shift",
        None,
        None,
        whole,
        True,
        "Bits moved to the right by as many places as `rhs` says, fewer than there are.",
    ),
    "floor_divide": (
        _floor_divide,
        "floordiv(a, b)",
        None,
        counted,
        True,
        "The quotient, rounded down; 0 of whole numbers by 0.",
    ),
    "fmod": (
        _fmod,
        "fmod(a, b)",
        lambda F, dy, a, b: (dy, -dy * F.trunc(a / b)),
        counted,
        True,
        "The remainder, with the sign of `lhs`; 0 of whole numbers by 0.",
    ),
    "fmax": (
        "fmax",
        "b if isnan(a) else (a if isnan(b) else maximum(a, b))",
        lambda F, dy, a, b: (dy * ((a >= b) + (b != b)), dy * ((a < b) + (a != a))),
        common_dtype,
        False,
        "The larger one; the other one beside a NaN.",
    ),
    "fmin": (
        "fmin",
        "b if isnan(a) else (a if isnan(b) else minimum(a, b))",
        lambda F, dy, a, b: (dy * ((a <= b) + (b != b)), dy * ((a > b) + (a != a))),
        common_dtype,
        False,
        "The smaller one; the other one beside a NaN.",
    ),
    "logical_and": (_logic("logical_and"), None, None, truth, False, "Whether both are not 0."),
    "logical_or": (_logic("logical_or"), None, None, truth, False, "Whether one or both are not 0."),
    "logical_xor": (_logic("logical_xor"), None, None, truth, False, "Whether one alone is not 0."),
}
_BITS = frozenset("bitwise_and bitwise_or bitwise_xor".split())


def _compared_in(*dtypes: Any) -> Any:
    """Values are compared as NumPy promotes them, so that none is rounded to another one."""
    return np.result_type(*dtypes)


def _of_two() -> Iterator[Op]:
    for name, (of, inputs, dtype, direct) in _TWINS.items():
        base = _OF[f"broadcast_{of}"]
        made = twin(
            f"_npi_{name}",
            base,
            when=_one_dtype,
            inputs=inputs,
            body=_in_one_dtype(base.body, dtype),
            grad=gradients_of_two(MATH[of][2]),
            direct=direct,
            alike=elementwise_rule(MATH[of][2]) if direct else None,
        )
        if of in HIGHER:
            made.higher(gradients_of_two(HIGHER[of]))
        made.dtype(rule_of_two(dtype))
        yield made
    for name, of in _COMPARISONS.items():
        base = _OF[f"broadcast_{of}"]
        made = twin(
            f"_npi_{name}", base, when=_never, body=_in_one_dtype(base.body, _compared_in), direct=name, expr=None
        )
        made.dtype(rule_of_two(truth))
        yield made
    for name, (fn, expr, g, dtype, _, doc) in _FURTHER.items():
        f = fn if callable(fn) else lambda xp, a, b, n=fn: getattr(xp, n)(a, b)
        made = broadcast(f"_npi_{name}", f, expr=expr, grad=None if g is None else gradients_of_two(g), doc=doc)
        made.body = _in_one_dtype(made.body, _compared_in if dtype is truth else dtype)
        if name == "arctan2":
            made = twin(made.name, made, inputs="x1 x2", body=made.body)
        made.dtype(rule_of_two(dtype))
        yield made


# -- functions of an array and a number -----------------------------------------------------------------------------

#: Name in ``mx.np`` -> base name in ``mx.nd``.
_NUMBER_TWINS = {
    "add": "plus",
    "subtract": "minus",
    "rsubtract": "rminus",
    "multiply": "mul",
    "true_divide": "div",
    "rtrue_divide": "rdiv",
    "mod": "mod",
    "rmod": "rmod",
    "power": "power",
    "rpower": "rpower",
    "maximum": "maximum",
    "minimum": "minimum",
    "hypot": "hypot",
}


def _compared_with_number(name: str) -> Any:
    """A comparison with a number as it is, not as the dtype of the array holds it: 2 is below 2.5, 0 above -1."""

    def compute(k: Call, p: Params, data: Array) -> Any:
        s, t = p.scalar, data.dtype
        if t.kind in "iub":
            limits = np.iinfo(t if t != BOOL else INT8)
            exact = limits.min <= s <= limits.max and s == int(s)
            data, s = (
                (data.astype(np.dtype(limits.dtype), copy=False), int(s)) if exact else (data.astype(FLOAT64), float(s))
            )
        return getattr(k.xp, name)(data, data.dtype.type(s))

    return compute


def _number_grad(g: Any, on_the_left: bool) -> Any:
    """The gradient of an array from those of two, the number as an array."""

    def rule(F: Operators, p: Params, dy: Operand, data: Operand) -> Any:
        number = F.zeros_like(data) + p.scalar
        return g(F, dy, number, data)[1] if on_the_left else g(F, dy, data, number)[0]

    return rule


def _further_with_number(name: str, on_the_left: bool) -> Op:
    fn, expr, g, dtype, _, doc = _FURTHER[name]
    f = fn if callable(fn) else lambda xp, a, b: getattr(xp, fn)(a, b)

    def compute(xp: Any, x: Any, s: Any) -> Any:
        number = xp.full_like(x, x.dtype.type(s))
        return f(xp, number, x) if on_the_left else f(xp, x, number)

    if expr is not None:
        names = {"a": "s", "b": "x"} if on_the_left else {"a": "x", "b": "s"}
        expr = re.sub(r"\b[ab]\b", lambda m: names[m.group()], expr)
    made = scalar(
        f"_npi_{'r' * on_the_left}{name}_scalar",
        compute,
        expr=expr,
        grad=None if g is None else _number_grad(g, on_the_left),
        doc=doc.replace("rhs" if not on_the_left else "lhs", "scalar").replace("lhs", "data").replace("rhs", "data"),
    )
    if dtype is truth:
        made.body = lambda k, p, data: f(k.xp, data, k.xp.full((), bool(p.scalar), BOOL))
        made.dtype(rule_of_one(truth))
    elif name in _BITS:
        made.body = lambda k, p, data: compute(
            k.xp, data, bool(p.scalar) if data.dtype == BOOL else with_number(p, data)[1]
        )
        made.dtype(rule_of_one(whole))
    elif dtype is whole:
        numbers = made.dtype_rule
        assert numbers is not None

        def of_whole(p: Params, ins: list[Any], outs: list[Any]) -> Any:
            if ins[0] is not None:
                whole(ins[0])
            return numbers(p, ins, outs)

        made.dtype(of_whole)
    return made


def _of_one_and_number() -> Iterator[Op]:
    for name, of in _NUMBER_TWINS.items():
        base = _OF[f"_{of}_scalar"]
        if "true_divide" in name:
            made = twin(
                f"_npi_{name}_scalar",
                base,
                when=_is_float,
                body=cast_first(base.body, floating),
                grad=gradient_of_quotient(base.grad_rule),
            )
            made.dtype(rule_of_one(floating))
        else:
            made = twin(f"_npi_{name}_scalar", base)
        yield made
    for name, of in _COMPARISONS.items():
        base = _OF[f"_{of}_scalar"]
        made = twin(f"_npi_{name}_scalar", base, when=_never, body=_compared_with_number(name), direct=name, expr=None)
        made.dtype(rule_of_one(truth))
        yield made
    for name, row in _FURTHER.items():
        yield _further_with_number(name, False)
        if row[4]:
            yield _further_with_number(name, True)


ARITHMETIC_OF_NUMPY = [*_of_two(), *_of_one_and_number()]
