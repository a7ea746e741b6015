"""Weights in the library's layout are kept while they stay as they are, and no longer."""

import gc
import itertools
import threading
import time
import weakref

import pytest

import mxcore as mx
from mxcore.executor import CachedOp, passes_off
from mxcore_onednn import keeping, plan, plans
from tests.cpu_onednn.support import check_close, forget, numbers, reference, watch_kept

PARAMS = {"kernel": (3, 3), "num_filter": 16}
CONVOLUTION = mx.sym.Convolution(mx.sym.Variable("x"), mx.sym.Variable("w"), no_bias=True, **PARAMS)


@pytest.fixture
def reorders(provider, monkeypatch):
    """Of each call of the library: whether it made what it keeps, or had it."""
    return watch_kept(monkeypatch, {True: "kept", False: "made"}.get)


@pytest.fixture
def net():
    net = mx.gluon.nn.Conv2D(16, 3, in_channels=8)
    net.initialize(mx.init.Normal(1))
    net.hybridize()
    return net


@pytest.fixture
def x():
    return mx.nd.array(numbers(3, (2, 8, 9, 9))[0])


def wanted(x, *weights):
    params = PARAMS if len(weights) > 1 else {**PARAMS, "no_bias": True}
    return reference("Convolution", params, *(a.asnumpy() for a in (x, *weights)))[0]


WRITES = {
    "nobody": lambda w: None,
    "an assignment": lambda w: w.__setitem__(0, 3),
    "a copy": lambda w: (w * 2).copyto(w),
    "a view": lambda w: w[1:2].__setitem__(slice(None), 4),
    "another shape": lambda w: w.reshape((-1,)).__iadd__(1),
    "an optimizer": lambda w: mx.nd.sgd_update(w, mx.nd.ones(w.shape), lr=0.5, out=w),
}


def test_until_somebody_writes(reorders, net, x):
    for who, write in WRITES.items():
        write(net.weight.data())
        del reorders[:]
        for _ in range(3):
            check_close([net(x).asnumpy()], [wanted(x, net.weight.data(), net.bias.data())])
        # Memory for it is there from the second call on.
        assert reorders == (["made", "made", "kept"] if who == "nobody" else ["made", "kept", "kept"]), who


def test_another_array_is_another_weight(reorders, x):
    op, weights = CachedOp(CONVOLUTION), [mx.nd.array(a) for a in numbers(4, *[(16, 8, 3, 3)] * 2)]
    for w in (*weights, *weights, weights[1]):
        check_close([op(x, w).asnumpy()], [wanted(x, w)])
    assert reorders == ["made"] * 5


def test_open_memory_is_not_kept(reorders, x):
    """Of whom others may write to nobody knows whether it stays."""
    memory = numbers(4, (16, 8, 3, 3))[0]
    shared = mx.nd.array(memory)
    opened = mx.nd.from_dlpack(shared.to_dlpack_for_write())
    for w in (mx.nd.from_numpy(memory), shared, opened):
        op = CachedOp(CONVOLUTION)
        for _ in range(4):
            check_close([op(x, w).asnumpy()], [wanted(x, w)])
            if w is not opened:
                opened[:] += 1
    assert reorders == ["made"] * 12


def test_training_keeps_nothing(reorders, net, x):
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    for _ in range(3):
        with mx.autograd.record():
            y = net(x)
        check_close([y.asnumpy()], [wanted(x, net.weight.data(), net.bias.data())])
        y.backward()
        trainer.step(2)
    assert len(reorders) > 3 and "kept" not in reorders
    del reorders[:]
    for _ in range(3):
        check_close([net(x).asnumpy()], [wanted(x, net.weight.data(), net.bias.data())])
    assert reorders == ["made", "made", "kept"]


def test_executors_keep_too(reorders, x):
    w = mx.nd.array(numbers(5, (16, 8, 3, 3))[0])
    bound = CONVOLUTION.bind(mx.cpu(), {"x": x, "w": w})
    first = [bound.forward()[0].asnumpy() for _ in range(3)]
    check_close([first[2]], [wanted(x, w)])
    w[:] = 0
    assert (first[0] == first[2]).all() and not bound.forward()[0].asnumpy().any()
    assert reorders == ["made", "made", "kept", "made"]


