"""Stores over several GPUs: keys that come together are added up, updated and handed out by few launches."""

import functools

import numpy as np
import pytest

import mxcore as mx
from mxcore import gluon
from mxcore.base import MXNetError
from mxcore.kvstore.together import MOST_BYTES, shares
from mxcore_cuda.emulation.driver import Launch
from mxcore_cuda.emulation.streams import Event, Stream

KEYS = 60


@pytest.fixture
def launches(gpus, monkeypatch):
    """What is launched: the names of kernels and functions."""
    found, launch = [], Stream.launch

    def counted(stream, work):
        found.append(work.function.name if isinstance(work, Launch) else work.__qualname__)
        launch(stream, work)

    monkeypatch.setattr(Stream, "launch", counted)
    return found


def made(contexts, shapes=((4, 5),) * KEYS, dtype="float32", seed=0):
    rs = np.random.RandomState(seed)
    return [[mx.nd.array(rs.uniform(-8, 8, s), ctx=c, dtype=dtype) for c in contexts] for s in shapes]


def opened(gpus, n=KEYS, optimizer=None):
    kv = mx.kv.create("device")
    kv.init([*range(n)], [a for (a,) in made(gpus[:1], ((4, 5),) * n)])
    if optimizer is not None:
        kv.set_optimizer(optimizer)
    return kv


def scheduled(**params):
    return mx.optimizer.Adam(lr_scheduler=mx.lr_scheduler.FactorScheduler(1, 0.9, base_lr=0.1), **params)


# -- few launches --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "optimizer, kernels",
    [
        (None, {"sums": 4}),
        (lambda: mx.optimizer.SGD(momentum=0.9), {"sums": 4, "sgd_mom": 2}),
        (mx.optimizer.Adam, {"sums": 4, "adam": 2}),
        (scheduled, {"sums": 4, "adam": 2}),
    ],
    ids=["replace", "sgd", "adam", "scheduled"],
)
def test_keys_that_come_together_take_few_launches(gpus, launches, optimizer, kernels):
    kv, keys = opened(gpus, optimizer=optimizer and optimizer()), [*range(KEYS)]
    grads, outs = made(gpus, seed=1), made(gpus, seed=2)
    kv.pushpull(keys, grads, out=outs)
    launches.clear()
    kv.pushpull(keys, grads, out=outs)
    moves = [name for name in launches if "move" in name]
    assert len(moves) == 2 * KEYS  # each key goes to its home, and comes back
    waits = [name for name in launches if name.startswith(Event.__name__)]
    assert len(waits) == 20  # of each pair of devices, to and fro, for all keys at once
    rest = [name for name in launches if name not in moves and name not in waits]
    assert {name: rest.count(name) for name in rest} == kernels


def test_nobody_waits(gpus, monkeypatch):
    kv, keys = opened(gpus, optimizer=mx.optimizer.Adam()), [*range(KEYS)]
    grads, outs = made(gpus, seed=1), made(gpus, seed=2)
    kv.pushpull(keys, grads, out=outs)
    with monkeypatch.context() as patch:
        patch.setattr(Stream, "run", lambda self, until=None: pytest.fail("somebody waits"))
        kv.pushpull(keys, grads, out=outs)
    assert np.isfinite(outs[7][1].asnumpy()).all()


def deep(contexts, layers):
    net = gluon.nn.HybridSequential()
    for _ in range(layers):
        net.add(gluon.nn.Dense(4, in_units=4))
    net.initialize(ctx=contexts)
    return net


def step(net, contexts, trainer):
    with mx.autograd.record():
        losses = [net(mx.nd.ones((2, 4), ctx=ctx)).sum() for ctx in contexts]
    mx.autograd.backward(losses)
    trainer.step(2)


@pytest.mark.parametrize("on_store", [True, False])
def test_a_trainer_brings_all_keys_together(gpus, launches, on_store):
    net = deep(gpus, 20)
    trainer = gluon.Trainer(net.collect_params(), "adam", kvstore="device", update_on_kvstore=on_store)
    for _ in range(2):
        with mx.autograd.record():
            losses = [net(mx.nd.ones((2, 4), ctx=ctx)).sum() for ctx in gpus]
        mx.autograd.backward(losses)
        launches.clear()
        trainer.step(2)
    assert launches.count("sums") == 4 and launches.count("adam") == 2


