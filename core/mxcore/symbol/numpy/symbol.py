"""The symbols of ``mx.sym.np``: graphs whose outputs are arrays of ``mx.np``."""

from __future__ import annotations

from functools import partial

from ...ndarray.numpy import ndarray
from ...ops.common.python_operators import NUMPY_COMPARISONS, NUMPY_OPERATORS, NUMPY_UNARY, arithmetic
from ..symbol import Symbol

__all__ = ["_Symbol"]


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
