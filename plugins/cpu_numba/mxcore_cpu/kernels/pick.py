"""One element of each row: taking it, its gradient, setting it."""

from __future__ import annotations

import numpy as np

from ..jit import kernel
from ..typing import Array
from ._arrays import flat
from .embedding import nearest_row

__all__ = ["one_hot", "pick_last", "place_last"]


@kernel(threshold=1 << 16)
def _pick(first: int, last: int, n: int, data: Array, index: Array, out: Array) -> None:
    for i in range(first, last):
        out[i] = data[i * n + nearest_row(index[i], n)]


@kernel(threshold=1 << 16)
def _place(first: int, last: int, n: int, values: Array, index: Array, out: Array) -> None:
    for i in range(first, last):
        row = out[i * n : (i + 1) * n]
        row[:] = row.dtype.type(0)
        row[nearest_row(index[i], n)] = values[i]


def pick_last(data: Array, index: Array, out: Array) -> None:
    """Write ``data[..., index]``, one element of each row: (..., n), (...) -> (...).

    Parameters
    ----------
    index : ndarray
        Of any number type. Fractions are cut and what is out of range is clipped.
    out : ndarray, C-contiguous

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 pick with mode 'clip'.

    Examples
    --------
    >>> out = np.empty(2)
    >>> pick_last(np.array([[1.0, 2], [3, 4]]), np.array([1, 0]), out)
    >>> out
    array([2., 3.])
    """
    _pick(out.size, data.shape[-1], flat(data), flat(index), out.reshape(-1))


def place_last(values: Array, index: Array, out: Array) -> None:
    """Write rows of zeros with one value each: the gradient of :func:`pick_last`.

    Examples
    --------
    >>> out = np.empty((2, 2))
    >>> place_last(np.array([5.0, 6]), np.array([1, 0]), out)
    >>> out
    array([[0., 5.],
           [6., 0.]])
    """
    _place(values.size, out.shape[-1], flat(values), flat(index), out.reshape(-1))


def one_hot(index: Array, out: Array, on: float, off: float) -> None:
    """Write rows of `off` with `on` at the index-th element: (...) -> (..., n), of any dtype.

    Parameters
    ----------
    index : ndarray
        Of any number type. Fractions are cut; one out of range sets nothing.

    Examples
    --------
    >>> out = np.empty((2, 3))
    >>> one_hot(np.array([1, 7]), out, 1.0, 0.0)
    >>> out
    array([[0., 1., 0.],
           [0., 0., 0.]])
    """
    n = out.shape[-1]
    places = index.astype(np.int64).reshape(-1)
    out.fill(off)
    rows = np.flatnonzero((places >= 0) & (places < n))
    out.reshape(-1)[rows * n + places[rows]] = on
