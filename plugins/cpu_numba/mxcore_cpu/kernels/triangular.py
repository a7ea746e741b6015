"""Triangular systems in stacks, and large Cholesky factors: small blocks, and products of matrices between them."""

from __future__ import annotations

import math

import numpy as np

from ..jit import helper, kernel
from ..namespace import namespace
from ..typing import Array
from ._arrays import dense, writable

__all__ = ["factor", "solve"]

#: Rows of a triangle that are substituted; larger ones are cut, and most of their work are products of matrices.
_ROWS = 64
#: Right-hand sides that are taken at a time: a panel of so many stays in the first cache.
_WIDTH = 64
#: Rows of a block of a Cholesky factor, which is left to LAPACK.
_BLOCK = 128


@helper
def _take(x: Array, at: int, rows: int, step: int, count: int, across: int, panel: Array) -> None:
    """Copy a part of the right-hand sides to the panel, each row of it beside the last."""
    for i in range(rows):
        for c in range(count):
            panel[i * count + c] = x[at + i * step + c * across]


@helper
def _give(x: Array, at: int, rows: int, step: int, count: int, across: int, panel: Array) -> None:
    for i in range(rows):
        for c in range(count):
            x[at + i * step + c * across] = panel[i * count + c]


@helper(inline=False)
def _substitute(
    a: Array, at: int, rows: int, step: int, across: int, lower: bool, count: int, x: Array, x_at: int, x_step: int
) -> None:
    """Solve in place, row by row: a row minus its products with those before, four at a time, by its diagonal."""
    way, start = (1, 0) if lower else (-1, rows - 1)
    for i in range(rows):
        row = start + way * i
        here, line = x_at + row * x_step, at + row * step
        y, done = x[here : here + count], 0
        while done + 4 <= i:
            j = start + way * done
            f0, f1 = a[line + j * across], a[line + (j + way) * across]
            f2, f3 = a[line + (j + 2 * way) * across], a[line + (j + 3 * way) * across]
            k0, by = x_at + j * x_step, way * x_step
            k1, k2, k3 = k0 + by, k0 + 2 * by, k0 + 3 * by
            x0, x1, x2, x3 = x[k0 : k0 + count], x[k1 : k1 + count], x[k2 : k2 + count], x[k3 : k3 + count]
            for c in range(count):
                y[c] -= (f0 * x0[c] + f1 * x1[c]) + (f2 * x2[c] + f3 * x3[c])
            done += 4
        while done < i:
            j = start + way * done
            f0, k0 = a[line + j * across], x_at + j * x_step
            x0 = x[k0 : k0 + count]
            for c in range(count):
                y[c] -= f0 * x0[c]
            done += 1
        d = a[line + row * across]
        for c in range(count):
            y[c] /= d


@kernel(threshold=1 << 16)
def _solve(
    first: int,
    last: int,
    parts: int,
    rows: int,
    columns: int,
    width: int,
    a: Array,
    a_at: int,
    a_size: int,
    a_step: int,
    a_across: int,
    lower: bool,
    x: Array,
    x_at: int,
    x_size: int,
    x_step: int,
    x_across: int,
) -> None:
    panel = np.empty(rows * width, x.dtype)
    for item in range(first, last):
        batch, part = item // parts, item % parts
        c0 = part * width
        count, at, line = min(width, columns - c0), x_at + batch * x_size + c0 * x_across, a_at + batch * a_size
        if x_across == 1:
            _substitute(a, line, rows, a_step, a_across, lower, count, x, at, x_step)
        else:
            _take(x, at, rows, x_step, count, x_across, panel)
            _substitute(a, line, rows, a_step, a_across, lower, count, panel, 0, count)
            _give(x, at, rows, x_step, count, x_across, panel)


def solve(
    a: Array,
    b: Array,
    out: Array,
    *,
    transpose: bool = False,
    right: bool = False,
    lower: bool = True,
    alpha: float = 1.0,
) -> None:
    """Write the X with ``op(a) @ X == alpha * b``, or ``X @ op(a) == alpha * b``, for stacks of triangular matrices.

    Parameters
    ----------
    a : ndarray, (..., n, n)
        Only the triangle is read.
    b, out : ndarray, (..., n, m), or (..., m, n) on the right
    transpose : bool
        Transpose `a` first.
    right : bool
        `a` stands on the right.
    lower : bool
        Which triangle of `a` is meant.

    Notes
    -----
    A zero on the diagonal gives infinity or NaN.

    Examples
    --------
    >>> out = np.empty((2, 1))
    >>> solve(np.array([[2.0, 9], [1, 4]]), np.array([[2.0], [9]]), out)
    >>> out
    array([[1.],
           [2.]])
    """
    np.copyto(out, b)
    if not out.size:
        return
    n, m = a.shape[-1], out.shape[-2 if right else -1]
    a = dense(a)
    # X @ op(a) == b is op(a).T @ X.T == b.T.
    turned = transpose != right
    step, across = (1, n) if turned else (n, 1)
    x_step, x_across = (1, n) if right else (m, 1)
    down = lower != turned
    stack = math.prod(out.shape[:-2])
    width = min(m, _WIDTH)
    parts = -(-m // width)
    op = a.swapaxes(-1, -2) if transpose else a
    starts = range(0, n, _ROWS)
    with writable(out) as (x,):
        workers = _solve.workers(stack * m * n * min(n, _ROWS) // 4)
        for k in starts if down else reversed(starts):
            end = min(k + _ROWS, n)
            _solve.run(
                workers,
                stack * parts,
                parts,
                end - k,
                m,
                width,
                a.reshape(-1),
                k * (n + 1),
                n * n,
                step,
                across,
                down,
                x.reshape(-1),
                k * x_step,
                n * m,
                x_step,
                x_across,
            )
            rest = slice(end, n) if down else slice(0, k)
            if rest.start == rest.stop:
                continue
            if right:
                x[..., rest] -= namespace.matmul(x[..., k:end], op[..., k:end, rest])
            else:
                x[..., rest, :] -= namespace.matmul(op[..., rest, k:end], x[..., k:end, :])
        if alpha != 1.0:
            x *= x.dtype.type(alpha)


def factor(a: Array, out: Array) -> None:
    """Write the lower Cholesky factor of each of a stack of matrices, of which only the lower triangle is read.

    LAPACK would compute large ones in BLAS's own threads, which keep the cores from the kernels that follow.

    Raises
    ------
    ValueError
        If a matrix is not positive definite.
    """
    for at in np.ndindex(a.shape[:-2]):
        try:
            _factor(a[at], out[at])
        except np.linalg.LinAlgError:
            place = f"A[{', '.join(map(str, at))}]" if at else "A"
            raise ValueError(f"the matrix {place} is not positive definite") from None


def _factor(a: Array, out: Array) -> None:
    n, left = len(a), np.array(a, order="C")
    for k in range(0, n, _BLOCK):
        end = min(k + _BLOCK, n)
        out[k:end, k:end] = top = namespace.linalg.cholesky(left[k:end, k:end])
        out[k:end, end:] = 0
        if end < n:
            below = np.empty((n - end, end - k), a.dtype)
            solve(top, left[end:, k:end], below, transpose=True, right=True)
            out[end:, k:end] = below
            left[end:, end:] -= namespace.matmul(below, below.T)
