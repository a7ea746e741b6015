"""Storage types: conversion between dense, row_sparse and csr, and operators on stored rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import facets  # noqa: F401  `helpers` is one
from ..._core.op import Op, op
from ..._core.params import Params
from ...elementwise import number_dtype, with_number
from ...parameters import Bool, Enum, Float, Int
from ...stypes import CSR, RowSparse
from ...typing import Array, Call
from ..common.rules import first_dtype, size_of

__all__ = ["ON_STORED", "csr_from", "dense_of", "padded", "rows_at", "rows_of", "to_csr", "to_rows", "to_stype"]


def dense_of(xp: Any, x: Any) -> Any:
    """A value as a dense array."""
    return x.todense(xp) if isinstance(x, (CSR, RowSparse)) else x


def to_rows(xp: Any, x: Any) -> RowSparse:
    """A dense array as its rows that are not all zero."""
    if not x.ndim:
        raise ValueError("an array without dimensions has no rows")
    rows = xp.flatnonzero((x != 0).reshape(x.shape[0], size_of(x.shape[1:])).any(1))
    return RowSparse(x.shape, rows.astype(np.int64), x[rows])


def to_csr(xp: Any, x: Any) -> CSR:
    """A dense matrix as its elements that are not zero."""
    if x.ndim != 2:
        raise ValueError(f"csr holds matrices, not arrays of {x.ndim} dimensions")
    rows, cols = xp.nonzero(x)
    return csr_from(xp, x.shape, rows, cols, x[rows, cols])


def csr_from(xp: Any, full: tuple[int, ...], rows: Any, cols: Any, values: Any) -> CSR:
    """A matrix from coordinates, in order."""
    start = xp.zeros(full[0] + 1, np.int64)
    start[1:] = xp.cumsum(xp.bincount(rows, minlength=full[0]))
    return CSR(full, start, cols.astype(np.int64), values)


def rows_of(xp: Any, x: CSR) -> Any:
    """The row of each stored value."""
    return xp.repeat(xp.arange(x.shape[0]), xp.diff(x.indptr))


def padded(xp: Any, rows: Any) -> Any:
    """Indices and one more, that nothing is equal to: what `searchsorted` finds is always there."""
    return xp.concatenate([rows, xp.full((1,), -1, rows.dtype)])


def rows_at(xp: Any, x: RowSparse, index: Any) -> Any:
    """The rows of an array that `index` names, stored or not."""
    if x.whole is not None:
        return xp.take(x.whole, index, 0)
    if not x.indices.shape[0]:
        return xp.zeros((*index.shape, *x.shape[1:]), x.dtype)
    at = xp.searchsorted(x.indices, index)
    there = padded(xp, x.indices)[at] == index
    found = x.values[xp.where(there, at, 0)]
    found[~there] = 0
    return found


_TO = {"default": lambda xp, x: x, "row_sparse": to_rows, "csr": to_csr}


def to_stype(xp: Any, x: Any, stype: str) -> Any:
    """A value in a storage type, the same one if it is of that."""
    return x if getattr(x, "stype", "default") == stype else _TO[stype](xp, dense_of(xp, x))


@op(
    "cast_storage",
    "_sparse_cast_storage",
    inputs="data",
    stype=Enum("csr default row_sparse"),
    role="other storage type",
    grad=lambda dy: dy,
)
def cast_storage(k: Call, p: Params, data: Array) -> Array:
    """The values in another storage type.

    Parameters
    ----------
    data : array
        Of any storage type.
    stype : {'default', 'row_sparse', 'csr'}
    """
    xp = k.xp
    if getattr(data, "stype", "default") == p.stype:
        return data.copy()
    return to_stype(xp, data, p.stype)


cast_storage.storage(lambda p, stypes: [p.stype])


def _wanted(xp: Any, indices: Any, n: int) -> Any:
    """The rows of n that are told, rising; raises IndexError for one that there is not."""
    keep = dense_of(xp, indices).astype(np.int64)
    if keep.shape[0]:
        if not bool((keep[1:] > keep[:-1]).all().item()):
            keep = xp.unique(keep)
        least, most = keep[0].item(), keep[-1].item()
        if not 0 <= least <= most < n:
            raise IndexError(f"index {least if least < 0 else most} is out of bounds for {n} rows")
    return keep


@op(
    "_sparse_retain",
    inputs="data indices",
    grad=lambda F, dy, indices: (F._sparse_retain(dy, indices), None),
    helpers={"wanted": _wanted},
)
def sparse_retain(k: Call, p: Params, data: Array, indices: Array) -> Array:
    """Some rows of an array; the others become zero.

    Parameters
    ----------
    data : array, row_sparse
        A dense one is taken as having all rows.
    indices : array, 1-D
        Which rows to keep.
    """
    xp = k.xp
    keep = _wanted(xp, indices, data.shape[0])
    if not isinstance(data, RowSparse):
        full = dense_of(xp, data)
        return RowSparse(full.shape, keep, full[keep])
    return RowSparse(data.shape, keep, rows_at(xp, data, keep))


@sparse_retain.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    if len(ins[1]) != 1:
        raise ValueError(f"indices {ins[1]} must have one dimension")
    return [ins[0]]


sparse_retain.dtype(first_dtype)
sparse_retain.storage(lambda p, stypes: ["row_sparse"])


@op("_contrib_getnnz", inputs="data", axis=Int(None, ge=0, le=1), grad=None)
def getnnz(k: Call, p: Params, data: Array) -> Array:
    """Number of stored values of a csr matrix; of other arrays, of values that are not zero.

    Parameters
    ----------
    data : array
    axis : {0, 1}, optional
        Count each column, each row; all unless told.
    """
    xp = k.xp
    if not isinstance(data, CSR):
        data = to_csr(xp, dense_of(xp, data))
    if p.axis is None:
        return data.indptr[-1:].copy()
    if p.axis == 1:
        return xp.diff(data.indptr)
    return xp.bincount(data.indices, minlength=data.shape[1])


getnnz.shape(lambda p, ins: [(1,) if p.axis is None else (ins[0][1 - p.axis],)])
getnnz.dtype(lambda p, ins, outs: (ins, [np.dtype("int64")]))
getnnz.storage(lambda p, stypes: ["default"])


def _on_stored(name: str, sign: int, what: str) -> Op:
    def body(k: Call, p: Params, data: Any) -> Any:
        def moved(values: Any) -> Any:
            values, s = with_number(p, values)
            return values + s if sign > 0 else values - s

        if isinstance(data, (CSR, RowSparse)):
            *where, values = data.parts
            return data.with_parts(*where, moved(values))
        return moved(data)

    new = Op(
        name,
        body,
        inputs="data",
        params={"scalar": Float(1.0, dynamic=True), "is_int": Bool(True)},
        grad=lambda dy: dy,
        doc=f"""{what} the stored values only; the others stay zero.

    Parameters
    ----------
    data : array
        Of any storage type; a dense array stores all values.
    scalar : float
    is_int : bool
        False makes whole numbers float64.
    """,
    )
    new.dtype(number_dtype)
    new.storage(lambda p, stypes: stypes[:1])
    return new


ON_STORED = [
    _on_stored("_scatter_plus_scalar", 1, "Add a number to"),
    _on_stored("_scatter_minus_scalar", -1, "Subtract a number from"),
]


@op("_scatter_elemwise_div", inputs="lhs rhs", grad=lambda F, dy, lhs, rhs: (dy / rhs, -dy * lhs / (rhs * rhs)))
def scatter_elemwise_div(k: Call, p: Params, lhs: Array, rhs: Array) -> Array:
    """Divide; of a row_sparse `lhs`, the stored rows only.

    Parameters
    ----------
    lhs, rhs : array
        Of one shape.
    """
    rhs = dense_of(k.xp, rhs)
    if isinstance(lhs, RowSparse):
        return lhs.with_parts(lhs.indices, lhs.values / rhs[lhs.indices])
    return dense_of(k.xp, lhs) / rhs


scatter_elemwise_div.storage(lambda p, stypes: ["row_sparse" if stypes[0] == "row_sparse" else "default"])
