"""Hybridised blocks give what eager ones give: outputs, gradients and auxiliary states, in training and prediction."""

import itertools

import numpy as np
import pytest

import mxcore as mx
from mxcore.gluon import HybridBlock, contrib, loss, nn
from mxcore.gluon.model_zoo import vision

from . import cases


def flat(y):
    return [a for part in y for a in flat(part)] if isinstance(y, (list, tuple)) else [] if y is None else [y]


def step(net, args, train):
    """One pass forward and backward: everything that can be seen of it, by name."""
    for p in net.collect_params().values():
        p.zero_grad()
    inputs = [x.copy() for x in args]
    for x in inputs:
        x.attach_grad()
    mx.random.seed(11)
    with mx.autograd.record(train_mode=train):
        outs = flat(net(*inputs))
        total = sum((y * mx.nd.array(cases.values(y.shape, 7), dtype=y.dtype)).sum() for y in outs)
    seen = {f"output {i}": y.asnumpy() for i, y in enumerate(outs)}
    total.backward(train_mode=train)
    seen.update((f"gradient of input {i}", x.grad.asnumpy()) for i, x in enumerate(inputs))
    for name, p in net.collect_params().items():
        seen[name] = p.data().asnumpy()
        if p.grad_req != "null":
            seen[f"gradient of {name}"] = p.grad().asnumpy()
    return seen


def check_agreement(net, args, rtol=1e-5, atol=1e-6, options=None, modes=(False, True, True, False)):
    """Run a block eagerly and hybridised from the same state, and compare all there is to see.

    Several steps are taken, in training mode or not, as `modes` says: what one leaves behind (statistics, memory that
    is used again) shows in the next.
    """
    with mx.autograd.predict_mode():
        net(*args)  # gives the parameters their shapes
    start = {name: p.data().copy() for name, p in net.collect_params().items()}
    found = []
    for hybrid in (False, True):
        for name, p in net.collect_params().items():
            p.set_data(start[name])
        net.hybridize(hybrid, **(options or {} if hybrid else {}))
        found.append([step(net, args, train) for train in modes])
    if hybrid:
        assert net._cached_op is not None, "the block never ran as a graph"
    for at, (eager, hybrid) in enumerate(zip(*found)):
        assert eager.keys() == hybrid.keys()
        for name, value in eager.items():
            assert hybrid[name].dtype == value.dtype and hybrid[name].shape == value.shape, name
            np.testing.assert_allclose(hybrid[name], value, rtol, atol, err_msg=f"{name}, pass {at}")


OPTIONS = [{}, {"static_alloc": True, "static_shape": True}]


@pytest.mark.parametrize("options", OPTIONS, ids=["plain", "static"])
@pytest.mark.parametrize("i", range(45))
def test_layers(i, options):
    layer, shape = cases.layers(nn)[i]
    x = cases.values(shape, 3)
    if isinstance(layer, nn.Embedding):
        x = np.arange(np.prod(shape)).reshape(shape)
    layer.initialize()
    layer(mx.nd.array(x))
    cases.fill(layer, mx.nd)
    check_agreement(layer, [mx.nd.array(x)], options=options)


def test_every_layer_is_there():
    layers = {type(layer) for layer, _ in cases.layers(nn)}
    public = {getattr(nn, name) for name in nn.__all__}
    blocks = {c for c in public if isinstance(c, type) and issubclass(c, HybridBlock)}
    assert blocks - layers == {nn.HybridBlock, nn.HybridSequential, nn.SymbolBlock} & blocks


@pytest.mark.parametrize(
    "make, shape",
    [
        (lambda: contrib.nn.Identity(), (2, 3)),
        (lambda: contrib.nn.PixelShuffle1D(2), (1, 4, 3)),
        (lambda: contrib.nn.PixelShuffle2D((2, 3)), (1, 12, 3, 5)),
        (lambda: contrib.nn.PixelShuffle3D(2), (1, 8, 2, 1, 3)),
        (lambda: side_by_side(), (2, 3)),
    ],
)
def test_contributed_layers(make, shape):
    net = make()
    net.initialize()
    check_agreement(net, [mx.nd.array(cases.values(shape, 3))])


def side_by_side():
    net = contrib.nn.HybridConcurrent(axis=1)
    net.add(nn.Dense(2), contrib.nn.Identity(), nn.Dense(3, activation="tanh"))
    return net


LOSSES = cases.losses(mx)


