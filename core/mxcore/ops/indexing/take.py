"""Picking entries by index arrays and masks: take, Embedding, where and kin."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.infer import known, merge_shape
from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool, DType, Enum, Int
from ...typing import Array, Call
from ..common.rules import axis_of, first_dtype, size_of, whole

__all__ = ["EMBEDDING_PARAMS", "TAKE_PARAMS", "row_places", "taken_shape", "within"]


def within(xp: Any, indices: Any, n: int, mode: str) -> Any:
    """Indices as int64 in [0, n): clipped, wrapped, or checked."""
    i = whole(xp, indices)
    if mode == "wrap":
        return i % max(n, 1)
    if mode == "clip":
        return xp.clip(i, 0, max(n - 1, 0))
    if i.size:
        low, high = i.min().item(), i.max().item()
        if low < 0 or high >= n:
            raise IndexError(f"an index is out of range [0, {n}): they lie in [{low}, {high}]")
    return i


TAKE_PARAMS = {"axis": Int(0), "mode": Enum("clip raise wrap", "clip")}


@op(
    "take",
    inputs="a indices",
    **TAKE_PARAMS,
    grad=lambda F, p, dy, like_a, indices: (F._backward_take(dy, indices, like_a, axis=p.axis, mode=p.mode), None),
)
def take(k: Call, p: Params, a: Array, indices: Array) -> Array:
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
    return k.xp.take(a, row_places(k.xp, p, indices, a.shape[axis]), axis)


def row_places(xp: Any, p: Params, indices: Any, n: int) -> Any:
    """Indices as places along an axis of length `n`, by the mode of what is beyond it."""
    if n == 0 and size_of(indices.shape):
        raise IndexError("cannot take from an axis of length 0")
    return within(xp, indices, n, p.mode)


def taken_shape(p: Params, a: Any, indices: Any) -> Any:
    """The shape of what is taken: that of the indices in the place of the axis."""
    axis = axis_of(p.axis, len(a))
    return a[:axis] + indices + a[axis + 1 :]


@take.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    a, i = ins
    if a is None or i is None:
        return ins, outs
    return ins, [taken_shape(p, a, i)]


take.dtype(first_dtype)

EMBEDDING_PARAMS = {
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
    **EMBEDDING_PARAMS,
    grad=lambda F, p, dy, data, like_weight: (
        None,
        F._backward_Embedding(
            dy, data, like_weight, input_dim=p.input_dim, output_dim=p.output_dim, sparse_grad=p.sparse_grad
        ),
    ),
)
def embedding(k: Call, p: Params, data: Array, weight: Array) -> Array:
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
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    data, out = ins[0], outs[0]
    if data is None and out is not None:
        data = tuple(out[:-1])
    return [data, (p.input_dim, p.output_dim)], [None if data is None else (*data, p.output_dim)]


@embedding.dtype
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    t = ins[1] if ins[1] is not None else outs[0] if outs[0] is not None else p.dtype
    return [ins[0], t], [t]


@op(
    "_contrib_SparseEmbedding",
    inputs="data weight",
    recompute=False,
    **{n: EMBEDDING_PARAMS[n] for n in ("input_dim", "output_dim", "dtype", "sparse_grad")},
    grad=lambda F, p, dy, data, like_weight: (
        None,
        F._backward_Embedding(dy, data, like_weight, input_dim=p.input_dim, output_dim=p.output_dim, sparse_grad=True),
    ),
)
def sparse_embedding(k: Call, p: Params, data: Array, weight: Array) -> Array:
    """Rows of `weight`, one for each index in `data`, whose gradient is row_sparse: `Embedding` with ``sparse_grad``.

    Parameters
    ----------
    data : array
        Indices, of any shape; those out of range are clipped.
    weight : array, (input_dim, output_dim)
        Dense or row_sparse.
    input_dim, output_dim : int
        Number of rows and their length.
    dtype : dtype
        Of the weight, where a graph knows no better.
    sparse_grad : bool
        Has no effect; the gradient is always row_sparse.
    """
    return embedding.body(k, p, data, weight)  # type: ignore[misc]


sparse_embedding.shape(embedding.shape_rule)
sparse_embedding.dtype(embedding.dtype_rule)


@op(
    "_contrib_boolean_mask",
    inputs="data index",
    axis=Int(0),
    grad=lambda F, p, dy, like_data, index: (F._backward_boolean_mask(dy, like_data, index, axis=p.axis), None),
)
def boolean_mask(k: Call, p: Params, data: Array, index: Array) -> Array:
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
def _(p: Params, ins: list[Any]) -> list[Any]:
    data, index = ins
    axis = axis_of(p.axis, len(data))
    if len(index) != 1 or index[0] != data[axis]:
        raise ValueError(f"index {index} must have one dimension, as long as axis {p.axis} of data, {data[axis]}")
    return [None]


boolean_mask.dtype(first_dtype)


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
def where(k: Call, p: Params, condition: Array, x: Array, y: Array) -> Array:
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
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    c, x, y = ins
    one = merge_shape(merge_shape(x, y), outs[0])
    if c is None:
        return ins, outs  # MXNet compares the three only when it knows something of each
    if known(c) and known(one) and c != one and not (len(c) == 1 and c[0] == one[0]):
        raise ValueError(f"condition {c} must have the shape of x, {one}, or one item per row")
    return [c, one, one], [one]


@where.dtype
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    t = ins[1] or ins[2] or outs[0]
    return [ins[0], t, t], [t]
