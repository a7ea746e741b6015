"""Random numbers in recordings: each replay draws with the keys of its own run, which are the CPU's."""

import contextlib
import ctypes

import numpy as np
import pytest

import mxcore as mx
from mxcore import autograd, gluon
from mxcore.plugin import LaterKey, Rng
from mxcore_cuda import graphs
from mxcore_cuda.driver import Body
from mxcore_cuda.rng import Philox

from .test_graphs import Counted, WithLoss, both_ways, replaying
from .test_training import lenet


@pytest.fixture
def counted(gpus, monkeypatch):
    return Counted(gpus[0].device.driver, monkeypatch)


class Block(gluon.nn.HybridBlock):
    """A block of a function ``(F, x) -> outputs``."""

    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def hybrid_forward(self, F, x):
        return self.fn(F, x)


def several(F, x):
    h = F.Dropout(x, p=0.3)
    return F.Dropout(h + 1, p=0.6) * F.Dropout(F.Dropout(h, p=0.2), p=0.5)


def shaped(F, x):
    return F.Dropout(x, p=0.5, axes=(1,)), F.Dropout(x, p=0.4, axes=(0, 2))


def drawn(F, x):
    """Numbers by kernels."""
    return (
        F.random.uniform(low=-2, high=3, shape=(5, 7)),
        F.random.uniform_like(x) + x,
        F.random.randint(low=-4, high=90, shape=(33,)),
        F.random.uniform(shape=(3,), dtype="float64"),
        F.Dropout(x, p=0.5),
    )


def normal(F, x):
    return F.random.normal(loc=1, scale=2, shape=(4, 9)) * 2, F.random.normal_like(x) + x


def composed(F, x):
    """Numbers of bodies over array functions."""
    return F.random.exponential(shape=(3, 8)) + 1, F.LeakyReLU(x - 1, act_type="rrelu")[0], F.BlockGrad(F.shuffle(x))


def always(F, x):
    return F.Dropout(x, p=0.5, mode="always") + F.Dropout(x, p=0.5)


def moved(F, x):
    """Chains take the second draw in front of the first."""
    return F.Dropout(x, p=0.5) + F.exp(F.Dropout(x, p=0.2)), F.Dropout(F.tanh(x), p=0.5) * F.sigmoid(
        F.Dropout(x, p=0.5)
    )


#: Block, and relative difference from the CPU's numbers: logarithms and cosines differ by last places.
BLOCKS = {
    "dropout": (lambda F, x: F.Dropout(x, p=0.5) * 3, 0),
    "several": (several, 0),
    "axes": (shaped, 0),
    "drawn": (drawn, 0),
    "normal": (normal, 1e-4),
    "composed": (composed, 1e-5),
    "always": (always, 0),
    "moved": (moved, 1e-6),
}


def steps(fn, ctx, train=True, reseed=(), n=9, seed=5, counted=None):
    """Outputs and gradients of steps, looked at when all are launched; at some, random numbers begin anew.

    Where launches are counted, forward is one graph from the fourth step on.
    """
    net = Block(fn)
    net.hybridize()
    mx.random.seed(seed)
    x = mx.nd.array(np.random.RandomState(0).uniform(1, 2, (2, 6, 5)), ctx=ctx)
    x.attach_grad()
    found = []
    for i in range(n):
        if i in reseed:
            mx.random.seed(seed)
        if counted:
            counted.since()
        with autograd.record() if train else contextlib.nullcontext():
            outs = net(x)
        seen = counted and counted.since()
        assert i < 3 or seen in (None, (0, 1))
        outs = outs if isinstance(outs, (list, tuple)) else [outs]
        if train:
            autograd.backward(outs)
            found.append(x.grad.copy())
        found += outs
    return [a.asnumpy() for a in found]


def assert_equal(found, expected, rtol=0):
    assert len(found) == len(expected) > 0
    for i, (a, b) in enumerate(zip(found, expected)):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol, err_msg=f"array {i}")


@pytest.mark.parametrize("train", [True, False], ids=["train", "predict"])
@pytest.mark.parametrize("name", BLOCKS)
def test_replays_draw_what_the_cpu_draws_step_by_step(gpus, counted, name, train):
    fn, rtol = BLOCKS[name]
    found = steps(fn, gpus[0], train, counted=counted)
    assert_equal(found, steps(fn, mx.cpu(), train), rtol)
    with replaying(gpus[0].device, False):
        assert_equal(found, steps(fn, gpus[0], train))


