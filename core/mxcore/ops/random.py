"""Random numbers: three operators per distribution, for numbers, for the shape of an array, for arrays of parameters.

The distributions are one table; the numbers come from ``k.rng``, so they follow the seed and are equal on every device.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from .._core.op import Op, op
from ..parameters import Bool, DType, Float, Int, Shape, Str
from ..testing.sample import Ints, Sample, Values
from . import distributions, rules, special
from .dtypes import Among
from .silent import silent

__all__ = ["LAWS", "OPS"]

_F32, _F64, _I32 = np.dtype("float32"), np.dtype("float64"), np.dtype("int32")
_FLOATS = "float16 float32 float64"


def _wide(dtype):
    """The float type to compute in."""
    return _F64 if dtype == _F64 else _F32


def _full(xp, value, shape):
    """A float64 array of `shape` from a number or an array."""
    return xp.zeros(shape, _F64) + value


def _uniform(xp, rng, shape, t, low, high):
    return low + (high - low) * rng.uniform(shape, t)


def _normal(xp, rng, shape, t, loc, scale):
    return loc + scale * rng.normal(shape, t)


def _exponential(xp, rng, shape, t, lam):
    return distributions.exponential(rng, shape, t) / lam


def _gamma(xp, rng, shape, t, alpha, beta):
    return distributions.gamma(rng, _full(xp, alpha, shape)) * beta


#: Laws of which more numbers than these come are not tabulated.
_TABLE, _SUCCESSES = 1 << 14, 1e4


@lru_cache(64)
def _poisson_table(lam):
    last = lam + 12 * lam**0.5 + 40
    if last > _TABLE or not lam:
        return None
    return distributions.table_of(lambda i: i * math.log(lam) - lam - special.gammaln(np, i + 1), last)


@lru_cache(64)
def _binomial_table(count, p):
    """Of the negative binomial law; also for counts that are not whole."""
    mean = count * (1 - p) / p
    last = mean + 12 * (mean / p) ** 0.5 + (40 / -math.log1p(-p) if p < 1 else 0) + 40
    if last > _TABLE or count > _SUCCESSES or not count or p == 1:
        return None
    return distributions.table_of(
        lambda i: (
            special.gammaln(np, i + count)
            - special.gammaln(np, i + 1)
            - math.lgamma(count)
            + count * math.log(p)
            + i * math.log1p(-p)
        ),
        last,
    )


def _poisson(xp, rng, shape, t, lam):
    table = _poisson_table(lam) if isinstance(lam, (int, float)) else None
    return (
        distributions.poisson(rng, _full(xp, lam, shape))
        if table is None
        else distributions.tabulated(rng, shape, table)
    )


def _negative_binomial(xp, rng, shape, t, count, p):
    table = _binomial_table(count, p) if isinstance(p, (int, float)) else None
    if table is not None:
        return distributions.tabulated(rng, shape, table)
    # A Poisson variate whose rate is a gamma variate.
    return distributions.poisson(rng, distributions.gamma(rng, _full(xp, count, shape)) * ((1 - p) / p))


def _generalized_negative_binomial(xp, rng, shape, t, mu, alpha):
    if isinstance(alpha, (int, float)):
        return (
            _negative_binomial(xp, rng, shape, t, 1 / alpha, 1 / (mu * alpha + 1))
            if alpha
            else _poisson(xp, rng, shape, t, mu)
        )
    alpha = _full(xp, alpha, shape)
    plain = alpha == 0  # no dispersion: Poisson
    rate = distributions.gamma(rng, 1 / xp.where(plain, 1.0, alpha)) * alpha
    return distributions.poisson(rng, xp.where(plain, 1.0, rate) * mu)


#: What a parameter must be: the test, in words.
_ANY = (lambda v: v == v, "a number")
_FINITE = (lambda v: (v > -math.inf) & (v < math.inf), "a finite number")
_POSITIVE = (lambda v: v > 0, "above 0")
_NOT_NEGATIVE = (lambda v: v >= 0, "0 or more")
_ABOVE = (lambda v: (v > 0) & (v < math.inf), "above 0 and finite")
_FROM = (lambda v: (v >= 0) & (v < math.inf), "0 or more and finite")
_CHANCE = (lambda v: (v > 0) & (v <= 1), "above 0 and at most 1")
#: What else may be in an array of parameters: a normal distribution without spread is a number.
_IN_ARRAYS = {"sigma": _NOT_NEGATIVE}


def _all_fit(good, message, *values):
    """Raise ValueError with the first of the values that are not good."""
    if not good.all().item():
        at = good.reshape(-1).argmin().item()
        raise ValueError(
            f"{message} {' and '.join(str(v.reshape(-1)[at].item()) for v in values)}"
            + f" (element {at})" * (good.size > 1)
        )


class _Law:
    """A distribution: its parameters (name, name in the array form, default, values in the samples, what it must be),
    its moments.
    """

    def __init__(self, draw, doc, parameters, moments, short=False):
        self.draw, self.doc, self.parameters, self.moments, self.short = draw, doc, parameters, moments, short

    def check(self, values):
        """Raise ValueError for numbers that are no parameters of the distribution."""
        for (name, _, _, _, (fits, words)), v in zip(self.parameters, values):
            if not fits(v):
                raise ValueError(f"{name} must be {words}, got {v}")
        if self.draw is _uniform and values[1] < values[0]:
            raise ValueError(f"low must not be above high, got low {values[0]} and high {values[1]}")

    def check_arrays(self, values):
        """Raise ValueError for arrays in which there are numbers that are no parameters of the distribution."""
        for (_, name, _, _, usual), v in zip(self.parameters, values):
            fits, words = _IN_ARRAYS.get(name, usual)
            _all_fit(fits(v), f"{name} must be {words}, got", v)
        if self.draw is _uniform:
            _all_fit(values[1] >= values[0], "low must not be above high, got low and high", *values)

    def numbers(self, k, shape, t, values):
        """Variates of dtype `t` for parameters that are numbers."""
        self.check(values)
        x = self.draw(k.xp, k.rng, shape, _wide(t), *values).astype(t)
        if self.draw is _uniform and values[0] < values[1]:  # the upper end may come by rounding only
            x = k.xp.minimum(x, np.nextafter(t.type(values[1]), t.type(values[0])))
        return x


LAWS = {
    "uniform": _Law(
        _uniform,
        "the uniform distribution on [low, high)",
        [("low", "low", 0.0, (-1.0, 0.0), _FINITE), ("high", "high", 1.0, (1.0, 3.0), _FINITE)],
        lambda a, b: ((a + b) / 2, (b - a) ** 2 / 12),
        short=True,
    ),
    "normal": _Law(
        _normal,
        "the normal distribution, of a mean and a standard deviation",
        [("loc", "mu", 0.0, (-1.0, 1.0), _ANY), ("scale", "sigma", 1.0, (0.5, 2.0), _POSITIVE)],
        lambda m, s: (m, s * s),
        short=True,
    ),
    "exponential": _Law(
        _exponential,
        "the exponential distribution of rate lam",
        [("lam", "lam", 1.0, (0.5, 2.0), _POSITIVE)],
        lambda lam: (1 / lam, 1 / lam**2),
    ),
    "gamma": _Law(
        _gamma,
        "the gamma distribution of shape alpha and scale beta",
        [("alpha", "alpha", 1.0, (0.5, 3.0), _ABOVE), ("beta", "beta", 1.0, (0.5, 2.0), _POSITIVE)],
        lambda a, b: (a * b, a * b * b),
    ),
    "poisson": _Law(
        _poisson,
        "the Poisson distribution of rate lam",
        [("lam", "lam", 1.0, (0.5, 30.0), _FROM)],
        lambda lam: (lam, lam),
    ),
    "negative_binomial": _Law(
        _negative_binomial,
        "the number of failures before the k-th success, where a success has probability p",
        [("k", "k", 1, (1, 6), _FROM), ("p", "p", 1.0, (0.3, 0.8), _CHANCE)],
        lambda k, p: (k * (1 - p) / p, k * (1 - p) / p**2),
    ),
    "generalized_negative_binomial": _Law(
        _generalized_negative_binomial,
        "the negative binomial distribution of mean mu and dispersion alpha (0: Poisson)",
        [("mu", "mu", 1.0, (1.0, 4.0), _FROM), ("alpha", "alpha", 1.0, (0.2, 1.0), _FROM)],
        lambda m, a: (m, m + a * m * m),
    ),
}


def _plausible(x, mean, var, what=""):
    """Fail unless mean and variance of the values lie within six standard errors."""
    x = np.asarray(x, np.float64).ravel()
    if not x.size:
        return
    assert np.isfinite(x).all(), f"{what}: not finite"
    spread = np.sqrt(max(((x - mean) ** 4).mean() - var**2, var**2) / x.size)
    assert abs(x.mean() - mean) <= 6 * np.sqrt(var / x.size) + 1e-3 * abs(mean), (
        f"{what}: mean {x.mean()}, expected {mean}"
    )
    assert abs(((x - mean) ** 2).mean() - var) <= 6 * spread + 2e-3 * var, f"{what}: variance {x.var()}, expected {var}"


def _moments(law, values):
    """A sample's check: the outputs have the moments of the law with these parameters."""
    return lambda inputs, outputs: _plausible(outputs[0], *law.moments(*map(float, values)), law.doc)