def test_a_weight_that_is_an_output_too(reorders, x):
    w = mx.nd.array(numbers(4, (16, 8, 3, 3))[0])
    weight = mx.sym.Variable("w")
    y = mx.sym.Convolution(mx.sym.Variable("x"), weight, no_bias=True, **PARAMS)
    op = CachedOp(mx.sym.Group([y, weight]))
    for _ in range(3):
        y, same = op(x, w)
        check_close([y.asnumpy(), same.asnumpy()], [wanted(x, w), w.asnumpy()])
    assert reorders == ["made", "made", "kept"]


def test_sizes_share_what_is_kept(reorders, net, x):
    """One copy of the weights, however many programs there are; nobody sees what another one has made of older ones."""
    w, b = net.weight.data(), net.bias.data()
    others = [mx.nd.array(numbers(i, (i, 8, 9, 7 + i))[0]) for i in (1, 3, 4)]
    gc.collect()
    before = {*keeping._shelves.values()}
    for _ in range(2):
        for data in (x, *others):
            for _ in range(3):
                check_close([net(data).asnumpy()], [wanted(data, w, b)])
        for data in (x, *others):
            check_close([net(data).asnumpy()], [wanted(data, w, b)])
        assert {*reorders[-4:]} == {"kept"}
        assert len({*keeping._shelves.values()} - before) == 1
        w[:] *= 2
    assert len({id(s.copy) for s in {*keeping._shelves.values()} - before}) == 1


def test_other_views_and_functions_share_nothing(provider, x):
    """Two halves of one array, and two normalizations of the same weights."""
    y = mx.sym.Convolution(mx.sym.Variable("x"), mx.sym.Variable("w"), no_bias=True, **PARAMS)
    ops = [CachedOp(mx.sym.BatchNorm(y, eps=eps, fix_gamma=fixed)) for eps in (1e-3, 0.5) for fixed in (True, False)]
    both = mx.nd.array(numbers(5, (32, 8, 3, 3))[0])
    stats = [mx.nd.array(abs(a) + 0.1) for a in numbers(6, *[(16,)] * 4)]
    for w in (both[:16], both[16:], both[:16].copy()):
        for op in ops * 2:
            found = [op(x, w, *stats).asnumpy() for _ in range(3)]
            with passes_off("onednn_layers"):
                want = CachedOp(op.symbol)(x, w, *stats).asnumpy()
            check_close(found, [want] * 3)


def test_a_transposed_one_keeps_too(reorders, x):
    symbol = mx.sym.Deconvolution(mx.sym.Variable("x"), mx.sym.Variable("w"), no_bias=True, **PARAMS)
    op, w = CachedOp(symbol), mx.nd.array(numbers(4, (8, 16, 3, 3))[0])
    found = [op(x, w).asnumpy() for _ in range(3)]
    check_close(found, reference("Deconvolution", PARAMS, x.asnumpy(), w.asnumpy()) * 3)
    assert reorders == ["made", "made", "kept"]


def test_plans_and_what_they_keep_go_with_their_users(x):
    """By reference counts: nothing waits for the garbage collector."""
    made = plans.plan_for(("a test",), lambda lib: plan.Plan(lib, []).done(), 0)
    made.run()
    gone = weakref.ref(made)
    gc.disable()
    try:
        forget()
        del made
        assert gone() is None
    finally:
        gc.enable()


def test_plans_are_forgotten_while_others_are_made(restless):
    """What runs when a plan goes gives way to threads that put in others."""
    end, failed = threading.Event(), []

    def work():
        try:
            for i in itertools.count():
                if end.is_set():
                    return
                plans.plan_for(("a test", i % 50), lambda lib: plan.Plan(lib, []).done(), 0)
        except BaseException as e:
            failed.append(e)

    threads = [threading.Thread(target=work) for _ in range(2)]
    [t.start() for t in threads]
    for _ in range(300):
        forget()
        time.sleep(0.0005)
    end.set()
    [t.join() for t in threads]
    forget()
    assert failed == []


def test_plans_are_bounded(monkeypatch):
    monkeypatch.setattr(plans, "_LIMIT", 4)
    for i in range(20):
        plans.plan_for(("a test", i), lambda lib: plan.Plan(lib, []).done(), 0)
    assert len(plans._plans) <= 4 and any("a test" in key for key in plans._plans)
