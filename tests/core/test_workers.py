"""Threads that work for others: what is done once, what waits, and interrupts anywhere in those who wait."""

import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref

import pytest

import mxcore as mx
from mxcore import _workers
from mxcore._workers import Clerk, Job, Latch, Promise, Uncollected, Workers, apart


def test_a_latch_lets_all_go_once_it_is_set():
    latch, gone = Latch(), []
    threads = [threading.Thread(target=lambda: gone.append(latch.wait())) for _ in range(5)]
    for t in threads:
        t.start()
    assert not latch.wait(0.02) and not gone
    latch.set()
    latch.set()
    for t in threads:
        t.join(10)
    assert gone == [True] * 5 and latch.wait(0)


def test_workers_that_go_when_the_modules_are_empty(monkeypatch):
    """The interpreter empties modules at its end, and what is left then has finalizers."""
    workers = Workers(1, "late")
    (thread,) = workers._threads
    monkeypatch.setattr(_workers, "os", None)
    workers.__del__()
    monkeypatch.undo()
    thread.join(10)
    assert not thread.is_alive()


@pytest.mark.parametrize("broken", ["deque", "SimpleQueue", "threading.Thread"])
def test_workers_whose_making_was_interrupted_go_in_silence(monkeypatch, broken):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"mxcore._workers.{broken}", interrupt)
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", seen.append)
    with pytest.raises(KeyboardInterrupt):
        Workers(1, "test")
    gc.collect()
    assert not seen


def test_a_process_ends_its_threads_before_itself():
    """In the midst of native code a thread that is let go ends the process by a signal."""
    program = """
import time
from mxcore._workers import Job, Workers
workers = Workers(2, "test")
jobs = [Job(lambda: (time.sleep(0.1), print("done\\n", end=""))) for _ in range(2)]
for job in [*jobs, Job(lambda: print("too late\\n", end=""))]:
    workers.put(job)
while not all(job.begun for job in jobs):
    time.sleep(0.001)
print("end")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.split()) == ["done", "done", "end"]


def test_exit_handlers_get_what_no_thread_has_begun():
    """Those that run behind ours, such as whoever registered one before the library was imported."""
    program = """
import atexit, threading
def last():
    late = Job(lambda: 3)
    workers.put(late)
    print(*(job.result() for job in [*jobs, late]), *(batch.data[0].asscalar() for batch in it))
atexit.register(last)
import mxcore as mx
from mxcore._workers import Job, Workers
workers, gate = Workers(1, "test"), threading.Event()
jobs = [Job(lambda: gate.wait() and 1), Job(lambda: 2)]
workers.put(*jobs)
it = mx.io.PrefetchingIter(mx.io.NDArrayIter(mx.nd.arange(3), batch_size=1))
threading.Timer(0.1, gate.set).start()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "1 2 3 0.0 1.0 2.0\n")