def test_each_step_draws_other_numbers_and_backward_those_of_its_forward(gpus, counted):
    grads, outs = (steps(BLOCKS["dropout"][0], gpus[0])[i::2] for i in (0, 1))
    assert counted.graphs == 2 * 7
    assert len({a.tobytes() for a in outs}) == len(outs)
    for grad, out in zip(grads, outs):
        np.testing.assert_array_equal(grad != 0, out != 0)


def test_random_numbers_begin_anew_between_replays(gpus, counted):
    found = steps(several, gpus[0], reseed=(5, 7))
    assert counted.graphs == 7  # the only kernel of backward runs by itself
    for i in range(4):  # the gradient and the output of two steps
        for at in (10, 14):
            np.testing.assert_array_equal(found[at + i], found[i])
    assert_equal(found, steps(several, mx.cpu(), reseed=(5, 7)))


def test_each_device_has_its_own_keys(gpus, counted):
    """Steps of two devices in turn; the active one is the other one's."""
    net = [Block(several) for _ in range(4)]
    found = []
    for ctxs, nets in ((gpus, net[:2]), ((mx.cpu(0), mx.cpu(1)), net[2:])):
        mx.random.seed(9)
        outs = []
        xs = [mx.nd.ones((3, 4), ctx=ctx) for ctx in ctxs]
        for block in nets:
            block.hybridize()
        for _ in range(7):
            for block, x in zip(nets, xs):
                with autograd.train_mode():
                    outs.append(block(x))
        found.append([a.asnumpy() for a in outs])
    assert counted.graphs == 2 * 5
    assert_equal(*found)
    assert not all(np.array_equal(a, b) for a, b in zip(found[0][::2], found[0][1::2]))


def test_what_is_launched_behind_a_replay_does_not_change_its_keys(gpus, counted):
    """Two programs in turn; nothing runs before all is launched."""

    def scene(ctx):
        nets = [Block(several), Block(BLOCKS["dropout"][0])]
        x = mx.nd.ones((3, 5), ctx=ctx)
        outs = []
        for net in nets:
            net.hybridize()
            with autograd.train_mode():
                outs += [net(x) for _ in range(3)]
        mx.nd.waitall()
        mx.random.seed(2)
        counted.since()
        with autograd.train_mode():
            for i in range(12):
                outs.append(nets[i % 2 if i < 6 else 0](x))
        seen = counted.since()
        return [a.asnumpy() for a in outs[6:]], seen

    found, seen = scene(gpus[0])
    assert seen == (0, 12)
    assert_equal(found, scene(mx.cpu())[0])


def dropping():
    """LeNet with dropout."""
    net, shape = lenet()
    net.add(gluon.nn.Dropout(0.5), gluon.nn.Dense(5))
    return net, shape


@pytest.mark.parametrize("make", [lenet, dropping])
def test_a_step_of_a_network_with_dropout_is_as_many_launches_as_without(gpus, counted, make):
    net, shape = make()
    both = WithLoss(net)
    both.initialize(ctx=gpus[0])
    both.hybridize()
    rs = np.random.RandomState(0)
    trainer, found = gluon.Trainer(both.collect_params(), "sgd", {"learning_rate": 0.05}), []
    for _ in range(6):
        x, y = mx.nd.array(rs.randn(*shape), ctx=gpus[0]), mx.nd.array(rs.randint(0, 5, shape[:1]), ctx=gpus[0])
        mx.nd.waitall()
        counted.since()
        with autograd.record():
            loss = both(x, y)
        loss.backward()
        trainer.step(shape[0])
        found.append(counted.since())
    assert found[3:] == [(1, 2)] * 3  # the update


class Layers(gluon.nn.HybridBlock):
    """Recurrent layers with dropout between them, and behind."""

    def __init__(self, kind):
        super().__init__()
        with self.name_scope():
            self.rnn = kind(6, num_layers=3, dropout=0.4, bidirectional=True)
            self.drop, self.out = gluon.nn.Dropout(0.3), gluon.nn.Dense(3, flatten=False)

    def hybrid_forward(self, F, x):
        return self.out(self.drop(self.rnn(x)))


