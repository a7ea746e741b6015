"""Copies in another order of axes, tile by tile."""

from __future__ import annotations

import math

import numpy as np

from ..jit import kernel
from ..typing import Array
from ._arrays import dense, writable
from .columns import copy

__all__ = ["as_matrices", "transpose"]

#: Side of a tile. It is read into a buffer of longer rows, as columns of a large array of even length share few places
#: in the cache.
_SIDE = 64


@kernel(threshold=1 << 17)
def _transpose(first: int, last: int, rows: int, columns: int, x: Array, y: Array) -> None:
    tile = np.empty(_SIDE * (_SIDE + 1), x.dtype)
    down, across = (rows + _SIDE - 1) // _SIDE, (columns + _SIDE - 1) // _SIDE
    for item in range(first, last):
        at, left = item // across, item % across * _SIDE
        matrix, top = at // down * rows * columns, at % down * _SIDE
        height, width = min(_SIDE, rows - top), min(_SIDE, columns - left)
        for i in range(height):
            copy(x, matrix + (top + i) * columns + left, width, tile, i * (_SIDE + 1))
        for j in range(width):
            to = matrix + (left + j) * rows + top
            line = y[to : to + height]
            for i in range(height):
                line[i] = tile[i * (_SIDE + 1) + j]


def as_matrices(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, int, int] | None:
    """Return (matrices, rows, columns) if the permutation of axes transposes a stack of matrices, else None.

    Examples
    --------
    >>> as_matrices((5, 2, 3, 4), (0, 2, 3, 1))
    (5, 2, 12)
    >>> as_matrices((5, 2, 3, 4), (0, 3, 2, 1))
    """
    n, lead = len(axes), 0
    while lead < n and axes[lead] == lead:
        lead += 1
    if lead == n:
        return None
    cut = axes[lead]  # what was from here on comes first now
    if axes[lead:] != (*range(cut, n), *range(lead, cut)):
        return None
    return math.prod(shape[:lead]), math.prod(shape[lead:cut]), math.prod(shape[cut:])


def transpose(data: Array, axes: tuple[int, ...], out: Array) -> None:
    """Write ``data.transpose(axes)``, where :func:`as_matrices` knows the axes.

    Examples
    --------
    >>> out = np.empty((3, 2))
    >>> transpose(np.arange(6.0).reshape(2, 3), (1, 0), out)
    >>> out
    array([[0., 3.],
           [1., 4.],
           [2., 5.]])
    """
    found = as_matrices(data.shape, axes)
    if found is None:
        raise ValueError(f"axes {axes} of {data.ndim} dimensions are no transposition of matrices")
    stack, rows, columns = found
    bits = f"u{data.dtype.itemsize}"  # all kinds of numbers of one size are one
    tiles = stack * -(-rows // _SIDE) * -(-columns // _SIDE)
    with writable(out) as (y,):
        _transpose.run(
            _transpose.workers(data.size),
            tiles,
            rows,
            columns,
            dense(data).reshape(-1).view(bits),
            y.reshape(-1).view(bits),
        )
