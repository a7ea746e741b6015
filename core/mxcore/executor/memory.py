"""Memory planning: which results of a program may lie in the same bytes.

A program's temporary results are laid out in one block of memory per context and dtype. Results whose lifetimes do not
overlap may share bytes. The largest is placed first, each at the lowest place where it meets no other that lives at the
same time ("greedy by size": Pisarchyk and Lee, "Efficient memory management for deep neural net inference", 2020). That
compares each with all that are placed; of programs with thousands of results, which would take minutes, the results are
laid out in the order of their making instead, each in the smallest hole that holds it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence

__all__ = ["Interval", "layout", "memory_layout"]

#: Places are multiples of this many elements, so that vector loads are aligned.
ALIGN = 16
#: More results than this are laid out in the order of time.
_MANY = 2048


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
    #: (offset, end, first, last) of each, in this order.
    placed: list[tuple[int, int, int, int]] = []
    intervals = list(intervals)
    if share and len(intervals) > _MANY:
        return _by_time(intervals)
    for new in sorted(intervals, key=lambda v: (-v.size, v.first)):
        size = _aligned(new.size)
        new.offset = _lowest(size, new.first, new.last, placed) if share else total
        insort(placed, (new.offset, new.offset + size, new.first, new.last))
        total = max(total, new.offset + size)
    return total


def memory_layout(lives: Iterable[tuple[int, int, int]]) -> tuple[list[int], int]:
    """Places in one block for results, of which those that do not live at the same time may share it.

    Parameters
    ----------
    lives : iterable of (int, int, int)
        Of each result: its size in elements, and the steps from its making to its last use, both included.

    Returns
    -------
    offsets : list of int
        Multiples of 16 elements.
    total : int
        Elements of the block.

    Examples
    --------
    >>> memory_layout([(16, 0, 1), (16, 1, 2), (16, 2, 3)])
    ([0, 16, 0], 32)
    """
    intervals = [Interval(*life) for life in lives]
    total = layout(intervals)
    return [v.offset for v in intervals], total


def _aligned(size: int) -> int:
    return -(-max(size, 1) // ALIGN) * ALIGN


def _lowest(size: int, first: int, last: int, placed: Sequence[tuple[int, int, int, int]]) -> int:
    """The lowest gap of this size between those that are placed and live in these steps, too."""
    at = 0
    for offset, end, begun, over in placed:
        if begun <= last and first <= over:
            if offset - at >= size:
                break
            if end > at:
                at = end
    return at


def _by_time(intervals: Sequence[Interval]) -> int:
    """Give every interval the smallest hole that there is when it begins; takes O(n log n) for n intervals."""
    room = _Room()
    ends = sorted(intervals, key=lambda v: v.last)
    gone = 0
    for new in sorted(intervals, key=lambda v: (v.first, -v.size)):
        while ends[gone].last < new.first:
            room.give(ends[gone].offset, _aligned(ends[gone].size))
            gone += 1
        new.offset = room.take(_aligned(new.size))
    return room.total


class _Room:
    """A block that grows, and the holes in it."""

    def __init__(self) -> None:
        self.total = 0
        self.starts: list[int] = []  # of the holes, in order
        self.by_size: list[tuple[int, int]] = []  # (size, start)
        self.size: dict[int, int] = {}

    def take(self, size: int) -> int:
        """The start of the smallest hole of at least this size; the block grows where there is none."""
        i = bisect_left(self.by_size, (size, -1))
        if i < len(self.by_size):
            found, start = self.by_size[i]
            self._drop(start)
            if found > size:
                self._add(start + size, found - size)
            return start
        start = self.total
        if self.starts and self.starts[-1] + self.size[self.starts[-1]] == start:  # the last hole grows with the block
            start = self.starts[-1]
            self._drop(start)
        self.total = start + size
        return start

    def give(self, start: int, size: int) -> None:
        """Make a hole, together with those beside it."""
        i = bisect_left(self.starts, start)
        if i < len(self.starts) and self.starts[i] == start + size:
            size += self._drop(self.starts[i])
        if i and self.starts[i - 1] + self.size[self.starts[i - 1]] == start:
            start = self.starts[i - 1]
            size += self._drop(start)
        self._add(start, size)

    def _add(self, start: int, size: int) -> None:
        insort(self.starts, start)
        insort(self.by_size, (size, start))
        self.size[start] = size

    def _drop(self, start: int) -> int:
        size = self.size.pop(start)
        del self.starts[bisect_left(self.starts, start)]
        del self.by_size[bisect_left(self.by_size, (size, start))]
        return size
