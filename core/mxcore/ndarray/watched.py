"""Methods of arrays that wait, copy or differentiate, as who watches them wants them.

They are exchanged when somebody begins or ceases to watch, so that a call asks for nobody.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .ndarray import NDArray

__all__ = ["unwatch", "watch"]

#: Is given a method and its name, and returns one that does the same and looks.
Watcher = Callable[[Callable[..., Any], str], Callable[..., Any]]

_METHODS = {name: getattr(NDArray, name) for name in ("asnumpy", "backward", "wait_to_read")}
_watchers: tuple[Watcher, ...] = ()


def watch(watcher: Watcher) -> None:
    """Let somebody see every call of these methods from now on, until :func:`unwatch`."""
    _exchange((*_watchers, watcher))


def unwatch(watcher: Watcher) -> None:
    """Let somebody see no further call; nothing happens if they see none."""
    _exchange(tuple(w for w in _watchers if w is not watcher))


def _exchange(watchers: tuple[Watcher, ...]) -> None:
    global _watchers
    _watchers = watchers
    for name, method in _METHODS.items():
        for watcher in watchers:
            method = watcher(method, name)
        setattr(NDArray, name, method)
