"""The symbols of ``mx.sym.np``: graphs whose outputs are arrays of ``mx.np``."""

from __future__ import annotations

from functools import partial
from typing import Any

from ...ndarray.numpy import ndarray
from ...ops.common.python_operators import NUMPY_COMPARISONS, NUMPY_OPERATORS, NUMPY_UNARY, arithmetic
from .. import files
from ..symbol import Symbol

__all__ = ["_Symbol", "load", "load_json"]


@partial(arithmetic, operators=NUMPY_OPERATORS, comparisons=NUMPY_COMPARISONS, unary=NUMPY_UNARY)
class _Symbol(Symbol):
    """One or several outputs of a graph, which are arrays of ``mx.np``."""

    __slots__ = ()
    array = ndarray

    def as_nd_ndarray(self) -> Symbol:
        """The same outputs as a symbol of ``mx.sym``."""
        return Symbol(self._heads)

    def as_np_ndarray(self) -> _Symbol:
        """This symbol."""
        return self


_Symbol.result = _Symbol


def load(fname: Any) -> _Symbol:
    """Read a graph from a file or URL, as ``mx.sym.load`` does; its outputs are arrays of ``mx.np``."""
    return _Symbol(files.load(fname)._heads)


def load_json(json_str: str) -> _Symbol:
    """Read a graph from MXNet's JSON, as ``mx.sym.load_json`` does; its outputs are arrays of ``mx.np``."""
    return _Symbol(files.load_json(json_str)._heads)
