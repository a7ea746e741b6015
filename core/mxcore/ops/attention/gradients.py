"""Gradients of the operators of :mod:`mxcore.ops.attention`."""

from __future__ import annotations

from typing import Any

from ..._core.op import op
from ..._core.params import Params
from ...typing import Array, Call, Operators
from ..common.rules import fits, size_of
from .operators import (
    HEADS,
    attention_scores,
    attention_sum,
    encdec_qk,
    flattened,
    float_dtypes,
    selfatt_qk,
    weighted_sum,
    width,
)

__all__: list[str] = []


def _scores_grads(F: Operators, p: Params, dy: Any, a: Any, b: Any, needs: Any) -> Any:
    kw = {"heads": p.heads, "scaled": p.scaled}
    return (
        F._attention_sum(dy, b, slot=p.b_slot, out_slot=p.a_slot, **kw) if needs[0] else None,
        F._attention_sum(dy, a, slot=p.a_slot, out_slot=p.b_slot, transpose=True, **kw) if needs[1] else None,
    )


attention_scores.grad(_scores_grads)


def _sum_grads(F: Operators, p: Params, dy: Any, weights: Any, values: Any, needs: Any) -> Any:
    kw = {"heads": p.heads, "scaled": p.scaled}
    dw = dv = None
    if needs[0]:
        pair = ((dy, p.out_slot), (values, p.slot))
        (x, xs), (y, ys) = pair[::-1] if p.transpose else pair
        dw = F._attention_scores(x, y, a_slot=xs, b_slot=ys, **kw)
    if needs[1]:
        dv = F._attention_sum(weights, dy, slot=p.out_slot, out_slot=p.slot, transpose=not p.transpose, **kw)
    return dw, dv


attention_sum.grad(_sum_grads)


def _both(xp: Any, dy: Any, x: Any, heads: int) -> Any:
    """The gradient of the scores of self-attention: for queries and keys, zero for values."""
    out = weighted_sum(xp, dy, x, heads, (1, 3), (0, 3), False, True)
    return flattened(weighted_sum(xp, dy, x, heads, (0, 3), (1, 3), True, True, out), x.shape[1], heads)


def _both_grads(F: Operators, p: Params, dys: Any, dy_: Any, data: Any) -> Any:
    g, kw = dys[0], {"heads": p.heads}
    return (
        F._attention_scores(g, data, a_slot=(0, 3), b_slot=(1, 3), **kw)
        + F._attention_scores(data, g, a_slot=(0, 3), b_slot=(1, 3), **kw),
        F._backward_interleaved_matmul_selfatt_qk(dy_, g, **kw),
    )


@op("_backward_interleaved_matmul_selfatt_qk", inputs="dy data", **HEADS, grad=_both_grads)
def backward_selfatt_qk(k: Call, p: Params, dy_: Array, data: Array) -> Array:
    """The gradient of `interleaved_matmul_selfatt_qk`.

    Parameters
    ----------
    dy : array, (batch * heads, length, length)
        Gradient of the scores.
    data : array, (length, batch, heads * 3 * d)
        The projections.
    heads : int
    """
    return _both(k.xp, dy_, data, p.heads)


@backward_selfatt_qk.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    fits("dy", ins, selfatt_qk.shape_rule(p, ins[1:]))
    return [ins[1]]


def _encdec_qk_grads(F: Operators, p: Params, dy: Any, queries: Any, keys_values: Any, needs: Any) -> Any:
    kw = {"heads": p.heads, "scaled": True}
    return (
        F._attention_sum(dy, keys_values, slot=(0, 2), **kw) if needs[0] else None,
        F._attention_sum(dy, queries, out_slot=(0, 2), transpose=True, **kw) if needs[1] else None,
    )


encdec_qk.grad(_encdec_qk_grads)

for _op in (backward_selfatt_qk,):
    _op.attach(flops=lambda p, ins, outs: 4 * size_of(ins[0]) * width(ins[1], p.heads, 3))
    _op.dtype(float_dtypes)
    # A product counts a tenth of a plain operation, as elsewhere.
    _op.cost(lambda p, ins, outs: sum(map(size_of, ins)) + size_of(outs[0]) * 6)
