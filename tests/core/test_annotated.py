"""What bodies and rules are given has what the protocols say."""

import inspect

import numpy as np
import pytest

import mxcore as mx
from mxcore._core.call import OpContext
from mxcore._core.frontend import eager
from mxcore.plugin import Call, GraphF, Operators

from .annotated import annotated, given_to_bodies, given_to_rules


def members(protocol):
    return {name for name, value in vars(protocol).items() if isinstance(value, property)}


def test_a_call_has_what_its_protocol_says_and_nothing_else():
    assert members(Call) == {name for name, _ in inspect.getmembers(OpContext) if not name.startswith("_")}
    k = given_to_bodies(OpContext(mx.cpu(), True, key=(1, 2, 3)))
    assert k.xp.exp(0) == 1 and k.device.type == k.ctx.device_type == "cpu" and k.is_train
    assert k.wanted is k.shapes is None and not k.replaces and k.rng.key == k.key == (1, 2, 3)


@pytest.mark.parametrize("F", [eager, GraphF("node")], ids=["arrays", "graphs"])
def test_operators_are_attributes_of_both_frontends(F):
    assert members(Operators) == {"roles"}
    assert callable(given_to_rules(F).sum) and callable(F.roles["sum of gradients"])


def test_an_annotated_operator_runs_on_arrays_and_in_graphs(plug):
    plug(mxcore_ops=[annotated])
    x = mx.nd.array([0.0, 1.0])
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.annotated(x, scale=2)
    y.backward()
    bound = mx.sym.annotated(mx.sym.Variable("x"), scale=2).simple_bind(mx.cpu(), x=(2,))
    np.testing.assert_allclose(bound.forward(is_train=True, x=x)[0].asnumpy(), np.exp([0, 2]), rtol=1e-6)
    bound.backward(mx.nd.ones(2))
    for grad in (x.grad, bound.grad_dict["x"]):
        np.testing.assert_allclose(grad.asnumpy(), 2 * np.exp([0, 2]), rtol=1e-6)
