"""Linear algebra on stacks of matrices (``mx.nd.linalg``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.infer import merge_shape
from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool, Float, Int
from ...typing import Array, Call, Operators
from ..common.bodies import silent
from ..common.rules import axis_of, partly, size_of
from .triangles import floats, square, wide_floats

__all__: list[str] = []


def _t(xp: Any, a: Any) -> Any:
    return xp.swapaxes(a, -1, -2)


def _rows_inside(xp: Any, a: Any, axis: int) -> Any:
    """Bring the axis that holds the rows next to the last."""
    return a if axis_of(axis, a.ndim) == a.ndim - 2 else xp.moveaxis(a, axis, -2)


def _rows_back(xp: Any, a: Any, axis: int) -> Any:
    return a if axis_of(axis, a.ndim) == a.ndim - 2 else xp.ascontiguousarray(xp.moveaxis(a, -2, axis))


def _gemm_shape(p: Params, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    if len(a) != len(b) or len(a) < 2:
        raise ValueError(f"A {a} and B {b} must have one rank, of at least 2")
    axis = axis_of(p.axis, len(a))
    if axis == len(a) - 1:
        raise ValueError(f"axis {p.axis} holds the rows; the last axis holds the columns")
    m, n = (a[-1], a[axis]) if p.transpose_a else (a[axis], a[-1])
    r, c = (b[-1], b[axis]) if p.transpose_b else (b[axis], b[-1])
    if n != r and -1 not in (n, r):
        raise ValueError(f"the inner lengths {n} and {r} differ")
    lead = merge_shape(a[:axis] + a[axis + 1 : -1], b[:axis] + b[axis + 1 : -1])
    return (*lead[:axis], m, *lead[axis:], c)


def _gemm(k: Call, p: Params, a: Any, b: Any) -> Any:
    xp = k.xp
    a, b = _rows_inside(xp, a, p.axis), _rows_inside(xp, b, p.axis)
    c = xp.matmul(_t(xp, a) if p.transpose_a else a, _t(xp, b) if p.transpose_b else b)
    return c if p.alpha == 1.0 else c * c.dtype.type(p.alpha)


def _gemm_grads(F: Operators, p: Params, dy: Any, A: Any, B: Any) -> tuple[Any, Any]:
    def g(a: Any, b: Any, ta: bool, tb: bool) -> Any:
        return F._linalg_gemm2(a, b, transpose_a=ta, transpose_b=tb, alpha=p.alpha, axis=p.axis)

    ta, tb = p.transpose_a, p.transpose_b
    return (g(B, dy, tb, True) if ta else g(dy, B, False, not tb)), (
        g(dy, A, True, ta) if tb else g(A, dy, not ta, False)
    )


_GEMM2 = {"transpose_a": Bool(False), "transpose_b": Bool(False), "alpha": Float(1.0), "axis": Int(-2)}


@op(
    "_linalg_gemm2",
    "linalg_gemm2",
    inputs="A B",
    recompute=False,
    **_GEMM2,
    grad=lambda F, p, dy, A, B: _gemm_grads(F, p, dy, A, B),
)
def gemm2(k: Call, p: Params, A: Array, B: Array) -> Array:
    """alpha * op(A) @ op(B), for each pair of matrices of two stacks.

    Parameters
    ----------
    A, B : array, (..., m, n) and (..., n, r)
    transpose_a, transpose_b : bool
        Transpose the matrices first.
    alpha : float
    axis : int
        The axis that holds the rows.
    """
    return _rows_back(k.xp, _gemm(k, p, A, B), p.axis)


def _product_shape(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    """The shape of the product, and of what is added to it, as far as both factors tell."""
    a, b, *added = ins
    if a is None or b is None:
        return ins, outs
    out = _gemm_shape(p, a, b)
    for c in added:
        try:
            out = merge_shape(out, c)
        except ValueError:
            raise ValueError(f"C {c} must have the shape of the product, {out}") from None
    return [a, b, *(out for c in added)], [out]


gemm2.shape(_product_shape)
gemm2.cost(lambda p, ins, outs: size_of(outs[0]) * (ins[0][p.axis] if p.transpose_a else ins[0][-1]) / 10)
gemm2.attach(flops=True)


@op(
    "_linalg_gemm",
    "linalg_gemm",
    inputs="A B C",
    recompute=False,
    **{n: _GEMM2[n] for n in ("transpose_a", "transpose_b", "alpha")},
    beta=Float(1.0),
    axis=_GEMM2["axis"],
    grad=lambda F, p, dy, A, B: (*_gemm_grads(F, p, dy, A, B), dy * p.beta),
)
def gemm(k: Call, p: Params, A: Array, B: Array, C: Array) -> Array:
    """alpha * op(A) @ op(B) + beta * C, for each triple of matrices of three stacks.

    Parameters
    ----------
    A, B, C : array, (..., m, n), (..., n, r) and (..., m, r)
    transpose_a, transpose_b : bool
        Transpose the matrices A, B first.
    alpha, beta : float
    axis : int
        The axis that holds the rows.
    """
    return _rows_back(k.xp, _gemm(k, p, A, B), p.axis) + C * C.dtype.type(p.beta)


gemm.shape(_product_shape)
gemm.attach(flops=lambda p, ins, outs: gemm2.facet("flops", p, ins[:2], outs))


@op(
    "_linalg_syrk",
    "linalg_syrk",
    inputs="A",
    transpose=Bool(False),
    alpha=Float(1.0),
    grad=lambda F, p, dy, A: _syrk_grad(F, p, dy, A),
)
def syrk(k: Call, p: Params, A: Array) -> Array:
    """alpha * A @ A', or alpha * A' @ A, for each matrix of a stack.

    Parameters
    ----------
    A : array, (..., m, n)
    transpose : bool
        Transpose the first factor instead of the second.
    alpha : float
    """
    xp = k.xp
    a, b = (_t(xp, A), A) if p.transpose else (A, _t(xp, A))
    c = xp.matmul(a, b)
    return c if p.alpha == 1.0 else c * c.dtype.type(p.alpha)


def _syrk_grad(F: Operators, p: Params, dy: Any, A: Any) -> Any:
    g = dy + F.SwapAxis(dy, dim1=-1, dim2=-2)
    return F._linalg_gemm2(A, g, alpha=p.alpha) if p.transpose else F._linalg_gemm2(g, A, alpha=p.alpha)


def _syrk_shape(p: Params, a: tuple[int, ...]) -> tuple[int, ...]:
    if len(a) < 2:
        raise ValueError(f"A {a} must have at least two dimensions")
    n = a[-1 if p.transpose else -2]
    return (*a[:-2], n, n)


syrk.shape(partly(_syrk_shape))


_TRI = {"transpose": Bool(False), "rightside": Bool(False), "lower": Bool(True), "alpha": Float(1.0)}


def _op_of(xp: Any, p: Params, A: Any) -> Any:
    a = xp.tril(A) if p.lower else xp.triu(A)
    return _t(xp, a) if p.transpose else a


def _tri_shape(p: Params, ins: list[Any]) -> list[Any]:
    a, b = ins
    n = square(a)
    if len(a) != len(b) or a[:-2] != b[:-2] or b[-1 if p.rightside else -2] != n:
        raise ValueError(
            f"A {a} and B {b} do not fit: {'B @ A' if p.rightside else 'A @ B'} is meant, for stacks of one shape"
        )
    return [b]


@op("_linalg_trmm", "linalg_trmm", inputs="A B", **_TRI, grad=lambda F, p, dy, A, B: _trmm_grads(F, p, dy, A, B))
def trmm(k: Call, p: Params, A: Array, B: Array) -> Array:
    """alpha * op(A) @ B, or alpha * B @ op(A), for triangular matrices A.

    Parameters
    ----------
    A : array, (..., n, n)
        Only its triangle is read.
    B : array, (..., n, m), or (..., m, n) on the right side
    transpose : bool
        Transpose A first.
    rightside : bool
        A stands on the right.
    lower : bool
        Which triangle of A.
    alpha : float
    """
    a = _op_of(k.xp, p, A)
    out = k.xp.matmul(B, a) if p.rightside else k.xp.matmul(a, B)
    return out if p.alpha == 1.0 else out * out.dtype.type(p.alpha)


def _trmm_grads(F: Operators, p: Params, dy: Any, A: Any, B: Any) -> tuple[Any, Any]:
    db = F._linalg_trmm(A, dy, transpose=not p.transpose, rightside=p.rightside, lower=p.lower, alpha=p.alpha)
    return F._triangle(_cross(F, p, B, dy, p.alpha), lower=p.lower), db


def _cross(F: Operators, p: Params, x: Any, g: Any, alpha: float) -> Any:
    """The gradient of <g, op(A) x> or <g, x op(A)> for A."""
    if p.rightside:
        x, g = (g, x) if p.transpose else (x, g)
        return F._linalg_gemm2(x, g, transpose_a=True, alpha=alpha)
    x, g = (x, g) if p.transpose else (g, x)
    return F._linalg_gemm2(x, g, transpose_b=True, alpha=alpha)


@op("_linalg_trsm", "linalg_trsm", inputs="A B", **_TRI, grad=lambda F, p, dy, A, y: _trsm_grads(F, p, dy, A, y))
@silent
def trsm(k: Call, p: Params, A: Array, B: Array) -> Array:
    """The X with op(A) @ X = alpha * B, or X @ op(A) = alpha * B, for triangular matrices A.

    Parameters
    ----------
    A : array, (..., n, n)
        Only its triangle is read.
    B : array, (..., n, m), or (..., m, n) on the right side
    transpose : bool
        Transpose A first.
    rightside : bool
        A stands on the right.
    lower : bool
        Which triangle of A.
    alpha : float
    """
    xp = k.xp
    a, b = _op_of(xp, p, A), B
    if p.rightside:
        a, b = _t(xp, a), _t(xp, b)
    try:
        # A queue raises too late.
        if k.device.async_ and (xp.diagonal(a, 0, -2, -1) == 0).any().item():
            raise np.linalg.LinAlgError
        out = xp.linalg.solve(a, b)
    except np.linalg.LinAlgError:  # a zero on the diagonal: infinity
        out = _substituted(xp, a, b, p.lower ^ p.transpose ^ p.rightside)
    out = _t(xp, out) if p.rightside else out
    return xp.ascontiguousarray(out if p.alpha == 1.0 else out * out.dtype.type(p.alpha))


def _substituted(xp: Any, a: Any, b: Any, lower: bool) -> Any:
    """The solution of triangular systems row by row."""
    n = a.shape[-1]
    x = xp.zeros_like(b)
    for i in range(n) if lower else reversed(range(n)):
        x[..., i, :] = (b[..., i, :] - xp.matmul(a[..., i : i + 1, :], x)[..., 0, :]) / a[..., i : i + 1, i]
    return x


def _trsm_grads(F: Operators, p: Params, dy: Any, A: Any, y: Any) -> tuple[Any, Any]:
    g = F._linalg_trsm(A, dy, transpose=not p.transpose, rightside=p.rightside, lower=p.lower)
    return F._triangle(_cross(F, p, y, g, -1.0), lower=p.lower), g * p.alpha


for _op in (trmm, trsm):
    _op.shape(_tri_shape)
    _op.cost(lambda p, ins, outs: size_of(outs[0]) * ins[0][-1] / 10)


for _op in (gemm, gemm2, syrk, trmm):
    _op.dtype(floats)
trsm.dtype(wide_floats)
