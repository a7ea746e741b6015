"""Attributes that all symbols made in a with-block get, as ``mxnet.attribute``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._core.errors import error
from ._current import PerThreadCurrent
from ._reexports import reexports

__all__ = ["AttrScope", "current"]


class AttrScope(metaclass=PerThreadCurrent):
    """Attributes for symbols: ``with mx.AttrScope(ctx_group='dev1'):``; inner blocks add to outer ones.

    ``AttrScope.current`` is the scope of this thread.

    Parameters
    ----------
    **kwargs : str

    Raises
    ------
    MXNetError
        If a value is no string.

    Examples
    --------
    >>> import mxcore as mx
    >>> with mx.AttrScope(ctx_group='dev1'):
    ...     mx.sym.Variable('x').attr('ctx_group')
    'dev1'
    """

    _state_key = "attr"

    def __init__(self, **kwargs: str) -> None:
        for k, v in kwargs.items():
            if not isinstance(v, str):
                raise error(ValueError, f"AttrScope: attributes are strings, {k}={v!r} is a {type(v).__name__}")
        self._attr = kwargs
        self._old: list[AttrScope] = []
        self._full: list[dict[str, str]] = []

    def get(self, attr: Mapping[str, Any] | None) -> dict[str, Any]:
        """The attributes of this scope with `attr` on top, whose values are taken as they are."""
        return {**self._attr, **(attr or {})}

    def __enter__(self) -> AttrScope:
        outer = current()
        self._old.append(outer)
        self._full.append(self._attr)
        self._attr = {**outer._attr, **self._attr}
        AttrScope.current = self
        return self

    def __exit__(self, *exc: object) -> None:
        self._attr = self._full.pop()
        AttrScope.current = self._old.pop()


def current() -> AttrScope:
    """The attribute scope of this thread."""
    found: AttrScope = AttrScope.current
    return found


__getattr__ = reexports(__name__)
