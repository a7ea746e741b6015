"""Attributes that all symbols made in a with-block get, as ``mxnet.attribute``."""
from __future__ import annotations

from typing import Any

from ._core.errors import error
from ._core.state import state

__all__ = ["AttrScope", "current"]


class AttrScope:
    """Attributes for symbols: ``with mx.AttrScope(ctx_group='dev1'):``; inner blocks add to outer ones.

    Parameters
    ----------
    **kwargs : str

    Examples
    --------
    >>> import mxcore as mx
    >>> with mx.AttrScope(ctx_group='dev1'):
    ...     mx.sym.Variable('x').attr('ctx_group')
    'dev1'
    """

    def __init__(self, **kwargs: str) -> None:
        for k, v in kwargs.items():
            if not isinstance(v, str):
                raise error(ValueError, f"AttrScope: attributes are strings, {k}={v!r} is a {type(v).__name__}")
        self._attr = kwargs
        self._old: list[AttrScope] = []
        self._full: list[dict[str, str]] = []

    def get(self, attr: dict[str, str] | None) -> dict[str, str]:
        """The attributes of this scope with `attr` on top."""
        for k, v in (attr or {}).items():
            if not isinstance(v, str):
                raise error(ValueError, f"attributes of symbols are strings, {k}={v!r} is a {type(v).__name__}")
        return {**self._attr, **attr} if attr else dict(self._attr)

    def __enter__(self) -> AttrScope:
        outer = current()
        self._old.append(outer)
        self._full.append(self._attr)
        self._attr = {**outer._attr, **self._attr}
        state.extra["attr"] = self
        return self

    def __exit__(self, *exc: object) -> None:
        self._attr = self._full.pop()
        state.extra["attr"] = self._old.pop()


def current() -> AttrScope:
    """The attribute scope of this thread."""
    found: Any = state.extra.get("attr")
    if found is None:
        found = state.extra["attr"] = AttrScope()
    return found  # type: ignore[no-any-return]
