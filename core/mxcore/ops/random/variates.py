"""Variates of distributions that need rejection or inversion, over any array namespace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...philox import Rng

__all__ = ["binomial", "exponential", "gamma", "integers", "permutation", "poisson", "table_of", "tabulated"]


def _mixed(words: Any) -> Any:
    """Other random words in place of rejected ones: the finaliser of SplitMix64 (Steele, Lea & Flood, OOPSLA 2014)."""
    z = words + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _reject(
    rng: Rng, words: int, params: Sequence[Any], attempt: Callable[..., tuple[Any, Any]], where: Any = None
) -> Any:
    """Rejection sampling: rounds of ``attempt(uniforms, *params) -> (values, accepted)`` over those still left.

    Each element has random words of its own, and makes new ones from them; so the numbers of one do not depend on the
    fate of the others. A NaN counts as accepted; so bad parameters end. Elements outside `where` are zero.
    """
    xp = rng.device.xp
    n = params[0].shape[0]
    found = xp.zeros(n, np.float64)
    left = xp.arange(n)
    near = not rng.at_host  # else the words of all elements stay in the host's memory, and what they stand for is sent
    block = (rng.bits if near else rng.host_bits)(words * n).reshape(words, n)
    if where is not None:
        left = left[where]
        block, params = block[:, left] if near else block, [a[left] for a in params]
    for _ in range(64):
        if not left.shape[0]:
            break
        u = (block >> np.uint64(11)).astype(np.float64)
        u += 0.5
        u *= 2.0**-53
        u = u if near else rng.device.from_host(u, rng.index)[:, left]
        value, ok = attempt(u, *params)
        ok |= xp.isnan(value)
        if left.shape[0] == n:
            found = xp.where(ok, value, 0.0)
        else:
            found[left[ok]] = value[ok]
        rest = xp.nonzero(~ok)[0]
        left, params, block = left[rest], [a[rest] for a in params], _mixed(block[:, rest] if near else block)
    return found


#: In how many parts the unit interval is cut to find the place of a number in a table.
_CELLS = 4096


def table_of(log_p: Callable[[Any], Any], last: float) -> tuple[Any, Any, Any]:
    """What `tabulated` needs of a law on 0, 1, 2 … whose logarithms of probabilities are given, up to a last number.

    Host arrays: the distribution function, the number at the beginning of each cell of [0, 1), whether that holds for
    the whole cell.
    """
    total = np.cumsum(np.exp(log_p(np.arange(int(last) + 1.0))))
    edges = np.arange(_CELLS + 1) / _CELLS
    first = np.searchsorted(total, edges[:-1], side="right")
    return total, first, first == np.searchsorted(total, edges[1:], side="left")


def tabulated(rng: Rng, shape: tuple[int, ...], table: tuple[Any, Any, Any]) -> Any:
    """Variates of one law, by inversion in a table of `table_of`; float64."""
    total, first, whole = map(rng.device.xp.asarray, table)
    u = rng.uniform((int(np.prod(shape, dtype=np.int64)),), np.float64)
    cell = (u * _CELLS).astype(np.int64)
    found = first[cell]
    at = rng.device.xp.nonzero(~whole[cell])[0]
    found[at] = rng.device.xp.searchsorted(total, u[at], side="right")
    return found.astype(np.float64).reshape(shape)


def gamma(rng: Rng, alpha: Any) -> Any:
    """Gamma variates with shape parameters `alpha` (an array, float64) and scale 1; NaN where `alpha` is negative.

    Marsaglia & Tsang, "A simple method for generating gamma variables", ACM TOMS 26, 2000.
    """
    xp = rng.device.xp
    flat = alpha.reshape(-1)
    small = flat < 1
    u = rng.uniform(flat.shape, np.float64)
    d = xp.where(small, flat + 1, flat) - 1.0 / 3.0

    def attempt(u: Any, d: Any) -> tuple[Any, Any]:
        x = xp.sqrt(-2 * xp.log(u[0])) * xp.cos(u[1] * (2 * np.pi))
        v = 1 + x / xp.sqrt(9.0 * d)
        v = v * v * v
        inside = v > 0
        bound = 0.5 * x * x + d * (1 - v + xp.log(xp.where(inside, v, 1.0)))
        return d * v, inside & (xp.log(u[2]) < bound)

    x = _reject(rng, 3, [xp.where(flat >= 0, d, np.nan)], attempt)
    at = xp.nonzero(small & (flat > 0))[0]
    x[at] = x[at] * xp.exp(xp.log1p(-u[at]) / flat[at])
    return xp.where(flat == 0, 0.0, x).reshape(alpha.shape)


def poisson(rng: Rng, lam: Any) -> Any:
    """Poisson variates with rates `lam` (an array, float64); NaN where `lam` is negative.

    Rates below 10 by inversion, larger ones by Hörmann's transformed rejection ("The transformed rejection method
    for generating Poisson random variables", Insurance: Mathematics and Economics 12, 1993).
    """
    xp = rng.device.xp
    flat = lam.reshape(-1)
    big = flat >= 10
    u = rng.uniform(flat.shape, np.float64)
    rate = xp.where(big, 0.0, flat)
    few = _inverted(xp, u, xp.exp(-rate), [rate], lambda i, rate: rate / (i + 1))

    def attempt(u: Any, lam: Any) -> tuple[Any, Any]:
        b = 0.931 + 2.53 * xp.sqrt(lam)
        k, us, hat = _hat(xp, u, -0.059 + 0.02483 * b, b, lam + 0.43)
        quick = (us >= 0.07) & (u[1] <= 0.9277 - 3.6224 / (b - 2))
        log_v = xp.log(u[1] * (1.1239 + 1.1328 / (b - 3.4)) / hat)
        return k, quick | ((k >= 0) & (log_v <= k * xp.log(lam) - lam - _log_factorial(xp, k)))

    many = _reject(rng, 2, [flat], attempt, big)
    return xp.where(flat >= 0, xp.where(big, many, few), np.nan).reshape(lam.shape)


def binomial(rng: Rng, n: Any, q: Any) -> Any:
    """Binomial variates for arrays of counts and probabilities (float64, of one shape); NaN where impossible.

    Small means by inversion, larger ones by Hörmann's transformed rejection ("The generation of binomial random
    variates", Journal of Statistical Computation and Simulation 46, 1993).
    """
    xp = rng.device.xp
    size, prob = n.reshape(-1), q.reshape(-1)
    less = xp.where(prob > 0.5, 1 - prob, prob)
    big = size * less >= 10
    u = rng.uniform(size.shape, np.float64)
    m, r = xp.where(big, 1.0, size), xp.where(big, 0.5, less)
    few = _inverted(xp, u, (1 - r) ** m, [m, r], lambda i, m, r: (m - i) / (i + 1) * r / (1 - r))

    def attempt(u: Any, n: Any, q: Any) -> tuple[Any, Any]:
        sd = xp.sqrt(n * q * (1 - q))
        b = 1.15 + 2.53 * sd
        k, us, hat = _hat(xp, u, -0.0873 + 0.0248 * b + 0.01 * q, b, n * q + 0.5)
        quick = (us >= 0.07) & (u[1] <= 0.92 - 4.2 / b)
        inside, mode = xp.clip(k, 0, n), xp.floor((n + 1) * q)
        log_p = (k - mode) * xp.log(q / (1 - q)) + sum(
            sign * _log_factorial(xp, i) for i, sign in ((mode, 1), (n - mode, 1), (inside, -1), (n - inside, -1))
        )
        return k, (k == inside) & (quick | (xp.log(u[1] * (2.83 + 5.1 / b) * sd / hat) <= log_p))

    many = _reject(rng, 2, [size, less], attempt, big)
    found = xp.where(big, many, few)
    found = xp.where(prob > 0.5, size - found, found)
    return xp.where((size >= 0) & (prob >= 0) & (prob <= 1), found, np.nan).reshape(n.shape)


def _inverted(xp: Any, u: Any, first: Any, params: Sequence[Any], ratio: Callable[..., Any], terms: int = 60) -> Any:
    """The quantiles at `u` of a law on 0, 1, 2 … with P(0) = `first` and P(i + 1) = P(i) ratio(i, *params)."""
    found, at, term, total = xp.zeros(u.shape, np.float64), xp.arange(u.shape[0]), first, first
    for i in range(terms):
        over = u >= total
        at = at[over]
        if not at.shape[0]:
            break
        u, term, total, params = u[over], term[over], total[over], [a[over] for a in params]
        found[at] = i + 1
        term = term * ratio(i, *params)
        total = total + term
    return found


def _hat(xp: Any, u: Any, a: Any, b: Any, centre: Any) -> tuple[Any, Any, Any]:
    """A try of Hörmann's rejection: the value, its distance from the ends of (0, 1), the density of the hat there."""
    x = u[0] - 0.5
    us = 0.5 - xp.abs(x)
    return xp.floor((2 * a / us + b) * x + centre), us, a / (us * us) + b


