"""The logarithm of one softmax of each row: what graph passes make of `log_softmax` and the `pick` behind it."""

from __future__ import annotations

from typing import Any

from ..._core.infer import known
from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool, Float
from ...typing import Array, Call, Operand, Operators
from ..common.bodies import wide
from ..common.rules import floating, reduced, size_of
from ..indexing.take import within

__all__: list[str] = []

_PARAMS = {"keepdims": Bool(False), "scalar": Float(1.0)}


def _gradient(
    F: Operators, p: Params, d_out: Operand, data: Operand, index: Operand, out_largest: Operand, out_total: Operand
) -> Any:
    found = F._backward_pick_log_softmax(
        d_out, data, index, out_largest, out_total, keepdims=p.keepdims, scalar=p.scalar
    )
    return found, None


@op("_pick_log_softmax", inputs="data index", outputs="out largest total", visible=1, grad=_gradient, **_PARAMS)
def pick_log_softmax(k: Call, p: Params, data: Array, index: Array) -> Any:
    """One logarithm of the softmax over the last axis for each row, times a number.

    Parameters
    ----------
    data : array
        Logits, shape (..., C).
    index : array
        Which one: shape (...) or (..., 1); fractions are cut, and one out of range is the nearest valid one.
    keepdims : bool
        Whether the result has shape (..., 1) or (...).
    scalar : float
        A factor, such as -1 for a loss.

    Notes
    -----
    ``scalar * pick(log_softmax(data), index)``, beside the greatest logit of each row and the logarithm of the sum of
    exponentials above it, which the gradient reads.
    """
    xp, x = k.xp, wide(data)
    at = _places(k, data, index)
    largest = x.max(-1)
    total = xp.log(xp.exp(x - largest[..., None]).sum(-1))
    picked = (xp.take_along_axis(x, at, -1)[..., 0] - largest - total) * x.dtype.type(p.scalar)
    return picked.reshape(_rows(data.shape, p.keepdims)), largest, total


@pick_log_softmax.higher
def _(F: Operators, p: Params, d_out: Operand, data: Operand, index: Operand) -> Any:
    soft = F.log_softmax(data)
    picked = F._backward_pick(d_out * p.scalar, data, index, keepdims=p.keepdims)
    return F._backward_log_softmax(picked, soft), None


def _places(k: Call, data: Array, index: Array) -> Any:
    return within(k.xp, index, data.shape[-1], "clip").reshape(*data.shape[:-1], 1)


def _rows(data: Any, keepdims: bool) -> Any:
    return reduced(data, (len(data) - 1,), keepdims)


def _fits(data: Any, index: Any) -> None:
    if len(data) < 2 or data[-1] == 0:
        raise ValueError(f"data {data} must have at least two dimensions and one class")
    if known(data) and known(index) and index not in (_rows(data, False), _rows(data, True)):
        raise ValueError(f"index {index} must have the shape of data {data} without the last axis, or with length 1")


@pick_log_softmax.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    data, index = ins
    if data is None:
        return ins, outs
    _fits(data, index)
    rows = _rows(data, False)
    return [data, rows if index is None else index], [_rows(data, p.keepdims), rows, rows]


@pick_log_softmax.dtype
@floating
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    t = ins[0] or outs[0]
    return [t, ins[1] or t], [t, t, t]


pick_log_softmax.cost(lambda p, ins, outs: 10 * size_of(ins[0]))


@op("_backward_pick_log_softmax", inputs="dy data index largest total", **_PARAMS)
def backward_pick_log_softmax(
    k: Call, p: Params, dy_: Array, data: Array, index: Array, largest: Array, total: Array
) -> Array:
    """Gradient of `_pick_log_softmax` with respect to its logits.

    Parameters
    ----------
    dy : array
        The incoming gradient, one number for each row.
    data, index : array
        The inputs.
    largest, total : array
        What the forward pass found, shape (...).
    keepdims : bool
    scalar : float
        As in `_pick_log_softmax`.
    """
    xp, x = k.xp, wide(data)
    dy = wide(dy_).reshape(*data.shape[:-1], 1) * x.dtype.type(p.scalar)
    hit = xp.arange(data.shape[-1]) == _places(k, data, index)
    return xp.where(hit, dy, x.dtype.type(0)) - xp.exp(x - wide(largest)[..., None] - wide(total)[..., None]) * dy


@backward_pick_log_softmax.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    dy, data, index, *found = ins
    _fits(data, index)
    if dy != _rows(data, p.keepdims) or any(s != _rows(data, False) for s in found):
        raise ValueError(f"dy {dy} and what forward found, {found[0]} and {found[1]}, must fit data {data}")
    return [data]


@backward_pick_log_softmax.dtype
@floating
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    t = ins[0] or ins[1] or outs[0]
    return [t, t, ins[2] or t, t, t], [t]


backward_pick_log_softmax.cost(lambda p, ins, outs: 10 * size_of(ins[1]))
