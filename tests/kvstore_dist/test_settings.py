"""What changes a whole store, and not one value: optimizers, rates, states, other values. It happens between rounds."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from typing import Any

import pytest

import mxcore as mx
from mxcore_kv_dist.store import DistKVStore
from tests.kvstore_dist.jobs import all_well, server_of, stores, together

TRANSPORTS = ("auto", "tcp")
SGD = mx.optimizer.SGD


def put(store: Any, value: float = 1, key: str = "w") -> None:
    store.push(key, mx.nd.full(1, value))


def get(store: Any, key: str = "w") -> float:
    out = mx.nd.empty(1)
    store.pull(key, out=out)
    return float(out.asnumpy()[0])


def begin(store: Any, **settings: Any) -> None:
    store.init("w", mx.nd.zeros(1))
    store.set_optimizer(SGD(**settings))


# -- optimizers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [None, SGD(learning_rate=1.0)])
def test_an_optimizer_counts_for_pushes_from_then_on(first: Any) -> None:
    """Also where a worker is late with its push of the round before."""

    def run(store: Any) -> float:
        store.init("w", mx.nd.zeros(1))
        if first is not None:
            store.set_optimizer(first)
        store.barrier()
        if store.rank:
            time.sleep(0.4)
        put(store)
        store.set_optimizer(SGD(learning_rate=0.1))
        put(store, 10)
        return get(store)

    with stores(2) as opened:
        for value in all_well(together(opened, run)):
            assert value == pytest.approx((2 if first is None else -2) - 2, abs=1e-6)


@pytest.mark.parametrize("number", [1, 2])
def test_an_updater_of_an_optimizer_updates_on_the_servers(number: int) -> None:
    def run(store: Any) -> list[float]:
        store.init("w", mx.nd.zeros(1))
        seen = []
        for updater in (
            mx.optimizer.get_updater(SGD(learning_rate=1.0)),
            mx.optimizer.get_updater(SGD(learning_rate=0.25)),
            None,
        ):
            store.set_updater(updater)
            put(store)
            seen.append(get(store))
        return seen

    with stores(2, number) as opened:
        assert all_well(together(opened, run)) == [[-2, -2.5, 2]] * 2


def test_an_updater_that_has_states_is_refused() -> None:
    updater = mx.optimizer.get_updater(SGD(learning_rate=1.0, momentum=0.9))
    updater("w", mx.nd.ones(1), mx.nd.ones(1))
    with stores(1) as (store,):
        with pytest.raises(ValueError, match="the states of an updater do not go to the servers"):
            store.set_updater(updater)
        with pytest.raises(TypeError, match="where a function cannot go"):
            store.set_updater(print)


class Homeless(SGD):
    """An optimizer of a module that no server finds."""


Homeless.__module__ = "not_there"


def test_what_servers_refuse_changes_nothing_here() -> None:
    with stores(1, 2) as (store,):
        begin(store, learning_rate=1.0)
        before = store._updater
        with pytest.raises(mx.MXNetError, match="not_there"):
            store.set_optimizer(Homeless())
        assert store._updater is before
        put(store)
        assert get(store) == -1
        scheduler = mx.lr_scheduler.FactorScheduler(step=10, base_lr=0.5)
        store.set_optimizer(SGD(lr_scheduler=scheduler))
        with pytest.raises(UserWarning, match="a scheduler determines the learning rate"):
            store.set_learning_rate(0.1)
        store.close()
        with pytest.raises(mx.MXNetError, match="the store was closed"):
            store.set_updater(None)
        assert store._updater.optimizer.lr_scheduler.base_lr == 0.5


def test_one_worker_ends_updating() -> None:
    def run(store: Any) -> None:
        store.set_updater(None if store.rank else mx.optimizer.get_updater(SGD(learning_rate=1.0)))

    with stores(2) as opened:
        failed, *_ = [e for e in together(opened, run) if e is not None]
        assert isinstance(failed, ValueError) and "sets the optimizer" in str(failed) and "None" in str(failed)


def come_back(opened: list[DistKVStore]) -> DistKVStore:
    """Let rank 1 leave, and join again."""
    opened[1].close()
    end = time.monotonic() + 5
    while time.monotonic() < end and any(1 in s.roster.peers for s in server_of(opened[0])._spaces.values()):
        time.sleep(0.01)  # the server hears of it in its own time
    return DistKVStore("dist_async", opened[1]._job)


def test_a_worker_that_is_behind_does_not_set_the_optimizer_of_others() -> None:
    with stores(2, type="dist_async") as opened:
        all_well(together(opened, lambda store: begin(store, learning_rate=1.0)))
        again = come_back(opened)
        for rate in (1.0, 100.0):
            again.set_optimizer(SGD(learning_rate=rate))
        again.set_updater(None)
        put(opened[0])
        assert get(opened[0]) == -1
        again.set_optimizer(SGD(learning_rate=100.0))
        assert again._updater.optimizer.learning_rate == 1  # what is saved from there is what the servers have
        again.init("w", mx.nd.zeros(1))
        put(again)
        again.set_optimizer(SGD(learning_rate=0.5))
        put(opened[0])
        assert get(opened[0]) == -2.5
        again.close()
    with stores(2, type="dist_async") as opened:
        again = come_back(opened)
        all_well(together([opened[0], again], lambda store: store.init("w", mx.nd.zeros(1))))
        again.set_optimizer(SGD(learning_rate=0.5))  # there is none yet that could stay
        put(again)
        assert get(again) == -0.5
        again.close()


def test_a_worker_that_is_behind_does_not_set_the_rate_of_others() -> None:
    """What its program sets before its first push is what it set at its first start."""
    with stores(2, type="dist_async") as opened:
        all_well(together(opened, lambda store: begin(store, learning_rate=1.0)))
        again = come_back(opened)
        opened[0].set_learning_rate(0.5)
        begin(again, learning_rate=1.0)
        again.set_learning_rate(1.0)
        assert again._updater.optimizer.learning_rate == 0.5
        put(opened[0])
        assert get(opened[0]) == -0.5
        put(again)
        again.set_learning_rate(0.25)
        put(opened[0])
        assert get(opened[0]) == -1.25
        again.close()


# -- states ----------------------------------------------------------------------------------------------------------


def saved(file: str, dump_optimizer: bool) -> None:
    kv = mx.kv.create("local")
    begin(kv, learning_rate=0.5, momentum=0.5)
    put(kv)
    kv.save_optimizer_states(file, dump_optimizer)


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("dump_optimizer, rate", [(True, 0.5), (False, 2.0)])
def test_states_bring_their_optimizer(number: int, dump_optimizer: bool, rate: float, tmp_path: Any) -> None:
    file = str(tmp_path / "kv.states")
    saved(file, dump_optimizer)

    def run(store: Any) -> tuple[float, float]:
        begin(store, learning_rate=2.0, momentum=0.5)
        store.load_optimizer_states(file)
        put(store, 0.5)
        return get(store), store._updater.optimizer.learning_rate

    with stores(2, number) as opened:
        assert all_well(together(opened, run)) == [(0.5 * -0.5 - rate, rate)] * 2
    with stores(1, number, "dist_async") as (store,):
        begin(store, learning_rate=2.0, momentum=0.5)
        store.load_optimizer_states(file)
        put(store)
        assert get(store) == 0.5 * -0.5 - rate


def test_only_the_first_worker_needs_the_file_of_states(tmp_path: Any) -> None:
    file = str(tmp_path / "kv.states")
    saved(file, False)

    def run(store: Any) -> float:
        begin(store, learning_rate=0.5, momentum=0.5)
        store.load_optimizer_states(str(tmp_path / "nowhere") if store.rank else file)
        put(store, 0.5)
        return get(store)

    with stores(2) as opened:
        assert all_well(together(opened, run)) == [-0.75] * 2  # 0.5 × the saved -0.5, and -0.5 × the sum


def test_states_that_cannot_be_loaded_are_told_to_all(tmp_path: Any) -> None:
    file = tmp_path / "kv.states"

    def run(store: Any) -> float:
        begin(store, learning_rate=1.0)
        for kind, text in ((FileNotFoundError, None), (ValueError, b"garbage")):
            if store.rank == 0 and text is not None:
                file.write_bytes(text)
            with pytest.raises(kind, match="kv.states") as caught:
                store.load_optimizer_states(str(file))
            assert isinstance(caught.value, mx.MXNetError)
        put(store)
        return get(store)

    with stores(2) as opened:
        assert all_well(together(opened, run)) == [-2] * 2


def counted(file: str) -> tuple[dict[Any, float], dict[Any, int]]:
    """The momentum of each key in a file of states, and how many updates it has had."""
    updater = mx.optimizer.get_updater(SGD())
    updater.load(file)
    return (
        {key: float(state.asnumpy().reshape(-1)[0]) for key, state in updater.states.items()},
        dict(updater.optimizer._index_update_count),
    )


@pytest.mark.parametrize("pulls", [True, False])
def test_saved_states_are_those_after_the_rounds_that_were_begun(pulls: bool, tmp_path: Any) -> None:
    """Also where a worker is late with its pushes, and of values of which each server has a part."""
    file = str(tmp_path / "kv.states")
    big = (4, 400_000)

    def run(store: Any) -> None:
        store.init(["w", "big"], [mx.nd.zeros(1), mx.nd.zeros(big)])
        store.set_optimizer(SGD(learning_rate=1.0, momentum=0.5))
        outs = [mx.nd.zeros(1), mx.nd.zeros(big)]
        for late in (0, 0.4):
            store.barrier()
            if store.rank:
                time.sleep(late)
            store.push(["w", "big"], [mx.nd.ones(1), mx.nd.ones(big)])
            if pulls:
                store.pull(["w", "big"], out=outs)
        if store.rank == 0:
            store.save_optimizer_states(file, dump_optimizer=True)

    with stores(2, 2) as opened:
        all_well(together(opened, run))
        assert len(opened[0]._parts["big"]) == 2
    # -2, then half of that and -2.
    assert counted(file) == ({"w": -3, "big": -3}, {"w": 2, "big": 2})


def test_states_of_rounds_that_do_not_end_are_told(tmp_path: Any) -> None:
    file = str(tmp_path / "kv.states")

    def run(store: Any) -> None:
        begin(store, learning_rate=1.0)
        store.barrier()
        if store.rank == 0:
            put(store)
            store.save_optimizer_states(file)
        else:
            time.sleep(1.5)  # longer than the deadline

    with stores(2, deadline=0.5) as opened:
        failed, _ = together(opened, run)
    assert isinstance(failed, mx.MXNetError)
    assert "waited 0.5 s for round 1 of key 'w', to which rank 1 (last heard of" in str(failed)

    def lose(store: Any) -> None:
        begin(store, learning_rate=1.0)
        store.barrier()
        if store.rank:
            time.sleep(0.2)
            store.close()
        else:
            put(store)
            store.save_optimizer_states(file)

    with stores(2) as opened:
        failed, _ = together(opened, lose)
    assert isinstance(failed, mx.MXNetError) and "rank 1 left the job" in str(failed)


def test_a_checkpoint_of_an_estimator_has_weights_and_states_of_one_step(tmp_path: Any) -> None:
    """Where the other worker is late with its last step."""
    from mxcore.gluon.contrib.estimator import CheckpointHandler, Estimator

    steps = 3

    class Late(mx.gluon.Trainer):
        taken = 0

        def step(self, *args: Any, **kwargs: Any) -> None:
            self.taken += 1
            if self.kvstore.rank and self.taken == steps:
                time.sleep(0.5)
            super().step(*args, **kwargs)

        @property
        def kvstore(self) -> Any:
            return self._kvstore_params["kvstore"]

    def run(store: Any) -> None:
        net = mx.gluon.nn.Dense(1, use_bias=False, in_units=2)
        net.initialize(mx.init.Zero())
        settings = {"learning_rate": 0.1, "momentum": 0.9}
        trainer = Late(net.collect_params(), "sgd", settings, kvstore=store, update_on_kvstore=True)
        estimator = Estimator(net, mx.gluon.loss.L2Loss(), train_metrics=[], trainer=trainer)
        data = mx.gluon.data.ArrayDataset(mx.nd.ones((2 * steps, 2)), mx.nd.ones((2 * steps, 1)))
        handlers = [CheckpointHandler(str(tmp_path), model_prefix="m")] if store.rank == 0 else []
        estimator.fit(mx.gluon.data.DataLoader(data, batch_size=2), epochs=1, event_handlers=handlers)

    with stores(2) as opened:
        all_well(together(opened, run))
    (file,) = tmp_path.glob("*.states")
    assert counted(str(file))[1] == {0: steps}


# -- other values ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_values_are_replaced_when_all_have_read_what_they_pulled(transport: str) -> None:
    from mxcore._core.engine import engine

    computing: Future[None] = Future()
    replacing = threading.Event()

    def run(store: Any) -> list[float]:
        store.init("w", mx.nd.zeros(4))
        store.push("w", mx.nd.ones(4))
        before, after = mx.nd.zeros(4), mx.nd.zeros(4)
        if store.rank:
            replacing.wait()
            time.sleep(0.3)  # the other one is at it now, and is to wait for this pull
            engine.it.push(mx.cpu(5), lambda: computing, (before._st,), (), "what is busy with the array")
        store.pull("w", out=before)
        if store.rank:
            threading.Timer(0.5, computing.set_result, (None,)).start()
        replacing.set()
        store._replace([("w", mx.nd.full(4, 77 + store.rank))])
        store.pull("w", out=after)
        return [*before.asnumpy()[:1].tolist(), *after.asnumpy()[:1].tolist()]

    with stores(2, transport=transport) as opened:
        assert all_well(together(opened, run)) == [[2, 77]] * 2


def test_who_has_not_waited_long_yet_waits_on() -> None:
    """Where another worker's wait for the same round is over."""
    with stores(3, deadline=2.0) as opened:
        all_well(together(opened, lambda store: store.init("w", mx.nd.zeros(1))))
        ended: dict[int, float] = {}

        def waits(rank: int) -> None:
            put(opened[rank])
            with pytest.raises(mx.MXNetError, match="did not push"):
                get(opened[rank])
            ended[rank] = time.monotonic()

        threads = [threading.Thread(target=waits, args=(rank,)) for rank in (0, 1)]
        for thread in threads:
            thread.start()
            time.sleep(1.2)
        for thread in threads:
            thread.join()
        assert ended[1] - ended[0] > 0.6


@pytest.mark.parametrize("last", [0, 1])
def test_counts_of_several_devices_in_a_file_become_one(tmp_path: Any, last: int) -> None:
    optimizer = mx.optimizer.Adam()
    for device_id in (last, 1 - last, last):  # the one that was in use at last has missed some
        optimizer._set_current_context(device_id)
        optimizer._index_update_count["w"] = 3 if device_id == last else 5
    file = tmp_path / "states"
    updater = mx.optimizer.Updater(optimizer)
    updater.states = {"w": (mx.nd.zeros(1), mx.nd.zeros(1))}
    file.write_bytes(updater.get_states(dump_optimizer=True))
    with stores(2, 2) as opened:

        def run(store: Any) -> None:
            store.init("w", mx.nd.zeros(1))
            store.set_optimizer(mx.optimizer.Adam())
            store.load_optimizer_states(str(file))
            put(store)
            store.save_optimizer_states(str(tmp_path / f"saved{store.rank}"), dump_optimizer=True)

        all_well(together(opened, run))
    saved = mx.optimizer.Updater(mx.optimizer.Adam())
    saved.load(str(tmp_path / "saved0"))
    assert saved.optimizer._all_index_update_counts == {0: {"w": 6}}