def test_a_module_brings_all_keys_together(gpus, launches):
    net = mx.sym.Variable("data")
    for i in range(20):
        net = mx.sym.FullyConnected(net, num_hidden=4, name=f"f{i}")
    module = mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"), context=list(gpus))
    module.bind([("data", (4, 4))], [("softmax_label", (4,))])
    module.init_params()
    module.init_optimizer("device", "adam")
    batch = mx.io.DataBatch([mx.nd.ones((4, 4))], [mx.nd.zeros((4,))])
    for _ in range(2):
        module.forward_backward(batch)
        launches.clear()
        module.update()
    assert launches.count("sums") == 4 and launches.count("adam") == 2


# -- as one by one -------------------------------------------------------------------------------------------------
DTYPES = ("float32", "float64", "float16", "bfloat16", "int8", "uint8", "int32", "int64", "bool")


def plan(rs, contexts, n):
    """Random keys: shape, dtype, and who pushes: some devices, one of them twice, or one device alone."""
    for key in range(n):
        shape = tuple(int(rs.choice([0, 1, 3, 5, 700, 2100])) for _ in range(rs.randint(1, 3)))
        shape = shape if np.prod(shape) < 1e5 else (3, 700)
        who = [contexts[i] for i in rs.permutation(len(contexts))[: rs.randint(1, len(contexts) + 1)]]
        yield key, shape, str(rs.choice(DTYPES)), who + who[:1] * int(rs.rand() < 0.2)


def values(rs, shape, dtype, ctx):
    given = rs.uniform(-100, 100, shape) if dtype != "uint8" else rs.uniform(0, 200, shape)
    return mx.nd.array(given, ctx=ctx, dtype="float64").astype(dtype)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("host", [False, True], ids=["gpus", "mixed"])
def test_sums_are_those_of_one_by_one(gpus, seed, host):
    rs = np.random.RandomState(seed)
    contexts = [*gpus, mx.cpu()] if host else [*gpus]
    keys = list(plan(rs, contexts, 25))
    together, alone = mx.kv.create("device"), mx.kv.create("device")
    for kv in (together, alone):
        kv.init([k for k, *_ in keys], [mx.nd.empty(s, dtype=d, ctx=who[0]) for _, s, d, who in keys])
    for _ in range(2):
        pushed = [[values(rs, s, d, ctx) for ctx in who] for _, s, d, who in keys]
        outs = [[[mx.nd.empty(s, dtype=d, ctx=ctx) for ctx in contexts] for _, s, d, _ in keys] for _ in range(2)]
        together.push([k for k, *_ in keys], pushed)
        together.pull([k for k, *_ in keys], outs[0])
        for (key, *_), arrays, mine in zip(keys, pushed, outs[1]):
            alone.push(key, arrays)
            alone.pull(key, mine)
        for (_, _, dtype, _), arrays, many, one in zip(keys, pushed, *outs):
            expected = functools.reduce(np.add, [a.asnumpy() for a in arrays])
            for a, b in zip(many, one):
                assert a.asnumpy().tobytes() == b.asnumpy().tobytes()
                if not host:
                    assert a.asnumpy().tobytes() == expected.tobytes(), dtype
        for a in sum(pushed, []):  # what was pushed is used again, and no sum sees it
            a[:] = 1


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_three_terms_are_rounded_one_by_one(gpus, dtype):
    kv = mx.kv.create("device")
    rs = np.random.RandomState(0)
    parts = [values(rs, (999,), dtype, ctx) for ctx in (*gpus, *gpus, gpus[0])]
    kv.init(["a", "b"], [mx.nd.zeros((999,), dtype=dtype)] * 2)
    out = [mx.nd.zeros((999,), dtype=dtype, ctx=gpus[1]) for _ in range(2)]
    kv.pushpull(["a", "b"], [parts, parts[::-1]], out=out)
    for got, given in zip(out, (parts, parts[::-1])):
        expected = functools.reduce(np.add, [p.asnumpy() for p in given])
        assert got.asnumpy().tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    "rule",
    [
        functools.partial(mx.optimizer.SGD, momentum=0.9, learning_rate=0.1),
        functools.partial(mx.optimizer.SGD, learning_rate=0.1),
        mx.optimizer.Adam,
        mx.optimizer.LAMB,
        mx.optimizer.Nadam,
        scheduled,
    ],
    ids=["momentum", "sgd", "adam", "lamb", "nadam", "scheduled"],
)
@pytest.mark.parametrize("even", [True, False])
def test_updates_are_those_of_one_by_one(gpus, rule, even):
    """Also where a schedule goes by updates of which some keys have had more."""
    n, results = 12, []
    for together in (True, False):
        kv = mx.kv.create("device")
        shapes = [(3, 4)] * n
        dtypes = ["float16" if i % 3 == 0 else "float32" for i in range(n)]
        weights = [a.astype(d) for (a,), d in zip(made(gpus[:1], shapes), dtypes)]
        kv.init([*range(n)], weights)
        kv.set_optimizer(rule(multi_precision=True))
        outs = [[mx.nd.zeros((3, 4), ctx=ctx, dtype=d) for ctx in gpus] for d in dtypes]
        for i in range(4):
            keys = [*range(n)] if even else [k for k in range(n) if i in (0, 3) or k % 4 == i]
            grads = [[a.astype(dtypes[k]) for a in made(gpus, shapes, seed=i)[k]] for k in keys]
            some = [outs[k] for k in keys]
            if together:
                kv.pushpull(keys, grads, out=some)
            else:
                for key, arrays, out in zip(keys, grads, some):
                    kv.pushpull(key, arrays, out=out)
        results.append([a.asnumpy() for a in sum(outs, [])])
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_custom_updater_is_called_for_each_key_in_order(gpus):
    kv, seen = opened(gpus, 6), []

    def update(key, pushed, stored):
        seen.append(key)
        assert pushed.context is stored.context
        stored += pushed * 2

    kv.set_updater(update)
    before = [mx.nd.zeros((4, 5), ctx=gpus[0]) for _ in range(6)]
    kv.pull([*range(6)], before)
    grads, outs = made(gpus, ((4, 5),) * 6, seed=3), made(gpus, ((4, 5),) * 6)
    kv.pushpull([*range(6)], grads, out=outs)
    assert seen == [*range(6)]
    for old, (a, b), mine in zip(before, grads, outs):
        for out in mine:
            np.testing.assert_array_equal(out.asnumpy(), old.asnumpy() + (a.asnumpy() + b.asnumpy()) * 2)


