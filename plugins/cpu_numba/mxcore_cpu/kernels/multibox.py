"""What each anchor of the single shot detector is to predict, and the boxes that predictions stand for."""

from __future__ import annotations

import numpy as np

from ..jit import EXACT, helper, kernel
from ..math import exp, log
from ..typing import Array, Scalar
from ._arrays import dense, writable
from .suppression import overlaps

__all__ = ["located", "multibox_target"]


@helper(fastmath=EXACT, inline=False)
def _best_free(line: Array, taken: Array) -> tuple[Scalar, int]:
    """Return the first of the largest elements that are not taken, and its place."""
    best, at = line.dtype.type(-2), -1
    for i in range(line.size):
        if line[i] > best and not taken[i]:
            best, at = line[i], i
    return best, at


@helper(fastmath=EXACT, inline=False)
def _match(overlap: Array, many: int, threshold: Scalar, taken: Array, nearest: Array, best: Array) -> int:
    """Match anchors with boxes: those that a box has to itself, then those that overlap enough; return how many."""
    nearest[:] = 0
    best[:] = overlap[0]
    for m in range(1, many):
        line = overlap[m]
        for i in range(line.size):
            better = line[i] > best[i]
            best[i] = line[i] if better else best[i]
            nearest[i] = m if better else nearest[i]
    value, place, done = np.empty(many, overlap.dtype), np.empty(many, np.int64), np.zeros(many, np.uint8)
    for m in range(many):
        value[m], place[m] = _best_free(overlap[m], taken)
    count = 0
    for _ in range(many):
        one = -1
        for m in range(many):
            if not done[m] and place[m] >= 0:
                if one < 0 or value[m] > value[one] or (value[m] == value[one] and place[m] < place[one]):
                    one = m
        if one < 0 or not value[one] > overlap.dtype.type(1e-6):
            break
        at = place[one]
        taken[at], nearest[at], done[one] = 1, one, 1
        count += 1
        for m in range(many):
            if not done[m] and place[m] == at:
                value[m], place[m] = _best_free(overlap[m], taken)
    if threshold > 0:
        for i in range(best.size):
            if best[i] > threshold and not taken[i]:
                taken[i] = 1
                count += 1
    return count


@helper(inline=False)
def _mine(scores: Array, best: Array, taken: Array, limit: Scalar, wanted: int, found: Array) -> None:
    """Write cls_target 0 for the anchors without a box that look least like background."""
    real = best.dtype.type
    n = best.size
    top, total, key = scores[0].copy(), np.zeros(n, best.dtype), np.empty(n, best.dtype)
    for c in range(1, scores.shape[0]):
        line = scores[c]
        for i in range(n):
            top[i] = max(line[i], top[i])
    for c in range(scores.shape[0]):
        line = scores[c]
        for i in range(n):
            total[i] += exp(line[i] - top[i])
    line = scores[0]
    for i in range(n):
        key[i] = exp(line[i] - top[i]) / total[i]
    for i in range(n):
        # What is NaN comes after all others.
        key[i] = key[i] if key[i] == key[i] else real(2)
        if taken[i] or not best[i] < limit:
            key[i] = real(np.inf)
    order = np.argsort(key, kind="mergesort")
    for z in range(min(wanted, n)):
        if key[order[z]] == real(np.inf):
            break
        found[order[z]] = real(0)


