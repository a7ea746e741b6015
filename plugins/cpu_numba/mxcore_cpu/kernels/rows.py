"""Row-sparse arrays: their sums, and updates of those rows of a weight that have a gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from mxcore.plugin import RowSparse

from .. import memory
from ..jit import Kernel, helper, kernel
from ..typing import Array
from . import optimizer
from ._arrays import flat, writable

__all__ = ["UPDATES", "move", "retained", "total"]

Numbers: TypeAlias = tuple[float, ...]


@kernel(threshold=1 << 15)
def _places(first: int, last: int, rows: Array, wanted: Array, places: Array) -> None:
    """Where the wanted rows are among others; both rise."""
    at = np.searchsorted(rows, wanted[first])
    for i in range(first, last):
        while rows[at] < wanted[i]:
            at += 1
        places[i] = at


@kernel(threshold=1 << 16)
def _add(first: int, last: int, width: int, places: Array, values: Array, out: Array) -> None:
    for i in range(first, last):
        a, b = values[i * width : (i + 1) * width], out[places[i] * width : (places[i] + 1) * width]
        for j in range(width):
            b[j] += a[j]


@kernel(threshold=1 << 16)
def _clear(first: int, last: int, out: Array) -> None:
    out[first:last] = out.dtype.type(0)


def total(values: Sequence[RowSparse]) -> RowSparse:
    """Return the sum of row-sparse values, added from the first to the last.

    Examples
    --------
    >>> a = RowSparse((4, 1), np.array([0, 2]), np.array([[1.0], [2.0]]))
    >>> b = RowSparse((4, 1), np.array([2, 3]), np.array([[5.0], [7.0]]))
    >>> total([a, b]).indices, total([a, b]).values.ravel()
    (array([0, 2, 3]), array([1., 7., 7.]))
    """
    first = values[0]
    rows = np.concatenate([v.indices for v in values])
    rows.sort(kind="stable")  # made for a few runs that rise
    rows = rows[np.append(True, rows[1:] != rows[:-1])] if len(rows) else rows
    out = memory.empty((len(rows), *first.shape[1:]), first.dtype)
    if out.size:
        line = out.reshape(-1)
        _clear(line.size, line)
        width = line.size // len(rows)
        for v in values:
            n = len(v.indices)
            if n:
                places = np.empty(n, np.int64)
                _places(n, rows, np.ascontiguousarray(v.indices), places)
                _add.run(_add.workers(n * width), n, width, places, flat(v.values), line)
    return RowSparse(first.shape, rows, out)


@kernel(threshold=1 << 15)
def _retain(first: int, last: int, width: int, rows: Array, wanted: Array, values: Array, out: Array) -> None:
    for i in range(first, last):
        at = np.searchsorted(rows, wanted[i])
        row = out[i * width : (i + 1) * width]
        if at < rows.size and rows[at] == wanted[i]:
            row[:] = values[at * width : (at + 1) * width]
        else:
            row[:] = values.dtype.type(0)


def retained(a: RowSparse, wanted: Array) -> RowSparse:
    """Return the wanted rows of a row-sparse value, which rise and go into the result; those that it has not are zero.

    Examples
    --------
    >>> a = RowSparse((4, 1), np.array([0, 2]), np.array([[1.0], [2.0]]))
    >>> retained(a, np.array([1, 2])).values.ravel()
    array([0., 2.])
    """
    if a.whole is not None:
        return RowSparse(a.shape, wanted, a.whole[wanted])
    out = memory.empty((len(wanted), *a.shape[1:]), a.dtype)
    if out.size:
        line = out.reshape(-1)
        width = line.size // len(wanted)
        _retain.run(_retain.workers(line.size), len(wanted), width, flat(a.indices), flat(wanted), flat(a.values), line)
    return RowSparse(a.shape, wanted, out)


def _row_kernel(name: str) -> Kernel:
    """What moves the rows of a gradient, by the very rule of :data:`.optimizer.UPDATES`."""
    rule = helper(optimizer.UPDATES[name].kernel.function, inline=False)

    def stateless(first: int, last: int, width: int, rows: Array, w: Array, g: Array, numbers: Numbers) -> None:
        for i in range(first, last):
            at = rows[i] * width
            rule(0, width, w[at : at + width], g[i * width : (i + 1) * width], *numbers)

    def one(first: int, last: int, width: int, rows: Array, w: Array, g: Array, s: Array, numbers: Numbers) -> None:
        for i in range(first, last):
            at = rows[i] * width
            to = at + width
            rule(0, width, w[at:to], g[i * width : (i + 1) * width], s[at:to], *numbers)

    def two(
        first: int, last: int, width: int, rows: Array, w: Array, g: Array, s: Array, t: Array, numbers: Numbers
    ) -> None:
        for i in range(first, last):
            at = rows[i] * width
            to = at + width
            rule(0, width, w[at:to], g[i * width : (i + 1) * width], s[at:to], t[at:to], *numbers)

    states = len(optimizer.UPDATES[name].arrays.split()) - 2
    # Rows lie anywhere: fewer elements than of whole weights take as long as a thread to wake up.
    return kernel((stateless, one, two)[states], threshold=1 << 15)


@kernel(threshold=1 << 15)
def _group_adagrad(
    first: int, last: int, width: int, rows: Array, w: Array, g: Array, history: Array, numbers: Numbers
) -> None:
    real = w.dtype.type
    lr, epsilon, rescale, clip = real(numbers[0]), real(numbers[1]), real(numbers[2]), real(numbers[3])
    for i in range(first, last):
        row, at = rows[i], rows[i] * width
        a, b = w[at : at + width], g[i * width : (i + 1) * width]
        total = real(0)
        for j in range(width):
            v = b[j] * rescale
            v = min(max(v, -clip), clip) if clip >= 0 else v
            total += v * v
        history[row] += total / real(width)
        rate = lr / np.sqrt(history[row] + epsilon)
        for j in range(width):
            v = b[j] * rescale
            a[j] -= rate * (min(max(v, -clip), clip) if clip >= 0 else v)


#: MXNet's operator -> what moves the rows of a gradient, and the names of its numbers.
UPDATES: dict[str, tuple[Kernel, tuple[str, ...]]] = {
    name: (_row_kernel(name), tuple(optimizer.UPDATES[name].numbers))
    for name in ("sgd_update", "sgd_mom_update", "adam_update", "ftrl_update", "_sparse_adagrad_update")
}
UPDATES["_contrib_group_adagrad_update"] = _group_adagrad, ("lr", "epsilon", "rescale_grad", "clip_gradient")


def move(name: str, grad: RowSparse, arrays: Sequence[Array], numbers: Sequence[float]) -> None:
    """Apply one of :data:`UPDATES` in place to the rows that a gradient has; the others stay.

    Parameters
    ----------
    name : str
        MXNet's operator, e.g. 'sgd_mom_update'.
    grad : RowSparse
        Of the shape of the arrays.
    arrays : sequence of ndarray
        The weight, and its states.
    numbers : sequence of float
        In the order of ``UPDATES[name][1]``.

    Examples
    --------
    >>> weight = np.array([[1.0], [2.0]])
    >>> move("sgd_update", RowSparse((2, 1), np.array([1]), np.array([[4.0]])), [weight], [0.5, 0.0, 1.0, -1.0])
    >>> weight.ravel()
    array([1., 0.])
    """
    rows = np.ascontiguousarray(grad.indices)
    n = len(rows)
    if not grad.values.size:
        return
    if rows[0] < 0 or rows[-1] >= grad.shape[0] or not (rows[1:] > rows[:-1]).all():
        raise IndexError(f"{name}: rows must rise and lie in [0, {grad.shape[0]}), got {rows.tolist()[:10]}")
    run = UPDATES[name][0]
    with writable(*arrays) as (weight, *states):
        lines = [weight.reshape(-1), flat(grad.values), *(s.reshape(-1) for s in states)]
        run.run(run.workers(grad.values.size), n, grad.values.size // n, rows, *lines, tuple(map(float, numbers)))
