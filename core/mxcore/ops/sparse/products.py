"""Products with csr matrices over an array namespace; work and memory go with the stored values.

Everything is a csr matrix times a dense one: a transposed operand is transposed first, a csr matrix on the right is the
product of the transposes, and of a row_sparse operand the rows that it has meet the columns that name them.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ..._core.params import Params
from ...stypes import CSR, RowSparse, add_rows
from ..common.bodies import wide
from .operators import csr_from, dense_of, padded, rows_of, to_stype

__all__ = ["Products", "product", "product_stype", "right_gradient"]


class Products:
    """What products are made of, over an array namespace; kernels have their own.

    Parameters
    ----------
    xp : module
        The array namespace.
    """

    def __init__(self, xp: Any) -> None:
        self.xp = xp

    def transposed(self, a: CSR) -> CSR:
        """The transpose."""
        order = self.xp.argsort(a.indices, kind="stable")
        return csr_from(self.xp, a.shape[::-1], a.indices[order], rows_of(self.xp, a)[order], a.values[order])

    def times(self, a: CSR, matrix: Any, rows: Any = None) -> Any:
        """A csr matrix times a dense one, or some rows of the product, which name all that are stored."""
        place, n = rows_of(self.xp, a), a.shape[0]
        if rows is not None:
            place, n = self.xp.searchsorted(rows, place), rows.shape[0]
        parts = wide(a.values)[:, None] * wide(matrix)[a.indices]
        return add_rows(self.xp, (n, matrix.shape[1]), place, parts).astype(a.dtype)

    def by_csr(self, a: CSR, b: CSR) -> Any:
        """The product of two csr matrices, dense."""
        xp, width = self.xp, b.shape[1]
        count = xp.diff(b.indptr)[a.indices]
        pair = xp.repeat(xp.arange(count.shape[0]), count)
        at = xp.arange(pair.shape[0]) + (b.indptr[a.indices] - (xp.cumsum(count) - count))[pair]
        place = rows_of(xp, a)[pair] * width + b.indices[at]
        parts = (wide(a.values)[pair] * wide(b.values)[at])[:, None]
        return add_rows(xp, (a.shape[0] * width, 1), place, parts).astype(a.dtype).reshape(a.shape[0], width)


def _stored_rows(xp: Any, a: CSR) -> Any:
    return xp.flatnonzero(xp.diff(a.indptr)).astype(np.int64)


def _among(xp: Any, a: CSR, columns: Any) -> CSR:
    """Some columns of a matrix, numbered by their place in `columns`, which rise."""
    n = columns.shape[0]
    at = xp.searchsorted(columns, a.indices)
    kept = xp.flatnonzero(padded(xp, columns)[at] == a.indices)
    return csr_from(xp, (a.shape[0], n), rows_of(xp, a)[kept], at[kept], a.values[kept])


def product_stype(p: Params, stypes: Any) -> list[str]:
    """Storage type of `dot`: what is asked for, else where MXNet has a sparse product."""
    a, b = stypes
    if p.forward_stype is not None:
        return [p.forward_stype]
    if a == "csr" and b != "csr" and p.transpose_a and not p.transpose_b:
        return ["row_sparse"]
    return ["csr" if a == "default" and b == "csr" and not p.transpose_a else "default"]


def _matrix(x: Any, turn: bool) -> Any:
    """An array as a matrix, its first axis against the others; `turn`: the transpose of its others against its last."""
    if turn and x.ndim > 1:
        return x.reshape(prod(x.shape[:-1]), x.shape[-1]).T
    return x.reshape(x.shape[0], prod(x.shape[1:]))


def _rows_of_product(tools: Products, left: CSR, right: Any, shape: tuple[int, ...]) -> RowSparse:
    rows = _stored_rows(tools.xp, left)
    values = tools.times(left, right, rows)
    return RowSparse(shape, rows, values.reshape(values.shape[0], *shape[1:]))


def product(tools: Products, p: Params, lhs: Any, rhs: Any, shape: tuple[int, ...]) -> Any:
    """``dot(lhs, rhs)``, one of which is csr, in the storage type that it has.

    Parameters
    ----------
    tools : Products
    p : Params
        Those of `dot`.
    lhs, rhs : array, CSR or RowSparse
    shape : tuple of int
        Of the product.
    """
    xp, to = tools.xp, product_stype(p, [getattr(x, "stype", "default") for x in (lhs, rhs)])[0]
    if isinstance(lhs, CSR):
        left = tools.transposed(lhs) if p.transpose_a else lhs
        if isinstance(rhs, CSR):
            return to_stype(xp, tools.by_csr(left, tools.transposed(rhs) if p.transpose_b else rhs), to)
        whole = rhs.whole if isinstance(rhs, RowSparse) else None
        if whole is None and isinstance(rhs, RowSparse) and not p.transpose_b:
            left, right = _among(xp, left, rhs.indices), _matrix(rhs.values, False)
        else:
            right = _matrix(dense_of(xp, rhs) if whole is None else whole, p.transpose_b)
        if to == "row_sparse":
            return _rows_of_product(tools, left, right, shape)
        return to_stype(xp, tools.times(left, right).reshape(shape), to)
    # The transpose of a product: csr stays on the left.
    left = rhs if p.transpose_b else tools.transposed(rhs)
    right = dense_of(xp, lhs)
    right = _matrix(right, not p.transpose_a) if right.ndim > 1 else right.reshape(-1, 1)
    if to == "csr" and not p.transpose_b and len(shape) == 2:
        # As in MXNet, each row has all columns in which something can be.
        there = _stored_rows(xp, left)
        values = tools.times(left, right, there).T.reshape(-1)
        n = there.shape[0]
        return CSR(shape, xp.arange(shape[0] + 1) * n, xp.tile(there, shape[0]), values)
    out = xp.ascontiguousarray(tools.times(left, right).T).reshape(shape)
    return to_stype(xp, out, to) if len(shape) == 2 or p.forward_stype else out


def right_gradient(tools: Products, p: Params, dy: Any, lhs: CSR, shape: tuple[int, ...]) -> Any:
    """The gradient of ``dot(lhs, rhs)`` for a `rhs` of a shape: ``op(lhs)' dy``, transposed if `rhs` was."""
    turned = p.transpose_b and len(shape) > 1
    left = lhs if p.transpose_a else tools.transposed(lhs)
    columns = prod(shape[:-1] if turned else shape[1:])
    right = dense_of(tools.xp, dy).reshape(left.shape[1], columns)
    if not (p.transpose_a or p.transpose_b):
        return _rows_of_product(tools, left, right, shape)
    out = tools.times(left, right)
    return (tools.xp.ascontiguousarray(out.T) if turned else out).reshape(shape)
