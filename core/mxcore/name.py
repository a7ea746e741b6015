"""Names of symbols that the user did not name, as ``mxnet.name``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ._core.state import state
from ._current import PerThreadCurrent
from ._reexports import reexports
from ._scopes import Scope

__all__ = ["NameManager", "Prefix", "current"]


class NameManager(Scope, metaclass=PerThreadCurrent):
    """Gives ``hint0``, ``hint1`` … to unnamed symbols; used as a with-block, which starts to count anew.

    ``NameManager.current`` is the manager of this thread.

    Examples
    --------
    >>> import mxcore as mx
    >>> with mx.name.NameManager():
    ...     (mx.sym.Variable("a") + 1).name
    '_plusscalar0'
    """

    _state_key = "name"

    def __init__(self) -> None:
        self._counter: dict[str, int] = {}

    def get(self, name: str | None, hint: str) -> str:
        """The name given by the user, else the next one for the hint."""
        if name:
            return name
        n = self._counter.get(hint, 0)
        self._counter[hint] = n + 1
        return f"{hint}{n}"

    def _values(self) -> Iterable[tuple[dict[str, Any], str, Any]]:
        return ((state.extra, self._state_key, self),)


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
    found: NameManager = NameManager.current
    return found


__getattr__ = reexports(__name__)
