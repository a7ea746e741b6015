"""Gradients of the operators of :mod:`mxcore.ops.reduction`."""

from __future__ import annotations

from typing import Any

from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool, Int, Shape
from ...stypes import RowSparse
from ...typing import Array, Call, Operators
from ..common.bodies import sum_dtype
from ..common.gradients import given
from ..common.rules import axes_of, fits, reduced, size_of
from ..sparse.operators import dense_of
from .operators import SQUARE_SUM_PARAMS, repeated

__all__: list[str] = []


def _repeats(p: Params, shape: Any) -> float:
    """By what a mean over the axes of a shape divides; NaN where nothing is left."""
    n = size_of(shape[a] for a in axes_of(p.axis, len(shape), p.exclude))
    return max(n - p.ddof, 0) if p.ddof else n


def _spread_grad(F: Operators, p: Params, dy: Any, like_data: Any, like: Any) -> Any:
    if p.mean and p.ddof:
        ones = F._spread(F.ones_like(like_data), like, **given(p, ("axis", "exclude", "mean", "ddof")))
        return F.reshape_like(F.sum(dy * ones, axis=p.axis, exclude=p.exclude), like_data), None
    total = (F.mean if p.mean else F.sum)(dy, axis=p.axis, exclude=p.exclude)
    return F.reshape_like(total, like_data), None


@op(
    "_spread",
    inputs="data like~",
    axis=Shape(None),
    exclude=Bool(False),
    mean=Bool(False),
    ddof=Int(0),
    identity=lambda p: False if p.mean and p.ddof else "elements",
    expr=lambda p: "data / repeats" if p.mean else "data",
    numbers={"repeats": lambda p, ins, out: _repeats(p, out)},
    aligned=lambda p, ins, out: [reduced(out, axes_of(p.axis, len(out), p.exclude), True), None],
    grad=lambda F, p, dy, like_data, like_like: _spread_grad(F, p, dy, like_data, like_like),
)
def spread(k: Call, p: Params, data: Array, like: Array) -> Array:
    """Repeat a reduced array along the axes it was reduced over.

    Parameters
    ----------
    data : array
    like : array
        Only its shape is used: the one before the reduction.
    axis : tuple of int, optional
    exclude : bool
        As in the reduction.
    mean : bool
        Divide by the number of repetitions.
    ddof : int
        Less than that many, as a variance does.
    """
    shape = like.shape
    out = k.xp.empty(shape, data.dtype)
    if p.axis is None and not p.mean:
        out[...] = data
        return out
    axes = axes_of(p.axis, len(shape), p.exclude)
    if p.mean:
        data = data / _repeats(p, shape)
    out[...] = data.reshape(tuple(1 if i in axes else d for i, d in enumerate(shape)))
    return out


@spread.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    data, like = ins
    kept = reduced(like, axes_of(p.axis, len(like), p.exclude), True)
    if size_of(data) != size_of(kept):
        raise ValueError(f"data {data} must have the elements of {like} reduced to {kept}")
    return [like]


spread.dtype(lambda p, ins, outs: ([ins[0], ins[1]], [ins[0]]))


def _second_norm_grads(F: Operators, p: Params, dys: Any, dy_: Any, data: Any, length: Any) -> Any:
    """The gradient is linear in `dy`, and but for `length` in `data`."""
    toward = F.reshape_like(
        F.sum(F._norm_grad(F.ones_like(length), data, length, axis=p.axis) * F._cast_like(dys[0], data), axis=p.axis),
        length,
    )
    toward = F._cast_like(toward, length)
    return toward, F._norm_grad(dy_, dys[0], length, axis=p.axis), -toward * dy_ / (length + (length == 0))


@op("_norm_grad", inputs="dy data length", axis=Shape(None), grad=_second_norm_grads)
def norm_grad(k: Call, p: Params, dy_: Array, data: Array, length: Array) -> Array:
    """The gradient of the Euclidean norm: ``dy * data / length``, zero where the norm is zero.

    Parameters
    ----------
    dy : array
        Gradient of the norm.
    data : array
    length : array
        The norm.
    axis : tuple of int, optional
        As in `norm`.
    """
    kept = reduced(data.shape, axes_of(p.axis, data.ndim), True)
    wide = sum_dtype(data) or data.dtype
    length, dy_ = length.reshape(kept).astype(wide), dy_.reshape(kept).astype(wide)
    out = data / (length + (length == 0))  # before the product with dy: 1 / length may be out of range
    out *= dy_
    return out


@norm_grad.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    dy_, data, length = ins
    kept = reduced(data, axes_of(p.axis, len(data)), True)
    if size_of(dy_) != size_of(kept) or size_of(length) != size_of(kept):
        raise ValueError(f"dy {dy_} and length {length} must have the elements of data {data} reduced to {kept}")
    return [data]


norm_grad.dtype(lambda p, ins, outs: (ins, [ins[1]]))


def _square_sum_grads(F: Operators, p: Params, g: Any, dy: Any, data: Any) -> tuple[Any, Any]:
    total = F.sum(g * data, **given(p, SQUARE_SUM_PARAMS))
    return F.reshape_like(total * 2, dy), repeated(F, p, dy * 2, data) * g


@op(
    "_backward_square_sum",
    inputs="dy data",
    **SQUARE_SUM_PARAMS,
    grad=lambda F, p, dy_, dys, data: _square_sum_grads(F, p, dys[0], dy_, data),
)
def backward_square_sum(k: Call, p: Params, dy: Array, data: Array) -> Array:
    """The gradient of `_square_sum`; of a row_sparse array it has the same rows.

    Parameters
    ----------
    dy : array
        Gradient of the sums.
    data : array
    axis, keepdims, exclude
        As in `_square_sum`.
    """
    dy = dy.reshape(reduced(data.shape, axes_of(p.axis, len(data.shape), p.exclude), True))
    return data * (2 * dy)


@backward_square_sum.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    dy, data = ins
    fits("dy", [dy], [reduced(data, axes_of(p.axis, len(data), p.exclude), p.keepdims)])
    return [data]


def _of_stored(k: Call, p: Params, dy: Any, data: Any) -> Any:
    """Where `data` is row_sparse, for its rows only."""
    dy = dense_of(k.xp, dy)
    if not isinstance(data, RowSparse):
        return backward_square_sum.body(k, p, dy, dense_of(k.xp, data))  # type: ignore[misc]
    dy = dy.reshape(reduced(data.shape, axes_of(p.axis, len(data.shape), p.exclude), True))
    slopes = 2 * (dy[data.indices] if dy.shape[0] == data.shape[0] else dy)
    return RowSparse(data.shape, data.indices.copy(), (data.values * slopes).astype(data.dtype))


backward_square_sum.storage(lambda p, stypes: ["row_sparse" if stypes[1] == "row_sparse" else "default"], _of_stored)
