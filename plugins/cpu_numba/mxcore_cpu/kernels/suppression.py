"""Boxes that overlap with better ones, pairs of boxes, and matches of the best scores."""

from __future__ import annotations

import numpy as np

from ..jit import EXACT, helper, kernel
from ..math import where
from ..typing import Array, Scalar
from ._arrays import dense, writable

__all__ = ["box_iou", "match", "overlaps", "survivors"]


@kernel(threshold=1 << 12, fastmath=EXACT)
def _survivors(
    first: int,
    last: int,
    n: int,
    most: int,
    inclusive: bool,
    threshold: Scalar,
    longer: Scalar,
    sides: Array,
    area: Array,
    classes: Array,
    alive: Array,
    kept: Array,
) -> None:
    zero = threshold - threshold
    classed = classes.size > 0
    for b in range(first, last):
        left, top = sides[0, b], sides[1, b]
        right, bottom = sides[2, b], sides[3, b]
        areas, here, found = area[b], alive[b], 0
        mine = classes[b if classed else 0]
        end = n  # often but few of the first take part
        while end > 0 and not here[end - 1]:
            end -= 1
        for i in range(end):
            if not here[i]:
                continue
            kept[b, i] = 1
            found += 1
            if found == most:
                break
            x0, y0, x1, y1, own = left[i], top[i], right[i], bottom[i], areas[i]
            lefts, tops, rights, bottoms = left[i + 1 : end], top[i + 1 : end], right[i + 1 : end], bottom[i + 1 : end]
            others, rest = areas[i + 1 : end], here[i + 1 : end]
            kinds, kind = (mine[i + 1 : end], mine[i]) if classed else (others, zero)
            for j in range(rest.size):
                width = max(min(x1, rights[j]) - max(x0, lefts[j]) + longer, zero)
                height = max(min(y1, bottoms[j]) - max(y0, tops[j]) + longer, zero)
                common = width * height
                together = own + others[j] - common
                part = where(together <= zero, zero, common / together)
                met = (part > threshold) | (inclusive & (part == threshold))
                rest[j] &= np.uint8(not (met & ((kinds[j] == kind) | (not classed))))


def survivors(
    alive: Array, sides: Array, area: Array, classes: Array | None, meeting: tuple[float, bool, int], most: int | None
) -> Array:
    """Return which boxes (B, N), the best first, none of the better ones suppresses.

    Parameters
    ----------
    alive : ndarray of bool
        Which take part.
    sides : ndarray, (4, B, N)
        Left, top, right, bottom.
    area : ndarray, (B, N)
    classes : ndarray, (B, N), optional
        Boxes of one class suppress one another only.
    meeting : (float, bool, int)
        They overlap by more than this, or (True) by as much; sides are longer by this.
    most : int, optional
        How many are wanted.

    Examples
    --------
    >>> sides = np.array([[[0.0, 0, 5]], [[0, 0, 5]], [[2, 2, 6]], [[2, 3, 6]]])
    >>> area = np.array([[4.0, 6, 1]])
    >>> survivors(np.ones((1, 3), bool), sides, area, None, (0.5, False, 0), None)
    array([[ True, False,  True]])
    """
    threshold, inclusive, longer = meeting
    real, (batch, n) = area.dtype.type, alive.shape
    kept = np.zeros((batch, n), np.uint8)
    _survivors.run(
        _survivors.workers(batch * n * 16),
        batch,
        n,
        -1 if most is None else most,
        inclusive,
        real(threshold),
        real(longer),
        dense(sides),
        dense(area),
        np.empty((1, 0), area.dtype) if classes is None else dense(classes.astype(area.dtype, copy=False)),
        np.array(alive, np.uint8),
        kept,
    )
    return kept.view(np.bool_)


@helper(fastmath=EXACT)
def _sides(a: Array, i: int, centred: bool, half: Scalar) -> tuple[Scalar, Scalar, Scalar, Scalar, Scalar]:
    """Return left, top, right, bottom and area of a box."""
    x, y, z, w = a[i, 0], a[i, 1], a[i, 2], a[i, 3]
    zero = half - half
    if centred:
        if x != x or y != y:  # which the smaller and the larger of two let through: a box without any place
            return zero, zero, zero, zero, zero
        area = zero if z < zero or w < zero else z * w
        z, w = z * half, w * half
        return x - z, y - w, x + z, y + w, area
    width, height = z - x, w - y
    return x, y, z, w, zero if width < zero or height < zero else width * height


