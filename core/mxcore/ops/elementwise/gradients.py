"""Gradients of the operators of :mod:`mxcore.ops.elementwise`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.infer import merge_dtype
from ..._core.op import op
from ..._core.params import Params
from ...typing import Array, Call, Operators
from ..common.bodies import sum_over
from ..common.rules import spread_from
from .functions import QUADRATIC_PARAMS

__all__: list[str] = []


def _unspread(p: Params, data: Any, out: Any) -> Any:
    """The axes over which a sum gives `out`; None where there is nothing to add up."""
    if data == out:
        return None
    out = out[max(len(out) - len(data), 0) :]  # leading ones, dropped by an assignment
    return [i for i, d in enumerate((1,) * (len(data) - len(out)) + out) if d == 1 != data[i]]


@op(
    "_sum_like",
    inputs="data like~",
    expr="data",
    reduces=("sum", _unspread),
    identity=True,
    grad=lambda F, dy, like_data: (F._broadcast_back(dy, like_data), None),
)
def sum_like(k: Call, p: Params, data: Array, like: Array) -> Array:
    """Sum `data` over the axes along which it was broadcast from the shape of `like`.

    Parameters
    ----------
    data : array
    like : array
        Only its shape is used; it may have another dtype.
    """
    shape = tuple(like.shape)
    if shape == tuple(data.shape):
        return data
    lead = data.ndim - len(shape)
    if lead < 0:  # leading ones, dropped by an assignment
        axes = tuple(i for i, d in enumerate(shape[-lead:]) if d == 1 and data.shape[i] != 1)
    else:
        axes = (*range(lead), *(i + lead for i, d in enumerate(shape) if d == 1 and data.shape[i + lead] != 1))
    with np.errstate(all="ignore"):  # array methods warn in NumPy's name, where nobody silences them
        return sum_over(data, axes).reshape(shape)


@sum_like.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    spread_from(ins[0], ins[1], "like")
    return [ins[1]]


@sum_like.dtype
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    t = merge_dtype(ins[0], outs[0])
    return [t, t if ins[1] is None else ins[1]], [t]


sum_like.view = True  # equal shapes: the gradient itself, no copy


@op("_broadcast_back", inputs="data like~", grad=lambda F, dy, like_data: (F._sum_like(dy, like_data), None))
def broadcast_back(k: Call, p: Params, data: Array, like: Array) -> Array:
    """Repeat `data` to the shape of `like`, which may lack its leading ones: the gradient of `_sum_like`.

    Parameters
    ----------
    data : array
    like : array
        Only its shape is used.
    """
    shape = tuple(like.shape)
    return k.xp.broadcast_to(data.reshape(data.shape[max(data.ndim - len(shape), 0) :]), shape).copy()


@broadcast_back.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    spread_from(ins[1], ins[0], "data")
    return [ins[1]]


def _quadratic_grads(F: Operators, p: Params, dys: Any, dy_: Any, data: Any) -> Any:
    return F._contrib_backward_quadratic(dys[0], data, a=p.a, b=p.b, c=p.c), dys[0] * dy_ * (2 * p.a)


@op("_contrib_backward_quadratic", inputs="dy data", params=QUADRATIC_PARAMS, alias="dy->output", grad=_quadratic_grads)
def backward_quadratic(k: Call, p: Params, dy_: Array, data: Array) -> Array:
    """The gradient of `quadratic`: ``dy * (2 * a * x + b)``.

    Parameters
    ----------
    dy, data : array
    a, b, c : float
        As in `quadratic`.
    """
    return dy_ * (2 * p.a * data + p.b)
