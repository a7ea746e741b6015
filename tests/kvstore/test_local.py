"""What the stores of one process do with values: add up, replace, update, hand out."""

import gc
import threading
import time

import numpy as np
import pytest

import mxcore as mx

from .kinds import LOCAL, LONE, opened

TYPES = ("local", "local_update_cpu", "local_allreduce_cpu", "device", "local_allreduce_device")
SHAPE = (2, 3)
CONTEXTS = [mx.cpu(i) for i in range(3)]

each_type = pytest.mark.parametrize("kv", TYPES, indirect=True)


@pytest.fixture(params=("local", "device"))
def kv(request):
    return mx.kv.create(request.param)


def full(value, ctx=None, shape=SHAPE):
    return mx.nd.full(shape, value, ctx=ctx)


def pulled(kv, key, ctx=None, shape=SHAPE):
    out = mx.nd.empty(shape, ctx=ctx)
    kv.pull(key, out=out)
    return out.asnumpy()


@each_type
def test_facts(kv):
    assert kv.type in TYPES and kv.rank == 0 and kv.num_workers == 1
    assert kv.is_capable("optimizer") and kv.barrier() is None
    assert isinstance(kv, mx.kv.KVStore) and isinstance(kv, mx.kv.KVStoreBase)


@each_type
def test_what_devices_push_is_added_up_and_replaces(kv):
    kv.init(3, full(7))
    assert (pulled(kv, 3) == 7).all()
    kv.push(3, full(5))
    assert (pulled(kv, 3) == 5).all()
    kv.push(3, [full(i + 1, c) for i, c in enumerate(CONTEXTS)])
    assert (pulled(kv, 3, mx.cpu(2)) == 6).all()


def test_lists_of_keys_and_of_devices(kv):
    keys = ["a", "b"]
    kv.init(keys, [full(0), full(0, shape=(4,))])
    kv.push(keys, [[full(1, c) for c in CONTEXTS], full(2, shape=(4,))], priority=-1)
    outs = [[full(0, c) for c in CONTEXTS], full(0, shape=(4,))]
    kv.pull(keys, out=outs, priority=3)
    assert all((o.asnumpy() == 3).all() and o.context == c for o, c in zip(outs[0], CONTEXTS))
    assert (outs[1].asnumpy() == 2).all()


def test_a_key_given_twice_is_added_up(kv):
    kv.init(3, full(0))
    kv.push((3, 3), (full(1), [full(2), full(4)]))
    assert (pulled(kv, 3) == 7).all()


def test_pushpull_writes_back_or_to_out(kv):
    kv.init(3, full(9))
    values = [full(1, c) for c in CONTEXTS]
    out = full(0)
    kv.pushpull(3, values, out=out)
    assert (out.asnumpy() == 3).all() and (values[0].asnumpy() == 1).all()
    kv.pushpull(3, values)
    assert all((v.asnumpy() == 3).all() for v in values)


def test_broadcast_initialises_and_hands_out(kv):
    outs = [full(0, c) for c in CONTEXTS]
    kv.broadcast("w", full(4), out=outs)
    assert all((o.asnumpy() == 4).all() for o in outs)
    kv.push("w", full(1))
    assert (pulled(kv, "w") == 1).all()


def test_the_store_keeps_values_of_its_own(kv):
    first, pushed = full(1), full(2)
    kv.init(3, first)
    first[:] = 8
    assert (pulled(kv, 3) == 1).all()
    kv.push(3, pushed)
    pushed[:] = 8
    assert (pulled(kv, 3) == 2).all() and (pushed.asnumpy() == 8).all()


def test_pull_casts_to_the_dtype_of_out(kv):
    kv.init(3, full(2.5))
    out = mx.nd.empty(SHAPE, dtype="float16")
    kv.pull(3, out=out)
    assert out.dtype == np.float16 and (out.asnumpy() == 2.5).all()


