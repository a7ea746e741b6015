"""The engine: order of reads and writes, poisoning, overlap, forks."""

import contextlib
import gc
import itertools
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mxcore as mx
from mxcore._core import rng
from mxcore._core.array import Storage
from mxcore._core.engine import NaiveEngine, ThreadedEnginePerDevice, engine
from mxcore.plugin import MXNetError, op
from mxcore.testing.engines import use_engine

CPU0, CPU1 = mx.cpu(0), mx.cpu(1)


@given(
    st.lists(
        st.tuples(
            st.booleans(), st.lists(st.integers(0, 4), max_size=3), st.lists(st.integers(0, 4), min_size=1, max_size=2)
        ),
        max_size=40,
    )
)
@settings(deadline=None, max_examples=60)
def test_any_program_gives_what_serial_execution_gives(program):
    """Tasks read some cells and write others; the outcome must be that of running them one after the other."""

    def run(push):
        cells = [0] * 5
        for n, (_, reads, writes) in enumerate(program):

            def task(n=n, reads=tuple(reads), writes=tuple(writes)):
                value = n + sum(cells[r] for r in reads)
                for w in writes:
                    cells[w] = cells[w] * 3 + value

            push(task, n)
        return cells

    serial = run(lambda task, n: task())
    eng = ThreadedEnginePerDevice()
    stores = [Storage(CPU0) for _ in range(5)]
    cells = run(
        lambda task, n: eng.push(
            CPU1 if program[n][0] else CPU0,
            task,
            [stores[r] for r in program[n][1]],
            [stores[w] for w in program[n][2]],
        )
    )
    eng.drain()
    assert cells == serial
    assert all(s.write is None and not s.reads for s in stores)


def test_dependent_writes_in_order(threaded):
    for _ in range(30):
        a = mx.nd.ones((64, 64))
        b = a
        c = a.copyto(CPU1)
        a += 1
        b *= 3
        c *= 3
        assert (a.asnumpy() == 6).all() and (c.asnumpy() == 3).all()


def test_a_long_chain_of_pushed_operators(threaded):
    x = mx.nd.zeros((8, 8))
    for i in range(200):
        x = x + 1
        if i % 50 == 0:
            x = x.copyto(CPU1 if i % 100 else CPU0).copyto(CPU0)
    assert (x.asnumpy() == 200).all()


def test_views_of_a_pending_array_see_the_write(threaded):
    a = mx.nd.zeros((4, 4))
    v = a[1:3]
    a += 5
    w = a.reshape((2, 8))
    v *= 2
    assert w.asnumpy().reshape(4, 4)[:, 0].tolist() == [5, 10, 10, 5]


@op("test_engine_fails")
def fails(k, p, data):
    """Raise for data beyond 10."""
    if float(data.max()) > 10:
        raise ValueError("beyond ten")
    return data + 0


@pytest.fixture
def failing(plug):
    plug("failing", mxcore_ops=[fails])
    return mx.nd.test_engine_fails


def test_a_failed_operator_poisons_its_outputs_only(threaded, failing):
    good, bad = mx.nd.ones((2,)), mx.nd.full((2,), 11)
    y = failing(bad)
    z = failing(good)
    with pytest.raises(
        MXNetError,
        match=r"operator test_engine_fails \[called at .*test_engine.py:\d+\] with data float32 \(2,\): beyond ten",
    ):
        y.asnumpy()
    with pytest.raises(ValueError, match="beyond ten"):
        (y + good).asnumpy()
    assert z.asnumpy().tolist() == [1, 1] and (good + z).asnumpy().tolist() == [2, 2]
    assert bad.asnumpy().tolist() == [11, 11]


@pytest.mark.parametrize("busy", [False, True])
def test_an_interrupt_in_the_midst_of_a_push_leaves_nobody_waiting(threaded, busy, interrupted):
    """Ctrl-C may come anywhere: what is pushed runs once or not at all, and what comes later runs."""
    for n in itertools.count(1):
        x, y, gate, ran = Storage(CPU0), Storage(CPU0), threading.Event(), []
        if busy:
            threaded.push(CPU0, lambda gate=gate: gate.wait() and None, [], [x])

        def push(ran=ran, x=x, y=y):
            threaded.push(CPU0, lambda: ran.append("it"), [x], [y])

        places = interrupted(n, "_core/engine.py", push)
        gate.set()
        threaded.push(CPU0, lambda ran=ran: ran.append("later"), [y], [x])
        assert x.write is None or x.write.done.wait(10)
        assert ran in (["it", "later"], ["later"])
        if places < n:
            break
    assert n > 20 and ran == ["it", "later"]


