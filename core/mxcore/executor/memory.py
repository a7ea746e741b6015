"""Memory planning: which results of a program may lie in the same bytes.

A program's temporary results are laid out in one block of memory per context and dtype. Results whose lifetimes do not
overlap may share bytes. The largest is placed first, each at the lowest place where it meets no other that lives at the
same time ("greedy by size": Pisarchyk and Lee, "Efficient memory management for deep neural net inference", 2020).
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["Interval", "layout"]

#: Places are multiples of this many elements, so that vector loads are aligned.
ALIGN = 16


class Interval:
    """A result to be placed: its size in elements, and the steps from its making to its last use, both included."""

    __slots__ = ("size", "first", "last", "offset")

    def __init__(self, size: int, first: int, last: int) -> None:
        self.size, self.first, self.last = size, first, last
        self.offset = 0

    def __repr__(self) -> str:
        return f"Interval({self.size} at {self.offset}, steps {self.first}-{self.last})"


def layout(intervals: Iterable[Interval], share: bool = True) -> int:
    """Give every interval its offset; returns the number of elements of the whole block.

    Parameters
    ----------
    intervals : iterable of Interval
    share : bool
        Without, nothing shares memory, as monitors need it.

    Examples
    --------
    >>> a, b, c = Interval(16, 0, 1), Interval(16, 1, 2), Interval(16, 2, 3)
    >>> layout([a, b, c])
    32
    >>> a.offset == c.offset
    True
    """
    total = 0
    placed: list[Interval] = []
    for new in sorted(intervals, key=lambda v: (-v.size, v.first)):
        size = _aligned(new.size)
        if share:
            new.offset = _lowest(size, [p for p in placed if p.first <= new.last and new.first <= p.last])
        else:
            new.offset = total
        _insert(placed, new)
        total = max(total, new.offset + size)
    return total


def _aligned(size: int) -> int:
    return -(-max(size, 1) // ALIGN) * ALIGN


def _lowest(size: int, busy: Sequence[Interval]) -> int:
    """The lowest gap of this size between others, which are in the order of their offsets."""
    at = 0
    for other in busy:
        if other.offset - at >= size:
            break
        at = max(at, other.offset + _aligned(other.size))
    return at


def _insert(placed: list[Interval], new: Interval) -> None:
    """Keep `placed` in the order of offsets."""
    low, high = 0, len(placed)
    while low < high:
        middle = (low + high) // 2
        if placed[middle].offset < new.offset:
            low = middle + 1
        else:
            high = middle
    placed.insert(low, new)
