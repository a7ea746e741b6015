"""Attention of several heads: projections that lie interleaved in one array are multiplied where they lie, by cuBLAS.

A *slot* is one of `slots` projections of length d that each head has in an array (length, batch, heads * slots * d).
The matrices (length, d) of all heads of all sequences are a stack: from one to the next it is `slots * d` elements.
"""

from __future__ import annotations

from typing import TypeAlias

from mxcore.plugin import Call, Params

from ..blas import Matrix, multiply
from .common import Array, Outs, binds

Slot: TypeAlias = "tuple[int, int]"  # its place, and how many there are

_ONE: Slot = (0, 1)


def _width(x: Array, heads: int, slot: Slot) -> int:
    """The length of a projection of a head."""
    return int(x.shape[2]) // (heads * slot[1])


def _stack(x: Array, heads: int, slot: Slot, transposed: bool = False) -> Matrix:
    """One slot of all heads."""
    (at, slots), d = slot, _width(x, heads, slot)
    return Matrix(x, x.shape[1] * heads * slots * d, transposed, slots * d, at * d)


def _scores(k: Call, heads: int, a: Array, b: Array, out: Array, a_slot: Slot, b_slot: Slot, scaled: bool) -> None:
    """Products of all positions of two slots, (batch * heads, n, m)."""
    d, (stack, n, m) = _width(a, heads, a_slot), out.shape
    if not d:
        out[...] = 0
        return
    parts = _stack(a, heads, a_slot), _stack(b, heads, b_slot, True), Matrix(out, m, step=n * m)
    alpha = d**-0.5 if scaled else 1.0
    multiply(out.dtype, k.ctx.device_id, n, m, d, *parts, batch=stack, alpha=alpha)


def _weighted_sum(
    k: Call,
    heads: int,
    weights: Array,
    values: Array,
    out: Array,
    slot: Slot,
    out_slot: Slot,
    transpose: bool = False,
    scaled: bool = False,
) -> None:
    """Sums of a slot's positions, weighted by the matrices (batch * heads, n, m), into a slot of the result."""
    d, (stack, rows, columns) = _width(values, heads, slot), weights.shape
    n, m = (columns, rows) if transpose else (rows, columns)
    if not m:
        out.reshape(n, stack, out_slot[1], d)[:, :, out_slot[0]] = 0
        return
    parts = (
        Matrix(weights, columns, transpose, rows * columns),
        _stack(values, heads, slot),
        _stack(out, heads, out_slot),
    )
    alpha = d**-0.5 if scaled and d else 1.0
    multiply(out.dtype, k.ctx.device_id, n, d, m, *parts, batch=stack, alpha=alpha)


@binds("_attention_scores")
def _attention_scores(k: Call, p: Params, outs: Outs, a: Array, b: Array) -> None:
    _scores(k, p.heads, a, b, outs[0], p.a_slot, p.b_slot, p.scaled)


@binds("_attention_sum")
def _attention_sum(k: Call, p: Params, outs: Outs, weights: Array, values: Array) -> None:
    if p.out_slot[1] > 1:
        outs[0][...] = 0  # the other slots
    _weighted_sum(k, p.heads, weights, values, outs[0], p.slot, p.out_slot, p.transpose, p.scaled)


@binds("_contrib_interleaved_matmul_selfatt_qk")
def _selfatt_qk(k: Call, p: Params, outs: Outs, data: Array) -> None:
    _scores(k, p.heads, data, data, outs[0], (0, 3), (1, 3), True)


@binds("_contrib_interleaved_matmul_encdec_qk")
def _encdec_qk(k: Call, p: Params, outs: Outs, queries: Array, keys_values: Array) -> None:
    _scores(k, p.heads, queries, keys_values, outs[0], _ONE, (0, 2), True)


@binds("_contrib_interleaved_matmul_selfatt_valatt")
def _selfatt_valatt(k: Call, p: Params, outs: Outs, data: Array, weights: Array) -> None:
    _weighted_sum(k, p.heads, weights, data, outs[0], (2, 3), _ONE)


@binds("_contrib_interleaved_matmul_encdec_valatt")
def _encdec_valatt(k: Call, p: Params, outs: Outs, keys_values: Array, weights: Array) -> None:
    _weighted_sum(k, p.heads, weights, keys_values, outs[0], (1, 2), _ONE)


@binds("_backward_interleaved_matmul_selfatt_qk")
def _backward_selfatt_qk(k: Call, p: Params, outs: Outs, dy: Array, data: Array) -> None:
    d = _width(data, p.heads, (0, 3))
    outs[0].reshape(data.shape[0], data.shape[1] * p.heads, 3, d)[:, :, 2] = 0
    _weighted_sum(k, p.heads, dy, data, outs[0], (1, 3), (0, 3), False, True)
    _weighted_sum(k, p.heads, dy, data, outs[0], (0, 3), (1, 3), True, True)