def test_a_handler_may_wait_for_a_worker_in_the_midst_of_a_push(threaded, handled_anywhere):
    """A worker who has ended something tells the engine, for which the main thread must not hold its lock."""
    rang = []

    def push():
        x = Storage(CPU0)
        threaded.push(CPU0, lambda: None, [], [x])
        assert x.write is None or x.write.done.wait(10)

    def other():
        gate, y = threading.Event(), Storage(CPU1)
        threaded.push(CPU1, lambda: gate.wait() and None, [], [y])
        gate.set()
        y.wait()
        rang.append(1)

    lines = handled_anywhere("_core/engine.py", push, other)
    assert len(rang) == lines > 5


def test_a_worker_that_cannot_be_started_is_asked_for_again(threaded, monkeypatch):
    def full(self):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as m:
        m.setattr(threading.Thread, "start", full)
        text = r"^the engine's worker of cpu\(0\) cannot be started: can't start new thread; use fewer contexts"
        with pytest.raises(MXNetError, match=text):
            mx.nd.ones((2,))
    assert mx.nd.ones((2,)).asnumpy().tolist() == [1, 1]


def test_a_worker_waits_itself_where_no_thread_can_be_started_for_it(threaded, monkeypatch):
    """What is launched has an event, which a thread of its own sees end: else a worker that cannot have it does."""
    start, seen = threading.Thread.start, []

    def full(thread):
        if getattr(thread._args[-1], "__name__", "") == "_land":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", full)
    monkeypatch.setattr(CPU0.device, "finish", seen.append, raising=False)
    y = Storage(np.zeros(1))
    threaded.push(CPU0, lambda: "event", [], [y])
    assert y.write.done.wait(10) and seen == ["event"]


def test_a_finalizer_may_push_while_its_thread_does(threaded, monkeypatch):
    """The garbage collector comes whenever it likes, also while the engine enters a task."""
    x, y = mx.nd.ones((2,)), mx.nd.ones((2,))

    class Rubbish:
        def __init__(self):
            self.itself = self

        def __del__(self):
            y[:] = y + 1

    class Collecting:
        def __init__(self, lock):
            self.lock, self._is_owned = lock, lock._is_owned

        def __enter__(self):
            self.lock.acquire()
            gc.collect()

        def __exit__(self, *error):
            self.lock.release()

    def work():
        Rubbish()
        return x + 1

    mx.nd.waitall()
    # A lock of its own: a failure stops nobody else.
    monkeypatch.setattr(threaded.clerk, "lock", Collecting(threading.RLock()))
    found = []
    thread = threading.Thread(target=lambda: found.append(work().asnumpy().tolist()), daemon=True)
    thread.start()
    thread.join(20)
    assert found == [[2, 2]] and y.asnumpy().tolist() == [2, 2]


@pytest.mark.parametrize("handled", [False, True])
def test_a_finalizer_may_wait_wherever_garbage_is_collected(threaded, handled):
    """Also amid a push: what it waits for ends, for its thread does not keep the worker waiting."""
    x, y, said = mx.nd.ones((320, 320)), mx.nd.ones((320, 320), ctx=CPU1), []
    x.wait_to_read()

    class Step:
        def __init__(self):
            self.itself, self.loss = self, mx.nd.dot(y, y)

        def __del__(self):
            if threading.current_thread() is threading.main_thread():  # a worker must not wait
                said.append(self.loss[0, 0].asscalar())

    before, handler = gc.get_threshold(), signal.getsignal(signal.SIGTERM)
    stuck = threading.Timer(60, os.abort)  # nothing else ends it
    stuck.start()
    try:
        if handled:
            signal.signal(signal.SIGTERM, lambda *_: None)
        for threshold in range(1, 61):
            gc.set_threshold(threshold)
            for _ in range(5):
                Step()
                mx.nd.dot(x, x).wait_to_read()
    finally:
        stuck.cancel()
        gc.set_threshold(*before)
        signal.signal(signal.SIGTERM, handler)
    assert len(said) > 50 and set(said) == {320} and gc.isenabled()


