"""Names of symbols that the user did not name, as ``mxnet.name``."""
from __future__ import annotations

from typing import Any

from ._core.errors import error
from ._core.state import state

__all__ = ["NameManager", "Prefix", "current"]


class _Current(type):
    """Gives the class the attribute `current`: the manager of this thread."""

    @property
    def current(cls) -> NameManager:
        """The name manager of this thread."""
        return current()

    @current.setter
    def current(cls, manager: NameManager) -> None:
        if not isinstance(manager, NameManager):
            raise error(TypeError, f"NameManager.current must be a NameManager, got {type(manager).__name__}")
        state.extra["name"] = manager


class NameManager(metaclass=_Current):
    """Gives ``hint0``, ``hint1`` … to unnamed symbols; used as a with-block, which starts to count anew.

    ``NameManager.current`` is the manager of this thread.

    Examples
    --------
    >>> import mxcore as mx
    >>> with mx.name.NameManager():
    ...     (mx.sym.Variable("a") + 1).name
    '_plusscalar0'
    """

    def __init__(self) -> None:
        self._counter: dict[str, int] = {}
        self._old: list[NameManager] = []

    def get(self, name: str | None, hint: str) -> str:
        """The name given by the user, else the next one for the hint."""
        if name:
            return name
        n = self._counter.get(hint, 0)
        self._counter[hint] = n + 1
        return f"{hint}{n}"

    def __enter__(self) -> NameManager:
        self._old.append(current())
        state.extra["name"] = self
        return self

    def __exit__(self, *exc: object) -> None:
        state.extra["name"] = self._old.pop()


class Prefix(NameManager):
    """Puts a prefix before all names of operators, given or made.

    Parameters
    ----------
    prefix : str

    Examples
    --------
    >>> import mxcore as mx
    >>> with mx.name.Prefix("net_"):
    ...     mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=1, name="fc").list_arguments()
    ['x', 'net_fc_weight', 'net_fc_bias']
    """

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self._prefix = prefix

    def get(self, name: str | None, hint: str) -> str:
        """The name with the prefix."""
        return self._prefix + super().get(name, hint)


def current() -> NameManager:
    """The name manager of this thread."""
    found: Any = state.extra.get("name")
    if found is None:
        found = state.extra["name"] = NameManager()
    return found  # type: ignore[no-any-return]
