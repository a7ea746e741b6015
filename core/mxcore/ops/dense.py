"""The fully connected layer, and what it shares with the convolutions: they are linear in data and in weight."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.op import op
from ..parameters import Bool, Int
from .floating import floating
from .rules import fits, size_of
from .silent import silent

__all__ = ["along", "wide", "given", "linear_grad", "linear_grad_grad"]


def wide(a: Any) -> Any:
    """Half precision, bfloat16 too, as float32: sums are kept in it, and only there BLAS is fast."""
    return a.astype(np.float32) if a.dtype.itemsize == 2 and a.dtype.kind in "fV" else a


def given(p: Any, names: Any) -> dict[str, Any]:
    """The values of the named parameters, to hand them to another operator."""
    return {n: getattr(p, n) for n in names}


def linear_grad(name: str, params: dict[str, Any]) -> Any:
    """The gradient rule of an operator that is linear in data and in weight: one call of ``_backward_<name>``."""

    def rule(F, p, dy, data, weight, needs):
        return getattr(F, f"_backward_{name}")(dy, data, weight, wanted=tuple(needs), **given(p, params))

    return rule


def linear_grad_grad(name: str, params: dict[str, Any]) -> Any:
    """The gradient rule of ``_backward_<name>``: bilinearity makes it three more calls of the same two operators."""

    def rule(F, p, dys, dy_, data, weight):
        forward, backward = getattr(F, name), getattr(F, f"_backward_{name}")
        kw = {**given(p, params), "no_bias": True}
        # None for what the first backward pass did not compute.
        g_data, g_weight, g_bias = (*dys, None)[:3]
        terms = [
            forward(g_data, weight, **kw) if g_data is not None else None,
            forward(data, g_weight, **kw) if g_weight is not None else None,
            F._bias_like(g_bias, dy_, axis=_channel_axis(name, p)) if g_bias is not None else None,
        ]
        return (
            _total(terms),
            None if g_weight is None else backward(dy_, data, g_weight, wanted=(True, False), **kw)[0],
            None if g_data is None else backward(dy_, g_data, weight, wanted=(False, True), **kw)[1],
        )

    return rule


def _total(terms: list[Any]) -> Any:
    found = None
    for x in terms:
        if x is not None:
            found = x if found is None else found + x
    return found


def _channel_axis(name: str, p: Any) -> int:
    return -1 if name == "FullyConnected" or (p.layout or "NCW")[-1] == "C" else 1


def _upon(p: Any, ndim: int) -> int:
    return min(p.axis, ndim - 1) if p.axis >= 0 else p.axis + ndim


def along(vector: Any, axis: int, ndim: int) -> tuple[int, ...]:
    """The shape in which a vector lies along an axis."""
    return tuple(vector[0] if i == axis else 1 for i in range(ndim))


@op(
    "_bias_like",
    inputs="data like~",
    axis=Int(1),
    expr="data",
    aligned=lambda p, ins, out: [along(ins[0], _upon(p, len(out)), len(out)), None],
    grad=lambda F, p, dy, like_data: (F._bias_sum(dy, like_data, axis=p.axis), None),
)
def bias_like(k, p, data, like):
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
def bias_sum(k, p, data, like):
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


def _bias_shape(p, ins, bias, whole):
    """The bias has one element, or one for each place on the axis."""
    if bias not in ((1,), whole[_upon(p, len(whole)) :][:1]):
        raise ValueError(f"the bias {bias} must have one element, or one for each place on axis {p.axis} of {whole}")
    return [ins[1]]


bias_like.shape(lambda p, ins: _bias_shape(p, ins, *ins))
bias_sum.shape(lambda p, ins: _bias_shape(p, ins, *ins[::-1]))

_PARAMS = dict(num_hidden=Int(ge=1), no_bias=Bool(False), flatten=Bool(True))


def _matrix(p: Any, x: Any) -> Any:
    """The data as a matrix, one sample (or position) a row."""
    if p.flatten:
        return x.reshape(x.shape[0], size_of(x.shape[1:]))
    return x.reshape(size_of(x.shape[:-1]), x.shape[-1])


@op(
    "FullyConnected",
    inputs="data weight bias[not no_bias]",
    labels="outputs",
    **_PARAMS,
    bias=lambda p, ndim: ndim - 1,
    recompute=False,
    rowwise=True,
    grad=linear_grad("FullyConnected", _PARAMS),
)
def fully_connected(k, p, data, weight, bias=None):
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
    out = xp.matmul(_matrix(p, wide(data)), wide(weight).T)
    if bias is not None:
        out += wide(bias)
    return (
        out.astype(data.dtype).reshape(_out(p, data.shape))
        if out.dtype != data.dtype
        else out.reshape(_out(p, data.shape))
    )


def _out(p: Any, data: Any) -> tuple[int, ...]:
    return (data[0], p.num_hidden) if p.flatten else (*data[:-1], p.num_hidden)


@fully_connected.shape
def _(p, ins, outs):
    data, (out,) = ins[0], outs
    if data is not None and not data:
        raise ValueError("data must have at least one dimension")
    width = -1
    if data is not None:
        rest = data[1:] if p.flatten else data[-1:]
        width = size_of(rest) if -1 not in rest else -1
        out = (
            _out(p, data)
            if out is None
            else tuple(a if b == -1 else b for a, b in zip(out, _out(p, data)))
            if len(out) == len(_out(p, data))
            else _out(p, data)
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


@fully_connected.cost
def _(p, ins, outs):
    return size_of(ins[0]) * p.num_hidden / 10


@op(
    "_backward_FullyConnected",
    inputs="dy data weight",
    outputs="data weight bias[not no_bias]",
    **_PARAMS,
    backward_of="FullyConnected",
    grad=linear_grad_grad("FullyConnected", _PARAMS),
)
def backward_fully_connected(k, p, dy_, data, weight):
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
        xp.matmul(dy.T, _matrix(p, wide(data))) if wanted[1] else None,
    ]
    if not p.no_bias:
        grads.append(dy.sum(0) if wanted[2] else None)
    return grads


@backward_fully_connected.shape
def _(p, ins):
    dy, data, weight = ins
    fits("dy weight", (dy, weight), (_out(p, data), (p.num_hidden, size_of(data[1:] if p.flatten else data[-1:]))))
    return [data, weight, (p.num_hidden,)][: 2 if p.no_bias else 3]


@backward_fully_connected.cost
def _(p, ins, outs):
    return size_of(ins[1]) * p.num_hidden / 5
