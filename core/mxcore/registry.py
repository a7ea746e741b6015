"""Classes by name: the functions behind ``mx.metric.create``, ``mx.init.register`` and the like.

The library's own bases (`Optimizer`, `EvalMetric`, `Initializer`, `LRScheduler`) keep their classes in the
tables that plugins fill; any other base gets a table of its own.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from . import kinds as _shared
from ._core.errors import suggest
from ._json import decode
from .base import MXNetError, asserted, error

__all__ = ["get_alias_func", "get_create_func", "get_register_func", "get_registry"]

#: Nicknames whose classes live in the shared tables, if the base is ours.
_SHARED = ("optimizer", "metric", "initializer", "lr_scheduler")

string_types = (str,)

Class = TypeVar("Class", bound=type)

_OWN: dict[type, dict[str, type]] = {}
_NICKNAMES: dict[type, str] = {}


def _is_shared(base_class: type, nickname: str) -> bool:
    return nickname in _SHARED and base_class.__module__.startswith(f"{__package__}.{nickname}")


def _put(base_class: type, nickname: str, name: str, klass: type) -> None:
    if _is_shared(base_class, nickname):
        _shared.register(nickname, name, klass)
        return
    table = _OWN.setdefault(base_class, {})
    if table.get(name, klass) is not klass:
        warnings.warn(
            f"{nickname} {name!r}: {klass.__qualname__} replaces {table[name].__qualname__}", UserWarning, stacklevel=3
        )
    table[name] = klass


def _find(base_class: type, nickname: str, name: str) -> Any:
    if _is_shared(base_class, nickname):
        try:
            return _shared.making(nickname, name, base_class)
        except KeyError as e:
            raise asserted(KeyError, str(e)) from None
    table = _OWN.get(base_class, {})
    if name not in table:
        raise asserted(
            KeyError, f"no {nickname} is named {name!r}{suggest(name, table)}; register it with {nickname}.register"
        )
    return _shared.explained(nickname, name, table[name])


def get_registry(base_class: type) -> dict[str, type]:
    """Get a copy of the table of a base class.

    Parameters
    ----------
    base_class : type
        The common base of the registered classes.

    Returns
    -------
    dict of str to type

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.registry.get_registry``.

    Examples
    --------
    >>> class Shape: pass
    >>> get_registry(Shape)
    {}
    """
    nickname = _NICKNAMES.get(base_class)
    if nickname and _is_shared(base_class, nickname):
        return {name: _shared.lookup(nickname, name) for name in _shared.names(nickname)}
    return dict(_OWN.get(base_class, {}))


def get_register_func(base_class: type, nickname: str) -> Callable[..., Any]:
    """Make the function that registers classes of one kind.

    Parameters
    ----------
    base_class : type
        Base that each registered class must have.
    nickname : str
        What a class of this kind is called in messages.

    Returns
    -------
    callable
        ``register(klass, name=None)``, also a decorator. The name is the class's own in lower case by
        default. A name that is taken goes to the new class, with a warning.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.registry.get_register_func``.

    Examples
    --------
    >>> class Shape: pass
    >>> register = get_register_func(Shape, "shape")
    >>> @register
    ... class Square(Shape): pass
    >>> get_create_func(Shape, "shape")("square").__class__.__name__
    'Square'
    """
    _NICKNAMES[base_class] = nickname

    def register(klass: Class, name: str | None = None) -> Class:
        if not (isinstance(klass, type) and issubclass(klass, base_class)):
            raise error(TypeError, f"{nickname}.register takes {base_class.__name__} classes, not {klass!r}")
        _put(base_class, nickname, (name or klass.__name__).lower(), klass)
        return klass

    register.__doc__ = f"Register a subclass of `{base_class.__name__}` under its lower-case name, or `name`."
    return register


def get_alias_func(base_class: type, nickname: str) -> Callable[..., Any]:
    """Make the decorator that registers classes of one kind under further names.

    Parameters
    ----------
    base_class, nickname
        As for `get_register_func`.

    Returns
    -------
    callable
        ``alias(*names)``, a decorator.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.registry.get_alias_func``.

    Examples
    --------
    >>> class Shape: pass
    >>> alias = get_alias_func(Shape, "shape")
    >>> @alias("sq", "quad")
    ... class Square(Shape): pass
    >>> sorted(get_registry(Shape))
    ['quad', 'sq']
    """
    register = get_register_func(base_class, nickname)

    def alias(*aliases: str) -> Callable[[Class], Class]:
        def named(klass: Class) -> Class:
            for name in aliases:
                register(klass, name)
            return klass

        return named

    alias.__doc__ = f"Register a subclass of `{base_class.__name__}` under further names."
    return alias


def get_create_func(base_class: type, nickname: str) -> Callable[..., Any]:
    """Make the function that creates objects of one kind by name.

    Parameters
    ----------
    base_class, nickname
        As for `get_register_func`.

    Returns
    -------
    callable
        ``create(name, *args, **kwargs)``. `name` may also be an object of the kind, which is returned as it
        is; a dictionary or JSON object ``{nickname: name, **kwargs}``; or a JSON list ``[name, kwargs]``.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.registry.get_create_func``.

    Examples
    --------
    >>> class Shape:
    ...     def __init__(self, size): self.size = size
    >>> _ = get_register_func(Shape, "shape")(Shape)
    >>> get_create_func(Shape, "shape")('["shape", {"size": 3}]').size
    3
    """

    def create(*args: Any, **kwargs: Any) -> Any:
        if args:
            name, args = args[0], args[1:]
        elif nickname in kwargs:
            name = kwargs.pop(nickname)
        else:
            raise error(TypeError, f"which {nickname}? give its name first, or as {nickname}=")
        alone = isinstance(name, (base_class, dict)) or str(name)[:1] in ("[", "{")
        if alone and (args or kwargs):
            raise error(ValueError, f"{nickname} {name!r} is complete; it takes no further arguments")
        if isinstance(name, base_class):
            return name
        if isinstance(name, dict):
            return create(**name)
        if not isinstance(name, string_types):
            raise asserted(TypeError, f"{nickname} must be a name or a {base_class.__name__} object, got {name!r}")
        if alone:
            config = _decoded(nickname, name)
            try:
                return create(config[0], **config[1]) if isinstance(config, list) else create(**config)
            except MXNetError:
                raise
            # A text may come from a file.
            except (TypeError, ValueError, KeyError, ArithmeticError, RecursionError) as problem:
                kind = TypeError if isinstance(problem, TypeError) else ValueError
                raise error(kind, f"{nickname} {name[:200]!r}: {problem}") from problem
        return _find(base_class, nickname, name.lower())(*args, **kwargs)

    create.__doc__ = f"Create a `{base_class.__name__}` by name, from a dictionary or from JSON."
    return create


def _decoded(nickname: str, text: str) -> Any:
    shown = text if len(text) < 200 else f"{text[:200]} …"
    config = decode(text, f"{nickname} {shown!r}")
    if isinstance(config, list) and (
        len(config) != 2 or not isinstance(config[0], str) or not isinstance(config[1], dict)
    ):
        raise error(ValueError, f'{nickname} {shown!r} must have the form ["name", {{"argument": value}}]')
    return config
