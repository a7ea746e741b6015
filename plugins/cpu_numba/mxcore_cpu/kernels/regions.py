"""Regions of images as sums over pixels: which of them each bin sees, and what they count.

Pixels are rows of channels here: an image (c, h, w) whose bins see groups of channels is (groups, h, w, c / groups), so
that a bin adds up whole rows. What each bin sees stands in a :class:`Taps`, which forward and backward share.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..jit import EXACT, Kernel, helper, kernel
from ..typing import Array, Scalar
from ._arrays import dense, writable
from .layout import transpose

__all__ = ["Bent", "Bins", "aligned", "pooled", "pooled_backward", "rotated", "whole_pixels"]

#: Taps that are in memory at a time.
_MANY = 1 << 21


class Taps(NamedTuple):
    """The pixels of some regions' bins: those of bin i are ``pixel[start[i] : start[i + 1]]``."""

    start: Array
    pixel: Array
    weight: Array


@helper
def _image(v: Scalar, n: int) -> Scalar:
    """Return the number of a region's image, or -1 if there is none."""
    return np.int64(v) if v >= 0 and v < n else np.int64(-1)


@helper(fastmath=EXACT)
def _rounded(v: Scalar, half: Scalar) -> Scalar:
    """Return the nearest whole number, halves away from zero."""
    whole = np.trunc(v)
    return whole + np.sign(v) if abs(v - whole) >= half else whole


@helper(fastmath=EXACT)
def _low_and_share(at: Scalar, n: int, zero: Scalar) -> tuple[int, Scalar]:
    """Return the pixel before a place that is at most a pixel beyond the image, and the share of the next one."""
    at = max(at, zero)
    low = np.int64(at)
    return (n - 1, zero) if low >= n - 1 else (low, at - low)


@helper(fastmath=EXACT, inline=False)
def _band(start: Scalar, each: Scalar, grid: int, n: int, weight: Array) -> tuple[int, int]:
    """Write what the pixels along an axis count for a bin of `grid` places; return the first one, and the end."""
    zero, one, half = each - each, weight.dtype.type(1), weight.dtype.type(0.5)
    count, first, end = weight.dtype.type(grid), n, 0
    # Places far beyond the image are not looked at one by one.
    step = each / count
    i0 = min(max((-one - start) / step - one - half, zero), count)
    i1 = min(max((weight.dtype.type(n) - start) / step + half, zero) + one, count)
    for i in range(np.int64(i0), np.int64(i1)):
        at = start + (weight.dtype.type(i) + half) * each / count
        if at >= -one and at <= n:
            low, share = _low_and_share(at, n, zero)
            high = min(low + 1, n - 1)
            while end <= high:  # ascending places: what is before is done
                weight[end] = zero
                end += 1
            if first > low:
                first = low
            weight[low] += one - share
            weight[high] += share
    return min(first, end), end


@helper(fastmath=EXACT)
def _grid(each: Scalar, ratio: int) -> int:
    """Return how many places a bin has along an axis; none unless its size is a number above zero."""
    if not (each > 0 and each < np.inf):
        return 0
    return ratio if ratio > 0 else np.int64(np.ceil(min(each, 1 << 30)))


