"""Sums over the last axes."""

from __future__ import annotations

import math

from ..jit import REORDER, helper, kernel
from ..typing import Array, Scalar
from ._arrays import flat, writable

__all__ = ["sum_last"]


@helper(fastmath=REORDER, inline=False)
def _line(x: Array) -> Scalar:
    total = x.dtype.type(0)
    for i in range(x.size):
        total += x[i]
    return total


@kernel(threshold=1 << 16)
def _rows(first: int, last: int, n: int, x: Array, y: Array) -> None:
    for row in range(first, last):
        total = 0.0
        for i in range(row * n, (row + 1) * n, 1024):  # short sums in the data's type, their sum in float64
            total += _line(x[i : min(i + 1024, (row + 1) * n)])
        y[row] = total


def sum_last(data: Array, axes: int, out: Array) -> None:
    """Write the sums over the last `axes` axes; `out` has one element per sum.

    Sums over leading axes are left to NumPy, which is as fast.

    Examples
    --------
    >>> import numpy as np
    >>> out = np.empty(2)
    >>> sum_last(np.ones((2, 3, 4)), 2, out)
    >>> out
    array([12., 12.])
    """
    n = math.prod(data.shape[data.ndim - axes :])
    with writable(out) as (y,):
        _rows.run(_rows.workers(data.size), out.size, n, flat(data), y.reshape(-1))
