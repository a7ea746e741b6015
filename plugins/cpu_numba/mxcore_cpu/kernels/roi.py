"""Maxima over the bins of regions of images, and their gradient."""

from __future__ import annotations

import numpy as np

from ..jit import EXACT, helper, kernel
from ..typing import Array, Scalar
from ._arrays import flat, writable
from .columns import U

__all__ = ["roi_pool", "roi_pool_backward"]


@helper(fastmath=EXACT)
def _rounded(v: Scalar, scale: Scalar, half: Scalar) -> Scalar:
    """Return v * scale as the nearest whole number, halves away from zero."""
    v = v * scale
    whole = np.trunc(v)
    if abs(v - whole) >= half:
        whole += np.sign(v)
    return whole


@helper(fastmath=EXACT)
def _bin(first: Scalar, last: Scalar, i: Scalar, one: Scalar, count: Scalar, size: int) -> tuple[int, int]:
    """Return (first, last + 1) of a bin along one axis, cut at the image; all but the size are floats of one type."""
    length = max(last - first + one, one) / count
    start, end = np.floor(length * i) + first, np.ceil(length * (i + one)) + first
    return np.int64(min(max(start, 0), size)), np.int64(min(max(end, 0), size))


@helper
def _image(v: Scalar, n: int) -> Scalar:
    """Return the number of a region's image, or -1 if there is none."""
    return np.int64(v) if v >= 0 and v < n else np.int64(-1)


@kernel(threshold=1 << 13, fastmath=EXACT)
def _pool(
    first: int,
    last: int,
    n: int,
    c: int,
    h: int,
    w: int,
    ph: int,
    pw: int,
    scale: Scalar,
    x: Array,
    rois: Array,
    y: Array,
    at: Array,
) -> None:
    real = x.dtype.type
    one, half, rows, columns = real(1), real(0.5), real(ph), real(pw)
    for item in range(first, last):
        r, ch = item // c, item % c
        image = _image(rois[r, 0], n)
        x0, y0 = _rounded(rois[r, 1], scale, half), _rounded(rois[r, 2], scale, half)
        x1, y1 = _rounded(rois[r, 3], scale, half), _rounded(rois[r, 4], scale, half)
        if not (np.isfinite(x0) and np.isfinite(y0) and np.isfinite(x1) and np.isfinite(y1)):
            image = np.int64(-1)
        q, base = U(item * ph * pw), U((max(image, 0) * c + ch) * h * w)
        for i in range(ph):
            a0, a1 = _bin(y0, y1, real(i), one, rows, h)
            for j in range(pw):
                b0, b1 = _bin(x0, x1, real(j), one, columns, w)
                best, where = real(-np.inf), np.int64(-1)
                if image >= 0:
                    for a in range(a0, a1):
                        for b in range(b0, b1):
                            v = x[base + U(a * w + b)]
                            if v > best:
                                best, where = v, a * w + b
                y[q], at[q] = best if where >= 0 else real(0), where
                q += U(1)


@kernel(threshold=1 << 13)
def _gradient(
    first: int,
    last: int,
    n: int,
    c: int,
    pixels: int,
    regions: int,
    bins: int,
    rois: Array,
    at: Array,
    dy: Array,
    dx: Array,
) -> None:
    for ch in range(first, last):
        for i in range(n):
            plane = U((i * c + ch) * pixels)
            for z in range(U(pixels)):
                dx[plane + z] = dx.dtype.type(0)
        for r in range(regions):
            image = _image(rois[r, 0], n)
            if image >= 0:
                plane, q = U((image * c + ch) * pixels), U((r * c + ch) * bins)
                for z in range(U(bins)):
                    if at[q + z] >= 0 and at[q + z] < pixels:
                        dx[plane + U(at[q + z])] += dy[q + z]


def roi_pool(data: Array, rois: Array, out: Array, index: Array, *, scale: float) -> None:
    """Write the maximum of each bin of each region, and its place in the image: (n, c, h, w), (r, 5) -> (r, c, *bins).

    Parameters
    ----------
    rois : ndarray
        Rows of image, x1, y1, x2, y2; the places times `scale` are places of the images.
    index : ndarray
        Int64; -1 where a bin is empty.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ROIPooling; of equal maxima the first is named.

    Examples
    --------
    >>> out, index = np.empty((1, 1, 1, 2)), np.empty((1, 1, 1, 2), np.int64)
    >>> roi_pool(np.array([[[[1.0, 5, 2, 3]]]]), np.array([[0.0, 0, 0, 3, 0]]), out, index, scale=1.0)
    >>> out.ravel(), index.ravel()
    (array([5., 3.]), array([1, 3]))
    """
    n, c, h, w = data.shape
    with writable(out, index) as (y, at):
        _pool.run(
            _pool.workers(out.size * 4),
            rois.shape[0] * c,
            n,
            c,
            h,
            w,
            *out.shape[2:],
            data.dtype.type(scale),
            flat(data),
            np.ascontiguousarray(rois),
            y.reshape(-1),
            at.reshape(-1),
        )


def roi_pool_backward(dy: Array, rois: Array, index: Array, d_data: Array) -> None:
    """Write the gradient of :func:`roi_pool` with respect to the images."""
    n, c, h, w = d_data.shape
    with writable(d_data) as (dx,):
        _gradient.run(
            _gradient.workers(d_data.size + dy.size),
            c,
            n,
            c,
            h * w,
            rois.shape[0],
            dy.shape[2] * dy.shape[3],
            np.ascontiguousarray(rois),
            flat(index),
            flat(dy),
            dx.reshape(-1),
        )