def _moments_each(law):
    """A sample's check: for each element of the parameter arrays, its row of draws has the right moments."""

    def check(inputs, outputs):
        rows = np.asarray(outputs[0]).reshape(inputs[0].size, -1)
        for i, row in enumerate(rows):
            _plausible(row, *law.moments(*[float(a.ravel()[i]) for a in inputs]), law.doc)

    return check


def _parameters(law, spec=Float):
    return {
        n: (Int(d, dynamic=True) if isinstance(d, int) else spec(d, dynamic=True)) for n, _, d, _, _ in law.parameters
    }


def _float_dtype(p, name):
    t = p.dtype or _F32
    if t.kind != "f":
        raise TypeError(f"dtype must be float16, float32 or float64, got {t.name}")
    return t


def _shape_asked(p, ins, outs):
    """The shape of the parameters; a graph's consumer decides what is left open."""
    return ins, [outs[0] if p.shape is None else tuple(-1 if d == 0 else d for d in p.shape)]


def _decided(k, p):
    if k.shapes:
        return k.shapes[0]
    if p.shape is None:
        raise ValueError("the shape is unknown: pass shape=, or out=")
    return p.shape


_ASKED_DOC = """shape : tuple of int
    Shape of the result.
ctx : str
    Where to draw.
dtype : dtype
    float32 unless told."""


