"""Linear algebra on stacks of matrices (``mx.nd.linalg``)."""
from __future__ import annotations

from typing import Any

from .._core.infer import merge_shape
from .._core.op import op
from .._core.params import Bool, Float, Int
from ..testing.sample import Sample
from .rules import axis_of, size_of

__all__: list[str] = []


def _t(xp: Any, a: Any) -> Any:
    return xp.swapaxes(a, -1, -2)


def _rows_inside(xp: Any, a: Any, axis: int) -> Any:
    """Bring the axis that holds the rows next to the last."""
    return a if axis_of(axis, a.ndim) == a.ndim - 2 else xp.moveaxis(a, axis, -2)


def _rows_back(xp: Any, a: Any, axis: int) -> Any:
    return a if axis_of(axis, a.ndim) == a.ndim - 2 else xp.ascontiguousarray(xp.moveaxis(a, -2, axis))


def _gemm_shape(p: Any, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    if len(a) != len(b) or len(a) < 2:
        raise ValueError(f"A {a} and B {b} must have one rank, of at least 2")
    axis = axis_of(p.axis, len(a))
    if axis == len(a) - 1:
        raise ValueError(f"axis {p.axis} holds the rows; the last axis holds the columns")
    m, n = (a[-1], a[axis]) if p.transpose_a else (a[axis], a[-1])
    r, c = (b[-1], b[axis]) if p.transpose_b else (b[axis], b[-1])
    if n != r and -1 not in (n, r):
        raise ValueError(f"the inner lengths {n} and {r} differ")
    lead = merge_shape(a[:axis] + a[axis + 1:-1], b[:axis] + b[axis + 1:-1])
    return (*lead[:axis], m, *lead[axis:], c)


def _gemm(k: Any, p: Any, a: Any, b: Any) -> Any:
    xp = k.xp
    a, b = _rows_inside(xp, a, p.axis), _rows_inside(xp, b, p.axis)
    c = xp.matmul(_t(xp, a) if p.transpose_a else a, _t(xp, b) if p.transpose_b else b)
    return c if p.alpha == 1.0 else c * c.dtype.type(p.alpha)


def _gemm_grads(F: Any, p: Any, dy: Any, A: Any, B: Any) -> tuple[Any, Any]:
    def g(a: Any, b: Any, ta: bool, tb: bool) -> Any:
        return F._linalg_gemm2(a, b, transpose_a=ta, transpose_b=tb, alpha=p.alpha, axis=p.axis)

    ta, tb = p.transpose_a, p.transpose_b
    return (g(B, dy, tb, True) if ta else g(dy, B, False, not tb)), (g(dy, A, True, ta) if tb else g(A, dy, not ta, False))


_GEMM2 = {"transpose_a": Bool(False), "transpose_b": Bool(False), "alpha": Float(1.0), "axis": Int(-2)}


@op("_linalg_gemm2", "linalg_gemm2", inputs="A B", **_GEMM2, grad=lambda F, p, dy, A, B: _gemm_grads(F, p, dy, A, B),
    samples=[Sample((2, 3), (3, 4)), Sample((2, 2, 3), (2, 4, 3), params={"transpose_b": True, "alpha": 0.5}),
             Sample((3, 2), (4, 3), params={"transpose_a": True, "transpose_b": True}),
             Sample((2, 5, 3), (3, 5, 4), params={"axis": 0}), Sample((3, 2), (3, 4), params={"transpose_a": True})])
def gemm2(k, p, A, B):
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


gemm2.shape(lambda p, ins: [_gemm_shape(p, *ins)])
gemm2.cost(lambda p, ins, outs: size_of(outs[0]) * (ins[0][p.axis] if p.transpose_a else ins[0][-1]) / 10)
