"""Convolutions over bent windows: matrix products with values between the pixels as columns, image by image."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..jit import helper, kernel
from ..typing import Array, Scalar
from ._arrays import dense, writable
from .columns import U
from .gemm import matmul
from .spatial import BLOCK, EXACT, index_of, sample, sum_corners, to_data

__all__ = ["Windows", "deformable_convolution", "deformable_convolution_backward"]


class Windows(NamedTuple):
    """What windows look like: their size, steps, spread and margin, and the groups of the product and of offsets."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilate: tuple[int, ...]
    pad: tuple[int, ...]
    groups: int
    bends: int


@helper(fastmath=EXACT)
def _along(at: Scalar, n: int, faded: bool, one: Scalar) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """Return the pixel before a place among n (as a float), its share, the next one's, and how fast that grows.

    An image fades to zero within a pixel of its edges, or ends there and holds its last pixel for another one. A place
    beyond has pixels before the first.
    """
    zero, low = one - one, np.floor(at)
    if faded:
        if at > -one and at < n:
            return low, one - (at - low), at - low, one
    elif at >= zero and at < n:
        if low < n - 1:
            return low, one - (at - low), at - low, one
        return low, one, zero, zero
    return -one - one, zero, zero, zero


@kernel(threshold=1 << 12, fastmath=EXACT)
def _locate(
    first: int,
    last: int,
    places: int,
    outs: int,
    width: int,
    columns: int,
    g: tuple[int, ...],
    h: int,
    w: int,
    faded: bool,
    offset: Array,
    corner: Array,
    share: Array,
    slope: Array,
) -> None:
    """Four pixels at places of bent windows, the shares of both axes, how fast those grow; `g`: `Windows`."""
    one = offset.dtype.type(1)
    sy, sx, dy, dx, py, px = g
    for q in range(first, last):
        z, bend = q % places, q // places
        spot, o = z // outs, z % outs
        base = (2 * (bend * (places // outs) + spot)) * outs + o
        regular_y = o // columns * sy - py + spot // width * dy
        regular_x = o % columns * sx - px + spot % width * dx
        y, ya, yb, by = _along(offset[base] + offset.dtype.type(regular_y), h, faded, one)
        x, xa, xb, bx = _along(offset[base + outs] + offset.dtype.type(regular_x), w, faded, one)
        corner[0, q], corner[1, q] = index_of(y, x, h, w), index_of(y, x + one, h, w)
        corner[2, q], corner[3, q] = index_of(y + one, x, h, w), index_of(y + one, x + one, h, w)
        share[0, q], share[1, q], share[2, q], share[3, q] = ya, yb, xa, xb
        slope[0, q], slope[1, q] = by, bx


@kernel(threshold=1 << 5)
def _to_places(
    first: int,
    last: int,
    blocks: int,
    channels: int,
    places: int,
    outs: int,
    pixels: int,
    d_cols: Array,
    x: Array,
    corner: Array,
    share: Array,
    slope: Array,
    mask: Array,
    d_offset: Array,
    d_mask: Array,
) -> None:
    """Gradients of offsets and mask from those of columns."""
    sums = np.empty((4, BLOCK), x.dtype)
    for item in range(first, last):
        bend, z0 = item // blocks, item % blocks * BLOCK
        count = min(BLOCK, places - z0)
        sum_corners(sums, bend, z0, count, channels, places, pixels, d_cols, x, corner)
        at = U(bend * places + z0)
        for z in range(U(count)):
            q = at + z
            a, b, c_, d_ = sums[0, z], sums[1, z], sums[2, z], sums[3, z]
            spot, o = (U(z0) + z) // U(outs), (U(z0) + z) % U(outs)
            to = U(2) * (U(bend * places) + spot * U(outs)) + o
            weight = mask[q] if mask.size else x.dtype.type(1)
            d_offset[to] = ((c_ - a) * share[2, q] + (d_ - b) * share[3, q]) * slope[0, q] * weight
            d_offset[to + U(outs)] = ((b - a) * share[0, q] + (d_ - c_) * share[1, q]) * slope[1, q] * weight
            if d_mask.size:
                d_mask[q] = (a * share[2, q] + b * share[3, q]) * share[0, q] + (
                    c_ * share[2, q] + d_ * share[3, q]
                ) * share[1, q]


class _Image:
    """Room for the places of one image's windows, and the columns that are seen there."""

    def __init__(self, data: Array, offset: Array, windows: Windows) -> None:
        self.windows, self.size = windows, data.shape[2:]
        self.out = offset.shape[2:]
        self.channels, self.pixels = data.shape[1], math.prod(self.size)
        self.outs = math.prod(self.out)
        self.places = math.prod(windows.kernel) * self.outs
        n, real = windows.bends * self.places, data.dtype
        self.corner, self.share = np.empty((4, n), np.uint64), np.empty((4, n), real)
        self.slope, self.weighed = np.empty((2, n), real), np.empty((4, n), real)
        self.columns = np.empty(
            (windows.groups, self.channels // windows.groups * math.prod(windows.kernel), self.outs), real
        )

    def locate(self, offset: Array, mask: Array | None) -> None:
        """Find the places; the shares of both axes stand in `share`, those that are weighed by a mask in `weighed`."""
        w = self.windows
        _locate(
            self.share.shape[1],
            self.places,
            self.outs,
            w.kernel[1],
            self.out[1],
            (*w.stride, *w.dilate, *w.pad),
            *self.size,
            mask is not None,
            offset,
            self.corner,
            self.share,
            self.slope,
        )
        if mask is None:
            self.weighed = self.share
        else:
            np.multiply(self.share[:2], mask, out=self.weighed[:2])
            self.weighed[2:] = self.share[2:]

    def look(self, x: Array) -> Array:
        """The columns of an image."""
        n = self.channels * self.places
        sample.run(
            sample.workers(n),
            self.channels,
            self.channels // self.windows.bends,
            self.places,
            self.pixels,
            x,
            self.corner,
            self.weighed,
            self.columns.reshape(-1),
        )
        return self.columns


def _rows(mask: Array | None, n: int) -> Array | list[None]:
    return [None] * n if mask is None else dense(mask).reshape(n, -1)


def deformable_convolution(
    data: Array, offset: Array, mask: Array | None, weight: Array, bias: Array | None, out: Array, windows: Windows
) -> None:
    """Write a convolution over bent windows: (n, c, h, w) -> (n, filters, *size).

    Parameters
    ----------
    offset : ndarray, (n, bends * 2 * kernel, *size)
        How far each place of each window is moved, down and to the right.
    mask : ndarray, (n, bends * kernel, *size), optional
        What each place counts; with a mask images fade to zero beyond their edges.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 contrib.DeformableConvolution and contrib.ModulatedDeformableConvolution.

    Examples
    --------
    >>> out = np.empty((1, 1, 1, 1))
    >>> plain = Windows((1, 1), (1, 1), (1, 1), (0, 0), 1, 1)
    >>> data, offset = np.arange(2.0).reshape(1, 1, 1, 2), np.array([[[[0.0]], [[0.25]]]])
    >>> deformable_convolution(data, offset, None, np.ones((1, 1, 1, 1)), None, out, plain)
    >>> out.item()
    0.25
    """
    if not out.size or not data.size:
        out[...] = 0
    else:
        n, g = data.shape[0], windows.groups
        image, matrix = _Image(data, offset, windows), dense(weight).reshape(g, weight.shape[0] // g, -1)
        xs, offsets, masks = dense(data).reshape(n, -1), dense(offset).reshape(n, -1), _rows(mask, n)
        with writable(out) as (y,):
            for i in range(n):
                image.locate(offsets[i], masks[i])
                matmul(matrix, image.look(xs[i]), y[i].reshape(g, -1, image.outs))
    if bias is not None:
        np.add(out, bias.reshape(-1, 1, 1), out=out)


def deformable_convolution_backward(
    dy: Array,
    data: Array,
    offset: Array,
    mask: Array | None,
    weight: Array,
    d_data: Array | None,
    d_offset: Array | None,
    d_mask: Array | None,
    d_weight: Array | None,
    d_bias: Array | None,
    windows: Windows,
) -> None:
    """Write the gradients of :func:`deformable_convolution`; None for those that are not wanted."""
    if d_bias is not None:
        np.sum(dy, (0, 2, 3), out=d_bias)
    wanted = [d for d in (d_data, d_offset, d_mask, d_weight) if d is not None]
    if not dy.size or not data.size:
        for d in wanted:
            d[...] = 0
        return
    n, g = data.shape[0], windows.groups
    image, matrix = _Image(data, offset, windows), dense(weight).reshape(g, weight.shape[0] // g, -1)
    xs, offsets, masks, dys = dense(data).reshape(n, -1), dense(offset).reshape(n, -1), _rows(mask, n), dense(dy)
    blocks, channels = -(-image.places // BLOCK), image.channels // windows.bends
    d_cols, none = np.empty_like(image.columns), np.empty(0, data.dtype)
    with writable(*wanted) as lent:
        rest = iter(lent)
        dx, do, dm, dw = (None if d is None else next(rest) for d in (d_data, d_offset, d_mask, d_weight))
        offset_room = np.empty_like(offsets[0]) if do is None else none
        for i in range(n):
            image.locate(offsets[i], masks[i])
            rows = dys[i].reshape(g, -1, image.outs)
            if dw is not None:
                matmul(rows, image.look(xs[i]), dw.reshape(matrix.shape), transpose_b=True, add=i > 0)
            if dx is None and do is None and dm is None:
                continue
            matmul(matrix, rows, d_cols, transpose_a=True)
            if dx is not None:
                to_data.run(
                    to_data.workers(d_cols.size),
                    image.channels,
                    channels,
                    image.places,
                    image.pixels,
                    d_cols.reshape(-1),
                    image.corner,
                    image.weighed,
                    dx[i].reshape(-1),
                )
            if do is not None or dm is not None:
                _to_places(
                    windows.bends * blocks,
                    blocks,
                    channels,
                    image.places,
                    image.outs,
                    image.pixels,
                    d_cols.reshape(-1),
                    xs[i],
                    image.corner,
                    image.share,
                    image.slope,
                    none if masks[i] is None else masks[i],
                    offset_room if do is None else do[i].reshape(-1),
                    none if dm is None else dm[i].reshape(-1),
                )
