"""Modules that are imported when somebody first asks for them, who may be several threads.

Python locks each module by itself. Two threads that begin with different modules of one package can meet half-way: each
has what the other wants, Python sees it, and gives one of them a module that is not complete, and so an ImportError.
So whoever asks from outside of any import goes alone. Who is importing already does not wait here, for it may have what
the one that imports wants. Packages that mxcore needs now and then (OpenCV, ml_dtypes, fsspec) are asked for here, too:
a child that is forked in the midst of an import would wait for ever for who imports.

Imports that nobody asks for here (a statement in a function of mxcore, of a library or of the user) are looked for in
the locks that Python has for modules: a fork waits for them as well.

What imports several modules and enters what they have, as the loading of plugins does, goes by :class:`Turns`.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
import threading
import time
from collections.abc import Callable
from importlib import _bootstrap
from importlib.abc import SourceLoader
from typing import Any, TypeVar

from ._forks import at_fork, hold_at_fork

__all__ = ["Turns", "Unfinished", "alone", "importing", "load", "short", "whole"]

T = TypeVar("T")

#: Held by who imports, and by who forks, so that no child finds a module half imported.
alone = threading.RLock()
#: Seconds that a fork waits for an import that was not asked for here, which may be a whole program's: it is waited
#: for once.
_PATIENCE_ONCE = 3
#: Modules in whose import no fork trusts any more.
_endless: set[str] = set()
#: What a call of the system fails with for want of something, or for a moment: it may be there the next time.
_SCARCE = [
    getattr(errno, n)
    for n in ("EMFILE", "ENFILE", "ENOMEM", "EIO", "EAGAIN", "EINTR", "ENOBUFS", "ENOSPC", "EDQUOT")
    if hasattr(errno, n)
]


def load(module: str) -> Any:
    """Import a module that may be there already.

    Parameters
    ----------
    module : str
        Its whole name.

    Examples
    --------
    >>> load("mxcore.libinfo").__name__
    'mxcore.libinfo'
    """
    if importing():
        return importlib.import_module(module)
    with alone:
        return importlib.import_module(module)


def importing() -> bool:
    """Whether the calling thread is importing something.

    Examples
    --------
    >>> importing()
    False
    """
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "_find_and_load" and frame.f_globals.get("__name__") == "importlib._bootstrap":
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


class Unfinished(Exception):
    """A module is being imported: by this thread, further out, or by another that waits for this one."""


def whole(module: str, load: Callable[[], T]) -> T:
    """What a function gives that imports a module, as long as that is whole then.

    Parameters
    ----------
    module : str
        Its whole name.
    load : callable
        Without arguments.

    Raises
    ------
    Unfinished
        If it is not, or needs another that is not; also where Python refuses to wait, as that would never end.
    MXNetError
        As of :func:`short`, where something was short.

    Examples
    --------
    >>> whole("json", lambda: importlib.import_module("json")).__name__
    'json'
    """
    outside = sys.exc_info()[1]
    try:
        found = load()
    except Exception as e:
        cause = e.__cause__ or e
        needed = cause.name or "" if isinstance(cause, ImportError) else ""
        if _begun(module) or _begun(needed) or isinstance(cause, getattr(_bootstrap, "_DeadlockError", ())):
            raise Unfinished(module) from e
        try:
            short(f"module '{module}'", e, outside)
        except Exception:
            _forget_parts(module.partition(".")[0])
            raise
        raise
    if _begun(module):
        raise Unfinished(module)
    return found


def _forget_parts(package: str) -> None:
    """Let what is whole of a plugin's package that is not be imported anew, as Python makes it no part of the next one.

    Who says ``import package.part`` would not find ``package.part`` then. What libraries and mxcore have stays: others
    may hold it, and so does compiled code, which most often cannot be loaded twice.
    """
    for name, part in [*sys.modules.items()] if package != "mxcore" else ():
        above = name.split(".")
        lost = above[0] == package and any(".".join(above[:n]) not in sys.modules for n in range(1, len(above)))
        if lost and not _begun(name) and isinstance(getattr(part, "__loader__", None), SourceLoader):
            sys.modules.pop(name, None)


def short(what: str, exc: BaseException, outside: BaseException | None = None) -> None:
    """Raise where something could not be loaded for want of memory, descriptors and the like: no fault of its own.

    The error has the attribute ``again``: whoever remembers failures does not remember this one.

    Parameters
    ----------
    what : str
    exc : BaseException
        What it failed with; what that was raised from counts, too.
    outside : BaseException, optional
        What was being handled when it began, which is not a part of it.

    Raises
    ------
    MXNetError
        (also MemoryError, OSError or RuntimeError) that says what was short.

    Examples
    --------
    >>> short("module 'a'", ImportError("no libmagic here"))
    >>> short("module 'a'", MemoryError())
    Traceback (most recent call last):
    mxcore.base.MXNetMemoryError: module 'a' cannot be loaded now: MemoryError: no message; ...
    """
    from ._core.errors import MXNetError, error, in_a_line  # not loaded with this module, which tests' options need

    found: Any = exc
    seen = {id(outside), id(None)}
    while id(found) not in seen and not getattr(found, "again", False) and not _scarce(found):
        seen.add(id(found))
        found = found.__cause__ or (None if found.__suppress_context__ else found.__context__)
    if id(found) in seen:
        return
    if getattr(found, "again", False):  # from further in, which knows better what it was
        raise found
    kind = next((c for c in (MemoryError, OSError) if isinstance(found, c)), RuntimeError)
    kind = OSError if isinstance(found, ImportError) else kind
    reason = in_a_line(exc) if exc is found or isinstance(exc, MXNetError) else f"{in_a_line(exc)} ({in_a_line(found)})"
    new = error(
        kind,
        f"{what} cannot be loaded now: {reason}; the next use tries again. Let the process have more memory, files "
        "(`ulimit -n`) or threads (`ulimit -u`); if it is a plugin's that never loads, MXCORE_DISABLE_PLUGINS leaves "
        "it out",
    )
    new.again = True  # type: ignore[attr-defined]
    if kind is OSError:
        new.errno = getattr(found, "errno", None)  # type: ignore[attr-defined]
    importlib.invalidate_caches()  # an archive that could not be opened stands there as none
    raise new from exc


def _scarce(exc: BaseException) -> bool:
    """Whether an exception is for want of what may be there later; the loader of libraries tells it in words only."""
    from ._core.errors import MXNetError, said

    if isinstance(exc, OSError) and exc.errno is not None:
        return exc.errno in _SCARCE
    if isinstance(exc, (OSError, ImportError)) and not isinstance(exc, MXNetError):  # ours has a cause
        return any(os.strerror(n) in said(exc) for n in (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO))
    return isinstance(exc, MemoryError) or isinstance(exc, RuntimeError) and "can't start new thread" in said(exc)


def _begun(module: str) -> bool:
    """Whether a module is there, but not whole; who asks has waited for it, as long as Python let him."""
    return bool(getattr(getattr(sys.modules.get(module), "__spec__", None), "_initializing", False))


class Turns:
    """Whose turn it is to import what others wait for: one thread at a time, as long as it is not within an import.

    Who is within an import does not wait here, for it may have what the one whose turn it is wants. So several threads
    may do it at once: they import the same, in the same order, for Python's own locks see who waits for whom, and what
    they find is entered by the one that comes first.

    Attributes
    ----------
    lock : threading.RLock
        Held by whose turn it is.
    patience : float
        How many seconds one waits for the other.

    Examples
    --------
    >>> Turns().take("all", lambda: 5, lambda: TimeoutError())
    5
    """

    def __init__(self, patience: float = 300) -> None:
        self.lock, self.patience = threading.RLock(), patience
        self._within: set[tuple[int, str]] = set()
        at_fork(after_in_child=self._in_child)

    def _in_child(self) -> None:
        me = threading.get_ident()  # those of threads that are not there may be given again
        self._within = {w for w in self._within if w[0] == me}

    def take(self, what: str, load: Callable[[], T], endless: Callable[[], Exception]) -> T | None:
        """What a function gives, once it is this thread's turn.

        Parameters
        ----------
        what : str
            Who asks for it while he loads it gets None: what is imported may use what is there by then.
        load : callable
            Without arguments.
        endless : callable
            Gives the error for who has waited too long.
        """
        me, alone = (threading.get_ident(), what), not importing()
        if me in self._within:
            return None
        if alone and not self.lock.acquire(timeout=self.patience):
            raise endless()
        try:
            self._within.add(me)
            return load()
        finally:
            self._within.discard(me)
            if alone:
                self.lock.release()


def _elsewhere() -> set[str]:
    """The modules that other threads are importing, whoever asked for them."""
    me, found = threading.get_ident(), set()
    for name, ref in list(getattr(_bootstrap, "_module_locks", {}).items()):
        if getattr(ref(), "owner", None) not in (None, me):
            found.add(name)
    return found


def _before_fork() -> None:
    end = time.monotonic() + _PATIENCE_ONCE
    # Whoever has slept has the interpreter for a while, in which nobody begins another import before the fork.
    time.sleep(1e-6)
    while busy := _elsewhere() - _endless:
        if time.monotonic() > end:
            _endless.update(busy)
        time.sleep(0.001)


at_fork(before=_before_fork)
hold_at_fork(alone)
