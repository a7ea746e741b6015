"""Reductions."""
from __future__ import annotations

from typing import Any

from .._core.op import op
from .._core.params import Bool, Shape
from ..testing.sample import Sample
from .rules import axes_of, reduced

__all__: list[str] = []

_SAMPLES = [Sample((2, 3, 4)), Sample((2, 3, 4), params={"axis": 1}), Sample((2, 3, 4), params={"axis": (0, 2), "keepdims": True}),
            Sample((2, 3, 4), params={"axis": 1, "exclude": True})]


def _shape(p: Any, ins: list[Any]) -> list[Any]:
    axes = axes_of(p.axis, len(ins[0]), p.exclude)
    return [reduced(ins[0], axes, p.keepdims)]


def _spread_back(F: Any, p: Any, dy: Any, like: Any) -> Any:
    # Without parameters the call is shorter, and losses are full sums.
    return F._spread(dy, like) if p.axis is None else F._spread(dy, like, axis=p.axis, exclude=p.exclude)


@op("sum", "sum_axis", inputs="data", axis=Shape(None), keepdims=Bool(False), exclude=Bool(False), samples=_SAMPLES,
    grad=lambda F, p, dy, like_data: _spread_back(F, p, dy, like_data))
def sum_(k, p, data):
    """Sum over axes.

    Parameters
    ----------
    data : array
    axis : int or tuple of int, optional
        All axes unless told.
    keepdims : bool
        Keep reduced axes with length 1.
    exclude : bool
        Reduce all axes but `axis`.
    """
    if p.axis is None and not p.keepdims:
        return data.sum()
    axes = axes_of(p.axis, data.ndim, p.exclude)
    if not axes:
        return data.copy()
    return data.sum(axes).reshape(reduced(data.shape, axes, p.keepdims))


sum_.shape(_shape)


@op("_spread", inputs="data like~", axis=Shape(None), exclude=Bool(False), samples=[
    Sample((2, 4), (2, 3, 4), params={"axis": 1}, mxnet="internal")],
    grad=lambda F, p, dy, like_data: (F.reshape_like(F.sum(dy, axis=p.axis, exclude=p.exclude), like_data), None))
def spread(k, p, data, like):
    """Repeat a reduced array along the axes it was reduced over.

    Parameters
    ----------
    data : array
    like : array
        Only its shape is used: the one before the reduction.
    axis : tuple of int, optional
    exclude : bool
        As in the reduction.
    """
    shape = like.shape
    out = k.xp.empty(shape, data.dtype)
    if p.axis is None:
        out[...] = data.reshape(())
        return out
    axes = axes_of(p.axis, len(shape), p.exclude)
    out[...] = data.reshape(tuple(1 if i in axes else d for i, d in enumerate(shape)))
    return out


spread.shape(lambda p, ins: [ins[1]])
