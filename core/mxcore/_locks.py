"""One thread at a time, for objects that threads share."""

from __future__ import annotations

import contextlib
import functools
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

from ._forks import at_fork

__all__ = ["PerThread", "ObjectLock", "fork_safe_lock", "held", "lock_of", "locked", "locks_of", "outermost", "writing"]


T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
#: So many locks at most are taken by with-blocks, eight to a frame.
_MANY = 2048
#: All that there are: in a forked child, where their holders may not exist, nobody holds them. References that call
#: nothing when a lock goes: Python 3.10 frees one twice if garbage is collected just then.
_locks: list[weakref.ref[ObjectLock]] = []
#: How many references there may be before those of locks that are gone are left out, and who does it.
_most, _tidying = [1000], threading.Lock()
#: What the locks of arrays belong to, which are made for a moment: in a forked child they are made anew.
_process = object()


def _in_child() -> None:
    global _process
    _process = object()
    for ref in list(_locks):
        if (lock := ref()) is not None:
            lock._at_fork_reinit()  # as the locks of the standard library do


at_fork(after_in_child=_in_child)


class ObjectLock(type(threading.RLock())):  # type: ignore[misc]
    """A lock that a thread may take again; a copy of who has it, also by pickle, has one of its own.

    In a forked child nobody holds it.

    It is taken and given back by the interpreter's own functions: were they Python's, an interrupt (Ctrl-C) could leave
    it taken for ever.

    Examples
    --------
    >>> import copy
    >>> lock = ObjectLock()
    >>> with lock, lock:
    ...     copy.copy(lock) is lock
    False
    """

    def __init__(self) -> None:
        _locks.append(weakref.ref(self))
        if len(_locks) > _most[0]:
            _tidy()

    def __reduce__(self) -> tuple[Any, ...]:
        return ObjectLock, ()


def _tidy() -> None:
    """Leave out locks that are gone; what others add meanwhile stands behind."""
    if _tidying.acquire(blocking=False):
        try:
            n = len(_locks)
            _locks[:n] = [ref for ref in _locks[:n] if ref() is not None]
            _most[0] = 2 * len(_locks) + 1000
        finally:
            _tidying.release()


def fork_safe_lock() -> ObjectLock:
    """A lock for what threads share, which a thread may take again; in a forked child nobody holds it.

    Examples
    --------
    >>> lock = fork_safe_lock()
    >>> with lock, lock:
    ...     pass
    """
    return ObjectLock()


#: Held by who makes a lock.
_making = fork_safe_lock()


class PerThread(threading.local):
    """What each thread has for itself of an object that threads share; a copy has nothing yet.

    Examples
    --------
    >>> import copy
    >>> own = PerThread()
    >>> own.n = 1
    >>> hasattr(copy.copy(own), "n")
    False
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return PerThread, ()


def lock_of(st: Any) -> Any:
    """The lock of a storage, whose holder reads it to write it."""
    try:
        made, lock = st.lock
        if made is _process:
            return lock
    except AttributeError:
        pass
    with _making:
        made, lock = getattr(st, "lock", (None, None))
        if made is not _process:
            st.lock = _, lock = _process, threading.RLock()
    return lock


def locks_of(stores: Iterable[Any]) -> list[Any]:
    """The locks of some storages, in the one order in which all take them: else two might wait for each other.

    Parameters
    ----------
    stores : iterable of Storage
    """
    parts = {id(part): part for st in stores for part in st.parts or (st,)}
    return [lock_of(part) for _, part in sorted(parts.items())]


def writing(out: Any, call: Callable[..., T], *args: Any) -> T:
    """What a function gives that writes to `out`, while no other thread writes there: `x += 1` of two threads adds 2.

    Parameters
    ----------
    out : NDArray or sequence of NDArray
    call : callable
    *args
        Of the function.
    """
    if (st := getattr(out, "_st", None)) is not None:
        if st.parts is None:
            with lock_of(st):
                return call(*args)
        return held(locks_of([st]), call, args)
    found = [getattr(x, "_st", None) for x in out] if isinstance(out, (list, tuple)) else []
    return held(locks_of(st for st in found if st is not None), call, args)


def held(locks: Sequence[Any], call: Callable[..., T], args: Sequence[Any]) -> T:
    """What a function gives while some locks are held: by with-blocks, which Ctrl-C leaves none of behind.

    Parameters
    ----------
    locks : sequence of lock
        In the order in which all take them.
    call : callable
    args : sequence
        Of the function.
    """
    if not locks:
        return call(*args)
    if len(locks) < 4:
        with locks[0]:
            return held(locks[1:], call, args)
    if len(locks) < 8:
        with locks[0], locks[1], locks[2], locks[3]:
            return held(locks[4:], call, args)
    if len(locks) > _MANY:  # Python does not allow so many frames; an interrupt in the midst might leave some taken
        with contextlib.ExitStack() as stack:
            for lock in locks:
                stack.enter_context(lock)
            return call(*args)
    with locks[0], locks[1], locks[2], locks[3], locks[4], locks[5], locks[6], locks[7]:  # there may be hundreds
        return held(locks[8:], call, args)


def locked(method: F) -> F:
    """Let an object, whose `_object_lock` is a `ObjectLock`, do one such thing at a time, whichever threads ask.

    Parameters
    ----------
    method : callable

    Examples
    --------
    >>> class Counter:
    ...     def __init__(self):
    ...         self.n, self._object_lock = 0, fork_safe_lock()
    ...
    ...     @locked
    ...     def count(self):
    ...         self.n += 1
    ...         return self.n
    >>> Counter().count()
    1
    """

    @functools.wraps(method)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        with self._object_lock:
            return method(self, *args, **kwargs)

    return cast(F, wrapped)


def outermost(method: F) -> F:
    """Let a method give False, with nothing done, where a signal's handler calls it in the midst of itself.

    The handler has its thread's locks, too. The object has an attribute `busy`, False at first.

    Parameters
    ----------
    method : callable
    """

    @functools.wraps(method)
    def wrapper(self: Any, *args: Any) -> Any:
        if self.busy:
            return False
        try:
            self.busy = True
            return method(self, *args)
        finally:
            self.busy = False

    return cast(F, wrapper)
