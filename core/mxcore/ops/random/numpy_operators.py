"""The random operators of ``mx.np``: parameters are numbers or arrays that are broadcast, each.

Where the value is a function of the parameters and of noise that does not depend on them, gradients flow to arrays of
parameters through it (the reparameterisation trick), as in MXNet: there the noise is a second output, which is hidden.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..._core.op import Op, op
from ..._core.params import Param, Params
from ...parameters import Bool, Float, Floats, Int, Shape, Str
from ...typing import Array, Call, Operators
from ..common.bodies import silent
from ..common.dtypes import Among
from . import variates
from .distributions import FLOAT32, FLOAT64, LAWS, wide_dtype

__all__ = ["DRAWN"]

_INT64 = np.dtype("int64")
_FLOATS = "float16 float32 float64"


def _number() -> Param:
    """A parameter that is a number, or None where an array is given instead; it must be told which."""
    return Float(optional=True)


class _Law(NamedTuple):
    """A distribution.

    Parameters
    ----------
    doc : str
    parameters : tuple of (name, test, what it must be)
    noise : callable
        ``(xp, rng, shape, dtype, *parameters) -> noise``, or the variates themselves.
    value : callable, optional
        ``(xp, noise, *parameters) -> variates``.
    slopes : callable, optional
        ``(F, noise, *parameters) -> derivatives of the variates``, None standing for 1.
    dtype : bool
        Whether it can be asked for; float32 else.
    ctx : bool
    """

    doc: str
    parameters: tuple[tuple[str, Callable[[Any], Any], str], ...]
    noise: Callable[..., Any]
    value: Callable[..., Any] | None = None
    slopes: Callable[..., Any] | None = None
    dtype: bool = False
    ctx: bool = True
    #: Defaults in MXNet, where there are any.
    default: Any = ...


def _any(v: Any) -> Any:
    return v == v


def _not_negative(v: Any) -> Any:
    return v >= 0


def _positive(v: Any) -> Any:
    return v > 0


def _half_step(t: Any) -> float:
    """Half the distance of uniform numbers, which stands for what lies between 0 and the first of them."""
    return float(2.0**-54 if t == FLOAT64 else 2.0**-25)


def _log_exponential(xp: Any, rng: Any, shape: Any, t: Any, *_: Any) -> Any:
    """The logarithm of an exponential variate."""
    return xp.log(xp.clip(variates.exponential(rng, shape, t), _half_step(t), None))


def _logistic(xp: Any, rng: Any, shape: Any, t: Any, *_: Any) -> Any:
    u = xp.clip(rng.uniform(shape, t), _half_step(t), None)
    return xp.log(u) - xp.log1p(-u)


_LOC, _SCALE = ("loc", _any, "a number"), ("scale", _not_negative, "0 or more")
_A = ("a", _positive, "above 0")


def _shifted(xp: Any, noise: Any, loc: Any, scale: Any) -> Any:
    return loc + scale * noise


def _shifted_slopes(F: Operators, noise: Any, loc: Any, scale: Any) -> Any:
    return None, noise


def _scaled(xp: Any, noise: Any, scale: Any) -> Any:
    return scale * noise


def _scaled_slopes(F: Operators, noise: Any, scale: Any) -> Any:
    return (noise,)


def _shape_slopes(F: Operators, noise: Any, a: Any) -> Any:
    """Of exp(noise / a): noise is the logarithm that `a` divides."""
    return (F.broadcast_div(-noise * F.exp(F.broadcast_div(noise, a)), F.square(a)),)


def _location(doc: str, noise: Any, **more: Any) -> _Law:
    return _Law(doc, (_LOC, _SCALE), noise, _shifted, _shifted_slopes, **more)


_NORMAL = _location(
    "the normal distribution of mean `loc` and standard deviation `scale`",
    lambda xp, rng, shape, t, *_: rng.normal(shape, t),
    dtype=True,
)
_UNIFORM = _Law(
    "the uniform distribution on [low, high)",
    (("low", _any, "a number"), ("high", _any, "a number")),
    LAWS["uniform"].draw,
    dtype=True,
)
#: Operator -> distribution.
_TABLE = {
    "_npi_normal": _NORMAL,
    "_npi_normal_n": _NORMAL,
    "_npi_uniform": _UNIFORM,
    "_npi_uniform_n": _UNIFORM,
    "_npi_gumbel": _location("the Gumbel distribution of mode `loc`", lambda *draw: -_log_exponential(*draw)),
    "_npi_logistic": _location("the logistic distribution of mean `loc`", _logistic),
    "_npi_exponential": _Law(
        "the exponential distribution of mean `scale`",
        (_SCALE,),
        lambda xp, rng, shape, t, *_: variates.exponential(rng, shape, t),
        _scaled,
        _scaled_slopes,
        default=1.0,
    ),
    "_npi_rayleigh": _Law(
        "the Rayleigh distribution of mode `scale`",
        (_SCALE,),
        lambda xp, rng, shape, t, *_: xp.sqrt(2 * variates.exponential(rng, shape, t)),
        _scaled,
        _scaled_slopes,
        default=1.0,
    ),
    "_npi_weibull": _Law(
        "the Weibull distribution of shape `a` and scale 1",
        (_A,),
        _log_exponential,
        lambda xp, noise, a: xp.exp(noise / a),
        _shape_slopes,
        default=None,
    ),
    "_npi_pareto": _Law(
        "the Pareto distribution (Lomax) of shape `a`, on 0 and above",
        (_A,),
        lambda xp, rng, shape, t, *_: variates.exponential(rng, shape, t),
        lambda xp, noise, a: xp.expm1(noise / a),
        _shape_slopes,
        default=None,
    ),
    "_npi_powerd": _Law(
        "the distribution on [0, 1] whose density is a power, `a` - 1",
        (_A,),
        lambda xp, rng, shape, t, a: xp.power(1 - rng.uniform(shape, t), 1 / a),
        ctx=False,
        default=None,
    ),
    "_npi_gamma": _Law(
        "the gamma distribution of shape `shape` and scale `scale`",
        (("shape", _positive, "above 0"), ("scale", _positive, "above 0")),
        LAWS["gamma"].draw,
        dtype=True,
    ),
}


def _broadcast(shapes: Any, size: Any, appended: bool) -> tuple[int, ...]:
    """The shape of what is drawn for parameters of these shapes."""
    try:
        found = np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"parameters of shapes {' and '.join(map(str, shapes))} cannot be broadcast") from None
    if size is None or size == ():
        return found
    if appended:
        return (*size, *found)
    lead = len(size) - len(found)
    if lead < 0 or any(d not in (1, n) for d, n in zip(found, size[lead:])):
        raise ValueError(f"size {size} does not fit parameters of shape {found}, which are broadcast to it")
    return tuple(size)


def _names(*switches: str) -> Callable[[Params], list[str]]:
    """Names of inputs, as many as parameters are None: in MXNet the first that there is is called ``input1``."""
    return lambda p: [f"input{i + 1}" for i in range(sum(getattr(p, name) is None for name in switches))]


def _merged(p: Params, law: _Law, arrays: Any) -> list[Any]:
    """Each parameter as what it is: a number, or the next of the arrays."""
    left = iter(arrays)
    return [next(left) if getattr(p, name) is None else getattr(p, name) for name, *_ in law.parameters]


def _refuse(k: Call, law: _Law, values: Any) -> None:
    """Raise ValueError for values that are no parameters of the distribution."""
    for (name, fits, words), v in zip(law.parameters, values):
        if isinstance(v, float):
            if not fits(v):
                raise ValueError(f"{name} must be {words}, got {v}")
        elif not k.device.async_ and v.size:  # a look at the values would stop a queue
            good = fits(v)
            if not good.all().item():
                at = good.reshape(-1).argmin().item()
                raise ValueError(f"{name} must be {words}, got {v.reshape(-1)[at].item()} (element {at})")


def _drawn(name: str, law: _Law) -> Op:
    names = [n for n, *_ in law.parameters]
    appended = name.endswith("_n")

    @silent
    def body(k: Call, p: Params, *arrays: Array) -> Any:
        values = _merged(p, law, arrays)
        _refuse(k, law, values)
        t = p.dtype if law.dtype else FLOAT32
        compute = wide_dtype(t)
        shape = _broadcast([tuple(x.shape) for x in arrays], p.size, appended)
        values = [v if isinstance(v, float) else v.astype(compute) for v in values]
        noise = law.noise(k.xp, k.rng, shape, compute, *values)
        if law.value is None:
            return noise
        return law.value(k.xp, noise, *values), noise

    def rule(F: Operators, p: Params, dy: Any, out_noise: Any, inputs: Any) -> Any:
        arrays = [F._cast_like(x, out_noise) for x in inputs]
        slopes = law.slopes(F, out_noise, *_merged(p, law, arrays)) if arrays else ()  # type: ignore[misc]
        told = [s for name, s in zip(names, slopes) if getattr(p, name) is None]
        return [[F._sum_like(F._cast_like(dy if s is None else dy * s, x), x) for x, s in zip(inputs, told)]]

    params: dict[str, Param] = {
        n: _number() if law.default is ... else Float(law.default, optional=True) for n in names
    }
    params["size"] = Shape(None)
    if law.ctx:
        params["ctx"] = Str("")
    if law.dtype:
        params["dtype"] = Among("float32", names=_FLOATS)
    o = Op(
        name,
        body,
        inputs="inputs*",
        arg_names=_names(*names),
        outputs="output noise" if law.slopes else "output",
        visible=1,
        random=True,
        params=params,
        grad=rule if law.slopes else None,
        labels="numbers" if law.slopes else "",
        doc=_doc(law, appended),
    )

    @o.shape
    def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
        if None in ins or any(-1 in s for s in ins):
            return ins, outs
        return ins, [_broadcast(ins, p.size, appended)] * len(outs)

    @o.dtype
    def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
        t = p.dtype if law.dtype else FLOAT32
        if any(x is not None and x.kind not in "fiub" for x in ins):
            raise TypeError("parameters must be real numbers")
        return [t if x is None else x for x in ins], [t] * len(outs)

    return o


def _doc(law: _Law, appended: bool) -> str:
    names = [n for n, *_ in law.parameters]
    lines = [f"Draw from {law.doc}; parameters are numbers or arrays.", "", "Parameters", "----------"]
    lines += ["inputs : arrays"]
    lines += [
        "    Parameters that are not numbers, which are broadcast; the gradient flows to them."
        if law.slopes
        else "    Parameters that are not numbers, which are broadcast."
    ]
    lines += [f"{', '.join(names)} : float or None", "    Parameters that are numbers."]
    lines += ["size : tuple of int, optional"]
    lines += [
        "    Shape of what is drawn for each element, before that of the parameters."
        if appended
        else "    Shape of the result; that of the parameters unless told."
    ]
    if law.ctx:
        lines += ["ctx : str", "    Where to draw, if all are numbers."]
    if law.dtype:
        lines += ["dtype : dtype", "    float32 unless told."]
    return "\n".join(lines)


DRAWN = [_drawn(name, law) for name, law in _TABLE.items()]


@op(
    "_npi_bernoulli",
    inputs="inputs*",
    arg_names=lambda p: ["input1"] if p.prob is None and p.logit is None else [],
    random=True,
    grad=None,
    prob=_number(),
    logit=_number(),
    size=Shape(None),
    ctx=Str(""),
    dtype=Among("float32", names="bool float16 float32 float64 int32 int64 uint8"),
    is_logit=Bool(),
)
@silent
def bernoulli(k: Call, p: Params, *inputs: Array) -> Array:
    """Draw 1 with a probability, else 0.

    Parameters
    ----------
    inputs : arrays
        The probabilities, or their log-odds, unless they are one number.
    prob, logit : float or None
        The probability, or its log-odds.
    size : tuple of int, optional
        Shape of the result; that of the input unless told.
    ctx : str
        Where to draw, for a number.
    dtype : dtype
        float32 unless told.
    is_logit : bool
        Whether log-odds are given.
    """
    xp, shape = k.xp, _broadcast([tuple(x.shape) for x in inputs], p.size, False)
    value = inputs[0].astype(wide_dtype(inputs[0].dtype)) if inputs else p.logit if p.is_logit else p.prob
    if p.is_logit:
        value = 1 / (1 + (xp.exp(-value) if inputs else math.exp(min(-value, 700.0))))
    else:
        _refuse(k, _CHANCE, [value])
    return k.rng.uniform(shape, FLOAT64) < value


_CHANCE = _Law("", (("prob", lambda v: (v >= 0) & (v <= 1), "from 0 to 1"),), lambda: None)


@bernoulli.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    return ins, outs if None in ins or any(-1 in s for s in ins) else [_broadcast(ins, p.size, False)]


bernoulli.dtype(lambda p, ins, outs: (ins, [p.dtype]))


@op(
    "_npi_multinomial",
    inputs="data*",
    arg_names=lambda p: ["data"] if p.pvals is None else [],
    random=True,
    grad=None,
    n=Int(ge=0),
    pvals=Floats(None),
    size=Shape(None),
)
@silent
def multinomial(k: Call, p: Params, *data: Array) -> Array:
    """Draw how often each of several outcomes comes in a number of trials.

    Parameters
    ----------
    data : arrays
        The probabilities of the outcomes, (k,). What is missing to 1 goes to the last.
    n : int
        How many trials.
    pvals : tuple of float, optional
        The probabilities, in the place of `data`.
    size : tuple of int, optional
        How many draws; the result has the shape (*size, k), int64.
    """
    xp, rng = k.xp, k.rng
    chances = xp.asarray(np.array(p.pvals, FLOAT64)) if p.pvals is not None else data[0].astype(FLOAT64)
    if not k.device.async_ and chances.size:
        good = (chances >= 0).all().item() and chances[:-1].sum().item() <= 1 + 1e-6
        if not good:
            raise ValueError(
                f"probabilities must be 0 or more and have a sum of 1 at most, got {chances.min().item()} as the "
                f"least and {chances.sum().item()} as the sum"
            )
    shape = tuple(p.size or ())
    left, share, found = xp.zeros(shape, FLOAT64) + p.n, 1.0, []
    for i in range(chances.shape[0] - 1):
        q = xp.clip(chances[i] / xp.maximum(share, chances[i] + 1e-300), 0.0, 1.0)  # of those that are left
        drawn = variates.binomial(rng, left, xp.zeros(shape, FLOAT64) + q)
        left, share = left - drawn, share - chances[i]
        found.append(drawn)
    return xp.stack([*found, left], -1) if chances.shape[0] else xp.zeros((*shape, 0), _INT64)


@multinomial.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    if ins and (ins[0] is None or -1 in ins[0]):
        return ins, outs
    if ins and len(ins[0]) != 1:
        raise ValueError(f"data {ins[0]} must be a vector of probabilities")
    return ins, [(*(p.size or ()), ins[0][0] if ins else len(p.pvals))]


multinomial.dtype(lambda p, ins, outs: (ins, [_INT64]))


@op(
    "_npi_choice",
    inputs="inputs*",
    arg_names=lambda p: ["input1", "input2"][: (p.a is None) + p.weighted],
    random=True,
    grad=None,
    a=Int(None),
    size=Shape(None),
    ctx=Str(""),
    replace=Bool(True),
    weighted=Bool(False),
)
@silent
def choice(k: Call, p: Params, *inputs: Array) -> Array:
    """Draw indices.

    Parameters
    ----------
    inputs : arrays (n,)
        What is drawn from, of which only the length is used, unless that is told; the probability of each index, if
        `weighted`.
    a : int, optional
        How many indices there are.
    size : tuple of int, optional
        Shape of the result, int64; one index unless told.
    ctx : str
        Where to draw, if there are no inputs.
    replace : bool
        Whether an index may come again.
    weighted : bool
        Whether probabilities are given; else all are equally likely.
    """
    xp, shape = k.xp, tuple(p.size or ())
    n, count = _choices(p, [tuple(x.shape) for x in inputs]), int(np.prod(shape, dtype=np.int64))
    if not p.weighted:
        if p.replace:
            return variates.integers(k.rng, 0, n, shape, _INT64)
        return variates.permutation(k.rng, n)[:count].reshape(shape)
    chances = inputs[-1].astype(FLOAT64)
    if not k.device.async_:
        _check_chances(p, chances, count)
    if p.replace:
        total = xp.cumsum(chances)
        u = k.rng.uniform((count,), FLOAT64) * total[-1:]
        return xp.clip(xp.searchsorted(total, u, side="right"), 0, n - 1).reshape(shape)
    # A race: who comes first, each after an exponential time of its own rate (Efraimidis & Spirakis, 2006).
    times = variates.exponential(k.rng, (n,), FLOAT64) / xp.where(chances > 0, chances, 1e-300)
    return xp.argsort(xp.where(chances > 0, times, math.inf))[:count].reshape(shape)


def _check_chances(p: Params, chances: Any, count: int) -> None:
    total = chances.sum().item()
    if not ((chances >= 0).all().item() and abs(total - 1) < 1e-3):
        raise ValueError(
            f"probabilities must be 0 or more and have the sum 1, got {chances.min().item()} as the least and "
            f"{total} as the sum"
        )
    if not p.replace and (chances > 0).sum().item() < count:
        raise ValueError(f"{count} different indices cannot be drawn, {(chances > 0).sum().item()} have a probability")


def _choices(p: Params, shapes: Any) -> int:
    """How many indices there are."""
    for s in shapes:
        if len(s) != 1:
            raise ValueError(f"what is drawn from and probabilities must be vectors, got shape {s}")
    n = p.a if p.a is not None else shapes[0][0]
    if p.weighted and shapes[-1][0] != n:
        raise ValueError(f"there are {shapes[-1][0]} probabilities for {n} indices")
    count = int(np.prod(p.size or (), dtype=np.int64))
    if count and n < 1:
        raise ValueError(f"nothing can be drawn from {n} indices")
    if not p.replace and count > n:
        raise ValueError(f"{count} different indices cannot be drawn from {n}; with replace=True, one may come again")
    return int(n)


@choice.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    if None not in ins and not any(-1 in s for s in ins):
        _choices(p, ins)
    return ins, [tuple(p.size or ())]


choice.dtype(lambda p, ins, outs: (ins, [_INT64]))


@op("_mvn_noise", inputs="mean~ cov~", random=True, grad=None, size=Shape(None))
def mvn_noise(k: Call, p: Params, mean: Array, cov: Array) -> Array:
    """Standard normal numbers for `multivariate_normal`.

    Parameters
    ----------
    mean : array (..., n)
    cov : array (..., n, n)
        Only their shapes and the dtype of `cov` are used.
    size : tuple of int, optional
        How many draws for each mean.
    """
    (shape,) = _mvn_shape(p, [tuple(mean.shape), tuple(cov.shape)])
    return k.rng.normal(shape, wide_dtype(cov.dtype))


@mvn_noise.shape
def _mvn_shape(p: Params, ins: list[Any]) -> list[Any]:
    mean, cov = ins
    if not mean or len(cov) < 2 or not mean[-1] == cov[-1] == cov[-2]:
        raise ValueError(f"mean {mean} and cov {cov} must be (..., n) and (..., n, n)")
    return [(*(p.size or ()), *_broadcast([mean, cov[:-1]], None, False))]


mvn_noise.dtype(lambda p, ins, outs: (ins, [ins[1]]))
