"""The functions ``mx.sym.<operator>``."""

from __future__ import annotations

from typing import Any

from .._core.op import Op
from .._op_functions import LAST_OF_SYMBOLS, docstring, signature
from .symbol import Symbol, compose

__all__ = ["symbol_function"]


def symbol_function(name: str, op: Op) -> Any:
    """The function ``mx.sym.<name>``: inputs are symbols, ``name=`` names the node."""

    def fn(*args: Any, **kwargs: Any) -> Symbol:
        return compose(name, args, kwargs, op)

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = docstring(op)
    fn.__signature__ = signature(op, LAST_OF_SYMBOLS)  # type: ignore[attr-defined]
    return fn
