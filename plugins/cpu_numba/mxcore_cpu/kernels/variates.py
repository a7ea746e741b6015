"""Random variates by rejection or inversion, each element from random words of its own, and shuffled rows.

The words come in the order in which :mod:`mxcore.ops.random.variates` draws them and are used in the same way, so the
numbers are those of the reference bodies; tests compare them. Parameters are given once for every `each` elements.
"""

from __future__ import annotations

import math

import numpy as np

from mxcore.plugin import Rng

from .. import math as m
from ..jit import helper, kernel
from ..typing import Array, Scalar
from ._arrays import flat
from .columns import copy

__all__ = ["gamma", "poisson", "shuffled"]

U = np.uint64
_ROUNDS = 64  # of rejections, then 0


@helper
def _mixed(word: Scalar) -> Scalar:
    z = word + U(0x9E3779B97F4A7C15)
    z = (z ^ (z >> U(30))) * U(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> U(27))) * U(0x94D049BB133111EB)
    return z ^ (z >> U(31))


@helper
def _open(word: Scalar) -> Scalar:
    """A number in (0, 1)."""
    return (np.float64(word >> U(11)) + 0.5) * 2.0**-53


@helper
def _half_open(word: Scalar) -> Scalar:
    """A number in [0, 1)."""
    return np.float64(word >> U(11)) * 2.0**-53


@helper
def _cosine(u: Scalar) -> Scalar:
    """cos(2 pi u) for u in [0, 1]: the sine of what is missing to a quarter turn, by its series."""
    s = 2.0 * math.pi * (0.25 - abs(u - np.rint(u)))
    z, p = s * s, 0.0
    p = z * (1 / 355687428096000 - z / 121645100408832000)
    p = z * (1 / 6227020800 - z * (1 / 1307674368000 - p))
    p = z * (1 / 362880 - z * (1 / 39916800 - p))
    return s * (1 - z * (1 / 6 - z * (1 / 120 - z * (1 / 5040 - p))))


@helper
def _normal(a: Scalar, b: Scalar) -> Scalar:
    return np.sqrt(-2.0 * m.log(_open(a))) * _cosine(_open(b))


@helper(inline=False)
def _gamma(d: Scalar, a: Scalar, b: Scalar, c: Scalar) -> Scalar:
    """By the rejection of Marsaglia and Tsang."""
    root = math.sqrt(9.0 * d)
    for _ in range(_ROUNDS):
        x = _normal(a, b)
        v = 1.0 + x / root
        v = v * v * v
        if v > 0.0 and math.log(_open(c)) < 0.5 * x * x + d * (1.0 - v + math.log(v)):
            return d * v
        a, b, c = _mixed(a), _mixed(b), _mixed(c)
    return 0.0


@helper(inline=False)
def _gamma_many(d: Scalar, a: Array, b: Array, c: Array, out: Array) -> None:
    """As `_gamma` for all elements; most are settled by a bound that needs no logarithm, in a loop without branches."""
    root, missed = math.sqrt(9.0 * d), 0
    for i in range(out.size):
        x = _normal(a[i], b[i])
        v, square = 1.0 + x / root, x * x
        v = v * v * v
        settled = (v > 0.0) & (_open(c[i]) < 1.0 - 0.0331 * (square * square))
        out[i] = m.where(settled, d * v, -1.0)
        missed += not settled
    for i in range(out.size if missed else 0):
        if out[i] < 0.0:
            out[i] = _gamma(d, a[i], b[i], c[i])