@pytest.mark.parametrize("i", [i for i, case in enumerate(LOSSES) if case[0] != "SDMLLoss"])
def test_losses(i):
    name, kwargs, args = LOSSES[i]
    # A loss left out an argument in the middle: the graph is told which.
    filled = [a for a in args if a is not None]

    class Whole(HybridBlock):
        def __init__(self):
            super().__init__()
            self.loss = getattr(loss, name)(**kwargs)

        def hybrid_forward(self, F, *given):
            given = iter(given)
            return self.loss(*(None if a is None else next(given) for a in args))

    check_agreement(Whole(), filled, modes=(True, False))
    direct = getattr(loss, name)(**kwargs)
    eager = direct(*args).asnumpy()
    direct.hybridize()
    np.testing.assert_allclose(direct(*args).asnumpy(), eager, rtol=1e-5, atol=1e-6)


def test_a_loss_that_needs_the_batch_size_says_so():
    x = mx.nd.ones((3, 2))
    sdml = loss.SDMLLoss()
    sdml.hybridize()
    with pytest.raises(TypeError, match="SDMLLoss.*do not hybridize"):
        sdml(x, x)


def thin_resnet(version):
    """ResNet-18 with an eighth of its channels."""
    net, block = getattr(vision, f"ResNetV{version}"), getattr(vision, f"BasicBlockV{version}")
    return lambda **kw: net(block, [2, 2, 2, 2], [8, 8, 16, 32, 64], **kw)


NETWORKS = {
    "resnet18_v1, thin": (thin_resnet(1), (2, 3, 32, 32)),
    "resnet18_v2, thin": (thin_resnet(2), (2, 3, 32, 32)),
    "mobilenet0_25": (vision.mobilenet0_25, (2, 3, 32, 32)),
    "mobilenet_v2_0_25": (vision.mobilenet_v2_0_25, (2, 3, 32, 32)),
}
LARGE_NETWORKS = {
    "resnet18_v1": (vision.resnet18_v1, (2, 3, 64, 64)),
    "resnet18_v2": (vision.resnet18_v2, (2, 3, 64, 64)),
    "squeezenet1_1": (vision.squeezenet1_1, (1, 3, 224, 224)),
    "densenet121": (vision.densenet121, (1, 3, 224, 224)),
}


def check_network(make, shape):
    """In float64: other orders of summation must not hide mistakes, nor look like them after fifty layers."""
    net = make(classes=5)
    net.cast("float64")
    net.initialize(mx.init.Xavier())
    check_agreement(net, [mx.nd.array(cases.values(shape, 3), dtype="float64")], 1e-7, 1e-9, OPTIONS[1], (True, False))


@pytest.mark.parametrize("name", NETWORKS)
def test_networks(name):
    check_network(*NETWORKS[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE_NETWORKS)
def test_large_networks(name):
    check_network(*LARGE_NETWORKS[name])


# -- higher gradients, chance, control flow, operators in Python ---------------------------------------------------


def second_gradients(net, x):
    x = x.copy()
    x.attach_grad()
    with mx.autograd.record():
        y = net(x)
        (g,) = mx.autograd.grad((y * y).sum(), [x], create_graph=True)
        penalty = (g * g).sum()
    penalty.backward()
    return [g.asnumpy(), x.grad.asnumpy(), *(p.grad().asnumpy() for p in net.collect_params().values())]


def test_gradients_of_gradients():
    net = nn.HybridSequential()
    net.add(nn.Dense(4, activation="tanh"), nn.Dense(3, activation="sigmoid"), nn.Dense(1))
    net.initialize(mx.init.Xavier())
    x = mx.nd.array(cases.values((2, 3), 1))
    eager = second_gradients(net, x)
    net.hybridize()
    hybrid = second_gradients(net, x)
    assert abs(eager[1]).sum() > 1e-3
    for a, b in zip(eager, hybrid):
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)


