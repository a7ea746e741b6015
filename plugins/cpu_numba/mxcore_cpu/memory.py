"""Large buffers that are used again: the system fills fresh memory with zeros, which takes as long as a kernel.

A step that makes an array of 32 MB and drops it would have it mapped, cleared and unmapped every time. Here its memory
is kept for the next array of about that size, up to a limit, the longest unused leaving first. Sizes are rounded up to
one of eight in an octave, so that arrays of ever new shapes (sentences, pictures) use the memory of those before; what
is left over is never touched, and costs nothing.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from mxcore.plugin import fork_safe_lock

from .typing import Array

__all__ = ["clear", "empty", "held", "is_own"]

#: Smaller arrays are the C library's business, which keeps theirs.
_LARGE = 1 << 20
#: Bytes that are kept in reserve at most.
LIMIT = 1 << 28
#: Memory that nobody has asked for while so many arrays were dropped goes back.
PATIENCE = 1000


_bytes = operator.attrgetter("size")


class _Reserve:
    """Memory that nobody uses, by size; what came last is used first."""

    def __init__(self) -> None:
        # A block may be dropped by the garbage collector in the midst of `take` or `put` of the same thread, and so may
        # those of a signal's handler, which may raise there, too: each step leaves all whole, and finds what there is.
        self.lock, self.puts = fork_safe_lock(), itertools.count()
        #: How many had been put when it came -> memory, in that order.
        self.free: dict[int, Array] = {}

    @property
    def bytes(self) -> int:
        return sum(map(_bytes, [*self.free.values()]))

    def take(self, size: int) -> Array:
        with self.lock:
            for n in reversed([*self.free]):
                memory = self.free.get(n)
                if memory is not None and memory.size == size and self.free.pop(n, None) is not None:
                    return memory
        return np.empty(size, np.uint8)

    def put(self, memory: Array) -> None:
        with self.lock:
            now = next(self.puts)
            self.free[now] = memory
            over = self.bytes - LIMIT
            for n in [*self.free]:
                if over <= 0 and now - n < PATIENCE:
                    break
                gone = self.free.pop(n, None)
                over -= 0 if gone is None else gone.size

    def clear(self) -> None:
        with self.lock:
            self.free = {}


_reserve = _Reserve()


class _Block:
    """Owner of an array's memory, which goes back to the reserve with the last view of it."""

    __slots__ = ("__array_interface__", "memory")

    def __init__(self, memory: Array, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.memory = memory  # first: `__del__` comes even if the rest does not
        self.__array_interface__ = {
            "version": 3,
            "shape": shape,
            "typestr": dtype.str,
            "data": (memory.ctypes.data, False),
        }

    def __del__(
        self, put: Callable[[Array], None] = _reserve.put
    ) -> None:  # when Python ends, this module's names may be gone
        put(self.memory)


def empty(shape: tuple[int, ...], dtype: Any, least: int = _LARGE) -> Array:
    """Return a new array whose values are whatever they are.

    Parameters
    ----------
    shape : tuple of int
    dtype : dtype
    least : int
        Bytes from which its memory is kept for the next one when it goes: 1 for what each call of a kernel needs.

    Examples
    --------
    >>> empty((2, 3), "float32").shape
    (2, 3)
    """
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    if not least <= size <= LIMIT // 2 or dtype.kind not in "fiub":
        return np.empty(shape, dtype)
    step = 1 << max(int(size).bit_length() - 4, 0)
    return np.asarray(_Block(_reserve.take(-(-size // step) * step), shape, dtype))


def is_own(a: Array) -> bool:
    """Return whether an array has its memory for itself and its own views, from here or from NumPy, in C order."""
    return (a.base is None or a.base.__class__ is _Block) and a.flags.c_contiguous


def held() -> int:
    """Return how many bytes are kept in reserve."""
    return _reserve.bytes


def clear() -> None:
    """Give the reserve back to the system, and freed memory that the C library keeps between blocks in use."""
    _reserve.clear()
    trim = _trim()
    if trim is not None:
        trim(0)


@functools.cache
def _trim() -> Any:
    try:
        return ctypes.CDLL(None).malloc_trim  # glibc has it
    except (AttributeError, OSError, TypeError):
        return None
