"""Diagonals and triangles of the matrices in arrays of ``mx.np``, and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.op import op
from ..._core.params import Params
from ...parameters import Int
from ...typing import Array, Call
from ..common.bodies import sum_over
from ..common.rules import axis_of, size_of, undoing

__all__: list[str] = []

_INT64 = np.dtype("int64")
DIAGONAL = {"offset": Int(0), "axis1": Int(0), "axis2": Int(1)}


def _axes(p: Params, ndim: int) -> tuple[int, int]:
    """The axes of the rows and the columns, counted from the front."""
    if ndim < 2:
        raise ValueError(f"a diagonal needs two dimensions or more, the array has {ndim}")
    i, j = axis_of(p.axis1, ndim), axis_of(p.axis2, ndim)
    if i == j:
        raise ValueError(f"axis1 and axis2 must differ, both are {i}")
    return i, j


def _on(rows: int, columns: int, k: int) -> int:
    """How many elements a diagonal has."""
    return max(min(rows, columns - k) if k >= 0 else min(rows + k, columns), 0)


def _diagonal(k: Call, data: Array, offset: int, i: int, j: int) -> Array:
    """NumPy's function, which reads wild memory for diagonals as far away as its integers go: these are empty."""
    rows, columns = data.shape[i], data.shape[j]
    return k.xp.diagonal(data, max(-rows, min(offset, columns)), i, j)


def _others(p: Params, shape: tuple[int, ...]) -> tuple[int, ...]:
    i, j = _axes(p, len(shape))
    return tuple(d for a, d in enumerate(shape) if a not in (i, j))


def _diagonal_shape(p: Params, shape: tuple[int, ...]) -> tuple[int, ...]:
    i, j = _axes(p, len(shape))
    return (*_others(p, shape), _on(shape[i], shape[j], p.offset))


def _spread(k: Call, data: Array, shape: tuple[int, ...], axes: tuple[int, int], offset: int) -> Array:
    """Zeros with data on the diagonals; data has the diagonals along its last axis, or one value for each."""
    xp = k.xp
    out = xp.zeros(shape, data.dtype)
    rows = xp.arange(_on(shape[axes[0]], shape[axes[1]], offset)) + max(-offset, 0)
    moved = xp.moveaxis(out, axes, (-2, -1))  # a view: writing through it fills `out`
    moved[..., rows, rows + offset] = data
    return out


@op(
    "_np_diagonal",
    inputs="data",
    **DIAGONAL,
    grad=lambda F, p, dy, like_data: F._np_diagonal_spread(
        dy, like_data, offset=p.offset, axis1=p.axis1, axis2=p.axis2
    ),
)
def diagonal(k: Call, p: Params, data: Array) -> Array:
    """The diagonals of the matrices that two axes make.

    Parameters
    ----------
    data : array
    offset : int
        Which diagonal: above the main one if positive.
    axis1, axis2 : int
        The axes of the rows and columns.
    """
    return _diagonal(k, data, p.offset, *_axes(p, data.ndim)).copy()


diagonal.shape(lambda p, ins: [_diagonal_shape(p, ins[0])])


@op(
    "_np_diagonal_spread",
    inputs="data like~",
    **DIAGONAL,
    grad=lambda F, p, dy: (F._np_diagonal(dy, offset=p.offset, axis1=p.axis1, axis2=p.axis2), None),
)
def diagonal_spread(k: Call, p: Params, data: Array, like: Array) -> Array:
    """Zeros like `like` with `data` on its diagonals: the gradient of `_np_diagonal`.

    Parameters
    ----------
    data : array
    like : array
        Only its shape is used.
    offset, axis1, axis2 : int
        As in `_np_diagonal`.
    """
    shape = tuple(like.shape)
    return _spread(k, data, shape, _axes(p, len(shape)), p.offset)


diagonal_spread.shape(undoing(_diagonal_shape))


@op(
    "_np_trace",
    inputs="data",
    **DIAGONAL,
    grad=lambda F, p, dy, like_data: F._np_trace_spread(dy, like_data, offset=p.offset, axis1=p.axis1, axis2=p.axis2),
)
def trace(k: Call, p: Params, data: Array) -> Array:
    """The sums along the diagonals of the matrices that two axes make.

    Parameters
    ----------
    data : array
    offset : int
        Which diagonal: above the main one if positive.
    axis1, axis2 : int
        The axes of the rows and columns.
    """
    found = _diagonal(k, data, p.offset, *_axes(p, data.ndim))
    return sum_over(found.astype(_INT64) if found.dtype.kind == "b" else found, -1)


trace.shape(lambda p, ins: [_others(p, ins[0])])


@trace.dtype
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    t = ins[0]
    return (ins, [_INT64 if t.kind == "b" else t]) if t is not None else ([outs[0]], outs)


