"""Drafts of dead writers, which the next writers remove."""

from __future__ import annotations

import functools
import os
import stat
import time

from .._interrupts import suppress
from .locks import unless_alive
from .names import DRAFT, OURS, key_of, prefix_of
from .pairs import settle

__all__ = ["settle_waiting", "sweep"]

#: In seconds: who writes another file removes a draft that nobody has written to for so long. A dead writer's lock is
#: free, but some network disks show no locks of other machines, and no living writer should rest for so long there.
_FORGOTTEN = 3600.0

#: How many drafts of other files a writer looks at: for each the system is asked, or a server.
_LOOKED_AT = 100


def sweep(target: str) -> None:
    """Remove the drafts of a file whose writers are dead; one that waits for a file of the folder takes its place.

    Those of other files are removed only later, as their names may never be written again.

    Parameters
    ----------
    target : str
        The file, as `behind_links` gives it.
    """
    folder, prefix = os.path.dirname(target), prefix_of(target)
    with suppress(OSError):
        drafts = _begin_with(OURS, folder)
        mine = [name for name in drafts if name.startswith(prefix)]
        _settle(target, mine)
        for name in mine:
            path = os.path.join(folder, name)
            with suppress(OSError):
                unless_alive(path, functools.partial(os.unlink, path))
        _sweep_forgotten(folder, [name for name in drafts if not name.startswith(prefix)])


def settle_waiting(target: str) -> None:
    """Let what waits for a file of the folder take the place of another.

    Parameters
    ----------
    target : str
        That one, as `behind_links` gives it.
    """
    with suppress(OSError):
        _settle(target, _begin_with(prefix_of(target), os.path.dirname(target)))


def _begin_with(start: str, folder: str) -> list[str]:
    """Names of a folder's files: there may be a hundred thousand others, so of none more is asked than that."""
    return [name for name in os.listdir(folder) if name.startswith(start)]


def _settle(target: str, drafts: list[str]) -> None:
    """Let those of its drafts take the place of a file that wait for one of its folder."""
    waiting = tuple([name for name in drafts if (match := DRAFT.fullmatch(name)) and match[1]])
    if waiting:
        with os.scandir(os.path.dirname(target)) as entries:
            for owner in entries:
                start = f"{prefix_of(target)}{owner.inode():x}-"
                if any(name.startswith(start) for name in waiting):
                    settle(target, owner.path)


def _sweep_forgotten(folder: str, drafts: list[str]) -> None:
    """Remove drafts that nobody holds or has written to for long.

    What waits for a file stays until somebody reads or writes it, as the file may be in another folder; unless that
    file was never completed, and is removed here.
    """
    known = [(match[1], name) for name in drafts if (match := DRAFT.fullmatch(name))]
    known.sort(key=lambda each: each[0] is not None)  # what others wait for comes first
    last = time.time() - _FORGOTTEN
    gone: set[str | None] = {None}
    for waits_for, name in known[:_LOOKED_AT]:
        path = os.path.join(folder, name)
        with suppress(OSError):
            found = os.lstat(path)
            if waits_for in gone and stat.S_ISREG(found.st_mode) and found.st_mtime < last:
                unless_alive(path, functools.partial(_remove, path, key_of(found), gone))


def _remove(path: str, key: str, gone: set[str | None]) -> None:
    os.unlink(path)
    gone.add(key)
