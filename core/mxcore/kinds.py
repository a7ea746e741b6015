"""Classes that plugins and users enter by name: iterators, optimizers, metrics, stores, commands and others."""

from __future__ import annotations

import functools
from typing import Any

from ._core import tables
from ._core.errors import error, warn
from ._core.plugins import plugins
from ._core.tables import USER

__all__ = ["lookup", "names", "register"]

#: What a class of a kind must have that needs no base: one of the names of each.
_NEEDED = {"iterator": (("next", "__next__"), ("reset",))}


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
    who = f"{kind} '{name}' of plugin '{table.owners[name]}'"
    if isinstance(found, type):
        if not issubclass(found, base):
            raise error(TypeError, f"{who} is {found!r}, no subclass of {base.__name__}")
        if lost := [names for names in _NEEDED.get(kind, ()) if not any(hasattr(found, n) for n in names)]:
            raise error(TypeError, f"{who} is {found!r}, which has no method {' or '.join(lost[0])}()")
        return found
    if isinstance(found, base) and base is not object:
        raise error(TypeError, f"{who} is {found!r}, an object; its class is needed")
    return found if base is object else _making(found, base, who)


def _making(fn: Any, base: type, who: str) -> Any:
    """A function that stands in the place of a class; what it makes may be of another base, but is something."""

    @functools.wraps(fn, updated=())
    def made(*args: Any, **kwargs: Any) -> Any:
        found = fn(*args, **kwargs)
        if found is None:
            raise error(
                TypeError, f"{who} is a function, which returned None; an object like a {base.__name__} is needed"
            )
        return found

    return made


def names(kind: str) -> list[str]:
    """All names of a kind, sorted."""
    return tables.by_kind[kind].names()
