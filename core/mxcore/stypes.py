"""The sparse storage types as device values, and sums of rows at given places, of which their gradients are made."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ._core.array import Array, Sparse, faces
from ._core.errors import error

__all__ = ["CSR", "HeldRows", "RowSparse", "add_rows", "merge_rows"]


class _Stored(Sparse):
    """A full shape, and the arrays that hold the rest, values last."""

    __slots__ = ("shape", "parts")

    def __init__(self, shape: tuple[int, ...], *parts: Any) -> None:
        self.shape, self.parts = tuple(shape), parts

    def __init_subclass__(cls) -> None:
        faces.setdefault(cls.stype, Array)

    @property
    def values(self) -> Any:
        return self.parts[-1]

    @property
    def dtype(self) -> Any:
        return self.parts[-1].dtype

    def with_parts(self, *parts: Any) -> Any:
        """The same shape with other arrays."""
        return type(self)(self.shape, *parts)

    def astype(self, dtype: Any) -> Any:
        """The values in another dtype."""
        return self.with_parts(*self.parts[:-1], self.parts[-1].astype(dtype))

    def _zeros(self, xp: Any) -> Any:
        try:
            return xp.zeros(self.shape, self.dtype)
        except MemoryError as e:
            raise error(
                MemoryError,
                f"a {self.stype} array of shape {self.shape} does not fit into memory when it is dense: {e}; "
                "use its parts, such as x.data and x.indices",
            ) from None


class RowSparse(_Stored):
    """Some rows of a larger array, the others zero: ``RowSparse(shape, indices, values)``.

    Parameters
    ----------
    shape : tuple of int
        Of the full array.
    *parts : array
        `indices`, sorted and unique, and `values`: ``values[i]`` is row ``indices[i]``.
    """

    __slots__ = ()
    stype = "row_sparse"

    @property
    def indices(self) -> Any:
        return self.parts[0]

    def todense(self, xp: Any) -> Any:
        """The full array."""
        full = self._zeros(xp)
        if self.indices.shape[0]:
            full[self.indices] = self.values
        return full


class HeldRows(RowSparse):
    """All rows of an array, in memory of the value's own: updates move some of them in place, and leave the others.

    Who asks for its parts, or for another value, gets copies.

    Parameters
    ----------
    xp : module
        The array namespace.
    memory : array
        That nobody else has.
    """

    __slots__ = ("xp", "memory")

    def __init__(self, xp: Any, memory: Any) -> None:
        self.xp, self.memory, self.shape = xp, memory, tuple(memory.shape)

    @property
    def indices(self) -> Any:
        return self.xp.arange(self.shape[0])

    @property
    def values(self) -> Any:
        return self.memory.copy()

    @property
    def parts(self) -> Any:  # type: ignore[override]  # which are computed here
        return self.indices, self.values

    @property
    def dtype(self) -> Any:
        return self.memory.dtype

    def frozen(self) -> RowSparse:
        return RowSparse(self.shape, *self.parts)

    def with_parts(self, *parts: Any) -> RowSparse:
        return RowSparse(self.shape, *parts)

    def todense(self, xp: Any) -> Any:
        return self.values


class CSR(_Stored):
    """Compressed sparse rows of a matrix: ``CSR(shape, indptr, indices, values)``.

    Parameters
    ----------
    shape : (int, int)
        Of the full matrix.
    *parts : array
        `indptr`, `indices` and `values`: row i has ``values[indptr[i]:indptr[i + 1]]`` in the columns ``indices[…]`` of
        the same places.
    """

    __slots__ = ()
    stype = "csr"

    @property
    def indptr(self) -> Any:
        return self.parts[0]

    @property
    def indices(self) -> Any:
        return self.parts[1]

    def todense(self, xp: Any) -> Any:
        """The full matrix."""
        full = self._zeros(xp)
        rows = xp.repeat(xp.arange(self.shape[0]), xp.diff(self.indptr))
        full[rows, self.indices] = self.values
        return full


def add_rows(xp: Any, shape: tuple[int, ...], index: Any, values: Any) -> Any:
    """Zeros of `shape` with ``values[i]`` added to row ``index[i]``; `index` is 1-D and in range."""
    width, out = prod(shape[1:]), xp.zeros(shape, values.dtype)
    if xp is np:  # which adds at flat places several times faster than it adds rows
        flat = index if width == 1 else (index[:, None] * width + xp.arange(width)).reshape(-1)
        xp.add.at(out.reshape(-1), flat, values.reshape(-1))
    else:
        xp.add.at(out, index, values.reshape(index.shape[0], *shape[1:]))
    return out


def merge_rows(xp: Any, shape: tuple[int, ...], indices: Any, values: Any) -> RowSparse:
    """A row-sparse value from rows with repeated indices: equal rows are summed, indices sorted.

    Parameters
    ----------
    xp : module
        The array namespace.
    shape : tuple of int
        Of the full array.
    indices : array, (n,)
        In any order, and repeated.
    values : array, (n, ...)
        The rows.
    """
    rows, place = xp.unique(indices, return_inverse=True)
    return RowSparse(shape, rows, add_rows(xp, (rows.shape[0], *shape[1:]), place.reshape(-1), values))
