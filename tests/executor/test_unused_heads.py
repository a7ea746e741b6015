"""Outputs of compiled blocks that have no gradient: the others' gradients are what they are operator by operator."""

import threading

import numpy as np
import pytest

import mxcore as mx
from mxcore import autograd, nd
from mxcore.executor import cached_op
from mxcore.gluon import nn

FLAGS = [{}, {"static_alloc": True, "static_shape": True}]


class Fn(nn.HybridBlock):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def hybrid_forward(self, F, *args):
        return self.fn(F, *args)


def gradient(net, which, *values):
    xs = [nd.array(v) for v in values]
    for x in xs:
        x.attach_grad()
    with autograd.record():
        ys = net(*xs)
    autograd.backward([ys[i] for i in which])
    return [x.grad.asnumpy() for x in xs]


ONES = {
    "sqrt": lambda F, x: F.sqrt(x),
    "log": lambda F, x: F.log(x),
    "norm": lambda F, x: F.sqrt(F.sum(x * x)),
    "softmax": lambda F, x: F.SoftmaxOutput(x.reshape((1, -1)), F.zeros((1,))),
    "loss": lambda F, x: F.MakeLoss(x * 3),
    "whole": lambda F, x: F.argmax(x, axis=0),
}


@pytest.mark.parametrize("flags", FLAGS, ids=["plain", "static"])
@pytest.mark.parametrize("name", ONES)
def test_an_output_that_nobody_uses_adds_nothing(name, flags):
    net = Fn(lambda F, x: (ONES[name](F, x), x * 2))
    net.hybridize(**flags)
    for _ in range(3):
        assert gradient(net, [1], [0.0, 0.0, 1.0])[0].tolist() == [2, 2, 2]


@pytest.mark.parametrize("flags", FLAGS, ids=["plain", "static"])
def test_whichever_are_used_in_whatever_order(flags):
    def fn(F, a, b):
        c = F.tanh(F.dot(a, b))
        return c * c, F.exp(a), F.BlockGrad(b), (c, F.sum(b, axis=0))

    def flat(fn):
        def call(F, a, b):
            x, y, z, (u, v) = fn(F, a, b)
            return x, y, z, u, v

        return call

    compiled, plain, r = Fn(flat(fn)), Fn(flat(fn)), np.random.RandomState(1)
    compiled.hybridize(**flags)
    for step in range(60):
        which = [int(i) for i in r.permutation(5)[: r.randint(1, 6)]]
        if which == [2]:
            continue
        n = 3 if step % 7 else 4
        values = r.uniform(-1, 1, (2, n, n)).astype("float32")
        for found, want in zip(gradient(compiled, which, *values), gradient(plain, which, *values)):
            np.testing.assert_allclose(found, want, 1e-5, 1e-6, err_msg=f"{step} {which}")


class Net(nn.HybridBlock):
    """Masks, running statistics, parameters that only one of the outputs has."""

    def __init__(self):
        super().__init__(prefix="net_")
        with self.name_scope():
            self.norm, self.drop = nn.BatchNorm(in_channels=4), nn.Dropout(0.5)
            self.one, self.other = nn.Dense(3, in_units=4), nn.Dense(2, in_units=4)

    def hybrid_forward(self, F, x):
        x = self.drop(self.norm(x))
        return self.one(x), self.other(x), F.sum(x)


def trained(patterns, weighted, interleaved=False):
    """All parameters after some steps, each with a gradient of some outputs; `weighted`: of all, some times zero."""
    mx.random.seed(3)
    net, r = Net(), np.random.RandomState(2)
    net.initialize(mx.init.Uniform(1))
    net.hybridize(static_alloc=True)
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.5})
    for which in patterns:
        x = nd.array(r.uniform(-1, 1, (6, 4)))
        with autograd.record():
            ys = net(x)
            others = net(x * 2)[0] if interleaved else None
            parts = [(y**2).sum() * (i in which) for i, y in enumerate(ys) if weighted or i in which]
            loss = sum(parts)
        twice = len(which) == 2
        loss.backward(retain_graph=twice)
        if twice:
            loss.backward()
        if interleaved:
            others.backward()
        trainer.step(6)
    return {n: p.data().asnumpy() for n, p in net.collect_params().items()}


