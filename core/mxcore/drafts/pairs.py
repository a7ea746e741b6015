"""Readers of files that belong together: they complete what a killed writer left, and see files of one time."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import Any, TypeVar

from .._file_names import local_path
from .._interrupts import let_through
from ..base import error
from ..urls import facts, is_url, store
from .caches import copied, renew
from .locks import alone, sync_folder, unless_alive
from .names import behind_links, waits_at

__all__ = ["read_pair", "settle"]

#: How often a pair is read anew that its writers replace meanwhile.
_TRIES = 100

Found = TypeVar("Found")


def settle(path: str | os.PathLike[str], owner: str | os.PathLike[str]) -> str:
    """Finish what a writer of files that belong together began, and was killed between them.

    Parameters
    ----------
    path : str or os.PathLike
        A file that belongs to another one, such as an index.
    owner : str or os.PathLike
        The first of them.

    Returns
    -------
    str
        Where the file that belongs to `owner` can be read: `path`, as a rule.

    Examples
    --------
    >>> settle("memory://doc/b", "memory://doc/a")
    'memory://doc/b'
    """
    if is_url(path) or is_url(owner):
        return os.fspath(path)
    path = os.fspath(path)
    try:
        first, target = (behind_links(local_path(name)) for name in (owner, path))
        if first is None or target is None or not _trusted(waits_at(target, os.stat(first)), os.stat(first)):
            return path
        with alone(os.path.dirname(first)):
            waiting = waits_at(target, os.stat(first))
            if not _trusted(waiting, os.stat(first)):
                return path  # another has finished it
            try:
                if unless_alive(waiting, lambda: os.replace(waiting, target)):
                    sync_folder(os.path.dirname(target))
                    return path
            except FileNotFoundError:
                return path  # another has finished it
            except OSError as e:
                let_through(e)
                # a folder that cannot be written
        return waiting
    except (OSError, ValueError) as e:  # nothing there, or a name that no file can have
        let_through(e)
        return path


def read_pair(path: str | os.PathLike[str], owner: str | os.PathLike[str], read: Callable[[str], Found]) -> Found:
    """Read two files that belong together, also while a writer replaces both.

    Parameters
    ----------
    path, owner : str or os.PathLike
        As for `settle`.
    read : callable
        Reads both, and gets where the second can be read. It is called again if the first was replaced meanwhile.

    Returns
    -------
    object
        What `read` returns.

    Raises
    ------
    MXNetError
        (also OSError) if the files never stay as they are while they are read.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.model.save_checkpoint("memory://doc/e", 1, mx.sym.Variable("data"), {"w": mx.nd.ones(2)}, {})
    >>> graph, params = "memory://doc/e-symbol.json", "memory://doc/e-0001.params"
    >>> read_pair(graph, params, lambda graph: (mx.sym.load(graph).name, list(mx.nd.load(params))))
    ('data', ['arg:w'])
    """
    if copied(owner) != copied(path):  # each of them may be of another time
        renew(owner, path)
    for _ in range(_TRIES):
        before, place = _version(owner), settle(path, owner)
        try:
            found = read(place)
        except Exception as e:
            let_through(e)
            # Where it waited it is no longer once its writer is done.
            if _version(owner) == before and (place == os.fspath(path) or os.path.exists(place)):
                raise
        else:
            if _version(owner) == before:
                return found
        renew(owner, path)
    raise error(OSError, f"{os.fspath(owner)!r} is replaced again and again; read it when its writer is done")


def _version(path: str | os.PathLike[str]) -> tuple[Any, ...] | None:
    """What changes when a file is replaced, as far as a store tells; None for what is not there."""
    try:
        if is_url(path):
            fs, name = store(os.fspath(path))
            fs.invalidate_cache(name)
            return facts(fs.info(name))
        found = os.stat(local_path(path))
    except Exception as e:  # a store may raise anything
        let_through(e)
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _trusted(waiting: str, owner: os.stat_result) -> bool:
    """Whether what waits is a file by its owner, this user or root: anybody may take a name in /tmp."""
    try:
        found = os.lstat(waiting)
    except FileNotFoundError:
        return False
    return stat.S_ISREG(found.st_mode) and (
        not hasattr(os, "geteuid") or found.st_uid in (owner.st_uid, os.geteuid(), 0)
    )
