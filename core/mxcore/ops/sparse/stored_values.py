"""Operators that keep sparse storage: which storage types their results have, and how they run on stored values.

A function that is zero at zero acts on the stored values alone; sums, products and the like of two sparse arrays live
where either has values. Everything else gets dense arrays. The tables follow MXNet 1.9.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import builtin
from ..._core.op import Op
from ..._core.params import Params
from ...elementwise import with_number
from ...stypes import CSR, RowSparse
from ...typing import Call
from ..common.bodies import sum_dtype
from ..elementwise.arithmetic import ARITHMETIC, add_n
from ..elementwise.casts import block_grad, clip, copy, identity_like, make_loss
from ..elementwise.functions import FUNCTIONS, quadratic
from ..shape.join import concat
from ..slicing.operators import ranges_of, slice_
from .operators import csr_from, dense_of, rows_of, to_csr, to_stype

__all__: list[str] = []


#: Functions with f(0) = 0, and those with a number for which that holds whatever the number.
_ZERO_AT_ZERO = frozenset(
    """
    abs sign round rint ceil floor trunc fix square sqrt cbrt log1p expm1 sin tan arcsin arctan degrees radians sinh
    tanh arcsinh arctanh relu negative _mul_scalar _div_scalar""".split()
)
#: Functions of an array and a number s, and for which s zeros stay zeros.
_ZERO_WITH: dict[str, Callable[[Any], bool]] = {
    "_plus_scalar": lambda s: s == 0,
    "_minus_scalar": lambda s: s == 0,
    "_equal_scalar": lambda s: s != 0,
    "_not_equal_scalar": lambda s: s == 0,
    "_greater_scalar": lambda s: not s < 0,
    "_greater_equal_scalar": lambda s: not s <= 0,
    "_lesser_scalar": lambda s: not s > 0,
    "_lesser_equal_scalar": lambda s: not s >= 0,
}
#: Functions of two arrays with f(0, 0) = 0.
_ZERO_AT_ZEROS = frozenset("elemwise_add elemwise_sub elemwise_mul _maximum _minimum _hypot".split())


def _on_values(op: Op) -> Any:
    def body(k: Call, p: Params, data: Any) -> Any:
        *where, values = data.parts
        dtype = op.dtype_rule(p, [values.dtype], [None])[1][0] if op.dtype_rule else values.dtype
        return data.with_parts(*[a.copy() for a in where], op.body(k, p, values).astype(dtype))  # type: ignore[misc]

    return body


def _if_zero_stays(op: Op, stays: Callable[[Any], bool]) -> None:
    """Storage of an operator with a number, which decides whether zeros stay zeros: if not, the result is dense."""
    on_values = _on_values(op)

    def keeps(p: Params, dtype: Any) -> bool:
        return stays(with_number(p, np.empty(0, dtype))[1])

    def body(k: Call, p: Params, data: Any) -> Any:
        if keeps(p, data.dtype):
            return on_values(k, p, data)
        dtype = op.dtype_rule(p, [data.dtype], [None])[1][0]
        return op.body(k, p, dense_of(k.xp, data)).astype(dtype)  # type: ignore[misc]

    op.storage(lambda p, stypes: stypes, body)
    op.attach(zeros_stay=keeps)


def _coordinates(xp: Any, x: CSR) -> tuple[Any, Any]:
    """Row and column of each stored value."""
    return rows_of(xp, x), x.indices


def _united(xp: Any, keys: list[Any], values: list[Any]) -> tuple[Any, list[Any]]:
    """The places that occur in any of the lists, sorted, and each list's values there, zero where it has none."""
    every = xp.unique(xp.concatenate(keys))
    found = []
    for key, value in zip(keys, values):
        wide = xp.zeros((every.shape[0], *value.shape[1:]), value.dtype)
        wide[xp.searchsorted(every, key)] = value
        found.append(wide)
    return every, found


