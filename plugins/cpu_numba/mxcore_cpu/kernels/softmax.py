"""Softmax and its relatives along any axis.

Along the last axis an item is a row. Along another axis the elements of a softmax are far apart, so an item
is a block of neighbouring softmaxes that are computed side by side, which keeps the loops contiguous.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mxcore.layouts import spread

from .. import math as m
from ..jit import REORDER, helper, intrinsic, kernel, typed
from ..math import where
from ..typing import Array, Scalar
from ._arrays import flat, writable
from .columns import copy, fill, prefetch, same
from .embedding import nearest_row

__all__ = [
    "log_softmax",
    "log_softmax_backward",
    "pick_log_softmax",
    "pick_log_softmax_backward",
    "picked",
    "picked_gradient",
    "softmax",
    "softmax_backward",
    "softmax_cross_entropy",
    "softmax_cross_entropy_backward",
    "softmax_of_lengths",
    "softmax_output_backward",
]

_BLOCK = 128  # softmaxes side by side
_SHORT = 1 << 12  # elements of a row that is fetched while the row before it is computed

F = np.float32


@helper
def _falling32(x: Scalar) -> Scalar:
    low = x < F(-87.33)
    a = F(-87.33) if low else x
    t = a * F(1.4426950408889634) + F(12582912.0)
    n = t - F(12582912.0)
    r = (a - n * F(0.693359375)) - n * F(-2.12194440e-4)
    return F(0.0) if low else (F(1.0) + m.em1_32(r)) * m.two_to(t)


@helper
def _falling64(x: Scalar) -> Scalar:
    low = x < -708.39
    a = -708.39 if low else x
    t = a * 1.4426950408889634 + 6755399441055744.0
    n = t - 6755399441055744.0
    r = (a - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10
    return 0.0 if low else (1.0 + m.em1_64(r)) * m.two_to(t)


def _falling(x: Scalar) -> Scalar:
    """exp(x) for x <= 0 as softmax needs it: 0 below the normal numbers, which saves a third of the work."""
    return np.exp(x)


falling = typed(_falling, _falling32, _falling64)


@intrinsic
def _greater(typingctx: Any, x: Any, y: Any) -> Any:
    """The greater of two numbers, as a maximum over a vector needs it: NaN and signed zeros do not count."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        free = ("nnan", "nsz")
        return builder.select(builder.fcmp_ordered(">", *args, flags=free), *args, flags=free)

    return x(x, x), codegen


@helper(fastmath=REORDER, inline=False)
def _largest(x: Array) -> Scalar:
    """Return the maximum; a NaN may get lost, and shows up when the maximum is subtracted from it."""
    best = x[0]
    for i in range(x.size):
        best = _greater(x[i], best)
    return best


@helper(fastmath=REORDER, inline=False)
def _smallest(x: Array) -> Scalar:
    """As `_largest`, of the negative."""
    best = -x[0]
    for i in range(x.size):
        best = _greater(-x[i], best)
    return -best


@helper(fastmath=REORDER, inline=False)
def _exponentials(x: Array, largest: Scalar, scale: Scalar, logarithm: bool, y: Array) -> Scalar:
    """Write z = (x - largest) * scale, or without `logarithm` exp(z), and return the sum of exp(z)."""
    total = x.dtype.type(0)
    for i in range(x.size):
        z = (x[i] - largest) * scale
        e = falling(z)
        y[i] = z if logarithm else e
        total += e
    return total


@helper(fastmath=REORDER, inline=False)
def _sum_of_exponentials(x: Array, largest: Scalar, scale: Scalar) -> Scalar:
    total = x.dtype.type(0)
    for i in range(x.size):
        total += falling((x[i] - largest) * scale)
    return total


