"""Ctrl-C, and signals' handlers that use the store themselves, anywhere in a call: the store goes on."""

import gc
import itertools
import os
import signal
import threading
import time

import pytest

import mxcore as mx
from mxcore_kv_dist.allreduce import AllReduce
from mxcore_kv_dist.store import DistKVStore
from tests.kvstore_dist.jobs import job, servers, stores, together
from tests.kvstore_dist.processes import wait_until

# Python tells of a Ctrl-C in a finalizer, and cannot raise it there.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore:unclosed")
FILES = ("mxcore_kv_dist/client.py", "mxcore_kv_dist/store.py", "mxcore/kvstore/transfers.py")
RING = ("mxcore_kv_dist/reducer.py", "mxcore_kv_dist/ring.py", "mxcore_kv_dist/client.py")


def round_of(store, key, value):
    out = mx.nd.zeros(3)
    store.pushpull(key, mx.nd.full(3, value), out=out)
    return out.asnumpy().tolist()


@pytest.mark.parametrize("transport", ["auto", "tcp"])
@pytest.mark.parametrize("call", ["pushpull", "push", "pull", "barrier"])
def test_a_store_goes_on_behind_ctrl_c(interrupted, call, transport):
    with stores(1, 2, deadline=10.0, transport=transport) as (store,):
        value, out = mx.nd.ones(3), mx.nd.zeros(3)
        store.init(["a", "b"], [value] * 2)
        work = {
            "pushpull": lambda: store.pushpull(["a", "b"], [value] * 2, out=[out, mx.nd.zeros(3)]),
            "push": lambda: store.push(["a", "b"], [value] * 2),
            "pull": lambda: store.pull(["a", "b"], out=[out, mx.nd.zeros(3)]),
            "barrier": store.barrier,
        }[call]
        places = interrupted(0, FILES, work)
        assert places > 20
        for n in range(1, places):
            interrupted(n, FILES, work)
            if n % 10 == 0:
                assert round_of(store, "a", n) == [n] * 3 and round_of(store, "b", -n) == [-n] * 3
        out.wait_to_read()
        assert round_of(store, "a", 7) == [7] * 3
        wait_until(lambda: all(slot.free for parts in store._parts.values() for slot in parts))


@pytest.mark.parametrize("type", ["dist_sync", "dist_async"])
@pytest.mark.parametrize("other", ["pushpull", "barrier"])
def test_a_handler_uses_the_store_that_it_interrupts(handled_anywhere, type, other):
    with stores(1, deadline=10.0, type=type) as (store,):
        store.init(["a", "b"], [mx.nd.zeros(3)] * 2)
        store.set_optimizer(mx.optimizer.create("test"))
        n = [0, 0]

        def work():
            n[0] += 1
            out = mx.nd.zeros(3)
            store.pushpull("a", mx.nd.ones(3), out=out)
            assert out.asnumpy().tolist() == [n[0]] * 3

        def handler():
            if other == "barrier":
                return store.barrier()
            n[1] += 1
            out = mx.nd.zeros(3)
            store.pushpull("b", mx.nd.ones(3), out=out)
            assert out.asnumpy().tolist() == [n[1]] * 3

        assert handled_anywhere(FILES, work, handler) > 20 and n[0] > 20


@pytest.mark.parametrize("transport", ["auto", "tcp"])
def test_a_handler_pushes_the_key_that_is_pushed(handled_anywhere, transport):
    with stores(1, deadline=10.0, transport=transport) as (store,):
        store.init("a", mx.nd.zeros(3))
        store.set_optimizer(mx.optimizer.create("test"))  # adds up
        n = [0, 0]

        def push(i, value):
            n[i] += 1
            store.push("a", mx.nd.full(3, value))

        handled_anywhere(FILES, lambda: push(0, 1), lambda: push(1, 1000))
        out = mx.nd.zeros(3)
        store.pull("a", out=out)
        assert out.asnumpy().tolist() == [n[0] + 1000 * n[1]] * 3 and min(n) > 20


def threads():
    """Those of connections of workers."""
    return [t for t in threading.enumerate() if t.name.startswith("mxcore-kv-") and "server" not in t.name]


def all_gone():
    end = time.monotonic() + 20
    while threads() and time.monotonic() < end:
        gc.collect()
        time.sleep(0.05)
    return not threads()


def test_ctrl_c_while_a_store_is_made_leaves_no_thread(interrupted):
    with servers(1, 1) as made:
        here, ordinals = job(made, 0, 1), itertools.count()  # a store that was made in part is lost for its job

        def make():
            DistKVStore("dist_sync", here, next(ordinals)).close()

        places = interrupted(0, FILES, make)
        assert places > 50
        for n in range(1, places, 3):
            interrupted(n, FILES, make)
        assert all_gone()
        make()


def test_ctrl_c_while_a_ring_is_made_or_used(interrupted):
    with servers(1, 2) as made:
        jobs = [job(made, rank, 2, 2.0) for rank in range(2)]
        places = [*range(1, 60, 9), *range(60, 400, 40)]
        for ordinal, n in enumerate(places):
            other = threading.Thread(target=lambda n=ordinal: together([jobs[1]], lambda j: use(j, n)), daemon=True)
            other.start()
            interrupted(n, RING, lambda n=ordinal: use(jobs[0], n))
            other.join(60)
            assert not other.is_alive()
        assert all_gone()
        assert together(jobs, lambda j: use(j, len(places))) == [[2, 2, 2]] * 2


def use(here, ordinal):
    store = AllReduce("allreduce", here, ordinal)
    try:
        return round_of(store, "a", 1)
    finally:
        store.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.filterwarnings("ignore:This process")
def test_a_child_of_a_fork_is_told():
    """Also where another thread was pushing at that moment."""
    with stores(1) as (store,):
        store.init("a", mx.nd.ones(3))
        holds, go_on = threading.Event(), threading.Event()

        def pushing():
            with store._pushing:
                holds.set()
                go_on.wait(30)

        thread = threading.Thread(target=pushing)
        thread.start()
        holds.wait(30)
        child = os.fork()
        if child == 0:
            told = 0
            for call in (lambda: store.init("b", mx.nd.ones(3)), lambda: store.push("a", mx.nd.ones(3)), store.barrier):
                try:
                    call()
                except mx.MXNetError as e:
                    told += "was forked from the worker that has made this store" in str(e)
            os._exit(told)
        ended = []
        try:
            wait_until(lambda: ended.append(os.waitpid(child, os.WNOHANG)) or ended[-1][0])
        finally:
            go_on.set()
            thread.join()
            if not ended[-1][0]:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(ended[-1][1]) == 3