@pytest.mark.parametrize("kind", [gluon.rnn.LSTM, gluon.rnn.GRU])
def test_recurrent_layers(gpus, counted, kind):
    mx.random.seed(0)
    net = Layers(kind)
    net.initialize(mx.init.Xavier(), ctx=mx.cpu())
    x = mx.nd.array(np.random.RandomState(0).randn(4, 2, 5))
    net(x)

    def scene(ctx):
        net.collect_params().reset_ctx(ctx)
        net._clear_cached_op()
        net.hybridize()
        mx.random.seed(1)
        found = []
        for _ in range(6):
            counted.since()
            with autograd.record():
                y = net(x.as_in_context(ctx))
            y.backward()
            found.append((y.asnumpy(), *[p.grad().asnumpy() for p in net.collect_params().values()]))
        seen = counted.since()
        return [a for step in found for a in step], seen

    found, seen = scene(gpus[0])
    assert seen == (0, 2)
    with replaying(gpus[0].device, False):
        assert_equal(found, scene(gpus[0])[0])
    assert_equal(found, scene(mx.cpu())[0], 1e-5)


def test_an_executor_draws_anew_at_each_step(gpus, counted):
    x = mx.sym.Variable("x")
    net = mx.sym.Dropout(mx.sym.Dropout(x, p=0.5) + x, p=0.3)

    def scene(ctx):
        exe = net.simple_bind(ctx, x=(4, 6), grad_req="add")
        exe.arg_arrays[0][:] = 1.5
        exe.grad_arrays[0][:] = 0
        mx.random.seed(3)
        found = []
        for _ in range(7):
            counted.since()
            y = exe.forward(is_train=True)[0]
            seen = counted.since()
            exe.backward(mx.nd.ones(y.shape, ctx=ctx))
            found += [y.copy(), exe.grad_arrays[0].copy()]
        return [a.asnumpy() for a in found], seen

    found, seen = scene(gpus[0])
    assert seen == (0, 1)
    assert_equal(found, scene(mx.cpu())[0])


def test_draws_that_cannot_be_recorded_run_between_those_that_are(gpus, counted):
    """Rejection asks the device who is left."""

    def between(F, x):
        h = F.Dropout(x, p=0.5) + 1
        return F.Dropout(h * F.random.gamma(alpha=2, beta=1, shape=(2, 6, 5)), p=0.3)

    found = steps(between, gpus[0], n=6)
    assert counted.graphs == 2 * 4
    with replaying(gpus[0].device, False):
        assert_equal(found, steps(between, gpus[0], n=6))
    assert_equal(found, steps(between, mx.cpu(), n=6), 1e-5)


def test_more_draws_than_a_recording_has_room_for(gpus, counted, monkeypatch):
    monkeypatch.setattr(graphs, "MOST_KEYS", 2)
    found = steps(several, gpus[0])
    assert counted.graphs == 2 * 7  # before and behind the third of four draws
    assert_equal(found, steps(several, mx.cpu()))


def test_as_many_draws_as_a_recording_has_room_for(gpus, counted):
    def many(F, x):
        for _ in range(graphs.MOST_KEYS):
            x = F.Dropout(x, p=0.05)
        return x

    def scene(ctx):
        net, x = Block(many), mx.nd.ones((40,), ctx=ctx)
        net.hybridize()
        mx.random.seed(0)
        outs = []
        for _ in range(5):
            counted.since()
            with autograd.train_mode():
                outs.append(net(x))
        seen = counted.since()
        return [a.asnumpy() for a in outs], seen

    found, seen = scene(gpus[0])
    assert seen == (0, 1)
    assert_equal(found, scene(mx.cpu())[0])


def test_networks_with_dropout_train_alike(gpus, counted):
    """Also where a run is watched by a profiler, and where another batch size comes between."""

    def scene():
        mx.random.seed(0)
        net = gluon.nn.HybridSequential()
        net.add(gluon.nn.Dense(9, activation="relu"), gluon.nn.Dropout(0.5), gluon.nn.Dense(4), gluon.nn.Dropout(0.2))
        net.initialize(mx.init.Xavier(), ctx=gpus[0])
        net.hybridize()
        trainer, rs, found = gluon.Trainer(net.collect_params(), "sgd"), np.random.RandomState(0), []
        for i in range(14):
            x = mx.nd.array(rs.randn(3 if i % 5 == 4 else 8, 6), ctx=gpus[0])
            if i == 7:
                mx.profiler.set_state("run")
            counted.since()
            with autograd.record():
                y = net(x)
            seen = counted.since()
            y.backward()
            if i == 7:
                mx.profiler.set_state("stop")
                mx.profiler.dumps(reset=True)
            trainer.step(8)
            found.append(y)
        assert seen == (0, 1) or not gpus[0].device.captures
        return [a.asnumpy() for a in found]

    both_ways(gpus, scene)


