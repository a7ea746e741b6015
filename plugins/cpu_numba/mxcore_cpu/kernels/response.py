"""Local response normalization: sums over neighbouring channels, for a block of positions at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .. import math as m
from ..jit import Kernel, helper, kernel
from ..typing import Array, Scalar
from ._arrays import flat, lines, writable

__all__ = ["local_response", "local_response_backward"]

_BLOCK = 256  # positions of an item


@helper(inline=False)
def _squares(x: Array, at: int, size: int, channels: int, c: int, half: int, width: int, total: Array) -> None:
    """total = the sum of squares of the channels around c, for the positions from x[at] on."""
    for i in range(width):
        total[i] = x.dtype.type(0)
    for j in range(max(0, c - half), min(channels, c + half + 1)):
        a = x[at + j * size : at + j * size + width]
        for i in range(width):
            total[i] += a[i] * a[i]


@kernel(threshold=1 << 14)
def _forward(
    first: int,
    last: int,
    channels: int,
    size: int,
    half: int,
    alpha: Scalar,
    beta: Scalar,
    knorm: Scalar,
    x: Array,
    y: Array,
) -> None:
    real = x.dtype.type
    rate, power, start = real(alpha), real(-beta), real(knorm)
    blocks = (size + _BLOCK - 1) // _BLOCK
    sums = np.empty(_BLOCK, x.dtype)
    for item in range(first, last):
        at = item // blocks * channels * size + item % blocks * _BLOCK
        width = min(_BLOCK, size - item % blocks * _BLOCK)
        total = sums[:width]
        for c in range(channels):
            _squares(x, at, size, channels, c, half, width, total)
            a, b = x[at + c * size : at + c * size + width], y[at + c * size : at + c * size + width]
            for i in range(width):
                b[i] = a[i] * m.exp(power * m.log(start + rate * total[i]))


@kernel(threshold=1 << 14)
def _backward(
    first: int,
    last: int,
    channels: int,
    size: int,
    half: int,
    alpha: Scalar,
    beta: Scalar,
    knorm: Scalar,
    x: Array,
    dy: Array,
    dx: Array,
) -> None:
    real = x.dtype.type
    rate, power, start, factor = real(alpha), real(-beta), real(knorm), real(-2.0 * alpha * beta)
    blocks = (size + _BLOCK - 1) // _BLOCK
    sums, shares = np.empty(_BLOCK, x.dtype), np.empty(channels * _BLOCK, x.dtype)
    for item in range(first, last):
        at = item // blocks * channels * size + item % blocks * _BLOCK
        width = min(_BLOCK, size - item % blocks * _BLOCK)
        total = sums[:width]
        for c in range(channels):
            _squares(x, at, size, channels, c, half, width, total)
            low, high = at + c * size, at + c * size + width
            a, g, d, s = x[low:high], dy[low:high], dx[low:high], shares[c * _BLOCK : c * _BLOCK + width]
            for i in range(width):
                base = start + rate * total[i]
                d[i] = g[i] * m.exp(power * m.log(base))
                s[i] = a[i] * d[i] / base
        for c in range(channels):
            for i in range(width):
                total[i] = real(0)
            for j in range(max(0, c - half), min(channels, c + half + 1)):
                s = shares[j * _BLOCK : j * _BLOCK + width]
                for i in range(width):
                    total[i] += s[i]
            low, high = at + c * size, at + c * size + width
            a, d = x[low:high], dx[low:high]
            for i in range(width):
                d[i] += factor * a[i] * total[i]


def _run(
    kernel: Kernel, arrays: Sequence[Array], out: Array, nsize: int, alpha: float, beta: float, knorm: float
) -> None:
    data = lines(arrays[0])
    n, channels, size = data.shape
    if data.size == 0:
        return
    with writable(out) as (y,):
        kernel.run(
            kernel.workers(data.size * nsize),
            n * -(-size // _BLOCK),
            channels,
            size,
            nsize // 2,
            alpha / nsize,
            float(beta),
            float(knorm),
            *map(flat, arrays),
            y.reshape(-1),
        )


def local_response(data: Array, out: Array, *, nsize: int, alpha: float, beta: float, knorm: float) -> None:
    """Write ``data * (knorm + alpha / nsize * sum(data**2)) ** -beta``, the sum over `nsize` (odd) channels.

    Parameters
    ----------
    data, out : ndarray (n, c, *size)

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 LRN.

    Examples
    --------
    >>> out = np.empty((1, 2, 1))
    >>> local_response(np.array([[[1.0], [2.0]]]), out, nsize=3, alpha=3.0, beta=1.0, knorm=0.0)
    >>> out.ravel().round(6)
    array([0.2, 0.4])
    """
    _run(_forward, [data], out, nsize, alpha, beta, knorm)


def local_response_backward(
    dy: Array, data: Array, d_data: Array, *, nsize: int, alpha: float, beta: float, knorm: float
) -> None:
    """Write the gradient of :func:`local_response`."""
    _run(_backward, [data, dy], d_data, nsize, alpha, beta, knorm)
