"""The vectorised functions against float64 NumPy, over the whole range of float32."""

import math

import numpy as np
import pytest

from mxcore.plugin import find_op
from mxcore_cpu import math as m
from mxcore_cpu.kernels.elementwise import _map

SPECIAL = [
    np.nan,
    np.inf,
    -np.inf,
    0.0,
    -0.0,
    1e-45,
    -1e-45,
    1.1754942e-38,
    1.0,
    -1.0,
    -2.0,
    3e38,
    -3e38,
    88.72,
    88.73,
    -87.4,
    -103.9,
    -104.5,
    16.0,
    -16.0,
]


def sigmoid(x):
    return np.where(x < 0, np.exp(-abs(x)), 1) / (1 + np.exp(-abs(x)))


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-abs(x)))


# name -> (reference, units in the last place of float32, relative error of float64)
FUNCTIONS = {
    "exp": (np.exp, 1.5, 3e-16),
    "expm1": (np.expm1, 2, 5e-16),
    "log": (np.log, 1.5, 3e-16),
    "log1p": (np.log1p, 2, 5e-16),
    "tanh": (np.tanh, 3, 7e-16),
    "sigmoid": (sigmoid, 3, 7e-16),
    "softplus": (softplus, 3, 7e-16),
    "erf": (np.vectorize(math.erf), 3, 7e-16),
}


def apply(name, x):
    f = getattr(m, name)
    kernel = _map("test_" + name, lambda v, p: f(v), 1)
    y = np.empty_like(x)
    kernel.run(1, x.size, x, y, 0.0)
    return y


@pytest.mark.parametrize("name", FUNCTIONS)
def test_float32_everywhere(name):
    reference, ulps, _ = FUNCTIONS[name]
    bits = np.arange(0, 1 << 32, 7919 if name != "erf" else 79193, dtype=np.uint64)
    x = np.concatenate([bits.astype(np.uint32).view(np.float32), np.float32(SPECIAL)])
    with np.errstate(all="ignore"):
        exact = reference(x.astype(np.float64))
        expected = exact.astype(np.float32)
        got = apply(name, x)
        unit = np.spacing(np.abs(expected)).astype(np.float64)
        off = np.abs(got.astype(np.float64) - exact) / unit
    assert np.array_equal(np.isnan(got), np.isnan(expected))
    assert np.array_equal(np.isinf(got), np.isinf(expected))
    finite = np.isfinite(expected)
    assert off[finite].max() <= ulps, x[finite][off[finite].argmax()]
    zero = (expected == 0) & (x == 0)
    assert np.array_equal(np.signbit(got[zero]), np.signbit(expected[zero]))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_float64(name):
    reference, _, tolerance = FUNCTIONS[name]
    rng = np.random.default_rng(3)
    scales = 10 ** rng.uniform(-300, 2, 20000)
    x = np.concatenate(
        [
            rng.uniform(-30, 30, 20000),
            rng.uniform(-1, 1, 20000) * scales,
            SPECIAL,
            [709.7, 709.8, -745.0, -746.0, 5e-324, 1e300],
        ]
    )
    with np.errstate(all="ignore"):
        expected, got = reference(x), apply(name, x)
        assert np.array_equal(np.isfinite(got), np.isfinite(expected))
        assert np.array_equal(np.isnan(got), np.isnan(expected))
        fine = np.isfinite(expected)
        # NumPy's own functions may be off by one unit, too
        assert (np.abs(got - expected)[fine] <= tolerance * np.abs(expected[fine]) + 5e-324).all()


