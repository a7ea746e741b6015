"""Pooling in one, two and three dimensions: maximum, average, sum and Lp norm, and their gradients.

Windows follow from the shapes: the output's size is given (so 'valid', 'full' and any other convention are
the caller's), a window starts at ``position * stride - pad`` and is cut at the edges of the data. A global
pooling is a window as large as the data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..jit import helper, kernel
from ..math import where
from ..typing import Array, Scalar
from ._arrays import flat, lines, writable
from .columns import Geometry, U, fill, inside
from .convolution import geometry

__all__ = ["average_pool", "average_pool_backward", "lp_pool", "lp_pool_backward", "max_pool", "max_pool_backward"]


@helper
def _reach(position: int, stride: int, pad: int, window: int, size: int) -> tuple[int, int]:
    """Return (first, last + 1) of a window along one axis, cut at the edges."""
    start = position * stride - pad
    first = max(start, 0)
    return first, max(first, min(start + window, size))


# ------------------------------------------------------------------------------------------------------- the
# maximum


@helper
def _largest(x: Array, lowest: Scalar, corner: int, a: int, b: int, e: int, h: int, w: int) -> tuple[Scalar, int]:
    """Return the largest value in a box of a x b x e elements and its place, the first of equals."""
    best, at = lowest, corner
    for i in range(a):
        for j in range(b):
            row = corner + U((i * h + j) * w)
            for k in range(U(e)):
                v = x[row + k]
                at, best = where(v > best, row + k, at), where(v > best, v, best)
    return best, at


@kernel(threshold=1 << 15)
def _max(first: int, last: int, g: Geometry, lowest: Scalar, x: Array, y: Array) -> None:
    c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, od, oh, ow = g
    q = U(first * od * oh * ow)
    for plane in range(first, last):
        for i in range(od):
            a0, a1 = _reach(i, sd, pd, kd, d)
            for j in range(oh):
                b0, b1 = _reach(j, sh, ph, kh, h)
                for k in range(ow):
                    e0, e1 = _reach(k, sw, pw, kw, w)
                    corner = U(((plane * d + a0) * h + b0) * w + e0)
                    y[q], _ = _largest(x, x.dtype.type(lowest), corner, a1 - a0, b1 - b0, e1 - e0, h, w)
                    q += U(1)


@kernel(threshold=1 << 15)
def _max_gradient(first: int, last: int, g: Geometry, lowest: Scalar, x: Array, dy: Array, dx: Array) -> None:
    c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, od, oh, ow = g
    fill(dx, first * d * h * w, (last - first) * d * h * w, dx.dtype.type(0))
    q = U(first * od * oh * ow)
    for plane in range(first, last):
        for i in range(od):
            a0, a1 = _reach(i, sd, pd, kd, d)
            for j in range(oh):
                b0, b1 = _reach(j, sh, ph, kh, h)
                for k in range(ow):
                    e0, e1 = _reach(k, sw, pw, kw, w)
                    corner = U(((plane * d + a0) * h + b0) * w + e0)
                    best, at = _largest(x, x.dtype.type(lowest), corner, a1 - a0, b1 - b0, e1 - e0, h, w)
                    # Where nothing is above the lowest number, the first place counts, which may be padding.
                    outside = best == x.dtype.type(lowest) and (i * sd < pd or j * sh < ph or k * sw < pw)
                    if a0 < a1 and b0 < b1 and e0 < e1 and not outside:
                        dx[at] += dy[q]
                    q += U(1)


# Windows of 2 x 2 that do not overlap are most of all pooling: without the general loops they are vectorised.


@kernel(threshold=1 << 15)
def _max_2x2(first: int, last: int, h: int, w: int, oh: int, ow: int, lowest: Scalar, x: Array, y: Array) -> None:
    bottom = x.dtype.type(lowest)
    for line in range(first, last):
        top = U((line // oh * h + line % oh * 2) * w)
        low, q = top + U(w), U(line * ow)
        for z in range(U(ow)):
            i, j = top + z * U(2), low + z * U(2)
            a, b, c, d = x[i], x[i + U(1)], x[j], x[j + U(1)]
            a = a if a > bottom else bottom
            a = b if b > a else a
            a = c if c > a else a
            y[q + z] = d if d > a else a


# A line of eight bits may be shorter than a vector: neighbours are compared across lines first, some lines at a time.
_NARROW, _AT_ONCE = 64, 1 << 13


@kernel(threshold=1 << 15)
def _max_2x2_bytes(first: int, last: int, ow: int, x: Array, y: Array) -> None:
    w = U(2 * ow)
    each = max(1, _AT_ONCE // (2 * ow))
    pairs = np.empty(each * 2 * ow, x.dtype)
    for begin in range(first, last, each):
        end = min(begin + each, last)
        start = U(begin) * U(2) * w
        for z in range(U(end - begin) * w):
            i = start + z * U(2)
            a, b = x[i], x[i + U(1)]
            pairs[z] = b if b > a else a
        for line in range(begin, end):
            top, q = U(line - begin) * w, U(line * ow)
            for z in range(U(ow)):
                a, b = pairs[top + z], pairs[top + U(ow) + z]
                y[q + z] = b if b > a else a


@kernel(threshold=1 << 15)
def _max_2x2_gradient(
    first: int, last: int, h: int, w: int, oh: int, ow: int, lowest: Scalar, x: Array, dy: Array, dx: Array
) -> None:
    bottom = x.dtype.type(lowest)
    fill(dx, first * 2 * w, (last - first) * 2 * w, x.dtype.type(0))
    for line in range(first, last):
        top = U((line // oh * h + line % oh * 2) * w)
        low, q = top + U(w), U(line * ow)
        for z in range(U(ow)):
            i, j = top + z * U(2), low + z * U(2)
            a, b, c, d = x[i], x[i + U(1)], x[j], x[j + U(1)]
            a = a if a > bottom else bottom
            m = b if b > a else a
            n = c if c > m else m
            at = where(c > m, j, where(b > a, i + U(1), i))
            dx[where(d > n, j + U(1), at)] = dy[q + z]


def _is_2x2(g: Geometry) -> bool:
    c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, od, oh, ow = g
    return (d, kd, kh, kw, sh, sw, ph, pw, 2 * oh, 2 * ow) == (1, 1, 2, 2, 2, 2, 0, 0, h, w)


def _lowest(dtype: np.dtype[Any]) -> float:
    return float((np.iinfo if dtype.kind in "iu" else np.finfo)(dtype).min)


def max_pool(data: Array, out: Array, *, window: Sequence[int], stride: Sequence[int], pad: Sequence[int]) -> None:
    """Write the maximum of each window: (n, c, *size) -> (n, c, *positions).

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 Pooling. A NaN is never greater, so it loses to any number, and a window of
    nothing else gives the lowest finite number.

    Examples
    --------
    >>> out = np.empty((1, 1, 2))
    >>> max_pool(np.array([[[1.0, 5, 2, 3]]]), out, window=(2,), stride=(2,), pad=(0,))
    >>> out
    array([[[5., 3.]]])
    """
    g = geometry(data.shape[1:], window, stride, pad, (1,) * len(window), out.shape[2:])
    planes, lowest = data.shape[0] * data.shape[1], _lowest(data.dtype)
    with writable(out) as (y,):
        if _is_2x2(g) and data.dtype.itemsize == 1 and g[-1] < _NARROW:
            _max_2x2_bytes.run(_max_2x2_bytes.workers(data.size), planes * g[-2], g[-1], flat(data), y.reshape(-1))
        elif _is_2x2(g):
            _max_2x2.run(
                _max_2x2.workers(data.size), planes * g[-2], *g[2:4], *g[-2:], lowest, flat(data), y.reshape(-1)
            )
        else:
            _max.run(_max.workers(data.size), planes, g, lowest, flat(data), y.reshape(-1))


def max_pool_backward(
    dy: Array, data: Array, d_data: Array, *, window: Sequence[int], stride: Sequence[int], pad: Sequence[int]
) -> None:
    """Write the gradient of :func:`max_pool`; of equal maxima the first takes it all, padding included."""
    g = geometry(data.shape[1:], window, stride, pad, (1,) * len(window), dy.shape[2:])
    planes, lowest = data.shape[0] * data.shape[1], float(np.finfo(data.dtype).min)
    with writable(d_data) as (dx,):
        if _is_2x2(g):
            _max_2x2_gradient.run(
                _max_2x2_gradient.workers(data.size),
                planes * g[-2],
                *g[2:4],
                *g[-2:],
                lowest,
                flat(data),
                flat(dy),
                dx.reshape(-1),
            )
        else:
            _max_gradient.run(_max_gradient.workers(data.size), planes, g, lowest, flat(data), flat(dy), dx.reshape(-1))


# ----------------------------------------------------------------------------------------- sum, average and
# norms Kind 1 is the sum, 2 and 3 are the norms of that order. A window is separable: its lines are added
# into one line, then the places of that line into the outputs.


@helper
def _places(position: int, stride: int, pad: int, window: int, size: int, include_pad: bool) -> int:
    """Return how many places of a window along one axis an average counts."""
    start = position * stride - pad
    if include_pad:
        return min(start + window, size + pad) - start
    return max(0, min(start + window, size) - max(start, 0))


@helper(inline=False)
def _add_line(x: Array, x0: int, step: int, n: int, y: Array, y0: int) -> None:
    """y[y0 + z] += x[x0 + z * step] for n places; steps 1 and 2 are vectorised."""
    a, b = U(x0), U(y0)
    if step == 1:
        for z in range(U(n)):
            y[b + z] += x[a + z]
    elif step == 2:
        for z in range(U(n)):
            y[b + z] += x[a + z * U(2)]
    else:
        for z in range(U(n)):
            y[b + z] += x[a + z * U(step)]


@kernel(threshold=1 << 15)
def _sum(first: int, last: int, g: Geometry, kind: int, average: bool, include_pad: bool, x: Array, y: Array) -> None:
    c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, od, oh, ow = g
    real = x.dtype.type
    line = np.empty(w, x.dtype)
    for plane in range(first, last):
        for i in range(od):
            a0, a1 = _reach(i, sd, pd, kd, d)
            for j in range(oh):
                b0, b1 = _reach(j, sh, ph, kh, h)
                fill(line, 0, w, real(0))
                for a in range(a0, a1):
                    for b in range(b0, b1):
                        at = ((plane * d + a) * h + b) * w
                        if kind == 1:
                            _add_line(x, at, 1, w, line, 0)
                        else:
                            for z in range(U(w)):
                                v = x[U(at) + z]
                                line[z] += v * v if kind == 2 else v * v * v
                q = ((plane * od + i) * oh + j) * ow
                fill(y, q, ow, real(0))
                if kw <= w:
                    for e in range(kw):
                        left, right = inside(e - pw, sw, w, ow)
                        _add_line(line, left * sw + e - pw, sw, right - left, y, q + left)
                else:  # mostly padding, however wide: what lies in the data counts
                    for z in range(ow):
                        e0, e1 = _reach(z, sw, pw, kw, w)
                        for e in range(U(e0), U(e1)):
                            y[U(q + z)] += line[e]
                if average:
                    n = _places(i, sd, pd, kd, d, include_pad) * _places(j, sh, ph, kh, h, include_pad)
                    for z in range(ow):
                        y[U(q + z)] /= real(max(n * _places(z, sw, pw, kw, w, include_pad), 1))
                elif kind > 1:
                    for z in range(U(q), U(q + ow)):
                        y[z] = np.sqrt(y[z]) if kind == 2 else real(np.cbrt(y[z]))


@kernel(threshold=1 << 15)
def _sum_gradient(
    first: int,
    last: int,
    g: Geometry,
    kind: int,
    average: bool,
    include_pad: bool,
    x: Array,
    y: Array,
    dy: Array,
    dx: Array,
) -> None:
    c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, od, oh, ow = g
    real = dy.dtype.type
    fill(dx, first * d * h * w, (last - first) * d * h * w, real(0))
    line = np.empty(w, dx.dtype)
    for plane in range(first, last):
        for i in range(od):
            a0, a1 = _reach(i, sd, pd, kd, d)
            for j in range(oh):
                b0, b1 = _reach(j, sh, ph, kh, h)
                q = ((plane * od + i) * oh + j) * ow
                n = _places(i, sd, pd, kd, d, include_pad) * _places(j, sh, ph, kh, h, include_pad)
                fill(line, 0, w, real(0))
                for z in range(ow):
                    share = dy[U(q + z)]
                    if average:
                        share /= real(max(n * _places(z, sw, pw, kw, w, include_pad), 1))
                    elif kind > 1:  # d norm / d x = (x / norm) ** (kind - 1)
                        norm = y[U(q + z)] if kind == 2 else y[U(q + z)] * y[U(q + z)]
                        share = real(0) if norm == real(0) else share / norm
                    e0, e1 = _reach(z, sw, pw, kw, w)
                    for e in range(U(e0), U(e1)):
                        line[e] += share
                for a in range(a0, a1):
                    for b in range(b0, b1):
                        at = ((plane * d + a) * h + b) * w
                        if kind == 1:
                            _add_line(line, 0, 1, w, dx, at)
                        else:
                            for z in range(U(w)):
                                v = x[U(at) + z]
                                dx[U(at) + z] += line[z] * (v if kind == 2 else v * v)


def _forward(
    data: Array,
    out: Array,
    kind: int,
    window: Sequence[int],
    stride: Sequence[int],
    pad: Sequence[int],
    average: bool = False,
    include_pad: bool = True,
) -> None:
    g = geometry(data.shape[1:], window, stride, pad, (1,) * len(window), out.shape[2:])
    with writable(out) as (y,):
        _sum.run(
            _sum.workers(data.size),
            data.shape[0] * data.shape[1],
            g,
            kind,
            average,
            include_pad,
            flat(data),
            y.reshape(-1),
        )


def _backward(
    dy: Array,
    data: Array | None,
    out: Array | None,
    d_data: Array,
    kind: int,
    window: Sequence[int],
    stride: Sequence[int],
    pad: Sequence[int],
    average: bool = False,
    include_pad: bool = True,
) -> None:
    g = geometry(d_data.shape[1:], window, stride, pad, (1,) * len(window), dy.shape[2:])
    dy = flat(dy)
    with writable(d_data) as (dx,):
        _sum_gradient.run(
            _sum_gradient.workers(dx.size),
            dx.shape[0] * dx.shape[1],
            g,
            kind,
            average,
            include_pad,
            dy if data is None else flat(data),
            dy if out is None else flat(out),
            dy,
            dx.reshape(-1),
        )


def _whole(size: Sequence[int], positions: Sequence[int], window: Sequence[int], pad: Sequence[int]) -> bool:
    """Tell whether there is one window and it is all of the data."""
    return all(p == 1 for p in positions) and all(k == n for k, n in zip(window, size)) and not any(pad)


def average_pool(
    data: Array,
    out: Array,
    *,
    window: Sequence[int],
    stride: Sequence[int],
    pad: Sequence[int],
    average: bool = True,
    include_pad: bool = True,
) -> None:
    """Write the average of each window, or its sum where `average` is False.

    Parameters
    ----------
    include_pad : bool
        Count places of the padding, up to `pad` beyond the end; else divide by the number of elements in the
        window.
    """
    if _whole(data.shape[2:], out.shape[2:], window, pad):
        first: tuple[Any, ...] = (..., *(0,) * len(window))
        np.add.reduce(lines(data), axis=2, out=out[first])
        if average:
            np.divide(out, math.prod(window), out=out)
    else:
        _forward(data, out, 1, window, stride, pad, average, include_pad)


def average_pool_backward(
    dy: Array,
    d_data: Array,
    *,
    window: Sequence[int],
    stride: Sequence[int],
    pad: Sequence[int],
    average: bool = True,
    include_pad: bool = True,
) -> None:
    """Write the gradient of :func:`average_pool`."""
    if _whole(d_data.shape[2:], dy.shape[2:], window, pad):
        d_data[...] = dy / dy.dtype.type(math.prod(window)) if average else dy
    else:
        _backward(dy, None, None, d_data, 1, window, stride, pad, average, include_pad)


def lp_pool(
    data: Array, out: Array, *, p: int, window: Sequence[int], stride: Sequence[int], pad: Sequence[int]
) -> None:
    """Write ``sum(x**p) ** (1/p)`` of each window for p = 1, 2, 3, without absolute values, as MXNet does."""
    _forward(data, out, p, window, stride, pad)


def lp_pool_backward(
    dy: Array,
    data: Array,
    out: Array,
    d_data: Array,
    *,
    p: int,
    window: Sequence[int],
    stride: Sequence[int],
    pad: Sequence[int],
) -> None:
    """Write the gradient of :func:`lp_pool`, 0 where the norm is 0."""
    _backward(dy, data, out, d_data, p, window, stride, pad)
