"""Picking entries by index arrays and masks: take, Embedding, where and kin."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.infer import known, merge_shape
from .._core.op import op
from ..parameters import Bool, DType, Enum, Int
from ..stypes import add_rows, merge_rows
from .rules import axis_of, first_dtype, fits, size_of

__all__ = ["within"]


def within(xp: Any, indices: Any, n: int, mode: str) -> Any:
    """Indices as int64 in [0, n): clipped, wrapped, or checked."""
    i = indices.astype(np.int64)
    if mode == "wrap":
        return i % max(n, 1)
    if mode == "clip":
        return xp.clip(i, 0, max(n - 1, 0))
    if i.size:
        low, high = i.min().item(), i.max().item()
        if low < 0 or high >= n:
            raise IndexError(f"an index is out of range [0, {n}): they lie in [{low}, {high}]")
    return i


_TAKE = {"axis": Int(0), "mode": Enum("clip raise wrap", "clip")}


@op(
    "take",
    inputs="a indices",
    **_TAKE,
    grad=lambda F, p, dy, like_a, indices: (F._backward_take(dy, indices, like_a, axis=p.axis, mode=p.mode), None),
)
def take(k, p, a, indices):
    """Entries along an axis.

    Parameters
    ----------
    a : array
    indices : array
        Of any shape, which takes the place of the axis.
    axis : int
    mode : {'clip', 'raise', 'wrap'}
        What becomes of an index out of range: the nearest valid one, an error, or the index modulo the length.
    """
    axis = axis_of(p.axis, a.ndim)
    return k.xp.take(a, _places(k.xp, p, indices, a.shape[axis]), axis)


def _places(xp: Any, p: Any, indices: Any, n: int) -> Any:
    if n == 0 and size_of(indices.shape):
        raise IndexError("cannot take from an axis of length 0")
    return within(xp, indices, n, p.mode)


def _taken(p: Any, a: Any, indices: Any) -> Any:
    """The shape of what is taken: that of the indices in the place of the axis."""
    axis = axis_of(p.axis, len(a))
    return a[:axis] + indices + a[axis + 1 :]


@take.shape
def _(p, ins, outs):
    a, i = ins
    if a is None or i is None:
        return ins, outs
    return ins, [_taken(p, a, i)]


take.dtype(first_dtype)


@op(
    "_backward_take",
    inputs="dy indices like~",
    **_TAKE,
    grad=lambda F, p, dy, indices: (F.take(dy, indices, axis=p.axis, mode=p.mode), None, None),
)
def backward_take(k, p, dy, indices, like):
    """Zeros like `like` with the gradient added at the entries taken.

    Parameters
    ----------
    dy : array
        Gradient of the output of `take`.
    indices : array
    like : array
        The array taken from; only its shape is used.
    axis : int
    mode : {'clip', 'raise', 'wrap'}
    """
    xp, shape = k.xp, tuple(like.shape)
    axis = axis_of(p.axis, len(shape))
    i = _places(xp, p, indices, shape[axis]).reshape(-1)
    lead, tail = shape[:axis], shape[axis + 1 :]
    rows = xp.moveaxis(dy.reshape(size_of(lead), i.shape[0], size_of(tail)), 1, 0)
    total = add_rows(xp, (shape[axis], size_of(lead), size_of(tail)), i, rows)
    return xp.ascontiguousarray(xp.moveaxis(total, 0, 1)).reshape(shape)


@backward_take.shape
def _(p, ins):
    dy, indices, like = ins
    fits("dy", [dy], [_taken(p, like, indices)])
    return [like]


backward_take.dtype(first_dtype)


_EMBED = {
    "input_dim": Int(ge=1),
    "output_dim": Int(ge=1),
    "dtype": DType(np.dtype("float32")),
    "sparse_grad": Bool(False),
}


@op(
    "Embedding",
    "_sparse_Embedding",
    inputs="data weight",
    recompute=False,
    **_EMBED,
    grad=lambda F, p, dy, data, like_weight: (
        None,
        F._backward_Embedding(
            dy, data, like_weight, input_dim=p.input_dim, output_dim=p.output_dim, sparse_grad=p.sparse_grad
        ),
    ),
)
def embedding(k, p, data, weight):
    """Rows of `weight`, one for each index in `data`.

    Parameters
    ----------
    data : array
        Indices, of any shape; those out of range are clipped.
    weight : array, (input_dim, output_dim)
    input_dim, output_dim : int
        Number of rows and their length.
    dtype : dtype
        Of the weight, where a graph knows no better.
    sparse_grad : bool
        Give the weight a row-sparse gradient, which holds the rows used.
    """
    return k.xp.take(weight, within(k.xp, data, p.input_dim, "clip"), 0)


@embedding.shape
def _(p, ins, outs):
    data, out = ins[0], outs[0]
    if data is None and out is not None:
        data = tuple(out[:-1])
    return [data, (p.input_dim, p.output_dim)], [None if data is None else (*data, p.output_dim)]


@embedding.dtype
def _(p, ins, outs):
    t = ins[1] if ins[1] is not None else outs[0] if outs[0] is not None else p.dtype
    return [ins[0], t], [t]


@op(
    "_backward_Embedding",
    inputs="dy data weight~",
    **_EMBED,
    grad=lambda F, p, dy, data: (F.Embedding(data, dy, input_dim=p.input_dim, output_dim=p.output_dim), None, None),
)
def backward_embedding(k, p, dy, data, weight):
    """Sum the gradient's rows by index: the gradient of `Embedding` for its weight.

    Parameters
    ----------
    dy : array
        Gradient of the output.
    data : array
        The indices.
    weight : array
        Only its shape is used.
    input_dim, output_dim, dtype, sparse_grad
        As in `Embedding`.
    """
    shape = (p.input_dim, p.output_dim)
    rows = within(k.xp, data, p.input_dim, "clip").reshape(-1)
    values = dy.reshape(rows.shape[0], p.output_dim)
    if p.sparse_grad:
        return merge_rows(k.xp, shape, rows, values)
    return add_rows(k.xp, shape, rows, values)


@backward_embedding.shape
def _(p, ins):
    fits("dy weight", (ins[0], ins[2]), ((*ins[1], p.output_dim), (p.input_dim, p.output_dim)))
    return [ins[2]]


backward_embedding.dtype(first_dtype)
backward_embedding.storage(lambda p, s: ["row_sparse" if p.sparse_grad else "default"])


@op(
    "_contrib_boolean_mask",
    inputs="data index",
    axis=Int(0),
    grad=lambda F, p, dy, like_data, index: (F._backward_boolean_mask(dy, like_data, index, axis=p.axis), None),
)
def boolean_mask(k, p, data, index):
    """The entries along an axis where `index` is not zero.

    Parameters
    ----------
    data : array
    index : array, 1-D
        As long as the axis.
    axis : int
    """
    return k.xp.take(data, k.xp.flatnonzero(index), axis_of(p.axis, data.ndim))


@boolean_mask.shape
def _(p, ins):
    data, index = ins
    axis = axis_of(p.axis, len(data))
    if len(index) != 1 or index[0] != data[axis]:
        raise ValueError(f"index {index} must have one dimension, as long as axis {p.axis} of data, {data[axis]}")
    return [None]


boolean_mask.dtype(first_dtype)


@op(
    "_backward_boolean_mask",
    inputs="dy like~ index",
    axis=Int(0),
    grad=lambda F, p, dy, index: (F._contrib_boolean_mask(dy, index, axis=p.axis), None, None),
)
def backward_boolean_mask(k, p, dy, like, index):
    """Zeros like `like` with the gradient where `index` is not zero.

    Parameters
    ----------
    dy : array
        Gradient of the output of `boolean_mask`.
    like : array
        The masked array; only its shape is used.
    index : array
    axis : int
    """
    out = k.xp.zeros(tuple(like.shape), dy.dtype)
    out[(slice(None),) * axis_of(p.axis, out.ndim) + (k.xp.flatnonzero(index),)] = dy
    return out


@backward_boolean_mask.shape
def _(p, ins, outs):
    dy, like, index = ins
    if all(map(known, ins)):
        axis = axis_of(p.axis, len(like))
        some = like[:axis] + dy[axis : axis + 1] + like[axis + 1 :]  # only the values tell how many
        fits("dy index", [dy, index], [some, like[axis : axis + 1]])
    return ins, [like]


backward_boolean_mask.dtype(first_dtype)


@op(
    "where",
    "_sparse_where",
    inputs="condition x y",
    expr="x if condition != 0 else y",
    aligned=lambda p, ins, out: [ins[0] + (1,) * (len(out) - len(ins[0])), None, None],
    labels="-condition",
    grad=lambda F, dy, condition: (
        None,
        F.where(condition, dy, F.zeros_like(dy)),
        F.where(condition, F.zeros_like(dy), dy),
    ),
)
def where(k, p, condition, x, y):
    """Elements of `x` where `condition` is not zero, of `y` elsewhere.

    Parameters
    ----------
    condition : array
        Of the shape of `x`, or 1-D, one item per row of `x`.
    x, y : array
        Of one shape and dtype.
    """
    c = condition != 0
    if c.ndim != x.ndim:
        c = c.reshape(c.shape[0], *(1,) * (x.ndim - 1))
    return k.xp.where(c, x, y)


@where.shape
def _(p, ins, outs):
    c, x, y = ins
    one = merge_shape(merge_shape(x, y), outs[0])
    if c is None:
        return ins, outs  # MXNet compares the three only when it knows something of each
    if known(c) and known(one) and c != one and not (len(c) == 1 and c[0] == one[0]):
        raise ValueError(f"condition {c} must have the shape of x, {one}, or one item per row")
    return [c, one, one], [one]


@where.dtype
def _(p, ins, outs):
    t = ins[1] or ins[2] or outs[0]
    return [ins[0], t, t], [t]
