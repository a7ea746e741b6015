"""The bound call: who watches, and what is true of an operator however it is run."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import mxcore as mx
from mxcore._core import call
from mxcore._core.engine import engine
from mxcore.executor import CachedOp


@pytest.fixture
def seen():
    """What an observer saw: (name, node, outputs of the kernel it was given)."""
    found = []

    def observer(fn, name, ctx, ins, outs, node):
        def watched(*args):
            found.append((name, node, str(ctx)))
            return fn(*args)

        return watched

    call.watch(observer)
    yield found
    call.unwatch(observer)


def graph():
    x = mx.sym.Variable("x")
    return mx.sym.elemwise_add(mx.sym.softmax(x, name="soft"), x, name="sum")


def test_observers_see_eager_calls(seen):
    a = mx.nd.ones((2, 3))
    seen.clear()
    mx.nd.softmax(a)
    assert seen == [("softmax", None, "cpu(0)")]


def test_observers_see_the_short_way_of_arithmetic(seen):
    a = mx.nd.ones((2, 3))
    seen.clear()
    for _ in range(3):
        a + a
    assert [name for name, *_ in seen] == ["elemwise_add"] * 3


def test_observers_see_gradients(seen):
    a = mx.nd.ones((2, 3))
    a.attach_grad()
    seen.clear()
    with mx.autograd.record():
        y = mx.nd.softmax(a)
    y.backward()
    assert seen[0] == ("softmax", None, "cpu(0)") and len(seen) > 1


def test_observers_see_the_steps_of_programs_that_were_bound_before():
    op, x = CachedOp(graph()), mx.nd.ones((2, 3))
    op(x)
    found = []

    def observer(fn, name, ctx, ins, outs, node):
        return lambda *args: (found.append(node), fn(*args))[1]

    try:
        call.watch(observer)
        op(x)
        op(x)
    finally:
        call.unwatch(observer)
    op(x)
    assert found.count("soft") == 2


def test_observers_see_fused_updates(seen):
    optimizer = mx.optimizer.SGD(learning_rate=0.1, momentum=0.9)
    w, g = mx.nd.ones((3,)), mx.nd.ones((3,))
    state = optimizer.create_state(0, w)
    for _ in range(4):
        optimizer.update(0, w, g, state)
    assert [name for name, *_ in seen].count("sgd_mom_update") == 4


def test_several_observers_see_the_same_call():
    found, a = [], mx.nd.ones((2,))

    def observer(mark):
        def watch(fn, name, ctx, ins, outs, node):
            return lambda *args: (found.append(mark), fn(*args))[1]

        return watch

    inner, outer = observer("inner"), observer("outer")
    call.watch(inner)
    call.watch(outer)
    try:
        mx.nd.tanh(a)
        call.unwatch(inner)
        mx.nd.tanh(a)
    finally:
        call.unwatch(inner)
        call.unwatch(outer)
    mx.nd.tanh(a)
    assert found == ["outer", "inner", "outer"]


def test_nobody_watches_afterwards(seen):
    a, net = mx.nd.ones((2, 3)), CachedOp(graph())
    optimizer, w = mx.optimizer.SGD(learning_rate=0.1), mx.nd.ones((3,))

    def work():
        a + a
        a * 2
        mx.nd.softmax(a)
        net(a)
        optimizer.update(0, w, w, None)

    for _ in range(2):
        work()
    n = len(seen)
    (observer,) = call.observers
    call.unwatch(observer)
    for _ in range(2):
        work()
    assert n >= 8 and len(seen) == n


@pytest.mark.parametrize("name", ["elemwise_add", "softmax", "FullyConnected", "split", "sgd_mom_update", "BatchNorm"])
def test_every_way_gives_the_same_bits(name):
    """Eager, into given arrays, by a worker, and in a program."""
    rng = np.random.default_rng(0)
    kwargs, shapes, names = {
        "elemwise_add": ({}, [(4, 6), (4, 6)], ["lhs", "rhs"]),
        "softmax": ({}, [(4, 6)], ["data"]),
        "FullyConnected": ({"num_hidden": 3}, [(4, 6), (3, 6), (3,)], ["data", "weight", "bias"]),
        "split": ({"num_outputs": 2}, [(4, 6)], ["data"]),
        "sgd_mom_update": ({"lr": 0.1, "momentum": 0.9}, [(4, 6)] * 3, ["weight", "grad", "mom"]),
        "BatchNorm": (
            {"fix_gamma": False},
            [(4, 6), (6,), (6,), (6,), (6,)],
            ["data", "gamma", "beta", "moving_mean", "moving_var"],
        ),
    }[name]
    values = [rng.random(s, dtype=np.float32) + 0.5 for s in shapes]
    op = getattr(mx.nd, name)

    def arrays():
        return [mx.nd.array(v) for v in values]

    def listed(out, ins):
        outs = out if isinstance(out, (list, tuple)) else [out]
        return [x.asnumpy() for x in (*outs, *ins)]

    ins = arrays()
    expected = listed(op(*ins, **kwargs), ins)
    ins = arrays()
    outs = [mx.nd.zeros(e.shape) for e in expected[: len(expected) - len(ins)]]
    got = listed(op(*ins, out=outs[0] if len(outs) == 1 else outs, **kwargs), ins)
    for e, g in zip(expected, got):
        np.testing.assert_array_equal(e, g)
    ins, gate = arrays(), threading.Event()
    engine.it.push(mx.cpu(), gate.wait, [], [x._st for x in ins], "what the inputs wait for")
    pending = op(*ins, **kwargs)
    gate.set()
    for e, g in zip(expected, listed(pending, ins)):
        np.testing.assert_array_equal(e, g)
    ins = arrays()
    symbol = getattr(mx.sym, name)(*[mx.sym.Variable(n) for n in names], **kwargs)
    got = listed(CachedOp(symbol)(*ins), ins)
    for e, g in zip(expected, got):
        np.testing.assert_array_equal(e, g)
