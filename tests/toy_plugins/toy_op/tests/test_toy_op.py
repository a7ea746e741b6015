import random

import pytest

import mxcore as mx
from mxcore.testing.conformance import check_op, operators
from mxcore.testing.mutate import mutated
from mxcore.testing.robust import check_use


def test_value_and_gradient():
    x = mx.nd.array([1, 2, 3])
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.toy_op(x, factor=2)
    y.backward()
    assert y.asnumpy().tolist() == [2, 8, 18]
    assert x.grad.asnumpy().tolist() == [4, 8, 12]


def test_in_a_graph():
    ex = mx.sym.toy_op(mx.sym.Variable("x"), factor=3).simple_bind(mx.cpu(), x=(2,))
    ex.arg_dict["x"][:] = 2
    assert ex.forward(is_train=True)[0].asnumpy().tolist() == [12, 12]
    ex.backward(mx.nd.ones((2,)))
    assert ex.grad_dict["x"].asnumpy().tolist() == [12, 12]


def test_it_passes_the_conformance_kit():
    check_op("toy_op", mx.cpu())


@pytest.mark.parametrize("seed", range(20))
def test_it_stands_up_to_uses_that_nobody_meant(seed):
    (op,) = operators("toy_op")
    check_use(mutated(op, random.Random(seed)))