@pytest.mark.parametrize("name", ["exp", "expm1"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_of_nothing_above_zero(name, dtype):
    x = -np.abs(
        np.concatenate([np.linspace(0, 800, 100_001), 10.0 ** np.linspace(-300, 2, 1001), SPECIAL]).astype(dtype)
    )
    with np.errstate(all="ignore"):
        expected, got = getattr(np, name)(x.astype("f8")), apply(name + "_below", x)
        off = np.abs(got - expected) / np.spacing(np.abs(expected.astype(dtype)))
    assert np.array_equal(np.isnan(got), np.isnan(x)) and np.array_equal(np.signbit(got), np.signbit(expected))
    assert np.nanmax(off) <= 3


def test_the_normal_distribution():
    x = np.concatenate(
        [np.linspace(-12, 12, 100_001), [0.0, -0.0, np.inf, -np.inf, np.nan, 40, -40, 1e-45, 3e38, -3e38]]
    )
    for name in ("gate", "density"):
        for dtype, at_most in (("f4", 1e-5), ("f8", 1e-13)):
            given = x.astype(dtype)
            with np.errstate(all="ignore"):
                expected = getattr(m, name)(given.astype("f8"))
            # From the squared argument comes a relative error that grows with it; near zero and above there is none.
            np.testing.assert_allclose(apply(name, given), expected, at_most, 1e-16 if dtype == "f8" else 1e-38)
            near = np.abs(given) < 1
            np.testing.assert_allclose(apply(name, given[near]), expected[near], 5 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_power_follows_c(dtype):
    values = [0.0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3, -3, 2.5, -2.5, np.inf, -np.inf, np.nan, 10, 1e-3]
    values = np.array(values, dtype)
    x, y = (a.ravel().copy() for a in np.meshgrid(values, values))
    kernel = _map("test_power", lambda a, b, p: m.power(a, b), 2)
    got = np.empty_like(x)
    kernel.run(1, x.size, x, y, got, 0.0)
    with np.errstate(all="ignore"):
        expected = np.power(x, y)
    np.testing.assert_allclose(got, expected, rtol=3e-7 if dtype == "f4" else 1e-15)
    assert np.array_equal(np.signbit(got[~np.isnan(got)]), np.signbit(expected[~np.isnan(got)]))


@pytest.mark.parametrize(
    "name, points, expected",
    [
        ("digamma", [1.0, 0.5, 10.0], [-0.5772156649015329, -1.9635100260214235, 2.251752589066721]),
        ("digamma", [-0.5], [0.03648997397857652]),
        ("erfinv", [0.0, 0.5, -0.999, 1e-10], [0.0, 0.4769362762044699, -2.326753765513525, 8.862269254527581e-11]),
        ("gamma", [0.5, 5.0], [1.772453850905516, 24.0]),
        ("lgamma", [0.5, 100.0], [0.5723649429247001, 359.1342053695754]),
        ("rsqrt", [4.0], [0.5]),
        ("rcbrt", [8.0], [0.5]),
        ("relu", [-1.0, 2.0], [0.0, 2.0]),
    ],
)
def test_known_values(name, points, expected):
    np.testing.assert_allclose(apply(name, np.array(points)), expected, rtol=1e-14)


def test_float32_erfinv():
    from math import erf

    y = np.linspace(-3.9, 3.9, 20011)
    x = np.vectorize(erf)(y).astype("f4")
    x = x[abs(x) < 1]
    exact = apply("erfinv", x.astype("f8"))
    np.testing.assert_allclose(apply("erfinv", x), exact, rtol=2e-7)
    assert np.isnan(apply("erfinv", np.array([-1.5, np.nan, 2], "f4"))).all()
    assert apply("erfinv", np.array([-1, 1, 0], "f4")).tolist() == [-np.inf, np.inf, 0]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_functions_of_two(dtype):
    from mxcore_cpu.kernels.elementwise import binary

    special = np.array([0.0, -0.0, 1, -1, 3, -3, np.inf, -np.inf, np.nan, 1e-30, 3e38, 1e30, 0.1, 7.5], dtype)
    a, b = (v.ravel() for v in np.meshgrid(special, special))
    some = np.random.default_rng(0).standard_normal((2, 5000)).astype(dtype)
    a, b = np.concatenate([a, some[0] * 100]), np.concatenate([b, some[1]])
    out = np.empty_like(a)
    with np.errstate(all="ignore"):
        binary("hypot", a, b, out)
        np.testing.assert_allclose(out, np.hypot(a, b), rtol=1e-6 if dtype == "f4" else 1e-14)
        binary("modulo", a, b, out)
        expected = np.where(b == 0, 0, np.mod(a, b))
        np.testing.assert_array_equal(out, expected)
        for number in (3.0, -0.5):
            binary("modulo", a, number, out)
            np.testing.assert_array_equal(out, np.mod(a, np.array(number, dtype)))
            binary("hypot", a, number, out)
            np.testing.assert_allclose(out, np.hypot(a, np.array(number, dtype)), rtol=1e-6 if dtype == "f4" else 1e-14)


@pytest.mark.parametrize("threads_", [1, 3])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_histogram(dtype, threads_, monkeypatch):
    from mxcore_cpu.kernels import counting

    monkeypatch.setattr(counting._count, "workers", lambda work: threads_)
    x = np.concatenate(
        [np.linspace(-2, 2, 4001), [np.nan, np.inf, -np.inf, 1.5, -1.5], np.random.default_rng(0).standard_normal(9000)]
    ).astype(dtype)
    for low, high, n in ((-1.5, 1.5, 30), (0.1, 0.7, 7), (1, 1, 3)):
        counts, edges = np.empty(n, np.int64), np.empty(n + 1, dtype)
        low, high, edges[...] = find_op("_histogram").facet("helpers").even_edges(np, low, high, n)
        counting.histogram(x, low, high, edges, counts)
        about = np.array([(low * (n - i) + high * i) / n for i in range(n + 1)], dtype)
        np.testing.assert_array_equal(edges, about)
        inside = x[(x >= np.float64(low)) & (x <= np.float64(high))]
        np.testing.assert_array_equal(
            counts,
            [
                (((inside >= a) | (a == about[0])) & ((inside < b) | (b == about[-1]))).sum()
                for a, b in zip(about, about[1:])
            ],
        )


def test_erfinv_beyond_its_range():
    assert apply("erfinv", np.array([1.0, -1.0])).tolist() == [np.inf, -np.inf]
    assert np.isnan(apply("erfinv", np.array([1.5, np.nan]))).all()


def test_every_function_of_expressions_is_here():
    from mxcore.fusion.expr import FUNCTIONS as names

    assert [n for n in names if not hasattr(m, n)] == []