def test_a_process_does_not_wait_for_ever_for_what_never_comes():
    program = """
import threading
from mxcore import _workers
_workers._PATIENCE = 0.2
workers = _workers.Workers(3, "test")
jobs = [_workers.Job(threading.Event().wait) for _ in range(2)]
workers.put(*jobs)
while not all(job.begun for job in jobs):
    pass
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_who_waits_looks_by_itself():
    """Another one was interrupted with the lock in its hand."""
    latch = Latch()
    setter = threading.Timer(0.02, lambda: setattr(latch, "_set", True))
    setter.start()
    assert latch.wait(10)
    setter.join()


def test_a_job_is_done_once_however_often_it_is_put():
    ran = []
    job = Job(lambda: ran.append(1) or 7)
    with Workers(3, "test") as workers:
        for _ in range(50):
            workers.put(job)
        assert job.result() == 7 and job.result() == 7 and job.error() is None
    assert ran == [1] and job.begun and job.done


def test_what_a_job_raises():
    job = Job(lambda: 1 / 0)
    with Workers(1, "test") as workers:
        workers.put(job)
        assert isinstance(job.error(), ZeroDivisionError)
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                job.result()


class Large:
    pass


def test_a_failed_job_lets_go_what_its_call_had():
    """Without a collection of garbage: no frame on the way of the error holds the job."""
    kept = []

    def fail():
        large = Large()
        kept.append(weakref.ref(large))
        raise ValueError

    def asked(ask):
        jobs = [Job(fail)]
        with Workers(1, "test") as workers:
            workers.put(*jobs)
            with contextlib.suppress(ValueError):
                ask(jobs.pop())  # this frame is in the traceback, too

    gc.disable()
    try:
        for ask in (Job.error, Job.result):
            asked(ask)
            assert kept.pop()() is None
    finally:
        gc.enable()


def test_what_was_not_begun_is_given_up():
    go, begun = threading.Event(), threading.Event()
    first = Job(lambda: (begun.set(), go.wait()))
    later = [Job(lambda: 3) for _ in range(4)]
    workers = Workers(1, "test")
    for job in (first, *later):
        workers.put(job)
    begun.wait()
    assert later[0].cancel() and not first.cancel()
    workers.close(wait=False)
    go.set()
    workers.close()
    assert first.error() is None and not any(t.is_alive() for t in workers._threads)
    for job in later:
        assert isinstance(job.error(), RuntimeError) and job.begun


def test_no_threads_make_no_call():
    with pytest.raises(ValueError, match="mine: 0 threads make no call"):
        Workers(0, "mine")


def test_what_is_put_behind_the_end_is_given_up(in_threads):
    workers, job = Workers(2, "mine"), Job(lambda: 42)
    workers.close()
    workers.put(job)
    with pytest.raises(RuntimeError, match="it was cancelled"):
        job.result()
    for _ in range(100):
        workers, jobs = Workers(1, "mine"), [Job(lambda: 42) for _ in range(5)]
        in_threads(lambda do: do(), [(lambda: [workers.put(job) for job in jobs],), (workers.close,)])
        for job in jobs:  # done or given up: none hangs
            job.error()


def test_threads_end_with_who_had_them():
    workers = Workers(2, "test")
    threads = workers._threads
    del workers
    for t in threads:
        t.join(10)
        assert not t.is_alive()


@contextlib.contextmanager
def interrupted_at(place, *paths):
    """An interrupt at the n-th line of those modules; gives whether it came."""
    left, came = [place], []

    def trace(frame, event, arg):
        if frame.f_code.co_filename not in paths:
            return None
        left[0] -= 1
        if left[0] == 0:
            came.append(True)
            raise KeyboardInterrupt
        return trace

    old = sys.gettrace()
    sys.settrace(trace)
    try:
        yield came
    except KeyboardInterrupt:
        assert came
    finally:
        sys.settrace(old)


def test_interrupts_of_who_cancels_leave_no_job_that_nobody_does():
    """Whoever has taken a job has done it: it was cancelled, or is done by the thread that gets it."""
    for place in range(1, 100):
        job = Job(lambda: 7)
        with interrupted_at(place, _workers.__file__) as came:
            assert job.cancel()
        if not came:
            break
        assert job.done == job.begun
        with Workers(1, "test") as workers:
            workers.put(job)
            assert not job.begun and job.result() == 7 or isinstance(job.error(), RuntimeError) and job.cancel()
    assert 4 < place < 99


def test_interrupts_of_who_closes_lose_no_job():
    for place in range(1, 200):
        go, begun = threading.Event(), threading.Event()
        first, *later = Job(lambda: (begun.set(), go.wait())), *(Job(lambda: 7) for _ in range(3))
        workers = Workers(1, "test")
        workers.put(first, *later)
        begun.wait()
        with Uncollected(), interrupted_at(place, _workers.__file__) as came:  # others' finalizers close theirs
            workers.close(wait=False)
        go.set()
        end = time.monotonic() + 10
        while not all(job.done for job in (first, *later)):
            assert time.monotonic() < end
            time.sleep(0.001)
        workers.close()
        assert not any(t.is_alive() for t in workers._threads)
        if not came:
            break
    assert 10 < place < 199


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="alarms")
def test_interrupts_of_who_waits_lock_nobody_out():
    """By a trace that raises at each line of it in turn, and by signals."""
    n = 0
    with Workers(2, "test") as workers:
        for place in range(1, 200):
            job = Job(lambda: time.sleep(0.0005))
            with interrupted_at(place, _workers.__file__) as came:
                workers.put(job)
                job.result()
            n += len(came)
            workers.put(job)
            assert job._done.wait(10)
        armed = []

        def interrupt(*_):
            if armed:
                armed.clear()
                raise KeyboardInterrupt

        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            for i in range(300):
                job = Job(lambda: time.sleep(0.0003))
                try:
                    armed.append(1)
                    signal.setitimer(signal.ITIMER_REAL, 1e-5 * (1 + i % 60))
                    workers.put(job)
                    job.result()
                    armed.clear()
                except KeyboardInterrupt:
                    n += 1
                signal.setitimer(signal.ITIMER_REAL, 0)
                workers.put(job)
                assert job._done.wait(10)
        finally:
            signal.signal(signal.SIGALRM, before)
    assert n > 50


def test_threads_that_cannot_be_started_end_those_that_were(monkeypatch):
    start, started = threading.Thread.start, []

    def limited(thread):
        if started:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    with pytest.raises(
        mx.MXNetError, match="^test: a thread, of 3, cannot be started: can't start new thread; use fewer"
    ):
        Workers(3, "test")
    started[0].join(10)
    assert not started[0].is_alive()


def test_a_process_ends_though_its_threads_wait_for_each_other():
    program = """
