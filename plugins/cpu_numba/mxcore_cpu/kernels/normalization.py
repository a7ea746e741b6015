"""Batch, layer, group and instance normalization, and to unit length.

Batch normalization sees its data as (outer, channels, inner). Sums over a channel are taken by chunks of the
outer axis, each in the data's type over one line and in float64 beyond it, and twice: the second pass is
around the mean of the first, so that a large mean costs no digits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mxcore.layouts import spread

from ..jit import REORDER, helper, kernel
from ..typing import Array, Scalar
from ._arrays import flat, writable

__all__ = [
    "batch_norm",
    "batch_norm_backward",
    "batch_norm_inference",
    "group_norm",
    "group_norm_backward",
    "layer_norm",
    "layer_norm_backward",
    "unit_length",
]


@helper(fastmath=REORDER, inline=False)
def _line_sums(a: Array, b: Array, mean: Scalar, square: bool) -> tuple[Scalar, Scalar]:
    """Return the sums over one line of p and p * (b - mean), where p is a, or b - mean with `square`."""
    one, two = b.dtype.type(0), b.dtype.type(0)
    for i in range(b.size):
        d = b[i] - mean
        p = d if square else a[i]
        one += p
        two += p * d
    return one, two


@kernel(threshold=1 << 15)
def _sums(
    first: int,
    last: int,
    chunks: int,
    outer: int,
    channels: int,
    inner: int,
    square: bool,
    a: Array,
    b: Array,
    mean: Array,
    out: Array,
) -> None:
    for chunk in range(first, last):
        sums = out[chunk * 2 * channels : (chunk + 1) * 2 * channels]
        sums[:] = 0.0
        for o in range(chunk * outer // chunks, (chunk + 1) * outer // chunks):
            low, high = o * channels * inner, (o + 1) * channels * inner
            if inner == 1:
                x, y, one, two = a[low:high], b[low:high], sums[:channels], sums[channels:]
                for i in range(channels):
                    d = y[i] - mean[i]
                    p = d if square else x[i]
                    one[i] += p
                    two[i] += p * d
            else:
                for c in range(channels):
                    one, two = _line_sums(
                        a[low + c * inner : low + (c + 1) * inner],
                        b[low + c * inner : low + (c + 1) * inner],
                        mean[c],
                        square,
                    )
                    sums[c] += one
                    sums[channels + c] += two


@kernel(threshold=1 << 15)
def _combine(
    first: int,
    last: int,
    channels: int,
    inner: int,
    a: Array,
    b: Array,
    mean: Array,
    scale_a: Array,
    scale_b: Array,
    shift: Array,
    out: Array,
) -> None:
    """out = a * scale_a + (b - mean) * scale_b + shift, all but a and b per channel; items are outer rows."""
    for o in range(first, last):
        low, high = o * channels * inner, (o + 1) * channels * inner
        if inner == 1:
            x, y, z = a[low:high], b[low:high], out[low:high]
            for i in range(channels):
                z[i] = x[i] * scale_a[i] + ((y[i] - mean[i]) * scale_b[i] + shift[i])
        else:
            for c in range(channels):
                low, high = (o * channels + c) * inner, (o * channels + c + 1) * inner
                x, y, z = a[low:high], b[low:high], out[low:high]
                p, q, r, s = mean[c], scale_a[c], scale_b[c], shift[c]
                for i in range(inner):
                    z[i] = x[i] * q + ((y[i] - p) * r + s)


@kernel(threshold=1 << 15)
def _apply(
    first: int, last: int, channels: int, inner: int, x: Array, mean: Array, scale: Array, shift: Array, out: Array
) -> None:
    """out = (x - mean) * scale + shift, all but x per channel; items are outer rows."""
    for o in range(first, last):
        low, high = o * channels * inner, (o + 1) * channels * inner
        if inner == 1:
            y, z = x[low:high], out[low:high]
            for i in range(channels):
                z[i] = (y[i] - mean[i]) * scale[i] + shift[i]
        else:
            for c in range(channels):
                low, high = (o * channels + c) * inner, (o * channels + c + 1) * inner
                y, z = x[low:high], out[low:high]
                p, r, s = mean[c], scale[c], shift[c]
                for i in range(inner):
                    z[i] = (y[i] - p) * r + s


def _channel_sums(a: Array, b: Array, mean: Array, square: bool, layout: tuple[int, ...]) -> Array:
    """Return (2, channels) float64: the two sums of :func:`_line_sums` over each channel."""
    outer, channels, inner = layout
    workers = _sums.workers(b.size)
    chunks = max(1, min(outer, workers))
    out = np.empty((chunks, 2, channels))
    _sums.run(workers, chunks, chunks, outer, channels, inner, square, a, b, mean, out.reshape(-1))
    sums: Array = out.sum(axis=0)
    return sums


def _per_channel(a: Array, dtype: np.dtype[Any]) -> Array:
    return np.ascontiguousarray(a, dtype=dtype)


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

    Examples
    --------
    >>> out, mean, var = np.empty((2, 1)), np.empty(1), np.empty(1)
    >>> batch_norm(np.array([[1.0], [3.0]]), np.ones(1), np.zeros(1), out, mean, var, eps=0.0)
    >>> out.ravel(), mean, var
    (array([-1.,  1.]), array([2.]), array([1.]))
    """
    layout = outer, channels, inner = spread(data.shape, axis)
    x, count = flat(data), max(1, outer * inner)
    about = np.zeros(channels, x.dtype)
    first = _channel_sums(x, x, about, True, layout)[0] / count
    about = first.astype(x.dtype)
    one, two = _channel_sums(x, x, about, True, layout) / count
    mean[...] = about + one
    var[...] = two - one * one
    batch_norm_inference(data, gamma, beta, mean, var, out, eps=eps, axis=axis, fix_gamma=fix_gamma)


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
) -> None:
    """Normalize with given statistics."""
    outer, channels, inner = spread(data.shape, axis)
    scale = 1.0 / np.sqrt(var.astype(np.float64) + eps)
    if not fix_gamma:
        scale *= gamma
    t = data.dtype
    with writable(out) as (y,):
        _apply.run(
            _apply.workers(data.size),
            outer,
            channels,
            inner,
            flat(data),
            _per_channel(mean, t),
            _per_channel(scale, t),
            _per_channel(beta, t),
            y.reshape(-1),
        )


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
) -> None:
    """Write those gradients of a batch normalization that are not None.

    Parameters
    ----------
    mean, var : ndarray, (c,)
        The statistics the output was made with: those of the batch, or with `use_global_stats` constants.
    fix_gamma : bool
        The scale was 1, and its gradient is 0.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 BatchNorm.
    """
    layout = outer, channels, inner = spread(data.shape, axis)
    g, x, t = flat(dy), flat(data), data.dtype
    center = _per_channel(mean, t)
    inverse = 1.0 / np.sqrt(var.astype(np.float64) + eps)
    one, two = _channel_sums(g, x, center, False, layout)
    if d_gamma is not None:
        d_gamma[...] = 0 if fix_gamma else two * inverse
    if d_beta is not None:
        d_beta[...] = one
    if d_data is None:
        return
    scale = inverse if fix_gamma else inverse * gamma
    zero = np.zeros(channels, t)
    count = max(1, outer * inner)
    with writable(d_data) as (dx,):
        if use_global_stats:
            _apply.run(
                _apply.workers(data.size), outer, channels, inner, g, zero, _per_channel(scale, t), zero, dx.reshape(-1)
            )
        else:
            _combine.run(
                _combine.workers(data.size),
                outer,
                channels,
                inner,
                g,
                x,
                center,
                _per_channel(scale, t),
                _per_channel(-scale * inverse * inverse * two / count, t),
                _per_channel(-scale * one / count, t),
                dx.reshape(-1),
            )


