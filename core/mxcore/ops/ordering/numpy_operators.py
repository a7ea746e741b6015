"""Operators of ``mx.np`` whose results are as long as the values decide: unique elements, places that are not zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool, Int
from ...typing import Array, Call
from ..common.rules import axis_of, size_of

__all__: list[str] = []

_INT64 = np.dtype("int64")


def _codes(xp: Any, rows: Any) -> Any:
    """A number for each row, in the order of the rows: that of their first elements, then of the second ones …"""
    n, width = rows.shape
    codes = xp.zeros((n,), _INT64)
    for j in range(width):
        values, place = xp.unique(rows[:, j], return_inverse=True)
        _, codes = xp.unique(codes * values.shape[0] + place.reshape(-1), return_inverse=True)
        codes = codes.reshape(-1)
    return codes


def _names(more: int) -> list[str]:
    """Names of the outputs, as MXNet's files have them."""
    return [f"output{i}" for i in range(more + 1)] if more else ["output"]


@op(
    "_npi_unique",
    inputs="data",
    return_index=Bool(False),
    return_inverse=Bool(False),
    return_counts=Bool(False),
    axis=Int(None),
    outputs=lambda p: _names(p.return_index + p.return_inverse + p.return_counts),
    grad=None,
)
def unique(k: Call, p: Params, data: Array) -> Any:
    """The elements without repetitions, in order; of an axis, what lies along it.

    Parameters
    ----------
    data : array
    return_index : bool
        Give the first place of each, too.
    return_inverse : bool
        Give for each element of the data which one it is, too, without the data's shape.
    return_counts : bool
        Give how often each comes, too.
    axis : int, optional
        The flattened array unless told.
    """
    xp = k.xp
    if p.axis is None:
        keys = data.reshape(-1)
    else:
        axis = axis_of(p.axis, data.ndim)
        moved = xp.moveaxis(data, axis, 0)
        rest = moved.shape[1:]
        keys = _codes(xp, xp.ascontiguousarray(moved).reshape(moved.shape[0], size_of(rest)))
    values, first, inverse, counts = xp.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    if p.axis is not None:
        values = xp.take(data, first, axis)
    more = ((p.return_index, first), (p.return_inverse, inverse.reshape(-1)), (p.return_counts, counts))
    return (values, *(v for wanted, v in more if wanted))


unique.shape(lambda p, ins, outs: (ins, [None] * len(outs)))
unique.dtype(lambda p, ins, outs: (ins, [ins[0], *[_INT64] * (len(outs) - 1)]))


@op("_npx_nonzero", "_npi_nonzero", inputs="x", grad=None)
def nonzero(k: Call, p: Params, x: Array) -> Array:
    """Places of the elements that are not zero: a row of as many int64 as there are axes for each.

    Parameters
    ----------
    x : array
        A number counts as an array of one.
    """
    found = k.xp.nonzero(x if x.ndim else x.reshape(1))
    return k.xp.stack(found, 1)


nonzero.shape(lambda p, ins, outs: (ins, [None]))
nonzero.dtype(lambda p, ins, outs: (ins, [_INT64]))