def _doc(head, names, rest):
    return "\n".join([head, "", "Parameters", "----------", *names, *rest.splitlines()])


def _numbers(name, law):
    """``_random_<name>``: parameters are numbers."""
    names = [n for n, *_ in law.parameters]

    def body(k, p):
        return law.numbers(k, _decided(k, p), p.dtype or _F32, [getattr(p, n) for n in names])

    some, others, usual = (
        [v[3][1] for v in law.parameters],
        [v[3][0] for v in law.parameters],
        [v[2] for v in law.parameters],
    )

    def sample(values, shape, **more):
        given = {} if values is usual else dict(zip(names, values))
        return Sample(params={**given, "shape": shape, **more}, grad=False, check=_moments(law, values))

    o = Op(
        f"_random_{name}",
        body,
        inputs="",
        random=True,
        grad=None,
        helpers={"check": law.check},
        aliases=(f"random_{name}", *([name] if law.short else [])),
        params={**_parameters(law), "shape": Shape(None), "ctx": Str(""), "dtype": DType(None)},
        doc=_doc(f"Draw from {law.doc}.", [f"{n} : float" for n in names], _ASKED_DOC),
        samples=[
            sample(some, (40, 50)),
            sample(some, (7,), dtype="float64"),
            sample(others, (30, 1, 41), dtype="float64"),
            sample(some, (50, 30), dtype="float16"),
            sample(usual, 1501),
            sample([*map(str, others)], "(21, 70)", dtype="float32"),
            Sample(
                params={**dict(zip(names, some)), "shape": (2, 0)},
                grad=False,
                check=_moments(law, some),
                mxnet="0 means unknown",
            ),
        ],
    )
    o.shape(_shape_asked)
    o.dtype(lambda p, ins, outs: (ins, [_float_dtype(p, name)]))
    return o


