"""NumPy as reference bodies of operators see it on the CPU: products that do not fight with the kernels' threads.

A BLAS with threads of its own lets them spin for some 30 ms after each call, on the cores that the next kernel's
threads wait for: a pass of an LSTM with a softmax took 20 ms instead of 3. So the products of this namespace run in the
kernels' own threads where they are large (:func:`.kernels.gemm.matmul`), and in the calling thread where they are not.
Only calls that are long enough to make up for the spinning, decompositions of large matrices above all, have BLAS's
threads. NumPy itself, for the user's own products, stays as it is.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from . import blas
from .loading import compiles
from .typing import Array

__all__ = ["namespace"]

#: Order of a matrix from which BLAS's threads pay for a decomposition; work from which they pay for any other call.
_LARGE, _LONG = 512, 1 << 28


class _Namespace(types.ModuleType):
    """The functions of a module, some of them replaced."""

    def __init__(self, module: types.ModuleType, **replaced: Any) -> None:
        super().__init__(module.__name__, module.__doc__)
        self.__dict__.update(replaced)
        self.__dict__["_module"] = module

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        if not name.startswith("__"):
            self.__dict__[name] = value
        return value

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._module), *self.__dict__})


@functools.wraps(np.matmul)
def _matmul(a: Any, b: Any, out: Any = None, **more: Any) -> Any:
    try:
        flat = a.ndim == 2 and b.ndim == 2
        m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
        plain = (
            a.dtype == b.dtype
            and a.dtype.char in "fd"
            and not more
            and (flat or (a.ndim == b.ndim == 3 and len(a) == len(b)))
        )
    except (AttributeError, IndexError):
        return np.matmul(a, b, out, **more)
    if a.dtype.kind not in "fc":  # NumPy multiplies the others without BLAS
        return np.matmul(a, b, out, **more)
    from .kernels import gemm

    if gemm.alone(m, n, k) and flat:
        return np.matmul(a, b, out, **more)
    if plain and compiles() and b.shape[-2] == k and (out is None or out.flags.carray and out.dtype == a.dtype):
        result = np.empty((*a.shape[:-1], n), a.dtype) if out is None else out
        if result.shape == (*a.shape[:-1], n):
            gemm.matmul(a, b, result)
            return result
    with blas.single:
        return np.matmul(a, b, out, **more)


@functools.wraps(np.dot)
def _dot(a: Any, b: Any, out: Any = None) -> Any:
    if getattr(a, "ndim", 0) == 2 == getattr(b, "ndim", 0):
        return _matmul(a, b, out)
    with blas.single:
        return np.dot(a, b, out)


def _held(function: Callable[..., Any], large: Callable[..., bool]) -> Callable[..., Any]:
    """The function with BLAS held at one thread, but where the job is large."""

    @functools.wraps(function)
    def call(*args: Any, **more: Any) -> Any:
        if any(large(a) for a in args if isinstance(a, np.ndarray)):
            return function(*args, **more)
        with blas.single:
            return function(*args, **more)

    return call


def _decomposes_much(a: Array) -> bool:
    return a.ndim > 1 and min(a.shape[-2:]) >= _LARGE


def _multiplies_much(a: Array) -> bool:
    return a.ndim > 1 and a.size * min(a.shape) >= _LONG


class _Linalg(_Namespace):
    """``numpy.linalg`` whose functions hold BLAS."""

    def __getattr__(self, name: str) -> Any:
        value = super().__getattr__(name)
        if callable(value) and not isinstance(value, type):
            value = self.__dict__[name] = _held(value, _decomposes_much)
        return value


namespace = _Namespace(
    np,
    matmul=_matmul,
    dot=_dot,
    linalg=_Linalg(np.linalg),
    **{f.__name__: _held(f, _multiplies_much) for f in (np.tensordot, np.einsum, np.inner, np.vdot)},
)
