"""Reductions of sparse arrays, rows taken from them, and choices by them: none of it makes the whole array dense."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ..._core.op import Op
from ..._core.params import Params
from ...stypes import CSR, RowSparse
from ...typing import Call
from ..common.bodies import silent, sum_dtype
from ..common.rules import axes_of, axis_of, reduced
from ..indexing.take import embedding, row_places, sparse_embedding, take, where, within
from ..reduction.operators import REDUCTIONS, norm, square_sum
from .operators import dense_of, rows_at, rows_of

__all__: list[str] = []


# -- reductions ----------------------------------------------------------------------------------------------------
def _total(xp: Any, x: Any, axes: tuple[int, ...], values: Any) -> Any:
    """The sum over axes of an array that has other `values` where `x` has its own; flat, a float where `x` is one."""
    if len(axes) == len(x.shape):
        return values.sum(None, sum_dtype(values)).reshape(1)
    if isinstance(x, CSR):
        at, n = (x.indices, x.shape[1]) if axes == (0,) else (rows_of(xp, x), x.shape[0])
        return xp.bincount(at, values, n)  # in float64, which holds whole numbers up to 2**53
    if 0 in axes:
        return values.sum(axes, sum_dtype(values)).reshape(-1)
    some = values.sum(axes, sum_dtype(values))
    full = xp.zeros((x.shape[0], *some.shape[1:]), some.dtype)
    full[x.indices] = some
    return full.reshape(-1)


def _sum(total: Any, xp: Any, x: Any, axes: tuple[int, ...], p: Params) -> Any:
    return total(xp, x, axes, x.values)


def _mean(total: Any, xp: Any, x: Any, axes: tuple[int, ...], p: Params) -> Any:
    return total(xp, x, axes, x.values) / float(prod(x.shape[a] for a in axes))


def _squares(total: Any, xp: Any, x: Any, axes: tuple[int, ...], p: Params) -> Any:
    return total(xp, x, axes, x.values * x.values)


def _norm(total: Any, xp: Any, x: Any, axes: tuple[int, ...], p: Params) -> Any:
    size = xp.abs(x.values)
    if p.ord == 1:
        return total(xp, x, axes, size)
    size = size.astype(np.float64)
    # Squares of numbers of at most 1 are in range.
    top = size.max() if size.size else xp.ones((), np.float64)
    top = xp.where((top > 0) & (top < np.inf), top, 1.0)
    return xp.sqrt(total(xp, x, axes, (size / top) ** 2)) * top


def _reduces(op: Op, fn: Callable[..., Any]) -> None:
    """Let an operator reduce stored values; kernels have sums of their own."""

    @silent
    def body(k: Call, p: Params, data: Any, total: Any = _total) -> Any:
        axes = tuple(sorted(axes_of(p.axis, len(data.shape), getattr(p, "exclude", False))))
        if not axes or not prod(data.shape) or len(data.shape) < 2:
            return op.body(k, p, dense_of(k.xp, data))  # type: ignore[misc]
        found = fn(total, k.xp, data, axes, p)
        return found.astype(op.dtype_rule(p, [data.dtype], [None])[1][0] if op.dtype_rule else data.dtype).reshape(
            reduced(data.shape, axes, p.keepdims)
        )

    op.storage(lambda p, stypes: ["default"], body)
    op.attach(helpers={"stored": body})


for _op in REDUCTIONS:
    if _op.name in ("sum", "mean"):
        _reduces(_op, _sum if _op.name == "sum" else _mean)
_reduces(norm, _norm)
_reduces(square_sum, _squares)
_on_stored: Any = square_sum.sparse_body


def _square_sum(k: Call, p: Params, data: Any) -> Any:
    if not isinstance(data, RowSparse) or square_sum_stype(p, ["row_sparse"]) == ["default"]:
        return _on_stored(k, p, data)
    axes = tuple(range(1, len(data.shape)))
    if axes_of(p.axis, len(data.shape), p.exclude) != axes:
        return _rows_of(k.xp, _on_stored(k, p, data))
    values = (data.values * data.values).sum(axes, keepdims=True, dtype=sum_dtype(data))
    return RowSparse((data.shape[0], *values.shape[1:]), data.indices.copy(), values.astype(data.dtype))


def _rows_of(xp: Any, x: Any) -> RowSparse:
    return RowSparse(x.shape, xp.arange(x.shape[0]), x)


def square_sum_stype(p: Params, stypes: list[str]) -> list[str]:
    """Sums of rows, kept as a column, have no more rows than the array."""
    return [stypes[0] if stypes == ["row_sparse"] and p.keepdims and p.axis == (1,) and not p.exclude else "default"]


square_sum.storage(square_sum_stype, _square_sum)


# -- rows ----------------------------------------------------------------------------------------------------------
def _taken(k: Call, p: Params, a: Any, indices: Any) -> Any:
    """Rows of a matrix; other axes, and indices of more dimensions, give a dense array."""
    xp, axis = k.xp, axis_of(p.axis, len(a.shape))
    indices = dense_of(xp, indices)
    if axis != 0 or not isinstance(a, (CSR, RowSparse)):
        return take.body(k, p, dense_of(xp, a), indices)  # type: ignore[misc]
    at = row_places(xp, p, indices, a.shape[0])
    if isinstance(a, RowSparse):
        return rows_at(xp, a, at)
    found = csr_rows(xp, a, at.reshape(-1))
    if indices.ndim == 1 and p.axis == 0:
        return found
    return found.todense(xp).reshape(*indices.shape, a.shape[1])


def csr_rows(xp: Any, a: CSR, rows: Any) -> CSR:
    """Rows of a matrix, in any order."""
    count = xp.diff(a.indptr)[rows]
    start = xp.zeros(rows.shape[0] + 1, np.int64)
    start[1:] = xp.cumsum(count)
    at = xp.arange(int(start[-1])) + xp.repeat(a.indptr[:-1][rows] - start[:-1], count)
    return CSR((rows.shape[0], a.shape[1]), start, a.indices[at], a.values[at])


take.attach(helpers={"places": row_places})
take.storage(lambda p, stypes: ["csr" if stypes[0] == "csr" and p.axis == 0 else "default"], _taken)


def _embedded(k: Call, p: Params, data: Any, weight: Any) -> Any:
    """Rows of a weight, stored or not; a csr one is made dense."""
    xp = k.xp
    data = dense_of(xp, data)
    if not isinstance(weight, RowSparse):
        return embedding.body(k, p, data, dense_of(xp, weight))  # type: ignore[misc]
    return rows_at(xp, weight, within(xp, data, p.input_dim, "clip"))


for _op in (embedding, sparse_embedding):
    _op.storage(lambda p, stypes: ["default"], _embedded)


def _chosen(k: Call, p: Params, condition: Any, x: Any, y: Any) -> Any:
    """By a csr condition: `y`, but for the places that are stored and not zero."""
    xp = k.xp
    x, y = dense_of(xp, x), dense_of(xp, y)
    if not isinstance(condition, CSR) or condition.shape != x.shape:
        return where.body(k, p, dense_of(xp, condition), x, y)  # type: ignore[misc]
    out, there = y.copy(), xp.flatnonzero(condition.values)
    at = rows_of(xp, condition)[there], condition.indices[there]
    out[at] = x[at]
    return out


where.storage(lambda p, stypes: ["default"], _chosen)
