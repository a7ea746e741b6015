"""What goes wrong: workers and servers that vanish, hang or talk nonsense. All are told, and nobody waits for ever."""

from __future__ import annotations

import copy
import errno
import gc
import importlib
import json
import os
import pickle
import random
import re
import signal
import socket
import struct
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mxcore as mx
from mxcore_kv_dist import board, lifetime, memory, wire
from mxcore_kv_dist.allreduce import AllReduce
from mxcore_kv_dist.job import Job
from mxcore_kv_dist.peer import kind_of, told
from mxcore_kv_dist.server import PROTOCOL, Server
from mxcore_kv_dist.store import DistKVStore
from tests.kvstore_dist import jobs
from tests.kvstore_dist.jobs import TOKEN, all_well, job, rings, server_of, servers, stores, together
from tests.kvstore_dist.processes import TOKEN as PROCESS_TOKEN
from tests.kvstore_dist.processes import reaped, said, spawn, wait_until

TRANSPORTS = ("auto", "tcp")


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    end = time.monotonic() + 10
    while names := [t.name for t in threading.enumerate() if t.name.startswith(("mxcore-kv-", "mxcore-to-rank"))]:
        assert time.monotonic() < end, names
        time.sleep(0.02)


def begin(store: Any) -> None:
    store.init("w", mx.nd.zeros(3))
    if "async" in store.type:
        store.set_optimizer(mx.optimizer.SGD(learning_rate=1.0))


def put(store: Any, value: Any = 1) -> None:
    store.push("w", mx.nd.full(3, value))


def get(store: Any) -> float:
    out = mx.nd.empty(3)
    store.pull("w", out=out)
    return float(out.asnumpy()[0])


def vanish(store: DistKVStore) -> None:
    """What the kernel does to the connections of a process that is killed."""
    for link in store._links:
        link._channel.end()


# -- workers that are gone, slow or stuck ----------------------------------------------------------------------------


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_lost_worker_ends_a_synchronous_job(transport: str) -> None:
    with stores(3, 2, transport=transport) as opened:
        all_well(together(opened, begin))
        out = mx.nd.zeros(3)
        put(opened[0])
        opened[0].pull("w", out=out)  # it waits by now
        failing = threading.Thread(target=vanish, args=(opened[2],))
        start = time.monotonic()
        failing.start()
        with pytest.raises(mx.MXNetError, match=r"key 'w': rank 2 was lost.*last heard of 0\.\d s ago.*cannot go on"):
            out.wait_to_read()
        with pytest.raises(mx.MXNetError, match=r"barrier: rank 2 was lost"):
            opened[1].barrier()
        with pytest.raises(mx.MXNetError, match="rank 2 was lost"):
            get(opened[0])
        assert time.monotonic() - start < 5
        failing.join()
        with pytest.raises(mx.MXNetError, match="rank 2 was lost, and a synchronous job cannot go on"):
            DistKVStore("dist_sync", opened[2]._job)


def test_an_asynchronous_job_goes_on_without_a_lost_worker() -> None:
    def wait(store: Any) -> None:
        if store.rank == 2:
            time.sleep(0.2)
            vanish(store)
        else:
            store.barrier()

    with stores(3, 2, "dist_async") as opened:
        all_well(together(opened, begin))
        all_well(together(opened, wait))
        assert opened[0].num_dead_node() == 1
        put(opened[0])
        put(opened[1])
        all_well(together(opened[:2], lambda store: store.barrier()))
        assert get(opened[0]) == get(opened[1]) == -2
        again = DistKVStore("dist_async", opened[2]._job)  # another process takes its place
        begin(again)
        assert again.num_dead_node() == 0
        put(again)
        assert get(again) == -3
        again.close()


def test_who_leaves_early_is_told_to_those_who_wait() -> None:
    with stores(2) as opened:
        all_well(together(opened, begin))
        for store in opened:
            put(store)
        opened[1].close()
        assert get(opened[0]) == 2  # that round is complete
        put(opened[0])
        with pytest.raises(mx.MXNetError, match=r"key 'w': rank 1 left the job 0\.\d s ago"):
            get(opened[0])
        with pytest.raises(mx.MXNetError, match="barrier: rank 1 left the job"):
            opened[0].barrier()


def test_deadlines_name_who_is_waited_for() -> None:
    with stores(2, deadline=0.5) as opened:
        all_well(together(opened, begin))
        put(opened[0])
        with pytest.raises(
            mx.MXNetError, match=r"waited 0\.5 s for round 1 of key 'w', to which rank 1 \(last heard of \d.\d s ago\)"
        ):
            get(opened[0])
        with pytest.raises(mx.MXNetError, match=r"barrier: waited 0\.5 s for rank 1 \(last heard of"):
            opened[0].barrier()
        with pytest.raises(mx.MXNetError, match=r"init of 'v': waited 0\.5 s for rank 1"):
            opened[0].init("v", mx.nd.zeros(2))
    with servers(1, 2) as made:
        alone = DistKVStore("dist_sync", job(made, 0, 2, deadline=0.5))
        with pytest.raises(mx.MXNetError, match=r"for rank 1 \(which never joined\)"):
            alone.barrier()
        alone.close()


def test_a_slow_worker_is_waited_for() -> None:
    def run(store: Any) -> float:
        begin(store)
        if store.rank:
            time.sleep(1.5)
        put(store)
        return get(store)

    with stores(2, deadline=5) as opened:
        assert all_well(together(opened, run)) == [2, 2]


def test_workers_at_different_places_are_told_at_once() -> None:
    def run(store: Any) -> None:
        if store.rank:
            store.barrier()
        else:
            begin(store)

    with stores(2) as opened:
        for result in together(opened, run):
            assert "rank 0 at init of 'w'; rank 1 at barrier" in str(result)


