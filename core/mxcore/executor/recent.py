"""A table of what was used last."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

from .._interrupts import suppress
from .._locks import fork_safe_lock

__all__ = ["Recent"]


class Recent(OrderedDict[Any, Any]):
    """What was used last, up to a limit; threads may share it. What is being made while all is cleared is not kept.

    Parameters
    ----------
    limit : int
        How many to keep.
    items : iterable of pairs, optional
        To begin with.

    Examples
    --------
    >>> squares = Recent(2)
    >>> [squares.find(n, lambda: n * n) for n in (1, 2, 1, 3)], list(squares)
    ([1, 4, 1, 9], [1, 3])
    """

    def __init__(self, limit: int, items: Iterable[Any] = ()) -> None:
        super().__init__(items)
        #: The limit; how often all was forgotten.
        self.limit, self.cleared = limit, 0
        self._lock = fork_safe_lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.limit,)  # copies begin empty

    def clear(self) -> None:
        """Forget all, also what others are making now."""
        with self._lock:
            self.cleared += 1
            gone = [*self.values()]
            super().clear()
        gone.clear()  # whatever their ends do, the lock is free

    def find(self, key: Any, make: Callable[[], Any]) -> Any:
        """What stands under a key, made if it does not."""
        found, before = self.get(key), self.cleared
        if found is None:
            found = make()
            with self._lock:
                if before == self.cleared:
                    self[key] = found
            while len(self) > self.limit:
                self.popitem(last=False)
        else:
            with suppress(KeyError):  # another thread may have dropped it
                self.move_to_end(key)
        return found
