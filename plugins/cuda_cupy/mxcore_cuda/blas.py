"""cuBLAS by its C interface: products of matrices, and of stacks of them.

CuPy's own calls refuse to be captured in graphs, round stacks of float16 up and ignore TF32; here are the few functions
that matter. Their matrices lie column by column, ours row by row: what they take for A is our B transposed.
"""

from __future__ import annotations

import ctypes
import os
import threading
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from mxcore.plugin import error

from .drivers import driver
from .dtypes import name_of

__all__ = ["Matrix", "WORKSPACE", "allows_tf32", "multiply"]

#: Bytes of a handle's own workspace, without which every captured graph would bring one.
WORKSPACE = 32 << 20
_TYPES = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 14}
_F32, _F64, _TF32 = 68, 70, 77
_DEFAULT_ALGORITHM = -1
_STATUS = {
    1: "not initialized",
    3: "no memory",
    7: "invalid value",
    8: "the GPU is too old for it",
    11: "a mapping failed",
    13: "the launch failed",
    14: "an internal error",
    15: "not supported",
}


class Matrix(NamedTuple):
    """A matrix, or a stack of them, row by row in memory.

    Attributes
    ----------
    array : array
        Where it begins.
    stride : int
        Elements from one row to the next.
    transposed : bool
        It takes part transposed.
    step : int
        Elements from one matrix of a stack to the next; 0 for the same.
    offset : int
        Elements before the first.
    """

    array: Any
    stride: int
    transposed: bool = False
    step: int = 0
    offset: int = 0


class _Handle:
    """cuBLAS on a stream of a device: one call at a time prepares and launches."""

    def __init__(self, index: int, which: str) -> None:
        d = driver()
        self.library = _library()
        self.lock = threading.RLock()  # a signal's handler may call it before a call has begun
        self.stream = d.stream(index, which)
        self.pointer = ctypes.c_void_p()
        _check(self.library.cublasCreate_v2(ctypes.byref(self.pointer)), "cublasCreate")
        self.workspace = d.empty((WORKSPACE,), np.uint8, index)
        _check(self.library.cublasSetStream_v2(self.pointer, d.pointer_of(self.stream)), "cublasSetStream")
        # The stream takes the workspace away again.
        place = ctypes.c_void_p(d.address(self.workspace))
        _check(
            self.library.cublasSetWorkspace_v2(self.pointer, place, ctypes.c_size_t(WORKSPACE)), "cublasSetWorkspace"
        )


@cache
def _library() -> ctypes.CDLL:
    found: ctypes.CDLL = driver().cublas()
    return found


@cache
def _handles(index: int) -> dict[bool, _Handle]:
    """By whether the thread captures; made together, for in a capture none can be made."""
    return {False: _Handle(index, "compute"), True: _Handle(index, "capture")}


def allows_tf32() -> bool:
    """Whether products of float32 may be rounded, as MXNET_CUDA_TENSOR_OP_MATH_ALLOW_CONVERSION says now."""
    return os.environ.get("MXNET_CUDA_TENSOR_OP_MATH_ALLOW_CONVERSION", "0") not in ("", "0")


def _compute(dtype: str) -> int:
    if dtype == "float64":
        return _F64
    return _TF32 if dtype == "float32" and allows_tf32() else _F32


def multiply(
    dtype: Any,
    index: int,
    m: int,
    n: int,
    k: int,
    a: Matrix,
    b: Matrix,
    c: Matrix,
    *,
    batch: int = 1,
    alpha: float = 1.0,
    beta: float = 0.0,
) -> None:
    """Write ``alpha * a @ b + beta * c`` into `c`, on the compute stream: (m, k) @ (k, n), or a stack of these.

    Parameters
    ----------
    dtype : numpy.dtype
        Of all three: float16 or bfloat16 (added up in float32), float32 or float64.
    index : int
        Of the device.
    m, n, k : int
    a, b, c : Matrix
    batch : int
        Matrices in the stack.
    alpha, beta : float

    Raises
    ------
    MXNetError
        (also RuntimeError) with what cuBLAS says.
    """
    if not (m and n and batch):
        return
    name, d = name_of(dtype), driver()
    kind, compute = _TYPES[name], _compute(name)
    scalar = ctypes.c_double if compute == _F64 else ctypes.c_float
    one, zero = scalar(alpha), scalar(beta)
    handle, size = _handles(index)[d.capturing()], np.dtype(dtype).itemsize

    def operand(x: Matrix) -> tuple[Any, ...]:
        place = ctypes.c_void_p(d.address(x.array) + x.offset * size)
        return place, kind, ctypes.c_int(max(x.stride, 1)), ctypes.c_longlong(x.step)

    call = handle.library.cublasGemmStridedBatchedEx
    arguments = (
        handle.pointer,
        int(b.transposed),
        int(a.transposed),
        n,
        m,
        k,
        ctypes.byref(one),
        *operand(b),
        *operand(a),
        ctypes.byref(zero),
        *operand(c),
        batch,
        compute,
        _DEFAULT_ALGORITHM,
    )

    def run() -> None:
        with handle.lock:
            _check(call(*arguments), f"cublasGemmStridedBatchedEx of {name}, {m} x {n} x {k}, {batch} times")

    d.enqueue(handle.stream, run)


def _check(status: int, name: str) -> None:
    if status:
        raise error(RuntimeError, f"{name}: {_STATUS.get(status, 'status')} ({status})")
