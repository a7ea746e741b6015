"""Offsets of boxes from anchors: what a detector is to predict, and the boxes that it predicted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..jit import kernel
from ..math import exp, log
from ..typing import Array, Scalar
from ._arrays import dense, writable

__all__ = ["decode", "encode"]


@kernel(threshold=1 << 12)
def _encode(
    first: int,
    last: int,
    samples: Array,
    matches: Array,
    anchors: Array,
    refs: Array,
    means: Array,
    stds: Array,
    targets: Array,
    masks: Array,
) -> None:
    real = anchors.dtype.type
    count, half = samples.shape[1], real(0.5)
    for z in range(first, last):
        b, i = z // count, z % count
        match = matches[b, i]
        if samples[b, i] > half and match >= real(0) and match < real(refs.shape[1]):
            m = np.int64(match)
            for k in range(2):
                a0, b0 = anchors[b, i, k], refs[b, m, k]
                a_size, b_size = anchors[b, i, k + 2] - a0, refs[b, m, k + 2] - b0
                moved = (b0 + b_size * half - (a0 + a_size * half)) / a_size
                targets[b, i, k] = (moved - means[k]) / stds[k]
                targets[b, i, k + 2] = (log(b_size / a_size) - means[k + 2]) / stds[k + 2]
                masks[b, i, k] = masks[b, i, k + 2] = real(1)
        else:
            for k in range(4):
                targets[b, i, k] = masks[b, i, k] = real(0)


def encode(
    samples: Array, matches: Array, anchors: Array, refs: Array, means: Array, stds: Array, targets: Array, masks: Array
) -> None:
    """Write offsets (B, N, 4) of the boxes (B, M, 4) that anchors (B, N, 4) are matched with, and which are.

    Parameters
    ----------
    samples, matches : ndarray, (B, N)
        Above 0.5 for anchors that are matched; the numbers of their boxes.
    means, stds : ndarray, (4,)
        Offsets less these, over those.

    Examples
    --------
    >>> anchors, refs = np.array([[[0.0, 0, 2, 2], [0, 0, 1, 1]]]), np.array([[[1.0, 0, 3, 2]]])
    >>> targets, masks = np.empty((1, 2, 4)), np.empty((1, 2, 4))
    >>> encode(np.array([[1.0, 0]]), np.zeros((1, 2)), anchors, refs, np.zeros(4), np.ones(4), targets, masks)
    >>> targets[0, 0], masks[0, :, 0]
    (array([0.5, 0. , 0. , 0. ]), array([1., 0.]))
    """
    with writable(targets, masks) as (x, y):
        ins = (dense(a) for a in (samples, matches, anchors, refs, means, stds))
        _encode.run(_encode.workers(4 * x.size), samples.size, *ins, x, y)


@kernel(threshold=1 << 12)
def _decode(
    first: int, last: int, limit: Scalar, centred: bool, scale: Array, offsets: Array, anchors: Array, out: Array
) -> None:
    real = offsets.dtype.type
    count, half, bounded = offsets.shape[1], real(0.5), limit > offsets.dtype.type(0)
    for z in range(first, last):
        b, i = z // count, z % count
        for k in range(2):
            centre, size = anchors[i, k], anchors[i, k + 2]
            if not centred:
                centre, size = (centre + size) * half, size - centre
            longer = offsets[b, i, k + 2] * scale[k + 2]
            if bounded and longer > limit:
                longer = limit
            centre = offsets[b, i, k] * scale[k] * size + centre
            size = exp(longer) * size * half
            out[b, i, k], out[b, i, k + 2] = centre - size, centre + size


def decode(offsets: Array, anchors: Array, out: Array, *, stds: Sequence[float], clip: float, centred: bool) -> None:
    """Write the corners of boxes (B, N, 4) that lie off anchors (N, 4).

    Parameters
    ----------
    offsets : ndarray, (B, N, 4)
        Moves of the centre in parts of the anchor's sides, and logarithms of how much longer the sides are.
    stds : sequence of four float
        Offsets are multiplied by these.
    clip : float
        Upper bound of the logarithms, if above zero.
    centred : bool
        Whether anchors are centre and sides, not corners.

    Examples
    --------
    >>> out = np.empty((1, 1, 4))
    >>> how = {"stds": (1, 1, 1, 1), "clip": -1.0, "centred": False}
    >>> decode(np.array([[[0.5, 0, 0, 0]]]), np.array([[0.0, 0, 2, 2]]), out, **how)
    >>> out
    array([[[1., 0., 3., 2.]]])
    """
    scale = np.array(stds, offsets.dtype)
    with writable(out) as (y,):
        n = y.size // 4
        _decode.run(
            _decode.workers(8 * y.size), n, offsets.dtype.type(clip), centred, scale, dense(offsets), dense(anchors), y
        )