@pytest.mark.parametrize("on", [False, True])
def test_whether_garbage_is_collected_stays_as_it_was(threaded, in_threads, on):
    def push():
        for _ in range(300):
            y = mx.nd.full((2,), 1)
            threaded.push(y.context, lambda: None, [y._st], [y._st])
            y.wait_to_read()

    before = gc.isenabled()
    try:
        (gc.enable if on else gc.disable)()
        in_threads(push, [()] * 4)
        mx.nd.waitall()
        assert gc.isenabled() is on
    finally:
        (gc.enable if before else gc.disable)()


VALUES = [1, [1, 1], np.ones(2, np.float32), mx.nd.ones((2,)), mx.nd.ones((2,), ctx=CPU1)]


@pytest.mark.parametrize("value", VALUES, ids=["number", "list", "numpy", "array", "array elsewhere"])
def test_what_is_written_anew_has_not_failed(threaded, failing, value):
    y = failing(mx.nd.full((2,), 11))
    with pytest.raises(MXNetError, match="beyond ten"):
        y.wait_to_read()
    y[:] = value
    assert y.asnumpy().tolist() == [1, 1]


@pytest.mark.parametrize("value", [1, [1], mx.nd.ones((1,))], ids=["number", "list", "array"])
def test_a_part_that_is_written_anew_mends_nothing_else(threaded, failing, value):
    y = failing(mx.nd.full((2,), 11))
    with pytest.raises(MXNetError, match="beyond ten"):
        y[0] = value
        y.asnumpy()
    with pytest.raises(MXNetError, match="beyond ten"):
        y[1:].asnumpy()


def test_waitall_raises_a_failure_that_nobody_saw(threaded, failing):
    failing(mx.nd.full((2,), 11))
    with pytest.raises(MXNetError, match="beyond ten"):
        mx.nd.waitall()
    mx.nd.waitall()  # once


def test_inline_failures_are_raised_at_the_call(failing):
    with pytest.raises(MXNetError, match="beyond ten"):
        failing(mx.nd.full((2,), 11))


def test_two_contexts_overlap(threaded):
    both = threading.Barrier(2, timeout=20)
    seen = []

    def task():
        both.wait()  # passes only if the other runs at the same time
        seen.append(threading.current_thread().name)

    threaded.push(CPU0, task, (), (Storage(CPU0),))
    threaded.push(CPU1, task, (), (Storage(CPU1),))
    threaded.drain()
    assert sorted(seen) == ["mxcore-cpu(0)", "mxcore-cpu(1)"]


def test_one_context_computes_inline():
    eng = ThreadedEnginePerDevice()
    eng.note(CPU0)
    assert not eng.parallel
    eng.note(CPU1)
    assert eng.parallel


def test_a_slow_write_delays_only_who_needs_it(threaded):
    slow, other = Storage(CPU0), Storage(CPU1)
    release = threading.Event()
    threaded.push(CPU0, lambda: release.wait(20) and None, (), (slow,))
    threaded.push(CPU1, lambda: None, (), (other,))
    other.wait()
    assert slow.write is not None
    release.set()
    slow.wait()
    assert slow.write is None


