"""Sums and counts."""

from __future__ import annotations

import numpy as np

from mxcore.plugin import Call, Params

from ..kernels import counting
from ..typing import Array, Outs
from .common import FLOATS, cpu, helpers


@cpu.kernel("sum", dtypes=FLOATS, when=lambda p, data: p.axis is None and not p.keepdims)
def _total(k: Call, p: Params, data: Array) -> Array:
    # What most losses end in. NumPy's ufunc, called at once, warns in this module's name, which is filtered: the
    # reference body's guard against warnings costs as much as a small sum.
    total: Array = np.add.reduce(data.reshape(-1), 0, None, None, True)  # type: ignore[call-overload]  # keepdims
    return total


@cpu.kernel(
    "_np_sum",
    dtypes=FLOATS,
    when=lambda p, data: p.axis is None is p.dtype and p.initial is None and not p.keepdims,
    out=True,
)
def _number(k: Call, p: Params, outs: Outs, data: Array) -> None:
    np.add.reduce(data.reshape(-1), 0, None, outs[0])


@cpu.kernel("_histogram", dtypes=FLOATS, when=lambda p, data, *bins: not bins and p.bin_cnt <= 1 << 16, out=True)
def _histogram(k: Call, p: Params, outs: Outs, data: Array) -> None:
    count, edges = (
        np.empty(n, t) if o is None else o for o, n, t in zip(outs, (p.bin_cnt, p.bin_cnt + 1), (np.int64, data.dtype))
    )
    low, high, edges[...] = helpers("_histogram").even_edges(np, *p.range, p.bin_cnt)
    counting.histogram(data, low, high, edges, count)
