"""Steps of training: gradients go to a store, and what comes back to where it belongs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..context import Context
from .kvstore import KVStore

__all__ = ["Exchange"]


class Exchange:
    """What goes to a store's `pushpull`, key by key, or as many together as its type likes.

    Parameters
    ----------
    store : KVStoreBase
        Also one that does not derive from it: whoever defines `pushpull` itself is called for one key at a time.
    contexts : sequence of Context
        Where the arrays of each key are.

    Attributes
    ----------
    pushpull : callable
        As the store's, for one key; it is done now or at the next `end`. Of keys that wait the first priority is that
        of all.

    Examples
    --------
    >>> import mxcore as mx
    >>> kv, grads = mx.kv.create("device"), [mx.nd.ones(2), mx.nd.ones(2, ctx=mx.cpu(1))]
    >>> kv.init(0, mx.nd.zeros(2))
    >>> exchange = Exchange(kv, [g.context for g in grads])
    >>> exchange.pushpull(0, grads)
    >>> exchange.end()
    >>> grads[1].asnumpy()
    array([2., 2.], dtype=float32)
    """

    def __init__(self, store: Any, contexts: Sequence[Context]) -> None:
        self._store = store
        self._waiting: list[tuple[Any, Any, Any]] = []
        self._priority = 0
        together = (
            isinstance(store, KVStore)
            and type(store).pushpull is KVStore.pushpull
            and "pushpull" not in vars(store)
            and store.batches(contexts)
        )
        self.pushpull: Callable[..., None] = self._add if together else store.pushpull

    def _add(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        if not self._waiting:
            self._priority = priority
        self._waiting.append((key, value, value if out is None else out))

    def end(self) -> None:
        """Do what waits."""
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            keys, values, outs = map(list, zip(*waiting))
            self._store.pushpull(keys, values, out=outs, priority=self._priority)
