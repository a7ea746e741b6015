"""Products with a matrix that is packed first, and may stay so for many of them; see :mod:`..native.products`.

BLAS packs both factors at every call, which takes as long as a product of a few rows, and OpenBLAS has AVX2 only for
processors that it does not know. :func:`multiply_packed` is for kernels, :func:`product` for arrays.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from .. import blas, threads
from ..jit import driver_address, intrinsic
from ..native import driver, products
from ..typing import Array

__all__ = ["address", "multiply_packed", "multiply_strided", "pack", "packed_size", "pays", "product"]

#: OpenBLAS's products that have no AVX-512, also on processors that it does not know yet.
_NARROW = {"Haswell", "Zen", "Excavator", "Steamroller", "Piledriver", "Bulldozer", "Sandybridge", "Nehalem"}
#: Of fewer rows a product takes no longer than packing; smaller ones no longer than calls.
_FEW, _SMALL = 16, 1 << 15
#: Multiplications that are worth more than one thread.
_LARGE = 1 << 21
#: Numbers of a matrix that the caches would not keep packed: it is read where it lies, if it lies well.
_LONG = 1 << 20
#: What a part of a product is told.
_FRAME = ctypes.c_int64 * 13


@functools.cache
def address(dtype: np.dtype[Any]) -> int:
    """Where the product with a packed matrix is, for :func:`multiply_packed`; 0 where the processor has not enough."""
    return products.times(dtype.itemsize) if products.bits() and driver.usable() else 0


def packed_size(k: int, n: int, dtype: np.dtype[Any]) -> int:
    """Numbers that a packed matrix (k, n) takes."""
    return products.packed_size(k, n, dtype.itemsize)


@functools.cache
def _wider_than_blas() -> bool:
    return products.bits() == 512 and driver.usable() and blas.core() in _NARROW


def pays(dtype: np.dtype[Any], m: int, n: int, k: int) -> bool:
    """Whether a product (m, k) @ (k, n) is faster here than by BLAS, packing and all."""
    return m >= _FEW and n >= _FEW and m * n * k >= _SMALL and dtype.char in "fd" and _wider_than_blas()


@functools.cache
def _function(at: int, n_args: int) -> Any:
    return ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * n_args)(at)


def pack(b: Array, out: Array) -> None:
    """Pack a matrix, however it lies, into the beginning of a vector."""
    size, (row, column) = b.itemsize, b.strides
    make = _function(products.pack(size), 6)
    make(*b.shape, b.ctypes.data, row // size, column // size, out.ctypes.data)


def product(a: Array, b: Array, out: Array, add: bool = False) -> None:
    """Write the product of two matrices, or add it to what is there.

    Parameters
    ----------
    a, b : ndarray, (m, k) and (k, n)
        In whatever order their numbers lie.
    out : ndarray, (m, n)
        The numbers of a row lie side by side.
    add : bool
    """
    (m, k), n, size = a.shape, b.shape[1], out.itemsize
    if k * n >= _LONG and b.strides[1] == size and not n % products.vector(size):
        right, gap = b, b.strides[0] // size
    else:
        right, gap = np.empty(packed_size(k, n, out.dtype), out.dtype), 0
        pack(b, right)
    row, column = a.strides
    words = m, n, k, a.ctypes.data, row // size, column // size, right.ctypes.data, gap, add, out.ctypes.data
    call = (*words, out.strides[0] // size)
    if m * n * k >= _LARGE and (workers := threads.count()) > 1:
        by_columns = n > m
        items = -(-n // (products.PANEL * products.vector(size))) if by_columns else -(-m // products.rows_of_a_tile())
        parts = min(workers, items)
        with threads.parallel(parts) as granted:
            if granted:
                frame = _FRAME(products.times(size), *call, by_columns)
                drive = _function(driver_address(), 4)
                drive(products.part(size), ctypes.addressof(frame), parts, items)
                return
    _function(products.times(size), 11)(*call)


@intrinsic
def multiply_packed(
    typingctx: Any, address: Any, m: Any, n: Any, k: Any, a: Any, ao: Any, b: Any, bo: Any, add: Any, c: Any, co: Any
) -> Any:
    """c = a @ b, or c += … with `add`, of flat arrays, each with an offset: a (m, k) and c (m, n) dense, b packed."""
    from numba import types

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address, m, n, k, a, ao, b, bo, add, c, co = args
        one, zero = (context.get_constant(types.int64, i) for i in (1, 0))
        given = (address, m, n, k, a, ao, k, one, b, bo, zero, add, c, co, n)
        return _call(context, builder, [signature.args[i] for i in (4, 6, 9)], given)

    w = types.int64
    return types.void(w, w, w, w, a, w, b, w, w, c, w), codegen


@intrinsic
def multiply_strided(
    typingctx: Any,
    address: Any,
    m: Any,
    n: Any,
    k: Any,
    a: Any,
    ao: Any,
    row: Any,
    column: Any,
    b: Any,
    bo: Any,
    gap: Any,
    add: Any,
    c: Any,
    co: Any,
    line: Any,
) -> Any:
    """As :func:`multiply_packed`, of a matrix b whose rows lie `gap` numbers apart and fill vectors.

    Rows and columns of a lie `row` and `column` numbers apart, rows of c `line`.
    """
    from numba import types

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _call(context, builder, [signature.args[i] for i in (4, 8, 12)], args)

    w = types.int64
    return types.void(w, w, w, w, a, w, w, w, b, w, w, w, c, w, w), codegen


def _call(context: Any, builder: Any, kinds: Any, args: Any) -> Any:
    """Call the product; `kinds` are the types of its arrays."""
    from llvmlite import ir

    i64 = ir.IntType(64)

    def place(kind: Any, array: Any, offset: Any) -> Any:
        data = context.make_array(kind)(context, builder, array).data
        return builder.ptrtoint(builder.gep(data, [offset]), i64)

    address, m, n, k, a, ao, row, column, b, bo, gap, add, c, co, line = args
    places = [place(*given) for given in zip(kinds, (a, b, c), (ao, bo, co))]
    f = builder.inttoptr(address, ir.FunctionType(ir.VoidType(), [i64] * 11).as_pointer())
    builder.call(f, [m, n, k, places[0], row, column, places[1], gap, add, places[2], line])
    return context.get_dummy_value()
