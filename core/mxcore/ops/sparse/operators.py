"""Storage types: conversion between dense, row_sparse and csr, and operators on stored rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.op import Op, op
from ..._core.params import Params
from ...elementwise import number_dtype, with_number
from ...parameters import Bool, Enum, Float, Int
from ...stypes import CSR, RowSparse
from ...typing import Array, Call
from ..common.rules import first_dtype, size_of

__all__ = ["ON_STORED", "dense_of", "to_csr", "to_rows"]


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
    per_row = xp.bincount(rows, minlength=x.shape[0])
    start = xp.zeros(x.shape[0] + 1, np.int64)
    start[1:] = xp.cumsum(per_row)
    return CSR(x.shape, start, cols.astype(np.int64), x[rows, cols])


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
        return data.with_parts(*[a.copy() for a in data.parts]) if p.stype != "default" else data.copy()
    data = dense_of(xp, data)
    return {"default": lambda xp, data: data, "row_sparse": to_rows, "csr": to_csr}[p.stype](xp, data)


cast_storage.storage(lambda p, stypes: [p.stype])


@op("_sparse_retain", inputs="data indices", grad=lambda F, dy, indices: (F._sparse_retain(dy, indices), None))
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
    keep = xp.unique(dense_of(xp, indices).astype(np.int64))
    if not isinstance(data, RowSparse):
        full = dense_of(xp, data)
        return RowSparse(full.shape, keep, full[keep])
    wanted = xp.zeros(data.shape[0], np.bool_)
    wanted[keep] = True
    at = xp.flatnonzero(wanted[data.indices])
    return RowSparse(data.shape, data.indices[at], data.values[at])


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
