"""The store without servers: sums in a ring of workers."""

from __future__ import annotations

import socket
import time
from typing import Any

import numpy as np
import pytest

import mxcore as mx
from mxcore_kv_dist import wire
from mxcore_kv_dist.allreduce import LoneAllReduce
from mxcore_kv_dist.ring import ROOM, Ring
from tests.kvstore_dist.jobs import all_well, rings, together

TRANSPORTS = ("auto", "tcp")


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("workers", [2, 3, 5])
def test_sums(workers: int, transport: str) -> None:
    rng = np.random.default_rng(workers)
    shapes = [(1,), (workers - 1,), (7, 3), (1000,)]
    x = [[rng.integers(-9, 9, s).astype("f") for s in shapes] for _ in range(workers)]

    def run(store: Any) -> Any:
        grads = [mx.nd.array(a) for a in x[store.rank]]
        outs = [mx.nd.empty(s) for s in shapes]
        store.pushpull([0, 1, 2, 3], grads, out=outs)
        for i, grad in enumerate(grads):  # in place, one by one
            store.pushpull(i, grad)
        return [[a.asnumpy() for a in arrays] for arrays in (outs, grads)]

    with rings(workers, transport) as stores:
        for both in all_well(together(stores, run)):
            for arrays in both:
                for i, a in enumerate(arrays):
                    np.testing.assert_array_equal(a, sum(x[r][i] for r in range(workers)))


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_values_larger_than_a_room(transport: str) -> None:
    size = ROOM // 4 * 3 + 5

    def run(store: Any) -> Any:
        x = mx.nd.arange(size) % 1000 + store.rank
        small = mx.nd.ones(3)
        store.pushpull(["x", "small"], [x, small])
        return x.asnumpy(), small.asnumpy()

    with rings(2, transport) as stores:
        for x, small in all_well(together(stores, run)):
            np.testing.assert_array_equal(x, 2 * (np.arange(size, dtype="f") % 1000) + 1)
            assert (small == 2).all()


def test_broadcast_hands_out_the_bits_of_the_first() -> None:
    bits = np.array([-0.0, np.nan, 1e-40, np.inf, 3.25], "f")

    def run(store: Any) -> Any:
        outs = [mx.nd.zeros(5), mx.nd.zeros(5, ctx=mx.cpu(1))]
        store.broadcast("w", mx.nd.array(bits if store.rank == 0 else np.full(5, 9, "f")), out=outs)
        return [out.asnumpy() for out in outs]

    with rings(3) as stores:
        for values in all_well(together(stores, run)):
            for value in values:
                assert value.tobytes() == bits.tobytes()


def test_dtypes_and_devices() -> None:
    def run(store: Any) -> Any:
        found = []
        for dtype in ("float16", "float64", "int32", "uint8", "bfloat16"):
            parts = [mx.nd.ones(3, dtype=dtype, ctx=mx.cpu(i)) for i in range(2)]
            store.pushpull(dtype, parts)
            found += [p.asnumpy().astype("f") for p in parts]
        return found

    with rings(2) as stores:
        for values in all_well(together(stores, run)):
            assert len(values) == 10 and all((v == 4).all() for v in values)


def test_what_was_given_may_be_overwritten() -> None:
    def run(store: Any) -> Any:
        x, out = mx.nd.ones(100_000), mx.nd.empty(100_000)
        store.pushpull("x", x, out=out)
        x[:] = 55
        return out.asnumpy()

    with rings(2) as stores:
        for value in all_well(together(stores, run)):
            assert (value == 2).all()


def test_row_sparse_gradients_go_dense() -> None:
    def run(store: Any) -> Any:
        x = mx.nd.sparse.row_sparse_array((np.ones((1, 2), "f"), [store.rank]), shape=(3, 2))
        store.pushpull("x", x)
        return x.stype, x.asnumpy()

    with rings(2) as stores:
        for stype, value in all_well(together(stores, run)):
            assert stype == "row_sparse"
            np.testing.assert_array_equal(value, [[1, 1], [1, 1], [0, 0]])


def test_different_orders_are_told() -> None:
    def run(store: Any) -> Any:
        x = mx.nd.ones(3)
        store.pushpull("ab"[store.rank], x)
        return x.asnumpy()

    with rings(2) as stores:
        for e in together(stores, run):
            assert isinstance(e, mx.MXNetError)
            assert "same order" in str(e) and "'a'" in str(e) and "'b'" in str(e)


def test_different_arrays_are_told() -> None:
    """As many bytes, which would be added up to nonsense."""
    mine, other = [(3, 2), "float32"], [((2, 3), "float32"), ((3, 2), "int32")]

    def add(store: Any, shape: Any, dtype: str) -> None:
        x = mx.nd.ones(shape, dtype=dtype)
        store.pushpull("x", x)
        x.wait_to_read()

    def give(store: Any, shape: Any, dtype: str) -> None:
        x = mx.nd.ones(shape, dtype=dtype)
        store.broadcast("x", x, out=x)

    for call in (add, give):
        for theirs in other:
            with rings(2) as stores:
                for e in together(stores, lambda s: call(s, *(theirs if s.rank else mine))):
                    assert isinstance(e, ValueError) and "(3, 2) of float32" in str(e)
                    assert "shape {} of {}".format(*theirs) in str(e)


