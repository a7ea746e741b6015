"""Matrix products: BLAS called from inside kernels, and products that are parallel in Numba's threads.

:func:`multiply` is for kernels. :func:`matmul` is the parallel product over arrays: it cuts the result into
blocks, one serial BLAS call each, so that one pool of threads serves products and every other kernel.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any

import numpy as np

from .. import blas as _blas
from ..jit import REORDER, Lazy, helper, intrinsic, kernel, numba
from ..typing import Array, Scalar
from ._arrays import dense

__all__ = [
    "Layer",
    "address",
    "alone",
    "fully_connected",
    "fully_connected_backward",
    "matmul",
    "multiply",
    "small",
    "sum_rows",
]

#: Rows that are summed up one after the other.
_SUMMED = 4096
#: So few are over before a product has begun.
_FEW_ROWS = 256


@functools.cache
def address(dtype: np.dtype[Any]) -> int:
    """Return the product kernels call for a dtype: positive for 64-bit integers, negative for 32-bit ones."""
    found = _blas.find()
    at = found.gemm(dtype) or _own_product(dtype)
    return -at if found.gemm(dtype) and not found.wide else at


def _own_product(dtype: np.dtype[Any]) -> int:
    """Return the address of a product written in Numba, with CBLAS's arguments, where no BLAS was found."""
    global _keep
    nb = numba()
    t, i, real = nb.types, nb.types.int64, nb.from_dtype(dtype)
    p = t.CPointer(real)

    def product(
        order: int,
        ta: bool,
        tb: bool,
        m: int,
        n: int,
        k: int,
        alpha: Scalar,
        a: Array,
        lda: int,
        b: Array,
        ldb: int,
        beta: int,
        c: Array,
        ldc: int,
    ) -> None:
        a_row, a_col = (1, lda) if ta == 112 else (lda, 1)
        for i in range(m):
            for j in range(n if beta == 0 else 0):
                c[i * ldc + j] = 0
            if tb == 112:
                for j in range(n):
                    s = c[i * ldc + j]
                    for q in range(k):
                        s += a[i * a_row + q * a_col] * b[j * ldb + q]
                    c[i * ldc + j] = s
            else:
                for q in range(k):
                    v = a[i * a_row + q * a_col]
                    for j in range(n):
                        c[i * ldc + j] += v * b[q * ldb + j]

    signature = t.void(t.int32, t.int32, t.int32, i, i, i, real, p, i, p, i, real, p, i)
    function = nb.cfunc(signature, nopython=True, error_model="numpy", fastmath=set(REORDER))(product)
    _keep += (function,)
    return int(function.address)


_keep: tuple[object, ...] = ()  # compiled code lives as long as its object


def _cblas(bits: int) -> Lazy:
    @intrinsic
    def call(
        typingctx: Any,
        address: Any,
        ta: Any,
        tb: Any,
        m: Any,
        n: Any,
        k: Any,
        a: Any,
        ao: Any,
        lda: Any,
        b: Any,
        bo: Any,
        ldb: Any,
        beta: Any,
        c: Any,
        co: Any,
        ldc: Any,
    ) -> Any:
        from llvmlite import ir
        from numba import types

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            real = context.get_value_type(signature.args[6].dtype)
            i32, size = ir.IntType(32), ir.IntType(bits)

            def pointer(position: int) -> Any:
                array = context.make_array(signature.args[position])(context, builder, args[position])
                return builder.gep(array.data, [args[position + 1]])

            def integer(position: int) -> Any:
                return builder.trunc(args[position], size) if bits == 32 else args[position]

            def order(position: int) -> Any:  # CblasNoTrans, CblasTrans
                return builder.select(args[position], i32(112), i32(111))

            p = real.as_pointer()
            types_ = [i32] * 3 + [size] * 3 + [real, p, size, p, size, real, p, size]
            product = builder.inttoptr(args[0], ir.FunctionType(ir.VoidType(), types_).as_pointer())
            builder.call(
                product,
                [
                    i32(101),
                    order(1),
                    order(2),
                    integer(3),
                    integer(4),
                    integer(5),
                    real(1.0),
                    pointer(6),
                    integer(8),
                    pointer(9),
                    integer(11),
                    args[12],
                    pointer(13),
                    integer(15),
                ],
            )
            return context.get_dummy_value()

        whole = types.int64
        return types.void(
            whole,
            types.boolean,
            types.boolean,
            whole,
            whole,
            whole,
            a,
            whole,
            whole,
            b,
            whole,
            whole,
            a.dtype,
            c,
            whole,
            whole,
        ), codegen

    return call


_cblas64, _cblas32 = _cblas(64), _cblas(32)


