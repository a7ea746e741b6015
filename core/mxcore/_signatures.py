"""Constructors of classes that differ by the defaults of their arguments alone."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

__all__ = ["with_defaults"]

C = TypeVar("C", bound=type[Any])


def with_defaults(**defaults: Any) -> Callable[[C], C]:
    """A class decorator: the constructor is the inherited one with other defaults, which `help` shows.

    Parameters
    ----------
    **defaults
        By the names of positional arguments.

    Examples
    --------
    >>> class Box:
    ...     def __init__(self, width, height=1): self.area = width * height
    >>> @with_defaults(height=3)
    ... class TallBox(Box): pass
    >>> TallBox(2).area
    6
    """

    def decorate(cls: C) -> C:
        init: FunctionType = cls.__init__
        code = init.__code__
        names, old = code.co_varnames[: code.co_argcount], init.__defaults__ or ()
        assert defaults.keys() <= set(names), defaults
        now = dict(zip(names[len(names) - len(old) :], old)) | defaults
        own = FunctionType(
            code, init.__globals__, "__init__", tuple(now[n] for n in names if n in now), init.__closure__
        )
        own.__qualname__, own.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
        own.__annotations__, own.__kwdefaults__, own.__doc__ = init.__annotations__, init.__kwdefaults__, init.__doc__
        cls.__init__ = own
        return cls

    return decorate
