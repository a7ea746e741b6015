"""What values become, in memory and through the network; `tests.kvstore.model` has any sequence of operations."""

from __future__ import annotations

import heapq
import threading
import time
from typing import Any

import numpy as np
import pytest

import mxcore as mx
from mxcore.base import MXNetWarning
from mxcore_kv_dist.plan import Plan
from tests.kvstore_dist.jobs import all_well, stores, together

TRANSPORTS = ("auto", "tcp")


def put(store: Any, key: Any, value: Any, shape: Any = (3,), dtype: str = "float32") -> None:
    store.push(key, mx.nd.full(shape, value, dtype=dtype))


def get(store: Any, key: Any, shape: Any = (3,), dtype: str = "float32") -> Any:
    out = mx.nd.zeros(shape, dtype=dtype)
    store.pull(key, out=out)
    return out.asnumpy()


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_round_is_the_sum_of_all_workers(workers: int, number: int, transport: str) -> None:
    def run(store: Any) -> list[Any]:
        store.init([3, 5], [mx.nd.full((3,), 7 + store.rank), mx.nd.ones((2, 2))])
        first = get(store, 3)
        seen = []
        for step in range(5):
            put(store, 3, 10 * step + store.rank + 1)
            seen.append(get(store, 3))
        return [first, *seen]

    with stores(workers, number, transport=transport) as opened:
        results = all_well(together(opened, run))
    for first, *seen in results:
        assert (first == 7).all()  # of the first worker
        for step, value in enumerate(seen):
            assert (value == sum(10 * step + r + 1 for r in range(workers))).all()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_large_values_are_split_over_servers(transport: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MXNET_KVSTORE_BIGARRAY_BOUND", "10")
    rng = np.random.default_rng(0)
    start = rng.normal(size=(7, 3)).astype("f")
    grads = rng.normal(size=(2, 7, 3)).astype("f")

    def run(store: Any) -> Any:
        store.init("w", mx.nd.array(start))
        store.set_optimizer(mx.optimizer.SGD(learning_rate=0.5, momentum=0.9))
        for _ in range(3):
            store.push("w", mx.nd.array(grads[store.rank]))
        out = mx.nd.empty((7, 3))
        store.pull("w", out=out)
        return out.asnumpy(), [slot.size for slot in store._parts["w"]]

    with stores(2, 3, transport=transport) as opened:
        results = all_well(together(opened, run))
    w, m, g = start.astype("d"), 0.0, grads.sum(0)
    for _ in range(3):
        m = 0.9 * m - 0.5 * g
        w = w + m
    for value, sizes in results:
        assert sizes == [6, 6, 9]  # whole rows
        np.testing.assert_allclose(value, w, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name, more", [("lamb", {}), ("lars", {"eta": 0.1}), ("lbsgd", {"warmup_strategy": "lars"})])
def test_optimizers_that_go_by_norms_get_values_whole(name: str, more: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MXNET_KVSTORE_BIGARRAY_BOUND", "10")
    first = np.arange(1, 13, dtype="f").reshape(4, 3)

    def run(store: Any) -> Any:
        store.set_optimizer(mx.optimizer.create(name, learning_rate=0.1, **more))
        store.init(["a", "b_weight"], [mx.nd.array(first), mx.nd.array(first + 1)])
        outs = [mx.nd.zeros((4, 3)), mx.nd.zeros((4, 3))]
        for scale in (1, 2):
            store.pushpull(["a", "b_weight"], [mx.nd.array(first[::-1] * scale)] * 2, out=outs)
        return [out.asnumpy() for out in outs]

    alone = run(mx.kv.create("local"))
    with stores(1, number=2) as (store,):
        np.testing.assert_array_equal(run(store), alone)
        assert len({slots[0].link.number for slots in store._parts.values()}) == 2


def test_optimizers_that_go_by_norms_come_before_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MXNET_KVSTORE_BIGARRAY_BOUND", "10")
    with stores(1, number=2) as (store,):
        store.init("w", mx.nd.ones((4, 3)))
        store.set_optimizer(mx.optimizer.SGD())
        with pytest.warns(MXNetWarning, match="LAMB goes by norms of whole arrays, but the value of key 'w' was split"):
            store.set_optimizer(mx.optimizer.LAMB())


def test_small_values_are_balanced_by_bytes() -> None:
    plan = Plan(3, 1_000_000)
    placed = [plan.place(n, 4)[0].server for n in (100, 10, 10, 50, 50, 1, 1)]
    assert placed == [0, 1, 2, 1, 2, 1, 2]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_pushes_before_others_wait_in_line(transport: str) -> None:
    """One worker runs ahead by several pushes; each counts in its round."""

    def run(store: Any) -> Any:
        store.init("w", mx.nd.zeros(3))
        if store.rank:
            store.barrier()
        for step in range(4):
            put(store, "w", 10**step * (store.rank + 1))
        if not store.rank:
            store.barrier()
        return get(store, "w")

    with stores(2, transport=transport) as opened:
        for value in all_well(together(opened, run)):
            assert (value == 3000).all()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_async_pushes_count_at_once(transport: str) -> None:
    def run(store: Any) -> Any:
        store.init("w", mx.nd.zeros(3))
        store.set_optimizer(mx.optimizer.SGD(learning_rate=1.0))
        if store.rank == 0:
            for _ in range(5):
                put(store, "w", 1.0)
            alone = get(store, "w")
            store.barrier()
            return alone
        store.barrier()
        put(store, "w", 2.0)
        return get(store, "w")

    with stores(2, type="dist_async", transport=transport) as opened:
        first, second = all_well(together(opened, run))
    assert (first == -5).all()
    assert (second == -7).all()


def test_async_needs_an_optimizer() -> None:
    with stores(1, type="dist_async") as (store,):
        store.init("w", mx.nd.zeros(3))
        put(store, "w", 1)
        with pytest.raises(mx.MXNetError, match="needs an optimizer"):
            get(store, "w")


def test_values_that_are_not_pulled_are_not_torn() -> None:
    """A worker that pulls and pushes without waiting reads the round that it asked for, not the next."""
    size, steps = 300_000, 12

    def run(store: Any) -> Any:
        store.init("w", mx.nd.zeros(size))
        outs = [mx.nd.empty(size) for _ in range(steps)]
        for step, out in enumerate(outs):
            store.push("w", mx.nd.full(size, step + 1))
            store.pull("w", out=out)
        return [(out.min().asscalar(), out.max().asscalar()) for out in outs]

    for transport in TRANSPORTS:
        with stores(2, transport=transport) as opened:
            for seen in all_well(together(opened, run)):
                assert seen == [(2 * (s + 1), 2 * (s + 1)) for s in range(steps)]


def test_what_was_pushed_may_be_overwritten() -> None:
    def run(store: Any) -> Any:
        store.init("w", mx.nd.zeros(1000))
        x = mx.nd.ones(1000)
        store.push("w", x)
        x[:] = 77
        return get(store, "w", (1000,))

    with stores(2) as opened:
        for value in all_well(together(opened, run)):
            assert (value == 2).all()


def test_several_devices_of_a_worker_are_added_first() -> None:
    def run(store: Any) -> Any:
        store.init("w", mx.nd.zeros(3))
        outs = [mx.nd.zeros(3, ctx=mx.cpu(i)) for i in range(3)]
        store.pushpull("w", [mx.nd.full(3, i + 1, ctx=mx.cpu(i)) for i in range(3)], out=outs)
        return [out.asnumpy() for out in outs]

    for type in ("dist_sync", "dist_device_sync", "dist_sync_device"):
        with stores(2, type=type) as opened:
            for values in all_well(together(opened, run)):
                assert all((v == 12).all() for v in values)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32", "uint8", "bfloat16"])
def test_dtypes(dtype: str) -> None:
    def run(store: Any) -> Any:
        store.init("w", mx.nd.zeros(3, dtype=dtype))
        put(store, "w", store.rank + 1, dtype=dtype)
        return get(store, "w", dtype=dtype), get(store, "w", dtype="float32")

    for transport in TRANSPORTS:
        with stores(2, transport=transport) as opened:
            for same, cast in all_well(together(opened, run)):
                assert (same.astype("f") == 3).all() and (cast == 3).all()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_empty_and_single_values(transport: str) -> None:
    def run(store: Any) -> Any:
        with mx.util.np_shape(True):
            empty, out = mx.nd.zeros((0, 3)), mx.nd.zeros((0, 3))
            store.init(["e", "one"], [empty, mx.nd.ones((1,))])
            store.push(["e", "one"], [empty, mx.nd.ones((1,))])
            store.pull("e", out=out)
            return out.asnumpy().shape, get(store, "one", (1,))

    with stores(2, transport=transport) as opened:
        for shape, one in all_well(together(opened, run)):
            assert shape == (0, 3) and one == 2


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("kind", ["fp16", "bfloat16"])
def test_narrow_numbers_on_the_wire(kind: str, transport: str) -> None:
    x = np.random.default_rng(1).normal(size=(2, 50)).astype("f")

    def run(store: Any) -> Any:
        store.set_gradient_compression({"type": kind})
        store.init("w", mx.nd.zeros(50))
        store.push("w", mx.nd.array(x[store.rank]))
        return get(store, "w", (50,))

    with stores(2, transport=transport) as opened:
        for value in all_well(together(opened, run)):
            assert not np.array_equal(value, x.sum(0))
            np.testing.assert_allclose(value, x.sum(0), atol=0.05 if kind == "bfloat16" else 0.005)


def test_two_bits_carry_their_error_over() -> None:
    """Numbers as MXNet's: the quantised sum of gradient and residual of each worker, then the sum."""
    x = np.random.default_rng(2).normal(size=(2, 9)).astype("f")

    def run(store: Any) -> Any:
        store.set_gradient_compression({"type": "2bit", "threshold": 0.5})
        store.init("w", mx.nd.zeros(9))
        seen = []
        for _ in range(4):
            store.push("w", mx.nd.array(x[store.rank]))
            seen.append(get(store, "w", (9,)))
        return seen

    with stores(2, 2) as opened:
        results = all_well(together(opened, run))
    residual = np.zeros_like(x)
    for step in range(4):
        total = residual + x
        quantised = np.where(total >= 0.5, 0.5, np.where(total <= -0.5, -0.5, 0)).astype("f")
        residual = total - quantised
        for seen in results:
            np.testing.assert_array_equal(seen[step], quantised.sum(0))


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("number", [1, 2])
def test_rows(number: int, transport: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row-sparse gradients move rows of row-sparse and dense values; rows are pulled by number."""
    monkeypatch.setenv("MXNET_KVSTORE_BIGARRAY_BOUND", "4")
    start = np.arange(12, dtype="f").reshape(6, 2)

    def run(store: Any) -> Any:
        store.init("w", mx.nd.array(start).tostype("row_sparse"))
        store.init("d", mx.nd.array(start))
        store.set_optimizer(mx.optimizer.SGD(learning_rate=1.0))
        rows = [[1, 4], [4]][store.rank]
        grad = mx.nd.sparse.row_sparse_array((np.ones((len(rows), 2), "f"), rows), shape=(6, 2))
        store.push("w", grad)
        store.push("d", grad)
        out = mx.nd.sparse.zeros("row_sparse", (6, 2))
        store.row_sparse_pull("w", out=out, row_ids=mx.nd.array([4, 0, 4]))
        dense, whole = mx.nd.empty((6, 2)), mx.nd.empty((6, 2))
        store.pull(["d", "w"], out=[dense, whole])
        np.testing.assert_array_equal(dense.asnumpy(), whole.asnumpy())
        return out.indices.asnumpy(), out.data.asnumpy(), dense.asnumpy()

    expected = start.copy()
    expected[1] -= 1
    expected[4] -= 2
    with stores(2, number, transport=transport) as opened:
        for ids, data, dense in all_well(together(opened, run)):
            assert ids.tolist() == [0, 4]
            np.testing.assert_allclose(data, expected[[0, 4]])
            np.testing.assert_allclose(dense, expected)


def test_optimizer_states_are_saved_whole_and_loaded(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MXNET_KVSTORE_BIGARRAY_BOUND", "10")
    grad = np.random.default_rng(3).normal(size=(6, 3)).astype("f")

    def begin(store: Any) -> None:
        store.init(["w", "v"], [mx.nd.ones((6, 3)), mx.nd.ones(2)])
        store.set_optimizer(mx.optimizer.Adam(learning_rate=0.1))

    def step(store: Any) -> Any:
        store.push(["w", "v"], [mx.nd.array(grad), mx.nd.ones(2) * (2 / store.num_workers)])
        return get(store, "w", (6, 3)), get(store, "v", (2,))

    file = str(tmp_path / "kv.states")

    def first(store: Any) -> Any:
        begin(store)
        before = [step(store) for _ in range(3)][-1]
        if store.rank == 0:
            store.save_optimizer_states(file, dump_optimizer=True)
        return before, step(store)

    with stores(2, 2) as opened:
        (values, after), _ = all_well(together(opened, first))

    def second(store: Any) -> Any:
        begin(store)
        store._replace([("w", mx.nd.array(values[0])), ("v", mx.nd.array(values[1]))])
        store.load_optimizer_states(file)
        return step(store)

    # Other numbers of servers, and of workers whose gradients add up to the same.
    grad *= 2
    with stores(1, 3) as opened:
        ((w, v),) = all_well(together(opened, second))
    np.testing.assert_allclose(w, after[0], rtol=1e-5)
    np.testing.assert_allclose(v, after[1], rtol=1e-5)


@pytest.mark.parametrize("number", [1, 2])
def test_states_of_row_sparse_values_are_loaded(number: int, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MXNET_KVSTORE_BIGARRAY_BOUND", "4")
    file = str(tmp_path / "kv.states")
    with stores(1, number) as (store,):
        store.init("w", mx.nd.zeros((4, 2)).tostype("row_sparse"))
        store.set_optimizer(mx.optimizer.SGD(learning_rate=1.0, momentum=0.5))
        grad = mx.nd.ones((4, 2)).tostype("row_sparse")
        seen = []
        for _ in range(2):
            store.push("w", grad)
            if not seen:
                store.save_optimizer_states(file)
            seen.append(get(store, "w", (4, 2)))
        assert store._updater.states["w"].stype == "row_sparse"
        store.load_optimizer_states(file)
        store.push("w", grad)
        seen.append(get(store, "w", (4, 2)))
    assert [v[3, 1] for v in seen] == [-1, -2.5, -4]


def test_a_learning_rate_counts_for_pushes_from_then_on() -> None:
    def run(store: Any) -> Any:
        store.init("w", mx.nd.zeros(3))
        store.set_optimizer(mx.optimizer.SGD(learning_rate=1.0))
        if store.rank:
            time.sleep(0.3)
        put(store, "w", 1)
        store.set_learning_rate(0.25)
        put(store, "w", 1)
        return get(store, "w")

    with stores(2) as opened:
        for value in all_well(together(opened, run)):
            np.testing.assert_allclose(value, -2.5)


@pytest.mark.parametrize("params", [{"type": "2bit", "threshold": 0.5}, {"type": "fp16"}])
def test_compression_is_for_float32(params: Any) -> None:
    with stores(1) as (store,):
        store.set_gradient_compression(params)
        store.init("w", mx.nd.zeros(3, dtype="int32"))
        with pytest.raises(TypeError, match="'w'.*float32.*int32"):
            put(store, "w", 1, dtype="int32")
        assert store._parts["w"][0].free


def test_priority_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits behind a message is sent by priority."""
    order: list[Any] = []
    go_on = threading.Event()
    with stores(1) as (store,):
        store.init([0, 1, 2, 3], [mx.nd.zeros(3)] * 4)
        link = store._links[0]
        send = link._send_batch

        def slowly(batch: Any) -> None:
            order.extend(slot.key for slot, _ in batch)
            if not go_on.is_set():
                go_on.wait(20)
            send(batch)

        monkeypatch.setattr(link, "_send_batch", slowly)
        put(store, 3, 0)
        while not order:
            time.sleep(0.001)
        for key, priority in ((0, -2), (1, 5), (2, 0)):
            store.push(key, mx.nd.ones(3), priority=priority)
        go_on.set()
        link.flush()
    assert order == [3, 1, 2, 0]


def test_pulls_that_wait_for_each_other_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not all whenever one has come: thousands would take minutes."""
    from mxcore_kv_dist import client

    pushed: list[int] = []
    push = heapq.heappush

    def counting(heap: Any, item: Any) -> None:
        pushed.append(1)
        push(heap, item)

    monkeypatch.setattr(client.heapq, "heappush", counting)
    with stores(1) as (store,):
        store.init("a", mx.nd.ones(3))
        outs = [mx.nd.zeros(3) for _ in range(1000)]
        for i, out in enumerate(outs):
            if i % 3 == 0:
                store.push("a", mx.nd.full(3, i))
            store.pull("a", out=out)
        assert [out.asnumpy()[0] for out in outs] == [i - i % 3 for i in range(1000)]
        assert len(pushed) < 8 * 1334