@kernel(threshold=1 << 13)
def _rows(
    first: int, last: int, n: int, inverse_temperature: Scalar, logarithm: bool, lengths: Array, x: Array, y: Array
) -> None:
    """With `lengths`, one for each row, only so many of its elements count, and the rest is 0."""
    scale, one, zero = x.dtype.type(inverse_temperature), x.dtype.type(1), x.dtype.type(0)
    in_place = same(x, y)  # loops over overlapping arrays do not vectorise
    held = np.empty(n if in_place else 0, x.dtype)
    for row in range(first, last):
        a, b = x[row * n : (row + 1) * n], y[row * n : (row + 1) * n]
        if in_place:
            copy(x, row * n, n, held, 0)
            a = held
        if lengths.size > 0:
            count = min(max(lengths[row], 0), n)
            fill(y, row * n + count, n - count, zero)
            a, b = a[:count], b[:count]
            if count == 0:
                continue
        largest = _largest(a) if scale >= zero else _smallest(a)
        if n <= _SHORT and row + 1 < last:
            prefetch(x, (row + 1) * n, n)
        total = _exponentials(a, largest, scale, logarithm, b)
        if logarithm:
            total = m.log(total)
            for i in range(b.size):
                b[i] -= total
        else:
            total = one / total
            for i in range(b.size):
                b[i] *= total


@helper(inline=False)
def _raise(x: Array, falling: bool, largest: Array) -> None:
    if falling:
        for i in range(x.size):
            largest[i] = where(x[i] < largest[i], x[i], largest[i])
    else:
        for i in range(x.size):
            largest[i] = where(x[i] > largest[i], x[i], largest[i])


@helper(inline=False)
def _shift(x: Array, largest: Array, scale: Scalar, total: Array, y: Array) -> None:
    """y = (x - largest) * scale; its exponential is added to the total."""
    for i in range(x.size):
        y[i] = (x[i] - largest[i]) * scale
    for i in range(x.size):
        total[i] += falling(y[i])


@helper(inline=False)
def _finish(logarithm: bool, total: Array, y: Array) -> None:
    if logarithm:
        for i in range(y.size):
            y[i] -= total[i]
    else:
        for i in range(y.size):
            y[i] = falling(y[i]) * total[i]


@kernel(threshold=1 << 13)
def _columns(
    first: int, last: int, n: int, inner: int, inverse_temperature: Scalar, logarithm: bool, x: Array, y: Array
) -> None:
    scale, one = x.dtype.type(inverse_temperature), x.dtype.type(1)
    blocks = (inner + _BLOCK - 1) // _BLOCK
    largests, totals = np.empty(_BLOCK, x.dtype), np.empty(_BLOCK, x.dtype)
    for item in range(first, last):
        begin = item // blocks * n * inner + item % blocks * _BLOCK
        width = min(_BLOCK, inner - item % blocks * _BLOCK)
        largest, total = largests[:width], totals[:width]
        copy(x, begin, width, largest, 0)
        fill(total, 0, width, x.dtype.type(0))
        for at in range(begin + inner, begin + n * inner, inner):
            _raise(x[at : at + width], scale < x.dtype.type(0), largest)
        for at in range(begin, begin + n * inner, inner):
            _shift(x[at : at + width], largest, scale, total, y[at : at + width])
        for i in range(width):
            total[i] = m.log(total[i]) if logarithm else one / total[i]
        for at in range(begin, begin + n * inner, inner):
            _finish(logarithm, total, y[at : at + width])


@helper(fastmath=REORDER, inline=False)
def _dot(a: Array, b: Array) -> Scalar:
    total = a.dtype.type(0)
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@helper(fastmath=REORDER, inline=False)
def _sum(a: Array) -> Scalar:
    total = a.dtype.type(0)
    for i in range(a.size):
        total += a[i]
    return total


@kernel(threshold=1 << 13)
def _rows_gradient(
    first: int, last: int, n: int, inverse_temperature: Scalar, logarithm: bool, dy: Array, y: Array, dx: Array
) -> None:
    scale = y.dtype.type(inverse_temperature)
    for row in range(first, last):
        a, b, c = dy[row * n : (row + 1) * n], y[row * n : (row + 1) * n], dx[row * n : (row + 1) * n]
        if logarithm:
            total = _sum(a)
            for i in range(n):
                c[i] = (a[i] - m.exp(b[i]) * total) * scale
        else:
            total = _dot(a, b)
            for i in range(n):
                c[i] = (a[i] - total) * b[i] * scale


