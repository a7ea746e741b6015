"""Arrays over memory that others have, too: what the engine orders is the memory, however many arrays lie over it."""

from __future__ import annotations

import weakref
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from .._core.array import Storage
from .._core.context import Context
from .._core.engine import engine
from .._forks import hold_at_fork
from .._workers import Clerk

__all__ = ["storage_over", "tell"]


class _Buffer:
    """Memory from one address to another, of which no two overlap, and its storage; it lives as long as arrays there.

    Attributes
    ----------
    arrays : dict
        Those that have the memory, by id: storages may outlive it, and are no longer asked then.
    own : bool
        Whether arrays of ours ask its storage themselves, as they are no windows.
    into : _Buffer or None
        The one that has its engine variable, since an array lies over both.
    before : sequence of weak references
        Those in whose place it is: arrays that still live have these.
    """

    __slots__ = ("first", "last", "storage", "arrays", "own", "into", "before", "__weakref__")

    def __init__(self, first: int, last: int, ctx: Context, own: Storage | None) -> None:
        self.first, self.last, self.storage, self.own = first, last, own or Storage(ctx), own is not None
        self.arrays: dict[int, _Array] = {}
        self.into: _Buffer | None = None
        self.before: Sequence[weakref.ref[_Buffer]] = ()

    @property
    def root(self) -> _Buffer:
        """The buffer whose storage the engine asks in its place."""
        found = self
        while found.into is not None:
            found = found.into
        if found is not self:
            self.into = found  # the way may have been long
        return found

    @property
    def locked(self) -> list[_Buffer]:
        """Those whose locks are taken: whoever else lies there has one of them."""
        return [self, *filter(None, (ref() for ref in self.before))]


def _of_the_root(name: str) -> Any:
    """What the engine notes of a window: all windows of some memory have it from one storage."""
    return property(attrgetter(f"root.{name}"), lambda self, value: setattr(self.root, name, value))


class _Window(Storage):
    """A part of somebody's memory: who reads or writes it waits for who reads or writes the buffers that it touches.

    Whoever reads it to write it takes the locks of them all: buffers do not overlap, so windows that do have one in
    common. Writes are counted for it alone: a backward does not refuse what was written elsewhere.
    """

    __slots__ = ("buffers",)

    def __init__(self, ctx: Context, buffers: Sequence[_Buffer]) -> None:
        self.ctx, self.buffers = ctx, buffers
        self.version, self.views = 0, -1

    @property
    def parts(self) -> list[Storage]:
        return [b.storage for buffer in self.buffers for b in buffer.locked]

    @property
    def root(self) -> Storage:
        return self.buffers[0].root.storage

    write, reads = map(_of_the_root, ("write", "reads"))


class _Meeting(Storage):
    """Stands for a buffer in a task that waits for all that is pending in it and in another, and makes them one.

    The engine notes the task in both under its lock, so that nobody comes between.
    """

    __slots__ = ("one", "other")

    def __init__(self, one: _Buffer, other: _Buffer) -> None:
        self.one, self.other = one, other

    def _put(self, task: Any) -> None:
        self.other.into = self.one

    write = property(lambda self: self.other.storage.write, _put)
    reads = property(lambda self: self.other.storage.reads, lambda self, value: None)


class _Ref(weakref.ref):  # type: ignore[type-arg]
    """A reference to a buffer, which knows where it begins."""

    __slots__ = ("first",)
    first: int


class _Array(weakref.ref):  # type: ignore[type-arg]
    """A reference to an array that has memory, which knows where that is."""

    __slots__ = ("key", "first", "last")
    key: int
    first: int
    last: int


_alone = Clerk("mxcore-windows")
hold_at_fork(_alone.lock)
#: Where buffers begin, in order, and these, as long as they live; those that are gone.
_starts: list[int] = []
_buffers: dict[int, _Ref] = {}
_gone: deque[_Ref] = deque()
#: The arrays whose memory is no longer theirs: they are put here before it is given back.
_left: deque[_Array] = deque()
#: The buffers of our own arrays that others were told of, by the array's id, as long as it lives.
_told: dict[int, Sequence[_Buffer]] = {}
#: An array over more buffers than these makes them one, unless arrays that live have more than so many of them.
_MANY, _MOST = 8, 64


def _tidy() -> list[Sequence[_Buffer]]:
    """Forget what is gone; gives what may have finalizers."""
    dropped: list[Sequence[_Buffer]] = []
    while _left:
        array = _left.popleft()
        for buffer in _touched(array.first, array.last):
            if buffer.arrays.get(array.key) is array:
                del buffer.arrays[array.key]
                dropped.append([buffer])
                if not buffer.arrays:
                    _forget(buffer.first)
        dropped.append(_told.pop(array.key, ()))
    while _gone:
        ref = _gone.popleft()
        if _buffers.get(ref.first) is ref:
            _forget(ref.first)
    return dropped


