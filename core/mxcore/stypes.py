"""The sparse storage types as device values, and sums of rows at given places, of which their gradients are made."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ._core.array import Array, Sparse, faces
from ._core.errors import error
from ._core.transfer import overlaps
from .halves import is_half

__all__ = ["CSR", "HeldRows", "RowSparse", "add_rows", "merge_rows"]


class _Stored(Sparse):
    """A full shape, and the arrays that hold the rest, values last."""

    __slots__ = ("shape", "parts", "sound", "__weakref__")

    def __init__(self, shape: tuple[int, ...], *parts: Any) -> None:
        self.shape, self.parts = tuple(shape), parts
        #: Whether a kernel has looked at the places; nobody writes to those of a value.
        self.sound = False

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

    def copy(self) -> Any:
        """The same value as it is now, in memory of its own."""
        return self.with_parts(*[part.copy() for part in self.parts])

    def is_apart(self, device: Any, others: Any) -> bool:
        datas = [x._data for x in others if x is not None]
        if any(isinstance(d, HeldRows) for d in (self, *datas)):
            return False
        parts = [part for d in datas for part in (d.parts if isinstance(d, Sparse) else [d])]  # type: ignore[attr-defined]
        return all(device.owns(part) and not overlaps(device, part, parts) for part in self.parts)

    def copied(self, name: str) -> Any:
        """A copy of the part of that name."""
        return getattr(self, name).copy()

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

    @property
    def whole(self) -> Any:
        """The full array, for reading it at once, where all rows are stored; else None."""
        indices, values = self.parts
        return values if indices.shape[0] == self.shape[0] else None

    def todense(self, xp: Any) -> Any:
        """The full array."""
        full = self._zeros(xp)
        if self.indices.shape[0]:
            full[self.indices] = self.values
        return full


class HeldRows(RowSparse):
    """All rows of an array, in memory of the value's own: updates move some of them in place, and leave the others.

    Lazy updates of row-sparse weights give it, so that only the first one copies the weight. Who asks for its parts, or
    for another value, gets copies.

    Parameters
    ----------
    xp : module
        The array namespace.
    memory : array
        That nobody else has. A kernel moves it where its result takes the value's place (`k.replaces`).
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
    def whole(self) -> Any:
        return self.memory

    @property
    def parts(self) -> Any:  # type: ignore[override]  # which are computed here
        return self.indices, self.values

    @property
    def dtype(self) -> Any:
        return self.memory.dtype

    def frozen(self) -> RowSparse:
        return RowSparse(self.shape, *self.parts)

    def copy(self) -> RowSparse:
        return self.frozen()  # whose parts are new

    def copied(self, name: str) -> Any:
        return getattr(self, name)

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
    if is_half(values.dtype):
        return _half_rows(xp, shape, index, values)
    out = xp.zeros(shape, values.dtype)
    _add_at(xp, out, index, values)
    return out


#: How many elements of half precision are made float32 at once.
_BLOCK = 1 << 20


def _half_rows(xp: Any, shape: tuple[int, ...], index: Any, values: Any) -> Any:
    """The same of half precision, added up in float32: only the rows that are named, and part by part."""
    dtype, n = values.dtype, index.shape[0]
    rows, count = None, shape[0]
    if isinstance(values, np.ndarray) and n < count:  # of a large table few rows are read
        rows, index = np.unique(index, return_inverse=True)
        count = rows.shape[0]
    sums = xp.zeros((count, *shape[1:]), np.float32)
    values = values.reshape(n, *shape[1:])
    step = max(_BLOCK // max(prod(shape[1:]), 1), 1)
    for first in range(0, n, step):
        part = slice(first, first + step)
        _add_at(xp, sums, index[part], values[part].astype(np.float32))
    if rows is None:
        return sums.astype(dtype)
    out = xp.zeros(shape, dtype)
    out[rows] = sums.astype(dtype)
    return out


def _add_at(xp: Any, out: Any, index: Any, values: Any) -> None:
    """Add ``values[i]`` to row ``index[i]`` of `out`, in place."""
    width = prod(out.shape[1:])
    if isinstance(out, np.ndarray):  # NumPy adds at flat places several times faster than it adds rows
        flat = index if width == 1 else (index[:, None] * width + xp.arange(width)).reshape(-1)
        xp.add.at(out.reshape(-1), flat, values.reshape(-1))
    else:
        xp.add.at(out, index, values.reshape(index.shape[0], *out.shape[1:]))


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