def test_a_key_that_comes_later_is_no_number(gpus):
    """So that what would make numbers of it once, for all replays, fails."""
    device, key = gpus[0].device, LaterKey(0)
    for use in (hash, tuple, int, np.random.default_rng, lambda key: Rng(mx.cpu().device, key, 0).bits(2)):
        with pytest.raises(TypeError):
            use(key)
    with pytest.raises(mx.MXNetError, match="what is recorded"):
        device.rng(key, 0)
    kept = device.empty((6,), "uint64", 0)

    def draw():
        Philox(device, LaterKey(1), 0).fill("bits", np.dtype("float32"), 6, 6, kept)

    captured, _ = device.capture(0, [draw])
    out = device.empty((6,), "uint64", 0)
    replay = captured.replay([], [kept])
    with pytest.raises(IndexError):
        replay([], [out], [(1, 2, 3)])
    keys = [(7, 0, i) for i in range(4)]
    outs = [device.empty((6,), "uint64", 0) for _ in keys]
    for key, out in zip(keys, outs):
        replay([], [out], [None, key])
    for key, out in zip(keys, outs):
        np.testing.assert_array_equal(device.to_host(out), Rng(mx.cpu().device, key, 0).host_bits(6))


def test_what_cuda_is_told_of_keys(gpus, monkeypatch):
    """By the driver over CuPy, which no test runs: a node before the body, which has new words before each launch."""
    pytest.importorskip("cupy")
    from mxcore_cuda import cupy_driver

    driver, told = gpus[0].device.driver, []

    def heard(name, *arguments):
        if name == "cuGraphAddKernelNode_v2":
            arguments[0]._obj.value = 77
        if name == "cudaGraphAddChildGraphNode":
            told.append((name, [*arguments[2]], arguments[3].value))
        if "Kernel" in name:
            node = arguments[-1]._obj
            at = ctypes.cast(node.arguments, ctypes.POINTER(ctypes.c_void_p))
            words = ctypes.cast(at[0], ctypes.POINTER(ctypes.c_uint64))[:3]
            n, to = (ctypes.cast(at[i], ctypes.POINTER(ctypes.c_uint64))[0] for i in (1, 2))
            told.append((name, node.function, [*node.grid], [*node.block], words, n, to))

    for name in ("_cuda", "_cudart"):
        monkeypatch.setattr(cupy_driver, name, heard)
    monkeypatch.setattr(cupy_driver.runtime, "graphInstantiate", lambda handle: 5)
    monkeypatch.setattr(cupy_driver.runtime, "graphLaunch", lambda *to: told.append(("launched", *to)))
    monkeypatch.setattr(cupy_driver, "_destroy", lambda *what: None)
    keys = graphs.Keys(driver, 0)
    places = [keys.place(LaterKey(i)).address for i in (2, 0, 2)]
    assert places == [places[0], places[0] + 24, places[0]] and keys.numbers == [2, 0]
    opening = keys.opening._replace(function=type("Function", (), {"ptr": 11})())
    stream = type("Stream", (), {"ptr": 3})()
    body = Body(4, 1, None)
    graph = cupy_driver.Graph(stream, [], body, [], opening)
    for i in range(2):
        keys.fill([(9, 9, 9), None, (i, 1, 2)])
        graph.launch([], [])
    node = 11, [1, 1, 1], [128, 1, 1]
    assert told == [
        ("cuGraphAddKernelNode_v2", *node, [0, 0, 0], 6, places[0]),
        ("cudaGraphAddChildGraphNode", [77], 1),
        ("cuGraphExecKernelNodeSetParams_v2", *node, [0, 1, 2], 6, places[0]),
        ("launched", 5, 3),
        ("cuGraphExecKernelNodeSetParams_v2", *node, [1, 1, 2], 6, places[0]),
        ("launched", 5, 3),
    ]
    offsets = {name: getattr(cupy_driver.KernelNode, name).offset for name, _ in cupy_driver.KernelNode._fields_}
    assert ctypes.sizeof(cupy_driver.KernelNode) == 72
    assert [*offsets.values()] == [0, 8, 20, 32, 40, 48, 56, 64]  # as in cuda.h
