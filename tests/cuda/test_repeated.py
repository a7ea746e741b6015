"""Recurrent layers whose calls come again are launched as one graph, and give what each launch by itself gives."""

import threading
from collections import Counter, defaultdict

import numpy as np
import pytest

import mxcore as mx
from mxcore import autograd
from mxcore_cuda import device
from mxcore_cuda import repeated as module
from mxcore_cuda.bindings import recurrent
from mxcore_cuda.emulation import memory
from mxcore_cuda.repeated import Repeated

from .test_graphs import Counted, replaying

STEPS, BATCH, INPUTS, UNITS = 4, 3, 5, 6


class Watched(Repeated):
    """With the number of recordings that were launched, by operator."""

    def __init__(self):
        super().__init__()
        self.launched = Counter()

    def __call__(self, k, what, arrays, run):
        ran = []
        super().__call__(k, what, arrays, lambda: ran.append(run()))
        self.launched[what[0]] += not ran


@pytest.fixture
def calls(monkeypatch):
    """Nothing is remembered yet."""
    fresh = Watched()
    for place in (recurrent, device):
        monkeypatch.setattr(place, "repeated", fresh)
    return fresh


@pytest.fixture
def reusing(monkeypatch):
    """Memory that was given back is that of the next array of its size, as in CuPy's pool."""
    pool, give_back = defaultdict(list), memory._give_back

    def given_back(start):
        bytes_ = memory._blocks[start][0]
        give_back(start)
        pool[bytes_.size].append(bytes_)

    monkeypatch.setattr(memory, "_give_back", given_back)
    monkeypatch.setattr(memory, "_fresh", lambda size: pool[size].pop() if pool[size] else np.empty(size, np.uint8))


@pytest.fixture
def counted(gpus, calls, monkeypatch):
    return Counted(gpus[0].device.driver, monkeypatch)


class Net:
    """A network by its operator, with arrays that stay where they are."""

    def __init__(self, ctx, mode="lstm", batch=BATCH, seed=0):
        self.ctx, self.mode, self.rs = ctx, mode, np.random.RandomState(seed)
        size = {"lstm": 4, "gru": 3}[mode] * UNITS * (INPUTS + UNITS + 2)
        self.x, self.w, self.h = (self.drawn(s) for s in [(STEPS, batch, INPUTS), (size,), (1, batch, UNITS)])
        self.more = [self.drawn((1, batch, UNITS))] if mode == "lstm" else []
        self.y = mx.nd.zeros((STEPS, batch, UNITS), ctx=ctx)

    def drawn(self, shape):
        return mx.nd.array(self.rs.uniform(-1, 1, shape), ctx=self.ctx)

    def change(self):
        self.x[:] = self.drawn(self.x.shape)
        self.w[:] = self.drawn(self.w.shape)

    def given(self):
        return self.x, self.w, self.h, *self.more

    def __call__(self, **more):
        return mx.nd.RNN(*self.given(), mode=self.mode, state_size=UNITS, num_layers=1, **more)

    def predict(self):
        self(out=self.y)
        return self.y.asnumpy()


@pytest.mark.parametrize("mode", ["lstm", "gru"])
def test_what_comes_again_is_one_graph_and_sees_what_arrays_hold_now(gpus, counted, mode):
    """What it keeps for a backward pass is new each time, in one of few places."""
    nets = [Net(ctx, mode) for ctx in (gpus[0], mx.cpu())]
    found, launches = [], []
    while len(found) < 30 or launches.count((0, 1)) <= 5 and len(found) < 300:
        for net in nets:
            net.change()
        counted.since()
        found.append([net.predict() for net in nets])
        launches.append(counted.since())
    for ours, expected in found:
        np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-6)
    assert not np.array_equal(found[0][0], found[3][0])
    assert launches[0] == (STEPS + 1, 0)  # each step and the output by themselves, and products
    assert launches.count((0, 1)) > 5


def test_other_arrays_are_another_call(gpus, counted, calls):
    first, second = Net(gpus[0]), Net(gpus[0], seed=1)
    for _ in range(10):
        first.predict()
    assert calls.graphs
    counted.since()
    ours = second.predict()
    assert counted.since()[1] == 0
    expected = Net(mx.cpu(), seed=1).predict()
    np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", ["lstm", "gru"])
def test_training_is_the_same_with_recordings_and_without(gpus, calls, mode):
    """The same arrays, and new ones whose places may be those of others before."""
    seen = []
    for on in (True, False):
        with replaying(gpus[0].device, on):
            net = Net(gpus[0], mode)
            for a in net.given():
                a.attach_grad()
            found = []
            for _ in range(8):
                net.change()
                with autograd.record():
                    y = net()
                    loss = (y * y).sum()
                loss.backward()
                found += [y.asnumpy(), net.x.grad.asnumpy(), net.w.grad.asnumpy(), net.h.grad.asnumpy()]
            seen.append(found)
    for a, b in zip(*seen, strict=True):
        assert np.array_equal(a, b) and np.abs(a).max() > 0


def test_a_recording_is_given_back_with_the_memory_in_reserve(gpus, calls, reusing):
    net = Net(gpus[0])
    for _ in range(10):
        expected = net.predict()
    assert calls.graphs
    gpus[0].empty_cache()
    assert not calls.graphs
    for _ in range(10):
        assert np.array_equal(net.predict(), expected)
    assert calls.graphs