@helper(inline=False)
def multiply(
    blas: int,
    ta: bool,
    tb: bool,
    m: int,
    n: int,
    k: int,
    a: Array,
    ao: int,
    lda: int,
    b: Array,
    bo: int,
    ldb: int,
    add: int,
    c: Array,
    co: int,
    ldc: int,
) -> None:
    """c = op(a) @ op(b), or c += … with `add`, of flat arrays, each with an offset and a row length."""
    if m == 0 or n == 0:
        return
    one, zero = a.dtype.type(1), a.dtype.type(0)
    if k == 0:
        for i in range(0 if add else m):
            for j in range(n):
                c[co + i * ldc + j] = zero
    elif blas > 0:
        _cblas64(blas, ta, tb, m, n, k, a, ao, lda, b, bo, ldb, one if add else zero, c, co, ldc)
    else:
        _cblas32(-blas, ta, tb, m, n, k, a, ao, lda, b, bo, ldb, one if add else zero, c, co, ldc)


@helper(inline=False)
def _block(
    t: int,
    row_parts: int,
    col_parts: int,
    blas: int,
    ta: bool,
    tb: bool,
    m: int,
    n: int,
    k: int,
    a: Array,
    ao: int,
    b: Array,
    bo: int,
    add: int,
    c: Array,
    co: int,
    ldc: int,
) -> None:
    """The t-th block of a product of dense matrices, row by row; arguments as those of :func:`multiply`."""
    i, j = t // col_parts, t % col_parts
    i0, i1 = i * m // row_parts, (i + 1) * m // row_parts
    j0, j1 = j * n // col_parts, (j + 1) * n // col_parts
    lda, ldb = m if ta else k, k if tb else n
    ao += i0 if ta else i0 * lda
    bo += j0 * ldb if tb else j0
    multiply(blas, ta, tb, i1 - i0, j1 - j0, k, a, ao, lda, b, bo, ldb, add, c, co + i0 * ldc + j0, ldc)


@kernel(threshold=1 << 22, blas=True)
def _matmul(
    first: int,
    last: int,
    row_parts: int,
    col_parts: int,
    blas: int,
    ta: bool,
    tb: bool,
    m: int,
    n: int,
    k: int,
    a: Array,
    a_step: int,
    b: Array,
    b_step: int,
    add: int,
    c: Array,
    ldc: int,
) -> None:
    parts = row_parts * col_parts
    for t in range(first, last):
        batch = t // parts
        _block(
            t % parts,
            row_parts,
            col_parts,
            blas,
            ta,
            tb,
            m,
            n,
            k,
            a,
            batch * a_step,
            b,
            batch * b_step,
            add,
            c,
            batch * m * ldc,
            ldc,
        )


@kernel(threshold=1 << 20, fastmath=REORDER)
def _times_vector(
    first: int, last: int, transposed: bool, rows: int, k: int, a: Array, x: Array, add: bool, y: Array
) -> None:
    part = y[first:last]
    if not add:
        part[:] = y.dtype.type(0)
    if transposed:
        for q in range(k):
            line, v = a[q * rows + first : q * rows + last], x[q]
            for i in range(part.size):
                part[i] += v * line[i]
    else:
        for i in range(part.size):
            line, s = a[(first + i) * k : (first + i + 1) * k], y.dtype.type(0)
            for q in range(k):
                s += line[q] * x[q]
            part[i] += s


#: Up to so many rows (or columns) of a result cost less as so many products of matrix and vector: BLAS would pack the
#: matrix.
_THIN = 4


def _thin(workers: int, few: Array, matrix: Array, transposed: bool, out: Array, add: bool) -> None:
    """Write the product of each row of `few` with a matrix, as stored or transposed: (f, k), (n, k) -> (f, n)."""
    n = out.shape[1]
    for x, y in zip(few, out):
        _times_vector.run(workers, n, transposed, n, x.size, matrix.reshape(-1), x, add, y)


def alone(m: int, n: int, k: int) -> bool:
    """Tell whether BLAS computes a product of this size without waking its threads, whoever made it.

    OpenBLAS has used them from 2 ** 18 multiplications on, for a matrix and a vector from 9,216.
    """
    return m * n * k <= (1 << 13 if m == 1 or n == 1 else 1 << 18)


def small(m: int, n: int, k: int) -> bool:
    """Tell whether :func:`matmul` leaves a product of this size to one call of BLAS, which wakes no threads."""
    kernel = _times_vector if min(m, n) <= _THIN else _matmul
    return alone(m, n, k) and kernel.workers(m * n * k) == 1


