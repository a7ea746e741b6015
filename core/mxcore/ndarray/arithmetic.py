"""Functions that take arrays or numbers on either side: ``mx.nd.add``, ``maximum``, ``equal`` and kin."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

from .._core import tables
from .._core.array import Array
from .._core.errors import error

__all__ = [
    "add",
    "subtract",
    "multiply",
    "divide",
    "true_divide",
    "modulo",
    "power",
    "maximum",
    "minimum",
    "equal",
    "not_equal",
    "greater",
    "greater_equal",
    "lesser",
    "lesser_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
]


def _function(
    name: str, array_op: str, scalar_op: str, reflected_op: str, plain: Callable[[Any, Any], Any], what: str
) -> Any:
    def fn(lhs: Any, rhs: Any) -> Any:
        if isinstance(lhs, Array):
            if isinstance(rhs, Array):
                return tables.ops.get(array_op)(lhs, rhs)
            if isinstance(rhs, numbers.Number):
                return tables.ops.get(scalar_op)(lhs, scalar=rhs)
        elif isinstance(lhs, numbers.Number):
            if isinstance(rhs, Array):
                return tables.ops.get(reflected_op)(rhs, scalar=lhs)
            if isinstance(rhs, numbers.Number):
                return plain(lhs, rhs)
        bad = rhs if isinstance(lhs, (Array, numbers.Number)) else lhs
        raise error(TypeError, f"nd.{name} takes arrays and numbers, got {type(bad).__name__}")

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = (
        f"{what} of two arrays (with broadcasting), an array and a number, or two numbers.\n\n"
        "Parameters\n----------\nlhs, rhs : NDArray or float\n\nReturns\n-------\nNDArray or float"
    )
    return fn


def _all(suffix: str, reflected: str, name: str, plain: Callable[[Any, Any], Any], what: str) -> Any:
    return _function(name, f"broadcast_{suffix}", f"_{suffix}_scalar", f"_{reflected}_scalar", plain, what)


add = _function("add", "broadcast_add", "_plus_scalar", "_plus_scalar", lambda a, b: a + b, "Sum")
subtract = _function("subtract", "broadcast_sub", "_minus_scalar", "_rminus_scalar", lambda a, b: a - b, "Difference")
multiply = _function("multiply", "broadcast_mul", "_mul_scalar", "_mul_scalar", lambda a, b: a * b, "Product")
divide = _function("divide", "broadcast_div", "_div_scalar", "_rdiv_scalar", lambda a, b: a / b, "Quotient")
true_divide = divide
modulo = _function("modulo", "broadcast_mod", "_mod_scalar", "_rmod_scalar", lambda a, b: a % b, "Remainder")
_power = _function("power", "broadcast_power", "_power_scalar", "_rpower_scalar", lambda a, b: a**b, "Power")


def power(base: Any, exp: Any) -> Any:
    """`base` to the power `exp`: two arrays (with broadcasting), an array and a number, or two numbers.

    Parameters
    ----------
    base, exp : NDArray or float

    Returns
    -------
    NDArray or float
    """
    return _power(base, exp)


maximum = _all("maximum", "maximum", "maximum", max, "Elementwise maximum")
minimum = _all("minimum", "minimum", "minimum", min, "Elementwise minimum")
equal = _all("equal", "equal", "equal", lambda a, b: float(a == b), "1 where equal, else 0,")
not_equal = _all("not_equal", "not_equal", "not_equal", lambda a, b: float(a != b), "1 where different, else 0,")
greater = _all("greater", "lesser", "greater", lambda a, b: float(a > b), "1 where the first is greater, else 0,")
greater_equal = _all(
    "greater_equal",
    "lesser_equal",
    "greater_equal",
    lambda a, b: float(a >= b),
    "1 where the first is greater or equal, else 0,",
)
lesser = _all("lesser", "greater", "lesser", lambda a, b: float(a < b), "1 where the first is less, else 0,")
lesser_equal = _all(
    "lesser_equal",
    "greater_equal",
    "lesser_equal",
    lambda a, b: float(a <= b),
    "1 where the first is less or equal, else 0,",
)
logical_and = _all("logical_and", "logical_and", "logical_and", lambda a, b: float(bool(a) and bool(b)), "Logical and")
logical_or = _all("logical_or", "logical_or", "logical_or", lambda a, b: float(bool(a) or bool(b)), "Logical or")
logical_xor = _all(
    "logical_xor", "logical_xor", "logical_xor", lambda a, b: float(bool(a) != bool(b)), "Logical exclusive or"
)
