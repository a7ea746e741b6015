"""Activations with parameters, dropout and the softmax family."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._core.infer import merge_shape, show
from .._core.op import op
from ..parameters import Bool, Enum, Float, Int, Shape
from .dense import along, given, wide
from .floating import floating
from .formula import formula
from .rules import axis_of, size_of
from .silent import silent

__all__ = ["soft"]


# -- LeakyReLU ------------------------------------------------------------------------------------------------------

#: Klambauer et al., "Self-normalizing neural networks", 2017.
_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805
#: act_type -> (value, gradient), of those with a fixed slope.
_FORMS = {
    "leaky": ("data if data > 0 else data * slope", "dy if data > 0 else dy * slope"),
    "elu": ("data if data > 0 else slope * expm1(data)", "dy if data > 0 else dy * (slope * exp(data))"),
    "selu": (
        f"{_SELU_SCALE} * (data if data > 0 else {_SELU_ALPHA} * expm1(data))",
        f"{_SELU_SCALE} * (dy if data > 0 else dy * ({_SELU_ALPHA} * exp(data)))",
    ),
    "gelu": (
        "data * (0.5 * (1 + erf(data * 0.7071067811865476)))",
        "dy * (0.5 * (1 + erf(data * 0.7071067811865476)) + data * (exp(-0.5 * data * data) * 0.3989422804014327))",
    ),
}
#: The first one as the array library computes it sooner, for slopes in (0, 1]; beyond, infinity times 0 is NaN.
_QUICK = "maximum(data, data * slope)"
#: Those with slopes of their own.
_LEARNED, _LEARNED_BACK = "data if data > 0 else data * gamma", "dy if data > 0 else dy * mask"


def _value(p: Any) -> str | None:
    """The formula of `LeakyReLU`."""
    return _LEARNED if p.act_type == "prelu" else _FORMS.get(p.act_type, (None,))[0]


def _slope(p: Any) -> str | None:
    """The formula of its gradient."""
    return _FORMS.get(p.act_type, (None, None))[1]


def _valued(xp: Any, text: Any, p: Any, **values: Any) -> Any:
    return formula(text)(xp, **values, **({"slope": p.slope} if "slope" in text else {}))


#: act_type -> second derivative over (F, p, x); missing means zero.
_CURVES: dict[str, Any] = {
    "elu": lambda F, p, x: F.exp(F._minimum_scalar(x, scalar=0.0)) * (x <= 0) * p.slope,
    "selu": lambda F, p, x: F.exp(F._minimum_scalar(x, scalar=0.0)) * (x <= 0) * (_SELU_SCALE * _SELU_ALPHA),
    "gelu": lambda F, p, x: F.exp(x * x * -0.5) * (2 - x * x) * (1 / math.sqrt(2 * math.pi)),
}

_LEAKY = dict(
    act_type=Enum("elu gelu leaky prelu rrelu selu", "leaky"),
    slope=Float(0.25),
    lower_bound=Float(0.125),
    upper_bound=Float(0.334),
)


def _leaky_grad(F: Any, p: Any, dy: Any, data: Any, gamma: Any, dys: Any, needs: Any, out_mask: Any) -> Any:
    if p.act_type == "prelu":
        return F._backward_prelu(dy, data, gamma, wanted=tuple(needs))
    if p.act_type == "rrelu":
        return F._backward_rrelu(dy, data, out_mask), None
    return F._backward_LeakyReLU(dy, data, **given(p, _LEAKY)), None


@op(
    "LeakyReLU",
    inputs="data gamma[act_type=='prelu']",
    labels="inputs outputs",
    outputs="output mask[act_type=='rrelu']",
    **_LEAKY,
    expr=_value,
    aligned=lambda p, ins, out: [None, *[along(s, min(1, len(out) - 1), len(out)) for s in ins[1:]]],
    random=lambda p: p.act_type == "rrelu",
    grad=None,
)
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
        For ``rrelu``: the slope is uniform between them in training, their mean otherwise. The slopes are a second
        output.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``LeakyReLU``, except for the gradient of ``selu``, where MXNet scales twice.
    """
    xp, x = k.xp, wide(data)
    if p.act_type == "prelu":
        return formula(_LEARNED)(xp, data=x, gamma=_slopes(x, wide(gamma)))
    if p.act_type != "rrelu":
        return _valued(xp, _QUICK if p.act_type == "leaky" and 0 < p.slope <= 1 else _value(p), p, data=x)
    low, high = p.lower_bound, p.upper_bound
    if k.is_train:
        mask = (k.rng.uniform(data.shape, x.dtype) * (high - low) + low).astype(data.dtype)
    else:
        mask = xp.broadcast_to(xp.full((1,), (low + high) / 2, data.dtype), data.shape)
    return formula(_LEARNED)(xp, data=x, gamma=mask), mask


def _slopes(x: Any, gamma: Any) -> Any:
    """The slopes, to be broadcast over the data."""
    return gamma if x.ndim < 2 or gamma.shape[0] == 1 else gamma.reshape(-1, *(1,) * (x.ndim - 2))


