"""Tables of arrays, by value among the arguments of a launch: one kernel moves many weights (`kernels/many.cuh`)."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from .drivers import driver
from .sources import TABLE_BYTES

__all__ = ["PART", "Place", "Row", "Table", "tables"]

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
        self.rows, self._numbers, self._arrays = len(rows), len(rows[0].numbers), len(rows[0].arrays)
        values: list[float] = []
        first = 0
        for size, numbers, arrays in rows:
            values += (first, size, *numbers)
            values += [0 if a is None else a.address if a.__class__ is Place else address(a) for a in arrays]
            first += -(-size // PART)
        self.blocks = first
        packed = _format(self._numbers, self._arrays, self.rows).pack(*values)
        self.data = _HEAD.pack(self.rows, 2 + self._numbers + self._arrays) + packed

    def pointers(self) -> Iterator[tuple[str, int]]:
        """Where in the data addresses lie, and what to call each in an error."""
        width = 2 + self._numbers + self._arrays
        for i in range(self.rows):
            for j in range(self._arrays):
                yield f"array {j} of row {i}", _HEAD.size + 8 * (i * width + 2 + self._numbers + j)


@cache
def _format(numbers: int, arrays: int, rows: int) -> struct.Struct:
    return struct.Struct("=" + f"2q{numbers}d{arrays}Q" * rows)


def tables(rows: Sequence[Row]) -> Iterator[Table]:
    """As many tables as some rows need."""
    if rows:
        most = (TABLE_BYTES - _HEAD.size) // (8 * (2 + len(rows[0].numbers) + len(rows[0].arrays)))
        for at in range(0, len(rows), most):
            yield Table(rows[at : at + most])
