"""Who is called what: prefixes of blocks and the scopes that make them."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any

from ...name import Prefix, current
from ..parameter import ParameterDict

if TYPE_CHECKING:
    from . import Block

__all__ = ["NameScope"]


class _Active(threading.local):
    """The scope that this thread is in, and what each ``with`` around it came from."""

    scope: NameScope | None = None

    def __init__(self) -> None:
        self.left: list[tuple[NameScope | None, Prefix] | None] = []


_active = _Active()


class NameScope:
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
        scope = _active.scope
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

    def __enter__(self) -> NameScope:
        block = self._block()
        # A block with the empty prefix is transparent: its children are named as if they stood outside.
        if block._empty_prefix:
            _active.left.append(None)
            return self
        names = Prefix(block.prefix)
        _active.left.append((_active.scope, names))
        _active.scope = self
        names.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        left = _active.left.pop()
        if left is not None:
            _active.scope, names = left
            names.__exit__(*exc)

    def __getstate__(self) -> tuple[Any, dict[str, int]]:
        return self._block(), self._counter

    def __setstate__(self, state: tuple[Block, dict[str, int]]) -> None:
        block, self._counter = state
        self._block = weakref.ref(block)
