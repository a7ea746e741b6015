"""Blocks that meet more shapes than they have programs: what predicts for further ones runs node by node."""

import numpy as np
import pytest

import mxcore as mx
from mxcore import autograd
from mxcore.executor import cached_op
from mxcore.gluon import nn


@pytest.fixture
def few(monkeypatch):
    """A graph has three programs, and one that was not wanted for ten calls makes place."""
    monkeypatch.setattr(cached_op, "_LIMIT", 3)
    monkeypatch.setattr(cached_op, "_OLD", 10)


def network():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3, padding=1), nn.BatchNorm(), nn.Activation("relu"), nn.GlobalAvgPool2D(), nn.Flatten())
    net.add(nn.Dense(5, activation="tanh"), nn.LayerNorm(), nn.Dropout(0.5), nn.HybridLambda("log_softmax"))
    net.initialize(mx.init.Uniform(0.5))
    net(image(4))
    return net


def image(size, seed=0):
    return mx.nd.array(np.random.RandomState(seed).randn(2, 3, size, size))


def program_of(net, size):
    """Whether there is one for images of this size."""
    return any(key[3][0][0] == (2, 3, size, size) for key, _ in net._cached_op.op._signatures)


def test_all_calls_of_a_shape_give_the_same_bits_and_those_of_eager_calls_nearly(few):
    net = network()
    wanted = {size: net(image(size)).asnumpy() for size in range(4, 12)}
    net.hybridize()
    found = {size: net(image(size)).asnumpy() for size in wanted}
    for _ in range(4):
        for size, y in found.items():
            assert np.array_equal(net(image(size)).asnumpy(), y)
    for size, y in wanted.items():
        np.testing.assert_allclose(found[size], y, rtol=1e-5, atol=1e-6)


def test_training_has_a_program_for_each_shape(few):
    net, grads = network(), []
    for hybridize in (False, True):
        net.hybridize(hybridize)
        for size in range(4, 12):
            with autograd.record(train_mode=False):
                loss = (net(image(size)) ** 2).sum()
            loss.backward()
            net(image(size + 20))
            grads.append(net[0].weight.grad().asnumpy())
    for a, b in zip(grads[:8], grads[8:]):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_a_program_that_nobody_wants_any_more_makes_place(few):
    net = network()
    net.hybridize()
    for size in range(4, 15):
        net(image(size))
    assert [size for size in range(4, 15) if program_of(net, size)] == [4, 5, 6]
    for size in range(15, 22):
        net(image(size))
        net(image(6))
    assert [size for size in range(4, 22) if program_of(net, size)] == [6, *range(15, 17)]


class Shares(mx.gluon.HybridBlock):
    """Whose outputs are an input, another shape of it, and one result twice."""

    def hybrid_forward(self, F, x, y):
        z = x + y
        first, second = F.split(z, num_outputs=2, axis=0)
        return x, F.reshape(y, (-1,)), z, z, F.reshape(z, (-1,)), first, second


@pytest.mark.parametrize("hybridize", [False, True])
def test_what_is_given_out_is_nobody_elses(few, hybridize):
    net = Shares()
    net.hybridize(hybridize)
    for n in range(2, 20, 2):
        x, y = mx.nd.ones((n, 3)), mx.nd.full((n, 3), 2)
        outs = net(x, y)
        if not hybridize:
            continue
        before = [o.asnumpy() for o in outs]
        for i, o in enumerate(outs):
            o += i + 10
        for i, (o, a) in enumerate(zip(outs, before)):
            assert np.array_equal(o.asnumpy(), a + i + 10)
        assert x.asnumpy().max() == 1 and y.asnumpy().max() == 2


