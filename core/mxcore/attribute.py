"""Attributes that all symbols made in a with-block get, as ``mxnet.attribute``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ._core.errors import error
from ._core.state import state
from ._current import PerThreadCurrent
from ._reexports import reexports
from ._scopes import Scope

__all__ = ["AttrScope", "current"]


class AttrScope(Scope, metaclass=PerThreadCurrent):
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

    def get(self, attr: Mapping[str, Any] | None) -> dict[str, Any]:
        """The attributes of this scope with `attr` on top, whose values are taken as they are."""
        if attr and not isinstance(attr, Mapping):
            raise error(TypeError, f"attr must be a dict of strings, got {attr!r}")
        return {**self._full(), **(attr or {})}

    def _full(self) -> dict[str, str]:
        """Its attributes with those of the blocks around it, where this thread is in it."""
        known = state.extra.get("attr_full")  # (scope, attributes, the same of the block around)
        while known is not None and known[0] is not self:
            known = known[2]
        return self._attr if known is None else known[1]

    def _values(self) -> Iterable[tuple[dict[str, Any], str, Any]]:
        extra = state.extra
        full = {**current()._full(), **self._attr}
        return (extra, self._state_key, self), (extra, "attr_full", (self, full, extra.get("attr_full")))


def current() -> AttrScope:
    """The attribute scope of this thread."""
    found: AttrScope = AttrScope.current
    return found


__getattr__ = reexports(__name__)
