"""The order of records in an epoch, and its division into parts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .codec import Array

__all__ = ["Order", "part_bounds"]


def part_bounds(n: int, parts: int, index: int) -> tuple[int, int]:
    """Return first and end of one of several even parts of ``range(n)``.

    Parameters
    ----------
    n, parts, index : int
        Length, number of parts, and which one.

    Returns
    -------
    (int, int)
        Lengths of parts differ by at most one.

    Examples
    --------
    >>> [part_bounds(10, 3, i) for i in range(3)]
    [(0, 3), (3, 6), (6, 10)]
    """
    return n * index // parts, n * (index + 1) // parts


class Order:
    """Which records make up each epoch of one part, in which order.

    Without `shuffle` a part is a run of records, the same in every epoch. With it, each epoch deals all
    records out to the parts anew, so that every worker comes to see every record; the deal hangs on the
    epoch alone, so that workers with different seeds still share out every record exactly once. `seed` then
    orders the part.

    Parameters
    ----------
    known : callable
        Given a number, returns how many records are known: at least so many unless there are no more.
    shuffle : bool
        Whether to draw an order.
    seed : int
        Decides the order.
    parts, index : int
        How many parts there are, and which one this is.

    Examples
    --------
    >>> Order(lambda upto: 10, False, 0, 2, 1).take(0, 1, 4)
    [6, 7, 8]
    """

    def __init__(self, known: Callable[[int], int], shuffle: bool, seed: int, parts: int = 1, index: int = 0) -> None:
        self._known, self._shuffle, self._seed, self._parts, self._index = known, shuffle, seed, parts, index
        #: Epoch -> order; of the current epoch and the one that a last batch reaches into.
        self._drawn: dict[int, Array] = {}

    def _bounds(self) -> tuple[int, int]:
        return part_bounds(self._known(1 << 62), self._parts, self._index)

    def _draw(self, epoch: int) -> Array:
        order = self._drawn.get(epoch)
        if order is None:
            n = self._known(1 << 62)
            first, end = self._bounds()
            order = np.arange(n, dtype=np.int64)
            if self._parts > 1:
                _generator(0, epoch, 1).shuffle(order)
            order = order[first:end]
            _generator(self._seed, epoch, 0).shuffle(order)
            while len(self._drawn) >= 2:
                del self._drawn[min(self._drawn)]
            self._drawn[epoch] = order
        return order

    def known(self, upto: int) -> int:
        """Return how many examples of an epoch are known, having looked for `upto` of them."""
        if not self._shuffle and self._parts == 1:
            return self._known(upto)  # nothing needs the rest of the file yet
        first, end = self._bounds()
        return end - first

    def take(self, epoch: int, begin: int, end: int) -> list[int]:
        """Return the record numbers of examples `begin` to `end` of an epoch, list of int."""
        if self._shuffle:
            drawn: list[int] = self._draw(epoch)[begin:end].tolist()
            return drawn
        first = 0 if self._parts == 1 else self._bounds()[0]
        return list(range(first + begin, first + end))


def _generator(seed: int, epoch: int, use: int) -> np.random.RandomState:
    """A generator whose numbers do not change from one NumPy to the next."""
    seed %= 1 << 64
    return np.random.RandomState([seed & 0xFFFFFFFF, seed >> 32, epoch & 0xFFFFFFFF, epoch >> 32, use])
