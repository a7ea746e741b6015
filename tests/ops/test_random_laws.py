"""Every random operator follows its law: chi-square tests over many draws, for numbers and arrays as parameters."""

import math
from statistics import NormalDist

import numpy as np
import pytest

import mxcore as mx
from mxcore.test_utils import gen_buckets_probs_with_ppf, verify_generator

nd = mx.nd
DRAWS, BUCKETS = 100_000, 8


def continuous(ppf):
    """Buckets of equal probability."""
    return gen_buckets_probs_with_ppf(ppf, BUCKETS)


def whole(log_p, last):
    """Buckets of the whole numbers 0 … last that come often enough, and one for the rest on either side."""
    p = {i: math.exp(log_p(i)) for i in range(last + 1)}
    kept = [i for i, v in p.items() if v > 0.01]
    low, high = kept[0], kept[-1]
    buckets = [(i - 0.5, i + 0.5) for i in range(low, high + 1)]
    probs = [p[i] for i in range(low, high + 1)]
    below = sum(v for i, v in p.items() if i < low)
    return [(-1.0, low - 0.5), *buckets, (high + 0.5, 1e9)], [below, *probs, 1 - below - sum(probs)]


def gamma_ppf(alpha, beta):
    """The inverse distribution function, from a numerical integral on a fine grid."""
    x = np.concatenate([[0.0], np.geomspace(1e-14, alpha + 12 * alpha**0.5 + 40, 400_000)])
    middle = (x[1:] + x[:-1]) / 2
    total = np.concatenate(
        [[0.0], np.cumsum(np.exp((alpha - 1) * np.log(middle) - middle - math.lgamma(alpha)) * np.diff(x))]
    )
    total += 1 - total[-1]
    return lambda q: 1e9 if q >= 1 else 0.0 if q <= 0 else float(np.interp(q, total, x)) * beta


def poisson(lam):
    """Buckets of the Poisson law."""
    return whole(lambda i: i * math.log(lam) - lam - math.lgamma(i + 1), int(lam + 12 * lam**0.5 + 20))


def negative_binomial(k, p):
    """Buckets of the law of failures before the k-th success."""
    return whole(
        lambda i: math.lgamma(i + k) - math.lgamma(i + 1) - math.lgamma(k) + k * math.log(p) + i * math.log(1 - p), 400
    )


def normal_ppf(mean, deviation):
    """The inverse distribution function of the normal law, its ends far away."""
    law = NormalDist(mean, deviation)
    return lambda q: -1e9 if q <= 0 else 1e9 if q >= 1 else law.inv_cdf(q)


#: name, parameters of the operators, (buckets, probabilities)
LAWS = [
    ("uniform", (-1.5, 3.0), continuous(lambda q: -1.5 + 4.5 * q)),
    ("normal", (2.0, 0.5), continuous(normal_ppf(2.0, 0.5))),
    ("normal", (-1.0, 30.0), continuous(normal_ppf(-1.0, 30.0))),
    ("exponential", (4.0,), continuous(lambda q: 1e9 if q >= 1 else -math.log1p(-q) / 4)),
    ("gamma", (0.5, 2.0), continuous(gamma_ppf(0.5, 2.0))),
    ("gamma", (9.0, 0.5), continuous(gamma_ppf(9.0, 0.5))),
    ("poisson", (0.8,), poisson(0.8)),
    ("poisson", (4.0,), poisson(4.0)),
    ("poisson", (35.0,), poisson(35.0)),
    ("negative_binomial", (1, 0.4), negative_binomial(1, 0.4)),
    ("negative_binomial", (5, 0.7), negative_binomial(5, 0.7)),
    ("generalized_negative_binomial", (3.0, 0.5), negative_binomial(2.0, 1 / 2.5)),
]


def numbers(name, values, n, dtype):
    """Draws of ``_random_<name>``."""
    return getattr(nd, f"random_{name}")(*values, shape=(n,), dtype=dtype)


