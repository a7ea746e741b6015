"""Arrays of bfloat16 that are large enough for kernels give what small ones give, at the edges, too."""

import numpy as np
import pytest

from mxcore import autograd, nd

#: Elements below which bodies compute, and from which kernels do.
FEW, MANY = 1 << 10, 1 << 17


def numbers(x):
    return x.astype("float32").asnumpy()


@pytest.mark.parametrize("number", [257, 1.7, 0.001, 300.7, 1e39, float("inf"), float("nan"), 0.0, -0.0])
@pytest.mark.parametrize("f", ["plus", "minus", "mul", "div", "rminus"])
def test_numbers_are_not_rounded_before_the_result(f, number):
    """They are no bfloat16; the sum of an array and one is rounded once."""
    x = np.float32([256, -1.703125, 3e38, 1e-30, 0, np.inf, np.nan, -2.5])
    few, many = (
        numbers(getattr(nd, f"_{f}_scalar")(nd.array(np.resize(x, n)).astype("bfloat16"), scalar=number))
        for n in (8, MANY)
    )
    np.testing.assert_array_equal(many, np.resize(few, MANY))


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_rows_that_are_no_numbers(name, wrong):
    rs, found = np.random.RandomState(0), []
    head = rs.randn(2, 64)
    data = rs.randn(2, 64)
    data[0, 3] = wrong
    for rows in (2, 2 * MANY // 64):
        x, dy = (nd.array(np.resize(a, (rows, 64))).astype("bfloat16") for a in (data, head))
        x.attach_grad()
        with autograd.record():
            y = getattr(nd, name)(x)
        y.backward(dy)
        found.append((numbers(y)[:2], numbers(x.grad)[:2]))
    for few, many in zip(*found):
        np.testing.assert_array_equal(np.isnan(many), np.isnan(few))
        np.testing.assert_allclose(many, few, 1e-2, 1e-2)


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_statistics_that_stay_are_not_written(train, fixed, axis):
    rs, found = np.random.RandomState(0), []
    x = rs.randn(300, 600).astype("float32")
    n = x.shape[axis]
    for dtype in ("float32", "bfloat16"):
        data, gamma, beta = nd.array(x).astype(dtype), nd.ones((n,)), nd.zeros((n,))
        mean, var = nd.array(np.arange(n) / n), nd.array(np.arange(n) / n + 0.5)
        for v in (data, gamma, beta):
            v.attach_grad()
        with autograd.record(train_mode=train):
            y = nd.BatchNorm(data, gamma, beta, mean, var, axis=axis, fix_gamma=False, use_global_stats=fixed)
        y.backward(train_mode=train)
        found.append([numbers(v) for v in (mean, var, y, data.grad, gamma.grad, beta.grad)])
    for exact, half, close in zip(*found, (1e-3, 1e-3, 3e-2, 3e-2, 1, 3)):
        np.testing.assert_allclose(half, exact, 2e-2, close)
    assert np.array_equal(found[1][0], np.float32(np.arange(n) / n)) is (fixed or not train)
