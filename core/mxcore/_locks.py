"""One thread at a time, for objects that threads share."""

from __future__ import annotations

import contextlib
import functools
import threading
import weakref
from collections.abc import Callable
from typing import Any

from ._core.array import Array, Storage
from ._forks import at_fork

__all__ = ["PerThread", "ObjectLock", "fork_safe_lock", "locked", "lock_of", "written"]


#: All that there are: in a forked child, where their holders may not exist, nobody holds them.
_locks: weakref.WeakSet[ObjectLock] = weakref.WeakSet()
#: What the locks of arrays belong to, which are made for a moment: in a forked child they are made anew.
_process = object()


def _in_child() -> None:
    global _process
    _process = object()
    for lock in list(_locks):
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
        _locks.add(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return ObjectLock, ()


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


def lock_of(st: Storage) -> Any:
    """The lock of the memory of arrays, a with-block for who reads it to write it: `x += 1` of two threads adds 2."""
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


def written(out: Any) -> Any:
    """The locks of what results are written to, an array or several, a with-block as :func:`lock_of` is."""
    if isinstance(out, Array):
        return lock_of(out._st)
    found = contextlib.ExitStack()
    if isinstance(out, (list, tuple)):
        stores = {id(x._st): x._st for x in out if isinstance(x, Array)}
        for _, st in sorted(stores.items()):  # in one order: two threads must not wait for each other
            found.enter_context(lock_of(st))
    return found


def locked(method: Callable[..., Any]) -> Callable[..., Any]:
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

    return wrapped
