"""Diagonals and triangles of matrices: taken out as vectors, and put back."""

from __future__ import annotations

from math import isqrt
from typing import Any

from ..._core.infer import merge_dtype
from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool, Float, Int
from ...typing import Array, Call, Operators

__all__ = ["floats", "half_triangle", "square", "wide_floats"]


def floats(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    """The dtype rule of products: one floating dtype; whole numbers would lose what `alpha` multiplies."""
    one: Any = None
    for t in (*ins, *outs):
        one = merge_dtype(one, t)
    if one is not None and one.kind in "iub":
        raise TypeError(f"{one.name} is none that linear algebra computes in; cast to float32 or float64")
    return [one] * len(ins), [one] * len(outs)


def wide_floats(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    """The dtype rule of factorisations: one dtype, float32 or float64, which is what LAPACK has."""
    ins, outs = floats(p, ins, outs)
    if ins[0] is not None and ins[0].itemsize < 4:
        raise TypeError(f"{ins[0].name} is too narrow for a factorisation; cast to float32 or float64")
    return ins, outs


def square(shape: tuple[int, ...]) -> int:
    """The number of rows of square matrices; raises ValueError for others."""
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ValueError(f"A {shape} must be square matrices in its last two dimensions")
    return shape[-1]


def half_triangle(F: Operators, x: Any) -> Any:
    """The lower triangle with half its diagonal: a matrix that, added to its transpose, is symmetric."""
    return F._triangle(x, diagonal=0.5)


@op(
    "_triangle",
    inputs="A",
    lower=Bool(True),
    diagonal=Float(1.0),
    grad=lambda F, p, dy: F._triangle(dy, lower=p.lower, diagonal=p.diagonal),
)
def triangle(k: Call, p: Params, A: Array) -> Array:
    """Square matrices with zeros beyond a triangle.

    Parameters
    ----------
    A : array, (..., n, n)
    lower : bool
        Which triangle stays.
    diagonal : float
        Factor on the diagonal.
    """
    xp = k.xp
    out = xp.tril(A) if p.lower else xp.triu(A)
    if p.diagonal != 1.0:
        at = (..., *_diagonal(xp, A.shape[-1], 0))
        out[at] = A[at] * A.dtype.type(p.diagonal)
    return out


@triangle.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    square(ins[0])
    return [ins[0]]


def _diagonal(xp: Any, n: int, offset: int) -> tuple[Any, Any]:
    """(rows, columns) of a diagonal of an n x n matrix."""
    at = xp.arange(n - abs(offset))
    return at + max(-offset, 0), at + max(offset, 0)


@op(
    "_linalg_extractdiag",
    "linalg_extractdiag",
    inputs="A",
    offset=Int(0),
    grad=lambda F, p, dy: F._linalg_makediag(dy, offset=p.offset),
)
def extractdiag(k: Call, p: Params, A: Array) -> Array:
    """A diagonal of square matrices.

    Parameters
    ----------
    A : array, (..., n, n)
    offset : int
        Which diagonal: above the main one if positive.
    """
    return A[(...,) + _diagonal(k.xp, A.shape[-1], p.offset)]


@extractdiag.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    n = square(ins[0])
    if abs(p.offset) >= max(n, 1):
        raise ValueError(f"a {n} x {n} matrix has no diagonal with offset {p.offset}")
    return [(*ins[0][:-2], n - abs(p.offset))]


@op(
    "_linalg_makediag",
    "linalg_makediag",
    inputs="A",
    offset=Int(0),
    grad=lambda F, p, dy: F._linalg_extractdiag(dy, offset=p.offset),
)
def makediag(k: Call, p: Params, A: Array) -> Array:
    """Square matrices with vectors on a diagonal.

    Parameters
    ----------
    A : array, (..., n)
    offset : int
        Which diagonal: above the main one if positive.
    """
    n = A.shape[-1] + abs(p.offset)
    out = k.xp.zeros((*A.shape[:-1], n, n), A.dtype)
    out[(...,) + _diagonal(k.xp, n, p.offset)] = A
    return out


makediag.shape(lambda p, ins: [(*ins[0][:-1], *(ins[0][-1] + abs(p.offset),) * 2)])


def _corner(xp: Any, n: int, offset: int, lower: bool) -> tuple[Any, Any]:
    """(rows, columns) of a triangle of an n x n matrix: the lower one row by row, the upper one column by column."""
    long, short = xp.nonzero(xp.tri(n, n, -abs(offset)))
    return (long, short) if (lower if offset == 0 else offset < 0) else (short, long)


@op(
    "_linalg_extracttrian",
    "linalg_extracttrian",
    inputs="A",
    offset=Int(0),
    lower=Bool(True),
    grad=lambda F, p, dy: F._linalg_maketrian(dy, offset=p.offset, lower=p.lower),
)
def extracttrian(k: Call, p: Params, A: Array) -> Array:
    """A triangle of square matrices, as vectors: the lower one row by row, the upper one column by column.

    Parameters
    ----------
    A : array, (..., n, n)
    offset : int
        The diagonal that bounds the triangle; above the main one, it is the upper triangle, below it, the lower.
    lower : bool
        The lower triangle, if `offset` is 0.
    """
    return A[(...,) + _corner(k.xp, A.shape[-1], p.offset, p.lower)]


@extracttrian.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    n = square(ins[0])
    m = n - abs(p.offset)
    if m < 1 and n:
        raise ValueError(f"a {n} x {n} matrix has no diagonal with offset {p.offset}")
    return [(*ins[0][:-2], max(m, 0) * (max(m, 0) + 1) // 2)]


def _side(p: Params, length: int) -> int:
    m = (isqrt(8 * length + 1) - 1) // 2
    if m * (m + 1) // 2 != length:
        raise ValueError(f"{length} elements fill no triangle; 1, 3, 6, 10, ... do")
    return m + abs(int(p.offset))


@op(
    "_linalg_maketrian",
    "linalg_maketrian",
    inputs="A",
    offset=Int(0),
    lower=Bool(True),
    grad=lambda F, p, dy: F._linalg_extracttrian(dy, offset=p.offset, lower=p.lower),
)
def maketrian(k: Call, p: Params, A: Array) -> Array:
    """Square matrices with vectors in a triangle: the lower one row by row, the upper one column by column.

    Parameters
    ----------
    A : array, (..., m * (m + 1) / 2)
    offset : int
        The diagonal that bounds the triangle; above the main one, it is the upper triangle, below it, the lower.
    lower : bool
        The lower triangle, if `offset` is 0.
    """
    n = _side(p, A.shape[-1])
    out = k.xp.zeros((*A.shape[:-1], n, n), A.dtype)
    out[(...,) + _corner(k.xp, n, p.offset, p.lower)] = A
    return out


maketrian.shape(lambda p, ins: [(*ins[0][:-1], *(_side(p, ins[0][-1]),) * 2)])
