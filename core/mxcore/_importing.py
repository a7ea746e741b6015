"""Modules that are imported when somebody first asks for them, who may be several threads.

Python locks each module by itself. Two threads that begin with different modules of one package can meet half-way: each
has what the other wants, Python sees it, and gives one of them a module that is not complete, and so an ImportError.
So whoever asks from outside of any import goes alone. Who is importing already does not wait here, for it may have what
the one that imports wants.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from typing import Any

__all__ = ["alone", "load"]

#: Held by who imports; whoever forks may take it, so that no child finds a module half imported.
alone = threading.RLock()


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


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=alone._at_fork_reinit)  # type: ignore[attr-defined]  # nobody is there any more