@pytest.mark.parametrize("call", ["push", "pull", "barrier"])
def test_a_server_that_does_not_answer(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has hung itself up: worker and server are there, but what is asked is never answered."""
    monkeypatch.setattr("mxcore_kv_dist.client._GRACE", 0.5)
    go_on = threading.Event()
    with stores(1, deadline=0.5) as (store,):
        begin(store)
        space = next(iter(server_of(store)._spaces.values()))
        monkeypatch.setattr(space, "_handle", lambda *args: go_on.wait(20))
        start = time.monotonic()
        with pytest.raises(
            mx.MXNetError, match=r"server 0 at .* has not answered for 1 s \((barrier|the value of key)"
        ):
            if call == "push":
                put(store)
            if call == "barrier":
                store.barrier()
            else:
                get(store)
        assert time.monotonic() - start < 5
        with pytest.raises(TimeoutError):
            put(store)
        go_on.set()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_server_that_takes_nothing(transport: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages fill the buffers of the kernel; who sends does not wait for ever."""
    monkeypatch.setattr("mxcore_kv_dist.client._GRACE", 0.5)
    go_on = threading.Event()
    with stores(1, deadline=0.5, transport=transport) as (store,):
        store.init("w", mx.nd.zeros(5_000_000))
        store.set_gradient_compression({"type": "fp16"})  # the bytes go through the connection
        space = next(iter(server_of(store)._spaces.values()))
        monkeypatch.setattr(space, "_handle", lambda *args: go_on.wait(20))
        store.push("w", mx.nd.ones(5_000_000))
        store.push("w", mx.nd.ones(5_000_000))
        with pytest.raises(mx.MXNetError, match="server 0 at .* (has taken nothing for 1 s|has not answered for 1 s)"):
            store.barrier()
        go_on.set()


def test_a_dead_server_ends_the_job() -> None:
    with stores(2, 2) as opened:
        all_well(together(opened, begin))
        out = mx.nd.zeros(3)
        put(opened[0])
        opened[0].pull("w", out=out)
        opened[0]._links[0].flush()
        server_of(opened[0]).close()
        with pytest.raises(ConnectionError, match="server 0 at .* is lost"):
            out.wait_to_read()
        time.sleep(0.05)
        for use in (put, get, lambda s: s.barrier(), lambda s: s.init("x", mx.nd.zeros(1))):
            with pytest.raises(ConnectionError, match="server 0 at .* is lost"):
                use(opened[0])


# -- what a failure must not leave behind ----------------------------------------------------------------------------


def test_a_push_does_not_wait_for_a_pull_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is pushed first in line may be computed from what is pulled after it."""
    go_on = threading.Event()
    with stores(1) as (store,):
        store.init(["a", "b", "c"], [mx.nd.ones(3)] * 3)
        link = store._links[0]
        send = link._send_batch

        def late(batch: Any) -> None:
            go_on.wait(20)
            send(batch)

        monkeypatch.setattr(link, "_send_batch", late)
        store.push("c", mx.nd.ones(3))
        a, b = mx.nd.empty(3), mx.nd.empty(3)
        store.pull("a", out=a, priority=-5)
        store.push("b", a * 2, priority=0)
        store.pull("b", out=b, priority=0)
        go_on.set()
        assert b.asnumpy().tolist() == [2, 2, 2]


def pending_failure() -> tuple[Any, threading.Event]:
    """An array that is pending, and fails as soon as the event is set."""
    from mxcore._core.engine import engine

    out, go_on = mx.nd.zeros(3), threading.Event()

    def fail() -> None:
        go_on.wait(20)
        raise ValueError("no gradient today")

    engine.it.push(mx.cpu(6), fail, (), (out._st,), "a failing gradient")
    return out, go_on


@pytest.mark.parametrize("type", ["dist_sync", "dist_async"])
def test_a_gradient_that_fails_is_told(type: str) -> None:
    """To all workers of a synchronous job; in an asynchronous one to the worker itself."""
    with stores(2, type=type) as opened:
        all_well(together(opened, begin))
        bad, go_on = pending_failure()
        opened[0].push("w", bad)
        put(opened[1])
        go_on.set()
        with pytest.raises(mx.MXNetError, match="the push of rank 0 failed: no gradient today"):
            get(opened[0])
        if type == "dist_async":
            assert get(opened[1]) == get(opened[0]) == -1  # who pushed sees it, and then anybody
        else:
            with pytest.raises(mx.MXNetError, match="the push of rank 0 failed: no gradient today"):
                get(opened[1])


def test_arrays_of_a_push_that_comes_to_nothing_can_be_written() -> None:
    """Gradients wait until their push has read them; not if there is nobody any more who will."""
    from mxcore._core.engine import engine

    with stores(1) as (store,):
        store.init(["a", "b"], [mx.nd.ones(3)] * 2)
        good, go_on = mx.nd.ones(3), threading.Event()
        engine.it.push(mx.cpu(5), lambda: (go_on.wait(20), None)[1], (), (good._st,), "a slow gradient")
        store.push("a", good)
        vanish(store)
        time.sleep(0.05)
        go_on.set()
        good[:] = 7
        assert good.asnumpy().tolist() == [7, 7, 7]
    with stores(1) as (store,):
        store.init(["a", "b"], [mx.nd.ones(3)] * 2)
        good, go_on = mx.nd.ones(3), threading.Event()
        engine.it.push(mx.cpu(5), lambda: (go_on.wait(20), None)[1], (), (good._st,), "a slow gradient")
        bad, fail = pending_failure()
        fail.set()
        while not bad._st.write.done.is_set():
            time.sleep(0.01)
        with pytest.raises(ValueError, match="no gradient today") as caught:
            store.push(["a", "b"], [good, bad])
        go_on.set()
        good[:] = 7
        assert good.asnumpy().tolist() == [7, 7, 7]
        del caught


def test_a_failed_pull_leaves_its_array_usable() -> None:
    with stores(2, deadline=0.3) as opened:
        all_well(together(opened, begin))
        out = mx.nd.ones(3)
        put(opened[0])
        opened[0].pull("w", out=out)
        with pytest.raises(mx.MXNetError, match="waited"):
            out.asnumpy()
        out[:] = 5
        assert out.asnumpy().tolist() == [5, 5, 5]
        put(opened[1])  # now the round is complete, and the next pull gets it
        assert get(opened[0]) == 2


# -- ends ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_what_was_asked_before_close_still_comes(transport: str) -> None:
    with stores(2, transport=transport) as opened:
        all_well(together(opened, begin))
        first, second = mx.nd.empty(3), mx.nd.empty(3)
        put(opened[0])
        opened[0].pull("w", out=first)
        put(opened[0], 10)  # in line behind the pull
        closing = threading.Thread(target=opened[0].close)
        closing.start()
        time.sleep(0.1)
        put(opened[1])
        opened[1].pull("w", out=second)
        put(opened[1], 10)
        closing.join(10)
        assert not closing.is_alive()
        assert first.asnumpy()[0] == second.asnumpy()[0] == 2
        assert get(opened[1]) == 20
        with pytest.raises(mx.MXNetError, match="the store was closed"):
            put(opened[0])
        with pytest.raises(mx.MXNetError, match="the store was closed"):
            get(opened[0])
        with pytest.raises(mx.MXNetError, match="the store was closed"):
            opened[0].barrier()


def test_at_the_end_of_the_program_all_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what was opened before something that cannot be left in time."""
    closed: list[Any] = []

    class Opened:
        def close(self, failure: str = "") -> None:
            closed.append(self)
            raise TimeoutError("it has waited")

        def forked(self) -> None:
            pass

    monkeypatch.setattr(lifetime, "_open", weakref.WeakValueDictionary())
    first, second = Opened(), Opened()
    lifetime.enlist(first)
    lifetime.enlist(second)
    with pytest.raises(TimeoutError):
        lifetime._close_all()
    assert closed == [second, first]


@pytest.mark.parametrize("wait", ["push", "pull"])
def test_waits_for_what_is_not_computed_end_at_the_deadline(wait: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both a question, which comes after what was pushed, and the goodbye."""
    from mxcore._core.engine import engine

    monkeypatch.setattr("mxcore_kv_dist.client._GRACE", 0.2)
    monkeypatch.setattr("mxcore_kv_dist.client._BEAT", 0.25)
    computing: Future[None] = Future()
    with stores(1, deadline=0.5) as (store,):
        begin(store)
        array, out = mx.nd.ones(3), mx.nd.ones(3)
        if wait == "push":
            engine.it.push(mx.cpu(5), lambda: computing, (), (array._st,), "a slow gradient")
            store.push("w", array)
        else:
            engine.it.push(mx.cpu(5), lambda: computing, (out._st,), (), "what is busy with the array")
            store.pull("w", out=out)
            put(store)  # in line behind the pull
        start = time.monotonic()
        text = r"for 0\.9 s nothing has gone to server 0 at .*: what is pushed and pulled of 'w' waits for arrays"
        with pytest.raises(TimeoutError, match=text):
            store.barrier()
        with pytest.raises(TimeoutError, match=text):
            store.close()
        assert time.monotonic() - start < 5
        computing.set_result(None)


def test_close_while_others_push(restless: Any) -> None:
    with stores(1) as (store,):
        store.init(list(range(8)), [mx.nd.zeros(1000)] * 8)
        ends = []

        def work(key: int) -> None:
            out = mx.nd.empty(1000)
            try:
                while True:
                    store.push(key, mx.nd.ones(1000))
                    store.pull(key, out=out)
                    out.wait_to_read()
            except mx.MXNetError as e:
                ends.append(str(e))

        threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(8)]
        for t in threads:
            t.start()
        time.sleep(0.3)
        store.close()
        for t in threads:
            t.join(10)
    assert len(ends) == 8 and all("the store was closed" in e for e in ends)


def test_stores_that_nobody_has_leave_by_themselves() -> None:
    with servers(1, 1) as (server,):
        before = threading.active_count()
        for ordinal in range(3):
            store = DistKVStore("dist_sync", job([server], 0, 1), ordinal)
            begin(store)
            put(store)
            out = mx.nd.empty(3)
            store.pull("w", out=out)
            del store
            gc.collect()
            assert out.asnumpy()[0] == 1  # what was asked for comes
        assert server.wait(10)
        end = time.monotonic() + 5
        while (server._spaces or threading.active_count() > before) and time.monotonic() < end:
            time.sleep(0.02)
        assert not server._spaces  # nobody will ask for their values
        assert threading.active_count() <= before


def test_copies_are_refused() -> None:
    with stores(1) as (store,):
        for how in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="can be neither copied nor pickled; make one in each worker"):
                how(store)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_is_told_and_leaves_its_parent_alone() -> None:
    with stores(1) as (store,):
        begin(store)
        put(store)
        reader, writer = os.pipe()
        pid = os.fork()
        if not pid:
            said = []
            for use in (put, get, lambda s: s.barrier()):
                try:
                    use(store)
                    said.append("nothing")
                except BaseException as e:
                    said.append(str(e))
            store.close()
            os.write(writer, "\n".join(said).encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as f:
            said = f.read().split("\n")
        os.waitpid(pid, 0)
        assert len(said) == 3 and all(f"process {pid} was forked from the worker" in s for s in said), said
        assert get(store) == 1
        put(store, 5)
        assert get(store) == 5


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("wait", [lambda s: s.barrier(), get])
def test_waits_can_be_interrupted(wait: Any) -> None:
    with stores(2, deadline=2) as opened:
        all_well(together(opened, begin))
        put(opened[0])
        timer = threading.Timer(0.2, signal.raise_signal, (signal.SIGINT,))
        main = threading.main_thread().ident
        assert main is not None
        timer = threading.Timer(0.2, signal.pthread_kill, (main, signal.SIGINT))
        start = time.monotonic()
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            wait(opened[0])
        assert time.monotonic() - start < 1.5
        put(opened[1])
        assert get(opened[1]) == 2


# -- bad input of users ----------------------------------------------------------------------------------------------


def test_bad_calls() -> None:
    with stores(1) as (store,):
        with pytest.raises(KeyError, match="push of key 'w', which was not initialised"):
            put(store)
        with pytest.raises(KeyError, match="pull of key 'w', which was not initialised"):
            get(store)
        begin(store)
        with pytest.raises(ValueError, match=r"push of key 'w': its value has shape \(3,\).*has shape \(4,\)"):
            store.push("w", mx.nd.ones(4))
        with pytest.raises(ValueError, match=r"pull of key 'w': its value has shape \(3,\).*has shape \(1, 3\)"):
            store.pull("w", out=mx.nd.ones((1, 3)))
        with pytest.raises(TypeError, match="push of key 'w': its value is float32, the array on cpu.0. is float64"):
            store.push("w", mx.nd.ones(3, dtype="float64"))
        with pytest.raises(ValueError, match="key 'w' was initialised before"):
            begin(store)
        with pytest.raises(ValueError, match="key 'x' was initialised before"):
            store.init(["x", "x"], [mx.nd.ones(1)] * 2)
        with pytest.raises(TypeError, match="key 3 is of type int, but the keys of this store are str"):
            store.init(3, mx.nd.ones(1))
        put(store)
        assert get(store) == 1


@pytest.mark.parametrize(
    "other, text",
    [
        (("w", (4,), "float32"), r"of key 'w' rank \d has shape \(\d,\) of float32 \(default\), rank \d has"),
        (("w", (1, 3), "float32"), r"of key 'w' rank \d has shape"),
        (("w", (3,), "float64"), r"of key 'w' rank \d has shape \(3,\) of float"),
        (("v", (3,), "float32"), r"rank 0 at init of '\w'; rank 1 at init of '\w'"),
    ],
)
def test_one_worker_disagrees(other: Any, text: str) -> None:
    """All hear it alike, and can agree on something else under the same key, of any size."""

    def run(store: Any) -> None:
        key, shape, dtype = other if store.rank else ("w", (3,), "float32")
        store.init(key, mx.nd.zeros(shape, dtype=dtype))

    def again(store: Any) -> list[float]:
        out = mx.nd.empty(9)
        store.init("w", mx.nd.ones(9))
        store.pushpull("w", mx.nd.ones(9), out=out)
        return list(out.asnumpy())

    with stores(2, 2) as opened:
        for result in together(opened, run):
            assert isinstance(result, mx.MXNetError)
            assert isinstance(result, RuntimeError if other[0] == "v" else ValueError)
            with pytest.raises(mx.MXNetError, match=text):
                raise result
        assert all_well(together(opened, again)) == [[2.0] * 9] * 2


def test_one_of_many_keys_differs() -> None:
    """Also where the first keys and their number are the same."""

    def run(store: Any) -> None:
        keys = [*range(7), 70 + store.rank]
        store.init(keys, [mx.nd.zeros(1)] * 8)

    with stores(2) as opened:
        for result in together(opened, run):
            assert "do not have the same keys in the same order: they differ at 7" in str(result)


def test_hands_that_do_not_belong(monkeypatch: pytest.MonkeyPatch) -> None:
    with servers(1, 2) as made:
        place = job(made, 0, 2)
        store = DistKVStore("dist_sync", place)
        with pytest.raises(ConnectionError, match="rank 0 is taken"):
            DistKVStore("dist_sync", place)
        with pytest.raises(ConnectionError, match=r"rank 1 made a store of type 'dist_async', others made 'dist_sync'"):
            DistKVStore("dist_async", job(made, 1, 2))
        for wrong in (replace(place, rank=2), replace(place, workers=3), replace(place, rank=-1)):
            with pytest.raises(ConnectionError, match="wants to join a job of 2: RANK and WORLD_SIZE"):
                DistKVStore("dist_sync", wrong)
        for token in (b"", b"guess"):
            with pytest.raises(ConnectionError, match="do not have the same token"):
                DistKVStore("dist_sync", replace(place, token=token))
        nowhere = [("127.0.0.1", 9, ""), ("a..b", 9, ""), ("\ud800", 9, ""), ("127.0.0.1", 9, "@\ud800")]
        for server in (*nowhere, ("127.0.0.1", 10**30, "")):
            with pytest.raises(ConnectionError, match="no server answers"):
                DistKVStore("dist_sync", replace(place, servers=[server]))
        with monkeypatch.context() as patch:
            patch.setattr("mxcore_kv_dist.client._program", lambda: "another")
            with pytest.raises(ConnectionError, match="rank 1 runs another program"):
                DistKVStore("dist_sync", job(made, 1, 2))
        with monkeypatch.context() as patch:
            patch.setenv("MXNET_KVSTORE_BIGARRAY_BOUND", "7")
            with pytest.raises(
                ConnectionError, match="rank 1 splits values of 7 elements and more .* of 1000000: MXNET"
            ):
                DistKVStore("dist_sync", job(made, 1, 2))
        with monkeypatch.context() as patch:
            patch.setattr("mxcore_kv_dist.client.PROTOCOL", 99)
            with pytest.raises(
                ConnectionError, match="rank 1 has version 99 of the protocol of stores, the server has"
            ):
                DistKVStore("dist_sync", job(made, 1, 2))
        assert store.num_dead_node() == 0
        store.close()
    with pytest.raises(ValueError, match="needs a token"):
        Server(0, 1, 1, b"")
    with servers(2, 1) as made:
        place = job(made, 0, 1)
        for wrong in (replace(place, servers=place.servers[::-1]), replace(place, servers=place.servers[:1])):
            with pytest.raises(ValueError, match="the job has 2 servers, but MXCORE_KV_SERVERS lists"):
                DistKVStore("dist_sync", wrong)
            for server in made:  # they hear in their own time that it has left
                assert server.wait(10)


def test_one_worker_sets_another_optimizer() -> None:
    def run(store: Any) -> None:
        store.init("w", mx.nd.zeros(3))
        store.set_optimizer(mx.optimizer.SGD(learning_rate=0.5))  # all alike
        store.set_optimizer(mx.optimizer.SGD(learning_rate=0.1 * (store.rank + 1), momentum=0.9))

    with stores(2, 2) as opened:
        failed, *_ = [e for e in together(opened, run) if e is not None]  # on one server each, perhaps
        assert isinstance(failed, mx.MXNetError)
        for text in (
            r"rank \d sets the optimizer sgd\(lr=0.\d\), but rank \d has set sgd\(lr=0.\d\)",
            "lr=0.1",
            "lr=0.2",
        ):
            with pytest.raises(mx.MXNetError, match=text):
                raise failed


class Own(KeyError):
    """An exception that only one process knows."""


@pytest.mark.parametrize(
    "raised, kind",
    [
        (Own("x"), KeyError),
        (FileNotFoundError("x"), FileNotFoundError),
        (UnicodeDecodeError("utf-8", b"x", 0, 1, "x"), UnicodeError),
        (mx.base.error(ValueError, "x"), ValueError),
        (mx.MXNetError("x"), RuntimeError),
    ],
)
def test_errors_that_another_process_tells_of_are_of_their_kind(raised: Exception, kind: type[Exception]) -> None:
    found = told(kind_of(raised), "words")
    assert isinstance(found, kind) and isinstance(found, mx.MXNetError) and "words" in str(found)


@pytest.mark.parametrize("name", ["print", "int", "SystemExit", "ExceptionGroup", "Nothing", 3, [1], None])
def test_errors_of_unknown_kinds_are_still_told(name: Any) -> None:
    found = told(name, "words")
    assert type(found) is type(mx.base.error(RuntimeError, "words")) and "words" in str(found)


def test_what_no_message_can_say_is_refused_before_it_is_sent() -> None:
    with stores(1, deadline=2) as (store,):
        begin(store)
        with pytest.raises(TypeError, match=r"a question \(heard\) that cannot be sent: .*int64"):
            store._ask(0, "heard", ranks=[np.int64(0)])
        assert store.num_dead_node(0, np.int64(3)) == 0
        with pytest.raises(TypeError, match="a priority is an int, not None"):
            store.push("w", mx.nd.ones(3), priority=None)
        put(store)
        assert get(store) == 1


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("inf"), float("nan"), 1e300])
def test_deadlines_that_no_clock_can_keep(seconds: float) -> None:
    with pytest.raises(ValueError, match=r"the deadline .* must be a number of seconds above zero, a year at most"):
        Job(0, 2, [("127.0.0.1", 9, "")], TOKEN, seconds)


# -- memory ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("type", ["dist_sync", "dist_async"])
def test_a_full_memory_is_told_to_all_and_the_job_can_go_on(type: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def large(store: Any) -> None:
        store.init("large", mx.nd.zeros(300_000))

    with stores(2, type=type) as opened:
        with monkeypatch.context() as patch:
            patch.setattr("mxcore_kv_dist.memory._room", lambda: 1_000_000)
            for failed in together(opened, large):
                assert isinstance(failed, MemoryError)
                assert (
                    "first values of 'large': no room for the values of server 0: 1,200,000 bytes of shared memory"
                    in str(failed)
                )
                assert "1,000,000 are free" in str(failed)
        all_well(together(opened, begin))
        all_well(together(opened, large))


@pytest.mark.parametrize(
    "transport, wanted",
    [("auto", "the values of server 1"), ("auto", "the pushes of rank 1 on server 1"), ("tcp", "the values of server")],
)
@pytest.mark.parametrize("type", ["dist_sync", "dist_async"])
@pytest.mark.parametrize("shape", [(4000, 10), (6, 10)])
def test_a_key_for_which_one_server_has_no_room_is_free_again(
    shape: Any, type: str, transport: str, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On all servers: also those that had room for their parts, which is given back."""
    monkeypatch.setenv("MXNET_KVSTORE_BIGARRAY_BOUND", "40")

    def refuse(size: int, what: str) -> memory.Segment:
        if what.startswith(wanted):
            raise mx.base.error(MemoryError, "no room today")
        return memory.Segment(size, what)

    def again(store: Any) -> list[float]:
        store.init("w", mx.nd.zeros(shape))
        if type == "dist_async":
            store.set_optimizer(mx.optimizer.SGD(learning_rate=-1.0))
        out = mx.nd.empty(shape)
        store.push("w", mx.nd.ones(shape))
        store.barrier()
        store.pull("w", out=out)
        return [float(out.min().asscalar()), float(out.max().asscalar())]

    with stores(2, 2, type, transport=transport) as opened:
        with monkeypatch.context() as patch:
            patch.setattr("mxcore_kv_dist.space.Segment", refuse)
            for failed in together(opened, lambda store: store.init("w", mx.nd.zeros((4000, 10)))):
                assert isinstance(failed, MemoryError) and "no room today" in str(failed)
        for server in jobs._running:
            (space,) = server._spaces.values()
            assert not (space._slots or space._by_key)
            assert not any(peer.slots or peer.pushed or peer.pulled for peer in space.roster.peers.values())
        assert all_well(together(opened, again)) == [[2, 2]] * 2


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="the system has another way")
def test_what_the_system_refuses_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with (
        stores(1) as (store,),
        pytest.raises(MemoryError, match=r"first values of 'w'.*64 bytes.*No space left on device"),
    ):
        begin(store)


@pytest.mark.parametrize(
    "mine, folder, limit, used, room",
    [
        ("0::/", "", "max", "current", 1200),
        ("0::/user.slice/job_7", "user.slice/job_7", "max", "current", 1200),
        ("0::/user.slice/job_7", "user.slice", "max", "current", 1200),  # the limit of a group around it
        ("0::/seen/from/outside", "", "max", "current", 1200),
        ("5:cpu:/x\n4:memory:/job\n0::/", "memory/job", "limit_in_bytes", "usage_in_bytes", 1300),
    ],
)
def test_a_group_of_processes_has_less_room_than_its_host(
    mine: str, folder: str, limit: str, used: str, room: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mxcore_kv_dist.memory._GROUPS", tmp_path)
    monkeypatch.setattr("mxcore_kv_dist.memory._MINE", tmp_path / "mine")
    host = memory._room()
    (tmp_path / "mine").write_text(mine + "\n")
    group = tmp_path / folder
    group.mkdir(parents=True, exist_ok=True)
    (group / f"memory.{limit}").write_text("5000\n")
    (group / f"memory.{used}").write_text("4000\n")
    (group / "memory.stat").write_text("anon 1\ninactive_file 200\ntotal_inactive_file 300\n")
    assert memory._room() == room
    (group / f"memory.{limit}").write_text("max\n")
    assert host is None or memory._room() is not None


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
@pytest.mark.parametrize("kind", ["slot", "fp16"])
def test_a_server_needs_no_more_memory_for_more_workers(kind: str) -> None:
    """Those of other hosts: what one has pushed is added to what others have."""
    workers, size = 6, 5_000_000

    def run(store: Any) -> Any:
        store.init("w", mx.nd.zeros(size))
        store.barrier()
        before = resident(server.pid)
        if kind == "fp16":
            store.set_gradient_compression({"type": kind})
        gradient = mx.nd.full(size, store.rank + 1)
        if store.rank:
            store.push("w", gradient)
            store._ask(0, "echo").result()  # it has come
            arrived.wait(30)
            grown.append(resident(server.pid) - before)
            arrived.wait(30)
        else:
            for _ in range(2):
                arrived.wait(30)
            store.push("w", gradient)
        out = mx.nd.empty(size)
        store.pull("w", out=out)
        return out.asnumpy()

    grown: list[int] = []
    arrived = threading.Barrier(workers)
    with reaped() as made:
        server = spawn("serve.py", "1", str(workers))
        made.append(server)
        addresses, token = said(server), PROCESS_TOKEN.encode()
        opened = [DistKVStore("dist_sync", Job(r, workers, addresses, token, 60, "tcp")) for r in range(workers)]
        for value in all_well(together(opened, run)):
            assert (value == workers * (workers + 1) / 2).all()
        for store in opened:
            store.close()
    assert max(grown) < 2.5 * 4 * size, grown


def resident(pid: int) -> int:
    """Bytes of memory that a process has."""
    with open(f"/proc/{pid}/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")


@pytest.mark.parametrize("transport, workers", [("auto", 4), ("tcp", 2)])
def test_sums_are_the_same_in_every_run(transport: str, workers: int) -> None:
    """To the last bit on one host, and of two workers anywhere; else they are made in the order of the pushes."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(workers, 300_000)).astype("f") * 10.0 ** rng.integers(-6, 6, (workers, 300_000)).astype("f")
    expected = x[0].copy()
    for other in x[1:]:
        expected += other

    def run(store: Any) -> Any:
        store.init("w", mx.nd.zeros(x.shape[1]))
        time.sleep(0.1 * (workers - store.rank))
        out = mx.nd.empty(x.shape[1])
        store.pushpull("w", mx.nd.array(x[store.rank]), out=out)
        return out.asnumpy()

    with stores(workers, transport=transport) as opened:
        for value in all_well(together(opened, run)):
            np.testing.assert_array_equal(value, expected)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_values_without_elements(transport: str) -> None:
    @mx.util.use_np_shape
    def run(store: Any) -> Any:
        store.init(["none", "w"], [mx.nd.zeros((0, 3)), mx.nd.zeros(3)])
        outs = [mx.nd.ones((0, 3)), mx.nd.ones(3)]
        store.pushpull(["none", "w"], [mx.nd.ones((0, 3)), mx.nd.ones(3)], out=outs)
        return [out.asnumpy().tolist() for out in outs]

    with stores(2, transport=transport) as opened:
        assert all_well(together(opened, run)) == [[[], [2, 2, 2]]] * 2


# -- without servers -------------------------------------------------------------------------------------------------


def test_priorities_that_differ_do_not_stop_the_ring() -> None:
    def run(store: Any) -> Any:
        x = [mx.nd.ones(10) for _ in range(20)]
        for i, array in enumerate(x):
            store.pushpull(i, array, priority=[i, -i, 0][store.rank])
        return [array.asnumpy().max() for array in x]

    with rings(3) as opened:
        assert all_well(together(opened, run)) == [[3] * 20] * 3


def test_who_waits_in_the_ring_says_when_the_other_was_heard_of() -> None:
    with rings(3, deadline=1.0) as opened:
        late = str(opened[0]._reducer._ring.late())
        assert re.search(r"rank 0 has waited 1 s for rank 2 \(last heard of \d\.\d s ago\) in the ring", late)


def test_arrays_that_stay_busy_end_a_wait() -> None:
    """The sum cannot be written before what computes with the array has ended."""
    from mxcore._core.engine import engine

    computing: Future[None] = Future()

    def run(store: Any) -> None:
        x, out = mx.nd.ones(3), mx.nd.ones(3)
        if store.rank == 0:
            engine.it.push(mx.cpu(5), lambda: computing, (out._st,), (), "a slow computation")
        store.pushpull("x", x, out=out)
        store._reducer._thread.join(10)
        if store.rank == 0:
            computing.set_result(None)

    with rings(2, deadline=0.5) as opened:
        together(opened, run)
        with pytest.raises(mx.MXNetError, match=r"rank 0 has waited 0\.5 s for its own arrays of key 'x'"):
            opened[0].pushpull("y", mx.nd.ones(3))


def test_rings_that_nobody_has_end_by_themselves() -> None:
    def run(store: Any) -> Any:
        x = mx.nd.ones(3)
        store.pushpull("x", x)
        return x

    with servers(1, 2) as made:
        places = [job(made, rank, 2) for rank in range(2)]
        opened = all_well(together(places, lambda place: AllReduce("allreduce", place)))
        for x in all_well(together(opened, run)):
            assert (x.asnumpy() == 2).all()
        del opened
        gc.collect()
        assert made[0].wait(10)  # and no_thread_is_left


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_leaves_the_ring_alone() -> None:
    def add(store: Any) -> Any:
        x = mx.nd.ones(3)
        store.pushpull("x", x)
        return x.asnumpy().tolist()

    with rings(2) as opened:
        assert all_well(together(opened, add)) == [[2] * 3] * 2
        pid = os.fork()
        if not pid:
            try:
                add(opened[0])
            except mx.MXNetError as e:
                opened[0].close()
                os._exit(0 if "was forked from the worker" in str(e) else 1)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert all_well(together(opened, add)) == [[2] * 3] * 2


# -- nonsense --------------------------------------------------------------------------------------------------------


def stranger(server: Server) -> socket.socket:
    return socket.create_connection(server.address[:2], timeout=10)


def acquaintance(server: Server, rank: int, **other: Any) -> wire.Channel:
    """A client that knows the token, and has said who it is."""
    channel = wire.connect(server.address, TOKEN, "tcp")
    channel.send(greeting(rank, **other))
    return channel


def greeting(rank: Any = 0, **other: Any) -> dict[str, Any]:
    return {
        "rank": rank,
        "workers": 2,
        "store": 0,
        "type": "dist_async",
        "sync": False,
        "deadline": 20.0,
        "bound": 1_000_000,
        "folder": "",
        "mxcore": mx.__version__,
        "protocol": PROTOCOL,
        "program": __import__("mxcore_kv_dist.client").client._program(),
        **other,
    }


def test_servers_find_optimizers_beside_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rules_beside.py").write_text("import mxcore as mx\nclass Beside(mx.optimizer.SGD): pass\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    optimizer = importlib.import_module("rules_beside").Beside()
    monkeypatch.setattr(sys, "path", sys.path[1:])  # as in the process of a server, which has another program
    monkeypatch.delitem(sys.modules, "rules_beside")
    with stores(1) as (store,), pytest.raises(ImportError, match="module 'rules_beside' cannot be imported here"):
        store.set_optimizer(optimizer)
    monkeypatch.setattr(
        sys.modules["__main__"], "__file__", str(tmp_path / "train.py"), raising=False
    )  # without in xdist
    with stores(1) as (store,):
        store.set_optimizer(optimizer)
        begin(store)
        put(store)
        assert get(store) < 0


def test_strangers_and_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "PATIENCE", 0.5)
    rng = random.Random(0)

    def of_server() -> list[threading.Thread]:
        return [t for t in threading.enumerate() if t.name.startswith("mxcore-server-")]

    with stores(1) as (store,):
        begin(store)
        server, before = server_of(store), len(of_server())
        visitors = [stranger(server) for _ in range(40)]
        for i, visitor in enumerate(visitors):
            data = [b"", b"GET / HTTP/1.0\r\n\r\n", b"\xff" * 100, struct.pack("!i", 2**31 - 1), rng.randbytes(5000)][
                i % 5
            ]
            try:
                visitor.sendall(data)
            except OSError:
                pass
            if i % 2:
                visitor.close()
        put(store)
        assert get(store) == 1
        for visitor in visitors[::2]:  # those who stay are sent away
            with pytest.raises(OSError):
                while visitor.recv(1000):
                    pass
                raise ConnectionResetError
            visitor.close()
        wait_until(lambda: not server._guests and len(of_server()) <= before, 10)


def test_a_guest_that_trickles_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte comes in time, but the whole never does."""
    monkeypatch.setattr(wire, "PATIENCE", 0.4)
    with servers(1, 1) as (server,), stranger(server) as visitor:
        start = time.monotonic()
        with pytest.raises(OSError):
            visitor.sendall(struct.pack("!i", 100))
            while time.monotonic() - start < 10:
                visitor.sendall(b"x")
                time.sleep(0.1)
        assert time.monotonic() - start < 5


def test_a_server_that_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel takes the connection, but nobody answers."""
    monkeypatch.setattr(wire, "PATIENCE", 0.3)
    said = r"the server at 127.0.0.1:\d+ has said nothing for 0.3 s"
    with socket.create_server(("127.0.0.1", 0)) as listening, pytest.raises(ConnectionError, match=said):
        wire.connect((*listening.getsockname(), ""), TOKEN)


def test_a_server_without_descriptors_goes_on_when_there_are_some(monkeypatch: pytest.MonkeyPatch) -> None:
    accept = socket.socket.accept
    failures = iter([True] * 2)

    def failing(self: Any) -> Any:
        made = accept(self)
        if next(failures, False):
            made[0].close()
            raise OSError(24, "Too many open files")
        return made

    monkeypatch.setattr(socket.socket, "accept", failing)
    with servers(1, 1) as made:
        for _ in range(2):
            with pytest.raises(ConnectionError):
                DistKVStore("dist_sync", job(made, 0, 1))
        DistKVStore("dist_sync", job(made, 0, 1)).close()


@pytest.mark.parametrize(
    "hello",
    [
        [],
        7,
        None,
        {},
        greeting(rank="0"),
        greeting(rank=0.5),
        greeting(rank=None),
        greeting(store=[1]),
        greeting(deadline="soon"),
        greeting(deadline=10**400),
        greeting(protocol={"a": 1}),
        greeting(mxcore="0.0.0"),
    ],
)
def test_wrong_first_messages(hello: Any) -> None:
    with servers(1, 2) as (server,):
        channel = wire.connect(server.address, TOKEN)
        channel.send(hello)
        answer, _ = channel.receive()
        assert answer["refused"]
        with pytest.raises(wire.Closed):
            channel.receive()
        channel.close()
        assert server.wait(5) and not any(s.roster.peers for s in server._spaces.values())


class Raw:
    """A message as it is on the wire."""

    def __init__(self, header: Any, body: bytes = b"", size: int | None = None) -> None:
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        self.data = wire._HEAD.pack(b"MXKV", len(text), len(body) if size is None else size) + text + body


SPEC = [0, 3, [3], "float32", "default"]
NONSENSE: list[bytes] = [
    b"GET / HTTP/1.0\r\n\r\n" + b"x" * 100,
    b"\0" * 100,
    wire._HEAD.pack(b"MXKV", 2**32 - 1, 0),
    Raw(b"{not json").data,
    Raw(b"[" * 100_000).data,
    Raw(b"\xff\xfe").data,
    Raw([1, 2]).data,
    Raw({"ask": 1}).data,
    Raw({"ask": 1, "call": "__init__"}).data,
    Raw({"ask": 1, "call": 5}).data,
    Raw({"push": 5}).data,
    Raw({"push": [99]}).data,
    Raw({"push": [-1]}).data,
    Raw({"push": ["a"]}).data,
    Raw({"push": [[0, "raw", 10, None]]}, b"x" * 10).data,
    Raw({"push": [[0, "raw", 10**18, None]]}).data,
    Raw({"push": [[0, "raw", -5, None]]}).data,
    Raw({"push": [[0, "zip", 6, None]]}, b"x" * 6).data,
    Raw({"push": [[0, "2bit", 1, "much"]]}, b"x").data,
    Raw({"push": [[0, "rows", 12, 1]]}, struct.pack("<qf", 3, 1.0)).data,
    Raw({"push": [[0, "rows", 12, 1]]}, struct.pack("<qf", -1, 1.0)).data,
    Raw({"push": [[0, "rows", 12, 7]]}, b"x" * 12).data,
    Raw({"pull": [99]}).data,
    Raw({"pull": [-1]}).data,
    Raw({"pull": [[0, -4]]}).data,
    Raw({"pull": [[0, "all"]]}).data,
    Raw({"failed": [0]}).data,
    Raw({"failed": [[50, "x"]]}).data,
]
#: Questions that are answered with an error: the next can be asked.
BAD_QUESTIONS: list[tuple[dict[str, Any], bytes]] = [
    ({"call": "init", "keys": [["q", *SPEC[:3], "object", *SPEC[4:]]]}, b"x" * 24),
    ({"call": "init", "keys": [["q", 0, 2**62, [2**62], *SPEC[3:]]]}, b""),
    ({"call": "init", "keys": [["q", *SPEC]]}, b"short"),
    ({"call": "init", "keys": [["q"]]}, b""),
    ({"call": "init", "keys": 5}, b""),
    ({"call": "plan", "keys": [["q", ["many"], "float32", "default"]]}, b""),
    ({"call": "plan", "keys": [["q", [3], "object?", "default"]]}, b""),
    ({"call": "forget", "slots": [77]}, b""),
    ({"call": "replace", "slots": [0]}, b"x"),
    ({"call": "replace", "slots": [77]}, b"x" * 12),
    ({"call": "optimizer", "config": "import os", "time": 9}, b""),
    ({"call": "optimizer", "config": '{"optimizer": "x", "class": "os:system", "state": {}}', "time": 9}, b""),
    ({"call": "set_states", "config": None}, pickle.dumps(os.system)),
    ({"call": "set_states", "config": None}, b"\x80garbage"),
    ({"call": "set_states", "config": "import os"}, b""),
    ({"call": "dead", "timeout": "late"}, b""),
    ({"call": "command"}, b""),
]


def test_a_worker_that_talks_nonsense_is_told_and_dropped_and_others_go_on() -> None:
    with servers(1, 2) as (server,):
        store = DistKVStore("dist_async", job([server], 0, 2))
        broken = acquaintance(server, 1)
        assert broken.receive()[0] == {"server": 0, "servers": 1}
        helping = threading.Thread(target=lambda: begin(store))
        helping.start()
        initialise(broken)
        helping.join(10)
        broken.close()
        for step, data in enumerate(NONSENSE):
            broken = enter_again(server)
            initialise(broken)
            broken._sock.sendall(data)
            answer, _ = broken.receive()
            assert "server 0 does not understand rank 1" in answer["broken"], data[:60]
            with pytest.raises(wire.Closed):
                broken.receive()
            broken.close()
            put(store)
            assert get(store) == -step - 1
        store.close()


def test_bad_questions_are_answered() -> None:
    with servers(1, 1) as (server,):
        channel = acquaintance(server, 0, workers=1)
        channel.receive()
        ask(channel, {"call": "init", "keys": [["w", *SPEC]]}, b"\0" * 12)
        for header, body in BAD_QUESTIONS:
            assert "error" in ask(channel, header, body), header
        assert ask(channel, {"call": "echo"}) == {"answer": 5}
        channel.close()


def enter_again(server: Server) -> wire.Channel:
    """The server sees a moment later that the last one under this rank is gone."""
    end = time.monotonic() + 10
    while True:
        channel = acquaintance(server, 1)
        answer, _ = channel.receive()
        if "refused" not in answer:
            return channel
        assert time.monotonic() < end, answer
        channel.close()


def ask(channel: wire.Channel, header: dict[str, Any], body: bytes = b"") -> dict[str, Any]:
    channel.send({"ask": 5, **header}, [body])
    answer, size = channel.receive()
    channel.into(bytearray(size))
    return answer


def initialise(channel: wire.Channel) -> None:
    """Give key 'w' its first value, with the others, or hear that it has one."""
    ask(channel, {"call": "plan", "keys": [["w", *SPEC[2:]]]})
    ask(channel, {"call": "init", "keys": [["w", *SPEC]]})


def test_messages_that_are_cut_off_or_changed() -> None:
    """Bytes of true messages, cut off or changed at random places; the other worker goes on."""
    rng = random.Random(4)
    true = b"".join(
        [
            Raw({"ask": 5, "call": "init", "keys": [["w", *SPEC]]}).data,
            Raw({"push": [[0, "raw", 12, None]], "pull": [0]}, b"\0" * 12).data,
            Raw({"pull": [0]}).data,
            Raw({"beat": 1}).data,
            Raw({"bye": 1}).data,
        ]
    )
    with servers(1, 2) as (server,):
        store = DistKVStore("dist_async", job([server], 0, 2))
        first = acquaintance(server, 1)
        first.receive()
        helping = threading.Thread(target=lambda: begin(store))
        helping.start()
        initialise(first)
        helping.join(10)
        first.close()
        for step in range(150):
            data = bytearray(true[: rng.randrange(1, len(true) + 1)])
            for _ in range(rng.randrange(4)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            broken = enter_again(server)
            try:
                broken._sock.sendall(data)
            except OSError:
                pass
            broken.close()
            if step % 10 == 0:
                put(store, 0)
                get(store)
        put(store, 0)
        assert np.isfinite(get(store))
        store.close()


def test_a_server_that_talks_nonsense() -> None:
    """Workers are told, too."""
    with stores(2) as opened:
        all_well(together(opened, begin))
        put(opened[0])
        out = mx.nd.empty(3)
        opened[0].pull("w", out=out)
        opened[0]._links[0].flush()
        space = next(iter(server_of(opened[0])._spaces.values()))
        space.roster.peers[0].tell({"here": [77]})
        with pytest.raises(ConnectionError, match="server 0 at .* is lost: its message was not understood"):
            out.asnumpy()


def test_who_tells_a_job_goes_on_when_descriptors_are_short() -> None:
    """Workers that ask later would wait in vain."""
    ours, theirs = socket.socketpair()
    answers: list[Any] = [OSError(errno.EMFILE, "too many open files"), (ours, "")]

    class Place:
        def listen(self, waiting: int) -> None:
            """Nobody waits."""

        def accept(self) -> Any:
            if not answers:
                threading.Event().wait()
            answer = answers.pop(0)
            if isinstance(answer, OSError):
                raise answer
            return answer

    board.tell_host(Place(), "where")  # type: ignore[arg-type]
    theirs.settimeout(10)
    with theirs:
        assert theirs.recv(100) == b"where"


def test_many_workers_may_ask_at_once() -> None:
    """Whoever finds no room among those that wait tries again."""
    name = f"many-{os.getpid()}"
    listening = board.claim_host(name)
    listening.listen(0)
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(board.ask_host, name, 60) for _ in range(8)]
        time.sleep(0.3)
        assert not any(f.done() for f in asked)
        board.tell_host(listening, "where")
        assert [f.result(60) for f in asked] == ["where"] * 8
