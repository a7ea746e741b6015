"""Stores of one process: many devices, arrays used again at once, threads, heavy and small values."""

import functools
import threading

import numpy as np
import pytest

import mxcore as mx

from .model import Grad, Model, updater

SMALL, HEAVY = (5, 3), (1100, 1000)  # the engine's workers take what is heavy


@pytest.fixture(params=("local", "device"))
def kv(request):
    return mx.kv.create(request.param)


@pytest.fixture(params=("float32", "float64", "float16", "int32"))
def dtype(request):
    return request.param


def contexts(n):
    return [mx.cpu(i) for i in range(n)]


def draw(rng, shape, dtype="float32"):
    return (rng.standard_normal(shape) * 8).astype(dtype)


@pytest.mark.parametrize("shape", [SMALL, HEAVY, (0, 4), (1,)])
@pytest.mark.parametrize("devices", [1, 2, 3, 5])
def test_sums_have_the_bits_of_adding_one_by_one(kv, dtype, devices, shape):
    rng = np.random.default_rng(devices)
    kv.init("w", mx.nd.empty(shape, dtype=dtype))
    parts = [draw(rng, shape, dtype) for _ in range(devices)]
    kv.push("w", [mx.nd.array(p, ctx=c, dtype=dtype) for p, c in zip(parts, contexts(devices))])
    outs = [mx.nd.empty(shape, ctx=c, dtype=dtype) for c in contexts(devices)]
    kv.pull("w", out=outs)
    for out in outs:
        np.testing.assert_array_equal(out.asnumpy(), functools.reduce(np.add, parts))


@pytest.mark.parametrize("shapes", [[SMALL] * 4, [HEAVY, SMALL, HEAVY]], ids=["small", "heavy"])
@pytest.mark.parametrize("devices", [2, 3])
def test_steps_with_arrays_that_are_used_again(kv, devices, shapes):
    """What was pushed is overwritten at once, what was pulled is changed by its taker, and no step sees it."""
    rng = np.random.default_rng(0)
    keys = list(range(len(shapes)))
    model = Model({k: draw(rng, s) for k, s in zip(keys, shapes)}, "momentum", None, each=True)
    kv.init(keys, [mx.nd.array(v) for v in model.values.values()])
    kv.set_optimizer(updater("momentum"))
    grads, outs = ([[mx.nd.empty(s, ctx=c) for c in contexts(devices)] for s in shapes] for _ in range(2))
    for step in range(4):
        for key, shape in enumerate(shapes):
            parts = [draw(rng, shape) for _ in range(devices)]
            model.push(key, Grad(functools.reduce(np.add, parts)))
            for g, p in zip(grads[key], parts):
                g[:] = p
        kv.push(keys, grads, priority=-step)
        for g in sum(grads, []):
            g[:] = np.nan
        kv.pull(keys, out=outs, priority=step)
        seen = [[o.copy() for o in many] for many in outs]
        for o in sum(outs, []):
            o *= 0
        for key, many in enumerate(seen):
            for o in many:
                np.testing.assert_allclose(o.asnumpy(), model.values[key], rtol=1e-5, atol=1e-5)


def test_an_array_that_is_still_computed(kv):
    kv.init("w", mx.nd.zeros(HEAVY))
    for step in range(3):
        parts = [mx.nd.full(HEAVY, step, ctx=c) * 2 + 1 for c in contexts(3)]
        kv.pushpull("w", parts)
        for p in parts:
            p += 1
        assert all((p.asnumpy() == 3 * (2 * step + 1) + 1).all() for p in parts)


def test_what_an_updater_keeps_is_its_own(kv):
    kept = []
    kv.init("w", mx.nd.zeros(HEAVY))
    kv._set_updater(lambda key, pushed, stored: kept.append(pushed))
    for step in range(4):
        kv.push("w", [mx.nd.full(HEAVY, step, ctx=c) for c in contexts(2)])
    assert [k.asnumpy().max() for k in kept] == [0, 2, 4, 6]


