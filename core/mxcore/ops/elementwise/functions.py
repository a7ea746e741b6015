"""Elementwise functions of one array: one row of a table each."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._core.op import op
from ..._core.params import Params
from ...elementwise import unary
from ...parameters import Bool, Float
from ...typing import Array, Call, Operand, Operators
from ..common import special_functions

__all__ = ["FUNCTIONS", "QUADRATIC_PARAMS"]


def _function(name: str, fn: Any, grad: Any, expr: Any = None, **more: Any) -> Any:
    return unary(name, fn, grad=grad, expr=expr, **more)


def _relu_grad(F: Operators, dy: Operand, y: Operand) -> Any:
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
    _function(
        "sigmoid", special_functions.sigmoid, lambda F, dy, y: dy * y * (1 - y), "sigmoid(x)", doc="1 / (1 + exp(-x))."
    ),
    _function(
        "softsign",
        lambda xp, x: x / (1 + xp.abs(x)),
        lambda F, dy, data: dy / F.square(1 + F.abs(data)),
        "x / (1 + abs(x))",
        doc="x / (1 + abs(x)).",
    ),
    _function(
        "erf",
        special_functions.erf,
        lambda F, dy, data: dy * float(2 / np.sqrt(np.pi)) * F.exp(-data * data),
        "erf(x)",
        doc="Error function.",
    ),
    _function(
        "erfinv",
        special_functions.erfinv,
        lambda F, dy, y: dy * float(np.sqrt(np.pi) / 2) * F.exp(y * y),
        "erfinv(x)",
        doc="Inverse of the error function.",
    ),
    _function(
        "gamma",
        special_functions.gamma,
        lambda F, dy, data, y: dy * y * F._digamma(data),
        "gamma(x)",
        doc="Gamma function.",
    ),
    _function(
        "gammaln",
        special_functions.gammaln,
        lambda F, dy, data: dy * F._digamma(data),
        "lgamma(x)",
        doc="Logarithm of the absolute value of the gamma function.",
    ),
    unary(
        "_digamma",
        special_functions.digamma,
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
        special_functions.rint,
        None,
        "floor(x) if x - floor(x) <= ceil(x) - x else ceil(x)",
        doc="Round to the nearest integer; of two equally near the lower one.",
    ),
    _function(
        "round",
        special_functions.half_away,
        None,
        "trunc(x) if abs(x - trunc(x)) < 0.5 else trunc(x) + (1 if x > 0 else -1)",
        doc="Round to the nearest integer, halves away from zero.",
    ),
    _function("logical_not", lambda xp, x: x == 0, None, "not (x != 0)", doc="1 where zero, else 0."),
]


@op(
    "smooth_l1",
    inputs="data",
    scalar=Float(1.0, dynamic=True),
    is_int=Bool(True),
    expr="0.5 * scalar * scalar * data * data if abs(data) * "
    "(scalar * scalar) < 1 else abs(data) - 0.5 / (scalar * scalar)",
    grad=lambda F, p, dy, data: dy * F.clip(data * (p.scalar * p.scalar), a_min=-1, a_max=1),
)
def smooth_l1(k: Call, p: Params, data: Array) -> Array:
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


# -- the quadratic function -----------------------------------------------------------------------------------------

QUADRATIC_PARAMS = {n: Float(0.0) for n in "abc"}


def _cut(x: Any, dtype: Any) -> Any:
    """Floats as an integer dtype: cut off, wrapped around as C does."""
    return x.astype(np.int64).astype(dtype) if dtype.kind in "iu" else x


@op(
    "_contrib_quadratic",
    inputs="data",
    labels="inputs",
    params=QUADRATIC_PARAMS,
    alias="data->output",
    expr="a * data * data + b * data + c",
    grad=lambda F, p, dy, data: F._contrib_backward_quadratic(dy, data, a=p.a, b=p.b, c=p.c),
)
def quadratic(k: Call, p: Params, data: Array) -> Array:
    """``a * x**2 + b * x + c`` of each element.

    Parameters
    ----------
    data : array
    a, b, c : float
        The coefficients.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``quadratic``; for integers the result is cut off.
    """
    x = data.astype(np.float64) if data.dtype.kind != "f" else data
    return _cut((p.a * x + p.b) * x + p.c, data.dtype)