@helper(fastmath=REORDER, inline=False)
def _statistics(a: Array, eps: Scalar) -> tuple[Scalar, Scalar]:
    """Return the mean of a row and its standard deviation, ``sqrt(var + eps)``."""
    total, count = a.dtype.type(0), a.dtype.type(a.size)
    for i in range(a.size):
        total += a[i]
    center = total / count
    one, two = _line_sums(a, a, center, True)
    one /= count
    return center + one, np.sqrt(two / count - one * one + a.dtype.type(eps))


@kernel(threshold=1 << 14, fastmath=REORDER)
def _layer(
    first: int, last: int, n: int, eps: Scalar, x: Array, gamma: Array, beta: Array, y: Array, mean: Array, std: Array
) -> None:
    for row in range(first, last):
        a, b = x[row * n : (row + 1) * n], y[row * n : (row + 1) * n]
        center, deviation = _statistics(a, eps)
        for i in range(n):
            b[i] = (a[i] - center) / deviation * gamma[i] + beta[i]
        mean[row], std[row] = center, deviation


@kernel(threshold=1 << 14, fastmath=REORDER)
def _layer_gradient(
    first: int,
    last: int,
    chunks: int,
    rows: int,
    n: int,
    x: Array,
    gamma: Array,
    mean: Array,
    std: Array,
    dy: Array,
    dx: Array,
    sums: Array,
) -> None:
    zero, one, count = x.dtype.type(0), x.dtype.type(1), x.dtype.type(n)
    for chunk in range(first, last):
        d_gamma = sums[chunk * 2 * n : (chunk * 2 + 1) * n]
        d_beta = sums[(chunk * 2 + 1) * n : (chunk * 2 + 2) * n]
        d_gamma[:] = 0.0
        d_beta[:] = 0.0
        for row in range(chunk * rows // chunks, (chunk + 1) * rows // chunks):
            a, g, d = x[row * n : (row + 1) * n], dy[row * n : (row + 1) * n], dx[row * n : (row + 1) * n]
            center, inverse = mean[row], one / std[row]
            total, product = zero, zero
            for i in range(n):
                h = (a[i] - center) * inverse
                d_gamma[i] += g[i] * h
                d_beta[i] += g[i]
                total += g[i] * gamma[i]
                product += g[i] * gamma[i] * h
            total, product = total / count, product / count
            for i in range(n):
                d[i] = (g[i] * gamma[i] - total - (a[i] - center) * inverse * product) * inverse


def layer_norm(
    data: Array, gamma: Array, beta: Array, out: Array, mean: Array, std: Array, *, eps: float, axis: int = -1
) -> None:
    """Normalize along an axis and write the mean and the standard deviation ``sqrt(var + eps)`` as well.

    Parameters
    ----------
    gamma, beta : ndarray, (n,)
    mean, std : ndarray
        One for each line: the shape of `data` with `axis` 1, or without it.
    """
    data, moved = np.moveaxis(data, axis, -1), np.moveaxis(out, axis, -1)
    n = data.shape[-1]
    with writable(moved, mean, std) as (y, center, deviation):
        _layer.run(
            _layer.workers(data.size),
            mean.size,
            n,
            float(eps),
            flat(data),
            flat(gamma),
            flat(beta),
            y.reshape(-1),
            center.reshape(-1),
            deviation.reshape(-1),
        )


def layer_norm_backward(
    dy: Array,
    data: Array,
    gamma: Array,
    mean: Array,
    std: Array,
    d_data: Array,
    d_gamma: Array | None,
    d_beta: Array | None,
    *,
    axis: int = -1,
) -> None:
    """Write the gradients of :func:`layer_norm`; those of gamma and beta where they are not None."""
    dy, data, moved = (np.moveaxis(a, axis, -1) for a in (dy, data, d_data))
    n, workers = data.shape[-1], _layer_gradient.workers(data.size)
    chunks = max(1, min(workers, mean.size))
    sums = np.empty((chunks, 2, n))
    with writable(moved) as (dx,):
        _layer_gradient.run(
            workers,
            chunks,
            chunks,
            mean.size,
            n,
            flat(data),
            flat(gamma),
            flat(mean),
            flat(std),
            flat(dy),
            dx.reshape(-1),
            sums.reshape(-1),
        )
    for out, total in zip((d_gamma, d_beta), sums.sum(axis=0)):
        if out is not None:
            out[...] = total


@kernel(threshold=1 << 14)
def _group(
    first: int,
    last: int,
    groups: int,
    n: int,
    eps: Scalar,
    x: Array,
    gamma: Array,
    beta: Array,
    y: Array,
    mean: Array,
    std: Array,
) -> None:
    for row in range(first, last):
        a, b = x[row * n : (row + 1) * n], y[row * n : (row + 1) * n]
        center, deviation = _statistics(a, eps)
        scale, shift = gamma[row % groups] / deviation, beta[row % groups]
        for i in range(n):
            b[i] = (a[i] - center) * scale + shift
        mean[row], std[row] = center, deviation


@kernel(threshold=1 << 14)
def _group_gradient(
    first: int,
    last: int,
    groups: int,
    n: int,
    x: Array,
    gamma: Array,
    mean: Array,
    std: Array,
    dy: Array,
    dx: Array,
    sums: Array,
) -> None:
    """The sums of dy, and of dy times the standardized values, of each row; dx if it is not empty."""
    for row in range(first, last):
        a, g = x[row * n : (row + 1) * n], dy[row * n : (row + 1) * n]
        inverse = x.dtype.type(1) / std[row]
        one, two = _line_sums(g, a, mean[row], False)
        two *= inverse
        sums[row, 0], sums[row, 1] = one, two
        if dx.size > 0:
            d, center = dx[row * n : (row + 1) * n], mean[row]
            scale = gamma[row % groups] * inverse
            less, slope = one / x.dtype.type(n), two * inverse / x.dtype.type(n)
            for i in range(n):
                d[i] = (g[i] - less - (a[i] - center) * slope) * scale


def group_norm(data: Array, gamma: Array, beta: Array, out: Array, mean: Array, std: Array, *, eps: float) -> None:
    """Normalize parts of each sample in turn, and write mean and standard deviation ``sqrt(var + eps)`` too.

    Parameters
    ----------
    gamma, beta : ndarray, (groups,)
        For each part of a sample.
    mean, std : ndarray, (samples, groups)
    """
    with writable(out, mean, std) as (y, center, deviation):
        _group.run(
            _group.workers(data.size),
            mean.size,
            gamma.size,
            data.size // mean.size,
            float(eps),
            flat(data),
            flat(gamma),
            flat(beta),
            y.reshape(-1),
            center.reshape(-1),
            deviation.reshape(-1),
        )


def group_norm_backward(
    dy: Array,
    data: Array,
    gamma: Array,
    mean: Array,
    std: Array,
    d_data: Array | None,
    d_gamma: Array | None,
    d_beta: Array | None,
) -> None:
    """Write those gradients of :func:`group_norm` that are not None."""
    sums = np.empty((mean.size, 2))
    with writable(np.empty(0, data.dtype) if d_data is None else d_data) as (dx,):
        _group_gradient.run(
            _group_gradient.workers(data.size),
            mean.size,
            gamma.size,
            data.size // mean.size,
            flat(data),
            flat(gamma),
            flat(mean),
            flat(std),
            flat(dy),
            dx.reshape(-1),
            sums,
        )
    for out, total in zip((d_beta, d_gamma), sums.reshape(-1, gamma.size, 2).sum(axis=0).T):
        if out is not None:
            out[...] = total


@kernel(threshold=1 << 14, fastmath=REORDER)
def _unit(first: int, last: int, n: int, eps: Scalar, x: Array, y: Array) -> None:
    for row in range(first, last):
        a, b, total = x[row * n : (row + 1) * n], y[row * n : (row + 1) * n], x.dtype.type(eps)
        for i in range(n):
            total += a[i] * a[i]
        scale = x.dtype.type(1) / np.sqrt(total)
        for i in range(n):
            b[i] = a[i] * scale


def unit_length(data: Array, rows: int, eps: float, out: Array) -> None:
    """Divide each of so many rows by its Euclidean length; `eps` is added to its square."""
    with writable(out) as (y,):
        _unit.run(_unit.workers(data.size), rows, data.size // rows, float(eps), flat(data), y.reshape(-1))