def test_views_and_transposed_memory_are_pushed_and_pulled(kv):
    base = np.arange(400 * 300, dtype="float32").reshape(400, 300)
    kv.init("w", mx.nd.zeros((300, 400)))
    turned = mx.nd.from_numpy(base.copy(), zero_copy=True).T
    halves = mx.nd.array(np.concatenate([base.T, base.T]), ctx=mx.cpu(1))
    kv.push("w", [turned, halves[300:]])
    kv.pull("w", out=halves[:300])
    np.testing.assert_array_equal(halves.asnumpy(), np.concatenate([2 * base.T, base.T]))


@pytest.mark.parametrize("shape", [SMALL, HEAVY])
def test_threads_share_a_store(kv, shape):
    """Whole numbers, so that the order of the threads does not matter; what is pulled is one step of some order."""
    kv.init("w", mx.nd.zeros(shape))
    kv.set_optimizer(mx.optimizer.SGD(learning_rate=1, rescale_grad=-1))
    failed = []

    def work(index):
        grads = [mx.nd.full(shape, 1, ctx=c) for c in contexts(2)]
        outs = [mx.nd.empty(shape, ctx=c) for c in contexts(2)]
        try:
            for _ in range(5):
                kv.push("w", grads)
                kv.pull("w", out=outs)
                for o in outs:
                    value = o.asnumpy()
                    assert value.min() == value.max() and value.min() % 2 == 0
        except BaseException as e:
            failed.append(e)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed
    out = mx.nd.empty(shape)
    kv.pull("w", out=out)
    assert (out.asnumpy() == 30).all()


@pytest.mark.parametrize("devices", [2, 4])
def test_rows_are_added_up_and_move_a_value(kv, devices):
    rng, shape = np.random.default_rng(devices), (50, 4)
    value = draw(rng, shape)
    kv.init("w", mx.nd.array(value))
    kv.set_optimizer(mx.optimizer.SGD(learning_rate=0.5))
    for _ in range(3):
        grads = []
        for c in contexts(devices):
            rows = np.unique(rng.integers(0, 50, 20))
            data = draw(rng, (len(rows), 4))
            value[rows] -= np.float32(0.5) * data
            grads.append(mx.nd.sparse.row_sparse_array((data, rows), shape=shape, ctx=c))
        outs = [mx.nd.empty(shape, ctx=c) for c in contexts(devices)]
        kv.pushpull("w", grads, out=outs)
        for g in grads:
            g[:] = 0
        for out in outs:
            np.testing.assert_allclose(out.asnumpy(), value, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("stype", ["default", "row_sparse"])
def test_sparse_values_are_handed_out_as_copies(kv, stype):
    kv.init("w", mx.nd.ones(SMALL).tostype("row_sparse"))
    out = mx.nd.zeros(SMALL, ctx=mx.cpu(1)).tostype(stype)
    kv.pull("w", out=out, ignore_sparse=False)
    out[:] = 0
    kv.pull("w", out=out, ignore_sparse=False)
    assert out.stype == stype and (out.asnumpy() == 1).all()


@pytest.mark.parametrize("scheduled", [False, True])
def test_values_pushed_together_move_as_one_by_one(kv, scheduled):
    """Also where a schedule goes by updates, and values differ in how often they were pushed."""
    shapes = [(1 << 15,), SMALL, (300, 200), (1 << 16,), SMALL, (40_000,)]
    keys, rng = list(range(len(shapes))), np.random.default_rng(0)
    grads = [mx.nd.array(draw(rng, s)) for s in shapes]
    alone = mx.kv.create("local")
    for store in (kv, alone):
        store.init(keys, [mx.nd.ones(s) for s in shapes])
        schedule = mx.lr_scheduler.FactorScheduler(1, 0.5, base_lr=0.5) if scheduled else None
        store.set_optimizer(mx.optimizer.SGD(learning_rate=0.5, momentum=0.9, wd=0.1, lr_scheduler=schedule))
        store.push(keys[3], grads[3])
    for _ in range(2):
        kv.push(keys, grads)
        for key, grad in zip(keys, grads):
            alone.push(key, grad)
    for key, shape in zip(keys, shapes):
        outs = [mx.nd.empty(shape) for _ in range(2)]
        kv.pull(key, out=outs[0])
        alone.pull(key, out=outs[1])
        np.testing.assert_array_equal(outs[0].asnumpy(), outs[1].asnumpy())