class Pair(HybridBlock):
    """Two outputs of one hidden layer, with a state handed on."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Dense(3, in_units=3, activation="tanh"), nn.Dense(3, in_units=3)

    def hybrid_forward(self, F, x, h):
        h = self.a(x + h)
        return self.b(h), h


def unrolled(net, x, h, g):
    """Several calls before one backward, run twice; part of the outputs is not used."""
    for t in range(3):
        y, h = net(x * (t + 1), h)
    (y * g).sum().backward(retain_graph=True)
    (y * g).sum().backward()


def only_one_output(net, x, h, g):
    (net(x, h)[1] * g).sum().backward()
    net(x, h)


def not_in_order(net, x, h, g):
    first, second = net(x, h), net(x * 2, h)
    (first[0] * g).sum().backward()
    (second[0] + net(x, second[1])[0]).sum().backward()


def asked_for(net, x, h, g):
    y, _ = net(x, h)
    found = mx.autograd.grad([y], [x, net.a.weight.data()], [g], retain_graph=True)
    found[0].copyto(x.grad)
    found[1].copyto(net.a.weight.grad())


def detached(net, x, h, g):
    y, h = net(x, h)
    (net(y.detach(), h)[0] * g).sum().backward()


@pytest.mark.parametrize("way", [unrolled, only_one_output, not_in_order, asked_for, detached])
@pytest.mark.parametrize("req", ["write", "add"])
def test_ways_through_the_tape(way, req):
    net = Pair()
    net.initialize(mx.init.Xavier())
    net.collect_params().setattr("grad_req", req)
    given = [mx.nd.array(cases.values((2, 3), i)) for i in range(3)]
    found = []
    for hybrid in (False, True):
        net.hybridize(hybrid)
        net.collect_params().zero_grad()
        x, h, g = (a.copy() for a in given)
        x.attach_grad(req)
        for _ in range(2):
            with mx.autograd.record():
                way(net, x, h, g)
        found.append([x.grad.asnumpy(), *(p.grad().asnumpy() for p in net.collect_params().values())])
    assert abs(found[0][1]).sum() > 1e-2
    for a, b in zip(*found):
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)


def test_sparse_gradients():
    layer, found = nn.Embedding(50, 4, sparse_grad=True), []
    layer.initialize()
    for hybrid in (False, True):
        layer.hybridize(hybrid)
        with mx.autograd.record():
            y = layer(mx.nd.array([3, 7, 3])) * 2
        y.backward()
        found.append(layer.weight.grad())
    assert [g.stype for g in found] == ["row_sparse", "row_sparse"]
    assert found[1].indices.asnumpy().tolist() == [3, 7]
    np.testing.assert_allclose(found[1].asnumpy(), found[0].asnumpy())


def test_dropout_draws_the_same_numbers():
    net = nn.HybridSequential()
    net.add(nn.Dropout(0.5), nn.Dense(20, in_units=50), nn.Dropout(0.3))
    net.initialize()
    x, drawn = mx.nd.ones((4, 50)), []
    for hybrid in (False, True):
        net.hybridize(hybrid)
        mx.random.seed(5)
        with mx.autograd.train_mode():
            drawn.append([net(x).asnumpy() for _ in range(3)])
    for a, b in zip(*drawn):
        np.testing.assert_allclose(b, a, rtol=1e-6)
    assert not any((a == b).all() for a, b in itertools.combinations(drawn[1], 2))


class Loop(HybridBlock):
    """A recurrence with a weight from outside the loop."""

    def __init__(self, how):
        super().__init__()
        self.how = how
        self.w = self.params.get("w", shape=(3,), init="ones")

    def hybrid_forward(self, F, x, h, w):
        return getattr(self, self.how)(F, x, h, w)

    @staticmethod
    def foreach(F, x, h, w):
        def body(x_t, h_t):
            y = F.tanh(F.broadcast_mul(x_t, w) + h_t)
            return y * 2, y

        outs, last = F.contrib.foreach(body, x, h)
        return outs, last

    @staticmethod
    def while_loop(F, x, h, w):
        def body(i, s):
            return s, [i + 1, F.broadcast_mul(s, w) + 0.5]

        outs, (_, s) = F.contrib.while_loop(lambda i, s: i < 3, body, [F.zeros((1,)), h], max_iterations=4)
        return F.slice_axis(outs[0] if isinstance(outs, list) else outs, axis=0, begin=0, end=3), s, x

    @staticmethod
    def cond(F, x, h, w):
        y = F.contrib.cond(F.sum(h) < 0, lambda: F.broadcast_mul(h, w) * 3, lambda: h - F.broadcast_mul(h, w) * 2)
        return y, x


def check_control_flow(how, mode):
    net = Loop(how)
    net.initialize()
    net.w.set_data(mx.nd.array([0.3, -0.7, 1.1]))
    args = [mx.nd.array(cases.values((4, 2, 3), 1)), mx.nd.array(cases.values((2, 3), 5))]
    check_agreement(net, args, modes=[mode] * 2)


@pytest.mark.parametrize("how", ["foreach", "while_loop", "cond"])
def test_control_flow(how):
    check_control_flow(how, True)


def test_control_flow_outside_training_mode():
    check_control_flow("foreach", False)


class Cube(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], mx.nd.array(in_data[0].asnumpy() ** 3))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * 3 * in_data[0] ** 2)


@mx.operator.register("hybrid_agrees_cube")
class CubeProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return Cube()


class WithCustom(HybridBlock):
    def __init__(self):
        super().__init__()
        self.d = nn.Dense(3, in_units=4)

    def hybrid_forward(self, F, x):
        return F.tanh(F.Custom(self.d(x), op_type="hybrid_agrees_cube")) + 1


def test_operators_in_python():
    net = WithCustom()
    net.initialize(mx.init.Xavier())
    check_agreement(net, [mx.nd.array(cases.values((2, 4), 1))])
