"""Matrix products: dot, batch_dot, khatri_rao; dot also of sparse matrices."""

from __future__ import annotations

from typing import Any

from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool, Enum
from ...stypes import CSR
from ...typing import Array, Call, Operators
from ..common.bodies import wide
from ..common.rules import size_of
from ..sparse.operators import dense_of, to_stype
from ..sparse.products import Products, product, product_stype

__all__: list[str] = []


_FLAGS = {"transpose_a": Bool(False), "transpose_b": Bool(False), "forward_stype": Enum("csr default row_sparse", None)}


def left_lengths(p: Params, a: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    """(kept lengths, contracted length) of the left operand of dot."""
    return (a[1:], a[0]) if p.transpose_a and len(a) > 1 else (a[:-1], a[-1])


def right_lengths(p: Params, b: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    """(kept lengths, contracted length) of the right operand of dot."""
    return (b[:-1], b[-1]) if p.transpose_b and len(b) > 1 else (b[1:], b[0])


def dot_shape(p: Params, ins: list[Any]) -> list[Any]:
    """The shape of the product, whose operands must fit."""
    a, b = ins
    if not a or not b:
        raise ValueError(f"lhs {a} and rhs {b} must have dimensions")
    if len(a) == len(b) == 1 and (p.transpose_a or p.transpose_b):
        raise ValueError("vectors cannot be transposed")
    (rows, m), (cols, n) = left_lengths(p, a), right_lengths(p, b)
    if m != n and -1 not in (m, n):
        raise ValueError(f"lhs {a} and rhs {b} are contracted over lengths that differ, {m} and {n}")
    return [rows + cols or (1,)]


def _dot_grads(F: Operators, p: Params, dy: Any, lhs: Any, rhs: Any, needs: Any) -> tuple[Any, Any]:
    """With op(lhs) = A and op(rhs) = B as matrices: dA = dy B', dB = A' dy; a transposed operand gets the transpose."""
    ta, tb = p.transpose_a, p.transpose_b
    da = db = None
    if needs[0]:
        da = F._dot_left(dy, rhs, lhs, transpose_a=ta, transpose_b=tb)
    if needs[1]:
        db = F._dot_right(dy, lhs, rhs, transpose_a=ta, transpose_b=tb)
    return da, db


def left_matrix(p: Params, a: Any) -> Any:
    """The left operand as a matrix (rows, n)."""
    rows, n = left_lengths(p, a.shape)
    return a.reshape(n, size_of(rows)).T if p.transpose_a and a.ndim > 1 else a.reshape(size_of(rows), n)


def right_matrix(p: Params, b: Any) -> Any:
    """The right operand as a matrix (n, columns)."""
    columns, n = right_lengths(p, b.shape)
    return b.reshape(size_of(columns), n).T if p.transpose_b and b.ndim > 1 else b.reshape(n, size_of(columns))


@op(
    "dot",
    "_sparse_dot",
    inputs="lhs rhs",
    recompute=False,
    **_FLAGS,
    grad=lambda F, p, dy, lhs, rhs, needs: _dot_grads(F, p, dy, lhs, rhs, needs),
)
def dot(k: Call, p: Params, lhs: Array, rhs: Array) -> Array:
    """The product of two matrices; of arrays, the last axis of the one contracted with the first axis of the other.

    Parameters
    ----------
    lhs, rhs : array
        Either may be sparse. A csr matrix times an array is an array; its transpose times an array is row_sparse; an
        array times a csr matrix, or its transpose, is csr. All else is dense.
    transpose_a, transpose_b : bool
        Contract the first axis of `lhs`, the last of `rhs` instead.
    forward_stype : {'default', 'csr', 'row_sparse'}, optional
        Storage type of the result, another than the usual one.
    """
    xp = k.xp
    shape = dot_shape(p, [lhs.shape, rhs.shape])[0]
    if isinstance(lhs, CSR) or isinstance(rhs, CSR):
        return product(Products(xp), p, lhs, rhs, shape)
    am, bm = left_matrix(p, dense_of(xp, lhs)), right_matrix(p, dense_of(xp, rhs))
    out = xp.matmul(wide(am), wide(bm)).astype(lhs.dtype).reshape(shape)
    return to_stype(xp, out, p.forward_stype or "default")


dot.shape(lambda p, ins, outs: (ins, outs if None in ins else dot_shape(p, ins)))
dot.cost(lambda p, ins, outs: size_of(outs[0]) * left_lengths(p, ins[0])[1] / 10)
dot.attach(flops=True)


dot.storage(product_stype)
dot.attach(helpers={"product": product, "shape": dot_shape})


def _batch_dot_shape(p: Params, ins: list[Any]) -> list[Any]:
    a, b = ins
    if len(a) != len(b) or len(a) < 3 or any(-1 not in pair and pair[0] != pair[1] for pair in zip(a[:-2], b[:-2])):
        raise ValueError(
            f"lhs {a} and rhs {b} must be stacks of matrices, of three or more dimensions, alike but in the last two"
        )
    m, n = (a[-1], a[-2]) if p.transpose_a else a[-2:]
    r, c = (b[-1], b[-2]) if p.transpose_b else b[-2:]
    if n != r and -1 not in (n, r):
        raise ValueError(f"the inner lengths {n} and {r} of lhs {a} and rhs {b} differ")
    return [(*map(max, a[:-2], b[:-2]), m, c)]


def _batch_dot_grads(F: Operators, p: Params, dy: Any, lhs: Any, rhs: Any, needs: Any) -> tuple[Any, Any]:
    ta, tb = p.transpose_a, p.transpose_b

    def mul(a: Any, b: Any, x: bool, y: bool) -> Any:
        return F.batch_dot(a, b, transpose_a=x, transpose_b=y)

    da = None if not needs[0] else mul(rhs, dy, tb, True) if ta else mul(dy, rhs, False, not tb)
    db = None if not needs[1] else mul(dy, lhs, True, ta) if tb else mul(lhs, dy, not ta, False)
    return da, db


@op(
    "batch_dot",
    inputs="lhs rhs",
    recompute=False,
    **_FLAGS,
    grad=lambda F, p, dy, lhs, rhs, needs: _batch_dot_grads(F, p, dy, lhs, rhs, needs),
)
def batch_dot(k: Call, p: Params, lhs: Array, rhs: Array) -> Array:
    """The product of each pair of matrices of two stacks.

    Parameters
    ----------
    lhs, rhs : array, (..., m, n) and (..., n, r)
    transpose_a, transpose_b : bool
        Transpose the matrices first.
    forward_stype : str, optional
        Has no effect; the result is dense.
    """
    xp = k.xp
    a, b = wide(lhs), wide(rhs)
    out = xp.matmul(xp.swapaxes(a, -1, -2) if p.transpose_a else a, xp.swapaxes(b, -1, -2) if p.transpose_b else b)
    return out.astype(lhs.dtype) if out.dtype != lhs.dtype else out


batch_dot.shape(lambda p, ins, outs: (ins, outs if None in ins else _batch_dot_shape(p, ins)))
batch_dot.cost(lambda p, ins, outs: size_of(outs[0]) * ins[0][-2 if p.transpose_a else -1] / 10)
batch_dot.attach(flops=True)


@op("khatri_rao", inputs="args*")
def khatri_rao(k: Call, p: Params, *args: Array) -> Array:
    """The Khatri-Rao product: for each column, the Kronecker product of the columns of all matrices.

    Parameters
    ----------
    args : arrays, (m_i, n)
    num_args : int
        How many; counted for you.
    """
    out = args[0]
    for x in args[1:]:
        out = (out[:, None, :] * x[None, :, :]).reshape(out.shape[0] * x.shape[0], out.shape[1])
    return out.copy() if len(args) == 1 else out


@khatri_rao.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    if any(len(s) != 2 or s[1] != ins[0][1] for s in ins):
        raise ValueError(f"khatri_rao needs matrices with the same number of columns, got {', '.join(map(str, ins))}")
    rows = 1
    for s in ins:
        rows *= s[0]
    return [(rows, ins[0][1])]