@kernel(threshold=1 << 12)
def _target(
    first: int,
    last: int,
    threshold: Scalar,
    ignore: Scalar,
    ratio: Scalar,
    limit: Scalar,
    variances: Array,
    anchor: Array,
    label: Array,
    scores: Array,
    place: Array,
    mask: Array,
    found: Array,
) -> None:
    real = anchor.dtype.type
    count, half = anchor.shape[1], real(0.5)
    overlap = np.empty((label.shape[1], count), anchor.dtype)
    nearest, best, area = np.empty(count, np.int64), np.empty(count, anchor.dtype), np.empty(count, anchor.dtype)
    for i in range(count):
        area[i] = (anchor[2, i] - anchor[0, i]) * (anchor[3, i] - anchor[1, i])
    for b in range(first, last):
        place[b] = real(0)
        mask[b] = real(0)
        found[b] = ignore
        many = 0
        while many < label.shape[1] and label[b, many, 0] != real(-1):
            many += 1
        if many == 0:
            continue
        taken = np.zeros(count, np.uint8)
        for m in range(many):
            x0, y0, x1, y1 = label[b, m, 1], label[b, m, 2], label[b, m, 3], label[b, m, 4]
            box = x0, y0, x1, y1, (x1 - x0) * (y1 - y0)
            overlaps(box, anchor[0], anchor[1], anchor[2], anchor[3], area, overlap[m])
        positive = _match(overlap, many, threshold, taken, nearest, best)
        if ratio > 0:
            wanted = np.int64(real(positive) * ratio)
            _mine(scores[b], best, taken, limit, min(wanted, count - positive), found[b])
        else:
            for i in range(count):
                found[b, i] = real(0)
        for i in range(count):
            if taken[i]:
                m = nearest[i]
                found[b, i] = label[b, m, 0] + real(1)
                for k in range(2):
                    a0, a1 = anchor[k, i], anchor[k + 2, i]
                    b0, b1 = label[b, m, k + 1], label[b, m, k + 3]
                    size = a1 - a0
                    place[b, i, k] = ((b0 + b1) * half - (a0 + a1) * half) / size / variances[k]
                    place[b, i, k + 2] = log((b1 - b0) / size) / variances[k + 2]
                    mask[b, i, k] = mask[b, i, k + 2] = real(1)


def multibox_target(
    anchor: Array,
    label: Array,
    scores: Array,
    place: Array,
    mask: Array,
    found: Array,
    *,
    threshold: float,
    ignore: float,
    ratio: float,
    limit: float,
    variances: tuple[float, ...],
) -> None:
    """Write what anchors (A, 4) are to predict: offsets (n, A, 4) and which count, classes (n, A).

    Parameters
    ----------
    label : ndarray, (n, boxes, 5 or more)
        Class and corners of boxes; the first class of -1 ends those of an image.
    scores : ndarray, (n, classes, A)
        Predicted ones, the first for background.
    threshold : float
        Anchors that overlap with a box by more are to predict it.
    ignore : float
        The class of those that are not to be trained.
    ratio : float
        If above zero, so many for each one with a box are background, those that look least like it.
    limit : float
        They overlap with all boxes by less.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 contrib.MultiBoxTarget on CPUs.

    Examples
    --------
    >>> anchor, label = np.array([[0, 0, 0.5, 0.5], [0.5, 0.5, 1, 1]]), np.array([[[3, 0, 0, 0.5, 0.5]]])
    >>> place, mask, found = np.empty((1, 2, 4)), np.empty((1, 2, 4)), np.empty((1, 2))
    >>> how = {"threshold": 0.5, "ignore": -1.0, "ratio": -1.0, "limit": 0.5, "variances": (0.1, 0.1, 0.2, 0.2)}
    >>> multibox_target(anchor, label, np.zeros((1, 5, 2)), place, mask, found, **how)
    >>> found
    array([[4., 0.]])
    """
    real = anchor.dtype.type
    with writable(place, mask, found) as (x, y, z):
        _target.run(
            _target.workers(z.size * max(label.shape[1], 1)),
            label.shape[0],
            real(threshold),
            real(ignore),
            real(ratio),
            real(limit),
            np.array(variances, anchor.dtype),
            np.ascontiguousarray(anchor.T),
            dense(label),
            dense(scores),
            x,
            y,
            z,
        )


# -- detection ------------------------------------------------------------------------------------------------------


@helper(fastmath=EXACT, inline=False)
def _best_class(scores: Array, best: Array, which: Array) -> None:
    """The largest number of each column but that of the first row, and its row; where all are NaN or low, -1."""
    best[:] = scores.dtype.type(-1)
    which[:] = scores.dtype.type(0)
    for c in range(1, scores.shape[0]):
        line, one = scores[c], scores.dtype.type(c - 1)
        for i in range(line.size):
            better = line[i] > best[i]
            best[i] = line[i] if better else best[i]
            which[i] = one if better else which[i]


