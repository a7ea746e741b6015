"""Classes whose objects apply to a thread, one at a time: ``Class.current``, exchanged by with-blocks."""

from __future__ import annotations

from typing import Any

from ._core.errors import error
from ._core.state import state

__all__ = ["PerThreadCurrent"]


class PerThreadCurrent(type):
    """Metaclass that gives a class and its subclasses the attribute `current`: the object of this thread.

    The object is kept in ``state.extra`` under `_state_key`, a name that the class has; one made without arguments
    comes first.
    """

    _state_key: str

    @property
    def _root(cls) -> Any:
        return next(c for c in reversed(cls.__mro__) if isinstance(c, PerThreadCurrent))

    @property
    def current(cls) -> Any:
        """The object of this thread."""
        found = state.extra.get(cls._state_key)
        if found is None:
            found = state.extra[cls._state_key] = cls._root()
        return found

    @current.setter
    def current(cls, value: Any) -> None:
        root = cls._root
        if not isinstance(value, root):
            article = "an" if root.__name__[0] in "AEIOU" else "a"
            raise error(
                TypeError, f"{root.__name__}.current must be {article} {root.__name__}, got {type(value).__name__}"
            )
        state.extra[cls._state_key] = value
