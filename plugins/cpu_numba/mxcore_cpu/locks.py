"""The lock of all that is made once in a process."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from mxcore.plugin import Alone

__all__ = ["once", "setup"]

F = TypeVar("F", bound=Callable[..., Any])
_alone = Alone()
#: Held while something is made ready once: imports, the threads of kernels, what compiles a kernel.
setup: Any = _alone.lock


def once(function: F) -> F:
    """Let a function make something ready with the lock, and no signal's handler find it half done."""

    @functools.wraps(function)
    def wrapped(*args: Any) -> Any:
        return _alone.do(function, *args)

    return cast(F, wrapped)