@functools.cache
def _cut(m: int, n: int, workers: int) -> tuple[int, int]:
    """Return into how many parts rows and columns of a product are cut for so many workers."""
    # The longer side first; a block narrower than 32 is not worth a call.
    longer, shorter = max(m, n), min(m, n)
    first = max(1, min(workers, longer // 32))
    second = max(1, min(workers // first, shorter // 32))
    return (first, second) if m > n else (second, first)


def _operand(a: Array, transposed: bool) -> tuple[Array, bool]:
    """Return the matrix as stored and whether the product must transpose it; transposed views cost no copy."""
    if not a.flags.c_contiguous and a.swapaxes(-1, -2).flags.c_contiguous:
        a, transposed = a.swapaxes(-1, -2), not transposed
    return dense(a), transposed


def matmul(
    a: Array,
    b: Array,
    out: Array,
    transpose_a: bool = False,
    transpose_b: bool = False,
    add: bool = False,
    columns: int | None = None,
) -> None:
    """Write the product of two matrices, or of two equally long batches of matrices.

    Parameters
    ----------
    a, b : ndarray, (m, k) and (k, n), or (batch, m, k) and (batch, k, n)
        Last two axes swapped where `transpose_a` or `transpose_b` is set. In a batched product one of the two
        may be a single matrix.
    out : ndarray, (m, n) or (batch, m, n), C-contiguous
    add : bool
        Add to `out` instead of overwriting it.
    columns : int, optional
        The n of the product, where `out` has rows longer than that; it is written to their beginning.

    Examples
    --------
    >>> out = np.empty((2, 2))
    >>> matmul(np.eye(2), np.array([[1.0, 2], [3, 4]]), out, transpose_b=True)
    >>> out
    array([[1., 3.],
           [2., 4.]])
    """
    whole, n = out, out.shape[-1]
    if columns is not None:
        n, out = columns, out[..., :columns]
    if out.size == 0:
        return
    k = a.shape[-2] if transpose_a else a.shape[-1]
    thin = out.ndim == 2 and columns is None and min(out.shape) <= _THIN
    workers = (_times_vector if thin else _matmul).workers(out.size * k)
    if workers == 1:
        with contextlib.nullcontext() if alone(out.shape[-2], n, k) else _blas.single:
            a, b = a.swapaxes(-1, -2) if transpose_a else a, b.swapaxes(-1, -2) if transpose_b else b
            if add:
                np.add(out, np.matmul(a, b), out=out)
            else:
                np.matmul(a, b, out=out)
        return
    a, transpose_a = _operand(a, transpose_a)
    b, transpose_b = _operand(b, transpose_b)
    *lead, m, _ = out.shape
    if thin:
        if m <= n:
            _thin(workers, dense(a.T if transpose_a else a), b, not transpose_b, out, add)
        else:
            across = out.T.copy()
            _thin(workers, dense(b if transpose_b else b.T), a, transpose_a, across, add)
            out[...] = across.T
        return
    batch = lead[0] if lead else 1
    rows, cols = _cut(m, n, workers // batch) if batch < workers else (1, 1)
    _matmul.run(
        workers,
        batch * rows * cols,
        rows,
        cols,
        address(out.dtype),
        transpose_a,
        transpose_b,
        m,
        n,
        k,
        a.reshape(-1),
        m * k if a.ndim > 2 else 0,
        b.reshape(-1),
        k * n if b.ndim > 2 else 0,
        add,
        whole.reshape(-1),
        whole.shape[-1],
    )


def fully_connected(data: Array, weight: Array, bias: Array | None, out: Array) -> None:
    """Write ``data @ weight.T + bias``: (n, k), (f, k), (f,) -> (n, f)."""
    if bias is not None:
        out[...] = bias
    matmul(data, weight, out, transpose_b=True, add=bias is not None)


def fully_connected_backward(
    dy: Array, data: Array, weight: Array, d_data: Array | None, d_weight: Array | None, d_bias: Array | None
) -> None:
    """Write the gradients that are not None: dy (n, f) -> (n, k), (f, k), (f,)."""
    if d_data is not None:
        matmul(dy, weight, d_data)
    if d_weight is not None:
        matmul(dy, data, d_weight, transpose_a=True)
    if d_bias is not None:
        sum_rows(dy, d_bias)


def sum_rows(rows: Array, out: Array) -> None:
    """Write the sums over the rows of a matrix, by products with ones: of some rows each, for errors grow with them."""
    n, width = rows.shape
    if n <= _FEW_ROWS:
        np.add.reduce(rows, axis=0, out=out)
        return
    whole = n - n % _SUMMED
    with _blas.single:  # the same numbers with any number of threads
        found = np.ones(n - whole, rows.dtype) @ rows[whole:]
        if whole:
            found += (np.ones(_SUMMED, rows.dtype) @ rows[:whole].reshape(whole // _SUMMED, _SUMMED, width)).sum(0)
    out[...] = found


@kernel(threshold=1 << 22)
def layer(
    first: int,
    last: int,
    row_parts: int,
    col_parts: int,
    blas: int,
    rows: int,
    filters: int,
    width: int,
    data: Array,
    weight: Array,
    bias: Array,
    out: Array,
) -> None:
    """Blocks of what a fully connected layer gives; a bias of no elements is none."""
    for t in range(first, last):
        _block(t, row_parts, col_parts, blas, False, True, rows, filters, width, data, 0, weight, 0, 0, out, 0, filters)
        if bias.size > 0:
            i, j = t // col_parts, t % col_parts
            j0, j1 = j * filters // col_parts, (j + 1) * filters // col_parts
            more = bias[j0:j1]
            for r in range(i * rows // row_parts, (i + 1) * rows // row_parts):
                line = out[r * filters + j0 : r * filters + j1]
                for x in range(more.size):
                    line[x] += more[x]


@kernel(threshold=1 << 22)
def layer_gradients(
    first: int,
    last: int,
    data_rows: int,
    data_cols: int,
    weight_rows: int,
    weight_cols: int,
    blas: int,
    rows: int,
    filters: int,
    width: int,
    dy: Array,
    data: Array,
    weight: Array,
    d_data: Array,
    d_weight: Array,
    d_bias: Array,
) -> None:
    """Blocks of the gradients of :func:`layer`: those of the data, of the weight, and the bias as the last one.

    What has no elements is not asked for, and has no blocks.
    """
    n_data = data_rows * data_cols
    n_weight = weight_rows * weight_cols
    for t in range(first, last):
        if t < n_data:
            _block(
                t, data_rows, data_cols, blas, False, False, rows, width, filters, dy, 0, weight, 0, 0, d_data, 0, width
            )
        elif t < n_data + n_weight:
            _block(
                t - n_data,
                weight_rows,
                weight_cols,
                blas,
                True,
                False,
                filters,
                width,
                rows,
                dy,
                0,
                data,
                0,
                0,
                d_weight,
                0,
                width,
            )
        else:
            for j in range(filters):
                d_bias[j] = dy[j]
            for at in range(filters, rows * filters, filters):
                line = dy[at : at + filters]
                for j in range(filters):
                    d_bias[j] += line[j]


class Layer:
    """A fully connected layer of one size, each direction one call.

    NumPy's functions would each be another piece of code to be fetched, which takes longer than a small product, and
    BLAS would be told of its threads for each.

    Parameters
    ----------
    rows, filters, width : int
        Of data (rows, width) and weight (filters, width).
    dtype : dtype
        Of all arrays, which are dense and of one dimension.

    Examples
    --------
    >>> out = np.empty(2, np.float32)
    >>> x, w, b = (np.array(v, np.float32) for v in ([1, 2], [3, 4, 5, 6], [1, 1]))
    >>> Layer(1, 2, 2, out.dtype).forward(x, w, b, out)
    >>> out
    array([12., 18.], dtype=float32)
    """

    def __init__(self, rows: int, filters: int, width: int, dtype: np.dtype[Any]) -> None:
        self.size, self.nothing = (rows, filters, width), np.empty(0, dtype)
        self.work, self.blas = rows * filters * width, address(dtype)
        self.held: Any = contextlib.nullcontext() if alone(*self.size) else _blas.single

    @property
    def serves(self) -> bool:
        """Whether nothing else is faster: NumPy has other products for vectors, and larger ones need a BLAS."""
        least = min(self.size)
        return least > 1 and small(*self.size) or least > _THIN and bool(_blas.find().gemm(self.nothing.dtype))

    def forward(self, data: Array, weight: Array, bias: Array | None, out: Array) -> None:
        """Write ``data @ weight.T + bias``."""
        rows, filters, _ = self.size
        workers = layer.workers(self.work)
        cut = _cut(rows, filters, workers)
        with self.held:
            layer.run(
                *(workers, cut[0] * cut[1], *cut, self.blas, *self.size),
                *(data, weight, self.nothing if bias is None else bias, out),
            )

    def backward(
        self, dy: Array, data: Array, weight: Array, d_data: Array | None, d_weight: Array | None, d_bias: Array | None
    ) -> None:
        """Write the gradients that are not None."""
        rows, filters, width = self.size
        if d_bias is not None and rows > _FEW_ROWS:
            sum_rows(dy.reshape(rows, filters), d_bias)
            d_bias = None
        workers = layer_gradients.workers(self.work)
        to_data = (0, 0) if d_data is None else _cut(rows, width, workers)
        to_weight = (0, 0) if d_weight is None else _cut(filters, width, workers)
        items = to_data[0] * to_data[1] + to_weight[0] * to_weight[1] + (d_bias is not None)
        outs = [self.nothing if o is None else o for o in (d_data, d_weight, d_bias)]
        with self.held:
            layer_gradients.run(
                *(workers, items, *to_data, *to_weight, self.blas, *self.size), *(dy, data, weight, *outs)
            )
