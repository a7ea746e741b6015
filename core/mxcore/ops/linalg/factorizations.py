"""Factorisations, inverses and determinants of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.infer import known, merge_shape
from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool
from ...typing import Array, Call, Operators
from ..common.bodies import silent
from ..common.rules import size_of
from .triangles import half_triangle, square, wide_floats

__all__: list[str] = []


def _t(F: Operators, x: Any) -> Any:
    return F.SwapAxis(x, dim1=-1, dim2=-2)


def product(F: Operators, a: Any, b: Any, ta: bool = False, tb: bool = False, alpha: float = 1.0) -> Any:
    """``alpha`` times the product of two matrices, each transposed or not."""
    return F._linalg_gemm2(a, b, transpose_a=ta, transpose_b=tb, alpha=alpha)


def factorization_cost(p: Params, ins: list[Any], outs: list[Any]) -> Any:
    """Estimated work: cubic in the order of each matrix."""
    return size_of(ins[0]) * ins[0][-1] / 2


def _same_square(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    one = merge_shape(ins[0], outs[0])
    if known(one):
        square(one)
    return [one], [one]


def one_a_matrix(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a result that has one number for each square matrix."""
    square(shape)
    return shape[:-2] or (1,)


def for_each_matrix(fn: Any, matrices: Any, what: str) -> Any:
    """``fn(matrices)``; where that fails, an error that says for which of them."""
    try:
        return fn(matrices)
    except np.linalg.LinAlgError:
        for at in np.ndindex(matrices.shape[:-2]):
            try:
                fn(matrices[at])
            except np.linalg.LinAlgError:
                place = f"A[{', '.join(map(str, at))}]" if at else "A"
                raise ValueError(f"the matrix {place} is {what}") from None
        raise


def _potrf_grad(F: Operators, p: Params, dy: Any, y: Any) -> Any:
    """Murray, "Differentiation of the Cholesky decomposition", 2016, section 4; the gradient is symmetric."""
    low, g = (y, dy) if p.lower else (_t(F, y), _t(F, dy))
    middle = half_triangle(F, product(F, low, g, ta=True))
    s = F._linalg_trsm(low, F._linalg_trsm(low, middle, transpose=True), rightside=True)
    return (s + _t(F, s)) * 0.5


@op("_linalg_potrf", "linalg_potrf", inputs="A", lower=Bool(True), grad=lambda F, p, dy, y: _potrf_grad(F, p, dy, y))
@silent
def potrf(k: Call, p: Params, A: Array) -> Array:
    """The Cholesky factor L of symmetric positive definite matrices A = L L'.

    Parameters
    ----------
    A : array, (..., n, n)
        Only its lower triangle is read, or the upper one.
    lower : bool
        The lower factor; else its transpose.
    """
    low = for_each_matrix(k.xp.linalg.cholesky, A if p.lower else k.xp.swapaxes(A, -1, -2), "not positive definite")
    return low if p.lower else k.xp.ascontiguousarray(k.xp.swapaxes(low, -1, -2))


def _potri_grad(F: Operators, p: Params, dy: Any, A: Any, y: Any) -> Any:
    w = product(F, product(F, y, dy), y)
    w = -(w + _t(F, w))
    a = F._triangle(A, lower=p.lower)
    return F._triangle(product(F, w, a) if p.lower else product(F, a, w), lower=p.lower)


@op(
    "_linalg_potri",
    "linalg_potri",
    inputs="A",
    lower=Bool(True),
    grad=lambda F, p, dy, A, y: _potri_grad(F, p, dy, A, y),
)
@silent
def potri(k: Call, p: Params, A: Array) -> Array:
    """The inverse of the matrices whose Cholesky factors are given.

    Parameters
    ----------
    A : array, (..., n, n)
        The factors, as `linalg_potrf` gives them; only their triangle is read.
    lower : bool
        Whether they are lower factors.
    """
    xp = k.xp
    low = xp.tril(A) if p.lower else xp.swapaxes(xp.triu(A), -1, -2)
    inv = for_each_matrix(xp.linalg.inv, low, "singular: a factor has no zeros on its diagonal")
    return xp.matmul(xp.swapaxes(inv, -1, -2), inv)


@op(
    "_linalg_inverse",
    "linalg_inverse",
    inputs="A",
    grad=lambda F, dy, y: -product(F, product(F, y, dy, ta=True), y, tb=True),
)
@silent
def inverse(k: Call, p: Params, A: Array) -> Array:
    """The inverse of square matrices.

    Parameters
    ----------
    A : array, (..., n, n)
    """
    return for_each_matrix(k.xp.linalg.inv, A, "singular")


for _op in (potrf, potri, inverse):
    _op.shape(_same_square)
    _op.cost(factorization_cost)


def _spread(F: Operators, g: Any, like: Any) -> Any:
    return F._spread(g, like, axis=(-2, -1))


@op(
    "_linalg_det",
    "linalg_det",
    inputs="A",
    labels="numbers",
    mxnet_outputs=3,
    grad=lambda F, dy, A, y: _spread(F, dy * y, A) * _t(F, F._inverse_or_zeros(A, y)),
)
@silent
def det(k: Call, p: Params, A: Array) -> Array:
    """The determinant of square matrices; its gradient is zero where the determinant is.

    Parameters
    ----------
    A : array, (..., n, n)
    """
    return k.xp.linalg.det(A)