@helper(inline=False)
def _best_rows(rows: Array, many: int, most: int) -> None:
    """Sort rows by their second number, the highest first, equal ones as they come: so many as are wanted."""
    score = rows[:many, 1].copy()
    if most < many:
        least = np.partition(score, many - most)[many - most]
        chosen, above = np.empty(most, np.int64), 0
        for i in range(many):
            above += score[i] > least
        level = most - above  # of those with the score of the last one the first
        at = 0
        for i in range(many):
            if score[i] > least or (score[i] == least and level > 0):
                level -= score[i] == least
                chosen[at] = i
                at += 1
        order = chosen[np.argsort(-score[chosen], kind="mergesort")]
    else:
        order = np.argsort(-score, kind="mergesort")
    rows[: order.size] = rows[order]


@kernel(threshold=1 << 12)
def _located(
    first: int,
    last: int,
    least: Scalar,
    clip: bool,
    most: int,
    variances: Array,
    scores: Array,
    offset: Array,
    anchor: Array,
    rows: Array,
    many: Array,
) -> None:
    real = scores.dtype.type
    count, two = anchor.shape[1], real(2)
    best, which = np.empty(count, scores.dtype), np.empty(count, scores.dtype)
    for b in range(first, last):
        _best_class(scores[b], best, which)
        n = 0
        for i in range(count):
            if best[i] > real(-1) and best[i] >= least:
                rows[b, n, 0], rows[b, n, 1] = which[i], best[i]
                for k in range(2):
                    size = anchor[k + 2, i] - anchor[k, i]
                    centre = offset[b, i, k] * variances[k] * size + (anchor[k, i] + anchor[k + 2, i]) / two
                    out = exp(offset[b, i, k + 2] * variances[k + 2]) * size / two
                    low, high = centre - out, centre + out
                    if clip:
                        # What is NaN stays.
                        low = real(0) if low < real(0) else real(1) if low > real(1) else low
                        high = real(0) if high < real(0) else real(1) if high > real(1) else high
                    rows[b, n, k + 2], rows[b, n, k + 4] = low, high
                n += 1
        rows[b, n:] = real(-1)
        many[b] = n
        if most:
            _best_rows(rows[b], n, most)


def located(
    scores: Array,
    offset: Array,
    anchor: Array,
    *,
    threshold: float,
    variances: tuple[float, ...],
    clip: bool,
    most: int,
) -> tuple[Array, Array]:
    """Return rows (n, A, 6) of class, score and corners of boxes, and how many each image has; others are -1.

    Parameters
    ----------
    scores : ndarray, (n, classes, A)
        Of the classes, the first for background, which a row's class does not count.
    offset : ndarray, (n, A, 4)
        Of boxes from their anchors.
    anchor : ndarray, (A, 4)
        Corners.
    threshold : float
        Anchors whose best class has less give no row.
    variances : tuple of four float
        What offsets are multiplied by.
    clip : bool
        Cut boxes at the image.
    most : int
        So many rows of each image, the best first, come first; the others follow as their anchors do. 0: all do.

    Examples
    --------
    >>> scores, anchor = np.array([[[0.0, 0, 0], [0.5, 0.1, 0.9]]]), np.array([[0, 0, 1, 1]] * 3) / 2
    >>> how = {"threshold": 0.2, "variances": (0.1, 0.1, 0.2, 0.2), "clip": True, "most": 3}
    >>> rows, many = located(scores, np.zeros((1, 3, 4)), anchor, **how)
    >>> rows[0, :, 1], many
    (array([ 0.9,  0.5, -1. ]), array([2]))
    """
    real, (n, _, count) = scores.dtype.type, scores.shape
    rows, many = np.empty((n, count, 6), scores.dtype), np.empty(n, np.int64)
    _located.run(
        _located.workers(scores.size),
        n,
        real(threshold),
        clip,
        most,
        np.array(variances, scores.dtype),
        dense(scores),
        dense(offset),
        np.ascontiguousarray(anchor.T),
        rows,
        many,
    )
    return rows, many
