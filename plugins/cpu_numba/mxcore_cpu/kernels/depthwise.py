"""Convolution of each channel with filters of its own: a plane at a time, as one long row.

A plane is copied into a *frame* of zeros, as wide as it is with its padding. There each tap is the whole frame moved by some
places, whatever the row, so that one loop runs over all rows at once; what falls between them is computed and thrown away.
With strides the frame has several *phases*: every sw-th column (and sh-th row, and sd-th layer) together, so that the
elements that one tap meets are neighbours again. The gradient of the data goes the same way back.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..jit import REORDER, helper, kernel
from ._arrays import flat, writable
from .columns import U, copy, fill, inside

__all__ = ["data_gradient", "fits", "forward", "weight_gradient"]

_STEP = 32  # long rows end at a multiple of this: unrolled vectors leave nothing over


def fits(g: Sequence[int], weight_shape: Sequence[int], groups: int) -> bool:
    """Tell whether this is a convolution with one input channel per group (more than one group)."""
    return groups > 1 and groups == g[0] and weight_shape[0] > 0


@helper
def _sizes(g):
    """Return (elements of the frame, length of the long row, layers, rows and columns of a phase)."""
    c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, od, oh, ow = g
    layers, rows, columns = (d + 2 * pd + sd - 1) // sd, (h + 2 * ph + sh - 1) // sh, (w + 2 * pw + sw - 1) // sw
    used = ((od - 1) * rows + oh - 1) * columns + ow
    length = (used + _STEP - 1) // _STEP * _STEP
    return sd * sh * sw * layers * rows * columns + length - used, length, layers, rows, columns


@helper
def _spot(a, b, e, g, layers, rows, columns):
    """Return where the frame has what is `a` layers, `b` rows and `e` columns from its corner."""
    c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, od, oh, ow = g
    phase = (a % sd * sh + b % sh) * sw + e % sw
    return ((phase * layers + a // sd) * rows + b // sh) * columns + e // sw


@helper
def _tap(t, g, layers, rows, columns):
    """Return by how many places a tap moves the frame."""
    c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, od, oh, ow = g
    return _spot(t // (kw * kh) * dd, t // kw % kh * dh, t % kw * dw, g, layers, rows, columns)


@helper(inline=False)
def _lay(x, x0, g, layers, rows, columns, frame):
    """Copy a plane of the image, from x[x0] on, into the frame."""
    c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, od, oh, ow = g
    for i in range(d):
        for j in range(h):
            s = x0 + (i * h + j) * w
            if sw == 1:
                copy(x, s, w, frame, _spot(i + pd, j + ph, pw, g, layers, rows, columns))
                continue
            for r in range(sw):
                left, right = inside(r - pw, sw, w, columns)
                at, first = U(_spot(i + pd, j + ph, r, g, layers, rows, columns) + left), U(s + left * sw + r - pw)
                for z in range(U(right - left)):
                    frame[at + z] = x[first + z * U(sw)]


@helper(inline=False)
def _lift(frame, g, layers, rows, columns, x, x0):
    """Copy the frame back to a plane of the image."""
    c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, od, oh, ow = g
    for i in range(d):
        for j in range(h):
            s = x0 + (i * h + j) * w
            if sw == 1:
                copy(frame, _spot(i + pd, j + ph, pw, g, layers, rows, columns), w, x, s)
                continue
            for r in range(sw):
                left, right = inside(r - pw, sw, w, columns)
                at, first = U(_spot(i + pd, j + ph, r, g, layers, rows, columns) + left), U(s + left * sw + r - pw)
                for z in range(U(right - left)):
                    x[first + z * U(sw)] = frame[at + z]


@helper(inline=False)
def _line_up(y, y0, g, rows, columns, lead, line):
    """Copy a plane of the output, from y[y0] on, to a long row from line[lead] on; what is between its rows stays."""
    c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, od, oh, ow = g
    for i in range(od):
        for j in range(oh):
            copy(y, y0 + (i * oh + j) * ow, ow, line, lead + (i * rows + j) * columns)


@helper(inline=False)
def _add(a, u, y):
    for i in range(y.size // _STEP * _STEP):  # a length that LLVM knows to be whole vectors spares 40 ns
        y[i] += u * a[i]


@helper(inline=False)
def _add_three(a, b, c, u, v, w, y):
    for i in range(y.size // _STEP * _STEP):
        y[i] += u * a[i] + v * b[i] + w * c[i]


@helper(inline=False)
def _sum(x, at, v, count, y):
    """y += the sum over taps of v[t] * x[at[t]:], three at a time: loads and stores of y cost as much as the products."""
    n = y.size
    for t in range(0, count - 2, 3):
        i, j, k = at[t], at[t + 1], at[t + 2]
        _add_three(x[i:i + n], x[j:j + n], x[k:k + n], v[t], v[t + 1], v[t + 2], y)
    for t in range(count - count % 3, count):
        _add(x[at[t]:at[t] + n], v[t], y)


@helper(fastmath=REORDER, inline=False)
def _dot(a, y):
    u = y.dtype.type(0)
    for i in range(y.size // _STEP * _STEP):
        u += a[i] * y[i]
    return u


@helper(fastmath=REORDER, inline=False)
def _dot_three(a, b, c, y):
    u, v, w = y.dtype.type(0), y.dtype.type(0), y.dtype.type(0)
    for i in range(y.size // _STEP * _STEP):
        u += a[i] * y[i]
        v += b[i] * y[i]
        w += c[i] * y[i]
    return u, v, w


@kernel(threshold=1 << 15)
def _forward(first, last, g, times, x, weight, bias, y):
    c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, od, oh, ow = g
    taps, at = kd * kh * kw, np.empty(kd * kh * kw, np.int64)
    size, length, layers, rows, columns = _sizes(g)
    frame, line = np.zeros(size, x.dtype), np.empty(length, x.dtype)
    for t in range(taps):
        at[t] = _tap(t, g, layers, rows, columns)
    for plane in range(first, last):
        f = plane % (c * times)
        if plane == first or f % times == 0:
            _lay(x, plane // times * d * h * w, g, layers, rows, columns, frame)
        line[:] = bias[f] if bias.size > 0 else x.dtype.type(0)
        _sum(frame, at, weight[f * taps:(f + 1) * taps], taps, line)
        for i in range(od):
            for j in range(oh):
                copy(line, (i * rows + j) * columns, ow, y, ((plane * od + i) * oh + j) * ow)


@kernel(threshold=1 << 15)
def _data_gradient(first, last, g, times, dy, weight, bias, dx):
    c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, od, oh, ow = g
    taps, phases = kd * kh * kw, sd * sh * sw
    _, _, layers, rows, columns = _sizes(g)
    area = layers * rows * columns
    length = (area + _STEP - 1) // _STEP * _STEP
    # A place of the frame gets from the long row what is a tap before it; the gaps of the row are wide enough to be met instead of its start.
    lead = ((kd - 1) * dd // sd * rows + (kh - 1) * dh // sh) * columns + (kw - 1) * dw // sw
    frame, line = np.empty(phases * area + length - area, dy.dtype), np.zeros(lead + length, dy.dtype)
    at, v, counts = np.empty(phases * taps, np.int64), np.empty(taps, dy.dtype), np.zeros(phases, np.int64)
    which = np.empty(phases * taps, np.int64)
    for t in range(taps):
        spot = _tap(t, g, layers, rows, columns)
        phase = spot // area
        at[phase * taps + counts[phase]] = lead - spot % area
        which[phase * taps + counts[phase]] = t
        counts[phase] += 1
    for plane in range(first, last):
        fill(frame, 0, phases * area, bias[plane % c] if bias.size > 0 else dx.dtype.type(0))
        for m in range(times):
            f = plane % c * times + m
            _line_up(dy, (plane * times + m) * od * oh * ow, g, rows, columns, lead, line)
            for phase in range(phases):
                for t in range(counts[phase]):
                    v[t] = weight[f * taps + which[phase * taps + t]]
                _sum(line, at[phase * taps:(phase + 1) * taps], v, counts[phase], frame[phase * area:phase * area + length])
        _lift(frame, g, layers, rows, columns, dx, plane * d * h * w)


@kernel(threshold=1 << 15)
def _weight_gradient(first, last, g, times, n, x, dy, out):
    c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, od, oh, ow = g
    taps, at = kd * kh * kw, np.empty(kd * kh * kw, np.int64)
    size, length, layers, rows, columns = _sizes(g)
    frame, line = np.zeros(size, x.dtype), np.zeros(length, x.dtype)
    for t in range(taps):
        at[t] = _tap(t, g, layers, rows, columns)
    for f in range(first, last):
        sums = out[f * taps:(f + 1) * taps]
        sums[:] = out.dtype.type(0)
        for image in range(n):
            _lay(x, (image * c + f // times) * d * h * w, g, layers, rows, columns, frame)
            _line_up(dy, (image * c * times + f) * od * oh * ow, g, rows, columns, 0, line)
            for t in range(0, taps - 2, 3):
                i, j, k = at[t], at[t + 1], at[t + 2]
                u, v, s = _dot_three(frame[i:i + length], frame[j:j + length], frame[k:k + length], line)
                sums[t] += u
                sums[t + 1] += v
                sums[t + 2] += s
            for t in range(taps - taps % 3, taps):
                sums[t] += _dot(frame[at[t]:at[t] + length], line)


def _optional(bias: np.ndarray | None, dtype: np.dtype) -> np.ndarray:
    return np.empty(0, dtype) if bias is None else flat(bias)


def forward(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, y: np.ndarray,
            g: tuple[int, ...]) -> None:
    """Write the convolution of each channel with its own filters; `g` as in :mod:`.columns`."""
    times = weight.shape[0] // g[0]
    with writable(y) as (out,):
        _forward.run(_forward.workers(y.size * weight[0].size), x.shape[0] * weight.shape[0], g, times,
                     flat(x), flat(weight), _optional(bias, x.dtype), out.reshape(-1))


def data_gradient(dy: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, dx: np.ndarray,
                  g: tuple[int, ...]) -> None:
    """Write the gradient with respect to the data (or a transposed convolution, which may have a bias)."""
    times = weight.shape[0] // g[0]
    with writable(dx) as (out,):
        _data_gradient.run(_data_gradient.workers(dy.size * weight[0].size), dx.shape[0] * g[0], g, times,
                           flat(dy), flat(weight), _optional(bias, dy.dtype), out.reshape(-1))


def weight_gradient(x: np.ndarray, dy: np.ndarray, d_weight: np.ndarray, g: tuple[int, ...]) -> None:
    """Write the gradient with respect to the filters."""
    times = d_weight.shape[0] // g[0]
    with writable(d_weight) as (out,):
        _weight_gradient.run(_weight_gradient.workers(dy.size * d_weight[0].size), d_weight.shape[0], g,
                             times, x.shape[0], flat(x), flat(dy), out.reshape(-1))