leaky_relu.grad(_leaky_grad)
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
def _(p, ins, outs):
    data = ins[0]
    for s in outs:
        data = merge_shape(data, s)
    return _prelu_shape([data, ins[1]]) if len(ins) == 2 else [data], [data] * len(outs)


leaky_relu.dtype(floating())
leaky_relu.cost(lambda p, ins, outs: size_of(ins[0]) * (2 if p.act_type in ("leaky", "prelu") else 10))


@op(
    "_backward_LeakyReLU",
    inputs="dy data",
    **_LEAKY,
    expr=_slope,
    grad=lambda F, p, dy, dy_, data: (
        F._backward_LeakyReLU(dy, data, **given(p, _LEAKY)),
        dy * dy_ * _CURVES[p.act_type](F, p, data) if p.act_type in _CURVES else F.zeros_like(data),
    ),
)
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
    return _valued(k.xp, _slope(p), p, data=wide(data), dy=wide(dy_))


@op(
    "_backward_rrelu",
    inputs="dy data mask",
    expr=_LEARNED_BACK,
    grad=lambda F, dy, dy_, data, mask: (F._backward_rrelu(dy, data, mask), None, dy * dy_ * (data <= 0)),
)
def backward_rrelu(k, p, dy_, data, mask):
    """Gradient of the random `LeakyReLU`.

    Parameters
    ----------
    dy, data, mask : array
        The incoming gradient, the input, the slopes below zero.
    """
    return formula(_LEARNED_BACK)(k.xp, data=data, dy=dy_, mask=mask)


@op(
    "_backward_prelu",
    inputs="dy data gamma",
    outputs="data gamma",
    grad=lambda F, dys, dy_, data, gamma: _prelu_grad_grad(F, dys, dy_, data, gamma),
)
@silent
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


# -- Dropout --------------------------------------------------------------------------------------------------------


def _mask_shape(p: Any, shape: Any) -> Any:
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
def dropout(k, p, data):
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
def _(p, ins, outs):
    data = merge_shape(ins[0], outs[0])
    return [data], [data, None if data is None else _mask_shape(p, data)]


dropout.dtype(floating())
dropout.cost(lambda p, ins, outs: size_of(ins[0]) * 4)


# -- the softmax family ---------------------------------------------------------------------------------------------


class _NotZero(Float):
    """A number to divide by."""

    def check(self, x: Any) -> Any:
        if x == 0:
            raise ValueError(f"must be a float other than 0, got {x}")
        return x


_SOFT = dict(
    axis=Int(-1),
    temperature=_NotZero(None),
    dtype=Enum("float16 float32 float64", None),
    use_length=Bool(False, optional=True),
)


def soft(xp: Any, x: Any, axis: int) -> Any:
    """Softmax of logits along an axis; overwrites nothing."""
    if not x.size:
        return x.copy()
    e = x - x.max(axis, keepdims=True)
    xp.exp(e, out=e)
    e /= e.sum(axis, keepdims=True)
    return e


def _logits(p: Any, data: Any, sign: int = 1) -> Any:
    """The data as floats of at least single precision, divided by the temperature."""
    if p.dtype == "float64" or data.dtype.kind != "f":
        x = data.astype(p.dtype)
    else:
        x = wide(data)
    t = sign * (1.0 if p.temperature is None else p.temperature)
    return x if t == 1 else x / t


