"""Layer, group and instance normalization, and to unit length."""

from __future__ import annotations

import numpy as np

from ..jit import REORDER, helper, kernel
from ..typing import Array, Scalar
from ._arrays import flat, writable
from .batch_norm import line_sums

__all__ = ["group_norm", "group_norm_backward", "layer_norm", "layer_norm_backward", "unit_length"]


@helper(fastmath=REORDER, inline=False)
def _statistics(a: Array, eps: Scalar) -> tuple[Scalar, Scalar]:
    """Return the mean of a row and its standard deviation, ``sqrt(var + eps)``."""
    total, count = a.dtype.type(0), a.dtype.type(a.size)
    for i in range(a.size):
        total += a[i]
    center = total / count
    one, two = line_sums(a, a, center, True)
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
        one, two = line_sums(g, a, mean[row], False)
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
