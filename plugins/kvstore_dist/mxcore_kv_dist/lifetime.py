"""What a process has open: it is left in good order at the end, and given up by forked children."""

from __future__ import annotations

import atexit
import itertools
import os
import sys
import traceback
import weakref
from contextlib import ExitStack
from typing import Protocol

__all__ = ["enlist", "forked_text"]

#: How much of an error others are told.
_LONGEST = 500


class _Open(Protocol):
    def close(self, failure: str = "") -> None:
        """Leave, at once if this program has failed: the failure says how."""

    def forked(self) -> None:
        """Know in a forked child that connections and threads are its parent's."""


_count = itertools.count()
#: In the order in which they were opened: those that were opened later may need the others.
_open: weakref.WeakValueDictionary[int, _Open] = weakref.WeakValueDictionary()


def enlist(opened: _Open) -> None:
    """Let something be closed at the end of the program, as long as somebody has it."""
    _open[next(_count)] = opened


def forked_text() -> str:
    """What a forked child is told that uses a store of its parent."""
    return (
        f"kvstore: process {os.getpid()} was forked from the worker that has made this store, and cannot use it; "
        "make stores after forks"
    )


def _failure() -> str:
    """The exception that has ended this program, if one has."""
    error = getattr(sys, "last_value", None)
    return "" if error is None else "".join(traceback.format_exception_only(error)).strip()[:_LONGEST]


@atexit.register
def _close_all() -> None:
    failure = _failure()
    with ExitStack() as ends:  # the last first, and all, whatever the others raise
        for opened in list(_open.values()):
            ends.callback(opened.close, failure)


def _give_up() -> None:
    for opened in list(_open.values()):
        opened.forked()
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_give_up)
