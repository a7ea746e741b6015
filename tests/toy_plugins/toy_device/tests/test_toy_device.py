import random

import numpy as np
import pytest

import mxcore as mx
from mxcore.testing.conformance import check_op, operators
from mxcore.testing.mutate import mutated
from mxcore.testing.robust import check_use


def test_operators_run_on_the_device():
    x = mx.nd.array([[1, 2], [3, 4]], ctx=mx.Context("toy_device", 1))
    y = mx.nd.dot(x, x) + 1
    assert y.context == mx.Context("toy_device", 1)
    assert y.asnumpy().tolist() == [[8, 11], [16, 23]]


def test_gradients_run_on_the_device():
    x = mx.nd.array([1, 2, 3], ctx=mx.Context("toy_device"))
    x.attach_grad()
    with mx.autograd.record():
        y = (mx.nd.tanh(x) * 2).sum()
    y.backward()
    assert x.grad.context == mx.Context("toy_device")
    np.testing.assert_allclose(x.grad.asnumpy(), 2 / np.cosh([1, 2, 3]) ** 2, rtol=1e-5)


def test_devices_do_not_mix_silently():
    with pytest.raises(mx.MXNetError, match="different devices"):
        mx.nd.ones((2,)) + mx.nd.ones((2,), ctx=mx.Context("toy_device"))


def test_functions_of_numpy_refuse_arrays_of_devices():
    x = mx.nd.array([1, 2], ctx=mx.Context("toy_device"))
    for fn in (np.sqrt, np.mean, lambda v: np.stack([v, v])):
        with pytest.raises(TypeError, match=r"would copy an array from toy_device\(0\) unasked; give it x.asnumpy\(\)"):
            fn(x)
    assert (np.float32(2) * x).asnumpy().tolist() == [2, 4] and np.shape(x) == (2,)


@pytest.mark.parametrize(
    "name", ["broadcast_add", "dot", "FullyConnected", "sum", "Embedding", "sgd_mom_update", "Dropout"]
)
def test_operators_pass_the_conformance_kit(name):
    check_op(name, mx.Context("toy_device", 1))


@pytest.mark.parametrize("name", ["tanh", "Concat"])
def test_uses_that_nobody_meant_do_no_harm(name):
    (op,) = operators(name)
    for seed in range(10):
        check_use(mutated(op, random.Random(seed)), mx.Context("toy_device"))
