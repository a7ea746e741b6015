"""What files are called, and their drafts: names tell of which file one is, or for which it waits."""

from __future__ import annotations

import os
import re

from .._file_names import OURS, checked, local_path
from .._interrupts import let_through, suppress
from ..urls import is_url

__all__ = ["DRAFT", "OURS", "behind_links", "called", "key_of", "prefix_of", "token", "waits_at"]

#: A draft, or what waits for the file of a key.
DRAFT = re.compile(re.escape(OURS) + r"[0-9a-f]{32}-(?:[0-9a-f]{16}|([0-9a-f]+-[0-9a-f]+-[0-9a-f]+))\.tmp")


def called(path: str | os.PathLike[str]) -> str:
    """What a file is called by everybody: its URL, or its absolute path.

    Parameters
    ----------
    path : str or os.PathLike
    """
    name = checked(path)
    if is_url(name):
        return name
    with suppress(OSError):  # the folder of this process was removed
        return os.path.abspath(local_path(name))
    return name


def behind_links(path: str) -> str | None:
    """What a path names behind all links; None for a descriptor of a process, such as /dev/stdout.

    Parameters
    ----------
    path : str
        A local path.
    """
    path = os.path.abspath(path)
    for _ in range(40):
        folder = os.path.realpath(os.path.dirname(path))
        if folder.startswith(("/proc/", "/dev/fd")):
            return None
        path = os.path.join(folder, os.path.basename(path))
        try:
            path = os.path.join(folder, os.readlink(path))
        except OSError as e:
            let_through(e)
            return path
    return path  # a ring of links, which opening will tell


def prefix_of(target: str) -> str:
    """How the names of all drafts of a file begin: with a hash that nobody can find another name for.

    Parameters
    ----------
    target : str
        The file, as `behind_links` gives it.
    """
    from hashlib import sha256

    return f"{OURS}{sha256(os.fsencode(os.path.basename(target))).hexdigest()[:32]}-"


def token() -> str:
    """What tells apart the drafts of one file."""
    return os.urandom(8).hex()


def key_of(owner: os.stat_result) -> str:
    """What a file is known by to those that wait for it.

    Parameters
    ----------
    owner : os.stat_result
        Of the file.
    """
    return f"{owner.st_ino:x}-{owner.st_size:x}-{owner.st_mtime_ns:x}"


def waits_at(target: str, owner: os.stat_result) -> str:
    """Where the second file waits, until it is renamed too, once the first one is this.

    Parameters
    ----------
    target : str
        The second file, as `behind_links` gives it.
    owner : os.stat_result
        Of the first one.
    """
    return os.path.join(os.path.dirname(target), f"{prefix_of(target)}{key_of(owner)}.tmp")
