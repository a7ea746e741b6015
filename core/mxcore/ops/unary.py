"""Elementwise functions of one array: one row of a table each."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._core.infer import merge_shape
from .._core.op import op
from ..families import unary
from ..parameters import Bool, DType, Enum, Float
from . import special
from .floating import floating

__all__ = ["FUNCTIONS"]


def _function(name, fn, grad, expr=None, **more):
    return unary(name, fn, grad=grad, expr=expr, **more)


def _relu_grad(F, dy, y):
    return F._backward_Activation(dy, y, act_type="relu")  # a NaN comes back as one


FUNCTIONS = [
    _function("negative", "negative", lambda F, dy: -dy, "-x", doc="Change the sign."),
    _function("abs", "abs", lambda F, dy, data: dy * F.sign(data), "abs(x)", doc="Absolute value."),
    _function("exp", "exp", lambda F, dy, y: dy * y, "exp(x)"),
    _function("expm1", "expm1", lambda F, dy, data: dy * F.exp(data), "expm1(x)", doc="exp(x) - 1, accurate near 0."),
    _function("log", "log", lambda F, dy, data: dy / data, "log(x)", doc="Natural logarithm."),
    _function("log2", "log2", lambda F, dy, data: dy / (data * float(np.log(2))), "log2(x)"),
    _function("log10", "log10", lambda F, dy, data: dy / (data * float(np.log(10))), "log10(x)"),
    _function("log1p", "log1p", lambda F, dy, data: dy / (1 + data), "log1p(x)", doc="log(1 + x), accurate near 0."),
    _function("sqrt", "sqrt", lambda F, dy, y: dy * 0.5 / y, "sqrt(x)"),
    _function(
        "rsqrt",
        lambda xp, x: 1 / xp.sqrt(x),
        lambda F, dy, data, y: dy * -0.5 * y / data,
        "rsqrt(x)",
        doc="1 / sqrt(x).",
    ),
    _function("cbrt", "cbrt", lambda F, dy, y: dy / (3 * y * y), "cbrt(x)", doc="Cube root."),
    _function(
        "rcbrt",
        lambda xp, x: 1 / xp.cbrt(x),
        lambda F, dy, data, y: dy * y / (-3 * data),
        "rcbrt(x)",
        doc="1 / cbrt(x).",
    ),
    _function("square", "square", lambda F, dy, data: dy * 2 * data, "square(x)"),
    _function("reciprocal", lambda xp, x: 1 / x, lambda F, dy, y: -dy * y * y, "1 / x", doc="1 / x."),
    _function("sin", "sin", lambda F, dy, data: dy * F.cos(data), "sin(x)"),
    _function("cos", "cos", lambda F, dy, data: -dy * F.sin(data), "cos(x)"),
    _function("tan", "tan", lambda F, dy, y: dy * (1 + y * y), "tan(x)"),
    _function("arcsin", "arcsin", lambda F, dy, data: dy / F.sqrt(1 - data * data), "arcsin(x)"),
    _function("arccos", "arccos", lambda F, dy, data: -dy / F.sqrt(1 - data * data), "arccos(x)"),
    _function("arctan", "arctan", lambda F, dy, data: dy / (1 + data * data), "arctan(x)"),
    _function("sinh", "sinh", lambda F, dy, data: dy * F.cosh(data), "sinh(x)"),
    _function("cosh", "cosh", lambda F, dy, data: dy * F.sinh(data), "cosh(x)"),
    _function("tanh", "tanh", lambda F, dy, y: dy * (1 - y * y), "tanh(x)"),
    _function("arcsinh", "arcsinh", lambda F, dy, data: dy / F.sqrt(data * data + 1), "arcsinh(x)"),
    _function("arccosh", "arccosh", lambda F, dy, data: dy / F.sqrt(data * data - 1), "arccosh(x)"),
    _function("arctanh", "arctanh", lambda F, dy, data: dy / (1 - data * data), "arctanh(x)"),
    _function(
        "degrees", "degrees", lambda F, dy: dy * float(180 / np.pi), "x * 57.29577951308232", doc="Radians to degrees."
    ),
    _function(
        "radians",
        "radians",
        lambda F, dy: dy * float(np.pi / 180),
        "x * 0.017453292519943295",
        doc="Degrees to radians.",
    ),
    _function("relu", lambda xp, x: xp.maximum(x, x.dtype.type(0)), _relu_grad, "relu(x)", doc="max(x, 0)."),
    _function("sigmoid", special.sigmoid, lambda F, dy, y: dy * y * (1 - y), "sigmoid(x)", doc="1 / (1 + exp(-x))."),
    _function(
        "softsign",
        lambda xp, x: x / (1 + xp.abs(x)),
        lambda F, dy, data: dy / F.square(1 + F.abs(data)),
        "x / (1 + abs(x))",
        doc="x / (1 + abs(x)).",
    ),
    _function(
        "erf",
        special.erf,
        lambda F, dy, data: dy * float(2 / np.sqrt(np.pi)) * F.exp(-data * data),
        "erf(x)",
        doc="Error function.",
    ),
    _function(
        "erfinv",
        special.erfinv,
        lambda F, dy, y: dy * float(np.sqrt(np.pi) / 2) * F.exp(y * y),
        "erfinv(x)",
        doc="Inverse of the error function.",
    ),
    _function(
        "gamma", special.gamma, lambda F, dy, data, y: dy * y * F._digamma(data), "gamma(x)", doc="Gamma function."
    ),
    _function(
        "gammaln",
        special.gammaln,
        lambda F, dy, data: dy * F._digamma(data),
        "lgamma(x)",
        doc="Logarithm of the absolute value of the gamma function.",
    ),
    unary(
        "_digamma",
        special.digamma,
        expr="digamma(x)",
        doc="Logarithmic derivative of the gamma function; the gradient of `gammaln`.",
    ),
    _function(
        "sign",
        lambda xp, x: (x > 0).astype(x.dtype) - (x < 0).astype(x.dtype),
        None,
        "where(x > 0, 1, where(x < 0, -1, 0))",
        doc="-1, 0 or 1; of a NaN 0, as in MXNet.",
    ),
    _function("floor", "floor", None, "floor(x)"),
    _function("ceil", "ceil", None, "ceil(x)"),
    _function("trunc", "trunc", None, "trunc(x)", doc="Round towards zero."),
    _function("fix", "trunc", None, "fix(x)", doc="Round towards zero."),
    _function(
        "rint",
        special.rint,
        None,
        "floor(x) if x - floor(x) <= ceil(x) - x else ceil(x)",
        doc="Round to the nearest integer; of two equally near the lower one.",
    ),
    _function(
        "round",
        special.half_away,
        None,
        "floor(x + 0.5) if x >= 0 else ceil(x - 0.5)",
        doc="Round to the nearest integer, halves away from zero.",
    ),
    _function("logical_not", lambda xp, x: x == 0, None, "not (x != 0)", doc="1 where zero, else 0."),
]

copy = unary(
    "_copy",
    lambda xp, x: x.copy(),
    grad=lambda F, dy: dy,
    expr="x",
    identity=True,
    aliases=("identity",),
    role="new array",
    doc="A copy.",
)
block_grad = unary(
    "BlockGrad",
    lambda xp, x: x.copy(),
    grad=None,
    expr="x",
    identity=True,
    aliases=("stop_gradient",),
    doc="The same values, no gradient.",
)


@op(
    "make_loss",
    inputs="data",
    outputs="loss",
    alias="data->loss",
    expr="data",
    identity=True,
    labels="outputs",
    grad=lambda F, like_data: F.ones_like(like_data),
)
def make_loss(k, p, data):
    """Mark `data` as a loss: its gradient is one, whatever comes in.

    Parameters
    ----------
    data : array
        Any shape.
    """
    return data.copy()


@op(
    "Cast",
    "cast",
    inputs="data",
    dtype=DType(),
    role="other dtype",
    expr="data",
    identity=True,
    grad=lambda F, dy, like_data: F._cast_like(dy, like_data),
)
def cast(k, p, data):
    """Convert to another dtype; fractions are cut off.

    Parameters
    ----------
    data : array
    dtype : dtype
    """
    return data.astype(p.dtype)


cast.dtype(lambda p, ins, outs: (ins, [p.dtype]))


@op("_cast_like", inputs="data like~", expr="data", grad=lambda F, dy, like_data: (F._cast_like(dy, like_data), None))
def cast_like(k, p, data, like):
    """Convert `data` to the dtype of `like`.

    Parameters
    ----------
    data : array
    like : array
        Only its dtype is used.
    """
    return data.astype(like.dtype)


cast_like.shape(lambda p, ins, outs: ([ins[0] or outs[0], ins[1]], [ins[0] or outs[0]]))
cast_like.dtype(lambda p, ins, outs: ([ins[0], ins[1]], [ins[1]]))


@op(
    "clip",
    inputs="data",
    a_min=Float(),
    a_max=Float(),
    expr="minimum(maximum(data, a_min), a_max)",
    grad=lambda F, p, dy, data: dy * ((data < p.a_min) + (data > p.a_max) == 0),
)
def clip(k, p, data):
    """Limit values to [a_min, a_max].

    Parameters
    ----------
    data : array
    a_min, a_max : float
    """
    if data.dtype.kind not in "iub":
        return k.xp.clip(data, data.dtype.type(p.a_min), data.dtype.type(p.a_max))
    return k.xp.clip(data, *[_whole(v, data.dtype) for v in (p.a_min, p.a_max)])


def _whole(bound: float, dtype: Any) -> int:
    """A bound for whole numbers."""
    if math.isfinite(bound):
        return int(bound)
    limits = np.iinfo(dtype) if dtype.kind != "b" else np.iinfo("uint8")
    return int(limits.max if bound > 0 else limits.min)


@clip.shape
def _(p, ins, outs):
    for name in ("a_min", "a_max"):
        if math.isnan(getattr(p, name)):
            raise ValueError(f"{name} must be a number, got nan; use -inf and inf for no bound")
    if p.a_min > p.a_max:
        raise ValueError(f"a_min must not be above a_max, got {p.a_min} and {p.a_max}")
    shape = merge_shape(ins[0], outs[0])
    return [shape], [shape]


# The gradient of relu is 0 where it gave 0; a NaN that it handed on comes back as one.
#: act_type -> (expression; that of its gradient, over dy and the output)
_EXPRESSIONS = {
    "relu": ("relu(data)", "dy * (1 if out > 0 else out)"),
    "sigmoid": ("sigmoid(data)", "dy * out * (1 - out)"),
    "tanh": ("tanh(data)", "dy * (1 - out * out)"),
    "softrelu": ("softplus(data)", "dy * -expm1(-out)"),
    "softsign": ("data / (1 + abs(data))", "dy * square(1 - abs(out))"),
}
#: act_type -> (function; over dy and the output: its gradient; the gradient's derivative for the output, over g * dy)
_ACTIVATIONS = {
    "relu": (
        lambda xp, x: xp.maximum(x, x.dtype.type(0)),
        lambda xp, dy, y: dy * xp.where(y > 0, y.dtype.type(1), y),
        lambda F, g, y: None,
    ),
    "sigmoid": (special.sigmoid, lambda xp, dy, y: dy * y * (1 - y), lambda F, g, y: g * (1 - 2 * y)),
    "tanh": (lambda xp, x: xp.tanh(x), lambda xp, dy, y: dy * (1 - y * y), lambda F, g, y: g * -2 * y),
    "softrelu": (special.softplus, lambda xp, dy, y: dy * -xp.expm1(-y), lambda F, g, y: g * F.exp(-y)),
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
    expr=lambda p: _EXPRESSIONS[p.act_type][0],
    grad=lambda F, p, dy, y: F._backward_Activation(dy, y, act_type=p.act_type),
)
def activation(k, p, data):
    """Apply an activation function.

    Parameters
    ----------
    data : array
    act_type : {'relu', 'sigmoid', 'tanh', 'softrelu', 'softsign'}
        softrelu is log(1 + exp(x)).
    """
    return _ACTIVATIONS[p.act_type][0](k.xp, data)


activation.dtype(floating())


@op(
    "_backward_Activation",
    inputs="dy out",
    act_type=Enum("relu sigmoid tanh softrelu softsign"),
    alias="dy->output",
    expr=lambda p: _EXPRESSIONS[p.act_type][1],
    grad=lambda F, p, dy, dy_, out: (
        F._backward_Activation(dy, out, act_type=p.act_type),
        _ACTIVATIONS[p.act_type][2](F, dy * dy_, out),
    ),
)
def backward_activation(k, p, dy_, out):
    """The gradient of `Activation`, from the incoming gradient and its output.

    Parameters
    ----------
    dy, out : array
    act_type : str
        As in `Activation`.
    """
    return _ACTIVATIONS[p.act_type][1](k.xp, dy_, out)


@op(
    "hard_sigmoid",
    inputs="data",
    alpha=Float(0.2),
    beta=Float(0.5),
    expr="minimum(maximum(alpha * data + beta, 0), 1)",
    grad=lambda F, p, dy, y: dy * p.alpha * (y > 0) * (y < 1),
)
def hard_sigmoid(k, p, data):
    """max(0, min(1, alpha * x + beta)).

    Parameters
    ----------
    data : array
    alpha, beta : float
        Slope and offset.
    """
    return k.xp.clip(p.alpha * data + p.beta, 0, 1)


hard_sigmoid.dtype(floating())


@op(
    "smooth_l1",
    inputs="data",
    scalar=Float(1.0, dynamic=True),
    is_int=Bool(True),
    expr="0.5 * scalar * scalar * data * data if abs(data) * (scalar * scalar) < 1 else abs(data) - 0.5 / (scalar * "
    "scalar)",
    grad=lambda F, p, dy, data: dy * F.clip(data * (p.scalar * p.scalar), a_min=-1, a_max=1),
)
def smooth_l1(k, p, data):
    """Quadratic below 1 / scalar**2, linear beyond: (s x)**2 / 2, else abs(x) - 1 / (2 s**2).

    Parameters
    ----------
    data : array
    scalar : float
        The s above.
    is_int : bool
        Whether the number was given as an int; has no effect.
    """
    xp, s2 = k.xp, p.scalar * p.scalar
    a = xp.abs(data)
    return xp.where(a * s2 < 1, 0.5 * s2 * data * data, a - (0.5 / s2 if s2 else math.inf))
