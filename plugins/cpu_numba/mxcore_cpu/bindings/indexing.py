"""Rows and elements chosen by index, and the gradients of the choice."""

from __future__ import annotations

import numpy as np

from mxcore.plugin import Call, Params, RowSparse, Spec, find_op, held

from ..kernels import embedding, pick
from ..typing import Array, Outs
from .common import LARGE, cpu


def _table_rows(p: Params, data: Spec, weight: Spec) -> bool:
    return (
        weight.ndim == 2
        and weight.dtype.kind == "f"
        and weight.dtype.itemsize >= 4
        and data.size * weight.shape[1] >= LARGE
    )


def _embed(k: Call, p: Params, outs: Outs, data: Array, weight: Array) -> None:
    embedding.take_rows(weight, data.reshape(-1), outs[0].reshape(-1, p.output_dim))


def _whole_rows(p: Params, data: Spec, weight: Spec) -> bool:
    return data.stype == "default" and weight.stype == "row_sparse" and _table_rows(p, data, weight)


def _embed_rows(k: Call, p: Params, outs: Outs, data: Array, weight: RowSparse) -> None:
    whole = weight.whole
    if whole is None:
        body = find_op("Embedding").sparse_body
        outs[0][...] = body(k, p, data, weight)
    else:
        _embed(k, p, outs, data, whole)


for _name in ("Embedding", "_contrib_SparseEmbedding"):
    cpu.kernel(_name, when=_table_rows, out=True)(_embed)
    cpu.kernel(_name, when=_whole_rows, out=True, sparse=True)(_embed_rows)


def _added_up(dy: Spec) -> bool:
    return dy.stype == "default" and dy.dtype.kind == "f" and dy.dtype.itemsize >= 4


@cpu.kernel("_backward_Embedding", out=True, when=lambda p, dy, data, weight: not p.sparse_grad and _added_up(dy))
def _backward_embedding(k: Call, p: Params, outs: Outs, dy: Array, data: Array, weight: Array) -> None:
    embedding.add_rows(dy.reshape(-1, p.output_dim), data.reshape(-1), outs[0])


@cpu.kernel("_backward_Embedding", when=lambda p, dy, data, weight: p.sparse_grad and _added_up(dy))
def _rows_of_embedding(k: Call, p: Params, dy: Array, data: Array, weight: Array) -> RowSparse:
    rows, values = embedding.merged_rows(dy.reshape(-1, p.output_dim), data.reshape(-1), p.input_dim)
    return RowSparse((p.input_dim, p.output_dim), rows, values)


@cpu.kernel(
    "_backward_take",
    out=True,
    when=lambda p, dy, indices, like: (
        p.axis in (0, -len(like.shape))
        and p.mode != "raise"
        and dy.dtype == like.dtype
        and like.dtype in (np.float32, np.float64)
        and dy.size > 0
    ),
)
def _backward_take(k: Call, p: Params, outs: Outs, dy: Array, indices: Array, like: Array) -> None:
    n = like.shape[0]
    index = indices.reshape(-1)
    if p.mode == "wrap":
        index = find_op("take").facet("helpers").places(np, p, index, n)
    embedding.add_rows(dy.reshape(index.size, -1), index, outs[0].reshape(n, -1))


def _last_picked(p: Params, data: Spec, index: Spec) -> bool:
    return (
        p.mode == "clip"
        and p.axis in (-1, data.ndim - 1)
        and data.ndim > 1
        and data.shape[-1] > 0
        and data.dtype in (np.float32, np.float64)
        and index.dtype.kind in "fiu"
        and index.dtype.itemsize >= 4
    )


@cpu.kernel("pick", when=_last_picked, out=True)
def _pick(k: Call, p: Params, outs: Outs, data: Array, index: Array) -> None:
    pick.pick_last(data, index, outs[0])


@cpu.kernel(
    "_backward_pick", when=lambda p, dy, like, index: _last_picked(p, like, index) and dy.dtype == like.dtype, out=True
)
def _backward_pick(k: Call, p: Params, outs: Outs, dy: Array, like: Array, index: Array) -> None:
    pick.place_last(dy, index, outs[0])


@cpu.kernel(
    "batch_take", dtypes="f4 f8 i4 i8", when=lambda p, a, indices: a.dtype.kind == "f" and a.shape[1] > 0, out=True
)
def _batch_take(k: Call, p: Params, outs: Outs, a: Array, indices: Array) -> None:
    pick.pick_last(a, indices, outs[0])


@cpu.kernel("one_hot", out=True)
def _one_hot(k: Call, p: Params, outs: Outs, indices: Array) -> None:
    pick.one_hot(indices, outs[0], held(p.on_value, p.dtype), held(p.off_value, p.dtype))