def _of_two(op: Op) -> Any:
    def body(k: Call, p: Params, lhs: Any, rhs: Any) -> Any:
        xp = k.xp
        if isinstance(lhs, RowSparse) and isinstance(rhs, RowSparse):
            rows, (a, b) = _united(xp, [lhs.indices, rhs.indices], [lhs.values, rhs.values])
            return RowSparse(lhs.shape, rows, op.body(k, p, a, b).astype(a.dtype))  # type: ignore[misc]
        if isinstance(lhs, CSR) and isinstance(rhs, CSR):
            n = max(lhs.shape[1], 1)
            keys = [rows * n + cols for rows, cols in (_coordinates(xp, lhs), _coordinates(xp, rhs))]
            places, (a, b) = _united(xp, keys, [lhs.values, rhs.values])
            values = op.body(k, p, a, b).astype(a.dtype)  # type: ignore[misc]
            kept = xp.flatnonzero(values)
            return csr_from(xp, lhs.shape, places[kept] // n, places[kept] % n, values[kept])
        return _with_dense(op)(k, p, lhs, rhs)

    return body


def _with_dense(op: Op) -> Any:
    """A sparse array times (or divided by) a dense one, which may broadcast."""

    def body(k: Call, p: Params, lhs: Any, rhs: Any) -> Any:
        xp = k.xp
        swap = not isinstance(lhs, (CSR, RowSparse))
        data, other = (rhs, lhs) if swap else (lhs, rhs)
        other = dense_of(xp, other)
        if np.broadcast_shapes(data.shape, other.shape) != data.shape:
            return to_csr(xp, op.body(k, p, *(dense_of(xp, x) for x in (lhs, rhs))))  # type: ignore[misc]
        other = xp.broadcast_to(other, data.shape)
        other = other[_coordinates(xp, data)] if isinstance(data, CSR) else other[data.indices]
        *where, values = data.parts
        found = op.body(k, p, *((other, values) if swap else (values, other)))  # type: ignore[misc]
        return data.with_parts(*[a.copy() for a in where], found)

    return body


def _empty(k: Call, p: Params, data: Any) -> Any:
    if isinstance(data, CSR):
        return CSR(
            data.shape, k.xp.zeros(data.shape[0] + 1, np.int64), k.xp.zeros(0, np.int64), k.xp.zeros(0, data.dtype)
        )
    return RowSparse(data.shape, k.xp.zeros(0, np.int64), k.xp.zeros((0, *data.shape[1:]), data.dtype))


def _alike(p: Params, stypes: list[str]) -> list[str]:
    return [stypes[0] if len(set(stypes)) == 1 else "default"]


def _product(p: Params, stypes: list[str]) -> list[str]:
    kinds = {*stypes} - {"default"}
    return [kinds.pop() if len(kinds) == 1 else "default"]


def _csr_first(p: Params, stypes: list[str]) -> list[str]:
    return ["csr" if stypes == ["csr", "default"] else "default"]


def _alike_sum(p: Params, stypes: list[str]) -> list[str]:
    return [stypes[0] if stypes[0] == stypes[1] else "default"]


def _rows_only(p: Params, stypes: list[str]) -> list[str]:
    return ["row_sparse" if {*stypes} == {"row_sparse"} else "default"]


def _sum_of_rows(k: Call, p: Params, *args: Any) -> Any:
    """The sum of row-sparse values, each of which holds a row once."""
    xp, first = k.xp, args[0]
    rows = xp.unique(xp.concatenate([a.indices for a in args]))
    summed = sum_dtype(first) if len(args) > 2 else None
    total = xp.zeros((rows.shape[0], *first.shape[1:]), summed or first.dtype)
    for a in args:
        total[xp.searchsorted(rows, a.indices)] += a.values
    return RowSparse(first.shape, rows, total.astype(first.dtype, copy=False))


def _stacked(k: Call, p: Params, *data: Any) -> Any:
    """Matrices below each other."""
    xp = k.xp
    starts = [d.indptr[1:] - d.indptr[:-1] for d in data]
    start = xp.concatenate([xp.zeros(1, np.int64), xp.cumsum(xp.concatenate(starts))])
    rows = sum(d.shape[0] for d in data)
    return CSR(
        (rows, data[0].shape[1]),
        start,
        xp.concatenate([d.indices for d in data]),
        xp.concatenate([d.values for d in data]),
    )


def _part(k: Call, p: Params, data: Any) -> Any:
    """A range of rows and columns."""
    xp = k.xp
    (top, bottom), (left, right) = ((r.start, r.stop) for r in _ranges(p, data.shape))
    first, last = (int(i) for i in data.indptr[[top, bottom]])
    rows, cols = xp.repeat(xp.arange(bottom - top), xp.diff(data.indptr[top : bottom + 1])), data.indices[first:last]
    kept = xp.flatnonzero((cols >= left) & (cols < right))
    return csr_from(xp, (bottom - top, right - left), rows[kept], cols[kept] - left, data.values[first:last][kept])


def _ranges(p: Params, full: tuple[int, ...]) -> list[range]:
    cuts = ranges_of(p, full)
    found = [range(d)[s] for d, s in zip(full, [*cuts, *[slice(None)] * (len(full) - len(cuts))])]
    return [range(r.start, max(r.stop, r.start)) for r in found]


def _sum_of_gradients(k: Call, p: Params, lhs: Any, rhs: Any) -> Any:
    """The sum of two gradients, one sparse; two of one storage type stay so, rows are added to a dense one."""
    xp = k.xp
    a, b = (isinstance(x, RowSparse) for x in (lhs, rhs))
    if a and b:
        return _sum_of_rows(k, p, lhs, rhs)
    if isinstance(lhs, CSR) and isinstance(rhs, CSR):
        return _sum_of_two(k, p, lhs, rhs)
    lhs, rhs = (x.todense(xp) if isinstance(x, CSR) else x for x in (lhs, rhs))
    if not a and not b:
        return xp.add(lhs, rhs)
    dense, sparse = (rhs, lhs) if a else (lhs, rhs)
    total = dense.copy()
    if sparse.indices.shape[0]:
        total[sparse.indices] += sparse.values
    return total


def _like_other(k: Call, p: Params, lhs: Any, rhs: Any) -> Any:
    """A copy in the storage type of `rhs`."""
    found = to_stype(k.xp, lhs, getattr(rhs, "stype", "default"))
    return found.copy() if isinstance(found, (CSR, RowSparse)) else found


def _keep(op: Op, rule: Any, stored: Any) -> None:
    """Give an operator a storage rule and a body on stored values; where the rule says dense, inputs become so."""

    def body(k: Call, p: Params, *values: Any) -> Any:
        if rule(p, [getattr(v, "stype", "default") for v in values]) == ["default"]:
            result = op.body(k, p, *[dense_of(k.xp, v) for v in values])  # type: ignore[misc]
            return result if getattr(result, "base", None) is None else result.copy()
        return stored(k, p, *values)

    op.storage(rule, body)


for _op in (*FUNCTIONS, *ARITHMETIC, copy, block_grad, make_loss):
    if _op.name in _ZERO_AT_ZERO or _op in (copy, block_grad, make_loss):
        _keep(_op, lambda p, stypes: stypes, _on_values(_op))
    elif _op.name in _ZERO_AT_ZEROS:
        _keep(_op, _product if _op.name == "elemwise_mul" else _alike, _of_two(_op))
    elif _op.name in ("broadcast_mul", "broadcast_div"):
        _keep(_op, _csr_first, _with_dense(_op))
    elif _op.name in _ZERO_WITH:
        _if_zero_stays(_op, _ZERO_WITH[_op.name])
    if _op.name == "elemwise_add":
        _sum_of_two = _op.sparse_body
builtin.grad_add.storage(_alike_sum, _sum_of_gradients)
_keep(builtin.zeros_like, lambda p, stypes: stypes, _empty)
_keep(clip, lambda p, stypes: stypes if p.a_min <= 0 <= p.a_max else ["default"], _on_values(clip))
_keep(quadratic, lambda p, stypes: ["csr" if stypes == ["csr"] and p.c == 0 else "default"], _on_values(quadratic))
_keep(concat, lambda p, stypes: ["csr" if {*stypes} == {"csr"} and p.dim == 0 else "default"], _stacked)
identity_like.storage(lambda p, stypes: stypes[1:], _like_other)
_keep(
    slice_,
    lambda p, stypes: stypes if stypes == ["csr"] and all(s in (None, 1) for s in p.step) else ["default"],
    _part,
)
slice_.attach(helpers={"ranges": _ranges})
_keep(add_n, _rows_only, _sum_of_rows)
