"""Python's operators over graph values, and the table that arrays share: which operators of the registry they are."""
from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["OPERATORS", "COMPARISONS", "Arithmetic"]

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


class Arithmetic:
    """Operators for classes that give `_binary`, `_scalar` and `_unary`."""

    __slots__ = ()
    __array_ufunc__ = None  # numbers of NumPy on the left leave the operation to the value
    _binary: Callable[[str, str, Any], Any]  # (elementwise operator, broadcasting operator, other)
    _scalar: Callable[[str, float], Any]
    _unary: Callable[[str], Any]

    def __neg__(self) -> Any:
        return self._unary("negative")

    def __abs__(self) -> Any:
        return self._unary("abs")


def _plain(elementwise: str, broadcast: str, scalar_op: str) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        if isinstance(other, (numbers.Number, np.bool_, np.ndarray)):
            return self._scalar(scalar_op, other)
        if isinstance(other, Arithmetic):
            return self._binary(elementwise, broadcast, other)
        return NotImplemented

    return method


for _name, (_e, _b, _s, _r) in OPERATORS.items():
    setattr(Arithmetic, f"__{_name}__", _plain(_e, _b, _s))
    setattr(Arithmetic, f"__r{_name}__", _plain(_e, _b, _r))
for _name, (_e, _b, _s) in COMPARISONS.items():
    setattr(Arithmetic, f"__{_name}__", _plain(_e, _b, _s))
Arithmetic.__hash__ = object.__hash__  # type: ignore[method-assign]
