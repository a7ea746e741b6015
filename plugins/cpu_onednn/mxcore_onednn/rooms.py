"""Rooms: memory for what lies between a plan's arrays, which plans share, for they run to their end."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any
from weakref import WeakSet

import numpy as np

from mxcore.plugin import hold_at_fork

from .library import NoMemory

__all__ = ["MUCH", "LargeRoom", "Room", "aligned", "held", "own"]

_ALIGNED = 64
#: A plan that needs more bytes gets a room that goes with its users, if any: what a thread has stays for good.
MUCH = 1 << 24
#: Of the sets of rooms. A signal handler may come in between.
_lock = threading.RLock()
hold_at_fork(_lock)


def aligned(size: int) -> tuple[np.ndarray[Any, Any], int]:
    """So many bytes, and where they begin."""
    try:
        memory = np.empty(size + _ALIGNED, np.uint8)
    except MemoryError as e:
        raise NoMemory(f"no memory for {size} bytes: {e}") from e
    address = memory.ctypes.data
    return memory, address + -address % _ALIGNED


class Room:
    """Memory for what lies between, for one call at a time."""

    memory: np.ndarray[Any, Any] | None = None
    place = 0
    busy = False

    @contextlib.contextmanager
    def lent(self) -> Iterator[Room]:
        """For a call; one in the middle of another, by a signal handler or a finalizer, gets one of its own."""
        room = Room() if self.busy else self
        room.busy = True
        try:
            yield room
        finally:
            room.busy = False

    def at(self, size: int) -> int:
        """Where so many bytes begin; what lies there stays until the next call."""
        if self.memory is None or self.memory.nbytes < size + _ALIGNED:
            self.memory = None  # before others are asked for
            self.memory, self.place = aligned(size)
        return self.place


class LargeRoom(Room):
    """A room of which there is one for all calls that do not run at the same time.

    It stays as long as one of those who have had it.
    """

    _all: WeakSet[Room] = WeakSet()
    _mine: Room | None = None

    @contextlib.contextmanager
    def lent(self) -> Iterator[Room]:
        with _lock:
            room = self._mine
            if room is None or room.busy:
                room = self._mine = next((r for r in self._all if not r.busy), None) or Room()
                self._all.add(room)
            room.busy = True
        try:
            yield room
        finally:
            room.busy = False


class _Own(threading.local):
    """A thread's room for all its plans.

    Whoever uses it holds the room itself: what belongs to daemon threads is dropped at the end of the process, while
    they still compute.
    """

    all: WeakSet[Room] = WeakSet()

    def __init__(self) -> None:
        self.room = Room()
        with _lock:
            self.all.add(self.room)


own = _Own()


def held() -> int:
    """Bytes of all rooms."""
    with _lock:
        rooms = [*_Own.all, *LargeRoom._all]
    return sum(memory.nbytes for room in rooms if (memory := room.memory) is not None)
