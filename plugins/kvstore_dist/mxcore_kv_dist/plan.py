"""Which server holds what: large values are split over all of them, small ones balanced by bytes."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

from mxcore.base import error

__all__ = ["Part", "Plan", "bound"]


class Part(NamedTuple):
    """The elements of a value that one server holds, counted in the order of memory."""

    server: int
    start: int
    stop: int


def bound() -> int:
    """From how many elements a value is split, as in MXNet: ``MXNET_KVSTORE_BIGARRAY_BOUND``, 1,000,000 unless told."""
    text = os.environ.get("MXNET_KVSTORE_BIGARRAY_BOUND", "1000000")
    try:
        return max(1, int(text))
    except ValueError:
        raise error(ValueError, f"MXNET_KVSTORE_BIGARRAY_BOUND={text!r} must be a number of elements") from None


class Plan:
    """Places values in the order in which they come.

    Parameters
    ----------
    servers : int
        How many there are.
    bound : int
        From how many elements a value is split.

    Examples
    --------
    >>> plan = Plan(servers=2, bound=1_000_000)
    >>> plan.place(elements=10, itemsize=4), plan.place(elements=10, itemsize=4)
    ([Part(server=0, start=0, stop=10)], [Part(server=1, start=0, stop=10)])
    >>> plan.place(elements=2_000_001, itemsize=4)
    [Part(server=0, start=0, stop=1000000), Part(server=1, start=1000000, stop=2000001)]
    """

    def __init__(self, servers: int, bound: int) -> None:
        self._bytes, self._bound = [0] * servers, bound

    def place(self, elements: int, itemsize: int, row: int = 1) -> list[Part]:
        """Decide where a value lies.

        Parameters
        ----------
        elements : int
        itemsize : int
            Bytes of each.
        row : int
            How many elements must stay together.

        Returns
        -------
        list of Part
        """
        servers = len(self._bytes)
        if servers == 1 or elements < max(self._bound, 2 * row):
            cuts = [0, elements]
            first = min(range(servers), key=self._bytes.__getitem__)
        else:
            rows = elements // row
            cuts = [rows * i // servers * row for i in range(servers + 1)]
            first = 0
        parts = [Part(first + i, a, b) for i, (a, b) in enumerate(zip(cuts, cuts[1:])) if b > a or len(cuts) == 2]
        for part in parts:
            self._bytes[part.server] += (part.stop - part.start) * itemsize
        return parts

    def forget(self, parts: Iterable[Part], itemsize: int) -> None:
        """Count a value, placed before, no more."""
        for part in parts:
            self._bytes[part.server] -= (part.stop - part.start) * itemsize
