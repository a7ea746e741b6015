"""Symbols as the functions of ``mx.np`` are written over them."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from ..._core.errors import error
from ...np_functions import Face
from ...np_functions.python_methods import give_methods
from ..compose import entries
from .symbol import _Symbol

__all__ = ["Symbols", "symbols"]


class Symbols(Face):
    """Operators that become nodes of a graph."""

    value = _Symbol
    place = "symbols"

    def call(self, op: str, *inputs: Any, out: Any = None, ctx: Any = None, **params: Any) -> Any:
        for x in inputs:
            if not isinstance(x, _Symbol):
                raise error(
                    TypeError,
                    f"operator {op} takes symbols of mx.sym.np here, got {type(x).__name__}; as_np_ndarray() of a "
                    "symbol makes one",
                )
        given = {k: v for k, v in params.items() if v is not None}
        if ctx is not None:
            given["ctx"] = ctx
        heads = entries(op, inputs, given)
        return _Symbol(heads) if len(heads) == 1 else [_Symbol([h]) for h in heads]

    def run(self, op: str, args: Any, kwargs: dict[str, Any]) -> Any:
        return _Symbol(entries(op, args, kwargs))

    def from_host(self, host: Any, ctx: Any = None) -> Any:
        """Refuse an array in the place of a symbol."""
        raise error(TypeError, "arrays are made by mx.np, not by mx.sym.np; a graph gets them as variables, mx.sym.var")

    def placed(self, x: Any, ctx: Any = None) -> Any:
        """Refuse a context: a graph is placed when it is bound."""
        raise error(TypeError, f"a symbol has no context, got {ctx}; `with mx.AttrScope(ctx_group=...)` places it")

    def with_number(self, name: str, op: str, x: Any, number: Any, out: Any = None) -> Any:
        """What an operator of a symbol and a number gives; `name` is the function's."""
        if not isinstance(number, (numbers.Number, np.generic)):
            raise error(TypeError, f"np.{name}: a symbol cannot be combined with a {type(number).__name__}")
        return self.call(op, x, scalar=number)


#: The face of symbols.
symbols = Symbols()
give_methods(symbols)
