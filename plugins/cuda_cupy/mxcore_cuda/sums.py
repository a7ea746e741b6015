"""Sums and copies of many arrays by few launches: `kernels/sums.cu`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .dtypes import MOVED, name_of
from .launching import kernel
from .tables import Row, tables

__all__ = ["MOST", "sum_each", "summed"]

Array = Any

#: Arrays of a group at most; a table has room for a few such rows.
MOST = 64


def summed(out: Array, parts: Sequence[Array]) -> bool:
    """Whether the kernel adds such arrays up: dense ones of a dtype that it knows, and of that of the sum."""
    dtype = out.dtype
    return (
        name_of(dtype) in MOVED
        and len(parts) <= MOST
        and bool(out.flags.c_contiguous)
        and all(a.dtype == dtype and a.shape == out.shape and a.flags.c_contiguous for a in parts)
    )


def sum_each(index: int, groups: Iterable[tuple[Array, Sequence[Array]]]) -> None:
    """Launch the sums of groups, (sum, arrays) such as `summed` tells of, on a device that is active."""
    rows: dict[tuple[Any, int], list[Row]] = {}
    for out, parts in groups:
        if out.size:
            rows.setdefault((out.dtype, len(parts)), []).append(Row(out.size, (), (out, *parts)))
    for (dtype, n), some in rows.items():
        run = kernel("sums", "sums", dtype, index)
        for table in tables(some):
            run.many(table, n)
