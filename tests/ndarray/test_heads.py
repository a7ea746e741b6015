"""What `autograd` makes of heads, head gradients and variables that are missing, or are not what they must be."""

import numpy as np
import pytest

from mxcore import autograd, gluon, nd


def recorded():
    x, z = nd.array([1.0, 2.0]), nd.array([3.0, 4.0])
    for v in (x, z):
        v.attach_grad()
    with autograd.record():
        return x, z, x * x, z * x


G = nd.array([10.0, 20.0])


@pytest.mark.parametrize(
    "head_grads, dx, dz",
    [
        ([None, G], [32, 84], [10, 40]),
        ((None, None), [5, 8], [1, 2]),
        (None, [5, 8], [1, 2]),
        ([G, None], [23, 84], [1, 2]),
    ],
)
def test_head_gradients_that_are_left_out_are_ones(head_grads, dx, dz):
    x, z, a, b = recorded()
    autograd.backward([a, b], head_grads, retain_graph=True)
    assert (x.grad.asnumpy().tolist(), z.grad.asnumpy().tolist()) == (dx, dz)
    found = autograd.grad([a, b], [x, z], head_grads)
    assert [g.asnumpy().tolist() for g in found] == [dx, dz]


def test_an_output_whose_gradient_is_left_out_among_several():
    x = nd.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        a, b = nd.split(x, 2, axis=0)
    autograd.backward([a, b], [None, nd.array([7.0])])
    assert x.grad.asnumpy().tolist() == [1, 7]


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_variable_that_no_head_depends_on(create_graph):
    x, z, a, b = recorded()
    for wrt in ([x, z], [b], [nd.array([1.0])]):
        if wrt[0] is not x and wrt[0] is not b:
            wrt[0].attach_grad()
        with pytest.raises(RuntimeError, match=rf"variable {len(wrt) - 1}: no head depends on it"):
            autograd.grad(a, wrt, create_graph=create_graph)
    (g,) = autograd.grad(a, [x])  # the graph is there still
    assert g.asnumpy().tolist() == [2, 4]


def test_through_what_has_no_gradient_come_zeros():
    x, z, a, b = recorded()
    with autograd.record():
        y = nd.BlockGrad(a) + b
    (g,) = autograd.grad([y], [z], retain_graph=True)
    assert g.asnumpy().tolist() == [1, 2]
    with autograd.record():
        still = nd.BlockGrad(a)
    (g,) = autograd.grad([still], [x])
    assert g.asnumpy().tolist() == [0, 0]


class Apart(gluon.HybridBlock):
    """A loop, run operator by operator, one of whose states leads nowhere."""

    def hybrid_forward(self, F, x, z):
        def body(d, s):
            count = F.contrib.boolean_mask(F.reshape(d, (1, 1)), F.ones((1,))).sum() * 0
            return F.broadcast_add(d * 2, count), [s[0] * 2, s[1] + d]

        outs, last = F.contrib.foreach(body, x, [z, F.zeros((1,))])
        return F.broadcast_add(outs, F.sum(last[1]))


@pytest.mark.parametrize("hybrid", [False, True])
def test_states_of_loops_that_no_head_depends_on(hybrid):
    x, z, _, _ = recorded()
    net = Apart()
    net.hybridize(hybrid)
    with autograd.record():
        y = net(x, z)
    y.backward()
    assert x.grad.asnumpy().tolist() == [4, 4]


BAD = [None, 5, np.ones(2, np.float32), "a"]


@pytest.mark.parametrize("bad", BAD, ids=lambda b: type(b).__name__)
def test_what_is_no_array(bad):
    x, z, a, b = recorded()
    name = type(bad).__name__
    with pytest.raises(TypeError, match=f"head 1 must be an array.*{name}"):
        autograd.backward([a, bad])
    with pytest.raises(TypeError, match=f"variable 1 must be an array.*{name}"):
        autograd.grad(a, [x, bad])
    if bad is not None:
        with pytest.raises(TypeError, match=f"head gradient 1 must be an array.* or None, got {name}"):
            autograd.backward([a, b], [None, bad])
        with pytest.raises(TypeError, match=f"head gradient 0 must be an array.* or None, got {name}"):
            a.backward(bad)
    autograd.backward([a, b])  # the graph is there still


def test_no_variables_and_heads_outside_of_graphs():
    x, z, a, b = recorded()
    with pytest.raises(ValueError, match="no variables"):
        autograd.grad(a, [])
    for outside in (nd.ones(2), a.detach()):
        with pytest.raises(RuntimeError, match="head 1: it is not in a computational graph"):
            autograd.backward([a, outside], [None, None])
    with pytest.raises(ValueError, match="2 heads but 1 head gradients"):
        autograd.backward([a, b], [None])
