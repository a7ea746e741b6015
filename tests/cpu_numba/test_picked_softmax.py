"""A loss of classes computes no more logarithms than it picks: the same numbers."""

from contextlib import nullcontext

import numpy as np
import pytest

import mxcore as mx
from mxcore import autograd, gluon
from mxcore._core.call import op_context
from mxcore.executor import passes_off
from mxcore.plugin import compute, find_op
from tests.executor.training import arrays_of, steps, trained

PASS = "picked_softmax"
F = mx.sym
JOINED, BACK = "_pick_log_softmax", "_backward_pick_log_softmax"


def loss_of(x, label, scalar=-1.0, **kw):
    soft = {k: kw.pop(k) for k in ("axis", "temperature") if k in kw}
    y = F.pick(F.log_softmax(x, **soft), label, **kw)
    return y if scalar is None else y * scalar


def check(symbol, data=(4, 5), label=(4,), classes=5, **kw):
    """Names of the steps, with numbers as they are without the pass."""
    kw = {"steps": 2, "req": {"data": "write", "label": "null"}, **kw}
    arrays = arrays_of(symbol, data=data, label=label)
    if "label" in arrays:
        arrays["label"][:] = mx.nd.array(np.random.default_rng(1).integers(-2, classes + 2, label))
    arrays["data"][:] = arrays["data"] * 4
    with passes_off(PASS):
        want, plain = trained(symbol, arrays, **kw)
    found, executor = trained(symbol, arrays, **kw)
    assert len(found) == len(want) > 0
    for a, b in zip(found, want):
        np.testing.assert_allclose(a, b, rtol=2e-6, atol=2e-7)
    assert JOINED not in steps(plain)
    return steps(executor)


X, LABEL = F.Variable("data"), F.Variable("label")


@pytest.mark.parametrize("scalar", [-1.0, 0.25, None])
@pytest.mark.parametrize("keepdims", [True, False])
@pytest.mark.parametrize("req", ["write", "add"])
def test_the_same_numbers(scalar, keepdims, req):
    symbol = loss_of(X * 2, LABEL, scalar, keepdims=keepdims)
    names = check(symbol, req={"data": req, "label": "null"})
    assert names.count(JOINED) == names.count(BACK) == 1
    assert {"log_softmax", "pick", "_backward_pick", "_backward_log_softmax"}.isdisjoint(names)


@pytest.mark.parametrize(
    "shape, label", [((2, 3, 7), (2, 3)), ((2, 3, 7), (2, 3, 1)), ((300, 40), (300,)), ((3, 1), (3,))]
)
def test_other_shapes(shape, label):
    assert JOINED in check(loss_of(X, LABEL), shape, label, shape[-1])


def test_the_last_axis_by_its_number():
    assert JOINED in check(loss_of(X, LABEL, axis=1))


def other_axis(x, label):
    return F.pick(F.log_softmax(x, axis=0), label, axis=0)


def axes_that_differ(x, label):
    return F.pick(F.log_softmax(x, axis=0), label)


def wrapped(x, label):
    return F.pick(F.log_softmax(x), label, mode="wrap")


def warm(x, label):
    return F.pick(F.log_softmax(x, temperature=2.0), label)


def read_twice(x, label):
    y = F.log_softmax(x)
    return F.pick(y, label) + F.sum(y, axis=1)


def shown(x, label):
    y = F.log_softmax(x)
    return F.Group([F.pick(y, label), y])


def picked_twice(x, label):
    y = F.log_softmax(x)
    return F.pick(y, label) + F.pick(y, label + 1)


@pytest.mark.parametrize("net", [other_axis, axes_that_differ, wrapped, warm, read_twice, shown, picked_twice])
def test_what_stays(net):
    label = (5,) if net is other_axis else (4,)
    assert JOINED not in check(net(X, LABEL), label=label, classes=4 if net is other_axis else 5)


def scaled_otherwise(x, label):
    y = F.pick(F.log_softmax(x), label)
    return y * 3 + F.tanh(y)


def both_shown(x, label):
    y = F.pick(F.log_softmax(x), label)
    return F.Group([y, y * -1])


def weighed(x, label):
    return -F.pick(F.log_softmax(x), label) * label


