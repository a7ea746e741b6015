"""What is written locally: files as the system has them, until a write fails."""

from __future__ import annotations

import functools
import io
import os
from typing import Any

from .._interrupts import let_through

__all__ = ["Raw", "again"]


class Raw(io.FileIO):
    """A file that is written by the process that opened it, until a write fails.

    It has its descriptor from the first moment on: what a signal's handler raises then leaves none open.

    Parameters
    ----------
    path : str
    how : str
        As for `io.FileIO`.
    mode : int
        Of a new file, as for `os.open`.

    Attributes
    ----------
    problem : OSError or None
        Why a write has failed.
    """

    def __init__(self, path: str, how: str, mode: int) -> None:
        super().__init__(path, how, opener=functools.partial(os.open, mode=mode))
        self.problem: OSError | None = None
        self._pid = os.getpid()

    def write(self, data: Any) -> int:
        if self.problem is not None or self._pid != os.getpid():
            return memoryview(data).nbytes  # what a child finds in an inherited buffer is not its own
        try:
            return super().write(data)
        except OSError as e:
            let_through(e)
            self.problem = again(e)  # not the error itself: its traceback holds what all callers have open
            raise


def again(e: OSError) -> OSError:
    """The same error without a traceback.

    Parameters
    ----------
    e : OSError
    """
    return type(e)(*e.args)
