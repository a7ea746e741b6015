"""Gradients of the operators of :mod:`mxcore.ops.activation`."""

from __future__ import annotations

import math
from typing import Any

from ..._core.op import op
from ..._core.params import Params
from ...parameters import Enum
from ...typing import Array, Call, Operators
from ..common.bodies import formula, silent, wide
from ..common.gradients import given
from .operators import (
    ACTIVATIONS,
    EXPRESSIONS,
    LEAKY_EXPRESSIONS,
    LEAKY_PARAMS,
    PRELU_BACKWARD,
    SELU_ALPHA,
    SELU_SCALE,
    evaluated,
    leaky_relu,
    slopes,
)
from .softmax import BACKWARD_PARAMS, over_temperature

__all__: list[str] = []


@op(
    "_backward_Activation",
    inputs="dy out",
    act_type=Enum("relu sigmoid tanh softrelu softsign"),
    alias="dy->output",
    expr=lambda p: EXPRESSIONS[p.act_type][1],
    grad=lambda F, p, dy, dy_, out: (
        F._backward_Activation(dy, out, act_type=p.act_type),
        ACTIVATIONS[p.act_type][2](F, dy * dy_, out),
    ),
)
def backward_activation(k: Call, p: Params, dy_: Array, out: Array) -> Array:
    """The gradient of `Activation`, from the incoming gradient and its output.

    Parameters
    ----------
    dy, out : array
    act_type : str
        As in `Activation`.
    """
    return ACTIVATIONS[p.act_type][1](k.xp, dy_, out)


def _slope(p: Params) -> str | None:
    """The formula of its gradient."""
    return LEAKY_EXPRESSIONS.get(p.act_type, (None, None))[1]


#: act_type -> second derivative over (F, p, x); missing means zero.
_CURVES: dict[str, Any] = {
    "elu": lambda F, p, x: F.exp(F._minimum_scalar(x, scalar=0.0)) * (x <= 0) * p.slope,
    "selu": lambda F, p, x: F.exp(F._minimum_scalar(x, scalar=0.0)) * (x <= 0) * (SELU_SCALE * SELU_ALPHA),
    "gelu": lambda F, p, x: F.exp(x * x * -0.5) * (2 - x * x) * (1 / math.sqrt(2 * math.pi)),
}


def _leaky_grad(F: Operators, p: Params, dy: Any, data: Any, gamma: Any, dys: Any, needs: Any, out_mask: Any) -> Any:
    if p.act_type == "prelu":
        return F._backward_prelu(dy, data, gamma, wanted=tuple(needs))
    if p.act_type == "rrelu":
        return F._backward_rrelu(dy, data, out_mask), None
    return F._backward_LeakyReLU(dy, data, **given(p, LEAKY_PARAMS)), None


leaky_relu.grad(_leaky_grad)


@op(
    "_backward_LeakyReLU",
    inputs="dy data",
    **LEAKY_PARAMS,
    expr=_slope,
    grad=lambda F, p, dy, dy_, data: (
        F._backward_LeakyReLU(dy, data, **given(p, LEAKY_PARAMS)),
        dy * dy_ * _CURVES[p.act_type](F, p, data) if p.act_type in _CURVES else F.zeros_like(data),
    ),
)
def backward_leaky_relu(k: Call, p: Params, dy_: Array, data: Array) -> Array:
    """Gradient of `LeakyReLU` with a fixed slope.

    Parameters
    ----------
    dy : array
        The incoming gradient.
    data : array
        The input.
    act_type, slope, lower_bound, upper_bound
        As in `LeakyReLU`.
    """
    return evaluated(k.xp, _slope(p), p, data=wide(data), dy=wide(dy_))


@op(
    "_backward_rrelu",
    inputs="dy data mask",
    expr=PRELU_BACKWARD,
    grad=lambda F, dy, dy_, data, mask: (F._backward_rrelu(dy, data, mask), None, dy * dy_ * (data <= 0)),
)
def backward_rrelu(k: Call, p: Params, dy_: Array, data: Array, mask: Array) -> Array:
    """Gradient of the random `LeakyReLU`.

    Parameters
    ----------
    dy, data, mask : array
        The incoming gradient, the input, the slopes below zero.
    """
    return formula(PRELU_BACKWARD)(k.xp, data=data, dy=dy_, mask=mask)


