"""The workers of a distributed run, and what they tell each other beside gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ... import kvstore, ndarray
from ...base import error
from ...kvstore.launchers import rank_and_size

if TYPE_CHECKING:
    from ...kvstore import KVStoreBase

__all__ = ["Workers"]


class Workers:
    """This worker and the others.

    Parameters
    ----------
    kind : str
        The type of store that joins them.

    Attributes
    ----------
    store : KVStore
        For the parameters.
    first : bool
        Whether this is the worker that writes files.
    in_step : bool
        Whether all take each step together, and therefore have the same parameters.

    Raises
    ------
    MXNetError
        (also ValueError) if a launcher has started several, which the store would not join.
    """

    def __init__(self, kind: str) -> None:
        self.store: KVStoreBase = kvstore.create(kind)
        self.rank, self.number = self.store.rank, self.store.num_workers
        _, started = rank_and_size() or (0, 1)
        if self.number < started:
            raise error(
                ValueError,
                f"--kvstore {kind} does not join the {started} workers that were started: each would train alone, and "
                "all would write the same files; with --kvstore dist_sync they train together",
            )
        self.first = self.rank == 0
        self.in_step = "async" not in self.store.type
        # What goes through a store of its own no optimizer changes.
        self._own = kvstore.create(kind) if self.number > 1 else None
        self._summed = False

    def total(self, *numbers: float) -> list[float]:
        """The sums of some numbers over all workers; those who are not in step do not wait, each has its own."""
        if self._own is None or not self.in_step:
            return [*numbers]
        sums = ndarray.array(numbers, dtype="float64")
        if not self._summed:
            self._own.broadcast("sums", ndarray.zeros_like(sums), out=sums.copy())
            self._summed = True
        self._own.pushpull("sums", sums, out=sums)
        found: list[float] = sums.asnumpy().tolist()
        return found

    def of_the_first(self, content: bytes) -> bytes:
        """The bytes that the first worker has, once a run."""
        if self._own is None:
            return content
        size = ndarray.array([len(content)], dtype="int64")
        self._own.broadcast("size", size, out=size)
        whole = ndarray.empty(int(size.asscalar()), dtype="uint8")
        if self.first:
            whole = ndarray.array(np.frombuffer(content, np.uint8), dtype="uint8")
        self._own.broadcast("content", whole, out=whole)
        return bytes(whole.asnumpy())