import threading, time
from mxcore import _workers
from mxcore._workers import Job, Workers
_workers._PATIENCE = 60
one, other, gate = Workers(1, "one"), Workers(1, "other"), threading.Event()
inner = Job(lambda: 42)
first = Job(gate.wait)
other.put(first, inner)
outer = Job(lambda: print(inner.result()))
one.put(outer)
while not (first.begun and outer.begun):
    time.sleep(0.001)
threading.Timer(0.3, gate.set).start()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=50)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "42\n")


@pytest.mark.parametrize("kind", [IndexError, ValueError])
def test_a_call_that_raises_takes_no_other_with_it(kind):
    called, promise = [], Promise()

    def bad(_):
        raise kind("mine")

    for call in (called.append, *[bad] * 2000, called.append, bad, called.append):
        promise.add_done_callback(call)
    with pytest.raises(kind, match="mine"):
        promise.set_result(1)
    assert called == [promise] * 3 and promise.result() == 1


def test_a_handler_waits_for_what_is_done_apart():
    """It asks for the same in the midst of it: both are done as a whole, one behind the other."""
    lock, steps = threading.RLock(), []

    def twice(who):
        with lock:
            steps.append(who)
            if who == "main":
                signal.raise_signal(signal.SIGUSR1)
                time.sleep(0.2)  # meanwhile the handler runs
            steps.append(who)

    before = signal.signal(signal.SIGUSR1, lambda *_: apart(twice, "handler"))
    try:
        apart(twice, "main")
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert steps == ["main", "main", "handler", "handler"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system that forks")
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="a signal after some time")
@pytest.mark.parametrize("begun", [False, True])
def test_what_a_clerk_does_for_who_is_interrupted_is_done_then_or_never(begun):
    class Late(Exception):
        pass

    def late(*_):
        raise Late

    clerk, done, held = Clerk("test"), [], threading.Event()
    before = signal.signal(signal.SIGALRM, late)

    def slow():
        time.sleep(0.3)
        done.append("slow")

    try:
        if not begun:  # the clerk's thread has something else to do
            clerk.do(int)
            clerk._workers.put(Job(lambda: held.wait(1)))
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(Late):
            clerk.do(slow)
        assert done == ["slow"] * begun
        held.set()
        clerk.do(int)
        assert done == ["slow"] * begun
    finally:
        signal.signal(signal.SIGALRM, before)


def test_the_collector_goes_on_in_a_child_that_another_thread_had_stopped_it_for():
    inside, leave = threading.Event(), threading.Event()

    def stay():
        with Uncollected():
            inside.set()
            leave.wait()

    thread = threading.Thread(target=stay)
    thread.start()
    try:
        inside.wait()
        assert not gc.isenabled()
        if (child := os.fork()) == 0:
            os._exit(0 if gc.isenabled() else 1)
        assert os.waitpid(child, 0)[1] == 0 and not gc.isenabled()
    finally:
        leave.set()
        thread.join()
    assert gc.isenabled()
