"""Gradients of the operators of :mod:`mxcore.ops.linalg`."""

from __future__ import annotations

from typing import Any

from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool
from ...stypes import CSR
from ...typing import Array, Call, Operators
from ..common.bodies import silent, wide
from ..common.rules import fits, size_of
from ..sparse.operators import dense_of
from ..sparse.products import Products, right_gradient
from .dot import dot_shape, left_lengths, left_matrix, right_lengths, right_matrix
from .factorizations import factorization_cost, for_each_matrix, one_a_matrix, product
from .triangles import wide_floats

__all__: list[str] = []


def _factor(p: Params, dy: tuple[int, ...], factors: list[tuple[int, ...]], which: int) -> tuple[int, ...]:
    """The shape of one factor, if `dy` has that of the product."""
    want = dot_shape(p, factors)[0]
    if dy != want:
        raise ValueError(f"dy {dy} must have the shape of the product, {want}")
    return factors[which]


_TRANSPOSED = {"transpose_a": Bool(False), "transpose_b": Bool(False)}


@op(
    "_dot_left",
    inputs="dy rhs like~",
    **_TRANSPOSED,
    grad=lambda F, p, dy_, dys, rhs, needs: _left_grads(F, p, dys[0], dy_, rhs),
)
def dot_left(k: Call, p: Params, dy: Array, rhs: Array, like: Array) -> Array:
    """The gradient of `dot` for its left operand.

    Parameters
    ----------
    dy : array
        Gradient of the product.
    rhs : array
    like : array
        The left operand; only its shape is used.
    transpose_a, transpose_b : bool
        As in `dot`.
    """
    xp, shape = k.xp, tuple(like.shape)
    bm = wide(right_matrix(p, dense_of(xp, rhs)))
    g = wide(dense_of(xp, dy)).reshape(size_of(left_lengths(p, shape)[0]), bm.shape[1])
    out = xp.matmul(bm, g.T) if p.transpose_a and len(shape) > 1 else xp.matmul(g, bm.T)
    return out.astype(dy.dtype).reshape(shape)


dot_left.shape(lambda p, ins: [_factor(p, ins[0], [ins[2], ins[1]], 0)])
dot_left.storage(lambda p, stypes: ["default"])


@op(
    "_dot_right",
    inputs="dy lhs like~",
    **_TRANSPOSED,
    grad=lambda F, p, dy_, dys, lhs, needs: _right_grads(F, p, dys[0], dy_, lhs),
)
def dot_right(k: Call, p: Params, dy: Array, lhs: Array, like: Array) -> Array:
    """The gradient of `dot` for its right operand; row_sparse if the left one is csr and nothing is transposed.

    Parameters
    ----------
    dy : array
        Gradient of the product.
    lhs : array
    like : array
        The right operand; only its shape is used.
    transpose_a, transpose_b : bool
        As in `dot`.
    """
    xp, shape = k.xp, tuple(like.shape)
    if isinstance(lhs, CSR):
        return right_gradient(Products(xp), p, dy, lhs, shape)
    dy, am = dense_of(xp, dy), wide(left_matrix(p, dense_of(xp, lhs)))
    g = wide(dy).reshape(am.shape[0], size_of(right_lengths(p, shape)[0]))
    out = xp.matmul(g.T, am) if p.transpose_b and len(shape) > 1 else xp.matmul(am.T, g)
    return out.astype(dy.dtype).reshape(shape)


dot_right.shape(lambda p, ins: [_factor(p, ins[0], [ins[1], ins[2]], 1)])
dot_right.storage(
    lambda p, stypes: ["default" if stypes[1] != "csr" or p.transpose_a or p.transpose_b else "row_sparse"]
)
dot_right.attach(helpers={"right_gradient": right_gradient})


def _left_grads(F: Operators, p: Params, g: Any, dy: Any, rhs: Any) -> tuple[Any, Any, None]:
    """dA = dy B' is linear in both: its gradients are again products of the same kind, with g in the place of lhs."""
    flags = {"transpose_a": p.transpose_a, "transpose_b": p.transpose_b}
    return F.dot(g, rhs, **flags), F._dot_right(dy, g, rhs, **flags), None


def _right_grads(F: Operators, p: Params, g: Any, dy: Any, lhs: Any) -> tuple[Any, Any, None]:
    flags = {"transpose_a": p.transpose_a, "transpose_b": p.transpose_b}
    return F.dot(lhs, g, **flags), F._dot_left(dy, g, lhs, **flags), None


@op(
    "_inverse_or_zeros",
    inputs="A det",
    grad=lambda F, dy, y: (-product(F, product(F, y, dy, ta=True), y, tb=True), None),
)
@silent
def inverse_or_zeros(k: Call, p: Params, A: Array, det: Array) -> Array:
    """The inverse of square matrices, and zeros in the place of those whose determinant is zero.

    Parameters
    ----------
    A : array, (..., n, n)
    det : array, (...)
        The determinants, or their signs.
    """
    xp = k.xp
    gone = (det == 0).reshape(*A.shape[:-2], 1, 1)
    if not k.device.async_ and not gone.any().item():
        return for_each_matrix(xp.linalg.inv, A, "singular")
    inv = for_each_matrix(xp.linalg.inv, xp.where(gone, xp.eye(A.shape[-1], dtype=A.dtype), A), "singular")
    return xp.where(gone, xp.zeros_like(inv), inv)


@inverse_or_zeros.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    one = one_a_matrix(ins[0])
    fits("det", ins[1:], [() if ins[1] == () and one == (1,) else one])  # mx.np has numbers of no dimensions
    return [ins[0]]


inverse_or_zeros.cost(factorization_cost)

for _op in (inverse_or_zeros,):
    _op.dtype(wide_floats)


@op("_qr_back", inputs="dQ dR A~ Q R")
@silent
def qr_back(k: Call, p: Params, dQ: Array, dR: Array, A: Array, Q: Array, R: Array) -> Array:
    """The gradient of the factors of A = Q R.

    Source: Walter & Lehmann, "Algorithmic differentiation of linear algebra functions", 2010. Of a matrix with more
    columns than rows, the factors are those of its first columns, and the rest of R is the product of Q' and the rest.

    Parameters
    ----------
    dQ, dR : array
        Gradients of the factors.
    A : array
        Only its shape and dtype are used.
    Q, R : array
        The factors.
    """
    xp, m = k.xp, A.shape[-2]

    def t(x: Any) -> Any:
        return xp.swapaxes(x, -1, -2)

    r, dr, rest = R[..., :m], dR[..., :m], dR[..., m:]
    if rest.shape[-1]:  # A2 = Q R2
        dQ = dQ + xp.matmul(xp.matmul(Q, R[..., m:]), t(rest))
    inner = xp.tril(xp.matmul(r, t(dr)) - xp.matmul(t(dQ), Q))
    inner = inner + t(xp.tril(inner, -1))
    # (dQ + Q inner) R^-T
    found = t(xp.linalg.solve(r, t(dQ + xp.matmul(Q, inner))))
    return xp.concatenate([found, xp.matmul(Q, rest)], -1) if rest.shape[-1] else found


@qr_back.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    *batch, m, n = ins[2]
    q, r = (*batch, m, min(m, n)), (*batch, min(m, n), n)
    fits("dQ dR A Q R", ins, [q, r, ins[2], q, r])
    return [ins[2]]


qr_back.dtype(lambda p, ins, outs: (ins, [ins[2]]))
