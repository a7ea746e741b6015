"""Blocks of `together`, and what else a thread is in the middle of when a signal handler comes."""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Iterable
from types import FrameType
from typing import TYPE_CHECKING

from .._interrupts import given, handlers
from .names import called

if TYPE_CHECKING:
    from .draft import Commit, Draft

__all__ = ["Block", "thread"]


class Block:
    """A block of `together`: the files it is for, and what was committed of them and waits for its end.

    Parameters
    ----------
    paths : sequence of str or os.PathLike
    frame : frame
        Of the function that it is in.
    """

    def __init__(self, paths: tuple[str | os.PathLike[str], ...], frame: FrameType) -> None:
        self.held: list[Draft] = []
        self.names = set(map(called, paths))
        self.frame = frame
        # They run in the main thread alone.
        self.handlers = handlers() if threading.current_thread() is threading.main_thread() else set()

    def __del__(self) -> None:
        """Leave nothing of one that an interrupt ended unseen."""
        for draft in self.held:
            draft.discard()

    def is_for(self, paths: Iterable[str | os.PathLike[str]]) -> bool:
        """Whether one of these is its own, and written by its own code.

        A signal handler may run in between, and what it saves must not wait: it may end the process. An interrupt
        between two instructions may have ended the block unseen, with the function that it is in.
        """
        return not self.names.isdisjoint(map(called, paths)) and self._writes()

    def lives(self) -> bool:
        """Whether the function that it is in runs still."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame is not self.frame:
            frame = frame.f_back
        return frame is not None

    def _writes(self) -> bool:
        """Whether the code that runs now is the block's."""
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and frame is not self.frame:
            below = frame.f_back
            if frame.f_code in self.handlers or below is not None and given(frame, below):
                return False
            frame = below
        return frame is not None


class _Thread(threading.local):
    def __init__(self) -> None:
        #: The innermost block of `together`.
        self.block: Block | None = None
        #: What is taking its place now, by id, in the order of beginning; a signal handler may come in between. What an
        #: interrupt has ended unseen is gone.
        self.commits: weakref.WeakValueDictionary[int, Commit] = weakref.WeakValueDictionary()

    def held_by(self, paths: Iterable[str | os.PathLike[str]]) -> Block | None:
        """The block that files wait for, if any."""
        block = self.block
        return block if block is not None and block.is_for(paths) else None


thread = _Thread()