# -- at the edges --------------------------------------------------------------------------------------------------
def test_nothing_is_pushed(gpus):
    kv = opened(gpus, 2)
    kv.push([], [])
    kv.pull([], [])
    kv.pushpull([], [], out=[])
    outs = made(gpus[:1], ((4, 5),) * 2, seed=5)
    kv.pull([0, 1], outs)
    for (a,), (b,) in zip(outs, made(gpus[:1], ((4, 5),) * 2)):
        np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())


def test_keys_of_one_device_only(gpus):
    """The store keeps what is its own, and goes to where a key comes from."""
    kv = opened(gpus, 4)
    arrays = [mx.nd.full((4, 5), i, ctx=gpus[i % 2]) for i in range(4)]
    kv.push([*range(4)], arrays)
    for a in arrays:
        a[:] = -1
    outs = made(gpus, ((4, 5),) * 4)
    kv.pull([*range(4)], outs)
    assert [(a.asnumpy() == i).all() for i, two in enumerate(outs) for a in two] == [True] * 8


def test_one_array_gets_several_values_in_order(gpus):
    kv = opened(gpus, 3)
    out, other = (mx.nd.zeros((4, 5), ctx=ctx) for ctx in gpus)
    kv.push([0, 1, 2], [[mx.nd.full((4, 5), i, ctx=ctx) for ctx in gpus] for i in range(3)])
    kv.pull([0, 1, 2], [[out, other], [other, out], [out]])
    assert (out.asnumpy() == 4).all() and (other.asnumpy() == 2).all()


def test_views_and_other_dtypes_are_pulled_into(gpus):
    kv = opened(gpus, 2)
    whole, half = mx.nd.zeros((8, 5), ctx=gpus[0]), mx.nd.zeros((4, 5), ctx=gpus[1], dtype="float16")
    outs = [[whole[:4], half], [whole[4:], mx.nd.zeros((4, 5))]]
    kv.push([0, 1], [[mx.nd.full((4, 5), i + 1, ctx=ctx) for ctx in gpus] for i in range(2)])
    kv.pull([0, 1], outs)
    assert whole.asnumpy()[:, 0].tolist() == [2] * 4 + [4] * 4
    assert (half.asnumpy() == 2).all() and (outs[1][1].asnumpy() == 4).all()


def test_a_bad_key_among_many_changes_nothing(gpus):
    kv = opened(gpus, 3)
    before, after = made(gpus[:1], ((4, 5),) * 3), made(gpus[:1], ((4, 5),) * 3)
    kv.pull([0, 1, 2], before)
    bad = [*made(gpus, ((4, 5),) * 2), [mx.nd.ones((5, 4), ctx=gpus[0])]]
    with pytest.raises(MXNetError, match=r"push of key 2: its value has shape \(4, 5\)"):
        kv.push([0, 1, 2], bad)
    kv.pull([0, 1, 2], after)
    for (a,), (b,) in zip(before, after):
        np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())