@kernel(threshold=1 << 8, fastmath=EXACT)
def _align(
    first: int,
    last: int,
    fill: bool,
    base: int,
    n: int,
    h: int,
    w: int,
    ph: int,
    pw: int,
    groups: int,
    ratio: int,
    scale: Scalar,
    shift: Scalar,
    rois: Array,
    start: Array,
    pixel: Array,
    weight: Array,
) -> None:
    real = rois.dtype.type
    zero, one = real(0), real(1)
    rows, columns = np.zeros((ph, h + 1), rois.dtype), np.zeros((pw, w + 1), rois.dtype)
    ends = np.zeros((ph + pw, 2), np.int64)
    for item in range(first, last):
        r = base + item
        image = _image(rois[r, 0], n)
        places = one
        for axis in range(2):
            low, high = rois[r, 2 - axis] * scale - shift, rois[r, 4 - axis] * scale - shift
            length = high - low
            if shift == zero:
                length = max(length, one)
            bins = ph if axis == 0 else pw
            each = length / real(bins)
            grid = _grid(each, ratio)
            places *= real(grid)
            for b in range(bins):
                at, line = (b, rows[b]) if axis == 0 else (ph + b, columns[b])
                line[:] = zero
                if grid > 0 and abs(low) < np.inf:
                    ends[at, 0], ends[at, 1] = _band(low + real(b) * each, each, grid, h if axis == 0 else w, line)
                else:
                    ends[at, 0], ends[at, 1] = 0, 0
        share = one / max(places, one)
        for i in range(ph):
            for j in range(pw):
                y0, y1, x0, x1 = ends[i, 0], ends[i, 1], ends[ph + j, 0], ends[ph + j, 1]
                row = (item * ph + i) * pw + j
                if image < 0:
                    y1 = y0
                if not fill:
                    start[row + 1] = (y1 - y0) * (x1 - x0)
                    continue
                plane = (image * groups + (i * pw + j if groups > 1 else 0)) * h
                z = start[row]
                for y in range(y0, y1):
                    for x in range(x0, x1):
                        pixel[z] = (plane + y) * w + x
                        weight[z] = rows[i, y] * columns[j, x] * share
                        z += 1


