"""Whether generators of random numbers have the distribution that they should."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base import error

__all__ = ["chi_square_check", "gen_buckets_probs_with_ppf", "mean_check", "var_check", "verify_generator"]


def _draw(generator: Callable[[int], Any], n: int) -> np.ndarray[Any, Any]:
    samples = generator(n)
    samples = np.asarray(samples.asnumpy() if hasattr(samples, "asnumpy") else samples).reshape(-1)
    if len(samples) != n:
        raise error(ValueError, f"the generator gave {len(samples)} samples when {n} were asked for")
    return samples


def _chance(statistic: float, freedom: int) -> float:
    """The chance that a chi-square variable of so many degrees of freedom is above `statistic`.

    The closed forms for one and two degrees of freedom, and the recurrence that adds two.
    """
    if freedom < 1:
        return 1.0
    half = statistic / 2
    a = 0.5 if freedom % 2 else 1.0
    chance = math.erfc(math.sqrt(half)) if freedom % 2 else math.exp(-half)
    while 2 * a < freedom and half > 0:
        chance += math.exp(a * math.log(half) - half - math.lgamma(a + 1))
        a += 1
    return 1.0 if half <= 0 else min(chance, 1.0)


def mean_check(generator: Callable[[int], Any], mu: float, sigma: float, nsamples: int = 1000000) -> bool:
    """Whether the mean of samples is within three standard errors of `mu`.

    Parameters
    ----------
    generator : callable
        ``generator(n)`` gives n independent samples.
    mu, sigma : float
        Mean and standard deviation that the distribution should have.
    nsamples : int

    >>> mean_check(lambda n: np.random.RandomState(0).normal(size=n), 0, 1, 1000)
    True
    """
    samples = _draw(generator, nsamples).astype(np.float64)
    return bool(abs(samples.mean() - mu) < 3 * sigma / math.sqrt(nsamples))


def var_check(generator: Callable[[int], Any], sigma: float, nsamples: int = 1000000) -> bool:
    """Whether the variance of samples is within three standard errors of ``sigma**2``, for normal distributions.

    Parameters
    ----------
    generator : callable
        ``generator(n)`` gives n independent samples.
    sigma : float
        Standard deviation that the distribution should have.
    nsamples : int

    >>> var_check(lambda n: np.random.RandomState(0).normal(size=n), 1, 1000)
    True
    """
    samples = _draw(generator, nsamples).astype(np.float64)
    return bool(abs(samples.var(ddof=1) - sigma**2) < 3 * math.sqrt(2 * sigma**4 / (nsamples - 1)))


def gen_buckets_probs_with_ppf(
    ppf: Callable[[float], float], nbuckets: int
) -> tuple[list[tuple[float, float]], list[float]]:
    """Buckets of equal probability of a continuous distribution.

    Parameters
    ----------
    ppf : callable
        The inverse of the distribution function, such as ``scipy.stats.norm.ppf``.
    nbuckets : int

    Returns
    -------
    buckets : list of tuple of float
    probs : list of float

    >>> gen_buckets_probs_with_ppf(lambda p: 2 * p, 2)
    ([(0.0, 1.0), (1.0, 2.0)], [0.5, 0.5])
    """
    if nbuckets < 1:
        raise error(AssertionError, f"gen_buckets_probs_with_ppf: nbuckets must be 1 or more, got {nbuckets}")
    edges = [ppf(i / nbuckets) for i in range(nbuckets + 1)]
    return list(zip(edges, edges[1:])), [1.0 / nbuckets] * nbuckets


def _count(samples: Any, buckets: Sequence[Any]) -> np.ndarray[Any, Any]:
    """How many samples fall into each bucket."""
    if isinstance(buckets[0], (tuple, list)):
        edges = [tuple(float(e) for e in b) for b in buckets]
        rising = all(len(b) == 2 and b[0] < b[1] for b in edges) and all(p[1] <= q[0] for p, q in zip(edges, edges[1:]))
        if not rising:
            raise error(
                AssertionError,
                f"buckets must be ranges (low, high) in ascending order that do not overlap, got {list(buckets)}",
            )
        at = np.searchsorted([low for low, _ in edges], samples, side="right") - 1
        inside = (at >= 0) & (samples < np.array([high for _, high in edges])[at])
        # The upper end of the last bucket belongs to it: float32 rounds samples of [0, 1) up to 1.
        inside |= (at >= 0) & (at == len(edges) - 1) & (samples == edges[-1][1])
    else:
        order = np.argsort(buckets, kind="stable")
        values = np.asarray(buckets)[order]
        if (values[1:] == values[:-1]).any():
            raise error(AssertionError, f"buckets must be different values, got {list(buckets)}")
        place = np.clip(np.searchsorted(values, samples), 0, len(values) - 1)
        at, inside = order[place], values[place] == samples
    if not inside.all():
        wrong = samples[~inside]
        raise error(
            ValueError,
            f"{len(wrong)} of {len(samples)} samples fall into none of the {len(buckets)} buckets, such as {wrong[0]}",
        )
    return np.bincount(at, minlength=len(buckets))


def chi_square_check(
    generator: Callable[[int], Any], buckets: Sequence[Any], probs: Sequence[float], nsamples: int = 1000000
) -> tuple[float, Any, Any]:
    """Test samples against the probabilities of buckets (Pearson's chi-square test).

    Parameters
    ----------
    generator : callable
        ``generator(n)`` gives n independent samples.
    buckets : sequence
        Of a continuous distribution: ranges (low, high), rising, that hold all samples; see
        `gen_buckets_probs_with_ppf`. Of a discrete one: the values.
    probs : sequence of float
        Their probabilities, 1 in all.
    nsamples : int

    Returns
    -------
    p : float
        How likely a result like this or a worse one is; small if the generator is wrong.
    obs_freq, expected_freq : numpy.ndarray of int
        Samples in each bucket: found, and to be expected.

    Raises
    ------
    MXNetError
        (also ValueError) if samples fall into no bucket or probabilities do not add up to 1; (also AssertionError) if
        buckets are not in order, or probabilities are more or fewer.

    Examples
    --------
    >>> p, found, wanted = chi_square_check(lambda n: np.arange(n) % 2, [0, 1], [0.5, 0.5], 1000)
    >>> p, found.tolist(), wanted.tolist()
    (1.0, [500, 500], [500, 500])
    """
    if not len(buckets) or len(buckets) != len(probs):
        raise error(
            AssertionError,
            f"chi_square_check needs one probability for each bucket, got {len(buckets)} buckets and "
            f"{len(probs)} probabilities",
        )
    chances = np.asarray(probs, np.float64)
    if (chances < 0).any() or abs(chances.sum() - 1) > 1e-4:
        raise error(ValueError, f"chi_square_check: probs must be 1 in all and none negative, got {list(probs)}")
    found = _count(_draw(generator, nsamples), buckets)
    wanted = nsamples * chances / chances.sum()
    possible = wanted > 0
    if found[~possible].any():
        p = 0.0
    else:
        p = _chance(float(((found - wanted)[possible] ** 2 / wanted[possible]).sum()), int(possible.sum()) - 1)
    return p, found, np.rint(wanted).astype(np.int32)


def verify_generator(
    generator: Callable[[int], Any],
    buckets: Sequence[Any],
    probs: Sequence[float],
    nsamples: int = 1000000,
    nrepeat: int = 5,
    success_rate: float = 0.2,
    alpha: float = 0.05,
) -> list[float]:
    """Check that a generator has a distribution: of several chi-square tests a share must succeed.

    Parameters
    ----------
    generator, buckets, probs, nsamples
        See `chi_square_check`.
    nrepeat : int
        How many tests.
    success_rate : float
        The share that must succeed.
    alpha : float
        A test succeeds if p is above.

    Returns
    -------
    list of float
        The p of each test.

    Raises
    ------
    AssertionError
        If too few succeed; shows p and the frequencies.

    Examples
    --------
    >>> draw = np.random.RandomState(0).uniform
    >>> len(verify_generator(lambda n: draw(size=n), [(0, 0.5), (0.5, 1)], [0.5, 0.5], nsamples=1000))
    5
    """
    results = [chi_square_check(generator, buckets, probs, nsamples) for _ in range(nrepeat)]
    ps = [p for p, _, _ in results]
    good = sum(p > alpha for p in ps)
    if good < nrepeat * success_rate:
        raise AssertionError(
            f"{good} of {nrepeat} chi-square tests have p > {alpha}, {nrepeat * success_rate:g} are needed: p={ps}, "
            f"obs_freq={[f.tolist() for _, f, _ in results]}, expected_freq={results[0][2].tolist()}, "
            f"buckets={list(buckets)}, probs={list(probs)}"
        )
    return ps
