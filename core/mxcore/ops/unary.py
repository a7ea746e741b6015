"""Elementwise functions of one array: one row of a table each."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._core.infer import merge_shape
from .._core.op import op
from ..families import unary
from ..parameters import Bool, DType, Enum, Float
from ..testing.sample import Ints, Sample
from . import special
from .floating import floating

__all__ = ["OPS"]


#: Functions that whole numbers above 0 are outside the domain of, or at its edge.
_WITHIN_ONE = frozenset("arcsin arccos arctanh erfinv".split())
#: Functions whose gradients MXNet gets wrong at their poles.
_POLES = frozenset("gamma gammaln".split())


def _u(name, fn, grad, expr=None, domain=(-2.0, 2.0), aliases=(), doc="", view=False):
    return unary(
        name,
        fn,
        grad=grad,
        expr=expr,
        aliases=aliases,
        doc=doc,
        view=view,
        samples=[
            Sample((3, 4), domain=domain, dtypes=_HALF),
            Sample((2, 0), domain=domain),
            Sample(Ints((2, 3), *((0, 1) if name in _WITHIN_ONE else (1, 3))), dtypes="int8 uint8 int32 int64"),
            Sample(
                [_SPECIAL],
                grad=False,
                mxnet="forward only: MXNet has other gradients at poles" if name in _POLES else True,
            ),
        ],
    )


_HALF = "float16 float32 float64"
_INF, _NAN = float("inf"), float("nan")
#: Poles, edges and kinks of one function or another, and what lies outside of their domains.
_SPECIAL = [-_INF, -9.0, -2.5, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.5, 8.0, _INF, _NAN]
_ANY = (0.3, 0.9)
_POS = (0.5, 3.0)
_SHIFTED = [[-2.6, -1.4, -0.4, 0.4, 1.4, 2.6]]


def _steps(name, fn, expr=None, doc=""):
    """A step function: its gradient is zero."""
    return unary(
        name,
        fn,
        grad=None,
        expr=expr,
        doc=doc,
        samples=[
            Sample(_SHIFTED, dtypes=_HALF),
            Sample([_SPECIAL]),
            Sample([[-3.5, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5]], dtypes=_HALF),
            Sample([[0.49999997, -0.49999997, 8388609.0, -8388609.0]]),
            Sample(Ints((2, 3), 0, 5), dtypes="int8 uint8 int32 int64"),
            Sample((2, 0)),
        ],
    )


def _relu_grad(F, dy, y):
    return F._backward_Activation(dy, y, act_type="relu")  # a NaN comes back as one


OPS = [
    _u("negative", "negative", lambda F, dy: -dy, "-x", doc="Change the sign."),
    _u("abs", "abs", lambda F, dy, data: dy * F.sign(data), "abs(x)", _ANY, doc="Absolute value."),
    _u("exp", "exp", lambda F, dy, y: dy * y, "exp(x)"),
    _u("expm1", "expm1", lambda F, dy, data: dy * F.exp(data), "expm1(x)", doc="exp(x) - 1, accurate near 0."),
    _u("log", "log", lambda F, dy, data: dy / data, "log(x)", _POS, doc="Natural logarithm."),
    _u("log2", "log2", lambda F, dy, data: dy / (data * float(np.log(2))), "log2(x)", _POS),
    _u("log10", "log10", lambda F, dy, data: dy / (data * float(np.log(10))), "log10(x)", _POS),
    _u("log1p", "log1p", lambda F, dy, data: dy / (1 + data), "log1p(x)", _POS, doc="log(1 + x), accurate near 0."),
    _u("sqrt", "sqrt", lambda F, dy, y: dy * 0.5 / y, "sqrt(x)", _POS),
    _u(
        "rsqrt",
        lambda xp, x: 1 / xp.sqrt(x),
        lambda F, dy, data, y: dy * -0.5 * y / data,
        "rsqrt(x)",
        _POS,
        doc="1 / sqrt(x).",
    ),
    _u("cbrt", "cbrt", lambda F, dy, y: dy / (3 * y * y), "cbrt(x)", _POS, doc="Cube root."),
    _u(
        "rcbrt",
        lambda xp, x: 1 / xp.cbrt(x),
        lambda F, dy, data, y: dy * y / (-3 * data),
        "rcbrt(x)",
        _POS,
        doc="1 / cbrt(x).",
    ),
    _u("square", "square", lambda F, dy, data: dy * 2 * data, "square(x)"),
    _u("reciprocal", lambda xp, x: 1 / x, lambda F, dy, y: -dy * y * y, "1 / x", _POS, doc="1 / x."),
    _u("sin", "sin", lambda F, dy, data: dy * F.cos(data), "sin(x)"),
    _u("cos", "cos", lambda F, dy, data: -dy * F.sin(data), "cos(x)"),
    _u("tan", "tan", lambda F, dy, y: dy * (1 + y * y), "tan(x)", (-1.0, 1.0)),
    _u("arcsin", "arcsin", lambda F, dy, data: dy / F.sqrt(1 - data * data), "arcsin(x)", (-0.8, 0.8)),
    _u("arccos", "arccos", lambda F, dy, data: -dy / F.sqrt(1 - data * data), "arccos(x)", (-0.8, 0.8)),
    _u("arctan", "arctan", lambda F, dy, data: dy / (1 + data * data), "arctan(x)"),
    _u("sinh", "sinh", lambda F, dy, data: dy * F.cosh(data), "sinh(x)"),
    _u("cosh", "cosh", lambda F, dy, data: dy * F.sinh(data), "cosh(x)"),
    _u("tanh", "tanh", lambda F, dy, y: dy * (1 - y * y), "tanh(x)"),
    _u("arcsinh", "arcsinh", lambda F, dy, data: dy / F.sqrt(data * data + 1), "arcsinh(x)"),
    _u("arccosh", "arccosh", lambda F, dy, data: dy / F.sqrt(data * data - 1), "arccosh(x)", (1.3, 3.0)),
    _u("arctanh", "arctanh", lambda F, dy, data: dy / (1 - data * data), "arctanh(x)", (-0.7, 0.7)),
    _u("degrees", "degrees", lambda F, dy: dy * float(180 / np.pi), "x * 57.29577951308232", doc="Radians to degrees."),
    _u(
        "radians",
        "radians",
        lambda F, dy: dy * float(np.pi / 180),
        "x * 0.017453292519943295",
        doc="Degrees to radians.",
    ),
    _u("relu", lambda xp, x: xp.maximum(x, x.dtype.type(0)), _relu_grad, "relu(x)", _ANY, doc="max(x, 0)."),
    _u("sigmoid", special.sigmoid, lambda F, dy, y: dy * y * (1 - y), "sigmoid(x)", doc="1 / (1 + exp(-x))."),
    _u(
        "softsign",
        lambda xp, x: x / (1 + xp.abs(x)),
        lambda F, dy, data: dy / F.square(1 + F.abs(data)),
        "x / (1 + abs(x))",
        _ANY,
        doc="x / (1 + abs(x)).",
    ),
    _u(
        "erf",
        special.erf,
        lambda F, dy, data: dy * float(2 / np.sqrt(np.pi)) * F.exp(-data * data),
        "erf(x)",
        doc="Error function.",
    ),
    _u(
        "erfinv",
        special.erfinv,
        lambda F, dy, y: dy * float(np.sqrt(np.pi) / 2) * F.exp(y * y),
        "erfinv(x)",
        (-0.9, 0.9),
        doc="Inverse of the error function.",
    ),
    _u(
        "gamma",
        special.gamma,
        lambda F, dy, data, y: dy * y * F._digamma(data),
        "gamma(x)",
        _POS,
        doc="Gamma function.",
    ),
    _u(
        "gammaln",
        special.gammaln,
        lambda F, dy, data: dy * F._digamma(data),
        "lgamma(x)",
        _POS,
        doc="Logarithm of the absolute value of the gamma function.",
    ),
    unary(
        "_digamma",
        special.digamma,
        expr="digamma(x)",
        samples=[Sample((3, 4), domain=_POS, grad=False, mxnet="internal")],
        doc="Logarithmic derivative of the gamma function; the gradient of `gammaln`.",
    ),
    _steps(
        "sign",
        lambda xp, x: (x > 0).astype(x.dtype) - (x < 0).astype(x.dtype),
        "where(x > 0, 1, where(x < 0, -1, 0))",
        doc="-1, 0 or 1; of a NaN 0, as in MXNet.",
    ),
    _steps("floor", "floor", "floor(x)"),
    _steps("ceil", "ceil", "ceil(x)"),
    _steps("trunc", "trunc", "trunc(x)", doc="Round towards zero."),
    _steps("fix", "trunc", "fix(x)", doc="Round towards zero."),
    _steps(
        "rint",
        special.rint,
        "floor(x) if x - floor(x) <= ceil(x) - x else ceil(x)",
        doc="Round to the nearest integer; of two equally near the lower one.",
    ),
    _steps(
        "round",
        special.half_away,
        "floor(x + 0.5) if x >= 0 else ceil(x - 0.5)",
        doc="Round to the nearest integer, halves away from zero.",
    ),
    _steps("logical_not", lambda xp, x: x == 0, "not (x != 0)", doc="1 where zero, else 0."),
]

_COPIES = [Sample((3, 4), dtypes=_HALF), Sample(Ints((5,), 0, 9), dtypes="uint8 int8 int32 int64"), Sample((0, 2))]
copy = unary(
    "_copy",
    lambda xp, x: x.copy(),
    grad=lambda F, dy: dy,
    expr="x",
    identity=True,
    aliases=("identity",),
    role="new array",
    doc="A copy.",
    samples=_COPIES,
)
block_grad = unary(
    "BlockGrad",
    lambda xp, x: x.copy(),
    grad=None,
    expr="x",
    identity=True,
    aliases=("stop_gradient",),
    doc="The same values, no gradient.",
    samples=_COPIES,
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
    samples=[Sample((3, 4), grad=False, dtypes=_HALF), Sample((1,), grad=False), Sample((0, 2), grad=False)],
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
    samples=[
        Sample(_SHIFTED, params={"dtype": t}, grad=False)
        for t in ("int32", "int8", "int64", "float16", "float32", "float64")
    ]
    + [
        Sample(Ints((2, 3), 0, 9), params={"dtype": t}, dtypes="uint8 int8 int32 int64 float16")
        for t in ("uint8", "int32", "float32", "float16")
    ]
    + [
        Sample([[0.0, 0.5, -2.0, 0.0]], params={"dtype": "bool"}, grad=False),
        Sample((0, 3), params={"dtype": "int32"}),
        Sample([[-_INF, _INF, _NAN, 70000.0]], params={"dtype": "float16"}, grad=False),
    ],
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


@op(
    "_cast_like",
    inputs="data like~",
    expr="data",
    grad=lambda F, dy, like_data: (F._cast_like(dy, like_data), None),
    samples=[Sample((3, 4), np.zeros((3, 4), np.float32), mxnet="internal")],
)
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
    samples=[
        Sample([[-3.0, -0.5, 0.2, 2.6]], params={"a_min": -1.0, "a_max": 1.5}, dtypes=_HALF),
        Sample((2, 0), params={"a_min": 0, "a_max": 1}),
        Sample([_SPECIAL], params={"a_min": "-1", "a_max": 2.5}, grad=False),
        Sample((2, 3), params={"a_min": -_INF, "a_max": 0.4}),
        Sample(Ints((3, 5), 0, 9), params={"a_min": 2, "a_max": 5}, dtypes="uint8 int8 int32 int64"),
        Sample(Ints((3, 5), -9, 9), params={"a_min": -2.6, "a_max": 3.7}, dtypes="int8 int32 int64"),
    ],
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
_FORMS = {
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
    samples=[Sample((3, 4), params={"act_type": t}, domain=_ANY, dtypes=_HALF) for t in _FORMS]
    + [Sample([_SPECIAL], params={"act_type": t}, grad=False) for t in ("sigmoid", "tanh", "softrelu")]
    # MXNet's relu in float32 turns NaNs into 0; its gradient of softsign at infinity is 0, though its value is NaN.
    + [
        Sample([_SPECIAL], params={"act_type": "relu"}, grad=False, dtypes="float64"),
        Sample([_SPECIAL[1:-2]], params={"act_type": "softsign"}, grad=False),
    ]
    + [
        Sample((2, 3, 2, 3), params={"act_type": "tanh"}),
        Sample((7, 40), params={"act_type": "softsign"}, domain=_ANY),
        Sample((2, 0), params={"act_type": "relu"}),
    ],
)
def activation(k, p, data):
    """Apply an activation function.

    Parameters
    ----------
    data : array
    act_type : {'relu', 'sigmoid', 'tanh', 'softrelu', 'softsign'}
        softrelu is log(1 + exp(x)).
    """
    return _FORMS[p.act_type][0](k.xp, data)


activation.dtype(floating())


@op(
    "_backward_Activation",
    inputs="dy out",
    act_type=Enum("relu sigmoid tanh softrelu softsign"),
    alias="dy->output",
    expr=lambda p: _EXPRESSIONS[p.act_type][1],
    grad=lambda F, p, dy, dy_, out: (
        F._backward_Activation(dy, out, act_type=p.act_type),
        _FORMS[p.act_type][2](F, dy * dy_, out),
    ),
    samples=[Sample((3, 4), (3, 4), params={"act_type": t}, domain=_ANY, mxnet="internal") for t in _FORMS],
)
def backward_activation(k, p, dy_, out):
    """The gradient of `Activation`, from the incoming gradient and its output.

    Parameters
    ----------
    dy, out : array
    act_type : str
        As in `Activation`.
    """
    return _FORMS[p.act_type][1](k.xp, dy_, out)


@op(
    "hard_sigmoid",
    inputs="data",
    alpha=Float(0.2),
    beta=Float(0.5),
    expr="minimum(maximum(alpha * data + beta, 0), 1)",
    grad=lambda F, p, dy, y: dy * p.alpha * (y > 0) * (y < 1),
    samples=[
        Sample((3, 4), domain=_ANY, dtypes=_HALF),
        Sample([_SPECIAL], grad=False),
        Sample((3, 4), params={"alpha": 0.7, "beta": 0.4}),
        Sample((3, 4), params={"alpha": -0.3, "beta": "0"}, domain=(-5.0, 4.0)),
        Sample((0, 2), params={"alpha": 1}),
    ],
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
    samples=[
        Sample([[-2.0, -0.4, 0.3, 1.7]], params={"scalar": 1.0}, dtypes=_HALF),
        Sample([_SPECIAL], grad=False),
        Sample((0, 2)),
        Sample([[-2.0, -0.2, 0.1, 0.3, 1.7]], params={"scalar": 2.5}),
        Sample((3, 4), params={"scalar": "0.5", "is_int": False}),
        Sample((3, 4), params={"scalar": 0}),
        Sample(Ints((2, 3), -4, 5), params={"scalar": 1.0}, dtypes="int8 int32 int64"),
    ],
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
