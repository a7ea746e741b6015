"""Random numbers of programs: drawn in the order of the graph, whatever passes have made of that."""

import numpy as np
import pytest

import mxcore as mx
from mxcore import autograd, nd
from mxcore.gluon import nn

SIZE = (64, 256)  # large enough for chains


class Block(nn.HybridBlock):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def hybrid_forward(self, F, x):
        return self.fn(F, x)


def gate(F, x):
    return F.Dropout(F.tanh(x), p=0.5) * F.sigmoid(F.Dropout(x, p=0.5))


def residual(F, x):
    h = F.tanh(x + F.Dropout(x, p=0.2))
    return F.Dropout(h, p=0.2) * F.tanh(F.Dropout(F.tanh(x), p=0.3))


def drawn(F, x):
    return F.Dropout(x, p=0.5) + F.cast(F.random.randint(low=0, high=9, shape=SIZE), "float32")


def scaled(F, x):
    return F.Dropout(x, p=0.5) + F.exp(F.Dropout(x, p=0.2))


def looped(F, x):
    """Its program draws as it runs."""
    found, _ = F.contrib.foreach(lambda one, state: (gate(F, one) + F.Dropout(one, p=0.5), state), x, [])
    return F.Dropout(found, p=0.3) + gate(F, x)


def beside(F, x):
    """A loop whose place among the chains is another than among the operators."""
    found, _ = F.contrib.foreach(lambda one, state: (F.Dropout(one, p=0.5), state), x, [])
    return found * (F.tanh(x) * F.Dropout(x, p=0.5))


def unread(F, x):
    """Passes leave one of the nodes out that draw."""
    zeros, some = F.zeros_like(F.Dropout(x, p=0.5)), F.Dropout(x, p=0.5)
    return zeros + some * F.ones_like(F.random.uniform(shape=SIZE)) * F.Dropout(x, p=0.3)


def named(F, x):
    """Two nodes of one name."""
    return F.Dropout(F.tanh(x), p=0.5, name="same") * F.sigmoid(F.Dropout(x, p=0.5, name="same"))


FUNCTIONS = [gate, residual, drawn, scaled, looped, beside, unread, named]


def run(fn, hybridize):
    net = Block(fn)
    if hybridize:
        net.hybridize()
    mx.random.seed(3)
    x = nd.array(np.random.RandomState(0).rand(*SIZE) + 0.5)
    x.attach_grad()
    with autograd.record():
        for _ in range(2):  # the second run draws behind the first
            y = net(x)
        once = autograd.grad(y, x, retain_graph=True)[0]
        again = autograd.grad(y, x, retain_graph=True, create_graph=True)[0]
    return y.asnumpy(), once.asnumpy(), again.asnumpy()


@pytest.mark.parametrize("fn", FUNCTIONS)
def test_hybridised_blocks_draw_what_eager_ones_do(fn):
    for found, wanted in zip(run(fn, True), run(fn, False)):
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("fn", FUNCTIONS)
@pytest.mark.parametrize("hybridize", [False, True])
def test_gradients_of_gradients_are_of_the_masks_of_the_outputs(fn, hybridize):
    _, once, again = run(fn, hybridize)
    np.testing.assert_allclose(again, once, rtol=2e-5, atol=2e-5)


class Twice(nn.HybridBlock):
    """One layer, called three times: its nodes have one name."""

    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.4)

    def hybrid_forward(self, F, x):
        return self.drop(F.tanh(self.drop(x))) * F.sigmoid(self.drop(x))


@pytest.mark.parametrize("static", [False, True])
def test_a_layer_that_is_called_several_times_draws_each_time_what_it_does_eagerly(static):
    found = []
    for hybridize in (True, False):
        net = Twice()
        if hybridize:
            net.hybridize(static_alloc=static)
        mx.random.seed(3)
        x = nd.array(np.random.RandomState(0).rand(*SIZE) + 0.5)
        x.attach_grad()
        with autograd.record():
            y = net(x)
            again = autograd.grad(y, x, retain_graph=True, create_graph=True)[0]
        y.backward()
        np.testing.assert_allclose(x.grad.asnumpy(), again.asnumpy(), rtol=2e-5, atol=2e-5)
        found.append((y.asnumpy(), again.asnumpy()))
    for one, other in zip(*found):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("train", [False, True])
def test_an_executor_draws_the_same_masks_for_nodes_of_one_name(train):
    x = mx.sym.Variable("x")
    y = mx.sym.Dropout(mx.sym.tanh(x), name="same", mode="always") * mx.sym.sigmoid(
        mx.sym.Dropout(x, name="same", mode="always")
    )
    value = nd.array(np.random.RandomState(0).rand(*SIZE))
    mx.random.seed(5)
    e = y.bind(mx.cpu(), {"x": value}, {"x": nd.zeros(SIZE)})
    found = e.forward(is_train=train)[0].asnumpy()
    mx.random.seed(5)
    wanted = nd.Dropout(nd.tanh(value), mode="always") * nd.sigmoid(nd.Dropout(value, mode="always"))
    np.testing.assert_allclose(found, wanted.asnumpy(), rtol=2e-6)
