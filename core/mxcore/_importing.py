"""Modules that are imported when somebody first asks for them, who may be several threads.

Python locks each module by itself. Two threads that begin with different modules of one package can meet half-way: each
has what the other wants, Python sees it, and gives one of them a module that is not complete, and so an ImportError.
So whoever asks from outside of any import goes alone. Who is importing already does not wait here, for it may have what
the one that imports wants. Packages that mxcore needs now and then (OpenCV, ml_dtypes, fsspec) are asked for here, too:
a child that is forked in the midst of an import would wait for ever for who imports.

Imports that nobody asks for here (a statement in a function of mxcore, of a library or of the user) are looked for in
the locks that Python has for modules: a fork waits for them as well.
"""

from __future__ import annotations

import importlib
import sys
import threading
import time
from importlib import _bootstrap
from typing import Any

from ._forks import at_fork, hold_at_fork

__all__ = ["alone", "load"]

#: Held by who imports, and by who forks, so that no child finds a module half imported.
alone = threading.RLock()
#: Seconds that a fork waits for an import that was not asked for here, which may be a whole program's: it is waited
#: for once.
_PATIENCE_ONCE = 3
#: Modules in whose import no fork trusts any more.
_endless: set[str] = set()


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
    if _importing():
        return importlib.import_module(module)
    with alone:
        return importlib.import_module(module)


def _importing() -> bool:
    """Whether the calling thread is importing something."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "_find_and_load" and frame.f_globals.get("__name__") == "importlib._bootstrap":
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


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
