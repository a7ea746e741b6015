"""The distributions: how variates are drawn, what their parameters must be, and their moments."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from ...typing import Call
from ..common import special_functions
from . import variates

__all__ = ["FLOAT32", "FLOAT64", "INT32", "LAWS", "wide_dtype"]


FLOAT32, FLOAT64, INT32 = np.dtype("float32"), np.dtype("float64"), np.dtype("int32")


def wide_dtype(dtype: Any) -> Any:
    """The float type to compute in."""
    return FLOAT64 if dtype == FLOAT64 else FLOAT32


def _full(xp: Any, value: Any, shape: Any) -> Any:
    """A float64 array of `shape` from a number or an array."""
    return xp.zeros(shape, FLOAT64) + value


def _uniform(xp: Any, rng: Any, shape: Any, t: Any, low: Any, high: Any) -> Any:
    return low + (high - low) * rng.uniform(shape, t)


def _normal(xp: Any, rng: Any, shape: Any, t: Any, loc: Any, scale: Any) -> Any:
    return loc + scale * rng.normal(shape, t)


def _exponential(xp: Any, rng: Any, shape: Any, t: Any, lam: Any) -> Any:
    return variates.exponential(rng, shape, t) / lam


def _gamma(xp: Any, rng: Any, shape: Any, t: Any, alpha: Any, beta: Any) -> Any:
    return variates.gamma(rng, _full(xp, alpha, shape)) * beta


#: Laws of which more numbers than these come are not tabulated.
_TABLE, _SUCCESSES = 1 << 14, 1e4


@lru_cache(64)
def _poisson_table(lam: Any) -> Any:
    last = lam + 12 * lam**0.5 + 40
    if last > _TABLE or not lam:
        return None
    return variates.table_of(lambda i: i * math.log(lam) - lam - special_functions.gammaln(np, i + 1), last)


@lru_cache(64)
def _binomial_table(count: Any, p: Any) -> Any:
    """Of the negative binomial law; also for counts that are not whole."""
    mean = count * (1 - p) / p
    last = mean + 12 * (mean / p) ** 0.5 + (40 / -math.log1p(-p) if p < 1 else 0) + 40
    if last > _TABLE or count > _SUCCESSES or not count or p == 1:
        return None
    return variates.table_of(
        lambda i: (
            special_functions.gammaln(np, i + count)
            - special_functions.gammaln(np, i + 1)
            - math.lgamma(count)
            + count * math.log(p)
            + i * math.log1p(-p)
        ),
        last,
    )


def _poisson(xp: Any, rng: Any, shape: Any, t: Any, lam: Any) -> Any:
    table = _poisson_table(lam) if isinstance(lam, (int, float)) else None
    return variates.poisson(rng, _full(xp, lam, shape)) if table is None else variates.tabulated(rng, shape, table)


def _negative_binomial(xp: Any, rng: Any, shape: Any, t: Any, count: Any, p: Any) -> Any:
    table = _binomial_table(count, p) if isinstance(p, (int, float)) else None
    if table is not None:
        return variates.tabulated(rng, shape, table)
    # A Poisson variate whose rate is a gamma variate.
    return variates.poisson(rng, variates.gamma(rng, _full(xp, count, shape)) * ((1 - p) / p))


def _generalized_negative_binomial(xp: Any, rng: Any, shape: Any, t: Any, mu: Any, alpha: Any) -> Any:
    if isinstance(alpha, (int, float)):
        return (
            _negative_binomial(xp, rng, shape, t, 1 / alpha, 1 / (mu * alpha + 1))
            if alpha
            else _poisson(xp, rng, shape, t, mu)
        )
    alpha = _full(xp, alpha, shape)
    plain = alpha == 0  # no dispersion: Poisson
    rate = variates.gamma(rng, 1 / xp.where(plain, 1.0, alpha)) * alpha
    return variates.poisson(rng, xp.where(plain, 1.0, rate) * mu)


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


def _all_fit(good: Any, message: str, *values: Any) -> None:
    """Raise ValueError with the first of the values that are not good."""
    if not good.all().item():
        at = good.reshape(-1).argmin().item()
        raise ValueError(
            f"{message} {' and '.join(str(v.reshape(-1)[at].item()) for v in values)}"
            + f" (element {at})" * (good.size > 1)
        )


class _Law:
    """A distribution: its parameters (name, name in the array form, default, condition), its moments."""

    def __init__(self, draw: Any, doc: str, parameters: Any, moments: Any, short: Any = False) -> None:
        self.draw, self.doc, self.parameters, self.moments, self.short = draw, doc, parameters, moments, short

    def check(self, values: Any) -> None:
        """Raise ValueError for numbers that are no parameters of the distribution."""
        for (name, _, _, (fits, words)), v in zip(self.parameters, values):
            if not fits(v):
                raise ValueError(f"{name} must be {words}, got {v}")
        if self.draw is _uniform and values[1] < values[0]:
            raise ValueError(f"low must not be above high, got low {values[0]} and high {values[1]}")

    def check_arrays(self, values: Any) -> None:
        """Raise ValueError for arrays in which there are numbers that are no parameters of the distribution."""
        for (_, name, _, usual), v in zip(self.parameters, values):
            fits, words = _IN_ARRAYS.get(name, usual)
            _all_fit(fits(v), f"{name} must be {words}, got", v)
        if self.draw is _uniform:
            _all_fit(values[1] >= values[0], "low must not be above high, got low and high", *values)

    def numbers(self, k: Call, shape: Any, t: Any, values: Any) -> Any:
        """Variates of dtype `t` for parameters that are numbers."""
        self.check(values)
        x = self.draw(k.xp, k.rng, shape, wide_dtype(t), *values).astype(t)
        if self.draw is _uniform and values[0] < values[1]:  # the upper end may come by rounding only
            x = k.xp.minimum(x, np.nextafter(t.type(values[1]), t.type(values[0])))
        return x


LAWS = {
    "uniform": _Law(
        _uniform,
        "the uniform distribution on [low, high)",
        [("low", "low", 0.0, _FINITE), ("high", "high", 1.0, _FINITE)],
        lambda a, b: ((a + b) / 2, (b - a) ** 2 / 12),
        short=True,
    ),
    "normal": _Law(
        _normal,
        "the normal distribution, of a mean and a standard deviation",
        [("loc", "mu", 0.0, _ANY), ("scale", "sigma", 1.0, _POSITIVE)],
        lambda m, s: (m, s * s),
        short=True,
    ),
    "exponential": _Law(
        _exponential,
        "the exponential distribution of rate lam",
        [("lam", "lam", 1.0, _POSITIVE)],
        lambda lam: (1 / lam, 1 / lam**2),
    ),
    "gamma": _Law(
        _gamma,
        "the gamma distribution of shape alpha and scale beta",
        [("alpha", "alpha", 1.0, _ABOVE), ("beta", "beta", 1.0, _POSITIVE)],
        lambda a, b: (a * b, a * b * b),
    ),
    "poisson": _Law(
        _poisson, "the Poisson distribution of rate lam", [("lam", "lam", 1.0, _FROM)], lambda lam: (lam, lam)
    ),
    "negative_binomial": _Law(
        _negative_binomial,
        "the number of failures before the k-th success, where a success has probability p",
        [("k", "k", 1, _FROM), ("p", "p", 1.0, _CHANCE)],
        lambda k, p: (k * (1 - p) / p, k * (1 - p) / p**2),
    ),
    "generalized_negative_binomial": _Law(
        _generalized_negative_binomial,
        "the negative binomial distribution of mean mu and dispersion alpha (0: Poisson)",
        [("mu", "mu", 1.0, _FROM), ("alpha", "alpha", 1.0, _FROM)],
        lambda m, a: (m, m + a * m * m),
    ),
}
