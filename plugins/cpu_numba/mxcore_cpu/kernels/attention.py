"""Products for attention: projections that lie interleaved in one array are multiplied where they lie, head by head.

A *slot* is one of `slots` projections of length d that every head has in an array (length, batch, heads * slots * d);
as a matrix (length, d) its rows are far apart, which BLAS does not mind.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..jit import kernel
from ..typing import Array, Scalar
from ._arrays import flat, writable
from .gemm import address, multiply

__all__ = ["scores", "selfatt_qk_backward", "weighted_sum"]


@kernel(threshold=1 << 20, blas=True)
def _scores(
    first: int,
    last: int,
    blas: int,
    m: int,
    n: int,
    d: int,
    scale: Scalar,
    a: Array,
    a_slots: int,
    a_at: int,
    b: Array,
    b_slots: int,
    b_at: int,
    rows: int,
    out: Array,
) -> None:
    one = out.dtype.type(1.0)
    for t in range(first, last):
        multiply(
            blas,
            False,
            True,
            m,
            n,
            d,
            a,
            (t * a_slots + a_at) * d,
            rows * a_slots * d,
            b,
            (t * b_slots + b_at) * d,
            rows * b_slots * d,
            False,
            out,
            t * m * n,
            n,
        )
        if scale != one:
            part = out[t * m * n : (t + 1) * m * n]
            for i in range(part.size):
                part[i] *= scale


@kernel(threshold=1 << 20, blas=True)
def _sum(
    first: int,
    last: int,
    blas: int,
    transpose: bool,
    m: int,
    n: int,
    d: int,
    scale: int,
    w: Array,
    v: Array,
    v_slots: int,
    v_at: int,
    rows: int,
    clear: int,
    out: Array,
    out_slots: int,
    out_at: int,
) -> None:
    zero, one = out.dtype.type(0.0), out.dtype.type(1.0)
    width = out_slots * d
    for t in range(first, last):
        at = t * width + out_at * d
        multiply(
            blas,
            transpose,
            False,
            m,
            d,
            n,
            w,
            t * m * n,
            m if transpose else n,
            v,
            (t * v_slots + v_at) * d,
            rows * v_slots * d,
            False,
            out,
            at,
            rows * width,
        )
        for i in range(m if clear or scale != one else 0):
            if scale != one:
                part = out[at + i * rows * width : at + i * rows * width + d]
                for j in range(d):
                    part[j] *= scale
            if clear:
                head = out[(i * rows + t) * width : (i * rows + t + 1) * width]
                for j in range(out_at * d):
                    head[j] = zero
                for j in range((out_at + 1) * d, width):
                    head[j] = zero


def _scale(d: int, scaled: bool, dtype: np.dtype[Any]) -> Scalar:
    return dtype.type(d**-0.5 if scaled and d else 1)


def scores(
    a: Array, b: Array, out: Array, heads: int, a_slot: tuple[int, int], b_slot: tuple[int, int], scaled: bool
) -> None:
    """Write the products of all positions of two slots: (m, batch, …), (n, batch, …) -> (batch * heads, m, n).

    Parameters
    ----------
    heads : int
    a_slot, b_slot : (int, int)
        Which slot of how many.
    scaled : bool
        Divide by the square root of d.

    Examples
    --------
    >>> out = np.empty((1, 2, 1))
    >>> scores(np.ones((2, 1, 4)), np.ones((1, 1, 4)), out, 1, (0, 1), (0, 1), True)
    >>> out.ravel()
    array([2., 2.])
    """
    if not out.size:
        return
    _, m, n = out.shape
    rows, d = a.shape[1] * heads, a.shape[2] // (heads * a_slot[1])
    with writable(out) as (y,):
        _scores.run(
            _scores.workers(out.size * d),
            rows,
            address(out.dtype),
            m,
            n,
            d,
            _scale(d, scaled, out.dtype),
            flat(a),
            a_slot[1],
            a_slot[0],
            flat(b),
            b_slot[1],
            b_slot[0],
            rows,
            y.reshape(-1),
        )


def weighted_sum(
    weights: Array,
    values: Array,
    out: Array,
    heads: int,
    slot: tuple[int, int],
    out_slot: tuple[int, int],
    transpose: bool,
    scaled: bool,
    clear: bool = True,
) -> None:
    """Write ``weights @ slot`` into a slot of `out`: (batch * heads, m, n), (n, batch, …) -> (m, batch, …).

    Parameters
    ----------
    heads : int
    slot, out_slot : (int, int)
        Which slot of how many, of `values` and of `out`.
    transpose : bool
        Transpose the matrices of `weights` first.
    scaled : bool
        Divide by the square root of d.
    clear : bool
        Write zeros into the other slots.

    Examples
    --------
    >>> out = np.empty((1, 1, 2))
    >>> weighted_sum(np.ones((1, 1, 3)), np.ones((3, 1, 1)), out, 1, (0, 1), (1, 2), False, False)
    >>> out.ravel()
    array([0., 3.])
    """
    if not out.size:
        return
    m, rows = out.shape[0], values.shape[1] * heads
    n, d = values.shape[0], values.shape[2] // (heads * slot[1])
    with writable(out) as (y,):
        _sum.run(
            _sum.workers(m * n * d * rows),
            rows,
            address(out.dtype),
            transpose,
            m,
            n,
            d,
            _scale(d, scaled, out.dtype),
            flat(weights),
            flat(values),
            slot[1],
            slot[0],
            rows,
            clear and out_slot[1] > 1,
            y.reshape(-1),
            out_slot[1],
            out_slot[0],
        )


def selfatt_qk_backward(dy: Array, data: Array, out: Array, heads: int) -> None:
    """Write the gradient of the scores of queries (slot 0) and keys (slot 1) of three: zero for the values (slot 2)."""
    with writable(out) as (y,):
        weighted_sum(dy, data, y, heads, (1, 3), (0, 3), False, True)
        weighted_sum(dy, data, y, heads, (0, 3), (1, 3), True, True, clear=False)
