"""What is kept for shapes, chains and sub-graphs that do not come again is bounded."""

import gc
import weakref

import numpy as np

import mxcore as mx
from mxcore.executor import cached_op, rooms
from mxcore.executor.replayed import instantiate
from mxcore.gluon import nn
from mxcore.plugin import Fused
from mxcore_cpu import fused


def test_sizes_of_a_chain_are_forgotten():
    net = nn.HybridSequential()
    net.add(nn.HybridLambda(lambda F, x: F.tanh(x * 2) + x))
    net.initialize()
    net.hybridize()
    for n in range(1024, 1024 + fused._LIMIT + 100):
        y = net(mx.nd.ones((n,)))
    assert np.allclose(y.asnumpy(), np.tanh(2) + 1, atol=1e-6)
    assert len(fused._compiled) <= fused._LIMIT


def test_a_chain_that_was_forgotten_is_made_again_from_the_same_code():
    def made(n):
        return fused.compile_chain(Fused(["x"], ["x * 3 + 1"], pattern=("a", "a"), dims=(n,)))

    first = made(5)
    for n in range(6, 6 + fused._LIMIT):
        made(n)
    again = made(5)
    assert again is not first and again._code is first._code
    x, y = np.ones(5, "f4"), np.empty(5, "f4")
    again.bind([y], [x])()
    assert y.tolist() == [4] * 5


def test_the_graph_of_a_loop_goes_with_its_symbol():
    out, states = mx.sym.contrib.foreach(lambda d, s: (d + s, d + s), mx.sym.var("d"), mx.sym.var("s"))
    graph = weakref.ref(next(iter(out._heads[0][0].params.fn.nodes)))
    del out, states
    gc.collect()
    assert graph() is None


def test_memory_goes_with_a_signature_that_is_dropped(monkeypatch):
    """By reference counts: no collector of cycles knows how much hangs on a few objects."""
    net = nn.HybridSequential()
    net.add(nn.Dense(4, activation="relu", in_units=3), nn.Dense(2, in_units=4))
    net.initialize()
    net.hybridize()
    made = []

    def counted(*args):
        found = instantiate(*args)
        made.append(weakref.ref(found))
        return found

    monkeypatch.setattr(rooms, "instantiate", counted)
    monkeypatch.setattr(cached_op, "_MOST", cached_op._LIMIT)
    gc.collect()
    gc.disable()
    try:
        for n in range(cached_op._LIMIT + 10, 0, -1):  # the first need most, and make place for nobody
            net(mx.nd.ones((n, 3)))
            with mx.autograd.record():
                y = net(mx.nd.ones((n, 3)))
            y.backward()
        assert 0 < sum(ref() is not None for ref in made) <= cached_op._LIMIT
    finally:
        gc.enable()
