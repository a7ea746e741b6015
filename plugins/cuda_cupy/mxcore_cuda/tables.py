"""Tables of arrays, by value among the arguments of a launch: one kernel moves many weights (`kernels/many.cuh`)."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate
from typing import Any, NamedTuple

from .drivers import driver
from .sources import TABLE_BYTES

__all__ = ["PART", "Columns", "Place", "Row", "Table", "tables"]

#: Elements that a block takes, as in `many.cuh`.
PART = 2048
_HEAD = struct.Struct("=ii")


class Place:
    """A place inside an array, as an argument."""

    __slots__ = ("address",)

    def __init__(self, address: int) -> None:
        self.address = address


class Row(NamedTuple):
    """What there is of one weight: its size, numbers, and arrays (or places), None for those that it lacks."""

    size: int
    numbers: tuple[float, ...]
    arrays: tuple[Any, ...]


class Table:
    """Rows as kernels find them.

    Parameters
    ----------
    rows : sequence of Row
        With equally many numbers and arrays each.

    Attributes
    ----------
    data : bytes
    blocks : int
        Of a launch: each takes a part of a weight.
    """

    __slots__ = ("data", "blocks", "rows", "_numbers", "_arrays")

    def __init__(self, rows: Sequence[Row]) -> None:
        address = driver().address
        values: list[float] = []
        first = 0
        for size, numbers, arrays in rows:
            values += (first, size, *numbers)
            values += [0 if a is None else a.address if a.__class__ is Place else address(a) for a in arrays]
            first += -(-size // PART)
        self._pack(values, len(rows), len(rows[0].numbers), len(rows[0].arrays), first)

    @classmethod
    def of(cls, values: Sequence[float], rows: int, numbers: int, arrays: int, blocks: int) -> Table:
        """A table of the words of its rows."""
        found = cls.__new__(cls)
        found._pack(values, rows, numbers, arrays, blocks)
        return found

    def _pack(self, values: Sequence[float], rows: int, numbers: int, arrays: int, blocks: int) -> None:
        self.rows, self._numbers, self._arrays, self.blocks = rows, numbers, arrays, blocks
        self.data = _HEAD.pack(rows, 2 + numbers + arrays) + _format(numbers, arrays, rows).pack(*values)

    def pointers(self) -> Iterator[tuple[str, int]]:
        """Where in the data addresses lie, and what to call each in an error."""
        width = 2 + self._numbers + self._arrays
        for i in range(self.rows):
            for j in range(self._arrays):
                yield f"array {j} of row {i}", _HEAD.size + 8 * (i * width + 2 + self._numbers + j)


class Columns:
    """Tables of weights that are moved again and again: sizes stay, numbers and arrays come column by column.

    Parameters
    ----------
    sizes : sequence of int
    numbers, arrays : int
        Of each weight.
    """

    def __init__(self, sizes: Sequence[int], numbers: int, arrays: int) -> None:
        self._numbers, self._arrays, self._width = numbers, arrays, 2 + numbers + arrays
        #: Of each table: which weights, their words, blocks.
        self._parts: list[tuple[slice, list[float], int]] = []
        most = _most(numbers, arrays)
        for at in range(0, len(sizes), most):
            some = sizes[at : at + most]
            *firsts, blocks = accumulate((-(-size // PART) for size in some), initial=0)
            values: list[float] = [0] * (self._width * len(some))
            values[0 :: self._width], values[1 :: self._width] = firsts, some
            self._parts.append((slice(at, at + len(some)), values, blocks))

    def tables(self, numbers: Sequence[Sequence[float]], arrays: Sequence[Sequence[Any] | None]) -> Iterator[Table]:
        """The tables with these numbers and arrays of all weights; None for arrays that no weight has."""
        address, width = driver().address, self._width
        addresses = [column and [*map(address, column)] for column in arrays]
        for part, values, blocks in self._parts:
            for j, column in enumerate((*numbers, *addresses), 2):
                if column is not None:
                    values[j::width] = column[part]
            yield Table.of(values, len(values) // width, self._numbers, self._arrays, blocks)


@cache
def _format(numbers: int, arrays: int, rows: int) -> struct.Struct:
    return struct.Struct("=" + f"2q{numbers}d{arrays}Q" * rows)


def tables(rows: Sequence[Row]) -> Iterator[Table]:
    """As many tables as some rows need."""
    if rows:
        most = _most(len(rows[0].numbers), len(rows[0].arrays))
        for at in range(0, len(rows), most):
            yield Table(rows[at : at + most])


def _most(numbers: int, arrays: int) -> int:
    """Rows of a table at most."""
    return (TABLE_BYTES - _HEAD.size) // (8 * (2 + numbers + arrays))
