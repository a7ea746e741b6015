"""Gradients of the operators of :mod:`mxcore.ops.fully_connected`."""

from __future__ import annotations

from typing import Any

from ..._core.op import op
from ..._core.params import Params
from ...parameters import Int
from ...typing import Array, Call
from ..common.bodies import silent, wide
from ..common.gradients import linear_grad_grad
from ..common.rules import along, fits, size_of
from .operators import FULLY_CONNECTED_PARAMS, as_matrix, bias_axis, out_shape

__all__: list[str] = []


def _upon(p: Params, ndim: int) -> int:
    axis: int = p.axis
    return min(axis, ndim - 1) if axis >= 0 else axis + ndim


@op(
    "_bias_like",
    inputs="data like~",
    axis=Int(1),
    expr="data",
    aligned=lambda p, ins, out: [along(ins[0], _upon(p, len(out)), len(out)), None],
    grad=lambda F, p, dy, like_data: (F._bias_sum(dy, like_data, axis=p.axis), None),
)
def bias_like(k: Call, p: Params, data: Array, like: Array) -> Array:
    """Repeat a vector along one axis of an array, as a bias is.

    Parameters
    ----------
    data : array
        Shape (C,) or (1,).
    like : array
        Only its shape is used; its length on `axis` is C.
    axis : int
        The last one if the array has fewer.
    """
    at = _upon(p, like.ndim)
    vector = data.reshape(tuple(-1 if i == at else 1 for i in range(like.ndim)))
    return k.xp.broadcast_to(vector, tuple(like.shape)).copy()


@op(
    "_bias_sum",
    inputs="data like~",
    axis=Int(1),
    expr="data",
    reduces=("sum", lambda p, data, out: [i for i in range(len(data)) if i != _upon(p, len(data)) or out[0] == 1]),
    grad=lambda F, p, dy, like_data: (F._bias_like(dy, like_data, axis=p.axis), None),
)
@silent
def bias_sum(k: Call, p: Params, data: Array, like: Array) -> Array:
    """Sum over all axes but one, or over all: the adjoint of `_bias_like`.

    Parameters
    ----------
    data : array
    like : array
        Only its shape is used: (C,) or (1,).
    axis : int
        The last one if `data` has fewer.
    """
    at = _upon(p, data.ndim)
    total = wide(data).sum(tuple(i for i in range(data.ndim) if i != at))
    return total.sum().reshape(1) if like.shape[0] == 1 else total


def _bias_shape(p: Params, ins: list[Any], bias: Any, whole: Any) -> Any:
    """The bias has one element, or one for each place on the axis."""
    if bias not in ((1,), whole[_upon(p, len(whole)) :][:1]):
        raise ValueError(f"the bias {bias} must have one element, or one for each place on axis {p.axis} of {whole}")
    return [ins[1]]


bias_like.shape(lambda p, ins: _bias_shape(p, ins, *ins))
bias_sum.shape(lambda p, ins: _bias_shape(p, ins, *ins[::-1]))


@op(
    "_backward_FullyConnected",
    inputs="dy data weight",
    outputs="data weight bias[not no_bias]",
    **FULLY_CONNECTED_PARAMS,
    backward_of="FullyConnected",
    grad=linear_grad_grad("FullyConnected", FULLY_CONNECTED_PARAMS, bias_axis),
)
def backward_fully_connected(k: Call, p: Params, dy_: Array, data: Array, weight: Array) -> Any:
    """Gradients of `FullyConnected` with respect to data, weight and bias.

    Parameters
    ----------
    dy : array
        The incoming gradient.
    data, weight : array
        The inputs.
    num_hidden : int
    no_bias, flatten : bool
        As in `FullyConnected`.
    """
    xp, wanted = k.xp, k.wanted or (True,) * 3
    dy = wide(dy_).reshape(size_of(dy_.shape[:-1]), p.num_hidden)
    grads = [
        xp.matmul(dy, wide(weight)).reshape(data.shape) if wanted[0] else None,
        xp.matmul(dy.T, as_matrix(p, wide(data))) if wanted[1] else None,
    ]
    if not p.no_bias:
        grads.append(dy.sum(0) if wanted[2] else None)
    return grads


@backward_fully_connected.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    dy, data, weight = ins
    fits("dy weight", (dy, weight), (out_shape(p, data), (p.num_hidden, size_of(data[1:] if p.flatten else data[-1:]))))
    return [data, weight, (p.num_hidden,)][: 2 if p.no_bias else 3]


@backward_fully_connected.cost
def _(p: Params, ins: list[Any], outs: list[Any]) -> Any:
    return size_of(ins[1]) * p.num_hidden / 5