@pytest.mark.parametrize("interleaved", [False, True])
def test_masks_are_those_of_the_call_and_statistics_move_once(interleaved):
    patterns = [[0], [0, 1, 2], [0], [1], [1], [0, 2], [0, 1, 2], [2], [1, 0], [0], [0]]
    found, want = trained(patterns, False, interleaved), trained(patterns, True, interleaved)
    for name, value in want.items():
        np.testing.assert_allclose(found[name], value, 1e-5, 1e-6, err_msg=name)
    start = trained([], False)
    assert interleaved or all(not np.allclose(want[n], start[n]) for n in want if "beta" not in n)


class Siamese(nn.HybridBlock):
    """Two outputs behind moving statistics; of the second one nobody wants a gradient."""

    def __init__(self, second):
        super().__init__(prefix="twin_")
        self.second = second
        with self.name_scope():
            self.norm = nn.BatchNorm(in_channels=2)

    def hybrid_forward(self, F, x):
        y = self.norm(x)
        return y, self.second(F, F.abs(x))


@pytest.mark.parametrize("second", [lambda F, x: F.sqrt(x), lambda F, x: F.MakeLoss(x * 3)], ids=["sqrt", "loss"])
def test_a_call_beside_another_that_moves_statistics(second):
    """What a block itself writes to, at the other call, was not written to by the user; for every batch size."""

    def steps(hybrid):
        net, found = Siamese(second), []
        net.initialize()
        if hybrid:
            net.hybridize()
        for n in (3, 4, 3, 5):
            x = nd.array(np.arange(2.0 * n).reshape(n, 2) % 3 - 1)
            z = x * 2
            x.attach_grad()
            z.attach_grad()
            with autograd.record():
                a, b = net(x)[0], net(z)[0]
                loss = (a * a * a).sum() + (b * b * b).sum()
            loss.backward()
            found += [x.grad.asnumpy(), z.grad.asnumpy(), *[p.data().asnumpy() for p in net.collect_params().values()]]
        return found

    for i, (found, want) in enumerate(zip(steps(True), steps(False))):
        np.testing.assert_allclose(found, want, 1e-4, 1e-5, err_msg=str(i))


def test_a_call_in_predict_mode_has_the_statistics_of_its_time():
    """Another call moves them before its backward: what the first has kept counts, as in eager code."""

    def steps(hybrid):
        net, found = Siamese(lambda F, x: F.sin(x)), []
        net.initialize()
        if hybrid:
            net.hybridize()
        for n in (3, 3, 4):
            x = nd.array(np.arange(2.0 * n).reshape(n, 2) % 3 - 1)
            z = x * 5 + 3
            x.attach_grad()
            z.attach_grad()
            with autograd.record(train_mode=False):
                a = net(x)[0]
            with autograd.record():
                b = net(z)[0]
            b.backward(z)
            a.backward(x, train_mode=False)
            found += [x.grad.asnumpy(), z.grad.asnumpy()]
        return found

    for i, (found, want) in enumerate(zip(steps(True), steps(False))):
        np.testing.assert_allclose(found, want, 1e-4, 1e-5, err_msg=str(i))


def test_what_no_output_needs_takes_no_memory_of_its_own():
    """The program without it runs in the room of the one that it follows."""
    net = Fn(lambda F, x: (F.tanh(F.sin(F.exp(x))), F.sum(F.cos(x) * x)))
    net.hybridize()
    for n in (1000, 2000, 1000):
        for _ in range(3):
            gradient(net, [0], np.zeros(n, "float32"))
        assert len(net._cached_op.op._rooms[mx.cpu()].idle) == 1