def _soft_dtype(p: Any, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    if len(ins) == 2 and ins[1] is not None and ins[1].kind not in "iu":
        raise TypeError(f"length must be of an integer dtype, got {ins[1].name}")
    if p.dtype is not None:
        return ins, [np.dtype(p.dtype)]
    t = ins[0] or outs[0]
    if t is not None and t.kind in "iub":
        raise TypeError(f"data of dtype {t.name} needs parameter dtype, one of float16, float32, float64")
    return [t, *ins[1:]], [t]


def _soft_shape(p: Any, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    if p.use_length and len(ins) == 1:
        raise ValueError("use_length is for softmax; this operator has no input for lengths")
    data = merge_shape(ins[0], outs[0])
    if data is None:
        return ins, outs
    axis = axis_of(p.axis, len(data))
    return [data, data[:axis] + data[axis + 1 :]][: len(ins)], [data]


def _to_input(F: Any, p: Any, g: Any, like: Any) -> Any:
    return g if p.dtype is None else F._cast_like(g, like)


@op(
    "softmax",
    inputs="data length[use_length]",
    labels="inputs outputs",
    **_SOFT,
    grad=lambda F, p, dy, like_data, y: (
        _to_input(F, p, F._backward_softmax(dy, y, axis=p.axis, temperature=p.temperature), like_data),
        None,
    )[: 1 + p.use_length],
)
def softmax(k, p, data, length=None):
    """Exponentials that sum to one along an axis.

    Parameters
    ----------
    data : array
        Logits, any shape.
    length : array of int
        With `use_length`: how many entries along the axis count; the others get zero. Shaped as data without the axis.
    axis : int
    temperature : float, optional
        Divides the logits first (1).
    dtype : {'float16', 'float32', 'float64'}, optional
        Of the result; that of `data` unless told.
    use_length : bool
        There is an input `length`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``softmax``.
    """
    xp, x = k.xp, _logits(p, data)
    axis = axis_of(p.axis, x.ndim)
    if length is None:
        return soft(xp, x, axis)
    place = xp.arange(x.shape[axis]).reshape(tuple(-1 if i == axis else 1 for i in range(x.ndim)))
    inside = place < xp.expand_dims(length, axis)
    if not x.size:
        return x.copy()
    top = xp.where(inside, x, -np.inf).max(axis, keepdims=True)
    e = xp.where(inside, xp.exp(xp.where(inside, x - top, 0.0)), 0.0)
    return xp.where(inside, e / e.sum(axis, keepdims=True), 0.0)


@op(
    "softmin",
    inputs="data",
    labels="outputs",
    **_SOFT,
    grad=lambda F, p, dy, like_data, y: _to_input(
        F, p, F._backward_softmax(-dy, y, axis=p.axis, temperature=p.temperature), like_data
    ),
)
def softmin(k, p, data):
    """Softmax of the negative.

    Parameters
    ----------
    data : array
        Any shape.
    axis : int
    temperature : float, optional
        Divides the values first (1).
    dtype : {'float16', 'float32', 'float64'}, optional
        Of the result; that of `data` unless told.
    use_length : bool
        Must be False: only `softmax` has an input for lengths.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``softmin``.
    """
    return soft(k.xp, _logits(p, data, -1), axis_of(p.axis, data.ndim))


@op(
    "log_softmax",
    inputs="data",
    labels="inputs",
    **_SOFT,
    grad=lambda F, p, dy, like_data, y: _to_input(
        F, p, F._backward_log_softmax(dy, y, axis=p.axis, temperature=p.temperature), like_data
    ),
)
def log_softmax(k, p, data):
    """Logarithm of the softmax, computed without overflow.

    Parameters
    ----------
    data : array
        Logits, any shape.
    axis : int
    temperature : float, optional
        Divides the logits first (1).
    dtype : {'float16', 'float32', 'float64'}, optional
        Of the result; that of `data` unless told.
    use_length : bool
        Must be False: only `softmax` has an input for lengths.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``log_softmax``.
    """
    xp, x = k.xp, _logits(p, data)
    axis = axis_of(p.axis, x.ndim)
    if not x.size:
        return x.copy()
    d = x - x.max(axis, keepdims=True)
    d -= xp.log(xp.exp(d).sum(axis, keepdims=True))
    return d


_BACK = dict(axis=Int(-1), temperature=_NotZero(None))


def _cool(p: Any, g: Any) -> Any:
    return g if p.temperature is None or p.temperature == 1 else g / p.temperature


@op(
    "_backward_softmax",
    inputs="dy out",
    **_BACK,
    grad=lambda F, p, dy, dy_, out: (
        F._backward_softmax(dy, out, **given(p, _BACK)),
        _cool(
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
def backward_softmax(k, p, dy_, out):
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
    return _cool(p, g)


@op(
    "_backward_log_softmax",
    inputs="dy out",
    **_BACK,
    grad=lambda F, p, dy, dy_, out: (
        _cool(p, F.broadcast_sub(dy, F.sum(dy * F.exp(out), axis=p.axis, keepdims=True))),
        _cool(p, -F.broadcast_mul(dy * F.exp(out), F.sum(dy_, axis=p.axis, keepdims=True))),
    ),
)
def backward_log_softmax(k, p, dy_, out):
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
    return _cool(p, dy - k.xp.exp(wide(out)) * dy.sum(p.axis, keepdims=True))


@op(
    "SoftmaxActivation",
    inputs="data",
    labels="outputs",
    mode=Enum("channel instance", "instance"),
    grad=lambda F, p, dy, y: F._backward_softmax(dy, y, axis=1 if p.mode == "channel" else -1),
)
def softmax_activation(k, p, data):
    """Softmax over the last axis, or over the channels.

    Parameters
    ----------
    data : array
        Shape (N, C) or (N, C, ...).
    mode : {'instance', 'channel'}
        The last axis, or axis 1.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``SoftmaxActivation`` (deprecated there in favour of ``softmax``), except that the
    gradient of mode ``instance`` belongs to the forward pass in more than two dimensions too.
    """
    return soft(k.xp, wide(data), axis_of(1 if p.mode == "channel" else -1, data.ndim))


def _activation_shape(p: Any, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    data = merge_shape(ins[0], outs[0])
    if data is not None and len(data) < (2 if p.mode == "channel" else 1):
        raise ValueError(f"mode {p.mode} needs data of more dimensions than {data}")
    return [data], [data]


for _op in (softmax, softmin, log_softmax):
    _op.shape(_soft_shape)
    _op.dtype(_soft_dtype)
softmax_activation.shape(_activation_shape)
softmax_activation.dtype(floating())
for _op in (softmax, softmin, log_softmax, softmax_activation):
    _op.cost(lambda p, ins, outs: size_of(ins[0]) * 8)
