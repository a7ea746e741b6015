"""Places of rows by index, and sums of the rows of each place, in one order: `kernels/indexing.cu`."""

from __future__ import annotations

from typing import Any

import numpy as np

from mxcore.plugin import Device

from .dtypes import name_of
from .launching import kernel

__all__ = ["INDICES", "Places", "index"]

Array = Any

#: The dtypes of indices, by the numbers that `kernels/indices.cuh` gives them.
INDICES = ("int8", "uint8", "int32", "int64", "float16", "float32", "float64", "bfloat16")
#: Rows that are put in order together, at the multiples of which runs of one place are cut: SHARE in `indexing.cu`.
_SHARE = 128


def index(a: Array) -> tuple[Array, int]:
    """An array of indices as kernels take it."""
    return a, INDICES.index(name_of(a.dtype))


class Places:
    """Places of rows by index, found along one axis after the other; those of one place in the order of the rows.

    Parameters
    ----------
    device : Device
    at : int
        Index of the device.
    count : int
        Of the rows.
    """

    def __init__(self, device: Device, at: int, count: int) -> None:
        self.device, self.at, self.count = device, at, count
        self.found = device.empty((count,), np.dtype(np.int32), at)

    def along(self, indices: Array, n: int, wraps: bool, *, row: int = 0, first: bool = True) -> None:
        """Indices into an axis of length `n`; those behind the first axis' are a further row of coordinates."""
        run = kernel("indexing", "find_places", "float32", self.at)
        array, kind = index(indices)
        run.each(self.count, run.at(array, row * self.count), kind, self.found, self.count, n, wraps, first)

    def ranked(self) -> tuple[Array, Array]:
        """The places in their order, and which row each is of."""
        order = self.device.xp.argsort(self.found, kind="stable")
        return self.found[order], order

    def distinct(self) -> Array:
        """The places that there are, in order; from now on rows are counted by these. It waits for them."""
        places, found = self.device.xp.unique(self.found, return_inverse=True)
        self.found = found.reshape(-1).astype(np.int32)
        return places

    def add_rows(self, rows: Array, out: Array, lead: int, n: int, tail: int) -> None:
        """Write the sums of the rows of each place: (lead, rows, tail) -> (lead, n, tail)."""
        out[...] = 0
        if rows.size:
            self._sum("sum_pieces", [rows], out, lead, n, tail, *self.ranked())

    def add_products(self, values: Array, which: Array, matrix: Array, out: Array, rising: bool) -> None:
        """Write sums of rows of a matrix, each times a value: ``values[i] * matrix[which[i]]`` to the place of i.

        Parameters
        ----------
        values, which : array, (count,)
        matrix : array, (m, columns)
        out : array, (n, columns)
        rising : bool
            The places are in order.
        """
        out[...] = 0
        n, columns = out.shape
        if self.count and columns:
            ranked = (self.found, None) if rising else self.ranked()
            self._sum("sum_products", [values, *index(which), matrix], out, 1, n, columns, *ranked)

    def _sum(
        self, name: str, what: list[Any], out: Array, lead: int, n: int, tail: int, places: Array, order: Array | None
    ) -> None:
        shares, columns = -(-self.count // _SHARE), lead * tail
        # Sums are in float32 at least.
        wide = np.promote_types(out.dtype, np.float32)
        parts = self.device.empty((shares, 2, columns), wide, self.at)
        sizes = self.count, n, lead, tail
        pieces = kernel("indexing", name, out.dtype, self.at)
        pieces.each(self.count * columns, *what, places, order, out, parts, *sizes)
        if shares > 1:
            joined = kernel("indexing", "sum_parts", out.dtype, self.at)
            joined.each(shares * columns, places, parts, out, *sizes)