@pytest.mark.parametrize("net", [scaled_otherwise, both_shown, weighed])
def test_factors_that_others_need(net):
    names = check(net(X, LABEL))
    assert names.count(JOINED) == names.count(BACK) == 1


def test_two_losses_of_one_network_with_other_factors():
    a, b = X * 2, F.tanh(X)
    names = check(F.Group([loss_of(a, LABEL, -1.0), loss_of(b, LABEL, -1.0), loss_of(X, LABEL, 0.5)]))
    assert names.count(JOINED) == names.count(BACK) == 3


def test_networks_that_differ_by_the_factor_only():
    data, label = mx.nd.array([[1.0, 2, 3]]), mx.nd.array([1])
    found = [loss_of(X, LABEL, s).bind(mx.cpu(), {"data": data, "label": label}).forward()[0] for s in (-1.0, 2.0, 3.0)]
    assert [round(v.asscalar() / found[0].asscalar(), 5) for v in found] == [1, -2, -3]


def test_predicting_programs_need_no_gradient():
    assert check(loss_of(X, LABEL), req="null", steps=1).count(JOINED) == 1


@pytest.mark.parametrize("hybrid", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_loss_of_gluon(hybrid, dtype):
    rng = np.random.default_rng(2)
    x, t = mx.nd.array(rng.standard_normal((6, 9)) * 3, dtype=dtype), mx.nd.array(rng.integers(0, 9, 6))
    weight, found = mx.nd.array(rng.random((6, 1)), dtype=dtype), []
    for off in (True, False):
        x.attach_grad()
        loss = gluon.loss.SoftmaxCrossEntropyLoss()
        loss.hybridize(hybrid)
        with passes_off(PASS) if off else nullcontext(), autograd.record():
            value = loss(x, t, weight)
            value.backward()
        found.append((value.asnumpy(), x.grad.asnumpy()))
    p = np.exp(x.asnumpy() - x.asnumpy().max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    labels = t.asnumpy().astype(int)
    want = -np.log(p[np.arange(6), labels]) * weight.asnumpy()[:, 0]
    grad = (p - np.eye(9)[labels]) * weight.asnumpy()
    for value, gradient in found:
        np.testing.assert_allclose(value, want, rtol=1e-5)
        np.testing.assert_allclose(gradient, grad, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("index", ["float32", "int32", "int64"])
@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 17), (700, 33), (2, 5000)])
def test_the_kernels_are_the_bodies(dtype, index, shape):
    near = {"rtol": 2e-6, "atol": 1e-6} if dtype == "float32" else {"rtol": 1e-13, "atol": 1e-14}
    rng = np.random.default_rng(0)
    x = (rng.standard_normal(shape) * 5).astype(dtype)
    at = rng.integers(-1, shape[-1] + 1, shape[:-1]).astype(index)
    k = op_context(mx.cpu(), True)
    op = find_op(JOINED)
    p = op.parse({"scalar": -0.7})
    found, want = compute(JOINED, k, p, x, at), op.body(k, p, x, at)
    for a, b in zip(found, want):
        np.testing.assert_allclose(a, b, **near)
    dy = rng.standard_normal(shape[:-1]).astype(dtype)
    op = find_op(BACK)
    p = op.parse({"scalar": -0.7})
    ins = dy, x, at, want[1].astype(dtype), want[2].astype(dtype)
    [a], b = compute(BACK, k, p, *ins), op.body(k, p, *ins)
    np.testing.assert_allclose(a, b, **near)


def test_what_is_no_number_stays_so():
    x = np.zeros((5, 3), np.float32)
    x[0, 1], x[1, 0], x[2], x[3, 2] = np.nan, np.inf, -np.inf, -np.inf
    k, op, at = op_context(mx.cpu(), True), find_op(JOINED), np.array([0, 1, 2, 2, 1], np.float32)
    p = op.parse({})
    soft = find_op("log_softmax")
    want = op.body(k, p, x, at)[0]
    with np.errstate(all="ignore"):
        plain = np.asarray(soft.body(k, soft.parse({}), x))[np.arange(5), at.astype(int)]
    np.testing.assert_array_equal(compute(JOINED, k, p, x, at)[0], want)
    np.testing.assert_allclose(want, plain, rtol=1e-6)
