"""The symbols of ``mx.sym.np``: graphs whose outputs are arrays of ``mx.np``."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from ..._core.errors import error
from ...ndarray.numpy import ndarray
from ...ndarray.numpy.methods import METHODS, axes_of, method, shape_of
from ...ops.common.python_operators import NUMPY_COMPARISONS, NUMPY_OPERATORS, NUMPY_UNARY, arithmetic
from .. import files
from ..symbol import Symbol
from .indexing import get_item

__all__ = ["_Symbol", "load", "load_json"]


@partial(arithmetic, operators=NUMPY_OPERATORS, comparisons=NUMPY_COMPARISONS, unary=NUMPY_UNARY)
class _Symbol(Symbol):
    """One or several outputs of a graph, which are arrays of ``mx.np``.

    Its methods are those of arrays, as far as a graph can have them. An index selects a part of the only output, as of
    an array; of several outputs it chooses some, as in ``mx.sym``.
    """

    __slots__ = ()
    array = ndarray

    def as_nd_ndarray(self) -> Symbol:
        """The same outputs as a symbol of ``mx.sym``."""
        return Symbol(self._heads)

    def as_np_ndarray(self) -> _Symbol:
        """This symbol."""
        return self

    @property
    def T(self) -> _Symbol:
        """The array with its axes reversed."""
        return self.transpose()

    def __getitem__(self, key: Any) -> Symbol:
        if len(self._heads) == 1 and not isinstance(key, str):
            found: Symbol = get_item(_functions(), self, key)
            return found
        return super().__getitem__(key)

    def __len__(self) -> int:
        return len(self._several("has no len()"))

    def __iter__(self) -> Iterator[Symbol]:
        return map(super().__getitem__, range(len(self._several("cannot be iterated over"))))

    def _several(self, what: str) -> list[Any]:
        if len(self._heads) == 1:
            raise error(
                TypeError, f"symbol '{self.name}' {what}: a graph does not know how long its array is until it runs"
            )
        return self._heads

    # -- methods whose arguments are not those of the function -------------------------------------------------
    def reshape(self, *shape: Any, **kwargs: Any) -> _Symbol:
        """The elements in another shape; see ``ndarray.reshape``."""
        found: _Symbol = _functions().reshape(self, *shape_of(shape, kwargs))
        return found

    def transpose(self, *axes: Any, **kwargs: Any) -> _Symbol:
        """Permute the axes; reverse them without an argument."""
        found: _Symbol = _functions().transpose(self, axes_of(axes, kwargs))
        return found

    def clip(self, min: Any = None, max: Any = None, out: Any = None) -> _Symbol:
        """The values limited to an interval; see ``ndarray.clip``."""
        found: _Symbol = _functions().clip(self, min, max, out)
        return found

    def flatten(self, order: str = "C") -> _Symbol:  # type: ignore[override]
        """The elements in one dimension."""
        return self.reshape(-1, order=order)


def _functions() -> Any:
    """The functions of ``mx.np`` over symbols, which are written over this class."""
    from .face import symbols

    return symbols


for _name, _target in {
    **METHODS,
    "broadcast_to": "broadcast_to",
    "squeeze": "squeeze",
    "split_v2": "array_split",
}.items():
    setattr(_Symbol, _name, method(_name, _target, _functions))
_Symbol.result = _Symbol


def load(fname: Any) -> _Symbol:
    """Read a graph from a file or URL, as ``mx.sym.load`` does; its outputs are arrays of ``mx.np``."""
    return _Symbol(files.load(fname)._heads)


def load_json(json_str: str) -> _Symbol:
    """Read a graph from MXNet's JSON, as ``mx.sym.load_json`` does; its outputs are arrays of ``mx.np``."""
    return _Symbol(files.load_json(json_str)._heads)
