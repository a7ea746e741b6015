"""Memory of emulated devices: blocks at real addresses, poisoned when new and when given back.

A block that nobody refers to is reused by its device's stream in order of launch, as a pool of CUDA's does: work on
another stream that still reads it finds poison.
"""

from __future__ import annotations

import bisect
import sys
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from .streams import Stream, whole

__all__ = ["Block", "OutOfMemoryError", "block_at", "find", "poison", "used"]

#: As CUDA's; tests with sanitizers take 1, so that nothing lies behind a block.
ALIGNMENT = 256
#: Address -> (memory, size, device) of what is in use, or still will be by work that was launched.
_blocks: dict[int, tuple[np.ndarray[Any, Any], int, int]] = {}
_starts: list[int] = []
#: Address -> block, while it is referred to.
_owners: weakref.WeakValueDictionary[int, Block] = weakref.WeakValueDictionary()
#: Device -> bytes.
_used: Counter[int] = Counter()


class OutOfMemoryError(MemoryError):
    """As CuPy's pool raises it."""


def poison(memory: np.ndarray[Any, Any]) -> None:
    """Fill bytes so that floats are NaN and integers absurd."""
    memory.fill(0xFF)


class Block:
    """Some bytes of a device.

    Parameters
    ----------
    size : int
    index : int
        Of the device.
    stream : Stream
        Whose work may use the memory again once this is dropped.
    """

    __slots__ = ("memory", "first", "index", "start", "size", "stream", "__weakref__")

    def __init__(self, size: int, index: int, stream: Stream) -> None:
        self.memory = _fresh(size + ALIGNMENT)
        poison(self.memory)
        address = self.memory.__array_interface__["data"][0]
        self.first, self.start = -address % ALIGNMENT, 0
        self.size, self.index, self.stream = size, index, stream
        whole(self._note, address + self.first)

    def _note(self, start: int) -> None:
        self.start = start
        _blocks[self.start] = self.memory, self.size, self.index
        _used[self.index] += self.size
        _owners[self.start] = self
        bisect.insort(_starts, self.start)

    def __del__(self, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if finalizing():  # what would be done is gone
            return
        start = getattr(self, "start", 0)
        if not start:  # an interrupt came before it was noted
            return
        self.stream.enqueue(lambda: _give_back(start))

    def array(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
        """Its memory as an array of NumPy's."""
        found: np.ndarray[Any, Any] = np.ndarray(shape, dtype, self.memory, self.first)
        return found


def _fresh(size: int) -> np.ndarray[Any, Any]:
    """Never what was given back while somebody may still look at it: that stays poisoned."""
    return np.empty(size, np.uint8)


def _give_back(start: int) -> None:
    poison(whole(_forget, start))


def _forget(start: int) -> np.ndarray[Any, Any]:
    memory, size, index = _blocks.pop(start)
    _used[index] -= size
    del _starts[bisect.bisect_left(_starts, start)]
    return memory


def find(address: int) -> int | None:
    """The device on which an address is; None if it is nowhere."""
    found: int | None = whole(_found, address)
    return found


def _found(address: int) -> int | None:
    i = bisect.bisect_right(_starts, address) - 1
    if i < 0:
        return None
    _, size, index = _blocks[_starts[i]]
    return index if address < _starts[i] + max(size, 1) else None


def block_at(address: int) -> Block:
    """The block that somebody has in which an address is."""
    found: Block = whole(lambda: _owners[_starts[bisect.bisect_right(_starts, address) - 1]])
    return found


def used(index: int) -> int:
    """Bytes of a device that are in use."""
    return _used[index]