@helper(inline=False)
def _accumulate(logarithm: bool, dy: Array, y: Array, total: Array) -> None:
    if logarithm:
        for i in range(y.size):
            total[i] += dy[i]
    else:
        for i in range(y.size):
            total[i] += dy[i] * y[i]


@helper(inline=False)
def _spread_gradient(logarithm: bool, scale: Scalar, dy: Array, y: Array, total: Array, dx: Array) -> None:
    if logarithm:
        for i in range(y.size):
            dx[i] = (dy[i] - m.exp(y[i]) * total[i]) * scale
    else:
        for i in range(y.size):
            dx[i] = (dy[i] - total[i]) * y[i] * scale


@kernel(threshold=1 << 13)
def _columns_gradient(
    first: int,
    last: int,
    n: int,
    inner: int,
    inverse_temperature: Scalar,
    logarithm: bool,
    dy: Array,
    y: Array,
    dx: Array,
) -> None:
    scale = y.dtype.type(inverse_temperature)
    blocks = (inner + _BLOCK - 1) // _BLOCK
    totals = np.empty(_BLOCK, y.dtype)
    for item in range(first, last):
        begin = item // blocks * n * inner + item % blocks * _BLOCK
        width = min(_BLOCK, inner - item % blocks * _BLOCK)
        total = totals[:width]
        fill(total, 0, width, y.dtype.type(0))
        for at in range(begin, begin + n * inner, inner):
            _accumulate(logarithm, dy[at : at + width], y[at : at + width], total)
        for at in range(begin, begin + n * inner, inner):
            _spread_gradient(logarithm, scale, dy[at : at + width], y[at : at + width], total, dx[at : at + width])


@kernel(threshold=1 << 13)
def picked(
    first: int, last: int, n: int, scalar: Scalar, x: Array, index: Array, out: Array, largests: Array, totals: Array
) -> None:
    """The kernel of :func:`pick_log_softmax`."""
    factor = x.dtype.type(scalar)
    for row in range(first, last):
        a = x[row * n : (row + 1) * n]
        largest = _largest(a)
        if n <= _SHORT and row + 1 < last:
            prefetch(x, (row + 1) * n, n)
        total = m.log(_sum_of_exponentials(a, largest, x.dtype.type(1)))
        out[row] = (a[nearest_row(index[row], n)] - largest - total) * factor
        largests[row], totals[row] = largest, total


@kernel(threshold=1 << 13)
def picked_gradient(
    first: int,
    last: int,
    n: int,
    scalar: Scalar,
    dy: Array,
    x: Array,
    index: Array,
    largests: Array,
    totals: Array,
    dx: Array,
) -> None:
    """The kernel of :func:`pick_log_softmax_backward`, by rows."""
    factor, zero = x.dtype.type(scalar), x.dtype.type(0)
    for row in range(first, last):
        a, b = x[row * n : (row + 1) * n], dx[row * n : (row + 1) * n]
        largest, total, g = largests[row], totals[row], dy[row] * factor
        at = nearest_row(index[row], n)
        there = g - m.exp(a[at] - largest - total) * g
        for i in range(n):
            b[i] = zero - m.exp(a[i] - largest - total) * g
        b[at] = there


_ALL = np.empty(0, np.int64)