@helper(fastmath=EXACT)
def _four(
    z: int, y: Scalar, x: Scalar, h: int, w: int, plane: int, share: Scalar, fill: bool, pixel: Array, weight: Array
) -> int:
    """Write the four pixels around a place; return where the next ones go."""
    zero, one = share - share, weight.dtype.type(1)
    if not (y >= -one and y <= h and x >= -one and x <= w):
        return z
    if fill:
        low, after = _low_and_share(y, h, zero)
        left, right = _low_and_share(x, w, zero)
        for k in range(4):
            row, column = min(low + k // 2, h - 1), min(left + k % 2, w - 1)
            pixel[z + k] = (plane + row) * w + column
            weight[z + k] = (after if k >= 2 else one - after) * (right if k % 2 else one - right) * share
    return z + 4


@kernel(threshold=1 << 8, fastmath=EXACT)
def _rotate(
    first: int,
    last: int,
    fill: bool,
    base: int,
    n: int,
    h: int,
    w: int,
    ph: int,
    pw: int,
    ratio: int,
    most: int,
    scale: Scalar,
    degree: Scalar,
    rois: Array,
    start: Array,
    pixel: Array,
    weight: Array,
) -> None:
    real = rois.dtype.type
    half, two = real(0.5), real(2)
    for item in range(first, last):
        r = base + item
        image = _image(rois[r, 0], n)
        x, y, width, height = rois[r, 1] * scale, rois[r, 2] * scale, rois[r, 3] * scale, rois[r, 4] * scale
        angle = rois[r, 5] * degree
        if not abs(x + y + width + height + angle) < np.inf:
            image = -1
        width, height = max(width, real(1)), max(height, real(1))
        dy, dx = height / real(ph), width / real(pw)
        rows, columns = min(_grid(dy, ratio), most), min(_grid(dx, ratio), most)
        sin, cos = np.sin(angle), np.cos(angle)
        share = real(1) / max(real(rows) * real(columns), real(1))
        for b in range(ph * pw):
            i, j, row = b // pw, b % pw, item * ph * pw + b
            z = start[row] if fill else 0
            if image >= 0:
                for a in range(rows):
                    v = real(i) * dy - height / two + (real(a) + half) * dy / real(rows)
                    for c in range(columns):
                        u = real(j) * dx - width / two + (real(c) + half) * dx / real(columns)
                        z = _four(
                            z, v * cos - u * sin + y, u * cos + v * sin + x, h, w, image * h, share, fill, pixel, weight
                        )
            if not fill:
                start[row + 1] = z


@kernel(threshold=1 << 8, fastmath=EXACT)
def _whole(
    first: int,
    last: int,
    fill: bool,
    base: int,
    n: int,
    h: int,
    w: int,
    bins: int,
    groups: int,
    scale: Scalar,
    rois: Array,
    start: Array,
    pixel: Array,
    weight: Array,
) -> None:
    real = rois.dtype.type
    zero, one, half = real(0), real(1), real(0.5)
    ends = np.zeros((2, bins, 2), np.int64)
    for item in range(first, last):
        r = base + item
        image = _image(rois[r, 0], n)
        for axis in range(2):
            low = _rounded(rois[r, 2 - axis], half) * scale
            length = max((_rounded(rois[r, 4 - axis], half) + one) * scale - low, real(0.1))
            each, size = length / real(bins), real(h if axis == 0 else w)
            for b in range(bins):
                a, e = np.floor(real(b) * each + low), np.ceil((real(b) + one) * each + low)
                a, e = a if a == a else zero, e if e == e else zero
                ends[axis, b, 0], ends[axis, b, 1] = (
                    np.int64(min(max(a, zero), size)),
                    np.int64(min(max(e, zero), size)),
                )
        for b in range(bins * bins):
            i, j, row = b // bins, b % bins, item * bins * bins + b
            y0, y1, x0, x1 = ends[0, i, 0], ends[0, i, 1], ends[1, j, 0], ends[1, j, 1]
            area = max(y1 - y0, 0) * max(x1 - x0, 0)
            if image < 0:
                area = 0
            if not fill:
                start[row + 1] = area
            elif area > 0:
                group = min(i * groups // bins, groups - 1) * groups + min(j * groups // bins, groups - 1)
                z, plane = start[row], (image * groups * groups + group) * h
                for y in range(y0, y1):
                    for x in range(x0, x1):
                        pixel[z], weight[z] = (plane + y) * w + x, one / real(area)
                        z += 1


@helper(fastmath=EXACT)
def _bent_axis(
    roi: Array, axis: int, b: int, bins: int, samples: int, scale: Scalar, moved: Scalar
) -> tuple[Scalar, Scalar, Scalar]:
    """Return where the places of a bin begin along an axis, how far they are apart, and the region's length."""
    real = roi.dtype.type
    half, one = real(0.5), real(1)
    low = _rounded(roi[2 - axis], half) * scale - half
    length = max((_rounded(roi[4 - axis], half) + one) * scale - half - low, real(0.1))
    each = length / real(bins)
    return real(b) * each + low + moved * length, each / real(samples), length


@helper(fastmath=EXACT)
def _seen(at: Scalar, n: int, half: Scalar) -> Scalar:
    """Return whether a place is on the image."""
    return at >= -half and at <= n - half


@kernel(threshold=1 << 8, fastmath=EXACT)
def _bend(
    first: int,
    last: int,
    fill: bool,
    base: int,
    n: int,
    h: int,
    w: int,
    bins: int,
    groups: int,
    parts: int,
    samples: int,
    scale: Scalar,
    std: Scalar,
    rois: Array,
    trans: Array,
    start: Array,
    pixel: Array,
    weight: Array,
) -> None:
    """The taps of (region, class) pairs; `trans` is (pairs, 2, parts, parts), or empty."""
    real = rois.dtype.type
    zero, one, half = real(0), real(1), real(0.5)
    classes = trans.shape[0] // max(rois.shape[0], 1) if trans.size else 1
    for item in range(first, last):
        q = base + item
        r = q // classes
        image = _image(rois[r, 0], n)
        for b in range(bins * bins):
            i, j, row = b // bins, b % bins, item * bins * bins + b
            up, right = zero, zero
            if trans.size:
                u, v = i * parts // bins, j * parts // bins
                right, up = trans[q, 0, u, v] * std, trans[q, 1, u, v] * std
            y0, dy, _ = _bent_axis(rois[r], 0, i, bins, samples, scale, up)
            x0, dx, _ = _bent_axis(rois[r], 1, j, bins, samples, scale, right)
            count = 0
            for k in range(samples * samples):
                count += _seen(y0 + real(k // samples) * dy, h, half) and _seen(x0 + real(k % samples) * dx, w, half)
            if image < 0:
                count = 0
            if not fill:
                start[row + 1] = 4 * count
                continue
            if count == 0:
                continue
            group = min(i * groups // bins, groups - 1) * groups + min(j * groups // bins, groups - 1)
            z, plane = start[row], (image * groups * groups + group) * h
            for k in range(samples * samples):
                y, x = y0 + real(k // samples) * dy, x0 + real(k % samples) * dx
                if _seen(y, h, half) and _seen(x, w, half):
                    y, x = min(max(y, zero), real(h - 1)), min(max(x, zero), real(w - 1))
                    z = _four(z, y, x, h, w, plane, one / real(count), True, pixel, weight)


# -- sums over taps -------------------------------------------------------------------------------------------------


@kernel(threshold=1 << 14)
def _gather(
    first: int,
    last: int,
    base: int,
    bins: int,
    classes: int,
    x: Array,
    start: Array,
    pixel: Array,
    weight: Array,
    y: Array,
) -> None:
    """Items are pairs of region and class, each with channels of its own: (pixels, channels) -> (pairs, own, bins)."""
    own = y.shape[1]
    total = np.empty((bins, own), x.dtype)
    for item in range(first, last):
        q = base + item
        c0 = q % classes * own
        for b in range(bins):
            line = total[b]
            line[:] = x.dtype.type(0)
            for z in range(start[item * bins + b], start[item * bins + b + 1]):
                share, seen = weight[z], x[pixel[z], c0 : c0 + own]
                for c in range(own):
                    line[c] += share * seen[c]
        for c in range(own):
            for b in range(bins):
                y[q, c, b] = total[b, c]


@kernel(threshold=1 << 14)
def _scatter(
    first: int,
    last: int,
    q0: int,
    q1: int,
    bins: int,
    classes: int,
    dy: Array,
    start: Array,
    pixel: Array,
    weight: Array,
    dx: Array,
) -> None:
    """Items are channels; adds what pairs from q0 on give to dx."""
    own = dy.shape[1]
    mine = np.empty((bins, own), dx.dtype)
    for q in range(q0, q1):
        base = q % classes * own
        c0, c1 = max(first - base, 0), min(last - base, own)
        if c0 >= c1:
            continue
        for c in range(c0, c1):
            for b in range(bins):
                mine[b, c] = dy[q, c, b]
        for b in range(bins):
            line, row = mine[b, c0:c1], (q - q0) * bins + b
            for z in range(start[row], start[row + 1]):
                share, to = weight[z], dx[pixel[z], base + c0 : base + c1]
                for c in range(c1 - c0):
                    to[c] += share * line[c]


@kernel(threshold=1 << 6, fastmath=EXACT)
def _moves(
    first: int,
    last: int,
    n: int,
    h: int,
    w: int,
    bins: int,
    groups: int,
    parts: int,
    samples: int,
    scale: Scalar,
    std: Scalar,
    rois: Array,
    trans: Array,
    dy_: Array,
    x: Array,
    d_trans: Array,
) -> None:
    """Gradients of moves; items are pairs of region and class, x (pixels, channels), dy_ (pairs, own, bins * bins)."""
    real = rois.dtype.type
    zero, half = real(0), real(0.5)
    classes, own = trans.shape[0] // rois.shape[0], dy_.shape[1]
    for q in range(first, last):
        d_trans[q] = zero
        r, c0 = q // classes, q % classes * own
        image = _image(rois[r, 0], n)
        if image < 0:
            continue
        for b in range(bins * bins):
            i, j = b // bins, b % bins
            u, v = i * parts // bins, j * parts // bins
            y0, dy, height = _bent_axis(rois[r], 0, i, bins, samples, scale, trans[q, 1, u, v] * std)
            x0, dx, width = _bent_axis(rois[r], 1, j, bins, samples, scale, trans[q, 0, u, v] * std)
            group = min(i * groups // bins, groups - 1) * groups + min(j * groups // bins, groups - 1)
            plane = (image * groups * groups + group) * h
            count, by_x, by_y = 0, zero, zero
            for k in range(samples * samples):
                y, at = y0 + real(k // samples) * dy, x0 + real(k % samples) * dx
                if not (_seen(y, h, half) and _seen(at, w, half)):
                    continue
                count += 1
                y, at = min(max(y, zero), real(h - 1)), min(max(at, zero), real(w - 1))
                top, left = np.int64(np.floor(y)), np.int64(np.floor(at))
                low, right = np.int64(np.ceil(y)), np.int64(np.ceil(at))
                after, beside = y - real(top), at - real(left)
                for c in range(own):
                    g = dy_[q, c, b]
                    p00, p01 = x[(plane + top) * w + left, c0 + c], x[(plane + top) * w + right, c0 + c]
                    p10, p11 = x[(plane + low) * w + left, c0 + c], x[(plane + low) * w + right, c0 + c]
                    by_x += g * ((p01 - p00) * (real(1) - after) + (p11 - p10) * after)
                    by_y += g * ((p10 - p00) * (real(1) - beside) + (p11 - p01) * beside)
            if count > 0:
                d_trans[q, 0, u, v] += by_x * std * width / real(count)
                d_trans[q, 1, u, v] += by_y * std * height / real(count)


# -- the operators --------------------------------------------------------------------------------------------------


class Bins:
    """The bins of regions of images, or of pairs of a region and a class of channels.

    Attributes
    ----------
    size : (int, int, int)
        Number, height and width of the images.
    count : int
        Bins of each item.
    groups : int
        Groups of channels that bins see.
    classes : int
        Items of each region: each has channels of its own.
    """

    def __init__(
        self,
        find: Kernel,
        size: tuple[int, int, int],
        count: int,
        groups: int,
        numbers: tuple[Any, ...],
        rois: Array,
        *more: Array,
        classes: int = 1,
    ) -> None:
        self.size, self.count, self.groups, self.classes = size, count, groups, classes
        self._find, self._numbers, self._arrays = find, numbers, (dense(rois), *more)
        self._items, self._real = rois.shape[0] * classes, rois.dtype

    def parts(self) -> Iterator[tuple[int, int, Taps]]:
        """First and last of some items, and the taps of their bins; as many items as memory in bounds allows."""
        ends = np.zeros(self._items * self.count + 1, np.int64)
        self._run(False, 0, self._items, Taps(ends, np.empty(0, np.int64), np.empty(0, self._real)))
        np.cumsum(ends, out=ends)
        first = 0
        while first < self._items:
            z = ends[first * self.count]
            last = max(first + 1, (int(np.searchsorted(ends, z + _MANY, "right")) - 1) // self.count)
            last = min(last, self._items)
            start = ends[first * self.count : last * self.count + 1] - z
            taps = Taps(start, np.empty(start[-1], np.int64), np.empty(start[-1], self._real))
            self._run(True, first, last, taps)
            yield first, last, taps
            first = last

    def _run(self, fill: bool, first: int, last: int, taps: Taps) -> None:
        items = last - first
        workers = self._find.workers(items * self.count)
        self._find.run(workers, items, fill, first, *self.size, *self._numbers, *self._arrays, *taps)


def aligned(
    rois: Array,
    size: tuple[int, int, int],
    bins: tuple[int, int],
    *,
    scale: float,
    ratio: int,
    shift: float,
    groups: int,
) -> Bins:
    """Bins of regions whose values are averaged over places between the pixels, along the axes."""
    real = rois.dtype.type
    return Bins(_align, size, bins[0] * bins[1], groups, (*bins, groups, ratio, real(scale), real(shift)), rois)


def rotated(
    rois: Array, size: tuple[int, int, int], bins: tuple[int, int], *, scale: float, ratio: int, most: int
) -> Bins:
    """Bins of rotated regions whose values are averaged over at most `most` places between the pixels an axis."""
    real = rois.dtype.type
    return Bins(_rotate, size, bins[0] * bins[1], 1, (*bins, ratio, most, real(scale), real(np.pi / 180)), rois)


def whole_pixels(rois: Array, size: tuple[int, int, int], bins: int, *, scale: float, groups: int) -> Bins:
    """Bins of regions whose pixels are averaged, each over a group of channels."""
    return Bins(_whole, size, bins * bins, groups * groups, (bins, groups, rois.dtype.type(scale)), rois)


class Bent(Bins):
    """Bins of regions that are moved, whose values are averaged over places, each over a group of channels."""

    def __init__(
        self,
        rois: Array,
        trans: Array | None,
        size: tuple[int, int, int],
        bins: int,
        *,
        scale: float,
        groups: int,
        parts: int,
        samples: int,
        std: float,
    ) -> None:
        real, classes = rois.dtype.type, 1 if trans is None else trans.shape[1] // 2
        shape = (0, 2, 1, 1) if trans is None else (rois.shape[0] * classes, 2, parts, parts)
        self.trans = np.empty(shape, rois.dtype) if trans is None else dense(trans).reshape(shape)
        self.numbers = bins, groups, parts, samples, real(scale), real(std)
        super().__init__(_bend, size, bins * bins, groups * groups, self.numbers, rois, self.trans, classes=classes)

    def moves(self, dy: Array, data: Array, d_trans: Array) -> None:
        """Write the gradient by moves."""
        items, rois = self._items, self._arrays[0]
        own = dy.shape[1] // self.classes
        with writable(d_trans) as (d,):
            _moves.run(
                _moves.workers(dy.size),
                items,
                *self.size,
                *self.numbers,
                rois,
                self.trans,
                dense(dy).reshape(items, own, self.count),
                _rows(data, self.groups),
                d.reshape(self.trans.shape),
            )


def _rows(data: Array, groups: int) -> Array:
    """Images (n, c, h, w), whose channels are dealt to groups in turn, as rows of channels: (pixels, c / groups)."""
    n, c, h, w = data.shape
    x = np.empty((n, groups * h * w, c // groups), data.dtype)
    transpose(dense(data).reshape(n, c // groups, groups * h * w), (0, 2, 1), x)
    return x.reshape(n * groups * h * w, c // groups)


def pooled(data: Array, bins: Bins, out: Array) -> None:
    """Write the sum of what each bin sees: (n, c, h, w) -> (regions, c / groups, \\*bins).

    Examples
    --------
    >>> image, out = np.arange(16.0).reshape(1, 1, 4, 4), np.empty((1, 1, 2, 2))
    >>> bins = aligned(np.array([[0.0, 0, 0, 2, 2]]), (1, 4, 4), (2, 2), scale=1, ratio=-1, shift=0, groups=1)
    >>> pooled(image, bins, out)
    >>> out[0, 0]
    array([[2.5, 3.5],
           [6.5, 7.5]])
    """
    x = _rows(data, bins.groups)
    with writable(out) as (y,):
        y = y.reshape(-1, x.shape[1] // bins.classes, bins.count)
        for first, last, taps in bins.parts():
            work = _gather.workers(len(taps.pixel) * y.shape[1])
            _gather.run(work, last - first, first, bins.count, bins.classes, x, *taps, y)


def pooled_backward(dy: Array, bins: Bins, d_data: Array) -> None:
    """Write the gradient of :func:`pooled` by the images."""
    n, c, h, w = d_data.shape
    own = c // bins.groups
    d = np.zeros((n * bins.groups * h * w, own), d_data.dtype)
    g = dense(dy).reshape(-1, own // bins.classes, bins.count)
    for first, last, taps in bins.parts():
        work = _scatter.workers(len(taps.pixel) * own)
        _scatter.run(work, own, first, last, bins.count, bins.classes, g, *taps, d)
    with writable(d_data) as (dx,):
        rows = d.reshape(n, bins.groups * h * w, own)
        transpose(rows, (0, 2, 1), dx.reshape(n, own, bins.groups * h * w))
