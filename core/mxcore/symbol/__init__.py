"""Symbols: graphs of operators, as ``mxnet.symbol`` and ``mx.sym``."""
from __future__ import annotations

from typing import Any

from .._core.op import Op
from .._views import docstring, namespace, signature
from .files import load, load_json
from .symbol import Group, Symbol, Variable, compose, var
from .tape import from_tape

__all__ = ["Group", "Symbol", "Variable", "compose", "from_tape", "fromjson", "load", "load_json", "symbol_function", "var"]


fromjson = load_json


def symbol_function(name: str, op: Op) -> Any:
    """The function ``mx.sym.<name>``: inputs are symbols, ``name=`` names the node."""
    def fn(*args: Any, **kwargs: Any) -> Symbol:
        return compose(name, args, kwargs, op)

    fn.__name__ = fn.__qualname__ = name
    fn.__module__ = "mxcore.symbol"
    fn.__doc__ = docstring(op)
    fn.__signature__ = signature(op, "attr")  # type: ignore[attr-defined]
    return fn


# After symbol_function, which they use.
from . import _internal, contrib, image, linalg, op, random, sparse  # noqa: E402

__all__ += ["contrib", "image", "linalg", "op", "random", "sparse"]
_ = _internal

__getattr__, __dir__ = namespace(globals(), "op", symbol_function)
