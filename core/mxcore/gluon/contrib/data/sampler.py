"""Samplers that MXNet keeps apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ....base import error
from ...data.sampler import Sampler

__all__ = ["IntervalSampler"]


class IntervalSampler(Sampler):
    """Every `interval`-th index from 0 on; with `rollover` then from 1, and so on until all were given.

    Parameters
    ----------
    length : int
    interval : int
        At most `length`.
    rollover : bool, default True

    Examples
    --------
    >>> list(IntervalSampler(5, 2)), list(IntervalSampler(5, 2, rollover=False))
    ([0, 2, 4, 1, 3], [0, 2, 4])
    """

    def __init__(self, length: int, interval: int, rollover: bool = True) -> None:
        if not 1 <= interval <= length:
            raise error(
                AssertionError, f"Interval {interval} must be 1 or more and smaller than or equal to length {length}"
            )
        self._length = length
        self._interval = interval
        self._starts = range(interval if rollover else 1)

    def __iter__(self) -> Iterator[Any]:
        for start in self._starts:
            yield from range(start, self._length, self._interval)

    def __len__(self) -> int:
        return sum(len(range(start, self._length, self._interval)) for start in self._starts)
