"""Sums of rows at given places: what gradients of lookups and row-sparse values are made of."""
from __future__ import annotations

from math import prod
from typing import Any

from ._core.array import RowSparse

__all__ = ["add_rows", "merge_rows"]


def add_rows(xp: Any, shape: tuple[int, ...], index: Any, values: Any) -> Any:
    """Zeros of `shape` with ``values[i]`` added to row ``index[i]``; `index` is 1-D and in range."""
    width = prod(shape[1:])
    out = xp.zeros(prod(shape), values.dtype)
    # Adding at flat places is several times faster than adding rows.
    flat = index if width == 1 else (index[:, None] * width + xp.arange(width)).reshape(-1)
    xp.add.at(out, flat, values.reshape(-1))
    return out.reshape(shape)


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