def _like(name, law):
    """``_random_<name>_like``: parameters are numbers, the shape is that of an array."""
    names = [n for n, *_ in law.parameters]

    def body(k, p, data):
        return law.numbers(k, tuple(data.shape), data.dtype, [getattr(p, n) for n in names])

    some, others, usual = (
        [v[3][1] for v in law.parameters],
        [v[3][0] for v in law.parameters],
        [v[2] for v in law.parameters],
    )
    return Op(
        f"_random_{name}_like",
        body,
        inputs="data~",
        random=True,
        grad=None,
        helpers={"check": law.check},
        params=_parameters(law),
        doc=_doc(
            f"Draw from {law.doc}, in the shape and dtype of `data`.",
            [f"{n} : float" for n in names],
            "data : array\n    Only its shape and dtype are used.",
        ),
        samples=[
            Sample((30, 40), params=dict(zip(names, some)), grad=False, check=_moments(law, some), dtypes=_FLOATS),
            Sample((9, 31, 3), params=dict(zip(names, map(str, others))), grad=False, check=_moments(law, others)),
            Sample((1200,), grad=False, check=_moments(law, usual)),
            Sample((1,), grad=False, check=lambda i, o: None),
            Sample((0, 3), grad=False, check=lambda i, o: None),
        ],
    )


def _arrays(name, law):
    """``_sample_<name>``: parameters are arrays, `shape` values are drawn for each element."""
    inputs = [m for _, m, *_ in law.parameters]

    def body(k, p, *values):
        more, t = p.shape, p.dtype or _F32
        first = tuple(values[0].shape)
        ends = first + (1,) * len(more)
        if not k.device.async_:  # a look at the values would stop the queue
            law.check_arrays(values)
        values = [v.astype(_wide(t)).reshape(ends) for v in values]
        return law.draw(k.xp, k.rng, (*first, *more), _wide(t), *values).astype(t)

    def spec(parameter, shape):
        make = Ints if isinstance(parameter[2], int) else Values
        return make(shape, *parameter[3])

    check = _moments_each(law)
    o = Op(
        f"_sample_{name}",
        body,
        inputs=" ".join(inputs),
        random=True,
        grad=None,
        helpers={"check": law.check_arrays},
        aliases=(f"sample_{name}",),
        params={"shape": Shape(()), "dtype": DType(None)},
        doc=_doc(
            f"Draw from {law.doc}; the parameters are arrays.",
            [f"{n} : array" for n in inputs],
            "    Of one shape.\nshape : tuple of int\n    Shape of what is drawn for each element, appended to that "
            "of the "
            "parameters.\ndtype : dtype\n    float32 unless told.",
        ),
        samples=[
            Sample(*[spec(v, (3,)) for v in law.parameters], params={"shape": (40, 50)}, grad=False, check=check),
            Sample(*[spec(v, (2, 2)) for v in law.parameters], grad=False, check=lambda i, o: None),
            Sample(
                *[spec(v, (2, 1, 2)) for v in law.parameters],
                params={"shape": 700, "dtype": "float64"},
                grad=False,
                check=check,
            ),
            Sample(
                *[spec(v, (1,)) for v in law.parameters],
                params={"shape": "(30, 1, 30)", "dtype": "float16"},
                grad=False,
                check=check,
            ),
            Sample(
                *[spec(v, (3,)) for v in law.parameters],
                params={"shape": (600,)},
                grad=False,
                check=check,
                dtypes="float16",
            ),
            Sample(
                *[spec(v, (0, 2)) for v in law.parameters], params={"shape": (3,)}, grad=False, check=lambda i, o: None
            ),
        ],
    )

    @o.shape
    def _(p, ins, outs):
        shape = next((s for s in ins if s is not None), None)
        return [shape] * len(ins), [None if shape is None else (*shape, *p.shape)]

    o.dtype(lambda p, ins, outs: ([next((t for t in ins if t is not None), None)] * len(ins), [_float_dtype(p, name)]))
    return o