@op(
    "_linalg_slogdet",
    "linalg_slogdet",
    inputs="A",
    labels="numbers",
    mxnet_outputs=4,
    outputs="sign logabsdet",
    grad=lambda F, d_logabsdet, A, out_sign: _spread(F, d_logabsdet, A) * _t(F, F._inverse_or_zeros(A, out_sign)),
)
@silent
def slogdet(k: Call, p: Params, A: Array) -> Any:
    """Sign of the determinant of square matrices, and logarithm of its absolute value.

    Where the matrix is singular, sign and gradient are zero.

    Parameters
    ----------
    A : array, (..., n, n)
    """
    sign, log = k.xp.linalg.slogdet(A)
    return sign, log


@op(
    "_linalg_sumlogdiag",
    "linalg_sumlogdiag",
    inputs="A",
    grad=lambda F, dy, A: _spread(F, dy, A) * F._linalg_makediag(1 / F._linalg_extractdiag(A)),
)
@silent
def sumlogdiag(k: Call, p: Params, A: Array) -> Array:
    """Sum of the logarithms of the diagonal of square matrices.

    Parameters
    ----------
    A : array, (..., n, n)
    """
    return k.xp.log(k.xp.diagonal(A, 0, -2, -1)).sum(-1)


det.shape(lambda p, ins: [one_a_matrix(ins[0])])
slogdet.shape(lambda p, ins: [one_a_matrix(ins[0])] * 2)
sumlogdiag.shape(lambda p, ins: [one_a_matrix(ins[0])])


def _gelqf_grad(F: Operators, d_Q: Any, d_L: Any, q: Any, low: Any) -> Any:
    """Walter & Lehmann, "Algorithmic differentiation of linear algebra functions", 2010, for LQ instead of QR."""
    m = product(F, low, d_L, ta=True) - product(F, d_Q, q, tb=True)
    half = half_triangle(F, m)
    return F._linalg_trsm(low, d_Q + product(F, half + _t(F, half), q), transpose=True)


@op(
    "_linalg_gelqf",
    "linalg_gelqf",
    inputs="A",
    labels="numbers",
    outputs="Q L",
    grad=lambda F, d_Q, d_L, out_Q, out_L: _gelqf_grad(F, d_Q, d_L, out_Q, out_L),
)
@silent
def gelqf(k: Call, p: Params, A: Array) -> Any:
    """The factors Q and L of matrices A = L Q: Q has orthonormal rows, L is lower triangular.

    Parameters
    ----------
    A : array, (..., m, n)
        With m <= n.
    """
    xp = k.xp
    q, r = xp.linalg.qr(xp.swapaxes(A, -1, -2))
    return xp.ascontiguousarray(xp.swapaxes(q, -1, -2)), xp.ascontiguousarray(xp.swapaxes(r, -1, -2))


@gelqf.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    if len(ins[0]) < 2 or ins[0][-2] > ins[0][-1]:
        raise ValueError(f"A {ins[0]} must be matrices with no more rows than columns")
    return [ins[0], (*ins[0][:-1], ins[0][-2])]


gelqf.cost(factorization_cost)


def _syevd_grad(F: Operators, d_U: Any, d_L: Any, u: Any, values: Any) -> Any:
    """Giles, "Collected matrix derivative results", 2008, section 3.1; equal eigenvalues exchange nothing."""
    gap = F.broadcast_sub(F.expand_dims(values, axis=-2), F.expand_dims(values, axis=-1))
    turn = product(F, u, d_U, tb=True) * (gap != 0) / (gap + (gap == 0))
    inner = (turn + _t(F, turn)) * 0.5 + F._linalg_makediag(d_L)
    return product(F, product(F, u, inner, ta=True), u)


@op(
    "_linalg_syevd",
    "linalg_syevd",
    inputs="A",
    labels="numbers",
    outputs="U L",
    grad=lambda F, d_U, d_L, out_U, out_L: _syevd_grad(F, d_U, d_L, out_U, out_L),
)
@silent
def syevd(k: Call, p: Params, A: Array) -> Any:
    """Eigenvectors and eigenvalues of symmetric matrices A = U' diag(L) U: the rows of U, and L in rising order.

    Of the two signs of an eigenvector, that one is chosen which makes its largest element positive.

    Parameters
    ----------
    A : array, (..., n, n)
    """
    xp = k.xp
    values, vectors = xp.linalg.eigh(A)
    u = xp.swapaxes(vectors, -1, -2)
    if u.size:
        largest = xp.take_along_axis(u, xp.expand_dims(xp.argmax(xp.abs(u), -1), -1), -1)
        u = u * xp.where(largest < 0, -1, 1).astype(u.dtype)
    return u, values


@syevd.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    square(ins[0])
    return [ins[0], ins[0][:-1]]


syevd.cost(factorization_cost)

for _op in (potrf, potri, inverse, det, slogdet, sumlogdiag, gelqf, syevd):
    _op.dtype(wide_floats)