def test_training_keeps_more_programs_than_predicting_gets(few, monkeypatch):
    """Batches of texts have many lengths: a program for each is made once, and none is taken from who predicts."""
    monkeypatch.setattr(cached_op, "_MOST", 9)
    compiled, made = cached_op.compile_graph, []
    monkeypatch.setattr(cached_op, "compile_graph", lambda *a, **k: made.append(a[3]) or compiled(*a, **k))
    net = network()
    net.hybridize()
    for _ in range(3):
        for size in range(4, 10):
            with autograd.record():
                loss = (net(image(size)) ** 2).sum()
            loss.backward()
        for size in range(10, 16):
            net(image(size))
    assert made == [True] * 6 + [False] * 3
    assert [size for size in range(4, 16) if program_of(net, size)] == [*range(4, 13)]


def test_large_graphs_keep_fewer_programs(monkeypatch):
    monkeypatch.setattr(cached_op, "_NODES", 600)
    x = mx.sym.var("x")
    small, large = cached_op.CachedOp(x + 1), cached_op.CachedOp(sum([x] * 12, x))
    monkeypatch.setattr(cached_op, "_NODES", 4)
    tiny = cached_op.CachedOp(x + 1)
    assert [op._signatures.limit for op in (small, large, tiny)] == [128, 600 // 13, 32]


class Draws(mx.gluon.HybridBlock):
    def hybrid_forward(self, F, x):
        return F.random.normal_like(x) + F.random.uniform_like(x)


def test_random_numbers_are_those_of_programs(few):
    def draw(limit):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(cached_op, "_LIMIT", limit)
            net = Draws()
            net.hybridize()
            mx.random.seed(3)
            return [net(mx.nd.zeros((n, 3))).asnumpy() for n in range(1, 9)]

    for a, b in zip(draw(3), draw(100)):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_arrays_of_the_other_face(few):
    with mx.util.np_shape(True), mx.util.np_array(True):
        net = nn.HybridSequential()
        net.add(nn.Dense(3), nn.Activation("relu"))
        net.initialize()
        net.hybridize()
        for n in range(1, 9):
            y = net(mx.np.ones((n, 4)))
            assert type(y) is mx.np.ndarray and y.shape == (n, 3)


def test_an_input_of_the_other_face_is_nobody_elses(few):
    graph = cached_op.CachedOp(mx.sym.var("x").as_np_ndarray())
    for n in range(1, 9):
        x = mx.nd.ones((n,))
        y = graph(x)
        x[:] = 5
        assert y.asnumpy().tolist() == [1] * n


def test_what_writes_to_its_inputs_is_always_a_program(few):
    w, g, m = map(mx.sym.var, "wgm")
    moved = mx.sym.sgd_mom_update(w, g, m, lr=0.1, momentum=0.9)
    graph = cached_op.CachedOp(mx.sym.Group([moved, m + 0, m]))
    found = []
    for n in range(1, 9):
        outs = graph(*[mx.nd.full((n,), v) for v in (1, 2, 3)])
        found.append([float(y.asnumpy()[0]) for y in outs])
    assert found == found[:1] * 8


def test_training_beside_it_lets_nothing_be_made_again_and_again(few, monkeypatch):
    made = []
    compile_graph = cached_op.compile_graph
    monkeypatch.setattr(cached_op, "compile_graph", lambda *a, **kw: made.append(1) or compile_graph(*a, **kw))
    net = network()
    net.hybridize()

    def all_of_them():
        for size in range(4, 7):
            net(image(size))
        with autograd.record():
            y = net(image(4))
        y.backward()

    all_of_them()
    all_of_them()
    before = len(made)
    for _ in range(3):
        all_of_them()
    assert len(made) - before <= 1


def test_threads_agree_on_the_way_of_a_shape(few, in_threads):
    graph = cached_op.CachedOp(mx.sym.exp(mx.sym.var("x")) * 2)

    def work(seed):
        for n in np.random.RandomState(seed).randint(1, 12, 100):
            y = graph(mx.nd.ones((n,)))
            assert y.shape == (n,) and abs(y.asnumpy() - 2 * np.e).max() < 1e-4

    in_threads(work, [(seed,) for seed in range(4)])
    assert len(graph._signatures) <= 3 + 4  # as many threads may look for a place at once
