"""What is installed of plugins, whatever the state of the files that tell it."""

from __future__ import annotations

from collections.abc import MutableMapping
from importlib import metadata

__all__ = ["installed"]


def installed(damaged: MutableMapping[str, tuple[str, BaseException]]) -> list[tuple[metadata.EntryPoint, str, str]]:
    """Every entry point of the group ``mxcore``, with its distribution and version.

    Parameters
    ----------
    damaged : dict
        Is told of distributions whose files cannot be read: name -> (what is wrong, error).

    Examples
    --------
    >>> {distribution for _, distribution, _ in installed({})} >= {"mxcore"}
    True
    """
    try:
        return [_told(e) for e in metadata.entry_points(group="mxcore")]
    except Exception:  # the files of one distribution, of whatever kind, are damaged; the others are not
        found: dict[str, list[tuple[metadata.EntryPoint, str, str]]] = {}
        for d in metadata.distributions():
            name = str(getattr(d, "_path", d))
            try:
                name = d.metadata["Name"] or name
                # The first of a name is the one that Python imports.
                found[name] = found.get(name) or [_told(e) for e in d.entry_points.select(group="mxcore")]
            except Exception as e:
                damaged[name] = ("damaged metadata", e)
        return [entry for entries in found.values() for entry in entries]


def _told(e: metadata.EntryPoint) -> tuple[metadata.EntryPoint, str, str]:
    return e, e.dist and e.dist.name or e.value, e.dist.version if e.dist else "?"
