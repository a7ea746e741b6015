"""Products with csr matrices, summed up in one order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mxcore.plugin import CSR, Call, Params, RowSparse, Spec, find_op

from ..places import Places
from .common import COMPUTED, Array, few, gpu, kernel_for


def _stored(k: Call, a: CSR) -> tuple[Array, Array, Array]:
    """The row and the column of each stored value, and the values."""
    count, start = a.values.shape[0], k.xp.ascontiguousarray(a.indptr.astype(np.int64, copy=False))
    rows = k.device.empty((count,), np.dtype(np.int32), k.ctx.device_id)
    kernel_for(k, "indexing", "rows_of", "float32").each(count, start, rows, count, a.shape[0])
    columns = k.xp.ascontiguousarray(a.indices.astype(np.int32, copy=False))
    return rows, columns, k.xp.ascontiguousarray(a.values)


def _products(k: Call, a: CSR, transposed: bool, matrix: Array, distinct: bool) -> tuple[Array, Array | None]:
    """The product of a csr matrix, or its transpose, and a dense one.

    Parameters
    ----------
    distinct : bool
        Only the rows where something is stored.

    Returns
    -------
    tuple of arrays
        The rows, (n, columns), and which ones they are; None if all.
    """
    rows, columns, values = _stored(k, a)
    place, which = (columns, rows) if transposed else (rows, columns)
    places = Places(k.device, k.ctx.device_id, values.shape[0])
    places.found = place
    there = places.distinct() if distinct else None
    n = a.shape[1 if transposed else 0] if there is None else there.shape[0]
    out = k.device.empty((n, matrix.shape[1]), a.dtype, k.ctx.device_id)
    places.add_products(values, which, k.xp.ascontiguousarray(matrix), out, rising=not transposed)
    return out, there


def _stored_rows(k: Call, a: CSR, transposed: bool, matrix: Array, shape: tuple[int, ...]) -> RowSparse:
    """The same as a row-sparse array of a shape."""
    values, there = _products(k, a, transposed, matrix, True)
    return RowSparse(shape, there.astype(np.int64), values.reshape(values.shape[0], *shape[1:]))  # type: ignore[union-attr]


def _by_body(op: str, k: Call, p: Params, *ins: Any) -> Any:
    body = find_op(op).body
    assert body is not None
    return body(k, p, *ins)


def _dense(k: Call, a: Any) -> Array:
    return a if getattr(a, "stype", "default") == "default" else a.todense(k.xp)


def _few(a: CSR, matrix: Array) -> bool:
    """Whether 32 bits count what is multiplied."""
    return max(a.values.shape[0], 1) * max(matrix.shape[1], 1) < 2**31 and max(a.shape) < 2**31


def _csr_first(p: Params, lhs: Spec, rhs: Spec) -> bool:
    """Whether it is a csr matrix times a dense one, in one of the storage types that such a product has by itself."""
    own = (None, "default", "row_sparse") if p.transpose_a and not p.transpose_b else (None, "default")
    return lhs.stype == "csr" and rhs.stype == "default" and p.forward_stype in own and few(rhs)


@gpu.kernel("dot", dtypes=COMPUTED, when=_csr_first)
def _csr_dot(k: Call, p: Params, lhs: CSR, rhs: Any) -> Any:
    b = _dense(k, rhs)
    if p.transpose_b and b.ndim > 1:
        kept, matrix = b.shape[:-1], b.reshape(math.prod(b.shape[:-1]), b.shape[-1]).T
    else:
        kept, matrix = b.shape[1:], b.reshape(b.shape[0], math.prod(b.shape[1:]))
    if not _few(lhs, matrix):
        return _by_body("dot", k, p, lhs, rhs)
    shape = (lhs.shape[1 if p.transpose_a else 0], *kept)
    if p.transpose_a and not p.transpose_b and p.forward_stype in (None, "row_sparse"):
        return _stored_rows(k, lhs, True, matrix, shape)
    return _products(k, lhs, p.transpose_a, matrix, False)[0].reshape(shape)


@gpu.kernel(
    "_dot_right",
    dtypes=COMPUTED,
    when=lambda p, dy, lhs, like: lhs.stype == "csr" and not (p.transpose_b and like.ndim > 1) and few(dy, like),
)
def _csr_dot_right(k: Call, p: Params, dy: Any, lhs: CSR, like: Array) -> Any:
    # The gradient of the right operand is the product with the transpose.
    shape = tuple(like.shape)
    matrix = _dense(k, dy).reshape(lhs.shape[1 if p.transpose_a else 0], math.prod(shape[1:]))
    if not _few(lhs, matrix):
        return _by_body("_dot_right", k, p, dy, lhs, like)
    if p.transpose_a or p.transpose_b:  # of a vector, which has no transpose
        return _products(k, lhs, not p.transpose_a, matrix, False)[0].reshape(shape)
    return _stored_rows(k, lhs, True, matrix, shape)
