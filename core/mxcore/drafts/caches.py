"""Copies that fsspec's caches keep of files in stores: none may be of another time than its file."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from typing import Any

from .._interrupts import let_through
from ..urls import is_url, store, uncached

__all__ = ["copied", "forget", "renew"]


def forget(caches: Iterable[Any], path: str) -> None:
    """Let fsspec's caches drop their copies of an object.

    Parameters
    ----------
    caches : iterable of fsspec file systems
        As `urls.uncached` gives them.
    path : str
        Its name in the store.
    """
    for cache in caches:
        with contextlib.suppress(Exception):  # it has none
            cache.pop_from_cache(path)
        with contextlib.suppress(Exception):  # one that notes nothing
            os.unlink(os.path.join(cache.storage[-1], cache.hash_name(path)))


def _caches(path: str | os.PathLike[str]) -> tuple[list[Any], str]:
    """fsspec's caches in front of the store of a file, and its name there."""
    if not is_url(path):
        return [], ""
    found, name = store(os.fspath(path))
    return uncached(found)[1], name


def renew(*paths: str | os.PathLike[str]) -> None:
    """Let caches drop what they have of files.

    Parameters
    ----------
    *paths : str or os.PathLike
        Local ones have none.
    """
    for path in paths:
        forget(*_caches(path))


def copied(path: str | os.PathLike[str]) -> bool:
    """Whether a cache has a copy of a file.

    Parameters
    ----------
    path : str or os.PathLike
    """
    try:
        caches, name = _caches(path)
        return any(bool(cache._check_file(name)) for cache in caches)
    except Exception as e:  # reading it will tell what is wrong
        let_through(e)
        return False
