"""What a thread has switched on, and with-blocks that change it.

One object serves many threads and blocks within blocks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from ._core.state import state

__all__ = ["Restoring", "Scope", "modes", "take_modes", "without"]

S = TypeVar("S", bound="Scope")


def without(entered: Any, scope: object) -> tuple[Any, Any]:
    """The innermost entry of `scope` among those that a thread has (None: there is none), and those that remain.

    It need not be the innermost of all: tasks of one thread take turns.
    """
    inside = []
    while entered is not None and entered[0] is not scope:
        inside.append(entered)
        entered = entered[-1]
    rest = entered and entered[-1]
    for entry in reversed(inside):
        rest = (*entry[:-1], rest)
    return entered, rest


def modes() -> tuple[bool, bool, bool]:
    """Whether shapes, arrays and dtypes mean in this thread what they do in NumPy; for `take_modes` in another."""
    return state.np_shape, state.extra.get("np_array", False), state.extra.get("np_default_dtype", False)


def take_modes(shape: bool, array: bool, dtype: bool) -> None:
    """Let them mean it; arrays without shapes are what a with-block may have."""
    state.np_shape = bool(shape)
    state.extra.update(np_array=bool(array), np_default_dtype=bool(dtype))


class Restoring:
    """A with-block that is left even where Ctrl-C comes while it is being left: `_leave` is done all over.

    What `_leave` does may be done twice until its last statement, which is no call, so that nothing interrupts it.
    """

    __slots__ = ()

    def _leave(self) -> None:
        raise NotImplementedError(f"{type(self).__name__} must define _leave(self)")

    def __exit__(self, kind: Any = None, exc: Any = None, trace: Any = None) -> None:
        # On one line, as an interrupt on that of a `try:` alone would not be caught.
        try: self._leave()  # fmt: skip  # noqa: E701
        except BaseException:
            self._leave()
            raise


class Scope(Restoring):
    """A with-block in which keys of the thread's mappings have other values, `_values`.

    What has its value already is left alone, at the end, too: so tasks of one thread that take turns leave no value
    behind that was another's.
    """

    __slots__ = ()

    def _values(self) -> Iterable[tuple[dict[str, Any], str, Any]]:
        """(mapping of the running thread, key, value in the block); None in a mapping is as good as no key."""
        raise NotImplementedError(f"{type(self).__name__} must define _values(self)")

    def __enter__(self: S) -> S:
        mode = state.__dict__
        entered = mode["entered"]
        changes = [
            (mapping, key, old, value)
            for mapping, key, value in self._values()
            if (old := mapping.get(key)) is not value
        ]
        try:
            mode["entered"] = self, changes, entered
            for mapping, key, _, value in changes:
                mapping[key] = value
            return self
        except BaseException:
            for mapping, key, old, _ in changes:
                mapping[key] = old
            mode["entered"] = entered
            raise

    def _leave(self) -> None:
        mode = state.__dict__
        entry, rest = without(mode["entered"], self)
        if entry is not None:
            for mapping, key, old, _ in entry[1]:
                mapping[key] = old
            mode["entered"] = rest
