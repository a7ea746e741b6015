"""Values of images between their places: bilinear sampling at any grid, its gradients, and bilinear resizing."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..jit import helper, kernel
from ..math import where
from ..typing import Array, Scalar
from ._arrays import flat, writable
from .columns import U, fill

__all__ = [
    "BLOCK",
    "EXACT",
    "affine_grid",
    "bilinear_resize",
    "bilinear_sample",
    "bilinear_sample_backward",
    "index_of",
    "sample",
    "sum_corners",
    "to_data",
]

#: Coordinates are computed step by step: a fused multiply-add would move places off the pixels they name.
EXACT: frozenset[str] = frozenset()
#: Places whose gradients are summed at a time.
BLOCK = 256


# -- where places lie: four neighbours (index, or the number of pixels if outside) and the shares of both axes


@helper(fastmath=EXACT)
def _split(place: Scalar, half: Scalar, one: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """Return the pixel before a place along one axis, its share, and that of the pixel after."""
    at = (place + one) * half
    low = np.floor(at)
    after = at - low
    return low, one - after, after


@helper
def index_of(y: Scalar, x: Scalar, h: int, w: int) -> Scalar:
    """Return the index of a pixel given as floats, or the number of pixels."""
    if y >= 0 and y < h and x >= 0 and x < w:
        return U(np.int64(y) * w + np.int64(x))
    return U(h * w)


@kernel(threshold=1 << 13, fastmath=EXACT)
def _locate(
    first: int,
    last: int,
    places: int,
    h: int,
    w: int,
    half_h: Scalar,
    half_w: Scalar,
    grid: Array,
    corner: Array,
    share: Array,
) -> None:
    one = grid.dtype.type(1)
    for q in range(first, last):
        n, z = q // places, q % places
        x, xa, xb = _split(grid[2 * n * places + z], half_w, one)
        y, ya, yb = _split(grid[(2 * n + 1) * places + z], half_h, one)
        corner[0, q], corner[1, q] = index_of(y, x, h, w), index_of(y, x + one, h, w)
        corner[2, q], corner[3, q] = index_of(y + one, x, h, w), index_of(y + one, x + one, h, w)
        share[0, q], share[1, q], share[2, q], share[3, q] = ya, yb, xa, xb


@helper
def value_at(x: Array, base: int, index: int, pixels: int) -> Scalar:
    """Return a pixel, or zero for one that is outside."""
    v = x[base + min(index, U(pixels - 1))]
    return where(index < U(pixels), v, x.dtype.type(0))


@kernel(threshold=1 << 13)
def sample(
    first: int, last: int, channels: int, places: int, pixels: int, x: Array, corner: Array, share: Array, y: Array
) -> None:
    """Write values of planes at places that `channels` planes share: (planes, pixels) -> (planes, places)."""
    for plane in range(first, last):
        base, at, out = U(plane * pixels), U(plane // channels * places), U(plane * places)
        for z in range(U(places)):
            q = at + z
            top = (
                value_at(x, base, corner[0, q], pixels) * share[2, q]
                + value_at(x, base, corner[1, q], pixels) * share[3, q]
            )
            low = (
                value_at(x, base, corner[2, q], pixels) * share[2, q]
                + value_at(x, base, corner[3, q], pixels) * share[3, q]
            )
            y[out + z] = top * share[0, q] + low * share[1, q]


@kernel(threshold=1 << 12)
def to_data(
    first: int, last: int, channels: int, places: int, pixels: int, dy: Array, corner: Array, share: Array, dx: Array
) -> None:
    """Write the gradients of planes from those of their values at places."""
    fill(dx, first * pixels, (last - first) * pixels, dx.dtype.type(0))
    end = U(pixels)
    for plane in range(first, last):
        base, at, out = U(plane * pixels), U(plane // channels * places), U(plane * places)
        for z in range(U(places)):
            q, g = at + z, dy[out + z]
            top, low = g * share[0, q], g * share[1, q]
            if corner[0, q] < end:
                dx[base + corner[0, q]] += top * share[2, q]
            if corner[1, q] < end:
                dx[base + corner[1, q]] += top * share[3, q]
            if corner[2, q] < end:
                dx[base + corner[2, q]] += low * share[2, q]
            if corner[3, q] < end:
                dx[base + corner[3, q]] += low * share[3, q]


@helper
def sum_corners(
    sums: Array,
    n: int,
    z0: int,
    count: int,
    channels: int,
    places: int,
    pixels: int,
    dy: Array,
    x: Array,
    corner: Array,
) -> None:
    """Write to sums[i] the products of gradients with the i-th pixel around each of some places.

    They are summed over the planes that have the places in common.
    """
    sums[:] = x.dtype.type(0)
    at = U(n * places + z0)
    for c in range(channels):
        base, out = U((n * channels + c) * pixels), U((n * channels + c) * places + z0)
        for z in range(U(count)):
            g, q = dy[out + z], at + z
            sums[0, z] += g * value_at(x, base, corner[0, q], pixels)
            sums[1, z] += g * value_at(x, base, corner[1, q], pixels)
            sums[2, z] += g * value_at(x, base, corner[2, q], pixels)
            sums[3, z] += g * value_at(x, base, corner[3, q], pixels)


@kernel(threshold=1 << 5)
def _to_grid(
    first: int,
    last: int,
    blocks: int,
    channels: int,
    places: int,
    pixels: int,
    half_h: Scalar,
    half_w: Scalar,
    dy: Array,
    x: Array,
    corner: Array,
    share: Array,
    d_grid: Array,
) -> None:
    sums = np.empty((4, BLOCK), x.dtype)
    for item in range(first, last):
        n, z0 = item // blocks, item % blocks * BLOCK
        count = min(BLOCK, places - z0)
        sum_corners(sums, n, z0, count, channels, places, pixels, dy, x, corner)
        at = U(n * places + z0)
        to = U(2 * n * places + z0)
        for z in range(U(count)):
            q = at + z
            d_grid[to + z] = (
                (sums[1, z] - sums[0, z]) * share[0, q] + (sums[3, z] - sums[2, z]) * share[1, q]
            ) * half_w
            d_grid[to + U(places) + z] = (
                (sums[2, z] - sums[0, z]) * share[2, q] + (sums[3, z] - sums[1, z]) * share[3, q]
            ) * half_h


def _located(data: Array, grid: Array) -> tuple[int, Scalar, Scalar, Array, Array]:
    n, (h, w) = data.shape[0], data.shape[2:]
    places = grid.shape[2] * grid.shape[3]
    corner, share = np.empty((4, n * places), np.uint64), np.empty((4, n * places), grid.dtype)
    half_h, half_w = (grid.dtype.type((m - 1) / 2) for m in (h, w))
    _locate(n * places, places, h, w, half_h, half_w, flat(grid), corner, share)
    return places, half_h, half_w, corner, share


def bilinear_sample(data: Array, grid: Array, out: Array) -> None:
    """Write the values of images at places of a grid: (n, c, h, w), (n, 2, *size) -> (n, c, *size).

    Parameters
    ----------
    grid : ndarray
        x and y, from -1 to 1 over an image; outside it is zero.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 BilinearSampler.

    Examples
    --------
    >>> out = np.empty((1, 1, 1, 1))
    >>> bilinear_sample(np.array([[[[1.0, 3.0], [5.0, 7.0]]]]), np.zeros((1, 2, 1, 1)), out)
    >>> out.item()
    4.0
    """
    if not out.size or not data.size:
        out[...] = 0
        return
    places, _, _, corner, share = _located(data, grid)
    n, c, h, w = data.shape
    with writable(out) as (y,):
        sample.run(sample.workers(out.size), n * c, c, places, h * w, flat(data), corner, share, y.reshape(-1))


def bilinear_sample_backward(dy: Array, data: Array, grid: Array, d_data: Array | None, d_grid: Array | None) -> None:
    """Write the gradients of :func:`bilinear_sample`; None for one that is not wanted."""
    if not dy.size or not data.size:
        for d in (d_data, d_grid):
            if d is not None:
                d[...] = 0
        return
    places, half_h, half_w, corner, share = _located(data, grid)
    n, c, h, w = data.shape
    dy = flat(dy)
    if d_data is not None:
        with writable(d_data) as (dx,):
            to_data.run(to_data.workers(dy.size), n * c, c, places, h * w, dy, corner, share, dx.reshape(-1))
    if d_grid is not None:
        blocks = -(-places // BLOCK)
        with writable(d_grid) as (dg,):
            _to_grid(
                n * blocks, blocks, c, places, h * w, half_h, half_w, dy, flat(data), corner, share, dg.reshape(-1)
            )


def affine_grid(theta: Array, size: tuple[int, int]) -> Array:
    """Return the grid (n, 2, *size) of affine maps (n, 6)."""
    h, w = size
    real = theta.dtype.type
    full = np.ones((3, h, w), theta.dtype)
    with np.errstate(all="ignore"):  # one row or column has no ends
        for axis, n in enumerate((w, h)):
            line = np.arange(n, dtype=theta.dtype) * real(np.divide(2, n - 1)) - real(1)
            full[axis] = line if axis == 0 else line[:, None]
        grid: Array = np.matmul(theta.reshape(-1, 2, 3), full.reshape(3, h * w))
        return grid.reshape(-1, 2, h, w)


# ------------------------------------------------------------------------------------------------- resizing


@kernel(threshold=1 << 14)
def _resize(
    first: int,
    last: int,
    h: int,
    w: int,
    oh: int,
    ow: int,
    y0: Array,
    y1: Array,
    ys: Array,
    x0: Array,
    x1: Array,
    xs: Array,
    x: Array,
    y: Array,
) -> None:
    one = x.dtype.type(1)
    line = np.empty(w, x.dtype)
    for row in range(first, last):
        plane, i = row // oh, row % oh
        a, b = U((plane * h + y0[i]) * w), U((plane * h + y1[i]) * w)
        s, out = ys[i], U(row * ow)
        r = one - s
        for z in range(U(w)):
            line[z] = x[a + z] * r + x[b + z] * s
        for z in range(U(ow)):
            y[out + z] = line[x0[z]] * (one - xs[z]) + line[x1[z]] * xs[z]


def _between(n: int, m: int, align_corners: bool, dtype: np.dtype[Any]) -> tuple[Array, Array, Array]:
    """Return how m places lie between n: the one before, the one after, and the share of the latter."""
    at = np.arange(m, dtype=dtype)
    if align_corners:
        at *= dtype.type((n - 1) / (m - 1) if m > 1 else 0)
    else:
        at = np.maximum(dtype.type(n / m) * (at + dtype.type(0.5)) - dtype.type(0.5), dtype.type(0))
    low = np.minimum(at.astype(np.int64), n - 1)
    return low.astype(np.uint64), np.minimum(low + 1, n - 1).astype(np.uint64), at - low.astype(dtype)


def bilinear_resize(data: Array, out: Array, *, align_corners: bool = True) -> None:
    """Write images of another size: (n, c, h, w) -> (n, c, *size).

    Examples
    --------
    >>> out = np.empty((1, 1, 1, 3))
    >>> bilinear_resize(np.array([[[[0.0, 1.0]]]]), out)
    >>> out.ravel()
    array([0. , 0.5, 1. ])
    """
    n, c, h, w = data.shape
    oh, ow = out.shape[2:]
    if (oh, ow) == (h, w):
        out[...] = data
    elif out.size:
        rows, columns = _between(h, oh, align_corners, data.dtype), _between(w, ow, align_corners, data.dtype)
        rows = (rows[0].astype(np.int64), rows[1].astype(np.int64), rows[2])
        with writable(out) as (y,):
            _resize.run(_resize.workers(out.size), n * c * oh, h, w, oh, ow, *rows, *columns, flat(data), y.reshape(-1))
