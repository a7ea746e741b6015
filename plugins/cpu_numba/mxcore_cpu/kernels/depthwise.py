"""Convolution of each channel with filters of its own: a plane at a time, as one long row.

A plane is copied into a *frame* of zeros, as wide as it is with its padding. There each tap is the whole frame moved by some
places, whatever the row, so that one loop runs over all rows at once; what falls between them is computed and thrown away.
With strides the frame has several *phases*: every sw-th column (and sh-th row, and sd-th layer) together, so that the
elements that one tap meets are neighbours again. The gradient of the data goes the same way back.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..jit import helper, kernel
from ._arrays import flat, writable
from .columns import U, fill, inside
from .vectors import SPARE, STEP, dot, dot_three, lay, lay_halves, put, put_halves, weigh

__all__ = ["data_gradient", "fits", "forward", "weight_gradient"]
_TOGETHER = 16  # filters whose gradients are summed side by side: their planes are neighbours in each image


def fits(g: Sequence[int], weight_shape: Sequence[int], groups: int) -> bool:
    """Tell whether this is a convolution with one input channel per group (more than one group)."""
    return groups > 1 and groups == g[0] and weight_shape[0] > 0


@helper
def _sizes(g):
    """Return (elements of the frame, length of the long row, layers, rows and columns of a phase)."""
    c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, od, oh, ow = g
    layers, rows, columns = (d + 2 * pd + sd - 1) // sd, (h + 2 * ph + sh - 1) // sh, (w + 2 * pw + sw - 1) // sw
    used = ((od - 1) * rows + oh - 1) * columns + ow
    return sd * sh * sw * _area(layers, rows, columns) + STEP, (used + STEP - 1) // STEP * STEP, layers, rows, columns


@helper
def _area(layers, rows, columns):
    """Return the elements of a phase, with space for what its last row writes behind itself."""
    return layers * rows * columns + SPARE


@helper
def _spot(a, b, e, g, layers, rows, columns):
    """Return where the frame has what is `a` layers, `b` rows and `e` columns from its corner."""
    c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, od, oh, ow = g
    phase = (a % sd * sh + b % sh) * sw + e % sw
    return phase * _area(layers, rows, columns) + (a // sd * rows + b // sh) * columns + e // sw


@helper(inline=False)
def _taps(g, layers, rows, columns):
    """Return by how many places each tap moves the frame."""
    c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, od, oh, ow = g
    at = np.empty(kd * kh * kw, np.int64)
    for t in range(at.size):
        at[t] = _spot(t // (kw * kh) * dd, t // kw % kh * dh, t % kw * dw, g, layers, rows, columns)
    return at


@helper(inline=False)
def _places(g, layers, rows, columns):
    """Return where the frame has each row of the image, padding included, and from there each of the first columns of that."""
    c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, od, oh, ow = g
    down, across = np.empty(d * h, np.int64), np.empty(max(sw, pw + 2), np.int64)
    for i in range(d):
        for j in range(h):
            down[i * h + j] = _spot(i + pd, j + ph, 0, g, layers, rows, columns)
    for e in range(across.size):
        across[e] = _spot(0, 0, e, g, layers, rows, columns)
    return down, across


@helper(inline=False)
def _lay(x, x0, g, down, across, columns, frame):
    """Copy a plane of the image, from x[x0] on, into the frame, from its first row to its last: each writes zeros behind itself."""
    c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, od, oh, ow = g
    for i in range(U(d * h)):
        s, at = x0 + i * w, down[i]
        if sw == 1:
            lay(x, s, w, frame, at + pw)
        elif sw == 2:
            lay_halves(x, s, w, frame, at + across[pw], at + across[pw + 1])
        else:
            for r in range(sw):
                left, right = inside(r - pw, sw, w, columns)
                to, first = U(at + across[r] + left), U(s + left * sw + r - pw)
                for z in range(U(right - left)):
                    frame[to + z] = x[first + z * U(sw)]


@helper(inline=False)
def _lift(frame, g, down, across, columns, x, x0):
    """Copy the frame back to a plane of the image."""
    c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, od, oh, ow = g
    for i in range(U(d * h)):
        s, at = x0 + i * w, down[i]
        if sw == 1:
            put(frame, at + pw, w, x, s)
        elif sw == 2:
            put_halves(frame, at + across[pw], at + across[pw + 1], w, x, s)
        else:
            for r in range(sw):
                left, right = inside(r - pw, sw, w, columns)
                to, first = U(at + across[r] + left), U(s + left * sw + r - pw)
                for z in range(U(right - left)):
                    x[first + z * U(sw)] = frame[to + z]


@helper(inline=False)
def _line_up(y, y0, g, rows, columns, lead, line):
    """Copy a plane of the output, from y[y0] on, to a long row from line[lead] on, zeros between its rows."""
    c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, od, oh, ow = g
    for i in range(od):
        for j in range(oh):
            lay(y, y0 + (i * oh + j) * ow, ow, line, lead + (i * rows + j) * columns)


@kernel(threshold=1 << 15)
def _forward(first, last, g, times, x, weight, bias, y):
    c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, od, oh, ow = g
    size, length, layers, rows, columns = _sizes(g)
    taps, at = kd * kh * kw, _taps(g, layers, rows, columns)
    down, across = _places(g, layers, rows, columns)
    frame, line = np.zeros(size, x.dtype), np.empty(length + SPARE, x.dtype)
    for plane in range(first, last):
        f = plane % (c * times)
        if plane == first or f % times == 0:
            _lay(x, plane // times * d * h * w, g, down, across, columns, frame)
        line[:] = bias[f] if bias.size > 0 else x.dtype.type(0)
        weigh(frame, at, weight[f * taps:(f + 1) * taps], taps, line, 0, length)
        for i in range(od):
            for j in range(oh):
                put(line, (i * rows + j) * columns, ow, y, ((plane * od + i) * oh + j) * ow)


@kernel(threshold=1 << 15)
def _data_gradient(first, last, g, times, dy, weight, bias, dx):
    c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, od, oh, ow = g
    taps, phases = kd * kh * kw, sd * sh * sw
    _, _, layers, rows, columns = _sizes(g)
    area, spots = _area(layers, rows, columns), _taps(g, layers, rows, columns)
    down, across = _places(g, layers, rows, columns)
    length = (area - SPARE + STEP - 1) // STEP * STEP
    # A place of the frame gets from the long row what is a tap before it; the gaps of the row are wide enough to be met instead of its start.
    lead = ((kd - 1) * dd // sd * rows + (kh - 1) * dh // sh) * columns + (kw - 1) * dw // sw
    frame, line = np.empty(phases * area + STEP, dy.dtype), np.zeros(lead + length + SPARE, dy.dtype)
    at, v, counts = np.empty(phases * taps, np.int64), np.empty(taps, dy.dtype), np.zeros(phases, np.int64)
    which = np.empty(phases * taps, np.int64)
    for t in range(taps):
        phase = spots[t] // area
        at[phase * taps + counts[phase]] = lead - spots[t] % area
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
                weigh(line, at[phase * taps:(phase + 1) * taps], v, counts[phase], frame, phase * area, length)
        _lift(frame, g, down, across, columns, dx, plane * d * h * w)


@kernel(threshold=1 << 15)
def _weight_gradient(first, last, g, times, n, x, dy, out):
    c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, od, oh, ow = g
    size, length, layers, rows, columns = _sizes(g)
    taps, at = kd * kh * kw, _taps(g, layers, rows, columns)
    down, across = _places(g, layers, rows, columns)
    frame, line, sums = np.zeros(size, x.dtype), np.zeros(length + SPARE, x.dtype), np.empty(_TOGETHER * taps * SPARE, x.dtype)
    counts = np.zeros(length, np.int8)  # what lies between the rows does not: zero times infinity would show
    for i in range(od):
        for j in range(oh):
            fill(counts, (i * rows + j) * columns, ow, 1)
    for f0 in range(first, last, _TOGETHER):
        f1 = min(last, f0 + _TOGETHER)
        sums[:] = x.dtype.type(0)
        for image in range(n):
            for f in range(f0, f1):
                if f == f0 or f % times == 0:
                    _lay(x, (image * c + f // times) * d * h * w, g, down, across, columns, frame)
                _line_up(dy, (image * c * times + f) * od * oh * ow, g, rows, columns, 0, line)
                own = sums[(f - f0) * taps * SPARE:]
                for t in range(0, taps - 2, 3):
                    dot_three(frame, at, t, line, counts, length, own)
                for t in range(taps - taps % 3, taps):
                    dot(frame, at, t, line, counts, length, own)
        for t in range((f1 - f0) * taps):
            out[f0 * taps + t] = sums[t * SPARE:(t + 1) * SPARE].sum()


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
