"""Convolution in groups of few channels, down to one: a plane at a time, as one long row.

A plane is copied into a *frame* of zeros, as wide as it is with its padding. There each tap is the whole frame moved by
some places, whatever the row, so that one loop runs over all rows at once; what falls between them is computed and
thrown away. With strides the frame has several *phases*: every sw-th column (and sh-th row, and sd-th layer) together,
so that the elements that one tap meets are neighbours again. The gradient of the data goes the same way back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..jit import helper, kernel
from ..typing import Array, Scalar
from ._arrays import flat, writable
from .columns import Geometry, U, fill, inside
from .vectors import SPARE, STEP, dot, dot_block, dot_three, lay, lay_halves, put, put_halves, weigh, weigh_four

__all__ = ["data_gradient", "fits", "forward", "weight_gradient"]

#: Filters (or channels, on the way back) that are computed side by side.
_SIDE = 4
#: Elements of frames that the gradient of the weights lays out at a time.
_TOGETHER = 1 << 15
#: Channels and filters of a group, elements of its frames, up to which this is faster than columns and their product.
_FEW, _FRAMES = 32, 1 << 18


def fits(g: Sequence[int], filters: int, groups: int) -> bool:
    """Tell whether this is a convolution in groups of few channels."""
    c, d, h, w, *window = g[:7]
    if groups < 2 or filters == 0:
        return False
    per, each = c // groups, filters // groups
    return per == 1 or max(per, each) <= _FEW and max(window) > 1 and per * d * h * w <= _FRAMES


@helper
def _sizes(g: Geometry) -> tuple[int, int, int, int, int]:
    """Return (elements of the frame, length of the long row, layers, rows and columns of a phase)."""
    c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, od, oh, ow = g
    layers, rows, columns = (d + 2 * pd + sd - 1) // sd, (h + 2 * ph + sh - 1) // sh, (w + 2 * pw + sw - 1) // sw
    used = ((od - 1) * rows + oh - 1) * columns + ow
    return sd * sh * sw * _area(layers, rows, columns) + STEP, (used + STEP - 1) // STEP * STEP, layers, rows, columns


@helper
def _area(layers: int, rows: int, columns: int) -> int:
    """Return the elements of a phase, with space for what its last row writes behind itself."""
    return layers * rows * columns + SPARE


@helper
def _spot(a: int, b: int, e: int, g: Geometry, layers: int, rows: int, columns: int) -> Scalar:
    """Return where the frame has what is `a` layers, `b` rows and `e` columns from its corner."""
    c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, od, oh, ow = g
    phase = (a % sd * sh + b % sh) * sw + e % sw
    return phase * _area(layers, rows, columns) + (a // sd * rows + b // sh) * columns + e // sw


@helper(inline=False)
def _taps(g: Geometry, layers: int, rows: int, columns: int) -> Array:
    """Return by how many places each tap moves the frame."""
    c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, od, oh, ow = g
    at = np.empty(kd * kh * kw, np.int64)
    for t in range(at.size):
        at[t] = _spot(t // (kw * kh) * dd, t // kw % kh * dh, t % kw * dw, g, layers, rows, columns)
    return at


@helper(inline=False)
def _all_taps(at: Array, frames: int, size: int) -> Array:
    """Return the same for some frames, one behind the other."""
    every = np.empty(frames * at.size, np.int64)
    for i in range(every.size):
        every[i] = i // at.size * size + at[i % at.size]
    return every


@helper(inline=False)
def _places(g: Geometry, layers: int, rows: int, columns: int) -> tuple[Array, Array]:
    """Return where the frame has each row of the image, padding included, and from there each first column."""
    c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, od, oh, ow = g
    down, across = np.empty(d * h, np.int64), np.empty(max(sw, pw + 2), np.int64)
    for i in range(d):
        for j in range(h):
            down[i * h + j] = _spot(i + pd, j + ph, 0, g, layers, rows, columns)
    for e in range(across.size):
        across[e] = _spot(0, 0, e, g, layers, rows, columns)
    return down, across


@helper(inline=False)
def _lay(x: Array, x0: int, g: Geometry, down: Array, across: Array, columns: int, frame: Array, f0: int) -> None:
    """Copy a plane of the image, from x[x0] on, into the frame at frame[f0].

    From its first row to its last: each writes zeros behind itself.
    """
    c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, od, oh, ow = g
    for i in range(U(d * h)):
        s, at = x0 + i * w, f0 + down[i]
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
def _lift(frame: Array, f0: int, g: Geometry, down: Array, across: Array, columns: int, x: Array, x0: int) -> None:
    """Copy the frame at frame[f0] back to a plane of the image."""
    c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, od, oh, ow = g
    for i in range(U(d * h)):
        s, at = x0 + i * w, f0 + down[i]
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
def _line_up(y: Array, y0: int, g: Geometry, rows: int, columns: int, lead: int, line: int) -> None:
    """Copy a plane of the output, from y[y0] on, to a long row from line[lead] on, zeros between its rows."""
    c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, od, oh, ow = g
    for i in range(od):
        for j in range(oh):
            lay(y, y0 + (i * oh + j) * ow, ow, line, lead + (i * rows + j) * columns)


@kernel(threshold=1 << 15)
def _forward(first: int, last: int, g: Geometry, groups: int, x: Array, weight: Array, bias: Array, y: Array) -> None:
    """An item is one group of one image."""
    c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, od, oh, ow = g
    size, length, layers, rows, columns = _sizes(g)
    per, pitch = c // groups, length + SPARE
    at = _all_taps(_taps(g, layers, rows, columns), per, size)
    each = weight.size // at.size // groups
    down, across = _places(g, layers, rows, columns)
    frames, lines = np.zeros(per * size, x.dtype), np.empty(min(_SIDE, each) * pitch, x.dtype)
    for item in range(first, last):
        for ch in range(per):
            _lay(x, (item * per + ch) * d * h * w, g, down, across, columns, frames, ch * size)
        for m in range(0, each, _SIDE):
            f, count = item % groups * each + m, min(_SIDE, each - m)
            for k in range(count):
                fill(lines, k * pitch, length, bias[f + k] if bias.size > 0 else x.dtype.type(0))
            if count == _SIDE:
                weigh_four(frames, at, weight, f * at.size, at.size, lines, 0, pitch, length)
            else:
                for k in range(count):
                    weigh(frames, at, weight, (f + k) * at.size, at.size, lines, k * pitch, pitch, length)
            for k in range(count):
                for i in range(od):
                    for j in range(oh):
                        put(
                            lines,
                            k * pitch + (i * rows + j) * columns,
                            ow,
                            y,
                            (((item * each + m + k) * od + i) * oh + j) * ow,
                        )


@kernel(threshold=1 << 15)
def _data_gradient(
    first: int, last: int, g: Geometry, groups: int, dy: Array, weight: Array, bias: Array, dx: Array
) -> None:
    """An item is one group of one image."""
    c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, od, oh, ow = g
    taps, phases, per = kd * kh * kw, sd * sh * sw, c // groups
    each = weight.size // (per * taps) // groups
    _, _, layers, rows, columns = _sizes(g)
    area, spots = _area(layers, rows, columns), _taps(g, layers, rows, columns)
    down, across = _places(g, layers, rows, columns)
    length = (area - SPARE + STEP - 1) // STEP * STEP
    # A place of the frame gets from the long row what is a tap before it; the gaps of the row are wide enough to be met
    # instead of its start.
    lead = ((kd - 1) * dd // sd * rows + (kh - 1) * dh // sh) * columns + (kw - 1) * dw // sw
    line, frame = lead + length + SPARE, phases * area + STEP
    lines, frames = np.zeros(each * line, dy.dtype), np.empty(min(_SIDE, per) * frame, dy.dtype)
    # The taps of a phase meet, and their weights, in the order: group, phase, channel, filter, tap.
    counts, which, at = (
        np.zeros(phases, np.int64),
        np.empty((phases, taps), np.int64),
        np.empty((phases, each * taps), np.int64),
    )
    for t in range(taps):
        phase = spots[t] // area
        which[phase, counts[phase]] = t
        counts[phase] += 1
    v, size = np.empty_like(weight), per * each * taps
    for phase in range(phases):
        n, before = counts[phase], counts[:phase].sum()
        for i in range(each * n):
            at[phase, i] = i // n * line + lead - spots[which[phase, i % n]] % area
        for group in range(groups):
            to = group * size + per * each * before
            for ch in range(per):
                for m in range(each):
                    for i in range(n):
                        v[to] = weight[((group * each + m) * per + ch) * taps + which[phase, i]]
                        to += 1
    for item in range(first, last):
        for m in range(each):
            _line_up(dy, (item * each + m) * od * oh * ow, g, rows, columns, m * line + lead, lines)
        for ch in range(0, per, _SIDE):
            at_once, own = min(_SIDE, per - ch), item % groups * per + ch
            for k in range(at_once):
                fill(frames, k * frame, phases * area, bias[own + k] if bias.size > 0 else dx.dtype.type(0))
            v0 = item % groups * size
            for phase in range(phases):
                count = each * counts[phase]
                if at_once == _SIDE:
                    weigh_four(lines, at[phase], v, v0 + ch * count, count, frames, phase * area, frame, length)
                else:
                    for k in range(at_once):
                        weigh(
                            lines,
                            at[phase],
                            v,
                            v0 + (ch + k) * count,
                            count,
                            frames,
                            k * frame + phase * area,
                            frame,
                            length,
                        )
                v0 += per * count
            for k in range(at_once):
                _lift(frames, k * frame, g, down, across, columns, dx, (item * per + ch + k) * d * h * w)


@kernel(threshold=1 << 15)
def _weight_gradient(
    first: int, last: int, g: Geometry, groups: int, n: int, filters: int, x: Array, dy: Array, out: Array
) -> None:
    """An item is a group. Some neighbouring ones, and some images, are laid side by side, then multiplied."""
    c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, od, oh, ow = g
    size, length, layers, rows, columns = _sizes(g)
    per, each, pitch = c // groups, filters // groups, length + SPARE
    at = _all_taps(_taps(g, layers, rows, columns), per, size)
    count = at.size
    down, across = _places(g, layers, rows, columns)
    side = max(1, min(16 // per, _TOGETHER // (per * size)))
    x_step, y_step = side * per * size, side * each * pitch
    most = max(1, min(n, _TOGETHER // x_step))
    frames, lines = np.zeros(most * x_step, x.dtype), np.zeros(most * y_step, x.dtype)
    counts = np.zeros(length, np.int8)  # what lies between the rows does not: zero times infinity would show
    for i in range(od):
        for j in range(oh):
            fill(counts, (i * rows + j) * columns, ow, 1)
    fill(out, first * each * count, (last - first) * each * count, x.dtype.type(0))
    for group in range(first, last, side):
        here = min(side, last - group)
        for image in range(0, n, most):
            images = min(most, n - image)
            for i in range(images):
                for k in range(here * per):
                    _lay(
                        x,
                        ((image + i) * c + group * per + k) * d * h * w,
                        g,
                        down,
                        across,
                        columns,
                        frames,
                        i * x_step + k * size,
                    )
                for k in range(here * each):
                    _line_up(
                        dy,
                        ((image + i) * filters + group * each + k) * od * oh * ow,
                        g,
                        rows,
                        columns,
                        i * y_step + k * pitch,
                        lines,
                    )
            for k in range(here):
                x0 = k * per * size
                for m in range(0, each, _SIDE):
                    y0, o0 = (k * each + m) * pitch, ((group + k) * each + m) * count
                    some = min(_SIDE, each - m)
                    for t in range(0, count - 2, 3):
                        if some == _SIDE:
                            dot_block(
                                frames,
                                at,
                                t,
                                x0,
                                x_step,
                                lines,
                                y0,
                                pitch,
                                y_step,
                                counts,
                                length,
                                images,
                                out,
                                o0,
                                count,
                            )
                        else:
                            for f in range(some):
                                dot_three(
                                    frames,
                                    at,
                                    t,
                                    x0,
                                    x_step,
                                    lines,
                                    y0 + f * pitch,
                                    pitch,
                                    y_step,
                                    counts,
                                    length,
                                    images,
                                    out,
                                    o0 + f * count,
                                    count,
                                )
                    for t in range(count - count % 3, count):
                        for f in range(some):
                            dot(
                                frames,
                                at,
                                t,
                                x0,
                                x_step,
                                lines,
                                y0 + f * pitch,
                                pitch,
                                y_step,
                                counts,
                                length,
                                images,
                                out,
                                o0 + f * count,
                                count,
                            )


def _optional(bias: Array | None, dtype: np.dtype[Any]) -> Array:
    return np.empty(0, dtype) if bias is None else flat(bias)


def forward(x: Array, weight: Array, bias: Array | None, y: Array, g: Geometry, groups: int) -> None:
    """Write the convolution of each group of channels with filters of its own; `g` as in :mod:`.columns`."""
    with writable(y) as (out,):
        _forward.run(
            _forward.workers(y.size * weight[0].size),
            x.shape[0] * groups,
            g,
            groups,
            flat(x),
            flat(weight),
            _optional(bias, x.dtype),
            out.reshape(-1),
        )


def data_gradient(dy: Array, weight: Array, bias: Array | None, dx: Array, g: Geometry, groups: int) -> None:
    """Write the gradient with respect to the data (or a transposed convolution, which may have a bias)."""
    with writable(dx) as (out,):
        _data_gradient.run(
            _data_gradient.workers(dy.size * weight[0].size),
            dx.shape[0] * groups,
            g,
            groups,
            flat(dy),
            flat(weight),
            _optional(bias, dy.dtype),
            out.reshape(-1),
        )


def weight_gradient(x: Array, dy: Array, d_weight: Array, g: Geometry, groups: int) -> None:
    """Write the gradient with respect to the filters."""
    with writable(d_weight) as (out,):
        _weight_gradient.run(
            _weight_gradient.workers(dy.size * d_weight[0].size),
            groups,
            g,
            groups,
            x.shape[0],
            d_weight.shape[0],
            flat(x),
            flat(dy),
            out.reshape(-1),
        )
