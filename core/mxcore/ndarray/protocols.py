"""NumPy's functions on our arrays: computed on copies in the host's memory; operators of Python remain ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._core.array import Array
from .._core.errors import error
from ..ops.common.python_operators import COMPARISONS, OPERATORS

__all__ = ["array_function", "array_ufunc"]

_SWAPPED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}
_UFUNCS = {
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "true_divide",
    "mod": "remainder",
    "pow": "power",
    "eq": "equal",
    "ne": "not_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "lt": "less",
    "le": "less_equal",
}
#: NumPy's function -> our method, where a value of NumPy's stands on the left of an operator.
_REFLECTED = {getattr(np, _UFUNCS.get(n, n)): f"__{_SWAPPED.get(n) or 'r' + n}__" for n in (*OPERATORS, *COMPARISONS)}
#: Functions that NumPy leaves to a method of the array, whose results are our arrays in MXNet, too.
_METHODS = {getattr(np, n): n for n in "sum prod max min argmax argmin clip squeeze swapaxes transpose".split()}
_FACTS = {np.shape: "shape", np.ndim: "ndim", np.size: "size"}
#: What writes to its first argument, which would be a copy.
_WRITERS = {getattr(np, n) for n in "copyto fill_diagonal place put put_along_axis putmask".split()}


def _copy(x: Any, what: str) -> Any:
    """Arrays as NumPy's, also inside of lists; refused where that would fetch them from another memory."""
    if isinstance(x, Array):
        d = x._data if x.stype == "default" else x._data.values
        if not isinstance(d, np.ndarray):
            raise error(TypeError, f"{what} would copy an array from {x.context} unasked; give it x.asnumpy()")
        return x.asnumpy()
    if x.__class__ in (list, tuple):
        return x.__class__([_copy(v, what) for v in x])
    return x


def _no_target(x: Any, what: str) -> None:
    if any(isinstance(y, Array) for y in (x if isinstance(x, tuple) else (x,))):
        raise error(
            TypeError,
            f"{what} cannot write to an NDArray: it would write to a copy; "
            "give it a NumPy array, and write x[:] = result",
        )


def array_ufunc(self: Any, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """``np.sqrt(x)`` and ``np.float32(2) * x``, which is ours."""
    out = kwargs.get("out", ())
    if (
        method == "__call__"
        and not out
        and len(inputs) == 2
        and inputs[1] is self
        and not isinstance(inputs[0], Array)
        and ufunc in _REFLECTED
    ):
        return getattr(self, _REFLECTED[ufunc])(inputs[0])
    what = f"numpy.{ufunc.__name__}"
    _no_target(inputs[0] if method == "at" else out, what)
    return getattr(ufunc, method)(*[_copy(x, what) for x in inputs], **kwargs)


def array_function(
    self: Any, func: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """``np.mean(x)`` and all other functions of NumPy that are no ufuncs."""
    if args and isinstance(args[0], Array):
        x, *more = args
        if func in _METHODS and {*kwargs} <= {"axis", "keepdims"}:
            return getattr(x, _METHODS[func])(*more, **kwargs)
        if not more and not kwargs:
            if func is np.round:
                return x.round()
            if func in _FACTS:
                return getattr(x, _FACTS[func])
    what = f"numpy.{func.__name__}"
    _no_target(kwargs.get("out") if func not in _WRITERS else (*args[:1], *kwargs.values()), what)
    return func(*_copy(args, what), **{k: _copy(v, what) for k, v in kwargs.items()})