def test_compression_and_rows_go_one_by_one(gpus):
    kv = opened(gpus, 2)
    kv.set_gradient_compression({"type": "2bit", "threshold": 0.5})
    outs = made(gpus, ((4, 5),) * 2)
    kv.pushpull([0, 1], [[mx.nd.full((4, 5), 0.7, ctx=ctx) for ctx in gpus]] * 2, out=outs)
    assert all((a.asnumpy() == 1).all() for a in sum(outs, []))
    kv = mx.kv.create("device")
    kv.init(["rows", "dense"], [mx.nd.zeros((4, 2)).tostype("row_sparse"), mx.nd.zeros((4, 2))])
    rows = mx.nd.sparse.row_sparse_array((np.ones((2, 2), "float32"), [0, 3]), shape=(4, 2), ctx=gpus[1])
    kv.push(["dense", "rows"], [made(gpus, ((4, 2),))[0], [rows, rows.as_in_context(gpus[0])]])
    out = mx.nd.zeros((4, 2), ctx=gpus[0])
    kv.pull("rows", [out], ignore_sparse=False)
    assert out.asnumpy()[:, 0].tolist() == [2, 0, 0, 2]


def test_large_keys_share_no_push(monkeypatch):
    monkeypatch.setattr("mxcore.kvstore.together.MOST_BYTES", 100)
    assert MOST_BYTES > 100
    items = [(key, [mx.nd.zeros((n,))] * 2) for key, n in enumerate((5, 20, 30, 1, 1))]
    assert [[key for key, _ in some] for some in shares(items)] == [[0, 1], [2], [3, 4]]


def test_a_push_in_shares_is_as_one(gpus, monkeypatch):
    monkeypatch.setattr("mxcore.kvstore.together.MOST_BYTES", 200)
    kv = opened(gpus, 7, mx.optimizer.Adam())
    whole = opened(gpus, 7, mx.optimizer.Adam())
    outs = [made(gpus, ((4, 5),) * 7) for _ in range(2)]
    kv.pushpull([*range(7)], made(gpus, ((4, 5),) * 7, seed=1), out=outs[0])
    monkeypatch.undo()
    whole.pushpull([*range(7)], made(gpus, ((4, 5),) * 7, seed=1), out=outs[1])
    for a, b in zip(sum(outs[0], []), sum(outs[1], [])):
        np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())


# -- who takes one key at a time -------------------------------------------------------------------------------------
class Foreign:
    """A store of the least interface, which derives from nothing of ours."""

    type, rank, num_workers = "foreign", 0, 1

    def broadcast(self, key, value, out, priority=0):
        assert isinstance(key, int)
        for array in out:
            array[:] = value.as_in_context(array.context)

    def pushpull(self, key, value, out=None, priority=0):
        assert isinstance(key, int) and priority == -key
        total = sum((a.as_in_context(value[0].context) for a in value[1:]), value[0])
        self.broadcast(key, total, value if out is None else out)

    def is_capable(self, capability):
        return False


def derived():
    """A store whose class has a `pushpull` of its own."""
    base = type(mx.kv.create("device"))

    class Derived(base):
        def pushpull(self, key, value, out=None, priority=0):
            assert isinstance(key, int)
            super().pushpull(key, value, out, priority)

    return Derived()


def exchanged():
    """A store with another `pushpull` put into it."""
    kv = mx.kv.create("device")
    own = kv.pushpull

    def pushpull(key, value, out=None, priority=0):
        assert isinstance(key, int)
        own(key, value, out, priority)

    kv.pushpull = pushpull
    return kv


@pytest.mark.parametrize("make", [Foreign, derived, exchanged])
def test_stores_with_a_pushpull_of_their_own_get_one_key_at_a_time(gpus, make):
    weights = []
    for store in (make(), "device"):
        mx.random.seed(0)
        net = deep(gpus, 2)
        trainer = gluon.Trainer(net.collect_params(), "sgd", kvstore=store, update_on_kvstore=False)
        for _ in range(2):
            step(net, gpus, trainer)
        weights.append([p.data(gpus[1]).asnumpy() for p in net.collect_params().values()])
    for a, b in zip(*weights, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_trainer_without_parameters(gpus):
    for store in ("device", mx.kv.create("device")):
        trainer = gluon.Trainer([], "sgd", kvstore=store)
        trainer.step(1)
        assert trainer._kvstore is (None if isinstance(store, str) else store)
