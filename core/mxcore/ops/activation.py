"""Activations with parameters, dropout and the softmax family."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._core.infer import merge_shape
from .._core.op import op
from .._core.params import Bool, Enum, Float, Int, Shape
from ..testing.sample import Sample
from . import special
from .dense import given, wide
from .rules import axis_of, same_shape, size_of

__all__: list[str] = []


# -- LeakyReLU ------------------------------------------------------------------------------------------------------

#: Klambauer et al., "Self-normalizing neural networks", 2017.
_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805


def _gate(xp: Any, x: Any) -> Any:
    """The normal distribution function."""
    return 0.5 * (1 + special.erf(xp, x * math.sqrt(0.5)))


def _density(xp: Any, x: Any) -> Any:
    return xp.exp(-0.5 * x * x) * (1 / math.sqrt(2 * math.pi))


def _below(xp: Any, x: Any) -> Any:
    """exp of the negative part."""
    return xp.exp(xp.minimum(x, x.dtype.type(0)))


#: act_type -> (value, derivative), functions of (xp, p, x).
_FORMS: dict[str, tuple[Any, Any]] = {
    "leaky": (lambda xp, p, x: xp.where(x > 0, x, x * p.slope),
              lambda xp, p, x: xp.where(x > 0, x.dtype.type(1), x.dtype.type(p.slope))),
    "elu": (lambda xp, p, x: xp.where(x > 0, x, p.slope * xp.expm1(xp.minimum(x, x.dtype.type(0)))),
            lambda xp, p, x: xp.where(x > 0, x.dtype.type(1), p.slope * _below(xp, x))),
    "selu": (lambda xp, p, x: _SELU_SCALE * xp.where(x > 0, x, _SELU_ALPHA * xp.expm1(xp.minimum(x, x.dtype.type(0)))),
             lambda xp, p, x: _SELU_SCALE * xp.where(x > 0, x.dtype.type(1), _SELU_ALPHA * _below(xp, x))),
    "gelu": (lambda xp, p, x: x * _gate(xp, x), lambda xp, p, x: _gate(xp, x) + x * _density(xp, x)),
}

#: act_type -> second derivative over (F, p, x); missing means zero.
_CURVES: dict[str, Any] = {
    "elu": lambda F, p, x: F.exp(F._minimum_scalar(x, scalar=0.0)) * (x <= 0) * p.slope,
    "selu": lambda F, p, x: F.exp(F._minimum_scalar(x, scalar=0.0)) * (x <= 0) * (_SELU_SCALE * _SELU_ALPHA),
    "gelu": lambda F, p, x: F.exp(x * x * -0.5) * (2 - x * x) * (1 / math.sqrt(2 * math.pi)),
}

_LEAKY = dict(act_type=Enum("elu gelu leaky prelu rrelu selu", "leaky"), slope=Float(0.25), lower_bound=Float(0.125),
              upper_bound=Float(0.334))


def _leaky_grad(F: Any, p: Any, dy: Any, data: Any, gamma: Any, dys: Any, needs: Any, out_mask: Any) -> Any:
    if p.act_type == "prelu":
        return F._backward_prelu(dy, data, gamma, wanted=tuple(needs))
    if p.act_type == "rrelu":
        return F._backward_rrelu(dy, data, out_mask), None
    return F._backward_LeakyReLU(dy, data, **given(p, _LEAKY)), None


def _check_rrelu(inputs: Any, outputs: Any) -> None:
    (x,), (y, mask) = inputs, outputs
    assert mask.min() >= 0.1 and mask.max() <= 0.3 and mask.std() > 0
    np.testing.assert_allclose(y, np.where(x > 0, x, x * mask), rtol=1e-6)


_KINKED = [[-2.6, -1.2, -0.3, 0.4, 1.5]]


@op("LeakyReLU", inputs="data gamma[act_type=='prelu']", outputs="output mask[act_type=='rrelu']", random=True, **_LEAKY,
    grad=None, samples=[
        *(Sample(_KINKED, params={"act_type": t}) for t in _FORMS),
        Sample(_KINKED, params={"act_type": "leaky", "slope": 0.1}),
        Sample((2, 3, 4), (3,), params={"act_type": "prelu"}, domain=(0.2, 0.9)),
        Sample((2, 3, 4), [0.3], params={"act_type": "prelu"}, domain=(-0.9, -0.2)),
        Sample(_KINKED, params={"act_type": "rrelu", "lower_bound": 0.1, "upper_bound": 0.3}, train=True, check=_check_rrelu, grad=False,
               mxnet="MXNet 1.9.1 crashes"),
        Sample((0, 3))])
def leaky_relu(k, p, data, gamma=None):
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
        For ``rrelu``: the slope is uniform between them in training, their mean otherwise. The slopes are a second output.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``LeakyReLU``.
    """
    xp, x = k.xp, wide(data)
    if p.act_type == "prelu":
        return xp.where(x > 0, x, x * _slopes(x, wide(gamma)))
    if p.act_type != "rrelu":
        return _FORMS[p.act_type][0](xp, p, x)
    low, high = p.lower_bound, p.upper_bound
    if k.is_train:
        mask = (k.rng.uniform(data.shape, x.dtype) * (high - low) + low).astype(data.dtype)
    else:
        mask = xp.broadcast_to(xp.full((1,), (low + high) / 2, data.dtype), data.shape)
    return xp.where(x > 0, x, x * mask), mask