OPS = [make(name, law) for name, law in LAWS.items() for make in (_numbers, _like, _arrays)]


def _whole(low, high, shape, **more):
    """A sample of `randint`, with its check."""

    def check(inputs, outputs):
        x = np.asarray(outputs[0])
        assert x.size == 0 or (x.min() >= low and x.max() < high)
        if x.size > 100:
            _plausible(x, (low + high - 1) / 2, ((high - low) ** 2 - 1) / 12)

    return Sample(params={"low": low, "high": high, "shape": shape, **more}, grad=False, check=check)


@op(
    "_random_randint",
    "random_randint",
    inputs="",
    random=True,
    grad=None,
    low=Int(dynamic=True),
    high=Int(dynamic=True),
    shape=Shape(None),
    ctx=Str(""),
    dtype=DType(None),
    samples=[
        _whole(-3, 17, (30, 40)),
        _whole(-3, 17, (7,), dtype="int64"),
        _whole(0, 2, 900, dtype="int32"),
        _whole(4, 5, (3, 1, 2)),
        _whole(-(2**31), 2**31 - 1, (40, 30)),
        _whole(-(2**40), 2**41, (40, 30), dtype="int64"),
        Sample(params={"low": "-3", "high": "17", "shape": "(2, 3)"}, grad=False, check=lambda i, o: None),
    ],
)
def randint(k, p):
    """Draw whole numbers from [low, high), all equally likely.

    Parameters
    ----------
    low, high : int
    shape : tuple of int
    ctx : str
    dtype : dtype
        int32 unless told, or int64.
    """
    if p.high <= p.low:
        raise ValueError(f"high must be above low, got low {p.low} and high {p.high}")
    t = p.dtype or _I32
    held = np.iinfo(t)
    if p.low < held.min or p.high - 1 > held.max:
        raise ValueError(f"{t.name} holds {held.min} to {held.max}, got low {p.low} and high {p.high}")
    return distributions.integers(k.rng, p.low, p.high, _decided(k, p), t)


randint.shape(_shape_asked)


@randint.dtype
def _(p, ins, outs):
    t = p.dtype or _I32
    if t.kind not in "iu":
        raise TypeError(f"dtype must be int32 or int64, got {t.name}")
    return ins, [t]


def _frequencies(inputs, outputs):
    data = inputs[0].reshape(-1, inputs[0].shape[-1])
    rows = np.asarray(outputs[0]).reshape(data.shape[0], -1).astype(int)
    for q, row in zip(data, rows):
        q = q / q.sum()
        for i, prob in enumerate(q):
            near = 6 * np.sqrt(prob * (1 - prob) / row.size)
            assert abs((row == i).mean() - prob) <= near, (
                f"index {i} came {(row == i).mean()} of the time, expected {prob}"
            )
        if len(outputs) > 1:
            logs = np.asarray(outputs[1]).reshape(data.shape[0], -1)[0]
            break
    if len(outputs) > 1:
        np.testing.assert_allclose(logs, np.log(data[0])[rows[0]], 1e-3)


_CHANCES = [[0.1, 0.2, 0.7], [0.5, 0.0, 0.5]]


