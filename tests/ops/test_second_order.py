"""Gradients of gradients through operators that only move values: their gradients are helpers that need one."""

import numpy as np
import pytest

import mxcore as mx
from mxcore import autograd, nd
from mxcore.base import MXNetError
from mxcore.testing.gradcheck import check_grads


def test_autograd_grad_gives_a_list_for_one_variable():
    x = nd.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        y = nd.sigmoid(x)
        found = autograd.grad(y, x, create_graph=True)
    assert type(found) is list and len(found) == 1
    found[0].backward()
    # Of both elements, not of the first.
    np.testing.assert_allclose(x.grad.asnumpy(), [-0.0908577, -0.0799625], rtol=1e-5)


def test_concat():
    x = nd.array([0.7])
    x.attach_grad()
    with autograd.record():
        (g,) = autograd.grad((nd.concat(x, x * 2, dim=0) ** 2).sum(), x, create_graph=True)
    g.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), [10.0], rtol=1e-6)


IMAGE, CORNER = np.linspace(-1, 1, 40).reshape(1, 2, 4, 5), np.zeros((1, 1, 2, 3))


@pytest.mark.parametrize(
    ("fn", "inputs"),
    [
        (lambda a, b: nd.exp(nd.concat(a, b, dim=1)), [[[0.1, 0.4]], [[-0.3]]]),
        (lambda a, b: nd._internal._rnn_param_concat(a, b, dim=0) ** 3, [[0.1, 0.4], [-0.3]]),
        (lambda a: nd.exp(nd.Crop(a, offset=(1, 2), h_w=(2, 3))), [IMAGE]),
        (lambda a, b: nd.exp(nd.Crop(a, b, center_crop=True)), [IMAGE, CORNER]),
    ],
)
def test_helpers_of_moved_values(fn, inputs):
    check_grads(
        fn,
        inputs,
        order=(2,),
        wrt=[True] * len(inputs) if len(inputs) < 2 or inputs[1] is not CORNER else [True, False],
    )


def test_third_order_through_concat():
    x = nd.array([0.7])
    x.attach_grad()
    with autograd.record():
        y = (nd.concat(x, x * 2, dim=0) ** 3).sum()  # 9 x**3
        (g,) = autograd.grad(y, x, create_graph=True)
        (h,) = autograd.grad(g, x, create_graph=True)
    h.backward()
    np.testing.assert_allclose([g.asscalar(), h.asscalar(), x.grad.asscalar()], [27 * 0.49, 54 * 0.7, 54], rtol=1e-5)


def nth(f, x, n, by_backward):
    """The n-th gradient of the sum of f, by `grad` alone, or by `backward` in the end."""
    x.attach_grad()
    with autograd.record():
        y = f(x)
        for _ in range(n - by_backward):
            (y,) = autograd.grad(y, [x], create_graph=True)
    if by_backward:
        y.backward()
    return (x.grad if by_backward else y).asnumpy().tolist()


class Block(mx.gluon.HybridBlock):
    """A function as a block."""

    def __init__(self, f):
        super().__init__()
        self.f = f

    def hybrid_forward(self, F, x):
        return self.f(F, x)


@pytest.mark.parametrize("by_backward", [False, True])
@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize(
    "f, slopes",
    [
        (lambda F, x: x**1, [[1, 1, 1], [0, 0, 0], [0, 0, 0]]),
        (lambda F, x: x**2, [[0, 2, 4], [2, 2, 2], [0, 0, 0], [0, 0, 0]]),
        (lambda F, x: x**3, [[0, 3, 12], [0, 6, 12], [6, 6, 6], [0, 0, 0]]),
        (lambda F, x: F.square(x), [[0, 2, 4], [2, 2, 2], [0, 0, 0]]),
        (lambda F, x: x * x, [[0, 2, 4], [2, 2, 2], [0, 0, 0]]),
        (lambda F, x: F.relu(x) ** 2, [[0, 2, 4], [0, 2, 2], [0, 0, 0]]),
        (lambda F, x: F._internal._power(x, F.ones_like(x) * 2), [[0, 2, 4], [2, 2, 2], [0, 0, 0], [0, 0, 0]]),
        (lambda F, x: F.broadcast_power(x, F.ones((1,))), [[1, 1, 1], [0, 0, 0], [0, 0, 0]]),
        (lambda F, x: x * 3, [[3, 3, 3], [0, 0, 0]]),
    ],
)
def test_slopes_of_whole_powers_at_zero(f, slopes, hybrid, by_backward):
    net = Block(f)
    if hybrid:
        net.hybridize()
    for n, want in enumerate(slopes):
        assert nth(net, nd.array([0.0, 1, 2]), n + 1, by_backward) == want


@pytest.mark.parametrize("power", [2.0, [2.0], [2.0, 2, 2]])
def test_slopes_of_whole_powers_at_zero_in_numpy(power):
    def f(x):
        return mx.np.power(x, power if isinstance(power, float) else mx.np.array(power))

    for n, want in enumerate([[0, 2, 4], [2, 2, 2], [0, 0, 0]]):
        assert nth(f, mx.np.array([0.0, 1, 2]), n + 1, False) == want


def test_a_gradient_that_is_constant_can_be_differentiated_beside_others():
    x, z, w = nd.array([1.0, 2]), nd.array([3.0, 4]), nd.array([5.0, 6])
    for v in (x, z, w):
        v.attach_grad()
    x.grad[:] = 7
    with autograd.record():
        gx, gz = autograd.grad(x * 3 + z * z * z, [x, z], create_graph=True)
        assert [g.asnumpy().tolist() for g in autograd.grad(gx, [x, z], create_graph=True)] == [[0, 0]] * 2
        y = (gx - 1) ** 2 * w + gz
    y.backward()
    assert [v.grad.asnumpy().tolist() for v in (x, z, w)] == [[0, 0], [18, 24], [4, 4]]
    assert not autograd.is_recording()


@pytest.mark.parametrize(
    "call", [lambda x: nd.shuffle(x), lambda x: nd.fill_element_0index(x, nd.ones((2,)), nd.zeros((2,)))]
)
def test_no_gradient_is_an_error_not_zero(call):
    x = nd.ones((2, 3))
    x.attach_grad()
    with autograd.record():
        y = call(x)
    with pytest.raises(MXNetError, match="not differentiable"):
        y.backward()


def test_no_rule_goes_through_an_operator_without_gradient():
    """Every operator that a rule sends the incoming gradient through has a gradient, or says that it has none."""
    from mxcore._core.gradplan import plan_of
    from mxcore._core.graph import topo, variable
    from mxcore.composing import GraphF, Value
    from mxcore.testing.case import cases
    from mxcore.testing.conformance import operators

    lost = {}
    for op in operators():
        if not op.grad_rule or op.backward_rule is not None:
            continue
        for case in cases(op, mx.cpu()):
            F = GraphF("rule")
            ins, outs, dys = (
                [Value((variable(n), 0), F) for n in names]
                for names in (
                    case.sig.inputs,
                    [f"out_{n}" for n in case.sig.outputs],
                    [f"d_{n}" for n in case.sig.outputs],
                )
            )
            grads = plan_of(op).gradients(case.p, F, (True,) * len(ins), dys, ins, outs, None)
            reached = {id(v.entry[0]) for v in dys}
            for n in topo([g.entry for g in grads if g is not None]):
                if n.op is not None and any(
                    id(m) in reached and i not in n.params._sig.like for i, (m, _) in enumerate(n.inputs)
                ):
                    reached.add(id(n))
                    if n.op.grad_rule is None:
                        lost.setdefault(n.op.name, set()).add(op.name)
    assert lost == {}