@kernel(threshold=1 << 11)
def _gammas(first: int, last: int, n: int, each: int, alpha: Array, extra: Array, words: Array, out: Array) -> None:
    i = first
    while i < last:
        shape, end = alpha[i // each], min(last, (i // each + 1) * each)
        d = (shape + 1.0 if shape < 1.0 else shape) - 1.0 / 3.0
        if shape > 0.0:
            _gamma_many(d, words[i:end], words[n + i : n + end], words[2 * n + i : 2 * n + end], out[i:end])
            for k in range(i, end if shape < 1.0 else i):
                out[k] *= math.exp(math.log1p(-_half_open(extra[k])) / shape)
        else:
            out[i:end] = 0.0 if shape == 0.0 else np.nan
        i = end


@helper(inline=False)
def _log_factorial(k: int) -> Scalar:
    z = max(k, 0.0) + 1.0
    shift = 1.0
    if z < 8.0:
        shift = z * (z + 1) * (z + 2) * (z + 3) * (z + 4) * (z + 5) * (z + 6) * (z + 7)
        z += 8.0
    w = 1.0 / (z * z)
    return (z - 0.5) * math.log(z) - z + 0.9189385332046727 + (1 / 12 - w * (1 / 360 - w / 1260)) / z - math.log(shift)


@helper(inline=False)
def _poisson_few(rate: Scalar, first: Scalar, u: Scalar) -> Scalar:
    """By inversion; `first` is the probability of 0."""
    term = total = first
    for i in range(60):
        if not u >= total:
            return np.float64(i)
        term = term * (rate / (i + 1))
        total += term
    return 60.0


@helper(inline=False)
def _poisson_many(rate: Scalar, a: Scalar, b: Scalar) -> Scalar:
    """By Hörmann's transformed rejection."""
    wide = 0.931 + 2.53 * math.sqrt(rate)
    tilt, inverse, log_rate = -0.059 + 0.02483 * wide, 1.1239 + 1.1328 / (wide - 3.4), math.log(rate)
    for _ in range(_ROUNDS):
        x, v = _open(a) - 0.5, _open(b)
        us = 0.5 - abs(x)
        k = math.floor((2.0 * tilt / us + wide) * x + (rate + 0.43))
        if us >= 0.07 and v <= 0.9277 - 3.6224 / (wide - 2.0):
            return np.float64(k)
        if k >= 0 and math.log(v * inverse / (tilt / (us * us) + wide)) <= k * log_rate - rate - _log_factorial(
            np.float64(k)
        ):
            return np.float64(k)
        a, b = _mixed(a), _mixed(b)
    return 0.0


@kernel(threshold=1 << 11)
def _poissons(first: int, last: int, n: int, each: int, rate: Array, few: Array, many: Array, out: Array) -> None:
    i = first
    while i < last:
        r, end = rate[i // each], min(last, (i // each + 1) * each)
        if r >= 10.0:
            for k in range(i, end):
                out[k] = _poisson_many(r, many[k], many[n + k])
        elif r >= 0.0:
            none = math.exp(-r)
            for k in range(i, end):
                out[k] = _poisson_few(r, none, _half_open(few[k]))
        else:
            out[i:end] = np.nan
        i = end


def gamma(rng: Rng, alpha: Array, each: int) -> Array:
    """Draw `each` gamma variates of scale 1 for each shape parameter (float64); NaN where that is negative."""
    n = alpha.size * each
    extra, words, out = rng.bits(n), rng.bits(3 * n), np.empty(n)
    _gammas(n, n, each, flat(alpha), extra, words, out)
    return out


def poisson(rng: Rng, rate: Array, each: int) -> Array:
    """Draw `each` Poisson variates for each rate (float64); NaN where that is negative."""
    n = rate.size * each
    few, out = rng.bits(n), np.empty(n)
    many = rng.bits(2 * n) if (rate >= 10).any() else np.empty(0, U)
    _poissons(n, n, each, flat(rate), few, many, out)
    return out


_PLACE = 24  # bits of a key that hold a place, as in the reference


@kernel(threshold=1 << 15)
def _numbered(first: int, last: int, keys: Array) -> None:
    mask = U((1 << _PLACE) - 1)
    for i in range(first, last):
        keys[i] = keys[i] & ~mask | U(i)


@kernel(threshold=1 << 14)
def _take_elements(first: int, last: int, keys: Array, x: Array, y: Array) -> None:
    mask = U((1 << _PLACE) - 1)
    for i in range(first, last):
        y[i] = x[keys[i] & mask]


@kernel(threshold=1 << 12)
def _take_rows(first: int, last: int, width: int, keys: Array, x: Array, y: Array) -> None:
    mask = U((1 << _PLACE) - 1)
    for i in range(first, last):
        copy(x, np.int64(keys[i] & mask) * width, width, y, i * width)


def shuffled(rng: Rng, data: Array, out: Array) -> None:
    """Write the rows of `data` in random order; fewer than 2 ** 24 rows, `out` contiguous.

    They are sorted by random bits above their number.
    """
    n = data.shape[0]
    if not data.size:
        return
    keys = rng.bits(n)
    _numbered(n, keys)
    keys.sort()
    if data.size == n:
        _take_elements(n, keys, flat(data), out.reshape(-1))
    else:
        _take_rows.run(_take_elements.workers(data.size), n, data.size // n, keys, flat(data), out.reshape(-1))