@pytest.mark.parametrize("key", [3, "w"])
def test_an_updater_gets_key_sum_and_value(kv, key):
    calls = []

    def update(key, pushed, stored):
        calls.append((key, pushed.asnumpy().max()))
        stored += pushed * 2

    kv.init(key, full(1))
    kv._set_updater(update)
    kv.push(key, [full(1, c) for c in CONTEXTS])
    assert calls == [(key, 3)] and type(calls[0][0]) is type(key)
    assert (pulled(kv, key) == 7).all()
    kv._set_updater(None)
    kv.push(key, full(1))
    assert (pulled(kv, key) == 1).all()


def test_an_optimizer_moves_values(kv):
    kv.init("w", full(1))
    kv.set_optimizer(mx.optimizer.create("test", rescale_grad=0.5))
    kv.pushpull("w", [full(2, c) for c in CONTEXTS], out=(out := full(0)))
    assert (out.asnumpy() == 4).all()


def test_optimizer_states_go_to_a_file_and_back(kv, tmp_path):
    def store():
        kv = mx.kv.create("device")
        kv.init(0, full(1))
        kv.set_optimizer(mx.optimizer.SGD(learning_rate=0.1, momentum=0.9))
        return kv

    a, b = store(), store()
    a.push(0, full(1))
    b.init(1, full(0))
    a.save_optimizer_states(str(tmp_path / "x.states"), dump_optimizer=True)
    b.push(0, full(1))
    b.load_optimizer_states(str(tmp_path / "x.states"))
    a.push(0, full(1))
    b.push(0, full(1))
    np.testing.assert_array_equal(pulled(a, 0), pulled(b, 0))
    assert pulled(a, 0).max() < 1 - 0.2  # the momentum was in the file


@pytest.mark.parametrize("name", ["local", "device"])
def test_the_order_of_writes_is_kept(name):
    """A push reads what was in the array at the time, whatever still runs and whatever comes after."""
    kv = mx.kv.create(name)
    n = 300
    kv.init(0, mx.nd.zeros((n, n)))
    parts = [mx.nd.ones((n, n), ctx=c) for c in CONTEXTS]
    for step in range(5):
        for p in parts:
            p[:] = mx.nd.dot(p, p) * 0 + step
        kv.push(0, parts)
        for p in parts:
            p[:] = -1
        assert (pulled(kv, 0, CONTEXTS[1], (n, n)) == 3 * step).all()


def test_inside_recording_nothing_is_recorded(kv):
    x = mx.nd.ones(SHAPE)
    x.attach_grad()
    kv.init(0, x)
    with mx.autograd.record():
        y = (x * 3).sum()
        kv.pushpull(0, [x * 2], out=x)
        assert mx.autograd.is_recording()
    assert (x.asnumpy() == 2).all() and y.shape == (1,)


def test_device_shares_the_work():
    kv = mx.kv.create("device")
    keys = list(range(6))
    kv.init(keys, [full(0)] * 6)
    at = []
    kv._set_updater(lambda key, pushed, stored: at.append((pushed.context, stored.context)))
    kv.push(keys, [[full(1, c) for c in CONTEXTS]] * 6)
    assert sorted(c.device_id for c, _ in at) == [0, 0, 1, 1, 2, 2] and all(a == b for a, b in at)


def test_two_bit_compression_carries_the_error_over():
    # Values made with MXNet 1.9.1 ('device').
    rounds = [
        ([[0.3, 0.7], [-0.6, 0.3]], [-0.5, 0.5]),
        ([[0.3, 0.1], [-0.6, 0.3]], [0.0, 0.5]),
        ([[0.3, 0.7]], [0.0, 0.5]),
    ]
    for name in ("local", "device"):
        kv = mx.kv.create(name)
        kv.init(3, mx.nd.zeros(2))
        kv.set_gradient_compression({"type": "2bit", "threshold": 0.5})
        for pushed, expected in rounds:
            kv.push(3, [mx.nd.array(p) for p in pushed])
            np.testing.assert_array_equal(pulled(kv, 3, shape=(2,)), np.float32(expected))


