"""Classes that plugins and users enter by name: iterators, optimizers, metrics, stores, commands and others."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ._core import tables
from ._core.errors import MXNetError, error, suggest, warn
from ._core.plugins import plugins
from ._core.tables import USER

__all__ = ["explained", "lookup", "making", "names", "register"]

#: What a class of a kind must have that needs no base: one of the names of each.
_NEEDED = {"iterator": (("next", "__next__"), ("reset",))}
#: Kind -> method -> how the library calls it: what it gives by position and by name.
_CALLED: dict[str, dict[str, tuple[str, str]]] = {
    "optimizer": {
        "create_state": ("index weight", ""),
        "create_state_multi_precision": ("index weight", ""),
        "update": ("index weight grad state", ""),
        "update_multi_precision": ("index weight grad state", ""),
    },
    "metric": {"update": ("labels preds", ""), "reset": ("", ""), "get": ("", "")},
    "kvstore": {"broadcast": ("key value", "out priority"), "pushpull": ("key value", "out priority")},
    "initializer": {"__call__": ("desc arr", "")},
    "lr_scheduler": {"__call__": ("num_update", "")},
}
#: Kind -> how one of it is made.
_MADE = {
    "optimizer": "an optimizer is made with the arguments of create(), and param_dict by a Trainer: __init__(self, "
    "..., **kwargs) hands what it does not know to super().__init__(**kwargs)",
    "metric": "a metric is made with the arguments of create(), which may be none: __init__ gives super().__init__ a "
    "name",
    "kvstore": "a store is made with the name of its type: __init__(self, name)",
}
#: Who brings what is not a plugin's: wrong arguments are those of who calls.
_NO_PLUGINS = ("stock", USER)


def register(kind: str, name: str, value: Any) -> None:
    """Enter a class under a name from user code (``mx.optimizer.register`` and kin).

    It takes the place of what was there before with a warning, as in MXNet.
    """
    table = tables.by_kind[kind]
    plugins.load()
    if table.items.get(name, value) is not value:
        warn(f"{kind} '{name}' of {USER} replaces the one of {_owner(kind, name)}")
    table.put(name, value, USER)


def _owner(kind: str, name: str) -> str:
    """Whose it is; the plugin may go at any time."""
    return tables.by_kind[kind].owners.get(name, "a plugin that is gone")


def lookup(kind: str, name: str, base: type = object) -> Any:
    """The object under `name`, imported if it was given as ``"module:attr"``; a class must derive from `base`."""
    table = tables.by_kind[kind]
    found = table.get(name)
    if isinstance(found, str):
        owner, target = _owner(kind, name), found
        found = tables.resolve(target, f"{kind} '{name}' of plugin '{owner}'")
        if kind != "cli" and not callable(found):
            tables.broken[target] = f"it is {found!r}, neither a class nor a function"
            raise error(TypeError, f"{kind} '{name}' of plugin '{owner}', '{target}': {tables.broken[target]}")
        with tables.lock:
            if table.claims.get(name, {}).get(owner) == target:  # else the plugin has gone
                table.put(name, found, owner)
    who = f"{kind} '{name}' of plugin '{_owner(kind, name)}'"
    if isinstance(found, type):
        if not issubclass(found, base):
            raise error(TypeError, f"{who} is {found!r}, no subclass of {base.__name__}")
        if lost := [names for names in _NEEDED.get(kind, ()) if not any(hasattr(found, n) for n in names)]:
            raise error(TypeError, f"{who} is {found!r}, which has no method {' or '.join(lost[0])}()")
        if base is not object and _owner(kind, name) not in _NO_PLUGINS:
            _check_methods(kind, found, who)
        return found
    if isinstance(found, base) and base is not object:
        raise error(TypeError, f"{who} is {found!r}, an object; its class is needed")
    return found if base is object else _making(found, base, who)


def making(kind: str, name: str, base: type) -> Callable[..., Any]:
    """What makes the object under `name`; where a plugin's class does not take its arguments, the error names it."""
    found = lookup(kind, name, base)
    owner = _owner(kind, name)
    if owner in _NO_PLUGINS:
        return explained(kind, name, found)

    def made(*args: Any, **kwargs: Any) -> Any:
        try:
            return found(*args, **kwargs)
        except TypeError as e:
            if isinstance(e, MXNetError) or _takes(found, args, kwargs):
                raise
            shown = ", ".join([*(repr(a)[:40] for a in args), *(f"{k}=..." for k in kwargs)])
            expected = _MADE.get(kind, "it is made with the arguments of create()")
            raise error(
                TypeError,
                f"{kind} '{name}' of plugin '{owner}' is {found!r}, which does not take ({shown}): {e}; {expected}",
            ) from e

    return made


def explained(kind: str, name: str, make: Callable[..., Any]) -> Callable[..., Any]:
    """What makes something of a kind, with an error that names the first parameter that it does not have."""

    def made(*args: Any, **kwargs: Any) -> Any:
        try:
            return make(*args, **kwargs)
        except TypeError as e:
            # Python's words, of this class or of one that it inherits from: what else it raises is its own.
            unknown = [k for k in kwargs if f"unexpected keyword argument '{k}'" in str(e)]
            if isinstance(e, MXNetError) or not unknown or unknown[0] in (known := _parameters(make)):
                raise
            meant = suggest(unknown[0], known) or f"; it takes {', '.join(dict.fromkeys(known)) or 'none'}"
            text = f"{kind} '{name}' has no parameter {unknown[0]!r}{meant}"
            if unknown[0] == "param_dict":  # who writes the class has to take it
                text += f"; {_MADE['optimizer']}"
            raise error(TypeError, text) from e

    return made


def _parameters(make: Any) -> list[str]:
    """What a function takes by name, or a class, with what it hands on to those it inherits from."""
    found: list[str] = []
    for one in (
        [vars(c)["__init__"] for c in make.__mro__ if "__init__" in vars(c)] if isinstance(make, type) else [make]
    ):
        try:
            parameters = inspect.signature(one).parameters.values()
        except ValueError:  # written in C
            break
        found += [
            p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name != "self"
        ]
        if all(p.kind != p.VAR_KEYWORD for p in parameters):
            break
    return found


def _check_methods(kind: str, cls: type, who: str) -> None:
    """Refuse a class with methods that cannot be called as the library calls them."""
    for method, (by_position, by_name) in _CALLED.get(kind, {}).items():
        fn = getattr(cls, method, None)
        owned = not isinstance(inspect.getattr_static(cls, method, None), (staticmethod, classmethod))
        args = by_position.split()
        if callable(fn) and not _takes(fn, ["self"] * owned + args, dict.fromkeys(by_name.split())):
            given = ", ".join([*args, *(f"{k}=..." for k in by_name.split())])
            raise error(
                TypeError,
                f"{who} is {cls!r}, whose {method}{inspect.signature(fn)} cannot be called as {method}({given})",
            )


def _takes(fn: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether a function or class takes these arguments, as far as it tells."""
    try:
        told = inspect.signature(fn)
    except (TypeError, ValueError):
        return True
    try:
        told.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


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
