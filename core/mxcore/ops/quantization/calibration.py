"""The threshold at which a distribution loses least by being quantised."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.op import op
from ..._core.params import Params
from ...parameters import Int
from ...typing import Array, Call
from ..common.bodies import silent
from ..common.rules import one
from .ranges import FLOAT32, takes

__all__: list[str] = []

#: What a bin without counts gets of the others, in `smoothed`.
_EPSILON = 1e-4


def _chosen(xp: Any, p: Params, edges: Any, divergences: Any) -> list[Any]:
    """The threshold of the least divergence, the first of equal ones, and that divergence.

    `divergences` are those of all half widths from half the levels on.
    """
    half, middle = p.num_quantized_bins // 2, (edges.shape[0] - 1) // 2
    found = xp.minimum(divergences, np.finfo(FLOAT32).max)  # where no width will do, MXNet says that
    at = xp.argmin(found)
    return [xp.take(edges, at.reshape(1) + (middle + half + 1), 0), xp.take(found, at.reshape(1), 0)]


@op(
    "_contrib_calibrate_entropy",
    inputs="hist hist_edges",
    outputs="threshold divergence",
    num_quantized_bins=Int(255, ge=1),
    grad=None,
    helpers={"chosen": _chosen, "epsilon": lambda: _EPSILON},
)
@silent
def calibrate_entropy(k: Call, p: Params, hist: Array, hist_edges: Array) -> Any:
    """The threshold within which a histogram, quantised, has the least Kullback-Leibler divergence from what it was.

    Parameters
    ----------
    hist : array
        float32, shape (bins,), counts; an odd number of bins around zero, at least `num_quantized_bins`.
    hist_edges : array
        float32, shape (bins + 1,).
    num_quantized_bins : int
        How many numbers there are: 255 for int8, 511 for uint8 (of both signs).

    Returns
    -------
    list of arrays
        Threshold and divergence, each of shape (1,).

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``_contrib_calibrate_entropy``. Of a histogram without counts it is the first
    threshold that was tried, with the greatest divergence of float32.
    """
    xp, levels = k.xp, p.num_quantized_bins
    middle, whole = hist.shape[0] // 2, xp.trunc(hist).astype(np.int64)
    widths = range(levels // 2, middle + 1)
    found = [_divergence(xp, hist, whole, middle - i, middle + i + 1, levels) for i in widths]
    return _chosen(xp, p, hist_edges, xp.asarray(found, FLOAT32))


def _divergence(xp: Any, hist: Any, whole: Any, start: int, stop: int, levels: int) -> float:
    """The divergence of the bins from start to stop, quantised to so many levels, from themselves."""
    n = stop - start
    p = hist[start:stop].copy()
    p[0] = hist[: start + 1].sum()
    p[n - 1] = p[n - 1] + hist[stop:].sum()
    counts = whole[start:stop].copy()
    counts[0] = 0  # what was cut off at the lower end is not quantised
    merged = n // levels
    ends = xp.arange(levels + 1) * merged
    ends[levels] = n
    sums, used = (_between(xp, v, ends) for v in (counts, (counts != 0).astype(np.int64)))
    level = xp.minimum(xp.arange(n) // merged, levels - 1)
    share = xp.where(used > 0, sums.astype(FLOAT32) / xp.maximum(used, 1).astype(FLOAT32), FLOAT32.type(0))
    q = xp.where(p != 0, xp.take(share, level, 0), FLOAT32.type(0))
    p, q = _smoothed(xp, p), _smoothed(xp, q)
    if p is None or q is None:
        return float("inf")
    p, q = p / _total(xp, p), q / _total(xp, q)
    return float(_total(xp, p * xp.log(p / q)).item())


def _between(xp: Any, values: Any, ends: Any) -> Any:
    """Sums of the parts of a vector between ends."""
    before = xp.concatenate([xp.zeros(1, np.int64), xp.cumsum(values, 0)], 0)
    return xp.take(before, ends[1:], 0) - xp.take(before, ends[:-1], 0)


def _total(xp: Any, x: Any) -> Any:
    """The sum, in float32 from left to right: MXNet's order, which decides between thresholds that are nearly equal."""
    return xp.cumsum(x, 0, FLOAT32)[-1]


def _smoothed(xp: Any, x: Any) -> Any:
    """A distribution without zeros, which take of the others; None where those do not have enough."""
    full = x != 0
    n = int(full.sum().item())
    part = _EPSILON * (x.shape[0] - n) / n if n else 1.0
    if part >= 1:
        return None
    return x + xp.where(full, FLOAT32.type(-part), FLOAT32.type(_EPSILON))


@calibrate_entropy.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> Any:
    hist, edges = ins
    if hist is not None and edges is not None and hist != (-1,) and edges != (-1,):
        if len(hist) != 1 or len(edges) != 1 or edges[0] != hist[0] + 1:
            raise ValueError(f"hist is {hist} and hist_edges {edges}; there is one edge more than bins")
    if hist is not None and hist[0] != -1 and (hist[0] % 2 == 0 or hist[0] < p.num_quantized_bins):
        raise ValueError(
            f"hist has {hist[0]} bins; an odd number of at least num_quantized_bins={p.num_quantized_bins} is needed"
        )
    return ins, [one, one]


calibrate_entropy.dtype(takes([[FLOAT32], [FLOAT32]], lambda p, ins: [FLOAT32, FLOAT32]))
