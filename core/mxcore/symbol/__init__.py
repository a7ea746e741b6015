"""Symbols: graphs of operators, as ``mxnet.symbol`` and ``mx.sym``."""

from __future__ import annotations

from typing import Any

from .. import _importing
from .._op_functions import namespace
from . import _internal, contrib, image, linalg, op, random, sparse
from .creation import arange, eye, full, histogram, hypot, linspace, maximum, minimum, ones, pow, power, split_v2, zeros
from .files import fromjson, load, load_json
from .function import symbol_function
from .symbol import Group, Symbol, compose
from .tape import from_tape
from .variable import Variable, var

__all__ = [
    "Group",
    "Symbol",
    "Variable",
    "_internal",
    "arange",
    "compose",
    "contrib",
    "eye",
    "from_tape",
    "fromjson",
    "full",
    "histogram",
    "hypot",
    "image",
    "linalg",
    "linspace",
    "load",
    "load_json",
    "maximum",
    "minimum",
    "ones",
    "op",
    "pow",
    "power",
    "random",
    "sparse",
    "split_v2",
    "symbol_function",
    "var",
    "zeros",
]


_operators, __dir__ = namespace(globals(), "op", symbol_function)
#: The faces of ``mx.np`` and ``mx.npx``, imported when they are asked for.
_NUMPY = {"np": "numpy", "numpy": "numpy", "npx": "numpy_extension", "numpy_extension": "numpy_extension"}


def __getattr__(name: str) -> Any:
    if name in _NUMPY:
        found = globals()[name] = _importing.load(f"{__name__}.{_NUMPY[name]}")
        return found
    return _operators(name)
