"""Convolution and deconvolution in one, two and three dimensions: columns of a few images, one product each.

The work is cut into *items*: some whole images, or a range of output positions of one image, so that their
columns fit the cache; items are dealt to the threads and each calls a serial BLAS. A 1x1 convolution with
stride 1 needs no columns. Gradients that nobody wants cost nothing: pass None.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..jit import helper, kernel
from ..typing import Array
from . import grouped
from ._arrays import flat, lines, writable
from .columns import Geometry, fill, gather, move, pack, scatter
from .gemm import address, multiply

__all__ = ["convolution", "convolution_backward", "deconvolution", "deconvolution_backward", "geometry"]

#: Columns of one item take about this many bytes: they are written, then read by the product, while still in
#: the cache.
_ITEM_BYTES = 1 << 19
#: A product with fewer columns than this is slow.
_NARROW = 64
#: Sums of the weight gradient, one per thread, may take this much together.
_SUM_BYTES = 1 << 25


def geometry(
    image: Sequence[int],
    window: Sequence[int],
    stride: Sequence[int],
    pad: Sequence[int],
    dilate: Sequence[int],
    output: Sequence[int],
) -> Geometry:
    """Return the geometry tuple of :mod:`.columns`; `image` is (channels, *size)."""
    channels, *size = image
    lead = 3 - len(size)
    ones, zeros = (1,) * lead, (0,) * lead
    parts = (channels,), ones, size, ones, window, ones, stride, zeros, pad, ones, dilate, ones, output
    return tuple(int(v) for part in parts for v in part)


def _cut(n: int, positions: int, rows: int, itemsize: int, workers: int) -> tuple[int, int]:
    """Return (images per item, positions per item): one of them whole, see the module's first lines."""
    width = max(_NARROW, _ITEM_BYTES // (rows * itemsize))
    width = min(width, max(_NARROW, -(-n * positions // workers)))
    if width < positions:
        pieces = -(-positions // width)
        return 1, -(-positions // pieces)
    if positions >= _NARROW:
        return 1, positions
    return max(1, min(width // positions, n // workers)), positions


@helper
def _facts(g: Geometry, groups: int) -> tuple[int, int, int, int]:
    """Return (weights per filter, output positions, size of a channel, whether columns are the image itself)."""
    c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, od, oh, ow = g
    taps = kd * kh * kw
    pointwise = taps == 1 and sd * sh * sw == 1 and pd + ph + pw == 0 and od * oh * ow == d * h * w
    return c // groups * taps, od * oh * ow, d * h * w, pointwise


@kernel(threshold=1 << 18, blas=True)
def _forward(
    first: int,
    last: int,
    blas: int,
    g: Geometry,
    groups: int,
    n: int,
    images: int,
    width: int,
    x: Array,
    weight: Array,
    bias: Array,
    y: Array,
) -> None:
    rows, positions, size, pointwise = _facts(g, groups)
    filters, c = weight.size // rows, g[0]
    each = filters // groups
    pieces = (positions + width - 1) // width
    zero, biased = x.dtype.type(0), bias.size > 0
    cols = np.empty(0 if pointwise and images == 1 else rows * images * width, x.dtype)
    held = np.empty(0 if images == 1 else each * images * width, x.dtype)
    for item in range(first, last):
        n0, p0 = item // pieces * images, item % pieces * width
        n1, p1 = min(n, n0 + images), min(positions, p0 + width)
        ld = (n1 - n0) * (p1 - p0)
        for group in range(groups):
            f0 = group * each
            x0 = (n0 * c + group * (c // groups)) * size
            if pointwise and n1 - n0 == 1:
                b, b0, ldb = x, x0 + p0, positions
            else:
                b, b0, ldb = cols, 0, ld
                for i in range(n1 - n0):
                    gather(x, x0 + i * c * size, g, 0, rows, p0, p1, cols, i * positions, ld)
            y0 = (n0 * filters + f0) * positions + p0
            if n1 - n0 == 1:
                if biased:
                    for f in range(each):
                        fill(y, y0 + f * positions, ld, bias[f0 + f])
                multiply(
                    blas, False, False, each, ld, rows, weight, f0 * rows, rows, b, b0, ldb, biased, y, y0, positions
                )
            else:
                multiply(blas, False, False, each, ld, rows, weight, f0 * rows, rows, b, b0, ldb, False, held, 0, ld)
                for i in range(n1 - n0):
                    for f in range(each):
                        move(
                            held,
                            f * ld + i * positions,
                            positions,
                            y,
                            y0 + (i * filters + f) * positions,
                            bias[f0 + f] if biased else zero,
                        )


@kernel(threshold=1 << 18, blas=True)
def _weight_gradient(
    first: int,
    last: int,
    blas: int,
    g: Geometry,
    groups: int,
    n: int,
    filters: int,
    images: int,
    width: int,
    parts: int,
    row_parts: int,
    x: Array,
    dy: Array,
    out: Array,
) -> None:
    """Task t sums over part t // row_parts of the items, for part t % row_parts of each filter's weights."""
    all_rows, positions, size, pointwise = _facts(g, groups)
    each, c = filters // groups, g[0]
    pieces = (positions + width - 1) // width
    items = (n + images - 1) // images * pieces
    most = (all_rows + row_parts - 1) // row_parts
    cols = np.empty(0 if pointwise and images == 1 else most * images * width, x.dtype)
    held = np.empty(0 if images == 1 else each * images * width, x.dtype)
    for task in range(first, last):
        part, row_part = task // row_parts, task % row_parts
        r0, r1 = row_part * all_rows // row_parts, (row_part + 1) * all_rows // row_parts
        begin, end = part * items // parts, (part + 1) * items // parts
        for item in range(begin, end):
            n0, p0 = item // pieces * images, item % pieces * width
            n1, p1 = min(n, n0 + images), min(positions, p0 + width)
            ld = (n1 - n0) * (p1 - p0)
            for group in range(groups):
                f0 = group * each
                x0 = (n0 * c + group * (c // groups)) * size
                if n1 - n0 == 1:
                    a, a0, lda = dy, (n0 * filters + f0) * positions + p0, positions
                else:
                    a, a0, lda = held, 0, ld
                    pack(dy, filters, n0, n1, f0, each, positions, held)
                if pointwise and n1 - n0 == 1:
                    b, b0, ldb = x, x0 + r0 * positions + p0, positions
                else:
                    b, b0, ldb = cols, 0, ld
                    for i in range(n1 - n0):
                        gather(x, x0 + i * c * size, g, r0, r1, p0, p1, cols, i * positions, ld)
                multiply(
                    blas,
                    False,
                    True,
                    each,
                    r1 - r0,
                    ld,
                    a,
                    a0,
                    lda,
                    b,
                    b0,
                    ldb,
                    item > begin,
                    out,
                    (part * filters + f0) * all_rows + r0,
                    all_rows,
                )


@kernel(threshold=1 << 18, blas=True)
def _data_gradient(
    first: int,
    last: int,
    blas: int,
    g: Geometry,
    groups: int,
    n: int,
    filters: int,
    images: int,
    width: int,
    channel_parts: int,
    dy: Array,
    weight: Array,
    bias: Array,
    dx: Array,
) -> None:
    """An item is some whole images and, where images are few, one part of each group's channels."""
    all_rows, positions, size, pointwise = _facts(g, groups)
    each, c = filters // groups, g[0]
    per_group, taps = c // groups, all_rows // (c // groups)
    most = (per_group + channel_parts - 1) // channel_parts * taps
    zero, biased = dy.dtype.type(0), bias.size > 0
    cols = np.empty(0 if pointwise and images == 1 else most * images * width, dy.dtype)
    held = np.empty(0 if images == 1 else each * images * width, dy.dtype)
    for item in range(first, last):
        n0, part = item // channel_parts * images, item % channel_parts
        n1 = min(n, n0 + images)
        c0, c1 = part * per_group // channel_parts, (part + 1) * per_group // channel_parts
        rows = (c1 - c0) * taps
        direct = pointwise and n1 - n0 == 1
        for group in range(groups):
            f0 = group * each
            x0 = (n0 * c + group * per_group + c0) * size
            if biased or not direct:
                for i in range(n1 - n0):
                    for ch in range(c1 - c0):
                        fill(dx, x0 + (i * c + ch) * size, size, bias[group * per_group + c0 + ch] if biased else zero)
            for p0 in range(0, positions, width):
                p1 = min(positions, p0 + width)
                ld = (n1 - n0) * (p1 - p0)
                if n1 - n0 == 1:
                    b, b0, ldb = dy, (n0 * filters + f0) * positions + p0, positions
                else:
                    b, b0, ldb = held, 0, ld
                    pack(dy, filters, n0, n1, f0, each, positions, held)
                if direct:
                    m, m0, ldm = dx, x0 + p0, positions
                else:
                    m, m0, ldm = cols, 0, ld
                multiply(
                    blas,
                    True,
                    False,
                    rows,
                    ld,
                    each,
                    weight,
                    f0 * all_rows + c0 * taps,
                    all_rows,
                    b,
                    b0,
                    ldb,
                    direct and biased,
                    m,
                    m0,
                    ldm,
                )
                for i in range(0 if direct else n1 - n0):
                    scatter(cols, i * positions, ld, g, 0, rows, p0, p1, dx, x0 + i * c * size)


def _run_forward(x: Array, weight: Array, bias: Array | None, y: Array, g: Geometry, groups: int) -> None:
    if weight.size == 0:
        y[...] = 0 if bias is None else bias.reshape(-1, *(1,) * (y.ndim - 2))
        return
    n, rows = x.shape[0], weight[0].size
    positions = g[-3] * g[-2] * g[-1]
    workers = _forward.workers(y.size * rows)
    images, width = _cut(n, positions, rows, x.itemsize, workers)
    items = -(-n // images) * -(-positions // width)
    with writable(y) as (out,):
        _forward.run(
            workers,
            items,
            address(x.dtype),
            g,
            groups,
            n,
            images,
            width,
            flat(x),
            flat(weight),
            np.empty(0, x.dtype) if bias is None else flat(bias),
            out.reshape(-1),
        )


def _run_weight_gradient(x: Array, dy: Array, out: Array, g: Geometry, groups: int) -> None:
    if x.size == 0 or dy.size == 0:
        out[...] = 0
        return
    n, filters, rows = x.shape[0], out.shape[0], out[0].size
    positions = g[-3] * g[-2] * g[-1]
    workers = _weight_gradient.workers(dy.size * rows)
    images, width = _cut(n, positions, rows, x.itemsize, workers)
    items = -(-n // images) * -(-positions // width)
    # Threads share the items and add up their sums; where the sums would be large, they share the weights
    # instead.
    parts = max(1, min(workers, items, _SUM_BYTES // max(1, out.nbytes)))
    row_parts = max(1, min(workers // parts, rows))
    with writable(out) as (sums,):
        held = sums if parts == 1 else np.empty((parts, *out.shape), out.dtype)
        _weight_gradient.run(
            workers,
            parts * row_parts,
            address(x.dtype),
            g,
            groups,
            n,
            filters,
            images,
            width,
            parts,
            row_parts,
            flat(x),
            flat(dy),
            held.reshape(-1),
        )
        if parts > 1:
            np.add.reduce(held, axis=0, out=sums)


def _run_data_gradient(dy: Array, weight: Array, bias: Array | None, dx: Array, g: Geometry, groups: int) -> None:
    if dy.size == 0 or weight.size == 0:
        dx[...] = 0 if bias is None else bias.reshape(-1, *(1,) * (dx.ndim - 2))
        return
    n, filters, rows = dx.shape[0], weight.shape[0], weight[0].size
    positions = g[-3] * g[-2] * g[-1]
    workers = _data_gradient.workers(dy.size * rows)
    images, width = _cut(n, positions, rows, dy.itemsize, 1)
    images = max(1, min(images, n // workers))
    batches = -(-n // images)
    channel_parts = 1 if batches >= workers else min(g[0] // groups, -(-workers // batches))
    with writable(dx) as (out,):
        _data_gradient.run(
            workers,
            batches * channel_parts,
            address(dy.dtype),
            g,
            groups,
            n,
            filters,
            images,
            width,
            channel_parts,
            flat(dy),
            flat(weight),
            np.empty(0, dy.dtype) if bias is None else flat(bias),
            out.reshape(-1),
        )


def _sum_filters(dy: Array, out: Array) -> None:
    np.add.reduce(lines(dy), axis=(0, 2), out=out)


def convolution(
    data: Array,
    weight: Array,
    bias: Array | None,
    out: Array,
    *,
    stride: Sequence[int],
    pad: Sequence[int],
    dilate: Sequence[int],
    groups: int = 1,
) -> None:
    """Write a convolution (a cross-correlation, as everywhere in deep learning).

    Parameters
    ----------
    data : ndarray, (n, c, *size)
        One to three axes of size.
    weight : ndarray, (f, c / groups, *kernel)
    bias : ndarray (f,) or None
    out : ndarray, (n, f, *positions)
    stride, pad, dilate : sequence of int, one per axis
    groups : int

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 Convolution, layouts NCW, NCHW and NCDHW.

    Examples
    --------
    >>> out = np.empty((1, 1, 2))
    >>> data, weight = np.array([[[1.0, 2, 4]]]), np.array([[[1.0, -1]]])
    >>> convolution(data, weight, None, out, stride=(1,), pad=(0,), dilate=(1,))
    >>> out
    array([[[-1., -2.]]])
    """
    if out.size == 0:
        return
    g = geometry(data.shape[1:], weight.shape[2:], stride, pad, dilate, out.shape[2:])
    if grouped.fits(g, weight.shape[0], groups):
        grouped.forward(data, weight, bias, out, g, groups)
    else:
        _run_forward(data, weight, bias, out, g, groups)


def convolution_backward(
    dy: Array,
    data: Array,
    weight: Array,
    d_data: Array | None,
    d_weight: Array | None,
    d_bias: Array | None,
    *,
    stride: Sequence[int],
    pad: Sequence[int],
    dilate: Sequence[int],
    groups: int = 1,
) -> None:
    """Write those gradients of :func:`convolution` that are not None, given that of its output."""
    g = geometry(data.shape[1:], weight.shape[2:], stride, pad, dilate, dy.shape[2:])
    deep = grouped.fits(g, weight.shape[0], groups)
    if d_data is not None and d_data.size:
        if deep:
            grouped.data_gradient(dy, weight, None, d_data, g, groups)
        else:
            _run_data_gradient(dy, weight, None, d_data, g, groups)
    if d_weight is not None and d_weight.size:
        if deep:
            grouped.weight_gradient(data, dy, d_weight, g, groups)
        else:
            _run_weight_gradient(data, dy, d_weight, g, groups)
    if d_bias is not None:
        _sum_filters(dy, d_bias)


def deconvolution(
    data: Array,
    weight: Array,
    bias: Array | None,
    out: Array,
    *,
    stride: Sequence[int],
    pad: Sequence[int],
    dilate: Sequence[int],
    groups: int = 1,
) -> None:
    """Write a transposed convolution.

    Parameters are those of :func:`convolution`, with data (n, c, *positions), weight (c, f / groups, *kernel), bias
    (f,) and out (n, f, *size).

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 Deconvolution. It is the data gradient of the convolution that maps `out`
    to `data`.
    """
    if out.size == 0:
        return
    g = geometry(out.shape[1:], weight.shape[2:], stride, pad, dilate, data.shape[2:])
    if grouped.fits(g, weight.shape[0], groups):
        grouped.data_gradient(data, weight, bias, out, g, groups)
    else:
        _run_data_gradient(data, weight, bias, out, g, groups)


def deconvolution_backward(
    dy: Array,
    data: Array,
    weight: Array,
    d_data: Array | None,
    d_weight: Array | None,
    d_bias: Array | None,
    *,
    stride: Sequence[int],
    pad: Sequence[int],
    dilate: Sequence[int],
    groups: int = 1,
) -> None:
    """Write those gradients of :func:`deconvolution` that are not None, given that of its output."""
    if d_data is not None:
        convolution(dy, weight, None, d_data, stride=stride, pad=pad, dilate=dilate, groups=groups)
    if d_weight is not None:
        convolution_backward(
            data, dy, weight, None, d_weight, None, stride=stride, pad=pad, dilate=dilate, groups=groups
        )
    if d_bias is not None:
        _sum_filters(dy, d_bias)
