"""Python's operators: which of the registry they are, for arrays, symbols and gradient rules in graphs."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from ...composing import Value

__all__ = [
    "COMPARISONS",
    "NUMPY_COMPARISONS",
    "NUMPY_OPERATORS",
    "NUMPY_UNARY",
    "OPERATORS",
    "UNARY",
    "arithmetic",
    "composes",
]


#: Python name -> (elementwise op, broadcasting op, op with a scalar, op with the scalar on the left)
OPERATORS: dict[str, tuple[str, str, str, str]] = {
    "add": ("elemwise_add", "broadcast_add", "_plus_scalar", "_plus_scalar"),
    "sub": ("elemwise_sub", "broadcast_sub", "_minus_scalar", "_rminus_scalar"),
    "mul": ("elemwise_mul", "broadcast_mul", "_mul_scalar", "_mul_scalar"),
    "truediv": ("elemwise_div", "broadcast_div", "_div_scalar", "_rdiv_scalar"),
    "mod": ("_mod", "broadcast_mod", "_mod_scalar", "_rmod_scalar"),
    "pow": ("_power", "broadcast_power", "_power_scalar", "_rpower_scalar"),
}
#: Python name -> (elementwise op, broadcasting op, op with a scalar)
COMPARISONS: dict[str, tuple[str, str, str]] = {
    "eq": ("_equal", "broadcast_equal", "_equal_scalar"),
    "ne": ("_not_equal", "broadcast_not_equal", "_not_equal_scalar"),
    "gt": ("_greater", "broadcast_greater", "_greater_scalar"),
    "ge": ("_greater_equal", "broadcast_greater_equal", "_greater_equal_scalar"),
    "lt": ("_lesser", "broadcast_lesser", "_lesser_scalar"),
    "le": ("_lesser_equal", "broadcast_lesser_equal", "_lesser_equal_scalar"),
}
#: Python name -> operator
UNARY: dict[str, str] = {"neg": "negative", "abs": "abs"}


def _of_numpy(name: str, left: str = "") -> tuple[str, str, str, str]:
    return f"_npi_{name}", f"_npi_{name}", f"_npi_{name}_scalar", f"_npi_{left or name}_scalar"


#: The same of ``mx.np``.
NUMPY_OPERATORS: dict[str, tuple[str, str, str, str]] = {
    "add": _of_numpy("add"),
    "sub": _of_numpy("subtract", "rsubtract"),
    "mul": _of_numpy("multiply"),
    "truediv": _of_numpy("true_divide", "rtrue_divide"),
    "floordiv": _of_numpy("floor_divide", "rfloor_divide"),
    "mod": _of_numpy("mod", "rmod"),
    "pow": _of_numpy("power", "rpower"),
    "and": _of_numpy("bitwise_and"),
    "or": _of_numpy("bitwise_or"),
    "xor": _of_numpy("bitwise_xor"),
    "lshift": _of_numpy("bitwise_left_shift", "rbitwise_left_shift"),
    "rshift": _of_numpy("bitwise_right_shift", "rbitwise_right_shift"),
}
NUMPY_COMPARISONS: dict[str, tuple[str, str, str]] = {
    name: _of_numpy(op)[:3]
    for name, op in {
        "eq": "equal",
        "ne": "not_equal",
        "gt": "greater",
        "ge": "greater_equal",
        "lt": "less",
        "le": "less_equal",
    }.items()
}
NUMPY_UNARY: dict[str, str] = {
    "neg": "_npi_negative",
    "abs": "_npi_absolute",
    "invert": "_npi_bitwise_not",
    "pos": "_np_copy",
}


def arithmetic(
    cls: type,
    operators: dict[str, tuple[str, str, str, str]] = OPERATORS,
    comparisons: dict[str, tuple[str, str, str]] = COMPARISONS,
    unary: dict[str, str] = UNARY,
) -> type:
    """Give Python's operators to a class of values over nodes.

    Parameters
    ----------
    operators, comparisons, unary : dict
        Which of the registry they are.
    cls : type
        It has the methods ``_binary(elementwise operator, broadcasting operator, other)``, ``_scalar(operator,
        number)`` and ``_unary(operator)``.
    """

    def method(elementwise: str, broadcast: str, scalar_op: str) -> Callable[[Any, Any], Any]:
        def compute(self: Any, other: Any) -> Any:
            if isinstance(other, (numbers.Number, np.generic, np.ndarray)):
                return self._scalar(scalar_op, other)
            return self._binary(elementwise, broadcast, other) if isinstance(other, cls) else NotImplemented

        return compute

    def of_one(op: str) -> Callable[..., Any]:
        return lambda self: self._unary(op)

    made: dict[str, Any] = {f"__{name}__": of_one(op) for name, op in unary.items()}
    for name, (e, b, s, r) in operators.items():
        made |= {f"__{name}__": method(e, b, s), f"__r{name}__": method(e, b, r)}
    made |= {f"__{name}__": method(*row) for name, row in comparisons.items()}
    for name, fn in made.items():
        fn.__name__, fn.__qualname__ = name, f"{cls.__name__}.{name}"
        setattr(cls, name, fn)
    cls.__hash__ = object.__hash__  # type: ignore[assignment, method-assign]
    cls.__array_ufunc__ = None  # type: ignore[attr-defined]  # numbers of NumPy on the left leave the operation to the value
    return cls


def composes(x: Any) -> bool:
    """Whether Python's operators make nodes of a graph of it."""
    return hasattr(type(x), "_binary")


arithmetic(Value)
