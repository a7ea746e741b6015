"""Batch normalization.

It sees its data as (outer, channels, inner). Sums over a channel are taken by chunks of the outer axis, each in the
data's type over a line, or some rows, and in float64 beyond. Squares are summed around the mean of the same few
elements, which are still in the processor's caches, and parts joined by Chan's formula: a large mean costs no digits,
and memory is read once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mxcore.layouts import spread

from ..jit import REORDER, helper, kernel
from ..math import where
from ..typing import Array, Scalar
from ._arrays import flat, writable

__all__ = ["batch_norm", "batch_norm_backward", "batch_norm_inference", "line_sums"]


@helper(fastmath=REORDER, inline=False)
def line_sums(a: Array, b: Array, mean: Scalar, square: bool) -> tuple[Scalar, Scalar]:
    """Return the sums over one line of p and p * (b - mean), where p is a, or b - mean with `square`."""
    one, two = b.dtype.type(0), b.dtype.type(0)
    for i in range(b.size):
        d = b[i] - mean
        p = d if square else a[i]
        one += p
        two += p * d
    return one, two


@helper
def _positive(gradient: Scalar, v: Scalar, zero: Scalar) -> Scalar:
    """The gradient where a value is positive, 0 where it is not, and what is no number where it is none."""
    return where(v > zero, gradient, where(v <= zero, zero, v))


@helper(fastmath=REORDER, inline=False)
def _positive_sums(a: Array, b: Array, y: Array, mean: Scalar) -> tuple[Scalar, Scalar]:
    """Return the sums over one line of a and a * (b - mean), where y is positive."""
    zero = b.dtype.type(0)
    one, two = zero, zero
    for i in range(b.size):
        p = _positive(a[i], y[i], zero)
        one += p
        two += p * (b[i] - mean)
    return one, two


@helper(fastmath=REORDER, inline=False)
def _line_sum(a: Array) -> Scalar:
    total = a.dtype.type(0)
    for i in range(a.size):
        total += a[i]
    return total


@helper(inline=False)
def _row_sums(x: Array, channels: int, rows: int, total: Array) -> None:
    """total = the sum of rows of channels."""
    total[:] = 0
    for r in range(0, rows - 3, 4):
        a, b = x[r * channels : (r + 1) * channels], x[(r + 1) * channels : (r + 2) * channels]
        c, d = x[(r + 2) * channels : (r + 3) * channels], x[(r + 3) * channels : (r + 4) * channels]
        for i in range(channels):
            total[i] += (a[i] + b[i]) + (c[i] + d[i])
    for r in range(rows // 4 * 4, rows):
        a = x[r * channels : (r + 1) * channels]
        for i in range(channels):
            total[i] += a[i]


@helper(inline=False)
def _row_products(a: Array, b: Array, mean: Array, square: bool, rows: int, one: Array, two: Array) -> None:
    """The sums of :func:`line_sums` over rows of channels."""
    n = mean.size
    one[:], two[:] = 0, 0
    for r in range(0, rows - 1, 2):
        x, y = a[r * n : (r + 1) * n], a[(r + 1) * n : (r + 2) * n]
        u, v = b[r * n : (r + 1) * n], b[(r + 1) * n : (r + 2) * n]
        if square:
            for i in range(n):
                d, e = u[i] - mean[i], v[i] - mean[i]
                one[i] += d + e
                two[i] += d * d + e * e
        else:
            for i in range(n):
                one[i] += x[i] + y[i]
                two[i] += x[i] * (u[i] - mean[i]) + y[i] * (v[i] - mean[i])
    if rows % 2:
        x, u = a[(rows - 1) * n : rows * n], b[(rows - 1) * n : rows * n]
        for i in range(n):
            d = u[i] - mean[i]
            p = d if square else x[i]
            one[i] += p
            two[i] += p * d


@helper(inline=False)
def _positive_products(a: Array, b: Array, y: Array, mean: Array, rows: int, one: Array, two: Array) -> None:
    """The sums of :func:`_positive_sums` over rows of channels."""
    n, zero = mean.size, b.dtype.type(0)
    one[:], two[:] = 0, 0
    for r in range(rows):
        x, u, v = a[r * n : (r + 1) * n], b[r * n : (r + 1) * n], y[r * n : (r + 1) * n]
        for i in range(n):
            p = _positive(x[i], v[i], zero)
            one[i] += p
            two[i] += p * (u[i] - mean[i])


#: So many elements are read a second time from the processor's caches.
_NEAR = 1 << 14


@kernel(threshold=1 << 15)
def _moments(first: int, last: int, chunks: int, outer: int, channels: int, inner: int, x: Array, out: Array) -> None:
    """The mean of each channel, and the sum of the squares around it, of each chunk of outer rows."""
    for chunk in range(first, last):
        mean = out[chunk * 2 * channels : (chunk * 2 + 1) * channels]
        square = out[(chunk * 2 + 1) * channels : (chunk * 2 + 2) * channels]
        mean[:], square[:] = 0.0, 0.0
        begin, end = chunk * outer // chunks, (chunk + 1) * outer // chunks
        if inner == 1:
            about, one, two = np.empty(channels, x.dtype), np.empty(channels, x.dtype), np.empty(channels, x.dtype)
            each = max(16, _NEAR // channels)
            for low in range(begin, end, each):
                rows = min(each, end - low)
                part = x[low * channels : (low + rows) * channels]
                _row_sums(part, channels, rows, about)
                for i in range(channels):
                    about[i] /= rows
                _row_products(part, part, about, True, rows, one, two)
                before, total = float(low - begin), float(low - begin + rows)
                for i in range(channels):
                    rest = np.float64(one[i]) / rows
                    d = np.float64(about[i]) + rest - mean[i]
                    mean[i] += d * (rows / total)
                    square[i] += np.float64(two[i]) - rest * rest * rows + d * d * (before * rows / total)
        else:
            for o in range(begin, end):
                for c in range(channels):
                    start = (o * channels + c) * inner
                    for low in range(0, inner, _NEAR):
                        n = min(_NEAR, inner - low)
                        part = x[start + low : start + low + n]
                        center = part.dtype.type(_line_sum(part) / n)
                        line_one, line_two = line_sums(part, part, center, True)
                        before, rest = float((o - begin) * inner + low), np.float64(line_one) / n
                        d = np.float64(center) + rest - mean[c]
                        mean[c] += d * (n / (before + n))
                        square[c] += np.float64(line_two) - rest * rest * n + d * d * (before * n / (before + n))


@kernel(threshold=1 << 15)
def _sums(
    first: int,
    last: int,
    chunks: int,
    outer: int,
    channels: int,
    inner: int,
    positive: bool,
    a: Array,
    b: Array,
    y: Array,
    mean: Array,
    out: Array,
) -> None:
    """The sums of a, and of a * (b - mean), over each channel, of each chunk of outer rows.

    With `positive` a is 0 where y is not a positive number.
    """
    for chunk in range(first, last):
        one = out[chunk * 2 * channels : (chunk * 2 + 1) * channels]
        two = out[(chunk * 2 + 1) * channels : (chunk * 2 + 2) * channels]
        one[:], two[:] = 0.0, 0.0
        begin, end = chunk * outer // chunks, (chunk + 1) * outer // chunks
        if inner == 1:
            some, more = np.empty(channels, b.dtype), np.empty(channels, b.dtype)
            each = max(16, _NEAR // channels)
            for at in range(begin, end, each):
                rows = min(each, end - at)
                low, high = at * channels, (at + rows) * channels
                if positive:
                    _positive_products(a[low:high], b[low:high], y[low:high], mean, rows, some, more)
                else:
                    _row_products(a[low:high], b[low:high], mean, False, rows, some, more)
                for i in range(channels):
                    one[i] += some[i]
                    two[i] += more[i]
        else:
            for o in range(begin, end):
                for c in range(channels):
                    low, high = (o * channels + c) * inner, (o * channels + c + 1) * inner
                    if positive:
                        line_one, line_two = _positive_sums(a[low:high], b[low:high], y[low:high], mean[c])
                    else:
                        line_one, line_two = line_sums(a[low:high], b[low:high], mean[c], False)
                    one[c] += line_one
                    two[c] += line_two


@kernel(threshold=1 << 15)
def _combine(
    first: int,
    last: int,
    channels: int,
    inner: int,
    positive: bool,
    a: Array,
    b: Array,
    y: Array,
    mean: Array,
    scale_a: Array,
    scale_b: Array,
    shift: Array,
    out: Array,
) -> None:
    """out = a * scale_a + (b - mean) * scale_b + shift, all but a and b per channel; items are outer rows.

    With `positive` a is taken as in :func:`_sums`.
    """
    zero = b.dtype.type(0)
    for o in range(first, last):
        low, high = o * channels * inner, (o + 1) * channels * inner
        if inner == 1:
            x, u, v, z = a[low:high], b[low:high], y[low:high], out[low:high]
            if positive:
                for i in range(channels):
                    g = _positive(x[i], v[i], zero)
                    z[i] = g * scale_a[i] + ((u[i] - mean[i]) * scale_b[i] + shift[i])
            else:
                for i in range(channels):
                    z[i] = x[i] * scale_a[i] + ((u[i] - mean[i]) * scale_b[i] + shift[i])
        else:
            for c in range(channels):
                low, high = (o * channels + c) * inner, (o * channels + c + 1) * inner
                x, u, v, z = a[low:high], b[low:high], y[low:high], out[low:high]
                p, q, r, s = mean[c], scale_a[c], scale_b[c], shift[c]
                if positive:
                    for i in range(inner):
                        g = _positive(x[i], v[i], zero)
                        z[i] = g * q + ((u[i] - p) * r + s)
                else:
                    for i in range(inner):
                        z[i] = x[i] * q + ((u[i] - p) * r + s)


@kernel(threshold=1 << 15)
def _apply(
    first: int,
    last: int,
    channels: int,
    inner: int,
    least: Scalar,
    x: Array,
    mean: Array,
    scale: Array,
    shift: Array,
    out: Array,
) -> None:
    """out = (x - mean) * scale + shift, or the `least` number if that is less, all but x per channel.

    Items are outer rows.
    """
    bottom = x.dtype.type(least)
    for o in range(first, last):
        low, high = o * channels * inner, (o + 1) * channels * inner
        if inner == 1:
            y, z = x[low:high], out[low:high]
            for i in range(channels):
                v = (y[i] - mean[i]) * scale[i] + shift[i]
                z[i] = bottom if v < bottom else v  # what is no number stays so
        else:
            for c in range(channels):
                low, high = (o * channels + c) * inner, (o * channels + c + 1) * inner
                y, z = x[low:high], out[low:high]
                p, r, s = mean[c], scale[c], shift[c]
                for i in range(inner):
                    v = (y[i] - p) * r + s
                    z[i] = bottom if v < bottom else v


#: Rows of fewer channels are taken several at a time, as one of more channels, where there are so many elements.
_WIDE, _MANY = 512, 1 << 13


class _Layout:
    """Data as (outer, channels, inner).

    Attributes
    ----------
    outer, channels, inner : int
    times : int
        So many neighbouring rows are one: `channels` counts each channel so often.
    """

    def __init__(self, shape: tuple[int, ...], axis: int) -> None:
        self.outer, self.channels, self.inner = spread(shape, axis)
        self.count = max(1, self.outer * self.inner)
        self.times = 1
        if self.inner == 1 and self.outer * self.channels >= _MANY:
            while self.channels * 2 <= _WIDE and self.outer % 2 == 0 and self.outer:
                self.outer, self.channels, self.times = self.outer // 2, self.channels * 2, self.times * 2

    def each(self, a: Array, dtype: np.dtype[Any]) -> Array:
        """A number for each channel, as kernels take them."""
        a = np.ascontiguousarray(a, dtype=dtype)
        return a if self.times == 1 else np.tile(a, self.times)

    def run(self, kernel: Any, size: int, *args: Any) -> Array:
        """Two numbers for each channel, of each of several parts of the data that are of one size, or nearly."""
        workers = kernel.workers(size)
        chunks = max(1, min(self.outer, workers))
        out = np.empty((chunks, 2, self.channels))
        kernel.run(workers, chunks, chunks, self.outer, self.channels, self.inner, *args, out.reshape(-1))
        return out.reshape(chunks, 2, self.times, -1)

    def sums(self, positive: bool, a: Array, b: Array, y: Array, mean: Array) -> tuple[Array, Array]:
        """The sums of :func:`_sums` over each channel, in float64."""
        one, two = self.run(_sums, b.size, positive, a, b, y, mean).sum((0, 2))
        return one, two

    def moments(self, x: Array) -> tuple[Array, Array]:
        """The mean and the biased variance of each channel, in float64."""
        found = self.run(_moments, x.size, x)
        chunks = len(found)
        if chunks == self.times == 1:
            mean, square = found[0, :, 0]
            return mean, square / self.count
        rows = np.array([(i + 1) * self.outer // chunks - i * self.outer // chunks for i in range(chunks)], np.float64)
        share = rows * self.inner / self.count
        mean = np.einsum("i,ijk->k", share, found[:, 0])
        square = found[:, 1].sum((0, 1)) / self.count
        return mean, square + np.einsum("i,ijk->k", share, np.square(found[:, 0] - mean))


def batch_norm(
    data: Array,
    gamma: Array,
    beta: Array,
    out: Array,
    mean: Array,
    var: Array,
    *,
    eps: float,
    axis: int = 1,
    fix_gamma: bool = False,
    relu: bool = False,
) -> None:
    """Normalize with the statistics of the batch and write them.

    Parameters
    ----------
    data, out : ndarray
    gamma, beta : ndarray, (c,)
        Scale and shift of each channel; with `fix_gamma` the scale is 1.
    mean, var : ndarray, (c,)
        Written: mean and biased variance.
    eps : float
        Added to the variance.
    axis : int
        The axis of channels.
    relu : bool
        Write 0 in the place of negative numbers.

    Examples
    --------
    >>> out, mean, var = np.empty((2, 1)), np.empty(1), np.empty(1)
    >>> batch_norm(np.array([[1.0], [3.0]]), np.ones(1), np.zeros(1), out, mean, var, eps=0.0)
    >>> out.ravel(), mean, var
    (array([-1.,  1.]), array([2.]), array([1.]))
    """
    mean[...], var[...] = _Layout(data.shape, axis).moments(flat(data))
    batch_norm_inference(data, gamma, beta, mean, var, out, eps=eps, axis=axis, fix_gamma=fix_gamma, relu=relu)


def batch_norm_inference(
    data: Array,
    gamma: Array,
    beta: Array,
    mean: Array,
    var: Array,
    out: Array,
    *,
    eps: float,
    axis: int = 1,
    fix_gamma: bool = False,
    relu: bool = False,
) -> None:
    """Normalize with given statistics."""
    f, t = _Layout(data.shape, axis), data.dtype
    scale = 1.0 / np.sqrt(var.astype(np.float64) + eps)
    if not fix_gamma:
        scale *= gamma
    with writable(out) as (y,):
        columns = [f.each(a, t) for a in (mean, scale, beta)]
        least = 0.0 if relu else -np.inf
        _apply.run(_apply.workers(data.size), f.outer, f.channels, f.inner, least, flat(data), *columns, y.reshape(-1))


def batch_norm_backward(
    dy: Array,
    data: Array,
    gamma: Array,
    mean: Array,
    var: Array,
    d_data: Array | None,
    d_gamma: Array | None,
    d_beta: Array | None,
    *,
    eps: float,
    axis: int = 1,
    fix_gamma: bool = False,
    use_global_stats: bool = False,
    relu: Array | None = None,
) -> None:
    """Write those gradients of a batch normalization that are not None.

    Parameters
    ----------
    mean, var : ndarray, (c,)
        The statistics the output was made with: those of the batch, or with `use_global_stats` constants.
    fix_gamma : bool
        The scale was 1, and its gradient is 0.
    relu : ndarray, optional
        What came out, if negative numbers became 0.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 BatchNorm.
    """
    f, t = _Layout(data.shape, axis), data.dtype
    g, x = flat(dy), flat(data)
    inverse = 1.0 / np.sqrt(var.astype(np.float64) + eps)
    positive, y = relu is not None, g if relu is None else flat(relu)
    center = f.each(mean, t)
    one, two = f.sums(positive, g, x, y, center)
    if d_gamma is not None:
        d_gamma[...] = 0 if fix_gamma else two * inverse
    if d_beta is not None:
        d_beta[...] = one
    if d_data is None:
        return
    scale = inverse if fix_gamma else inverse * gamma
    zero = np.zeros(len(scale), t)
    with writable(d_data) as (dx,):
        if use_global_stats and not positive:
            none = f.each(zero, t)
            rows = f.outer, f.channels, f.inner
            _apply.run(_apply.workers(data.size), *rows, -np.inf, g, none, f.each(scale, t), none, dx.reshape(-1))
            return
        moved = -scale / f.count
        rest = (zero, zero) if use_global_stats else (moved * inverse * inverse * two, moved * one)
        columns = [center, *(f.each(a, t) for a in (scale, *rest))]
        workers = _combine.workers(data.size)
        _combine.run(workers, f.outer, f.channels, f.inner, positive, g, x, y, *columns, dx.reshape(-1))
