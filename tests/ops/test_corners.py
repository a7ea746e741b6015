"""Corners of the neural operators against values of the real MXNet 1.9.1 (made by ``golden/make_corners.py``)."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import mxcore as mx

from .golden.corners import CASES, run

FILE = Path(__file__).parent / "golden" / "corners.npz"


@pytest.fixture(scope="module")
def golden():
    with np.load(FILE) as f:
        return dict(f)


def test_file_holds_these_cases(golden):
    assert golden["names"].tolist() == [repr(c) for c in CASES]


@pytest.mark.parametrize("i", range(len(CASES)), ids=[repr(c) for c in CASES])
def test_corner(i, golden):
    found = run(mx, CASES[i])
    expected = [golden[f"{i}.{j}"] for j in range(len(found))]
    assert f"{i}.{len(found)}" not in golden
    for a, b in zip(found, expected):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("dtype, infinity", [("int8", 0), ("int32", -(2**31)), ("int64", -(2**63))])
def test_whole_numbers_to_negative_powers(dtype, infinity):
    """As MXNet: the power is cut towards zero, and infinity is what C makes of it."""
    base, power = [2, 1, 0, -1, -2], [-1, -2, -3, -3, -1]
    want = [0, 1, infinity, -1, 0]
    a, b = mx.nd.array(base, dtype=dtype), mx.nd.array(power, dtype=dtype)
    for _ in range(2):  # the second time on the short way
        assert (a**b).asnumpy().tolist() == want and (a**b).dtype == np.dtype(dtype)
    assert mx.nd.broadcast_power(a.reshape((5, 1)), b.reshape((1, 5))).asnumpy()[:, 0].tolist() == want
    assert (a**-1).asnumpy().tolist() == want and (a**2).asnumpy().tolist() == [4, 1, 0, 1, 4]
    assert (2 ** mx.nd.array([-1, 2], dtype=dtype)).asnumpy().tolist() == [0, 4]
    assert (0**b).asnumpy().tolist() == [infinity] * 5
    x, y = mx.sym.Variable("x"), mx.sym.Variable("y")
    assert mx.sym._power(x, y).bind(mx.cpu(), {"x": a, "y": b}).forward()[0].asnumpy().tolist() == want


def test_whole_powers_are_exact_and_what_does_not_fit_is_the_lowest_number():
    a = mx.nd.array(np.array([3, -3, 2, -2, 2]), dtype="int64")
    b = mx.nd.array(np.array([39, 39, 62, 63, 63]), dtype="int64")
    assert (a**b).asnumpy().tolist() == [3**39, -(3**39), 2**62, -(2**63), -(2**63)]
    assert (mx.nd.array([2, 7, -2], dtype="int32") ** 40).asnumpy().tolist() == [-(2**31)] * 3
    assert (mx.nd.array([2, 7, 3], dtype="uint8") ** 3).asnumpy().tolist() == [8, 343 - 256, 27]


def _quotient(a, b):
    """As in C, of 64 bits."""
    return (abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) + 2**63) % 2**64 - 2**63


@pytest.mark.parametrize("n", [14, 70_000])
def test_whole_numbers_of_64_bits_are_divided_exactly(n):
    low, top = -(2**63), 2**63 - 1
    left = np.resize([top, -top, 2**53 + 1, 2**53 + 3, low, low, low, -7, 7, -7, 7, 0, 2**62 + 1, 1], n)
    right = np.resize([1, 1, 1, 3, 1, 2, -1, 2, -2, -2, 2, -3, -5, top], n)
    a, b = mx.nd.array(left, dtype="int64"), mx.nd.array(right, dtype="int64")
    want = [_quotient(*v) for v in zip(left.tolist(), right.tolist())]
    for _ in range(2):
        assert (a / b).asnumpy().tolist() == want and (a / b).dtype == np.int64
    assert mx.nd.broadcast_div(a.reshape((-1, 1)), b[:3].reshape((1, 3))).asnumpy()[:, 0].tolist() == left.tolist()
    for s in (1, 3, -7):
        assert (a / s).asnumpy().tolist() == [_quotient(v, s) for v in left.tolist()]
    assert (2**62 / b).asnumpy().tolist() == [_quotient(2**62, v) for v in right.tolist()]
    x, y = mx.sym.Variable("x"), mx.sym.Variable("y")
    (found,) = (x / y + x / 3).bind(mx.cpu(), {"x": a, "y": b}).forward()
    assert found.asnumpy().tolist() == (np.array(want) + (a / 3).asnumpy()).tolist()
    a /= b
    assert a.asnumpy().tolist() == want


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64"])
def test_whole_numbers_divided_by_zero_are_what_a_cast_of_infinity_gives(dtype):
    """MXNet ends the process."""
    a, zero = mx.nd.array([1, 0, 5], dtype=dtype), mx.nd.zeros(3, dtype=dtype)
    infinite = (mx.nd.array([1, 0, 5], dtype="float64") / 0).astype(dtype).asnumpy().tolist()
    assert (a / zero).asnumpy().tolist() == (a / 0).asnumpy().tolist() == infinite
    assert (1 / zero).asnumpy().tolist() == infinite[:1] * 3


def _slopes(f, values):
    x = mx.nd.array(values)
    x.attach_grad()
    with mx.autograd.record():
        y = f(x)
    y.backward()
    return x.grad.asnumpy().tolist()


@pytest.mark.parametrize("f", [mx.nd.gammaln, mx.nd.gamma])
def test_the_gamma_function_rises_without_end(f):
    assert _slopes(f, [np.inf]) == [np.inf]


def test_slopes_of_the_powers_of_zero():
    """As of ``power(array, array)``, and in MXNet: the logarithm of 0 is minus infinity."""
    assert _slopes(lambda x: 0**x, [-2.0, -0.5, 0.0]) == [-np.inf] * 3


def test_full_of_what_the_dtype_cannot_hold_is_infinity_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"mxcore(\.|_cpu)")
        assert mx.nd.full((2,), -1e300).asnumpy().tolist() == [-np.inf, -np.inf]
        assert mx.nd.full((1,), 1e5, dtype="float16").asnumpy().tolist() == [np.inf]
    assert mx.nd.full((1,), 0.1, dtype="float64").asnumpy()[0] == 0.1


def test_zeros_of_both_signs_are_two_parameters():
    """They are equal, and what was parsed is kept by value."""
    for value in (0.0, -0.0, 0.0):
        assert np.signbit(mx.nd.full((2,), value).asnumpy()).tolist() == [str(value)[0] == "-"] * 2
    net = mx.gluon.nn.HybridLambda(lambda F, x: F.concat(x * 0.0, x * -0.0, dim=0))
    net.hybridize()
    assert np.signbit(net(mx.nd.ones((1,))).asnumpy()).tolist() == [False, True]
