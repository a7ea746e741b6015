"""Locks: of drafts, which tell that their writers live, and of folders, in which one renames at a time."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from typing import Any

from .._interrupts import Uninterrupted, descriptor, suppress
from .names import prefix_of, token
from .raw import Raw

try:
    import fcntl
except ImportError:  # Windows, where a file that is open cannot be removed
    fcntl = None  # type: ignore[assignment]

__all__ = ["alone", "create", "fcntl", "same", "sync_folder", "unless_alive"]

#: How a folder is opened.
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)


def create(target: str, mode: int) -> tuple[Raw, str]:
    """Make a draft and lock it.

    Parameters
    ----------
    target : str
        The file whose place it will take, as `behind_links` gives it.
    mode : int
        Of the draft, as for `os.open`.
    """
    while True:
        path = os.path.join(os.path.dirname(target), f"{prefix_of(target)}{token()}.tmp")
        raw = Raw(path, "x+", mode)  # and not tempfile: the new file's mode follows the umask
        if fcntl is None:
            return raw, path
        with suppress(OSError):  # a file system without locks: nobody else can tell that we live
            fcntl.flock(raw, fcntl.LOCK_EX)
        if same(raw.fileno(), path):
            return raw, path
        raw.close()  # another writer took it for a dead one's before it was locked


def same(descriptor: int, path: str) -> bool:
    """Whether an open file is what has a name now.

    Parameters
    ----------
    descriptor : int
    path : str
        A link is not followed.
    """
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False


def unless_alive(path: str, action: Any) -> bool:
    """Do something with a draft if its writer is dead.

    Parameters
    ----------
    path : str
    action : callable
        Is called under the lock of the draft, unless somebody else has just removed or renamed that.

    Returns
    -------
    bool
        Whether the writer is dead; where there are no locks it is taken to be.
    """
    if fcntl is None:
        action()
        return True
    with Uninterrupted(), descriptor(path, os.O_RDWR | os.O_NOFOLLOW) as draft:
        try:
            fcntl.flock(draft, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if same(draft, path):
                action()
            return True
        except BlockingIOError:
            return False


@contextlib.contextmanager
def alone(folder: str) -> Iterator[None]:
    """Keep others from renaming two files of a folder at the same time, where the system can, a second long at most.

    Parameters
    ----------
    folder : str
    """
    with Uninterrupted(), contextlib.ExitStack() as until_the_end:
        with suppress(OSError):
            if fcntl is not None:
                handle = until_the_end.enter_context(descriptor(folder, _FOLDER))
                for _ in range(200):
                    try:
                        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        break
                    except BlockingIOError:
                        time.sleep(0.005)
        yield


def sync_folder(folder: str) -> None:
    """Make a rename survive a power cut, where the system can.

    Parameters
    ----------
    folder : str
        In which it was.
    """
    if hasattr(os, "O_DIRECTORY"):
        with suppress(OSError), Uninterrupted(), descriptor(folder, _FOLDER) as handle:
            os.fsync(handle)