def _log_factorial(xp: Any, k: Any) -> Any:
    """log k! of whole numbers (float64): Stirling's series, moved up by a product for the small ones."""
    z = xp.maximum(k, 0.0) + 1
    small = z < 8
    shift = xp.where(small, z * (z + 1) * (z + 2) * (z + 3) * (z + 4) * (z + 5) * (z + 6) * (z + 7), 1.0)
    z = xp.where(small, z + 8, z)
    w = 1 / (z * z)
    return (z - 0.5) * xp.log(z) - z + 0.9189385332046727 + (1 / 12 - w * (1 / 360 - w / 1260)) / z - xp.log(shift)


def exponential(rng: Rng, shape: tuple[int, ...], dtype: Any = np.float32) -> Any:
    """Exponential with rate 1."""
    wide = np.float64 if np.dtype(dtype) == np.float64 else np.float32
    return (-rng.device.xp.log1p(-rng.uniform(shape, wide))).astype(dtype)


def integers(rng: Rng, low: int, high: int, shape: tuple[int, ...], dtype: Any = np.int64) -> Any:
    """Integers in [low, high), by multiplication of the high bits (bias below 2**-32 for spans below 2**31).

    Of wider spans by the remainder, without bias: of the words above the last multiple of the span others are made.
    """
    n = int(np.prod(shape, dtype=np.int64))
    span = max(int(high) - int(low), 1)
    xp = np if rng.at_host else rng.device.xp

    def numbers(words: Any) -> Any:
        if span < 2**31:
            words = (words >> np.uint64(32)) * np.uint64(span) >> np.uint64(32)
        else:
            last = np.uint64(2**64 // span * span - 1)
            for _ in range(64):  # of which each leaves less than half
                rest = xp.nonzero(words > last)[0]
                if not rest.shape[0]:
                    break
                words[rest] = _mixed(words[rest])
            words = words % np.uint64(span)
        return (words.astype(np.int64) + int(low)).astype(dtype).reshape(shape)

    return rng.made(n, numbers)


def permutation(rng: Rng, n: int) -> Any:
    """A random order of 0 … n-1."""
    xp = np if rng.at_host else rng.device.xp
    if n >= 1 << 24:
        return rng.made(n, lambda words: xp.argsort(words >> np.uint64(1)))

    def order(words: Any) -> Any:
        # Numbers below random bits: sorting them is faster than sorting by the bits, and 40 bits leave next to no ties.
        low = np.uint64(24)
        keys = words >> low << low
        keys |= xp.arange(n, dtype=np.uint64)
        keys = xp.sort(keys)
        keys &= np.uint64((1 << 24) - 1)
        return keys.view(np.int64)

    return rng.made(n, order)
