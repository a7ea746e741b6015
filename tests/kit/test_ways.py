"""Tests that run with kernels and over the reference bodies see what is wrong with either."""

import numpy as np
import pytest

import mxcore as mx
from mxcore._core import tables
from mxcore._core.kernels import Spec
from mxcore.testing.ways import both_ways, kernels_reached, reference_bodies

pytest_plugins = ["pytester"]
BIG = np.linspace(-2, 2, 1 << 15, dtype=np.float32).reshape(128, 256)


def eager():
    return mx.nd.softmax(mx.nd.array(BIG))


def hybridised():
    net = mx.gluon.nn.HybridLambda("softmax")
    net.hybridize()
    return net(mx.nd.array(BIG))


def bound():
    return mx.sym.softmax(mx.sym.var("x")).bind(mx.cpu(), {"x": mx.nd.array(BIG)}).forward()[0]


@pytest.fixture
def wrong(monkeypatch):
    """Make the body or the kernel of softmax wrong."""
    op = tables.ops.get("softmax")

    def spoil(what):
        if what == "body":
            monkeypatch.setattr(op, "body", lambda k, p, data, length=None: data)
        else:
            kernel = tables.kernels.best(op, mx.cpu().device, op.parse({}), [Spec(BIG.shape, BIG.dtype)])
            monkeypatch.setattr(kernel, "fn", lambda k, p, outs, data, *_: np.copyto(outs[0], data))
        tables.changed()

    yield spoil
    monkeypatch.undo()
    tables.changed()


@pytest.mark.parametrize("call", [eager, hybridised, bound])
@pytest.mark.parametrize("what", ["body", "kernel"])
def test_either_is_seen_on_every_path(wrong, call, what):
    def test():
        np.testing.assert_allclose(call().asnumpy().sum(-1), 1, rtol=1e-5)

    call().wait_to_read()  # plans and programs are there
    assert both_ways(test)
    wrong(what)
    with pytest.raises(
        AssertionError,
        match="reference bodies in the place of the kernels of softmax" if what == "body" else "Not equal",
    ):
        both_ways(test)


def test_nothing_is_left_behind():
    with kernels_reached() as before:
        eager()
    with kernels_reached() as inside, reference_bodies():
        eager()
    with kernels_reached() as after:
        eager()
    assert before == after == {"softmax"} and not inside


def test_without_a_kernel_once_is_enough():
    assert not both_ways(lambda: mx.nd.sin(mx.nd.ones((2,))).wait_to_read())
