"""Operators by name, run on arrays: what gradient rules see."""

from __future__ import annotations

from typing import Any

from . import dispatch, tables
from .op import Op
from .roles import Roles

__all__ = ["Eager", "eager"]


class Eager:
    """Operators by name, run on arrays. View operators share memory here: gradients are temporaries."""

    def __init__(self) -> None:
        self.roles = Roles(self, tables.roles)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # what inspection asks for
        op: Op = tables.ops.get(name)
        share, plain, invoke, call = op.view, op.plain, dispatch.invoke, dispatch.call

        def fn(*args: Any, **kwargs: Any) -> Any:
            if not kwargs and plain is not None:
                return invoke(op, args, plain, None, None, share)
            return call(op, args, kwargs, None, share, kwargs.pop("wanted", None))

        fn.__name__ = name
        self.__dict__[name] = fn
        return fn

    def forget(self) -> None:
        """Drop the cached functions (the set of plugins changed)."""
        self.__dict__.clear()
        self.roles = Roles(self, tables.roles)


eager = Eager()
tables.on_change.append(eager.forget)
