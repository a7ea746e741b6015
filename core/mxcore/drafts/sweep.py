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

__all__ = ["sweep"]

#: In seconds: who writes another file removes a draft that nobody has written to for so long. A dead writer's lock is
#: free, but some network disks show no locks of other machines, and no living writer should rest for so long there.
_FORGOTTEN = 3600.0

#: How many drafts of other files a writer looks at: for each the system is asked, or a server.
_LOOKED_AT = 100


def sweep(target: str, others: bool = True) -> None:
    """Remove the drafts of a file whose writers are dead; one that waits for a file of the folder takes its place.

    Those of other files are removed only later, as their names may never be written again.

    Parameters
    ----------
    target : str
        The file, as `behind_links` gives it.
    others : bool
        Whether to look at drafts of other files, too.
    """
    prefix, folder = prefix_of(target), os.path.dirname(target)
    with suppress(OSError):
        # There may be a hundred thousand files, and as a rule no draft: names alone are had in half of the time.
        if not [name for name in os.listdir(folder) if name.startswith(OURS)]:
            return
    with suppress(OSError), os.scandir(folder) as entries:
        found = list(entries)
        drafts = [entry for entry in found if entry.name.startswith(OURS)]
        for draft in [entry for entry in drafts if entry.name.startswith(prefix)]:
            for owner in found:
                if draft.name.startswith(f"{prefix}{owner.inode():x}-"):
                    settle(target, owner.path)
            with suppress(OSError):
                unless_alive(draft.path, lambda path=draft.path: os.unlink(path))
        _sweep_forgotten([entry for entry in drafts if others and not entry.name.startswith(prefix)])


def _sweep_forgotten(drafts: list[os.DirEntry[str]]) -> None:
    """Remove drafts that nobody holds or has written to for long.

    What waits for a file stays until somebody reads or writes it, as the file may be in another folder; unless that
    file was never completed, and is removed here.
    """
    known = [(match[1], entry) for entry in drafts if (match := DRAFT.fullmatch(entry.name))]
    known.sort(key=lambda each: each[0] is not None)  # what others wait for comes first
    last = time.time() - _FORGOTTEN
    gone: set[str | None] = {None}
    for waits_for, entry in known[:_LOOKED_AT]:
        with suppress(OSError):
            found = entry.stat(follow_symlinks=False)
            if waits_for in gone and stat.S_ISREG(found.st_mode) and found.st_mtime < last:
                unless_alive(entry.path, functools.partial(_remove, entry.path, key_of(found), gone))


def _remove(path: str, key: str, gone: set[str | None]) -> None:
    os.unlink(path)
    gone.add(key)
