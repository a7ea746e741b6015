"""How many values fall into each of some bins of one width."""

from __future__ import annotations

import numpy as np

from ..jit import kernel
from ..typing import Array
from ._arrays import flat

__all__ = ["histogram"]


@kernel(threshold=1 << 15)
def _count(first: int, last: int, chunks: int, low: float, high: float, x: Array, edges: Array, counts: Array) -> None:
    """An item is one part of the data; each has counts of its own."""
    n = counts.shape[1]
    for chunk in range(first, last):
        own = counts[chunk]
        own[:] = 0
        for i in range(chunk * x.size // chunks, (chunk + 1) * x.size // chunks):
            v = x[i]
            if v >= low and v <= high:
                at = min(np.int64((np.float64(v) - low) * n / (high - low)), n - 1)
                at -= v < edges[at] and at > 0
                at += v >= edges[at + 1] and at != n - 1
                own[at] += 1


def histogram(data: Array, low: float, high: float, edges: Array, counts: Array) -> None:
    """Count the values in bins of one width from `low` to `high`, the last with its right edge.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``_histogram``, which looks at the edges in the type of the data.
    """
    workers = _count.workers(data.size)
    found = np.empty((workers, counts.size), np.int64)
    _count.run(workers, workers, workers, float(low), float(high), flat(data), flat(edges), found)
    np.add.reduce(found, axis=0, out=counts)
