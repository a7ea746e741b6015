"""Activations, with parameters or without, and dropout."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.infer import merge_shape, show
from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool, Enum, Float, Shape
from ...typing import Array, Call
from ..common import special_functions
from ..common.bodies import formula, wide
from ..common.rules import along, floating, size_of

__all__ = [
    "ACTIVATIONS",
    "EXPRESSIONS",
    "LEAKY_EXPRESSIONS",
    "LEAKY_PARAMS",
    "PRELU",
    "PRELU_BACKWARD",
    "SELU_ALPHA",
    "SELU_SCALE",
    "evaluated",
    "leaky_relu",
    "slopes",
]


# The gradient of relu is 0 where it gave 0; a NaN that it handed on comes back as one.
#: act_type -> (expression; that of its gradient, over dy and the output)
EXPRESSIONS = {
    "relu": ("relu(data)", "dy * (1 if out > 0 else out)"),
    "sigmoid": ("sigmoid(data)", "dy * out * (1 - out)"),
    "tanh": ("tanh(data)", "dy * (1 - out * out)"),
    "softrelu": ("softplus(data)", "dy * -expm1(-out)"),
    "softsign": ("data / (1 + abs(data))", "dy * square(1 - abs(out))"),
}
#: act_type -> (function; over dy and the output: its gradient; the gradient's derivative for the output, over g * dy)
ACTIVATIONS: dict[str, tuple[Any, Any, Any]] = {
    "relu": (
        lambda xp, x: xp.maximum(x, x.dtype.type(0)),
        lambda xp, dy, y: dy * xp.where(y > 0, y.dtype.type(1), y),
        lambda F, g, y: None,
    ),
    "sigmoid": (special_functions.sigmoid, lambda xp, dy, y: dy * y * (1 - y), lambda F, g, y: g * (1 - 2 * y)),
    "tanh": (lambda xp, x: xp.tanh(x), lambda xp, dy, y: dy * (1 - y * y), lambda F, g, y: g * -2 * y),
    "softrelu": (special_functions.softplus, lambda xp, dy, y: dy * -xp.expm1(-y), lambda F, g, y: g * F.exp(-y)),
    "softsign": (
        lambda xp, x: x / (1 + xp.abs(x)),
        lambda xp, dy, y: dy * xp.square(1 - xp.abs(y)),
        lambda F, g, y: g * -2 * (1 - F.abs(y)) * F.sign(y),
    ),
}


@op(
    "Activation",
    inputs="data",
    labels="outputs",
    act_type=Enum("relu sigmoid tanh softrelu softsign"),
    alias="data->output",
    expr=lambda p: EXPRESSIONS[p.act_type][0],
    grad=lambda F, p, dy, y: F._backward_Activation(dy, y, act_type=p.act_type),
)
def activation(k: Call, p: Params, data: Array) -> Array:
    """Apply an activation function.

    Parameters
    ----------
    data : array
    act_type : {'relu', 'sigmoid', 'tanh', 'softrelu', 'softsign'}
        softrelu is log(1 + exp(x)).
    """
    return ACTIVATIONS[p.act_type][0](k.xp, data)


activation.dtype(floating())


@op(
    "hard_sigmoid",
    inputs="data",
    alpha=Float(0.2),
    beta=Float(0.5),
    expr="minimum(maximum(alpha * data + beta, 0), 1)",
    grad=lambda F, p, dy, y: dy * p.alpha * (y > 0) * (y < 1),
)
def hard_sigmoid(k: Call, p: Params, data: Array) -> Array:
    """max(0, min(1, alpha * x + beta)).

    Parameters
    ----------
    data : array
    alpha, beta : float
        Slope and offset.
    """
    return k.xp.clip(p.alpha * data + p.beta, 0, 1)


hard_sigmoid.dtype(floating())

# -- LeakyReLU ------------------------------------------------------------------------------------------------------

#: Klambauer et al., "Self-normalizing neural networks", 2017.
SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805
#: act_type -> (value, gradient), of those with a fixed slope.
LEAKY_EXPRESSIONS = {
    "leaky": ("data if data > 0 else data * slope", "dy if data > 0 else dy * slope"),
    "elu": ("data if data > 0 else slope * expm1(data)", "dy if data > 0 else dy * (slope * exp(data))"),
    "selu": (
        f"{SELU_SCALE} * (data if data > 0 else {SELU_ALPHA} * expm1(data))",
        f"{SELU_SCALE} * (dy if data > 0 else dy * ({SELU_ALPHA} * exp(data)))",
    ),
    "gelu": (
        "data * (0.5 * (1 + erf(data * 0.7071067811865476)))",
        "dy * (0.5 * (1 + erf(data * 0.7071067811865476)) + data * (exp(-0.5 * data * data) * 0.3989422804014327))",
    ),
}
#: The first one as the array library computes it sooner, for slopes in (0, 1]; beyond, infinity times 0 is NaN.
_QUICK = "maximum(data, data * slope)"
#: Those with slopes of their own.
PRELU, PRELU_BACKWARD = "data if data > 0 else data * gamma", "dy if data > 0 else dy * mask"


def _value(p: Params) -> str | None:
    """The formula of `LeakyReLU`."""
    return PRELU if p.act_type == "prelu" else LEAKY_EXPRESSIONS.get(p.act_type, (None,))[0]


def evaluated(xp: Any, text: Any, p: Any, **values: Any) -> Any:
    """The value of an expression over arrays, and over the slope where it has one."""
    return formula(text)(xp, **values, **({"slope": p.slope} if "slope" in text else {}))


LEAKY_PARAMS = dict(
    act_type=Enum("elu gelu leaky prelu rrelu selu", "leaky"),
    slope=Float(0.25),
    lower_bound=Float(0.125),
    upper_bound=Float(0.334),
)


@op(
    "LeakyReLU",
    inputs="data gamma[act_type=='prelu']",
    labels="inputs outputs",
    outputs="output mask[act_type=='rrelu']",
    **LEAKY_PARAMS,
    expr=_value,
    aligned=lambda p, ins, out: [None, *[along(s, min(1, len(out) - 1), len(out)) for s in ins[1:]]],
    random=lambda p: p.act_type == "rrelu",
    grad=None,
)
def leaky_relu(k: Call, p: Params, data: Array, gamma: Array = None) -> Any:
    """Rectifiers that let something through below zero.

    Parameters
    ----------
    data : array
        Any shape.
    gamma : array
        For ``prelu`` only: the learned slopes, of shape (C,) along axis 1 or (1,).
    act_type : {'leaky', 'elu', 'selu', 'gelu', 'prelu', 'rrelu'}
        For x below zero: ``slope * x``, ``slope * (exp(x) - 1)``, a scaled elu, ``x`` times the normal distribution
        function (everywhere), ``gamma * x``, a random multiple of x.
    slope : float
        For ``leaky`` and ``elu``.
    lower_bound, upper_bound : float
        For ``rrelu``: the slope is uniform between them in training, their mean otherwise. The slopes are a second
        output.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``LeakyReLU``, except for the gradient of ``selu``, where MXNet scales twice.
    """
    xp, x = k.xp, wide(data)
    if p.act_type == "prelu":
        return formula(PRELU)(xp, data=x, gamma=slopes(x, wide(gamma)))
    if p.act_type != "rrelu":
        return evaluated(xp, _QUICK if p.act_type == "leaky" and 0 < p.slope <= 1 else _value(p), p, data=x)
    low, high = p.lower_bound, p.upper_bound
    if k.is_train:
        mask = (k.rng.uniform(data.shape, x.dtype) * (high - low) + low).astype(data.dtype)
    else:
        mask = xp.broadcast_to(xp.full((1,), (low + high) / 2, data.dtype), data.shape)
    return formula(PRELU)(xp, data=x, gamma=mask), mask


def slopes(x: Any, gamma: Any) -> Any:
    """The slopes, to be broadcast over the data."""
    return gamma if x.ndim < 2 or gamma.shape[0] == 1 else gamma.reshape(-1, *(1,) * (x.ndim - 2))


leaky_relu.input_attrs = {"gamma": {"__init__": '["Constant", {"value": 0.25}]'}}


def _prelu_shape(ins: list[Any]) -> list[Any]:
    data, gamma = ins
    if data is None or (gamma is not None and tuple(gamma) == (1,)):
        return [data, gamma]
    channels = data[1] if len(data) > 1 else data[0] if data else 1
    if gamma is not None and (len(gamma) != 1 or gamma[0] not in (-1, channels) and channels != -1):
        raise ValueError(f"gamma {gamma} must have shape {show((channels,))} or (1,) for data {data}")
    return [data, (channels,)]


@leaky_relu.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    data = ins[0]
    for s in outs:
        data = merge_shape(data, s)
    return _prelu_shape([data, ins[1]]) if len(ins) == 2 else [data], [data] * len(outs)


leaky_relu.dtype(floating())
leaky_relu.cost(lambda p, ins, outs: size_of(ins[0]) * (2 if p.act_type in ("leaky", "prelu") else 10))

# -- Dropout --------------------------------------------------------------------------------------------------------


def _mask_shape(p: Params, shape: Any) -> Any:
    axes = p.axes or ()
    if any(not 0 <= a < len(shape) for a in axes):
        raise ValueError(f"axes {axes} must lie in [0, {len(shape)})")
    return tuple(1 if i in axes else n for i, n in enumerate(shape))


@op(
    "Dropout",
    inputs="data",
    labels="inputs outputs",
    recompute=False,
    outputs="output mask",
    visible=1,
    random=lambda p: p.p > 0,
    p=Float(0.5, ge=0, le=1),
    mode=Enum("always training", "training"),
    axes=Shape((), optional=True),
    cudnn_off=Bool(False, optional=True),
    grad=lambda F, p, dy, out_mask: F.broadcast_mul(dy, out_mask) if p.axes else dy * out_mask,
)
def dropout(k: Call, p: Params, data: Array) -> Any:
    """Set elements to zero at random and scale up the others, so that the mean stays.

    Parameters
    ----------
    data : array
        Any shape.
    p : float
        Probability that an element becomes zero.
    mode : {'training', 'always'}
        Act in training mode only, or always.
    axes : tuple of int
        Along these axes all elements share one decision.
    cudnn_off : bool
        A hint of MXNet's own backend; no effect.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``Dropout``, except that ``p=1`` gives zeros, not NaN. Source: Srivastava et al.,
    "Dropout", 2014.
    """
    xp = k.xp
    shape = _mask_shape(p, data.shape)
    if p.p == 0 or not (k.is_train or p.mode == "always"):
        return data, xp.broadcast_to(xp.ones((1,) * data.ndim, data.dtype), shape)
    keep = 1 - p.p
    scale = data.dtype.type(1 / keep if keep else 0)
    mask = (k.rng.uniform(shape, np.float32) < keep) * scale
    return data * mask, mask


@dropout.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    data = merge_shape(ins[0], outs[0])
    return [data], [data, None if data is None else _mask_shape(p, data)]


dropout.dtype(floating())
dropout.cost(lambda p, ins, outs: size_of(ins[0]) * 4)
