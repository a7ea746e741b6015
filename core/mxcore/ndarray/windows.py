"""Arrays over memory that others have, too: what the engine orders is the memory, however many arrays lie over it."""

from __future__ import annotations

import weakref
from bisect import bisect_left, bisect_right, insort
from collections import deque
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from .._core.array import Storage
from .._core.context import Context
from .._locks import fork_safe_lock

__all__ = ["storage_over", "tell"]


def _of_the_whole(name: str) -> Any:
    """An attribute that a window has from its buffer."""
    return property(attrgetter(f"whole.{name}"), lambda self, value: setattr(self.whole, name, value))


class _Window(Storage):
    """A part of a buffer: who reads or writes it waits for who reads or writes the buffer, and takes its lock.

    Writes are counted for it alone: a backward does not refuse what was written elsewhere.
    """

    __slots__ = ("whole",)

    def __init__(self, ctx: Context, whole: Storage) -> None:
        self.ctx, self.whole = ctx, whole
        self.version, self.views = 0, -1

    write, reads, lock = map(_of_the_whole, ("write", "reads", "lock"))


class _Buffer:
    """Memory from one address to another, and its storage; as long as the array lives that it was heard of from."""

    __slots__ = ("first", "last", "storage", "array")

    def __init__(self, first: int, last: int, storage: Storage, array: np.ndarray[Any, Any]) -> None:
        self.first, self.last, self.storage = first, last, storage
        self.array = weakref.ref(array, partial(_forget, first))


def _forget(first: int, _: Any) -> None:
    _gone.append(first)


_lock = fork_safe_lock()
#: Where buffers begin, in order, and these, of which no two overlap; and where some began whose arrays are gone.
_starts: list[int] = []
_buffers: dict[int, _Buffer] = {}
_gone: deque[int] = deque()


def _bounds(a: np.ndarray[Any, Any]) -> tuple[int, int]:
    first, last = np.lib.array_utils.byte_bounds(a)
    return int(first), int(last)


def _owner(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array that has the memory, as far as NumPy tells."""
    while isinstance(a.base, np.ndarray):
        a = a.base
    return a


def _buffer(array: np.ndarray[Any, Any], storage: Storage) -> Storage:
    """The storage of the buffer that an array lies in; that is a new one, with the given storage, if none is known."""
    first, last = _bounds(array)
    with _lock:
        while _gone:
            start = _gone.popleft()
            if start in _buffers and _buffers[start].array() is None:
                del _buffers[start], _starts[bisect_left(_starts, start)]
        at = bisect_right(_starts, first)
        for start in _starts[max(at - 1, 0) : at + 1]:
            known = _buffers[start]
            if known.first < last and first < known.last:
                known.last = max(known.last, last)
                return known.storage
        if first not in _buffers and first < last:
            _buffers[first] = _Buffer(first, last, storage, array)
            insort(_starts, first)
        return storage


def storage_over(data: Any, ctx: Context) -> Storage:
    """A storage for an array over memory of somebody else's.

    Parameters
    ----------
    data : numpy.ndarray
    ctx : Context

    Examples
    --------
    >>> a = np.zeros(4)
    >>> one, two = storage_over(a[:2], Context("cpu")), storage_over(a[2:], Context("cpu"))
    >>> one.reads = ["a task"]
    >>> two.reads
    ['a task']
    """
    return _Window(ctx, _buffer(_owner(data), Storage(ctx)))


def tell(data: Any, storage: Storage) -> None:
    """Know from now on that others get the memory of an array on the host: what comes back lies over it.

    Parameters
    ----------
    data : device array
    storage : Storage
    """
    if isinstance(data, np.ndarray) and not isinstance(storage, _Window):
        _buffer(data, storage)
