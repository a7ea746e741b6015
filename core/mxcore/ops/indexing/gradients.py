"""Gradients of the operators of :mod:`mxcore.ops.indexing`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.infer import known
from ..._core.op import op
from ..._core.params import Params
from ...parameters import Int
from ...stypes import CSR, RowSparse, add_rows, merge_rows
from ...typing import Array, Call
from ..common.gradients import spread
from ..common.rules import axis_of, first_dtype, fits, gradient_of, reduced, size_of
from .gather import PICK_PARAMS, pick_axis, pick_places, point_places
from .subscripts import Index, advanced_shape, basic_shape, decoded
from .take import EMBEDDING_PARAMS, TAKE_PARAMS, row_places, taken_shape, within

__all__: list[str] = []


basic_index_spread = spread(
    "_basic_index",
    {"index": Index()},
    lambda p, shape: decoded(p.index),
    gradient_of(lambda p, ins: basic_shape(p.index, ins[0])),
    "in the indexed part",
)


@op(
    "_advanced_index_spread",
    inputs="data like~ indices*",
    index=Index(),
    helpers={"decoded": decoded},
    grad=lambda F, p, dy, indices: (F._advanced_index(dy, *indices, index=p.index), None, [None] * len(indices)),
)
def advanced_index_spread(k: Call, p: Params, data: Array, like: Array, *indices: Array) -> Array:
    """Zeros like `like` with `data` added at the indexed places: the gradient of reading them.

    Parameters
    ----------
    data : array
        Of the shape that the index selects.
    like : array
        Only its shape is used.
    indices : arrays
    num_args : int
        How many; counted for you.
    index : tuple
        As in `_advanced_index`.
    """
    xp, shape = k.xp, tuple(like.shape)
    # Adding at flat places is several times faster than through an index of many dimensions.
    places = xp.arange(size_of(shape)).reshape(shape)[decoded(p.index, indices)].reshape(-1)
    return add_rows(xp, (size_of(shape),), places, data.reshape(-1)).reshape(shape)


advanced_index_spread.shape(gradient_of(lambda p, ins: advanced_shape(p.index, ins[0], ins[1:])))
advanced_index_spread.dtype(first_dtype)


@op(
    "_backward_take",
    inputs="dy indices like~",
    **TAKE_PARAMS,
    grad=lambda F, p, d_output, indices: (F.take(d_output, indices, axis=p.axis, mode=p.mode), None, None),
)
def backward_take(k: Call, p: Params, dy: Array, indices: Array, like: Array) -> Array:
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
    i = row_places(xp, p, indices, shape[axis]).reshape(-1)
    lead, tail = shape[:axis], shape[axis + 1 :]
    rows = xp.moveaxis(dy.reshape(size_of(lead), i.shape[0], size_of(tail)), 1, 0)
    total = add_rows(xp, (shape[axis], size_of(lead), size_of(tail)), i, rows)
    return xp.ascontiguousarray(xp.moveaxis(total, 0, 1)).reshape(shape)


@backward_take.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    dy, indices, like = ins
    fits("dy", [dy], [taken_shape(p, like, indices)])
    return [like]


backward_take.dtype(first_dtype)


def _rows_taken(k: Call, p: Params, dy: Any, indices: Any, like: Any) -> Any:
    """The same where an input is sparse: the gradient of a row-sparse array holds the rows that were taken."""
    xp, shape = k.xp, tuple(like.shape)
    dy, indices = (x.todense(xp) if isinstance(x, (CSR, RowSparse)) else x for x in (dy, indices))
    if p.axis != 0 or getattr(like, "stype", "default") != "row_sparse":
        return backward_take.body(k, p, dy, indices, like)  # type: ignore[misc]
    at = row_places(xp, p, indices, shape[0]).reshape(-1)
    return merge_rows(xp, shape, at, dy.reshape(at.shape[0], *shape[1:]))


backward_take.storage(
    lambda p, stypes: ["row_sparse" if p.axis == 0 and stypes[2] == "row_sparse" else "default"], _rows_taken
)


@op(
    "_backward_Embedding",
    inputs="dy data weight~",
    **EMBEDDING_PARAMS,
    grad=lambda F, p, d_output, data: (
        F.Embedding(data, d_output, input_dim=p.input_dim, output_dim=p.output_dim),
        None,
        None,
    ),
)
def backward_embedding(k: Call, p: Params, dy: Array, data: Array, weight: Array) -> Array:
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
    values = (dy.todense(k.xp) if hasattr(dy, "todense") else dy).reshape(rows.shape[0], p.output_dim)
    if p.sparse_grad:
        return merge_rows(k.xp, shape, rows, values)
    return add_rows(k.xp, shape, rows, values)


@backward_embedding.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    fits("dy weight", (ins[0], ins[2]), ((*ins[1], p.output_dim), (p.input_dim, p.output_dim)))
    return [ins[2]]


backward_embedding.dtype(first_dtype)
backward_embedding.storage(lambda p, s: ["row_sparse" if p.sparse_grad else "default"])


@op(
    "_backward_boolean_mask",
    inputs="dy like~ index",
    axis=Int(0),
    grad=lambda F, p, d_output, index: (F._contrib_boolean_mask(d_output, index, axis=p.axis), None, None),
)
def backward_boolean_mask(k: Call, p: Params, dy: Array, like: Array, index: Array) -> Array:
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
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    dy, like, index = ins
    if all(map(known, ins)):
        axis = axis_of(p.axis, len(like))
        some = like[:axis] + dy[axis : axis + 1] + like[axis + 1 :]  # only the values tell how many
        fits("dy index", [dy, index], [some, like[axis : axis + 1]])
    return ins, [like]


backward_boolean_mask.dtype(first_dtype)


@op(
    "_backward_pick",
    inputs="dy like~ index",
    **PICK_PARAMS,
    grad=lambda F, p, d_output, index, like_dy: (
        F.reshape_like(F.pick(d_output, index, axis=p.axis, keepdims=p.keepdims, mode=p.mode), like_dy),
        None,
        None,
    ),
)
def backward_pick(k: Call, p: Params, dy: Array, like: Array, index: Array) -> Array:
    """Zeros like `like` with the gradient at the elements picked.

    Parameters
    ----------
    dy : array
        Gradient of the output of `pick`.
    like : array
        Only its shape is used.
    index : array
    axis, keepdims, mode
        As in `pick`.
    """
    shape = tuple(like.shape)
    places, axis = pick_places(k, p, shape, index)
    out = k.xp.zeros(shape, dy.dtype)
    k.xp.put_along_axis(out, places, dy.reshape(places.shape), axis)
    return out


@backward_pick.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    dy, like, index = ins
    n = size_of(reduced(like, (pick_axis(p, len(like)),), False))
    if size_of(dy) != n or size_of(index) != n:
        raise ValueError(
            f"dy {dy} and index {index} must have an element for each of the {n} that are picked from {like}"
        )
    return [like]


backward_pick.dtype(first_dtype)


@op(
    "_backward_gather_nd",
    inputs="dy indices like~",
    grad=lambda F, d_output, indices: (F.gather_nd(d_output, indices), None, None),
)
def backward_gather_nd(k: Call, p: Params, dy: Array, indices: Array, like: Array) -> Array:
    """Zeros like `like` with the gradient added at the coordinates.

    Parameters
    ----------
    dy : array
        Gradient of the output of `gather_nd`.
    indices : array
    like : array
        Only its shape is used.
    """
    xp, shape, m = k.xp, tuple(like.shape), indices.shape[0]
    lead, tail = shape[:m], shape[m:]
    rows = xp.arange(size_of(lead)).reshape(lead)[point_places(indices)].reshape(-1)
    return add_rows(xp, (size_of(lead), *tail), rows, dy).reshape(shape)


backward_gather_nd.shape(lambda p, ins: [ins[2]])
backward_gather_nd.dtype(first_dtype)


@op(
    "_contrib_backward_index_copy",
    inputs="dy index_vector",
    outputs="old_tensor new_tensor",
    grad=lambda F, d_old_tensor, d_new_tensor, index_vector: (
        F._contrib_index_copy(d_old_tensor, index_vector, d_new_tensor),
        None,
    ),
)
def backward_index_copy(k: Call, p: Params, dy_: Array, index_vector: Array) -> Any:
    """The gradients of `index_copy`: zero where rows were replaced, and those rows.

    Parameters
    ----------
    dy : array
    index_vector : array, 1-D
        Which rows were replaced.
    """
    at = index_vector.astype(np.int64)
    old = dy_.copy()
    old[at] = 0
    return old, dy_[at]


backward_index_copy.shape(lambda p, ins: [ins[0], (*ins[1], *ins[0][1:])])
backward_index_copy.dtype(lambda p, ins, outs: (ins, [ins[0], ins[0]]))
