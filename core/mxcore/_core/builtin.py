"""The four operators that differentiation itself needs; the core brings them, so that it works with no plugin."""
from __future__ import annotations

from math import prod
from typing import Any

from . import registry
from .array import CSR, RowSparse
from .op import Op
from .params import Any_

__all__ = ["add_rows", "merge_rows"]

OWNER = "mxcore core"


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


def _add(k: Any, p: Any, lhs: Any, rhs: Any) -> Any:
    """Sum two gradients of one variable; row-sparse ones stay sparse.

    Parameters
    ----------
    lhs, rhs : array
        Of one shape.
    """
    lhs, rhs = (x.todense(k.xp) if isinstance(x, CSR) else x for x in (lhs, rhs))
    a, b = isinstance(lhs, RowSparse), isinstance(rhs, RowSparse)
    if not a and not b:
        return k.xp.add(lhs, rhs)
    if a and b:
        xp = k.xp
        return merge_rows(xp, lhs.shape, xp.concatenate([lhs.indices, rhs.indices]), xp.concatenate([lhs.values, rhs.values]))
    dense, sparse = (rhs, lhs) if a else (lhs, rhs)
    total = dense.copy()
    if sparse.indices.shape[0]:
        total[sparse.indices] += sparse.values
    return total


def _filled(value: int) -> Any:
    return lambda k, p, data: (k.xp.ones if value else k.xp.zeros)(data.shape, data.dtype)


_DOC = "An array of {} with the shape and dtype of `data`.\n\nParameters\n----------\ndata : array\n    Only its shape and dtype are used."

grad_add = Op("_grad_add", _add, inputs="lhs rhs", grad=lambda dy: (dy, dy), expr="lhs + rhs", alias="lhs->output")
grad_add.storage(lambda p, s: ["row_sparse" if all(t == "row_sparse" for t in s) else "default"])
ones_like = Op("ones_like", _filled(1), inputs="data~", grad=None, doc=_DOC.format("ones"))
zeros_like = Op("zeros_like", _filled(0), inputs="data~", grad=None, doc=_DOC.format("zeros"))

copyto = Op("_copyto", lambda k, p, data: data.copy(), inputs="data", params={"source": Any_(None)}, direct=None,
            grad=lambda F, p, dy: F.to_context(dy, p.source) if p.source is not None else dy,
            doc="A copy of `data`, on another context where a copy between contexts was recorded.\n\nParameters\n----------\n"
                "data : array\nsource : Context\n    Where the gradient goes back to.")

for _op in (copyto, grad_add, ones_like, zeros_like):
    registry.ops.add_op(_op, OWNER)