def test_calls_that_hardly_come_again_are_not_recorded_for_ever(gpus, calls, monkeypatch):
    """Recordings that are hardly launched would cost more than they save."""
    monkeypatch.setattr(module, "_PART", 0)
    net = Net(gpus[0])
    for _ in range(20 * module._AHEAD):
        net.more = [net.drawn(net.h.shape)]  # kept until the next one is there
        net.predict()
    assert 0 < len(calls.graphs) <= module._AHEAD


def test_calls_that_come_again_are_recorded_whatever_was_before(gpus, calls):
    """Many that came twice, as those of another length of sequences do."""
    nets = [Net(gpus[0], seed=i) for i in range(module._AHEAD + 5)]
    for net in nets:
        net.predict()
        net.predict()
    steady = Net(gpus[0], seed=99)
    for _ in range(40):
        steady.predict()
    before = len(calls.graphs)
    assert any(steady.x._data.ptr == place[0] for call in calls.graphs for place in call[-1] if place)
    gpus[0].empty_cache()
    for _ in range(100):  # until the host's memory, which stands for the pool's, gives the same places again
        steady.predict()
        if calls.graphs:
            break
    assert before and calls.graphs


@pytest.mark.parametrize("mode", ["lstm", "gru"])
def test_backward_passes_are_launched_as_one_too(gpus, calls, reusing, mode):
    """As on a GPU, whose pool gives the arrays of each step of a training loop the places of the step before."""
    found, nets = [], [Net(ctx, mode) for ctx in (gpus[0], mx.cpu())]
    for net in nets:
        for a in net.given():
            a.attach_grad()
    for _ in range(30):
        for net in nets:
            net.change()
            with autograd.record():
                y = net()
                loss = (y * y).sum()
            loss.backward()
            found.append([y.asnumpy(), *(a.grad.asnumpy() for a in net.given())])
    assert calls.launched["RNN"] > 3 and calls.launched["_backward_RNN"] > 3
    for ours, expected in zip(found[::2], found[1::2], strict=True):
        for a, b in zip(ours, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_an_interrupt_while_a_call_is_recorded(gpus, calls, monkeypatch):
    net, expected = Net(gpus[0]), Net(mx.cpu()).predict()
    driver, real, left = gpus[0].device.driver, recurrent._forward, [1]

    def forward(*args):
        if left and driver.capturing():
            left.clear()
            raise KeyboardInterrupt
        real(*args)

    monkeypatch.setattr(recurrent, "_forward", forward)
    with pytest.raises(KeyboardInterrupt):
        for _ in range(30):
            net.predict()
    assert not driver.capturing()
    for _ in range(10):
        np.testing.assert_allclose(net.predict(), expected, rtol=1e-5, atol=1e-6)
    assert calls.graphs


def test_a_call_in_the_middle_of_another(gpus, calls, monkeypatch):
    """By a signal handler, say, wherever one looks for a recording."""
    nets, expected = [Net(gpus[0], seed=i) for i in range(2)], [Net(mx.cpu(), seed=i).predict() for i in range(2)]
    real, found, within = module._remember, [], []

    def remember(*args):
        if not within:
            within.append(True)
            found.append(nets[1].predict())
            within.clear()
        real(*args)

    monkeypatch.setattr(module, "_remember", remember)
    for _ in range(12):
        np.testing.assert_allclose(nets[0].predict(), expected[0], rtol=1e-5, atol=1e-6)
    assert len(found) >= 12 and all(np.allclose(y, expected[1], rtol=1e-5, atol=1e-6) for y in found)
    assert calls.graphs


def test_the_oldest_recordings_go(gpus, calls, monkeypatch):
    monkeypatch.setattr(module, "_MOST", 2)
    nets = [Net(gpus[0], seed=i) for i in range(3)]
    for net in nets:
        for _ in range(10):
            net.predict()
    assert len(calls.graphs) == 2
    expected = [Net(mx.cpu(), seed=i).predict() for i in range(3)]
    for net, y in zip(nets, expected):
        np.testing.assert_allclose(net.predict(), y, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("error", [MemoryError, RuntimeError])
def test_where_there_is_no_room_for_a_recording(gpus, calls, monkeypatch, error):
    def graph(*args):
        raise error("a test")

    monkeypatch.setattr(type(gpus[0].device.driver), "graph", graph)
    net, expected = Net(gpus[0]), Net(mx.cpu()).predict()
    for _ in range(10):
        np.testing.assert_allclose(net.predict(), expected, rtol=1e-5, atol=1e-6)
    assert not calls.graphs


def test_nothing_is_recorded_where_graphs_are_off(gpus, counted, calls):
    with replaying(gpus[0].device, False):
        net = Net(gpus[0])
        for _ in range(4):
            net.predict()
    assert counted.since()[1] == 0 and not calls.graphs


def test_hybridised_blocks_record_it_as_a_part_of_theirs(gpus, calls):
    layer = mx.gluon.rnn.LSTM(UNITS, input_size=INPUTS)
    layer.initialize(ctx=gpus[0])
    layer.hybridize(static_alloc=True, static_shape=True)
    x = mx.nd.ones((STEPS, BATCH, INPUTS), ctx=gpus[0])
    found = [layer(x).asnumpy() for _ in range(5)]
    assert all(np.array_equal(found[0], y) for y in found) and np.abs(found[0]).max() > 0


def test_threads_have_calls_of_their_own(gpus, calls):
    expected = [Net(mx.cpu(), seed=i).predict() for i in range(3)]
    nets, wrong = [Net(gpus[0], seed=i) for i in range(3)], []

    def work(i):
        for _ in range(15):
            if not np.allclose(nets[i].predict(), expected[i], rtol=1e-5, atol=1e-6):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong and len(calls.graphs) >= 3