@op(
    "_sample_multinomial",
    "sample_multinomial",
    inputs="data",
    labels="numbers",
    outputs="output prob[get_prob]",
    random=True,
    shape=Shape(()),
    get_prob=Bool(False),
    dtype=Among("int32", names="uint8 int32 int64 float16 float32 float64"),
    grad=lambda F, p, dys, data, y: F._backward_sample_multinomial(dys[1], data, y) if p.get_prob else None,
    samples=[
        Sample(
            [[0.1, 0.2, 0.7], [0.25, 0.5, 0.25]],
            params={"shape": (20, 30), "get_prob": True},
            grad=False,
            check=_frequencies,
        ),
        Sample([0.3, 0.7], params={"dtype": "float32"}, grad=False, check=lambda i, o: None),
        Sample(_CHANCES, params={"shape": 600}, grad=False, check=_frequencies),
        Sample([_CHANCES, _CHANCES], params={"shape": "(20, 20)", "dtype": "uint8"}, grad=False, check=_frequencies),
        Sample([[1.0]], params={"shape": (3,), "dtype": "float64", "get_prob": "True"}, grad=False, check=_frequencies),
        Sample(
            [0.25, 0.25, 0.5], params={"shape": 900, "dtype": "float16"}, grad=False, check=_frequencies, dtypes=_FLOATS
        ),
        Sample((0, 3), params={"shape": 2}, grad=False, check=lambda i, o: None),
    ],
)
@silent
def sample_multinomial(k, p, data):
    """Draw indices with the probabilities in the last axis of `data`.

    Parameters
    ----------
    data : array (..., k)
        Each row sums to 1.
    shape : tuple of int
        How many to draw from each row; the result has shape (..., \\*shape).
    get_prob : bool
        Also give the logarithms of the probabilities of what was drawn; the gradient flows through these.
    dtype : dtype
        Of the indices.
    """
    xp = k.xp
    rows = data.reshape(-1, data.shape[-1])
    n, width = rows.shape
    total = xp.cumsum(rows.astype(_F64), axis=1)
    last = total[:, -1]
    good = (rows >= 0).all(1) & (last > 0) & (last < math.inf)
    if not k.device.async_ and not good.all().item():
        row = good.argmin().item()
        raise ValueError(
            "probabilities must be 0 or more, and those of a row have a finite sum above 0, "
            f"got {rows[row].min().item()} as the least and {last[row].item()} as the sum of row {row}"
        )
    # One search for all rows: row i lies on [i, i + 1).
    at = xp.arange(n).reshape(n, 1)
    u = k.rng.uniform((n, _size(p.shape)), _F64) + at
    index = xp.searchsorted((total / total[:, -1:] + at).reshape(-1), u.reshape(-1), side="right").reshape(u.shape)
    index = xp.clip(index - at * width, 0, width - 1)
    drawn = index.reshape(_drawn_shape(data.shape, p.shape))
    if not p.get_prob:
        return drawn
    return drawn, xp.log(xp.take_along_axis(rows, index, 1)).reshape(drawn.shape)


def _size(shape):
    return int(np.prod(shape, dtype=np.int64))


def _drawn_shape(data, more):
    return (*data[:-1], *more) or (1,)


@sample_multinomial.shape
def _(p, ins):
    if not ins[0] or not ins[0][-1]:
        raise ValueError(f"data must hold a probability at least, got shape {ins[0]}")
    return [_drawn_shape(ins[0], p.shape)] * (1 + p.get_prob)


@sample_multinomial.dtype
def _(p, ins, outs):
    if ins[0] is not None and ins[0].kind != "f":
        raise TypeError(f"data must be float16, float32 or float64, got {ins[0].name}")
    return ins, [p.dtype, ins[0]][: 1 + p.get_prob]


@op(
    "_backward_sample_multinomial",
    inputs="dy data sample",
    samples=[
        Sample((2, 4), Values((2, 3), 0.2, 0.9), Ints((2, 4), 0, 3, dtype="int32"), grad=False, mxnet="internal"),
        Sample((5,), Values((4,), 0.2, 0.9), Ints((5,), 0, 4, dtype="int32"), grad=False, mxnet="internal"),
    ],
)
def backward_sample_multinomial(k, p, dy, data, sample):
    """The gradient of the log-probabilities of drawn indices: dy / probability at each index.

    Parameters
    ----------
    dy : array
        Gradient of the log-probabilities.
    data : array (..., k)
    sample : array
        The drawn indices.
    """
    xp = k.xp
    rows = data.reshape(-1, data.shape[-1])
    index = sample.astype(np.int64).reshape(rows.shape[0], -1)
    found = xp.zeros(rows.shape, data.dtype)
    at = xp.arange(rows.shape[0])[:, None] + xp.zeros_like(index)
    xp.add.at(found, (at, index), dy.reshape(index.shape) / xp.take_along_axis(rows, index, 1))
    return found.reshape(data.shape)