@op(
    "_backward_prelu",
    inputs="dy data gamma",
    outputs="data gamma",
    grad=lambda F, dys, dy_, data, gamma: _prelu_grad_grad(F, dys, dy_, data, gamma),
)
@silent
def backward_prelu(k: Call, p: Params, dy_: Array, data: Array, gamma: Array) -> Any:
    """Gradients of `LeakyReLU` with learned slopes, with respect to data and slopes.

    Parameters
    ----------
    dy, data, gamma : array
        The incoming gradient, the input, the slopes.
    """
    xp, x, dy = k.xp, wide(data), wide(dy_)
    wanted = k.wanted or (True, True)
    d_gamma = None
    if wanted[1]:
        d_gamma = xp.where(x > 0, x.dtype.type(0), dy * x)
        if gamma.shape[0] == 1:
            d_gamma = d_gamma.sum().reshape(1)
        elif x.ndim > 1:
            d_gamma = d_gamma.sum((0, *range(2, x.ndim)))
    return xp.where(x > 0, dy, dy * slopes(x, wide(gamma))) if wanted[0] else None, d_gamma


def _prelu_grad_grad(F: Operators, dys: Any, dy: Any, data: Any, gamma: Any) -> Any:
    g_data, g_gamma = dys  # None where the first backward pass computed nothing
    below = data <= 0
    d_dy = d_data = d_gamma = None
    if g_data is not None:
        d_dy = F._backward_prelu(g_data, data, gamma, wanted=(True, False))[0]
        d_gamma = F._bias_sum(g_data * dy * below, gamma)
    if g_gamma is not None:
        slope = F._bias_like(g_gamma, data) * below
        d_data = slope * dy
        d_dy = slope * data if d_dy is None else d_dy + slope * data
    return d_dy, d_data, d_gamma


backward_prelu.shape(lambda p, ins: [ins[1], ins[2]])


@op(
    "_backward_softmax",
    inputs="dy out",
    **BACKWARD_PARAMS,
    grad=lambda F, p, dy, dy_, out: (
        F._backward_softmax(dy, out, **given(p, BACKWARD_PARAMS)),
        over_temperature(
            p,
            F.broadcast_sub(
                dy * dy_,
                F.broadcast_add(
                    F.broadcast_mul(dy, F.sum(dy_ * out, axis=p.axis, keepdims=True)),
                    F.broadcast_mul(dy_, F.sum(dy * out, axis=p.axis, keepdims=True)),
                ),
            ),
        ),
    ),
)
def backward_softmax(k: Call, p: Params, dy_: Array, out: Array) -> Array:
    """Gradient of `softmax` with respect to its logits.

    Parameters
    ----------
    dy : array
        The incoming gradient.
    out : array
        What softmax returned.
    axis : int
    temperature : float, optional
        As in `softmax`.
    """
    y, dy = wide(out), wide(dy_)
    g = dy * y
    g -= y * g.sum(p.axis, keepdims=True)
    return over_temperature(p, g)


@op(
    "_backward_log_softmax",
    inputs="dy out",
    **BACKWARD_PARAMS,
    grad=lambda F, p, dy, dy_, out: (
        over_temperature(p, F.broadcast_sub(dy, F.sum(dy * F.exp(out), axis=p.axis, keepdims=True))),
        over_temperature(p, -F.broadcast_mul(dy * F.exp(out), F.sum(dy_, axis=p.axis, keepdims=True))),
    ),
)
def backward_log_softmax(k: Call, p: Params, dy_: Array, out: Array) -> Array:
    """Gradient of `log_softmax` with respect to its logits.

    Parameters
    ----------
    dy : array
        The incoming gradient.
    out : array
        What log_softmax returned.
    axis : int
    temperature : float, optional
        As in `log_softmax`.
    """
    dy = wide(dy_)
    return over_temperature(p, dy - k.xp.exp(wide(out)) * dy.sum(p.axis, keepdims=True))
