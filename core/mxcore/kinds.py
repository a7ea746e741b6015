"""Classes that plugins and users enter by name: iterators, optimizers, metrics, stores, commands and others."""

from __future__ import annotations

from typing import Any

from ._core import tables
from ._core.errors import error, warn
from ._core.plugins import plugins
from ._core.tables import USER

__all__ = ["lookup", "names", "register"]


def register(kind: str, name: str, value: Any) -> None:
    """Enter a class under a name from user code (``mx.optimizer.register`` and kin).

    It takes the place of what was there before with a warning, as in MXNet.
    """
    table = tables.by_kind[kind]
    plugins.load()
    if table.items.get(name, value) is not value:
        warn(f"{kind} '{name}' of {USER} replaces the one of {table.owners[name]}")
    table.put(name, value, USER)


def lookup(kind: str, name: str, base: type = object) -> Any:
    """The object under `name`, imported if it was given as ``"module:attr"``; a class must derive from `base`."""
    table = tables.by_kind[kind]
    found = table.get(name)
    if isinstance(found, str):
        owner, target = table.owners[name], found
        found = tables.resolve(target, f"{kind} '{name}' of plugin '{owner}'")
        if kind != "cli" and not callable(found):
            tables.broken[target] = f"it is {found!r}, neither a class nor a function"
            raise error(TypeError, f"{kind} '{name}' of plugin '{owner}', '{target}': {tables.broken[target]}")
        table.put(name, found, owner)
    if isinstance(found, type) and not issubclass(found, base):
        text = f"{kind} '{name}' of plugin '{table.owners[name]}' is {found!r}, no subclass of {base.__name__}"
        raise error(TypeError, text)
    return found


def names(kind: str) -> list[str]:
    """All names of a kind, sorted."""
    return tables.by_kind[kind].names()