@backward_sample_multinomial.shape
def _(p, ins):
    dy, data, sample = ins
    rules.fits("dy", ins, [sample])
    if data[:-1] not in (sample[: len(data) - 1], ()):
        raise ValueError(f"sample {sample} must begin with the shape of the distributions, {data[:-1]}")
    return [data]


backward_sample_multinomial.dtype(lambda p, ins, outs: (ins, [ins[1]]))


def _same_rows(inputs, outputs):
    before, after = (np.asarray(a).reshape(a.shape[0], -1) for a in (inputs[0], outputs[0]))
    assert (np.sort(before, 0) == np.sort(after, 0)).all()
    assert before.shape[0] < 10 or (before != after).any(), "nothing moved"


@op(
    "_shuffle",
    "shuffle",
    inputs="data",
    random=True,
    samples=[
        Sample((20, 3), grad=False, check=_same_rows, dtypes=_FLOATS),
        Sample((1,), grad=False, check=_same_rows),
        Sample(Ints((31,), 0, 9), grad=False, check=_same_rows, dtypes="int8 uint8 int32 int64"),
        Sample((12, 1, 2, 3), grad=False, check=_same_rows),
        Sample((0, 3), grad=False, check=lambda i, o: None),
    ],
)
def shuffle(k, p, data):
    """Put the rows of `data` in random order.

    Parameters
    ----------
    data : array
    """
    return data[distributions.permutation(k.rng, data.shape[0])]


def _distinct(inputs, outputs):
    drawn, tries = (np.asarray(a) for a in outputs)
    for row, n in zip(drawn, tries):
        assert len(set(row)) == len(row) <= n and row.min(initial=0) >= 0 and row.max(initial=0) < 50


@op(
    "_sample_unique_zipfian",
    inputs="",
    labels="numbers",
    outputs="samples num_tries",
    random=True,
    grad=None,
    range_max=Int(ge=1),
    shape=Shape(None),
    samples=[
        Sample(params={"range_max": 50, "shape": (3, 8)}, grad=False, check=_distinct),
        Sample(params={"range_max": "8", "shape": "(2, 8)"}, grad=False, check=_distinct),
        Sample(params={"range_max": 50, "shape": (1, 1)}, grad=False, check=_distinct),
    ],
)
def sample_unique_zipfian(k, p):
    """Draw different whole numbers from [0, range_max), i with probability near 1 / (i + 1).

    Parameters
    ----------
    range_max : int
    shape : tuple of int
        (rows, numbers per row); the numbers of a row differ. The second output tells how many draws each row took.
    """
    xp = k.xp
    if p.shape is None or len(p.shape) != 2:
        raise ValueError(f"shape must be (rows, numbers per row), got {p.shape}")
    rows, count = p.shape
    if count > p.range_max:
        raise ValueError(f"{count} different numbers cannot be drawn below range_max {p.range_max}")
    numbers, tries = xp.zeros((rows, count), np.int64), xp.zeros(rows, np.int64)
    scale = float(np.log(p.range_max + 1))
    rng = k.rng  # one stream; every access to k.rng starts it anew
    for i in range(rows):
        drawn = xp.zeros(0, np.int64)
        while True:
            more = rng.uniform((2 * count + 16 + drawn.shape[0],), _F64)
            more = xp.clip(xp.exp(more * scale).astype(np.int64) - 1, 0, p.range_max - 1)
            drawn = xp.concatenate([drawn, more])
            _, first = xp.unique(drawn, return_index=True)
            if first.shape[0] >= count:
                break
        first = xp.sort(first)[:count]
        numbers[i] = drawn[first]
        if count:
            tries[i] = first[count - 1] + 1
    return numbers, tries


sample_unique_zipfian.shape(lambda p, ins, outs: (ins, [p.shape, p.shape and p.shape[:1]]))
sample_unique_zipfian.dtype(lambda p, ins, outs: (ins, [np.dtype("int64")] * 2))