def test_writers_wait_for_readers(threaded):
    cell, reading, order = Storage(CPU0), threading.Event(), []
    threaded.push(CPU0, lambda: (reading.wait(20), order.append("read")), (cell,), (Storage(CPU0),))
    threaded.push(CPU1, lambda: order.append("write"), (), (cell,))
    time.sleep(0.02)
    reading.set()
    threaded.drain()
    assert order == ["read", "write"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_computes_inline(threaded):
    a = mx.nd.ones((32, 32)) + 1
    pid = os.fork()
    if pid == 0:
        ok = isinstance(engine.it, NaiveEngine) and (a * 2).asnumpy().sum() == 4096
        os._exit(0 if ok else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert (a * 2).asnumpy().sum() == 4096


class Late(ThreadedEnginePerDevice):
    """Another thread pushes something in the moment between the wait of a fork and the fork."""

    def __init__(self):
        super().__init__()
        self.work_limit, self.parallel, self.gate = -1.0, True, None

    def drain(self, patience=None):
        super().drain()
        if self.gate is not None:
            gate, self.gate = self.gate, None
            self.push(CPU0, lambda: gate.wait(20), (), (self.late,), "late")


def child_ends_well(check):
    """Whether `check` is true in a forked child, which does not wait for ever."""
    pid = os.fork()
    if pid == 0:
        signal.alarm(10)
        os._exit(0 if check() else 1)
    return os.waitpid(pid, 0)[1] == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_does_not_wait_for_what_nobody_will_do_there():
    new = Late()
    old = use_engine(new)
    try:
        (mx.nd.ones((2,)) + 1).wait_to_read()  # with a worker, forks begin to wait
        a = mx.nd.ones((2,))
        new.late, new.gate = a._st, threading.Event()
        gate = new.gate

        def check():
            try:
                a.asnumpy()
            except MXNetError as e:
                return "late: another thread pushed it" in str(e)

        assert child_ends_well(check)
        gate.set()
        assert a.asnumpy().tolist() == [1, 1]
    finally:
        use_engine(old)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_draws_while_a_thread_of_its_parent_did():
    inside, go = threading.Event(), threading.Event()

    def draw():
        with rng.lock:
            inside.set()
            go.wait(20)

    thread = threading.Thread(target=draw)
    thread.start()
    inside.wait()
    try:
        assert child_ends_well(lambda: mx.nd.random.uniform(shape=(2,)).shape == (2,))
    finally:
        go.set()
        thread.join()


def test_waiting_ends_though_others_go_on(threaded):
    """What is pushed later is not waited for."""
    left = [300]

    def again():
        left[0] -= 1
        time.sleep(0.001)
        if left[0]:
            threaded.push(CPU0, again, (), (Storage(CPU0),))

    threaded.push(CPU0, again, (), (Storage(CPU0),))
    threaded.drain()
    assert left[0] > 0
    left[0] = 1


def test_the_naive_engine_runs_everything_at_once():
    old = use_engine("NaiveEngine")
    try:
        a = mx.nd.ones((4,)) * 3
        assert a._st.write is None and np.array_equal(a.asnumpy(), [3, 3, 3, 3])
    finally:
        use_engine(old)


def test_arrays_may_be_read_from_any_thread(threaded):
    a = mx.nd.ones((64, 64))
    for _ in range(5):
        a = a + 1
    results = []
    threads = [threading.Thread(target=lambda: results.append((a * 2).asnumpy().sum())) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [64 * 64 * 12] * 8


def test_a_failure_is_seen_once_however_many_ways_it_came(threaded):
    def fail():
        raise IndexError("no such place")

    def nothing():
        pass

    first, twice, late = (mx.nd.ones((2,))._st for _ in range(3))
    threaded.push(first.ctx, fail, [], [first])
    threaded.push(first.ctx, nothing, [first], [twice])
    threaded.push(first.ctx, nothing, [first, twice], [late])
    with pytest.raises(IndexError, match="no such place"):
        late.wait()
    mx.nd.waitall()
    threaded.push(first.ctx, fail, [], [first])
    threaded.push(first.ctx, nothing, [first], [late])
    for error in (IndexError, None):  # that nobody has seen
        with pytest.raises(error, match="no such place") if error else contextlib.nullcontext():
            mx.nd.waitall()


AT_THE_END = """
import sys
import mxcore as mx

class Last:
    def __del__(self, what=sys.argv[1], nd=mx.nd, print=print):  # names of modules may be gone
        if what == "reads":
            print(self.loss[0, 0].asscalar())
        elif what == "waits":
            nd.waitall()
            print("waited")
        else:
            print(nd.dot(self.a, self.a)[0, 0].asscalar())

a, b = mx.nd.ones((600, 600)), mx.nd.ones((600, 600), ctx=mx.cpu(1))
last = Last()
last.itself, last.a = last, a
for _ in range(20):
    last.loss = mx.nd.dot(b, b)
"""


@pytest.mark.parametrize("what", ["reads", "waits", "computes"])
def test_a_finalizer_at_the_end_of_the_process_waits_for_nobody(what):
    done = subprocess.run([sys.executable, "-c", AT_THE_END, what], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout in ("", "waited\n" if what == "waits" else "600.0\n")  # the interpreter may drop it in silence