def arrays(name, values, n, dtype):
    """Draws of ``_sample_<name>`` from two equal rows."""
    return getattr(nd, f"sample_{name}")(
        *[nd.array([v, v], dtype="float64") for v in values], shape=(n // 2,), dtype=dtype
    ).reshape((-1,))


def like(name, values, n, dtype):
    """Draws of ``_random_<name>_like``."""
    op = getattr(nd.random, f"{name}_like")
    return op(nd.zeros((n // 4, 4), dtype=dtype), **dict(zip(PARAMETERS[name], values))).reshape((-1,))


PARAMETERS = {
    "uniform": ("low", "high"),
    "normal": ("loc", "scale"),
    "exponential": ("lam",),
    "gamma": ("alpha", "beta"),
    "poisson": ("lam",),
    "negative_binomial": ("k", "p"),
    "generalized_negative_binomial": ("mu", "alpha"),
}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("form", [numbers, arrays, like])
@pytest.mark.parametrize("name, values, law", LAWS, ids=[f"{n}{v}" for n, v, _ in LAWS])
def test_the_law(name, values, law, form, dtype):
    mx.random.seed(11)
    verify_generator(
        lambda n: form(name, values, n, dtype).asnumpy().astype(np.float64),
        *law,
        nsamples=DRAWS,
        nrepeat=5,
        success_rate=0.6,
    )


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_whole_numbers(dtype):
    mx.random.seed(11)
    buckets = [(i - 0.5, i + 0.5) for i in range(-4, 9)]
    verify_generator(
        lambda n: nd.random_randint(-4, 9, shape=(n,), dtype=dtype).asnumpy(),
        buckets,
        [1 / 13] * 13,
        nsamples=DRAWS,
        success_rate=0.6,
    )


@pytest.mark.parametrize("low, high", [(0, 3 * 2**61), (-(2**62), 2**62 + 1), (-(2**63), 2**62), (-5, 2**40)])
def test_whole_numbers_of_wide_ranges_are_equally_likely(low, high):
    mx.random.seed(11)
    drawn = nd.random_randint(low, high, shape=(40_000,), dtype="int64").asnumpy().tolist()
    parts = np.bincount([(v - low) * 4 // (high - low) for v in drawn], minlength=4)
    assert len(parts) == 4 and (abs(parts - 10_000) < 450).all()  # five standard deviations


@pytest.mark.slow
def test_indices():
    mx.random.seed(11)
    p = [0.05, 0.3, 0.0, 0.15, 0.5]
    rows = nd.array([p, p])
    used = [i for i, v in enumerate(p) if v]
    verify_generator(
        lambda n: nd.sample_multinomial(rows, shape=(n // 2,)).asnumpy().ravel(),
        [(i - 0.5, i + 0.5) for i in used],
        [p[i] for i in used],
        nsamples=DRAWS,
        success_rate=0.6,
    )


@pytest.mark.slow
def test_orders():
    """All orders of three come alike."""
    mx.random.seed(11)
    draw = np.array([nd.shuffle(nd.array([0.0, 1.0, 2.0])).asnumpy() @ [9, 3, 1] for _ in range(12_000)])
    orders = sorted(set(draw))
    assert len(orders) == 6
    counts = np.array([(draw == o).sum() for o in orders])
    assert ((counts - 2000) ** 2 / 2000).sum() < 20.5  # the 0.999 quantile of five degrees of freedom


@pytest.mark.slow
def test_different_numbers_of_falling_probability():
    """One number of each row: i comes with probability log((i + 2) / (i + 1)) / log(range_max + 1)."""
    mx.random.seed(11)
    top = 12
    drawn, _ = nd._internal._sample_unique_zipfian(range_max=top, shape=(6000, 1))
    p = np.log((np.arange(top) + 2) / (np.arange(top) + 1)) / math.log(top + 1)
    counts = np.bincount(drawn.asnumpy().ravel(), minlength=top)
    assert ((counts - 6000 * p) ** 2 / (6000 * p)).sum() < 31.3  # the 0.999 quantile of eleven degrees of freedom


@pytest.mark.slow
def test_the_check_can_fail():
    wrong = next(law for name, values, law in LAWS if values == (2.0, 0.5))
    with pytest.raises(AssertionError, match="chi-square"):
        verify_generator(
            lambda n: nd.random_normal(2.02, 0.5, shape=(n,)).asnumpy(), *wrong, nsamples=DRAWS, success_rate=0.6
        )
