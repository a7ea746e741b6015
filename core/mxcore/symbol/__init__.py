"""Symbols: graphs of operators, as ``mxnet.symbol`` and ``mx.sym``."""

from __future__ import annotations

from typing import Any

from .._core.op import Op
from .._views import LAST_OF_SYMBOLS, docstring, namespace, signature
from .creation import arange, eye, full, histogram, hypot, linspace, maximum, minimum, ones, pow, power, split_v2, zeros
from .files import fromjson, load, load_json
from .symbol import Group, Symbol, compose
from .tape import from_tape
from .variable import Variable, var

__all__ = [
    "Group",
    "Symbol",
    "Variable",
    "arange",
    "compose",
    "eye",
    "from_tape",
    "fromjson",
    "full",
    "histogram",
    "hypot",
    "linspace",
    "load",
    "load_json",
    "maximum",
    "minimum",
    "ones",
    "pow",
    "power",
    "split_v2",
    "symbol_function",
    "var",
    "zeros",
]


def symbol_function(name: str, op: Op) -> Any:
    """The function ``mx.sym.<name>``: inputs are symbols, ``name=`` names the node."""

    def fn(*args: Any, **kwargs: Any) -> Symbol:
        return compose(name, args, kwargs, op)

    fn.__name__ = fn.__qualname__ = name
    fn.__module__ = "mxcore.symbol"
    fn.__doc__ = docstring(op)
    fn.__signature__ = signature(op, LAST_OF_SYMBOLS)  # type: ignore[attr-defined]
    return fn


# After symbol_function, which they use.
from . import _internal, contrib, image, linalg, op, random, sparse  # noqa: E402

__all__ += ["contrib", "image", "linalg", "op", "random", "sparse"]
_ = _internal

__getattr__, __dir__ = namespace(globals(), "op", symbol_function)