def _forward(
    data: Array, out: Array, axis: int, temperature: float | None, logarithm: bool, lengths: Array = _ALL
) -> None:
    if data.size == 0:
        return
    outer, n, inner = spread(data.shape, axis)
    scale = 1.0 / (temperature or 1.0)
    with writable(out) as (y,):
        if inner == 1:
            _rows.run(_rows.workers(data.size), outer, n, scale, logarithm, lengths, flat(data), y.reshape(-1))
        else:
            _columns.run(
                _columns.workers(data.size),
                outer * -(-inner // _BLOCK),
                n,
                inner,
                scale,
                logarithm,
                flat(data),
                y.reshape(-1),
            )


def _backward(dy: Array, out: Array, d_data: Array, axis: int, temperature: float | None, logarithm: bool) -> None:
    if dy.size == 0:
        return
    outer, n, inner = spread(dy.shape, axis)
    scale = 1.0 / (temperature or 1.0)
    with writable(d_data) as (dx,):
        if inner == 1:
            _rows_gradient.run(
                _rows_gradient.workers(dy.size), outer, n, scale, logarithm, flat(dy), flat(out), dx.reshape(-1)
            )
        else:
            _columns_gradient.run(
                _columns_gradient.workers(dy.size),
                outer * -(-inner // _BLOCK),
                n,
                inner,
                scale,
                logarithm,
                flat(dy),
                flat(out),
                dx.reshape(-1),
            )


def softmax(data: Array, out: Array, axis: int = -1, temperature: float | None = None) -> None:
    """Write the softmax of ``data / temperature``, which may be negative, along an axis; `out` may be `data`.

    Examples
    --------
    >>> out = np.empty((1, 2))
    >>> softmax(np.zeros((1, 2)), out)
    >>> out
    array([[0.5, 0.5]])
    """
    _forward(data, out, axis, temperature, False)


def softmax_of_lengths(data: Array, lengths: Array, out: Array, temperature: float | None = None) -> None:
    """Write the softmax along the last axis of the first few elements of each row, and 0 behind them.

    Parameters
    ----------
    lengths : ndarray of whole numbers
        One for each row; where it is 0, the whole row is 0.

    Examples
    --------
    >>> out = np.empty((1, 3))
    >>> softmax_of_lengths(np.zeros((1, 3)), np.array([2]), out)
    >>> out
    array([[0.5, 0.5, 0. ]])
    """
    _forward(data, out, -1, temperature, False, flat(lengths.astype(np.int64)))


def softmax_backward(dy: Array, out: Array, d_data: Array, axis: int = -1, temperature: float | None = None) -> None:
    """Write the gradient of :func:`softmax` from that of its output and the output."""
    _backward(dy, out, d_data, axis, temperature, False)


def log_softmax(data: Array, out: Array, axis: int = -1, temperature: float | None = None) -> None:
    """Write the logarithm of the softmax along an axis; `out` may be `data`."""
    _forward(data, out, axis, temperature, True)


def log_softmax_backward(
    dy: Array, out: Array, d_data: Array, axis: int = -1, temperature: float | None = None
) -> None:
    """Write the gradient of :func:`log_softmax` from that of its output and the output."""
    _backward(dy, out, d_data, axis, temperature, True)


@kernel(threshold=1 << 13)
def _cross_entropy(first: int, last: int, n: int, x: Array, label: Array, loss: Array) -> None:
    for row in range(first, last):
        a = x[row * n : (row + 1) * n]
        largest = _largest(a)
        total = m.log(_sum_of_exponentials(a, largest, a.dtype.type(1)))
        k = min(max(np.int64(label[row]), 0), n - 1)
        loss[row] = total - (a[k] - largest)


@kernel(threshold=1 << 13)
def _cross_entropy_gradient(first: int, last: int, n: int, x: Array, label: Array, d_loss: Array, dx: Array) -> None:
    for row in range(first, last):
        a, b = x[row * n : (row + 1) * n], dx[row * n : (row + 1) * n]
        share = d_loss[row] / _exponentials(a, _largest(a), a.dtype.type(1), False, b)
        for i in range(n):
            b[i] *= share
        b[min(max(np.int64(label[row]), 0), n - 1)] -= d_loss[row]


def softmax_cross_entropy(data: Array, label: Array, loss: Array) -> None:
    """Write ``-log_softmax(data)[label]`` of each row: (…, n), (…) -> (…); labels are clipped to the range."""
    if data.size == 0:
        return
    with writable(loss) as (y,):
        _cross_entropy.run(
            _cross_entropy.workers(data.size), loss.size, data.shape[-1], flat(data), flat(label), y.reshape(-1)
        )


def softmax_cross_entropy_backward(d_loss: Array, data: Array, label: Array, d_data: Array) -> None:
    """Write the gradient of :func:`softmax_cross_entropy` with respect to the data."""
    if data.size == 0:
        return
    with writable(d_data) as (dx,):
        _cross_entropy_gradient.run(
            _cross_entropy_gradient.workers(data.size),
            d_loss.size,
            data.shape[-1],
            flat(data),
            flat(label),
            flat(d_loss),
            dx.reshape(-1),
        )


@kernel(threshold=1 << 13)
def _output_gradient(
    first: int,
    last: int,
    n: int,
    inner: int,
    scale: Scalar,
    use_ignore: bool,
    ignore_label: Scalar,
    smooth: Scalar,
    y: Array,
    label: Array,
    dx: Array,
) -> None:
    zero = y.dtype.type(0)
    hit = y.dtype.type(1.0 - smooth)
    miss = y.dtype.type(smooth / (n - 1)) if n > 1 else zero
    factor = y.dtype.type(scale)
    for o in range(first, last):
        for k in range(n):
            at = (o * n + k) * inner
            a, b, names = y[at : at + inner], dx[at : at + inner], label[o * inner : (o + 1) * inner]
            for i in range(inner):
                target = hit if np.int64(names[i]) == k else miss
                b[i] = zero if use_ignore and names[i] == ignore_label else (a[i] - target) * factor


def softmax_output_backward(
    out: Array,
    label: Array,
    d_data: Array,
    *,
    axis: int = -1,
    grad_scale: float = 1.0,
    use_ignore: bool = False,
    ignore_label: float = -1.0,
    normalization: str = "null",
    smooth_alpha: float = 0.0,
) -> None:
    """Write the gradient of SoftmaxOutput: the softmax minus the one-hot label, scaled.

    Parameters
    ----------
    out : ndarray
        The softmax, along `axis`.
    label : ndarray
        Shape of `out` without the axis; a label out of range hits nothing.
    normalization : {'null', 'batch', 'valid'}
        Divide by nothing, by the length of axis 0, or by the number of labels other than `ignore_label`
        (whether or not they are ignored). Where `axis` is not the last one (`multi_output`), 'null' and
        'batch' also divide by the number of positions.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 SoftmaxOutput.
    """
    if out.size == 0:
        return
    outer, n, inner = spread(out.shape, axis)
    label = flat(label)
    if normalization == "valid":
        count = max(1, int(np.count_nonzero(label != ignore_label)))
    else:
        count = inner * (out.shape[0] if normalization == "batch" else 1)
    with writable(d_data) as (dx,):
        _output_gradient.run(
            _output_gradient.workers(out.size),
            outer,
            n,
            inner,
            grad_scale / count,
            use_ignore,
            float(ignore_label),
            float(smooth_alpha),
            flat(out),
            label,
            dx.reshape(-1),
        )


def pick_log_softmax(data: Array, index: Array, out: Array, largest: Array, total: Array, scalar: float = 1.0) -> None:
    """Write one logarithm of the softmax of each row times a number, and what the gradient reads.

    Parameters
    ----------
    data : ndarray
        Rows of logits, shape (..., n).
    index : ndarray
        Which one, one number for each row; what is out of range is clipped.
    out, largest, total : ndarray
        One number for each row: the result; the greatest logit; the logarithm of the sum of exponentials above it.
    scalar : float

    Examples
    --------
    >>> out, largest, total = np.empty((3, 1))
    >>> pick_log_softmax(np.zeros((1, 2)), np.array([1]), out, largest, total, -1.0)
    >>> np.exp(-out)
    array([0.5])
    """
    n = data.shape[-1]
    with writable(out, largest, total) as places:
        picked.run(
            *(picked.workers(data.size), data.size // n, n, scalar, flat(data), flat(index)),
            *(a.reshape(-1) for a in places),
        )


def pick_log_softmax_backward(
    dy: Array, data: Array, index: Array, largest: Array, total: Array, d_data: Array, scalar: float = 1.0
) -> None:
    """Write the gradient of :func:`pick_log_softmax` with respect to the data."""
    n = data.shape[-1]
    with writable(d_data) as (dx,):
        picked_gradient.run(
            *(picked_gradient.workers(data.size), data.size // n, n, scalar),
            *(flat(a) for a in (dy, data, index, largest, total)),
            dx.reshape(-1),
        )
