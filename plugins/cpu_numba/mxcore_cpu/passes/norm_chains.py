"""The graph pass that makes a normalization with fixed statistics part of the chain behind it: programs that predict.

What a library computes together with a product or convolution (:mod:`mxcore_onednn`) it has taken before.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from mxcore.plugin import GraphF, GraphPass, Match, Pattern, fusing, known

from . import DEVICES

__all__ = ["norm_chains"]

#: Elements from which one loop instead of two is worth the step that makes the scales.
_LEAST = 1 << 17
_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))


def _fits(m: Match) -> bool:
    """Whether who alone reads it is elementwise itself."""
    p, shape, dtype = m.norm.params, m.shape("data"), m.dtype("data")
    return (
        not m.trains(m.norm)
        and not p.output_mean_var
        and known(shape)
        and prod(shape) >= _LEAST
        and dtype in _DTYPES
        and all(m.dtype(name) == dtype for name in ("gamma", "beta", "mean", "var"))
        and len(m.readers) == 1
        and (reader := m.readers[0]).op.facet("expr", reader.params) is not None
        and not reader.op.facet("identity", reader.params)
    )


def _chain(F: GraphF, m: Match) -> Any:
    """The mean goes first, so that a large one costs no more bits than it must."""
    p, rank = m.norm.params, len(m.shape("data"))
    shape = tuple(-1 if i == p.axis % rank else 1 for i in range(rank))
    scale = F.rsqrt(F._plus_scalar(m.var, scalar=p.eps))
    if not p.fix_gamma:
        scale = F.elemwise_mul(scale, m.gamma)
    mean, scale, beta = (F.reshape(v, shape=shape) for v in (m.mean, scale, m.beta))
    return F.broadcast_add(F.broadcast_mul(F.broadcast_sub(m.data, mean), scale), beta)


def norm_chains() -> GraphPass:
    """The pass: `BatchNorm` with fixed statistics, which an elementwise operator alone reads, as arithmetic."""
    pattern = Pattern("(norm := BatchNorm(data, gamma, beta, mean, var))", _chain, _fits)
    return fusing("norm_chains", [pattern], DEVICES, order=1)
