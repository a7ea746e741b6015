"""Products of matrices, by cuBLAS."""

from __future__ import annotations

import math
from types import SimpleNamespace

from mxcore.plugin import Call, Params, Spec

from ..blas import Matrix, multiply
from .common import Array, Outs, binds, kernel_for


def _rows(p: Params, shape: tuple[int, ...]) -> tuple[int, int]:
    """The data of a dense layer as a matrix: rows, length of each."""
    first = 1 if p.flatten else len(shape) - 1
    return math.prod(shape[:first]), math.prod(shape[first:])


@binds("FullyConnected")
def _fully_connected(k: Call, p: Params, outs: Outs, data: Array, weight: Array, bias: Array | None = None) -> None:
    (rows, width), n = _rows(p, data.shape), weight.shape[0]
    out, index = outs[0], k.ctx.device_id
    if bias is not None:
        kernel_for(k, "rows", "repeat_row", out.dtype).each(rows * n, bias, out, rows * n, n)
    a, b = Matrix(data, width), Matrix(weight, width, True)
    multiply(out.dtype, index, rows, n, width, a, b, Matrix(out, n), beta=0.0 if bias is None else 1.0)


@binds("_backward_FullyConnected")
def _backward_fully_connected(k: Call, p: Params, outs: Outs, dy: Array, data: Array, weight: Array) -> None:
    (rows, width), n, index = _rows(p, data.shape), weight.shape[0], k.ctx.device_id
    if outs[0] is not None:
        multiply(dy.dtype, index, rows, width, n, Matrix(dy, n), Matrix(weight, width), Matrix(outs[0], width))
    if outs[1] is not None:
        multiply(dy.dtype, index, n, width, rows, Matrix(dy, n, True), Matrix(data, width), Matrix(outs[1], width))
    if not p.no_bias and outs[2] is not None:
        kernel_for(k, "rows", "sum_rows", dy.dtype).columns(n, dy, outs[2], rows, n, False)


def _plain(p: Params, lhs: Spec, rhs: Spec) -> bool:
    return lhs.stype == rhs.stype == "default" and lhs.ndim > 0 and rhs.ndim > 0


@binds("dot", when=_plain)
def _dot(k: Call, p: Params, outs: Outs, lhs: Array, rhs: Array) -> None:
    ta, tb = p.transpose_a and lhs.ndim > 1, p.transpose_b and rhs.ndim > 1
    inner = lhs.shape[0] if ta else lhs.shape[-1]
    m = lhs.size // inner if inner else outs[0].size // max(rhs.size, 1)
    n = rhs.size // inner if inner else 0
    if not inner:
        outs[0][...] = 0
        return
    a, b = Matrix(lhs, m if ta else inner, ta), Matrix(rhs, inner if tb else n, tb)
    multiply(lhs.dtype, k.ctx.device_id, m, n, inner, a, b, Matrix(outs[0], n))


@binds("batch_dot", when=lambda p, a, b: a.shape[:-2] == b.shape[:-2])
def _batch_dot(k: Call, p: Params, outs: Outs, lhs: Array, rhs: Array) -> None:
    if not outs[0].size:
        return
    (m, inner), n = (lhs.shape[-1:-3:-1] if p.transpose_a else lhs.shape[-2:]), outs[0].shape[-1]
    if not inner:
        outs[0][...] = 0
        return
    a = Matrix(lhs, lhs.shape[-1], p.transpose_a, m * inner)
    b = Matrix(rhs, rhs.shape[-1], p.transpose_b, inner * n)
    batch = math.prod(lhs.shape[:-2])
    multiply(lhs.dtype, k.ctx.device_id, m, n, inner, a, b, Matrix(outs[0], n, step=m * n), batch=batch)


#: What kernels of ``mx.nd`` read, of operators of ``mx.np``, which have no such parameters.
_NOT_TRANSPOSED = SimpleNamespace(transpose_a=False, transpose_b=False)


def _stacks(p: Params, a: Spec, b: Spec) -> bool:
    return a.dtype == b.dtype and a.ndim == b.ndim > 1 and a.shape[:-2] == b.shape[:-2]


@binds("_np_dot", when=lambda p, a, b: _stacks(p, a, b) and a.ndim == 2)
@binds("_npi_matmul", when=_stacks)
def _matmul(k: Call, p: Params, outs: Outs, a: Array, b: Array) -> None:
    _batch_dot(k, _NOT_TRANSPOSED, outs, a, b)  # type: ignore[arg-type]