def test_a_store_frees_its_values():
    kv = mx.kv.create("device")
    kv.init(0, mx.nd.ones((8, 8)))
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        for _ in range(200):
            kv.pushpull(0, [mx.nd.ones((8, 8), ctx=c) for c in CONTEXTS])
        assert len(gc.get_objects()) - before < 100
    finally:
        gc.enable()


@pytest.mark.parametrize("kind", ["local", "device"])
def test_threads_push_one_key(kind):
    """No update is lost: each reads the value and writes it."""
    kv = mx.kv.create(kind)
    kv.init("k", mx.nd.zeros(3))

    def slowly(key, pushed, stored):
        value = stored.asnumpy()
        time.sleep(0.005)
        stored[:] = value + pushed.asnumpy()

    kv._set_updater(slowly)
    threads = [threading.Thread(target=lambda: [kv.push("k", mx.nd.ones(3)) for _ in range(3)]) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    out = mx.nd.zeros(3)
    kv.pull("k", out=out)
    assert out.asnumpy().tolist() == [12, 12, 12]


def test_states_are_saved_between_updates(tmp_path, monkeypatch):
    kv = mx.kv.create("local")
    kv.set_optimizer(mx.optimizer.Adam())
    kv.init([0, 1], [mx.nd.ones(2)] * 2)
    kv.push(0, mx.nd.ones(2))
    others, pushed, real = [], [], mx.optimizer.Updater.get_states

    def slowly(self, dump_optimizer=False):
        others.append(threading.Thread(target=lambda: (kv.push(1, mx.nd.ones(2)), pushed.append(1))))
        others[0].start()
        time.sleep(0.05)
        assert not pushed
        return real(self, dump_optimizer)

    monkeypatch.setattr(mx.optimizer.Updater, "get_states", slowly)
    kv.save_optimizer_states(tmp_path / "states")
    others[0].join()
    assert pushed


def counting(kind, *contexts):
    """A store whose two keys an Adam updates three times."""
    kv = mx.kv.create(kind)
    kv.init(["a", "b"], [full(1), full(1)])
    kv.set_optimizer(mx.optimizer.Adam(learning_rate=0.1))
    for _ in range(3):
        kv.push(["a", "b"], [[full(1, c) for c in contexts]] * 2)
    return kv


def test_updates_are_counted_wherever_the_store_keeps_a_value(kv, tmp_path):
    file = str(tmp_path / "states")
    kv = counting(kv.type, mx.cpu(0), mx.cpu(1))
    kv.save_optimizer_states(file, dump_optimizer=True)
    assert kv._updater.optimizer._all_index_update_counts == {0: {"a": 3, "b": 3}}
    resumed = counting(kv.type, mx.cpu(1))
    resumed.load_optimizer_states(file)
    resumed.push(["a", "b"], [full(2), full(2)])
    assert resumed._updater.optimizer._all_index_update_counts == {0: {"a": 4, "b": 4}}
    assert (pulled(resumed, "a") == pulled(resumed, "b")).all()


def test_an_optimizer_that_has_counted_goes_on(kv):
    """Whichever device it counted for."""
    optimizer = mx.optimizer.Adam()
    optimizer._set_current_context(1)
    optimizer._index_update_count["a"] = 5
    kv.init("a", full(1))
    kv.set_updater(mx.optimizer.get_updater(optimizer))
    kv.push("a", full(1))
    assert optimizer._all_index_update_counts == {0: {"a": 6}}


def test_counts_of_several_devices_in_a_file_become_one(kv, tmp_path):
    optimizer = mx.optimizer.Adam()
    for device_id, counts in ((0, {"a": 3, "b": 1}), (1, {"b": 2})):
        optimizer._set_current_context(device_id)
        optimizer._index_update_count.update(counts)
    (tmp_path / "states").write_bytes(mx.optimizer.Updater(optimizer).get_states(dump_optimizer=True))
    kv.set_optimizer(mx.optimizer.Adam())
    kv.load_optimizer_states(str(tmp_path / "states"))
    assert kv._updater.optimizer._all_index_update_counts == {0: {"a": 3, "b": 2}}
    assert kv._updater.optimizer._index_update_count == {"a": 3, "b": 2}


def recorded(kv):
    """The calls of an updater that is set: key and first number of what was pushed."""
    calls = []

    def update(key, pushed, stored):
        calls.append((key, float(pushed.asnumpy().flat[0])))
        stored += pushed

    kv.set_updater(update)
    return calls


@pytest.mark.parametrize("kind", [*LOCAL, *LONE])
@pytest.mark.parametrize(
    "keys, given, wanted",
    [
        ([3, -1, 20], [20, 3, -1], [(-1, 3.0), (3, 2.0), (20, 1.0)]),
        ([3, 1, 2], [2, 3, 1, 3, 2], [(1, 3.0), (2, 6.0), (3, 6.0)]),
        (["c", "a", "b"], ["b", "a", "c"], [("c", 3.0), ("a", 2.0), ("b", 1.0)]),
        (["c", "a", "b"], ["b", "c", "a", "c", "b"], [("c", 6.0), ("a", 3.0), ("b", 6.0)]),
    ],
)
def test_keys_have_an_order_of_their_own(kind, keys, given, wanted):
    """Numbers by their values and names as they were initialised, as MXNet's stores update them."""
    with opened(kind) as (kv,):
        for key in keys[:1]:
            kv.init(key, mx.nd.zeros(2))
        kv.broadcast(keys[1:], [mx.nd.zeros(2)] * 2, out=[mx.nd.zeros(2), mx.nd.zeros(2)])
        calls = recorded(kv)
        pushed = [mx.nd.ones(2) * (i + 1) for i in range(len(given))]
        kv.push(given, pushed)
        assert calls == wanted
        outs = [mx.nd.zeros(2) for _ in given]
        kv.pushpull(given, pushed, out=outs)
        assert calls == wanted * 2
        assert [o.asnumpy()[0] for o in outs] == [2 * dict(wanted)[key] for key in given]
        same = mx.nd.zeros(2)
        kv.pull(given, out=[same] * len(given))
        assert same.asnumpy()[0] == 2 * wanted[-1][1], "the last one of that order"


def test_rows_are_written_in_the_order_of_keys():
    kv = mx.kv.create("local")
    kv.init([2, 1], [mx.nd.full((3, 1), k).tostype("row_sparse") for k in (2, 1)])
    out = mx.nd.zeros((3, 1)).tostype("row_sparse")
    kv.row_sparse_pull([2, 1], out=[out, out], row_ids=[mx.nd.array([0, 2])] * 2)
    assert out.tostype("default").asnumpy().tolist() == [[2], [0], [2]]


def test_an_unknown_name_among_others_changes_nothing():
    kv = mx.kv.create("local")
    kv.init(["b", "a"], [mx.nd.zeros(2)] * 2)
    calls = recorded(kv)
    with pytest.raises(KeyError, match="push of key 'c', which was not initialised"):
        kv.push(["c", "a", "b"], [mx.nd.ones(2)] * 3)
    assert calls == []


@pytest.mark.parametrize("kind", ["local", "device"])
def test_threads_get_their_own_sums(kind, monkeypatch):
    """Between the push and the pull of a `pushpull` no other thread pushes."""
    kv = mx.kv.create(kind)
    kv.init("k", mx.nd.zeros(3))
    others, real = [], type(kv)._pull
    outs = [mx.nd.zeros(3), mx.nd.zeros(3)]

    def disturbed(self, *args):
        if not others:
            others.append(threading.Thread(target=lambda: kv.pushpull("k", [mx.nd.ones(3) * 5] * 2, out=outs[1])))
            others[0].start()
            time.sleep(0.2)
        return real(self, *args)

    monkeypatch.setattr(type(kv), "_pull", disturbed)
    kv.pushpull("k", [mx.nd.ones(3), mx.nd.ones(3) * 2], out=outs[0])
    others[0].join()
    assert [out.asnumpy().tolist() for out in outs] == [[3, 3, 3], [10, 10, 10]]
