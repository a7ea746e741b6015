"""Memory that two processes of one host see.

It has no name, and is gone with the last of its users, whatever ends them: nothing can be left behind.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from typing import Any

import numpy as np

__all__ = ["Segment", "layout", "open_segment", "view"]

#: Arrays begin at multiples of this many bytes.
_ALIGN = 64


class Segment:
    """Shared memory, and the descriptor of the file behind it until `close` is called, or nobody has this object.

    Parameters
    ----------
    size : int
        In bytes.
    """

    file = -1

    def __init__(self, size: int) -> None:
        if hasattr(os, "memfd_create"):
            self.file = os.memfd_create("mxcore-kvstore", os.MFD_CLOEXEC)
        else:
            with tempfile.TemporaryFile() as f:
                self.file = os.dup(f.fileno())
        self.size = max(size, 1)
        os.truncate(self.file, self.size)
        self.memory = mmap.mmap(self.file, self.size)

    def share(self) -> Segment:
        """The same memory with a descriptor of its own."""
        other = object.__new__(Segment)
        other.file, other.size, other.memory = os.dup(self.file), self.size, self.memory
        return other

    def close(self) -> None:
        """Close the file. The memory stays as long as somebody has an array in it."""
        file, self.file = self.file, -1
        if file >= 0:
            os.close(file)

    __del__ = close


def open_segment(file: int, size: int) -> mmap.mmap:
    """See the memory behind a descriptor that came from another process, and close that."""
    try:
        return mmap.mmap(file, max(size, 1))
    finally:
        os.close(file)


def view(memory: Any, offset: int, size: int, dtype: Any) -> np.ndarray[Any, Any]:
    """An array of one dimension in memory."""
    seen: np.ndarray[Any, Any] = np.ndarray(size, dtype, memory, offset)
    return seen


def layout(sizes: list[int]) -> tuple[list[int], int]:
    """Where arrays of so many bytes begin if they lie one behind the other, and where they end."""
    offsets, end = [], 0
    for size in sizes:
        offsets.append(end)
        end += -(-size // _ALIGN) * _ALIGN
    return offsets, end
