"""The lock of all that is made once in a process."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

from mxcore.plugin import apart

__all__ = ["once", "setup"]

F = TypeVar("F", bound=Callable[..., Any])
#: Held while something is made ready once: imports, the threads of kernels, what compiles a kernel.
setup: Any = threading.RLock()


def once(function: F) -> F:
    """Let a function make something ready with the lock, and no signal's handler find it half done."""

    def locked(*args: Any) -> Any:
        with setup:
            return function(*args)

    @functools.wraps(function)
    def wrapped(*args: Any) -> Any:
        # No other thread could have the lock that this one has, as by a handler while it forks.
        return function(*args) if setup._is_owned() else apart(locked, *args)

    return cast(F, wrapped)