def test_other_shapes_begin_with_what_was_used(monkeypatch):
    monkeypatch.setattr(cached_op, "_MOST", cached_op._LIMIT)
    net = Fn(lambda F, x: (F.exp(x), F.sin(x)))
    net.hybridize()
    for n in range(1, 50):
        gradient(net, [0], np.zeros(n, "float32"))
    op = net._cached_op.op
    assert len(op._without) == 1 and all(s.without == {1} for s in op._signatures.values())


def test_who_writes_to_inputs_gets_what_all_outputs_were():
    """Also where a step uses more of them than those before."""
    net = Fn(lambda F, x: (F.exp(x), F.tanh(x)))
    net.hybridize()
    for which in ([0], [0], [0, 1], [1]):
        x = nd.array([1.0, 2.0])
        x.attach_grad()
        with autograd.record():
            ys = net(x)
        x[:] = 0
        with pytest.warns(mx.base.MXNetWarning, match="was written between"):
            autograd.backward([ys[i] for i in which])
        e, t = (y.asnumpy() for y in ys)
        want = e * (0 in which) + (1 - t * t) * (1 in which)
        np.testing.assert_allclose(x.grad.asnumpy(), want, 1e-5)


def test_what_is_used_next_time_is_compiled_once():
    """A pattern that stays costs one forward a step, as any other."""
    calls = []

    class Counting(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            calls.append("forward")
            self.assign(out_data[0], req[0], in_data[0] * 2)

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            calls.append("backward")
            self.assign(in_grad[0], req[0], out_grad[0] * 2)

    @mx.operator.register("unused_heads_counting")
    class Prop(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Counting()

    net = Fn(lambda F, x: (F.Custom(x, op_type="unused_heads_counting"), F.exp(x), F.sin(x)))
    net.hybridize()
    for _ in range(3):
        assert gradient(net, [0, 1, 2], [0.0])[0].tolist() == [4]
    assert calls == ["forward", "backward"] * 3
    calls.clear()
    for _ in range(4):
        assert gradient(net, [0], [0.0])[0].tolist() == [2]
    assert calls == ["forward", "forward", "backward"] + ["forward", "backward"] * 3
    calls.clear()
    for _ in range(3):
        assert gradient(net, [1], [0.0])[0].tolist() == [1]
    assert calls.count("backward") == 0 and calls.count("forward") <= 4


def test_second_gradients_and_threads():
    net = Fn(lambda F, x: (F.sqrt(x), x * x * x))
    net.hybridize()
    wrong = []

    def work(k):
        for _ in range(20):
            x = nd.array([0.0, float(k)])
            x.attach_grad()
            with autograd.record():
                (g,) = autograd.grad(net(x)[1], [x], create_graph=True)
            g.backward()
            if x.grad.asnumpy().tolist() != [0, 6 * k]:
                wrong.append((k, x.grad.asnumpy()))
            if gradient(net, [k % 2], [1.0, 4.0])[0].tolist() != ([0.5, 0.25] if k % 2 == 0 else [3, 48]):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(100)
    assert not wrong


def test_no_memory_is_lost_over_changing_patterns():
    net = Fn(lambda F, x: (F.tanh(x), F.exp(x), F.sin(x)))
    net.hybridize()
    kept = []
    for step in range(40):
        gradient(net, [step % 3], np.zeros(1000, "float32"))
        kept.append(net._cached_op.op.nbytes)
    assert len({*kept[10:]}) == 1


@pytest.mark.parametrize("flags", FLAGS, ids=["plain", "static"])
def test_what_is_written_before_backward_does_not_come_into_it(flags):
    net = Fn(lambda F, x: (F.exp(x), x * 2))
    net.hybridize(**flags)
    for _ in range(3):
        x = nd.array([1.0, 2.0])
        x.attach_grad()
        with autograd.record():
            y = net(x)[0]
        x[:] = 5
        with pytest.warns(mx.base.MXNetWarning, match="was written between record and backward"):
            y.backward()
        np.testing.assert_allclose(x.grad.asnumpy(), y.asnumpy(), 1e-6)