@helper(fastmath=EXACT, inline=False)
def overlaps(
    box: tuple[Scalar, Scalar, Scalar, Scalar, Scalar],
    left: Array,
    top: Array,
    right: Array,
    bottom: Array,
    area: Array,
    line: Array,
) -> None:
    """Write how far a box (its sides and its area) overlaps with others."""
    x0, y0, x1, y1, own = box
    zero = line.dtype.type(0)
    for j in range(line.size):
        common = max(min(x1, right[j]) - max(x0, left[j]), zero) * max(min(y1, bottom[j]) - max(y0, top[j]), zero)
        part = common / (own + area[j] - common)
        line[j] = part if common > zero and part == part else zero


@kernel(threshold=1 << 14, fastmath=EXACT)
def _iou(first: int, last: int, m: int, centred: bool, half: Scalar, lhs: Array, rhs: Array, y: Array) -> None:
    other = np.empty((5, m), y.dtype)
    for j in range(m):
        other[0, j], other[1, j], other[2, j], other[3, j], other[4, j] = _sides(rhs, j, centred, half)
    left, top, right, bottom, area = other[0], other[1], other[2], other[3], other[4]
    for i in range(first, last):
        overlaps(_sides(lhs, i, centred, half), left, top, right, bottom, area, y[i])


def box_iou(lhs: Array, rhs: Array, out: Array, *, centred: bool) -> None:
    """Write how far boxes overlap, each with each: (n, 4), (m, 4) -> (n, m); by corners, or by their centres.

    Examples
    --------
    >>> out = np.empty((1, 2))
    >>> box_iou(np.array([[0.0, 0, 2, 2]]), np.array([[0.0, 0, 2, 2], [1, 0, 3, 2]]), out, centred=False)
    >>> out.round(2)
    array([[1.  , 0.33]])
    """
    with writable(out) as (y,):
        _iou.run(
            _iou.workers(out.size), lhs.shape[0], rhs.shape[0], centred, out.dtype.type(0.5), dense(lhs), dense(rhs), y
        )


@kernel(threshold=1 << 14)
def _match(
    first: int,
    last: int,
    n: int,
    m: int,
    most: int,
    limit: Scalar,
    order: Array,
    score: Array,
    rows: Array,
    cols: Array,
) -> None:
    for b in range(first, last):
        rows[b] = -1
        cols[b] = -1
        found = 0
        for z in range(n * m):
            at = order[b, z]
            i, j = at // m, at % m
            if rows[b, i] >= 0 or cols[b, j] >= 0:
                continue
            if not score[b, at] > limit:
                break
            rows[b, i], cols[b, j] = j, i
            found += 1
            if found == most:
                break


def match(data: Array, rows: Array, columns: Array, *, ascend: bool, threshold: float, topk: int) -> None:
    """Write the pairs of the best scores in which no row and no column comes twice: (b, n, m) -> (b, n), (b, m).

    Examples
    --------
    >>> rows, columns = np.empty((1, 2)), np.empty((1, 2))
    >>> match(np.array([[[0.5, 0.9], [0.4, 0.8]]]), rows, columns, ascend=False, threshold=0.0, topk=-1)
    >>> rows, columns
    (array([[1., 0.]]), array([[1., 0.]]))
    """
    b, n, m = data.shape
    real = data.dtype.type
    score = data.reshape(b, n * m)
    score = np.where(np.isnan(score), real(-np.inf), -score if ascend else score)
    order = np.argsort(-score, axis=1, kind="stable")
    with writable(rows, columns) as (x, y):
        _match.run(
            _match.workers(data.size),
            b,
            n,
            m,
            topk + 1 if topk > 0 else -1,
            real(-threshold if ascend else threshold),
            order,
            score,
            x,
            y,
        )
