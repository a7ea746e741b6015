"""The fully connected layer."""

from __future__ import annotations

from typing import Any

from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool, Int
from ...typing import Array, Call
from ..common.bodies import wide
from ..common.gradients import linear_grad
from ..common.rules import floating, size_of

__all__: list[str] = []


FULLY_CONNECTED_PARAMS = dict(num_hidden=Int(ge=1), no_bias=Bool(False), flatten=Bool(True))


def bias_axis(p: Params, ndim: int) -> int:
    """Along which axis of the output the bias is added."""
    return ndim - 1


def as_matrix(p: Params, x: Any) -> Any:
    """The data as a matrix, one sample (or position) a row."""
    if p.flatten:
        return x.reshape(x.shape[0], size_of(x.shape[1:]))
    return x.reshape(size_of(x.shape[:-1]), x.shape[-1])


@op(
    "FullyConnected",
    inputs="data weight bias[not no_bias]",
    labels="outputs",
    **FULLY_CONNECTED_PARAMS,
    bias=bias_axis,
    recompute=False,
    rowwise=True,
    grad=linear_grad("FullyConnected", FULLY_CONNECTED_PARAMS),
)
def fully_connected(k: Call, p: Params, data: Array, weight: Array, bias: Array = None) -> Array:
    """Multiply by a weight matrix and add a bias: ``data @ weight.T + bias``.

    Parameters
    ----------
    data : array
        Shape (N, ...); all dimensions but the first are taken together, or with ``flatten=False`` only the last is
        used.
    weight : array
        Shape (num_hidden, inputs).
    bias : array
        Shape (num_hidden,); absent with `no_bias`.
    num_hidden : int
        Number of outputs.
    no_bias : bool
        There is no bias.
    flatten : bool
        Collapse all dimensions but the first; else the layer works on the last dimension.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``FullyConnected``.
    """
    xp = k.xp
    out = xp.matmul(as_matrix(p, wide(data)), wide(weight).T)
    if bias is not None:
        out += wide(bias)
    return (
        out.astype(data.dtype).reshape(out_shape(p, data.shape))
        if out.dtype != data.dtype
        else out.reshape(out_shape(p, data.shape))
    )


def out_shape(p: Params, data: Any) -> tuple[int, ...]:
    """The shape of the output for a data shape."""
    return (data[0], p.num_hidden) if p.flatten else (*data[:-1], p.num_hidden)


@fully_connected.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    data, (out,) = ins[0], outs
    if data is not None and not data:
        raise ValueError("data must have at least one dimension")
    width = -1
    if data is not None:
        rest = data[1:] if p.flatten else data[-1:]
        width = size_of(rest) if -1 not in rest else -1
        out = (
            out_shape(p, data)
            if out is None
            else tuple(a if b == -1 else b for a, b in zip(out, out_shape(p, data)))
            if len(out) == len(out_shape(p, data))
            else out_shape(p, data)
        )
    elif out is not None and not p.flatten:
        data = (*out[:-1], -1)
    if out is not None and data is not None:  # the batch may be known from the output only
        data = (out[0], *data[1:]) if p.flatten else (*out[:-1], data[-1])
    if data is None:
        # MXNet says nothing of parameters either; a bias that is known must fit all the same.
        return [None, None, *((p.num_hidden,) if b is not None else None for b in ins[2:])], [out]
    weight = ins[1]
    if weight is not None and len(weight) == 2 and weight[1] != -1:
        if not p.flatten:
            data = (*data[:-1], weight[1]) if data[-1] == -1 else data
        elif len(data) == 2 and data[1] == -1:
            data = (data[0], weight[1])
    return [data, (p.num_hidden, width), (p.num_hidden,)][: len(ins)], [out]


fully_connected.dtype(floating())


fully_connected.attach(flops=True)


@fully_connected.cost
def _(p: Params, ins: list[Any], outs: list[Any]) -> Any:
    return size_of(ins[0]) * p.num_hidden / 10
