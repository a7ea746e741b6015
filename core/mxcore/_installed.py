"""What is installed of plugins, whatever the state of the files that tell it."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import MutableMapping
from importlib import metadata

from ._importing import short

__all__ = ["installed"]


def installed(damaged: MutableMapping[str, tuple[str, BaseException]]) -> list[tuple[metadata.EntryPoint, str, str]]:
    """Every entry point of the group ``mxcore``, with its distribution and version.

    Parameters
    ----------
    damaged : dict
        Is told of distributions whose files cannot be read: name -> (what is wrong, error).

    Raises
    ------
    MXNetError
        (also MemoryError or OSError) if they cannot be looked for now, for want of memory or descriptors.

    Examples
    --------
    >>> {distribution for _, distribution, _ in installed({})} >= {"mxcore"}
    True
    """
    outside = sys.exc_info()[1]
    try:
        entries = [_told(e) for e in metadata.entry_points(group="mxcore")]
        _look()
        return entries
    except Exception as problem:  # the files of one distribution, of whatever kind, are damaged; the others are not
        short("the list of installed plugins", problem, outside)
        found: dict[str, list[tuple[metadata.EntryPoint, str, str]]] = {}
        for d in metadata.distributions():
            name = str(getattr(d, "_path", d))
            try:
                name = d.metadata["Name"] or name
                # The first of a name is the one that Python imports.
                found[name] = found.get(name) or [_told(e) for e in d.entry_points.select(group="mxcore")]
            except Exception as e:
                short("the list of installed plugins", e, outside)
                damaged[name] = ("damaged metadata", e)
        return [entry for entries in found.values() for entry in entries]


def _look() -> None:
    """Raise where folders cannot be listed for want of descriptors: Python takes them for empty then, in silence."""
    for folder in sys.path:
        try:
            os.scandir(folder or ".").close()
        except OSError as e:  # one that is not there, or not to be read, is nobody's
            if e.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
                metadata.MetadataPathFinder().invalidate_caches()  # which would give the same until the folder changes
                raise


def _told(e: metadata.EntryPoint) -> tuple[metadata.EntryPoint, str, str]:
    return e, e.dist and e.dist.name or e.value, e.dist.version if e.dist else "?"
