"""Constructors of classes that differ by the defaults of their arguments alone."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

__all__ = ["with_defaults"]

F = TypeVar("F", bound=Callable[..., Any])


def with_defaults(fn: F, **defaults: Any) -> F:
    """A copy of a function with other defaults, which `help` and `inspect.signature` show.

    Parameters
    ----------
    fn : function
        It may use `super()` only if the class that gets the copy is derived from its own.
    **defaults
        New defaults of its positional parameters, by name.

    Examples
    --------
    >>> def area(width, height=1): return width * height
    >>> with_defaults(area, height=3)(2)
    6
    """
    assert isinstance(fn, FunctionType)
    code = fn.__code__
    names, old = code.co_varnames[: code.co_argcount], fn.__defaults__ or ()
    now = dict(zip(names[len(names) - len(old) :], old)) | defaults
    copy = FunctionType(code, fn.__globals__, fn.__name__, tuple(now[n] for n in names if n in now), fn.__closure__)
    copy.__annotations__, copy.__doc__, copy.__module__ = fn.__annotations__, fn.__doc__, fn.__module__
    copy.__kwdefaults__ = fn.__kwdefaults__
    copy.__qualname__ = fn.__name__  # errors name no other class
    return copy  # type: ignore[return-value]  # of the same signature but for defaults