def test_a_lost_worker_is_told() -> None:
    def run(store: Any) -> Any:
        x = mx.nd.ones(3)
        store.pushpull("x", x)
        x.wait_to_read()
        if store.rank == 1:
            store._reducer._ring._right.close()
            store._reducer._ring._left.close()
        store.pushpull("x", x)
        return x.asnumpy()

    with rings(3) as stores:
        for e in together(stores, run):
            assert isinstance(e, mx.MXNetError) and "lost rank" in str(e)


def test_who_does_not_come_is_told() -> None:
    def run(store: Any) -> Any:
        x = mx.nd.ones(3)
        if store.rank == 1:
            return None
        store.pushpull("x", x)
        return x.asnumpy()

    with rings(2, deadline=1.0) as stores:
        first, _ = together(stores, run)
        assert isinstance(first, mx.MXNetError) and "waited 1 s" in str(first)


def test_who_comes_after_the_first_has_left_is_told() -> None:
    def run(store: Any) -> Any:
        x = mx.nd.ones(3)
        store.pushpull("x", x)
        x.wait_to_read()
        if store.rank == 0:
            store.close()
            return None
        time.sleep(0.5)
        store.pushpull("x", x)
        return x.asnumpy()

    with rings(2) as stores:
        _, e = together(stores, run)
        assert isinstance(e, mx.MXNetError) and "left" in str(e)


def test_a_trainer_and_a_module_of_one_context_take_it_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with rings(2) as stores:
        monkeypatch.setattr(mx.kv, "create", lambda name: stores[0])
        monkeypatch.setattr("mxcore.module.updates.make_store", lambda name: stores[0])
        net = mx.gluon.nn.Dense(1, in_units=4)
        net.initialize()
        trainer = mx.gluon.Trainer(net.collect_params(), "sgd", kvstore="allreduce")
        trainer._init_kvstore()
        assert trainer._kvstore is stores[0] and not trainer._update_on_kvstore
        module = mx.mod.Module(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1), label_names=None)
        module.bind([("data", (4, 3))])
        module.init_params()
        monkeypatch.setattr("mxcore.module.module.initialize_kvstore", lambda *args: None)
        module.init_optimizer("allreduce")
        assert module._optimizer.rescale_grad == 1 / 8


def test_trainers_agree() -> None:
    """Two workers with halves of a batch are one worker with all of it."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(8, 4)).astype("f"), rng.normal(size=(8, 1)).astype("f")

    def train(store: Any, rows: slice) -> Any:
        net = mx.gluon.nn.Dense(1, in_units=4)
        net.initialize(mx.init.Constant(0.1))
        trainer = mx.gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.1}, kvstore=store)
        for _ in range(5):
            with mx.autograd.record():
                loss = ((net(mx.nd.array(x[rows])) - mx.nd.array(y[rows])) ** 2).sum()
            loss.backward()
            trainer.step(8)
        return net.weight.data().asnumpy()

    alone = train(None, slice(None))
    with rings(2) as stores:
        for weight in all_well(together(stores, lambda s: train(s, slice(4 * s.rank, 4 * s.rank + 4)))):
            np.testing.assert_allclose(weight, alone, rtol=1e-5)


def test_arrays_that_do_not_fit_are_refused_before_they_go_round() -> None:
    one, two, three = (mx.nd.ones(n) for n in (1, 2, 3))
    memory = np.zeros(2, np.float32)
    memory.flags.writeable = False
    read_only = mx.nd.from_dlpack(memory)

    def run(store: Any) -> None:
        for verb, work in {
            "broadcast": lambda: store.broadcast("w", two, out=[two.copy(), three]),
            "pushpull": lambda: store.pushpull("w", two, out=three),
            "pushpull ": lambda: store.pushpull("w", [two, one]),
        }.items():
            with pytest.raises(mx.MXNetError, match=rf"kvstore: {verb.strip()} of key 'w': its value has shape \(2,\)"):
                work()
        with pytest.raises(mx.MXNetError, match="of key 'v': its value has shape"):
            store.broadcast(["w", "v"], [two, two], out=[out := mx.nd.zeros(2), three])
        assert not out.asnumpy().any()  # nothing has gone round
        with pytest.raises(mx.MXNetError, match="broadcast takes one array for key 'w', got 2"):
            store.broadcast("w", [two, two], out=two)
        for verb in ("broadcast", "pushpull"):
            with pytest.raises(mx.MXNetError, match=f"kvstore: {verb} of key 'w'.*read-only"):
                getattr(store, verb)("w", two, out=read_only)

    with rings(2) as stores:
        all_well(together(stores, run))
    alone = LoneAllReduce("allreduce")
    run(alone)
    with pytest.raises(AttributeError, match="LoneAllReduce does not define init; a store that keeps no values has"):
        alone.init  # noqa: B018


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_silent_strangers_hold_nobody_up(transport: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as programs that look which ports are open: the neighbour comes behind them, and does not wait for ever."""
    monkeypatch.setattr(wire, "PATIENCE", 3)
    join = Ring.join
    strangers: list[socket.socket] = []

    def visited(self: Ring, *args: Any) -> None:
        strangers.extend(socket.create_connection(self.address[:2]) for _ in range(3))
        return join(self, *args)

    monkeypatch.setattr(Ring, "join", visited)
    try:
        with rings(2, transport) as stores:
            x = mx.nd.ones(3)
            all_well(together(stores, lambda store: store.pushpull(0, x.copy(), out=mx.nd.zeros(3))))
            for stranger in strangers:  # they are sent away
                stranger.settimeout(20)
                with pytest.raises(OSError):
                    while stranger.recv(1000):
                        pass
                    raise ConnectionResetError
    finally:
        for stranger in strangers:
            stranger.close()