def _slopes(x: Any, gamma: Any) -> Any:
    """The slopes, to be broadcast over the data."""
    return gamma if x.ndim < 2 or gamma.shape[0] == 1 else gamma.reshape(-1, *(1,) * (x.ndim - 2))


leaky_relu.grad(_leaky_grad)


def _prelu_shape(ins: list[Any]) -> list[Any]:
    data, gamma = ins
    if data is None or (gamma is not None and tuple(gamma) == (1,)):
        return [data, gamma]
    channels = data[1] if len(data) > 1 else data[0] if data else 1
    if gamma is not None and (len(gamma) != 1 or gamma[0] not in (-1, channels) and channels != -1):
        raise ValueError(f"gamma {gamma} must have shape ({channels},) or (1,) for data {data}")
    return [data, (channels,)]


@leaky_relu.shape
def _(p, ins, outs):
    data = ins[0]
    for s in outs:
        data = merge_shape(data, s)
    return _prelu_shape([data, ins[1]]) if len(ins) == 2 else [data], [data] * len(outs)


leaky_relu.cost(lambda p, ins, outs: size_of(ins[0]) * (2 if p.act_type in ("leaky", "prelu") else 10))


@op("_backward_LeakyReLU", inputs="dy data", **_LEAKY, samples=[
    Sample([[1.0, -2.0, 0.5, 0.3, 1.0]], _KINKED, params={"act_type": t}, mxnet="internal") for t in _FORMS],
    grad=lambda F, p, dy, dy_, data: (
        F._backward_LeakyReLU(dy, data, **given(p, _LEAKY)),
        dy * dy_ * _CURVES[p.act_type](F, p, data) if p.act_type in _CURVES else None))
def backward_leaky_relu(k, p, dy_, data):
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
    return wide(dy_) * _FORMS[p.act_type][1](k.xp, p, wide(data))


@op("_backward_rrelu", inputs="dy data mask", samples=[Sample([[1.0, -2.0, 0.5]], [[-1.0, 0.5, -2.0]], [[0.2, 0.1, 0.3]], mxnet="internal", grad=(1, 0, 0))],
    grad=lambda F, dy, dy_, data, mask: (F._backward_rrelu(dy, data, mask), None, dy * dy_ * (data <= 0)))
def backward_rrelu(k, p, dy_, data, mask):
    """Gradient of the random `LeakyReLU`.

    Parameters
    ----------
    dy, data, mask : array
        The incoming gradient, the input, the slopes below zero.
    """
    return k.xp.where(data > 0, dy_, dy_ * mask)


@op("_backward_prelu", inputs="dy data gamma", outputs="data gamma", samples=[
    Sample((2, 3, 2), (2, 3, 2), (3,), domain=(-0.9, -0.2), mxnet="internal"), Sample((2, 3), (2, 3), [0.3], domain=(0.2, 0.9), mxnet="internal")],
    grad=lambda F, dys, dy_, data, gamma: _prelu_grad_grad(F, dys, dy_, data, gamma))
def backward_prelu(k, p, dy_, data, gamma):
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
    return xp.where(x > 0, dy, dy * _slopes(x, wide(gamma))) if wanted[0] else None, d_gamma


def _prelu_grad_grad(F: Any, dys: Any, dy: Any, data: Any, gamma: Any) -> Any:
    # Linear in dy, and piecewise linear in data and gamma: `LeakyReLU` at the same place does the broadcasting.
    gx, gw = dys
    slope_of_gw = F._backward_prelu(F.ones_like(dy), data, gw, wanted=(True, False))[0] * (data <= 0)
    through = F._backward_prelu(gx, data, gamma, wanted=(True, False))[0]
    return (through + slope_of_gw * data, slope_of_gw * dy, F._backward_prelu(dy, gx, gamma, wanted=(False, True))[1] * 0
            + F._backward_prelu_gamma(dy * gx * (data <= 0), gamma))


backward_prelu.shape(lambda p, ins: [ins[1], ins[2]])
