"""Sorting."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mxcore.plugin import Call, Params, Spec

from ..kernels import ordering
from ..typing import Array, Outs
from .common import FLOATS, cpu


def _last(p: Params, out: Array) -> Array:
    """An output with the axis of `topk` last, where the kernel has its rows."""
    return out.reshape(1, -1) if p.axis is None else np.moveaxis(out, p.axis, -1)


#: Rows shorter than this NumPy sorts as fast without keys.
_LONG_ROWS = 16


def _length(p: Params, data: Array | Spec) -> int:
    return data.size if p.axis is None else data.shape[p.axis]


def _sortable(p: Params, data: Spec) -> bool:
    return data.dtype == np.float32 and _length(p, data) >= _LONG_ROWS and 0 < data.size < 1 << 32


def _place(p: Params, outs: Outs, found: Sequence[Array], shape: tuple[int, ...]) -> None:
    """Write rows to outputs, of any dtype, that have the axis where the data had it."""
    for out, rows in zip(outs, found):
        if out is not None:
            np.copyto(_last(p, out), rows.reshape(shape), casting="unsafe")


@cpu.kernel("sort", when=_sortable, out=True)
def _sort(k: Call, p: Params, outs: Outs, data: Array) -> None:
    values, places, lead = ordering.order(data, p.axis, p.is_ascend, outs[0] is not None)
    _place(p, outs, (values, places), (*lead, _length(p, data)))


@cpu.kernel("argsort", when=_sortable, out=True)
def _argsort(k: Call, p: Params, outs: Outs, data: Array) -> None:
    _, places, lead = ordering.order(data, p.axis, p.is_ascend, False)
    _place(p, outs, (places,), (*lead, _length(p, data)))


@cpu.kernel(
    "topk",
    dtypes=FLOATS,
    when=lambda p, data: data.size > 0 and ordering.few(p.k, _length(p, data)) or _sortable(p, data),
    out=True,
)
def _topk(k: Call, p: Params, outs: Outs, data: Array) -> None:
    n = _length(p, data)
    count = p.k if p.k > 0 else n
    if ordering.few(count, n):
        values, places, lead = ordering.first_in_order(data, count, p.axis, p.is_ascend)
    else:
        values, places, lead = ordering.order(data, p.axis, p.is_ascend)
        values, places = values[:, :count], places[:, :count]
    if p.ret_typ == "mask":
        outs[0].fill(0)
        np.put_along_axis(_last(p, outs[0]), places.reshape(*lead, count), 1, -1)
        return
    _place(p, outs, (places,) if p.ret_typ == "indices" else (values, places), (*lead, count))
