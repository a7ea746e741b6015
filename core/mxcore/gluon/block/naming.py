"""Who is called what: prefixes of blocks and the scopes that make them."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..._core.state import state
from ..._scopes import Scope
from ...name import NameManager, Prefix, current
from ..parameter import ParameterDict

if TYPE_CHECKING:
    from . import Block

__all__ = ["NameScope"]


#: Where the thread keeps the scope that it is in.
_KEY = "gluon.block.scope"


class NameScope(Scope):
    """The ``with block.name_scope():`` of one block; children made inside get its prefix and a number."""

    def __init__(self, block: Block) -> None:
        self._block: Any = weakref.ref(block)
        self._counter: dict[str, int] = {}

    @staticmethod
    def create(prefix: str | None, params: ParameterDict | None, hint: str) -> tuple[str, ParameterDict]:
        """Prefix and parameter dict of a new block.

        Parameters
        ----------
        prefix : str or None
            What the user gave; None makes one from `hint` and a count.
        params : ParameterDict or None
            Parameters to share.
        hint : str
            The block's kind in lower case.
        """
        while (scope := state.extra.get(_KEY)) is not None and scope._block() is None:  # an interrupt has left it open
            state.extra[_KEY] = None
            scope.__exit__()
        if scope is None:
            if prefix is None:
                prefix = current().get(None, hint) + "_"
            own = ParameterDict(prefix) if params is None else ParameterDict(params.prefix, params)
            return prefix, own
        if prefix is None:
            count = scope._counter.get(hint, 0)
            scope._counter[hint] = count + 1
            prefix = f"{hint}{count}_"
        parent = scope._block()
        if params is None:
            own = ParameterDict(parent.params.prefix + prefix, parent.params._shared)
        else:
            own = ParameterDict(params.prefix, params)
        return parent.prefix + prefix, own

    def _values(self) -> Iterable[tuple[dict[str, Any], str, Any]]:
        block, extra = self._block(), state.extra
        scope, names = extra.get(_KEY), current()
        # A block with the empty prefix is transparent: its children are named as if they stood outside.
        if not block._empty_prefix:
            scope, names = self, Prefix(block.prefix)
        return (extra, _KEY, scope), (extra, NameManager._state_key, names)

    def __getstate__(self) -> tuple[Any, dict[str, int]]:
        return self._block(), self._counter

    def __setstate__(self, state: tuple[Block, dict[str, int]]) -> None:
        block, self._counter = state
        self._block = weakref.ref(block)