@op(
    "_np_trace_spread",
    inputs="data like~",
    **DIAGONAL,
    grad=lambda F, p, dy: (F._np_trace(dy, offset=p.offset, axis1=p.axis1, axis2=p.axis2), None),
)
def trace_spread(k: Call, p: Params, data: Array, like: Array) -> Array:
    """Zeros like `like` with each number of `data` all along a diagonal: the gradient of `_np_trace`.

    Parameters
    ----------
    data : array
    like : array
        Only its shape is used.
    offset, axis1, axis2 : int
        As in `_np_diagonal`.
    """
    shape = tuple(like.shape)
    return _spread(k, data.reshape((*data.shape, 1)), shape, _axes(p, len(shape)), p.offset)


trace_spread.shape(undoing(_others))


def _diag_shape(p: Params, shape: tuple[int, ...]) -> tuple[int, ...]:
    if len(shape) not in (1, 2):
        raise ValueError(f"the array must have one or two dimensions, it has {len(shape)}")
    return (_on(*shape, p.k),) if len(shape) == 2 else (shape[0] + abs(p.k),) * 2


@op("_np_diag", inputs="data", k=Int(0), grad=lambda F, p, dy, like_data: F._np_diag_spread(dy, like_data, k=p.k))
def diag(k: Call, p: Params, data: Array) -> Array:
    """A diagonal of a matrix; of a vector, the matrix with it on that diagonal.

    Parameters
    ----------
    data : array
        Of one or two dimensions.
    k : int
        Which diagonal: above the main one if positive.
    """
    return (k.xp.diag(data, p.k) if data.ndim == 1 else _diagonal(k, data, p.k, 0, 1)).copy()


diag.shape(lambda p, ins: [_diag_shape(p, ins[0])])


@op("_np_diag_spread", inputs="data like~", k=Int(0), grad=lambda F, p, dy: (F._np_diag(dy, k=p.k), None))
def diag_spread(k: Call, p: Params, data: Array, like: Array) -> Array:
    """The gradient of `_np_diag`: zeros like `like` with `data` on a diagonal, or that diagonal of `data`.

    Parameters
    ----------
    data : array
    like : array
        Only its shape is used.
    k : int
        As in `_np_diag`.
    """
    if len(like.shape) == 1:
        return _diagonal(k, data, p.k, 0, 1).copy()
    return _spread(k, data, tuple(like.shape), (0, 1), p.k)


diag_spread.shape(undoing(_diag_shape))


@op(
    "_np_diagflat",
    inputs="data",
    k=Int(0),
    grad=lambda F, p, dy, like_data: F.reshape_like(F._np_diagonal(dy, offset=p.k), like_data),
)
def diagflat(k: Call, p: Params, data: Array) -> Array:
    """The matrix with the elements of an array on a diagonal.

    Parameters
    ----------
    data : array
    k : int
        Which diagonal: above the main one if positive.
    """
    return k.xp.diag(data.reshape(-1), p.k)


diagflat.shape(lambda p, ins: [(size_of(ins[0]) + abs(p.k),) * 2])


def _triangles(name: str, where: str) -> Any:
    @op(
        name,
        inputs="data",
        k=Int(0),
        grad=lambda F, p, dy, like_data: F._sum_like(getattr(F, name)(dy, k=p.k), like_data),
        doc=f"""The {where.split()[0]} triangles of the matrices that the last two axes make.

    Parameters
    ----------
    data : array
        A vector stands for a matrix with it in each row.
    k : int
        {where.split(maxsplit=1)[1]} which diagonal: above the main one if positive.
    """,
    )
    def body(k: Call, p: Params, data: Array) -> Array:
        whole = k.xp.broadcast_to(data, (data.shape[0],) * 2) if data.ndim == 1 else data
        return (k.xp.tril if name.endswith("l") else k.xp.triu)(whole, p.k)

    @body.shape
    def _(p: Params, ins: list[Any]) -> list[Any]:
        if not ins[0]:
            raise ValueError("a triangle needs an array with dimensions")
        return [ins[0] * 2 if len(ins[0]) == 1 else ins[0]]

    return body


tril = _triangles("_npi_tril", "lower Up to")
triu = _triangles("_npi_triu", "upper From")


@op("_npi_diag_indices_from", inputs="data~", grad=None)
def diag_indices_from(k: Call, p: Params, data: Array) -> Array:
    """The indices of the main diagonal, one row for each dimension.

    Parameters
    ----------
    data : array
        Only its shape is used: two or more dimensions of one length.
    """
    n, length = len(data.shape), data.shape[0]
    return k.xp.broadcast_to(k.xp.arange(length), (n, length)).astype(np.int64)


@diag_indices_from.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    shape = ins[0]
    if len(shape) < 2 or any(d != shape[0] for d in shape):
        raise ValueError(f"the array must have two or more dimensions of one length, not the shape {shape}")
    return [(len(shape), shape[0])]


diag_indices_from.dtype(lambda p, ins, outs: (ins, [_INT64]))
