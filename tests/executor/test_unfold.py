"""Gradients of gradients of hybridised blocks: outputs, gradients and states are those of blocks that are not."""

import numpy as np
import pytest

import mxcore as mx
from mxcore import autograd, gluon, nd
from mxcore.gluon import nn

SIZE = 3


def sequence(*layers):
    net = nn.HybridSequential()
    net.add(*layers)
    return net


def dense(*layers):
    return sequence(nn.Dense(SIZE, in_units=SIZE), *layers)


def normalized():
    return dense(nn.BatchNorm(in_channels=SIZE), nn.Activation("tanh"))


class Counting(mx.operator.CustomOp):
    """Moves its state in both directions."""

    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * 2 + aux[0])
        aux[0][:] += 1

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * 2)
        aux[0][:] += 10


@mx.operator.register("toy_counting")
class CountingProp(mx.operator.CustomOpProp):
    def list_auxiliary_states(self):
        return ["state"]

    def infer_shape(self, shapes):
        return shapes, shapes, [(1,)]

    def create_operator(self, ctx, shapes, dtypes):
        return Counting()


class Counted(gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        self.count = self.params.get("count", shape=(1,), init="zeros", grad_req="null", differentiable=False)

    def hybrid_forward(self, F, x, count):
        return F.tanh(x) + F.Custom(x, count, op_type="toy_counting") * 0.01


class Shared(gluon.HybridBlock):
    """One normalization twice, and masks."""

    def __init__(self):
        super().__init__()
        self.norm, self.half, self.third = nn.BatchNorm(in_channels=SIZE), nn.Dropout(0.5), nn.Dropout(0.3)

    def hybrid_forward(self, F, x):
        y = self.norm(F.tanh(x))
        z = self.norm(self.half(y) * x)
        return self.third(F.sigmoid(z) + self.half(x) * y)


class WithReLU(gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNormReLU(in_channels=SIZE)

    def hybrid_forward(self, F, x):
        return self.norm(F.tanh(x).expand_dims(2).expand_dims(3)).flatten()


class Nested(gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        self.inner, self.norm = normalized(), nn.BatchNorm(in_channels=SIZE)
        self.inner.hybridize()

    def hybrid_forward(self, F, x):
        return self.inner(x) + self.norm(x * x)


class Flow(gluon.HybridBlock):
    """A block in the body of a loop, or in a branch."""

    def __init__(self, kind, body):
        super().__init__()
        self.kind, self.body = kind, body

    def hybrid_forward(self, F, x):
        if self.kind == "foreach":
            outs, last = F.contrib.foreach(
                lambda d, s: (self.body(d) + s, s * 0.5), x.reshape((2, 4, -1)), F.ones((4, SIZE))
            )
            return F.broadcast_add(outs.reshape((-1, SIZE)), F.sum(last))
        if self.kind == "while_loop":
            _, last = F.contrib.while_loop(
                lambda i, s: i < 3, lambda i, s: (s, (i + 1, self.body(s))), (F.zeros((1,)), x), max_iterations=4
            )
            return last[1]
        return F.contrib.cond(F.sum(x) * 0 < 1, lambda: self.body(x), lambda: x)


KINDS = ("foreach", "while_loop", "cond")
NETS = {
    "normalized": lambda: dense(nn.BatchNorm(in_channels=SIZE), nn.Activation("tanh"), nn.Dense(SIZE, in_units=SIZE)),
    "normalized last": lambda: dense(nn.Activation("tanh"), nn.BatchNorm(in_channels=SIZE)),
    "global statistics": lambda: dense(nn.BatchNorm(in_channels=SIZE, use_global_stats=True), nn.Activation("tanh")),
    "synchronized": lambda: dense(
        gluon.contrib.nn.SyncBatchNorm(in_channels=SIZE, num_devices=1), nn.Activation("tanh")
    ),
    "with ReLU": WithReLU,
    "shared": Shared,
    "nested": Nested,
    "counted": Counted,
    **{kind: lambda kind=kind: Flow(kind, normalized()) for kind in KINDS},
    **{f"{kind}, masks": lambda kind=kind: Flow(kind, dense(nn.Dropout(0.5), nn.Activation("tanh"))) for kind in KINDS},
    **{f"{kind}, counted": lambda kind=kind: Flow(kind, Counted()) for kind in KINDS},
}


def penalized(net, x, head=nd.square):
    y = net(x)
    return y, autograd.grad(head(y).sum(), x, create_graph=True)[0]


def penalty(net, x, other):
    with autograd.record():
        y, g = penalized(net, x, lambda y: y)
        loss = y.sum() + (g * g).sum()
    loss.backward()
    return [y, g]


def penalty_alone(net, x, other):
    with autograd.record():
        y, g = penalized(net, x)
        loss = (g * g).sum()
    loss.backward()
    return [y, g]


def two_gradients(net, x, other):
    with autograd.record():
        y, g = penalized(net, x)
        h = autograd.grad((y * x).sum(), x, create_graph=True)[0]
        loss = (y * y).sum() + (g * h).sum()
    loss.backward()
    return [y, g, h]


def third_order(net, x, other):
    with autograd.record():
        y, g = penalized(net, x)
        h = autograd.grad((g * g).sum(), x, create_graph=True)[0]
        loss = y.sum() + (h * h).sum()
    loss.backward()
    return [y, g, h]


def backward_twice(net, x, other):
    with autograd.record():
        y, g = penalized(net, x)
        loss = (y * y).sum() + (g * g).sum()
    loss.backward(retain_graph=True)
    first = x.grad.copy()
    loss.backward()
    return [y, g, first]


def plain_backward_after(net, x, other):
    with autograd.record():
        y = net(x)
        loss = (y * y).sum()
    g = autograd.grad(loss, x, create_graph=True)[0]
    loss.backward()
    return [y, g]


def plain_backward_before(net, x, other):
    with autograd.record():
        y = net(x)
        loss = (y * y).sum()
    loss.backward(retain_graph=True)
    with autograd.record():
        g = autograd.grad(loss, x, create_graph=True)[0]
        loss = (g * g).sum()
    loss.backward()
    return [y, g]


def other_calls(net, x, other):
    """Calls before and after, whose order the moving statistics show."""
    with autograd.record():
        before = net(other).sum()
        y = net(x)
        after = net(other * 0.5).sum()
        g = autograd.grad((y * y).sum(), x, create_graph=True)[0]
        loss = before - after + (g.norm(axis=1) - 1).square().sum()
    loss.backward()
    return [y, g]


def call_of_call(net, x, other):
    with autograd.record():
        z = net(x)
        y = net(z + x)
        g, h = autograd.grad((y * y).sum(), [x, z], create_graph=True)
        loss = (g * g).sum() + (h * h).sum() + y.sum()
    loss.backward()
    return [y, g, h]


class Twice(autograd.Function):
    def forward(self, x):
        return x * 2

    def backward(self, dy):
        return dy * 2


def function_between(net, x, other):
    with autograd.record():
        y, g = penalized(net, x)
        loss = Twice()(g * g).sum() + Twice()(y).sum()
    loss.backward()
    return [y, g]


def of_parameters(net, x, other):
    wrt = [x, *[p.data() for p in net.collect_params().values() if p.grad_req != "null"]]
    with autograd.record():
        y = net(x)
        grads = autograd.grad((y * y).sum(), wrt, create_graph=True)
        loss = sum((g * g).sum() for g in grads) + y.sum()
    loss.backward()
    return [y, *grads]


def in_predict_mode(net, x, other):
    with autograd.record(train_mode=False):
        y, g = penalized(net, x)
        loss = (y * y).sum() + (g * g).sum()
    loss.backward()
    return [y, g]


def backward_in_predict_mode(net, x, other):
    with autograd.record():
        y, g = penalized(net, x)
        loss = (y * y).sum() + (g * g).sum()
    loss.backward(train_mode=False)
    return [y, g]


WAYS = [
    penalty, penalty_alone, two_gradients, third_order, backward_twice, plain_backward_after, plain_backward_before,
    other_calls, call_of_call, function_between, of_parameters, in_predict_mode, backward_in_predict_mode,
]  # fmt: skip


def steps(build, way, hybrid):
    """All that two steps give; the error where there is no second gradient."""
    mx.random.seed(7)
    net = build()
    net.initialize()
    random = np.random.RandomState(3)
    for _, p in net.collect_params().items():
        if p.name.endswith(("weight", "gamma")):
            p.set_data(nd.array(random.rand(*p.shape) * 0.6 + 0.2))
    net.hybridize(hybrid)
    x, other = nd.array(random.randn(8, SIZE)), nd.array(random.randn(8, SIZE))
    x.attach_grad()
    found = []
    for _ in range(2):
        try:
            found += way(net, x, other)
        except NotImplementedError as e:
            return "not differentiable" in str(e)
        found += [x.grad.copy()]
        found += [(p.data() if p.grad_req == "null" else p.grad()).copy() for p in net.collect_params().values()]
    return [y.asnumpy() for y in found]


@pytest.mark.filterwarnings("error::mxcore.base.MXNetWarning")
@pytest.mark.parametrize("way", WAYS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("net", NETS)
def test_as_a_block_that_is_not_hybridised(net, way):
    plain, hybrid = (steps(NETS[net], way, hybrid) for hybrid in (False, True))
    if plain is True or hybrid is True:
        assert ("counted" in net or net == "synchronized") and plain is hybrid
        return
    assert len(plain) == len(hybrid)
    for a, b in zip(plain, hybrid):
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-4 * max(1, np.abs(a).max()))


class Open(gluon.HybridBlock):
    """Values whose shape a graph's consumer decides; eager code tells it."""

    def __init__(self, make):
        super().__init__()
        self.make = make

    def hybrid_forward(self, F, x):
        return F.tanh(x * self.make(F, (0, SIZE) if F is mx.sym else x.shape) + x)


class Unrolled(gluon.HybridBlock):
    def __init__(self, cell, loop=False):
        super().__init__()
        self.cell, self.loop = cell, loop

    def hybrid_forward(self, F, x):
        if self.loop:  # the state begins within the loop's body
            steps = F.contrib.foreach(lambda d, s: (self.step(F, d), s), x.reshape((2, 4, SIZE)), F.zeros((1,)))[0]
            return steps.reshape((-1, SIZE))
        return self.cell.unroll(2, x.reshape((2, 4, SIZE)), layout="TNC", merge_outputs=True)[0].reshape((-1, SIZE))

    def step(self, F, d):
        return self.cell(d, self.cell.begin_state(func=F.zeros, batch_size=0 if F is mx.sym else 4))[0]


class Recurrent(gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        self.layer = gluon.rnn.GRU(SIZE, input_size=SIZE)

    def hybrid_forward(self, F, x):
        return self.layer(x.reshape((2, 4, SIZE))).reshape((-1, SIZE)) * 2


#: What leaves the shape of a value to its consumers.
OPEN = {
    "zeros": lambda: Open(lambda F, shape: F.zeros(shape=shape)),
    "ones": lambda: Open(lambda F, shape: F.ones(shape=shape)),
    "full": lambda: Open(lambda F, shape: F.full(shape, 0.5)),
    "begin states": lambda: Unrolled(gluon.rnn.LSTMCell(SIZE, input_size=SIZE)),
    "begin states in a loop": lambda: Unrolled(gluon.rnn.GRUCell(SIZE, input_size=SIZE), loop=True),
}


@pytest.mark.parametrize("way", [penalty, third_order, of_parameters])
@pytest.mark.parametrize("net", OPEN)
def test_shapes_that_consumers_decide(net, way):
    plain, hybrid = (steps(OPEN[net], way, hybrid) for hybrid in (False, True))
    for a, b in zip(plain, hybrid):
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-4 * max(1, np.abs(a).max()))


def test_a_layer_whose_states_begin_by_themselves():
    """Its first gradients; the fused operator has none of higher order."""
    found = []
    for hybrid in (False, True):
        mx.random.seed(7)
        net, x = Recurrent(), nd.array(np.random.RandomState(3).randn(8, SIZE))
        net.initialize()
        net.hybridize(hybrid)
        x.attach_grad()
        with autograd.record():
            found.append(penalized(net, x)[1].asnumpy())
    np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-6)


def test_an_open_range_and_random_numbers_are_as_long_as_their_consumer():
    class Ranged(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            y = F._internal._arange(start=1, step=0.1, repeat=2, infer_range=True, stop=None)
            return F.tanh(x * y + x) * F.random.uniform(0.9, 1, shape=(0,))

    x, net = nd.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]), Ranged()
    net.hybridize()
    x.attach_grad()
    with autograd.record():
        y = net(x)
        g = autograd.grad(y, x, create_graph=True)[0]
    y.backward()
    np.testing.assert_allclose(g.asnumpy(), x.grad.asnumpy(), rtol=1e-5)


def test_hooks_see_values_whose_shape_their_consumer_decides():
    net, x, seen = OPEN["zeros"](), nd.ones((2, SIZE)), []
    net.hybridize()
    net(x)
    net.register_op_hook(lambda name, op, array: seen.append(array.shape))
    net(x)
    assert seen and set(seen) == {x.shape}


@pytest.mark.parametrize("hybrid", [False, True])
def test_statistics_move_once_in_a_step(hybrid):
    net = dense(nn.BatchNorm(in_channels=SIZE), nn.Activation("tanh"))
    net.initialize()
    net.hybridize(hybrid)
    x = nd.array(np.random.RandomState(0).randn(8, SIZE))
    x.attach_grad()
    batch = net[0](x).mean(axis=0).asnumpy()
    penalty(net, x, None)
    np.testing.assert_allclose(net[1].running_mean.data().asnumpy(), 0.1 * batch, rtol=1e-4, atol=1e-6)


def test_what_is_recorded_goes_with_its_outputs():
    """The graph that took the place of a call is freed as the call was."""
    net = normalized()
    net.initialize()
    net.hybridize()
    x = nd.ones((2, SIZE))
    x.attach_grad()
    with autograd.record():
        y, g = penalized(net, x)
        loss = y.sum() + (g * g).sum()
    loss.backward()
    with pytest.raises(mx.MXNetError, match="retain_graph"):
        loss.backward()
    with pytest.raises(mx.MXNetError, match="retain_graph"):
        y.backward()