def _forget(start: int) -> None:
    del _buffers[start], _starts[bisect_left(_starts, start)]


def _touched(first: int, last: int) -> list[_Buffer]:
    """The buffers that have some of the places."""
    found = []
    for start in _starts[max(bisect_right(_starts, first) - 1, 0) : bisect_left(_starts, last)]:
        buffer = _buffers[start]()
        if buffer is None:
            _forget(start)  # its reference is put among those that are gone later: the collector has many to tell
        elif buffer.last > first:
            found.append(buffer)
    return found


def _added(first: int, last: int, ctx: Context, own: Storage | None) -> _Buffer:
    buffer = _Buffer(first, last, ctx, own)
    ref = _buffers[first] = _Ref(buffer, _gone.append)
    ref.first = first
    insort(_starts, first)
    return buffer


def _owner(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array that has the memory, as far as NumPy tells."""
    while isinstance(a.base, np.ndarray):
        a = a.base
    return a


def _over(
    a: np.ndarray[Any, Any], ctx: Context, own: Storage | None = None
) -> tuple[Sequence[_Buffer], list[Sequence[_Buffer]]]:
    """The buffers of all places of an array that has memory, with one engine variable, and what is forgotten.

    Where none is there are new ones, of our `own` storage if it is given. An array over parts that others lie over
    already, each over its own, lets these have one variable, too.
    """
    first, last = map(int, np.lib.array_utils.byte_bounds(a))
    dropped, found, at = _tidy(), list[_Buffer](), first
    for b in _touched(first, last):
        if at < b.first:
            found.append(_added(at, b.first, ctx, own))
        found.append(b)
        at = b.last
    if at < last:
        found.append(_added(at, last, ctx, own))
    if not found:  # nothing lies there
        return [_Buffer(first, last, ctx, own)], dropped
    array = _Array(a, _left.append)
    array.key, array.first, array.last = id(a), first, last
    for b in found:
        b.arrays[array.key] = array
    roots = [*dict.fromkeys(b.root for b in found)]
    one = next((b for b in roots if b.own), roots[0])  # its array asks its storage, whoever else does
    for other in roots:
        if other.storage is not one.storage:
            _join(one, other)
    laid, found = found, [_united(found, ctx)] if len(found) > _MANY and _held(found) <= _MOST else found
    if own is not None:
        _told[array.key] = laid + found  # the locks of those that it was laid over are its own
    return found, [*dropped, laid]


def _held(buffers: Sequence[_Buffer]) -> int:
    return sum(len(b.locked) for b in buffers)


def _united(buffers: Sequence[_Buffer], ctx: Context) -> _Buffer:
    """One in the place of several that lie side by side and have one engine variable: windows may slide for ever.

    It has their storage, and all of them lead to it, so that it lives as long as any of them.
    """
    root = buffers[0].root
    for b in buffers:
        _forget(b.first)
    one = _added(buffers[0].first, buffers[-1].last, ctx, root.storage)
    one.own = root.own
    old = [b for buffer in buffers for b in buffer.locked]
    for b in (*old, root):
        b.into = one
    one.before = [*map(weakref.ref, old)]
    for b in buffers:
        one.arrays.update(b.arrays)
    return one


def _join(one: _Buffer, other: _Buffer) -> None:
    """Let two buffers have one engine variable, that of the first."""
    meeting, stores = _Meeting(one, other), (one.storage, other.storage)

    def meet() -> bool:
        """Whether nothing is pending, so that it is done."""
        idle = not any(st.write or st.reads for st in stores)
        if idle:
            meeting.write = None
        return idle

    if not engine.it.clerk.do(meet):
        both = [one.storage, meeting]  # read as well: what has failed in one has failed in both
        engine.it.push(one.storage.ctx, lambda: None, both, both, "windows of one memory meet")


def storage_over(data: Any, ctx: Context) -> Storage:
    """A storage for an array over memory of somebody else's.

    Parameters
    ----------
    data : numpy.ndarray
    ctx : Context

    Examples
    --------
    >>> a = np.zeros(4)
    >>> one, two, whole = (storage_over(part, Context("cpu")) for part in (a[:2], a[2:], a))
    >>> one.reads = ["a task"]
    >>> two.reads
    ['a task']
    """
    return _Window(ctx, _alone.do(_over, _owner(data), ctx)[0])


def tell(data: Any, storage: Storage) -> None:
    """Know from now on that others get the memory of an array on the host: what comes back lies over it.

    Parameters
    ----------
    data : device array
    storage : Storage
    """
    if isinstance(data, np.ndarray) and not isinstance(storage, _Window):
        _alone.do(_over, data, storage.ctx, storage)
