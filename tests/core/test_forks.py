"""What is done around forks: its order, locks that are held over them, interrupts and what is given meanwhile."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from mxcore import _forks
from mxcore._forks import at_fork, hold_at_fork

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="os.fork is POSIX's")


@pytest.fixture(autouse=True)
def hooks(monkeypatch):
    """Nothing but what the test gives."""
    monkeypatch.setattr(_forks, "_first", [])
    monkeypatch.setattr(_forks, "_others", [])


def forked(check=lambda: True):
    """Whether a check holds in a forked child."""
    pid = os.fork()
    if not pid:
        try:
            os._exit(0 if check() else 1)
        finally:
            os._exit(2)
    end = time.monotonic() + 20
    while time.monotonic() < end:
        done, code = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(code) == 0
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return False


def elsewhere(*jobs):
    """Run them in threads of their own."""
    threads = [threading.Thread(target=job) for job in jobs]
    for t in threads:
        t.start()
    return threads


def test_the_last_goes_first_but_for_those_that_go_before_all():
    seen = []
    at_fork(lambda: seen.append("first"), lambda: seen.append("-first"), first=True)
    for name in "ab":
        at_fork(lambda name=name: seen.append(name), lambda name=name: seen.append("-" + name))
    assert forked(lambda: seen == ["first", "b", "a"])
    assert seen == ["first", "b", "a", "-a", "-b", "-first"]


def test_the_child_does_what_is_for_it():
    seen = []
    at_fork(after_in_parent=lambda: seen.append("parent"), after_in_child=lambda: seen.append("child"))
    assert forked(lambda: seen == ["child"]) and seen == ["parent"]


def test_what_is_given_while_a_fork_waits_is_done_for_it_too():
    seen = []

    def late():
        if "late" not in seen:
            at_fork(lambda: seen.append("late"), lambda: seen.append("-late"))

    at_fork(late)
    assert forked() and seen == ["late", "-late"]


def test_what_fails_is_told_and_the_rest_is_done(monkeypatch):
    told, seen = [], []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    at_fork(lambda: seen.append(1))
    at_fork(lambda: 1 / 0)
    assert forked() and seen == [1] and told[0].exc_type is ZeroDivisionError


@pytest.mark.parametrize("raises", [ZeroDivisionError, KeyboardInterrupt, SystemExit])
def test_what_fails_is_told_where_nobody_else_hears_of_it(monkeypatch, capfd, raises):
    """Locks that were taken are given back."""
    monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)
    lock, seen = threading.RLock(), []

    def fails():
        raise raises("here")

    hold_at_fork(lock)
    at_fork(lambda: seen.append(1))
    at_fork(fails)
    assert forked(lambda: lock.acquire(timeout=1)) and seen == [1] and not lock._is_owned()
    assert "here" in capfd.readouterr().err


def test_a_hook_of_the_users_that_fails_itself_holds_nothing(monkeypatch):
    lock = threading.RLock()
    monkeypatch.setattr(sys, "unraisablehook", lambda what: 1 / 0)
    hold_at_fork(lock)
    at_fork(lambda: 1 / 0)
    assert forked(lambda: lock.acquire(timeout=1)) and not lock._is_owned()


def test_a_lock_is_held_over_a_fork_and_free_on_both_sides():
    lock = threading.RLock()
    hold_at_fork(lock)
    held = []
    at_fork(after_in_parent=lambda: held.append(lock._is_owned()))
    _forks._others.reverse()  # asked before it is given back
    assert forked(lambda: not lock._is_owned() and lock.acquire(timeout=1)) and held == [True] and not lock._is_owned()


def test_who_forks_waits_for_the_holder():
    lock, taken, left = threading.RLock(), threading.Event(), []
    hold_at_fork(lock)

    def work():
        with lock:
            taken.set()
            time.sleep(0.3)
            left.append(True)

    (thread,) = elsewhere(work)
    taken.wait(10)
    assert forked(lambda: left == [True])
    thread.join(10)


def test_a_holder_that_waits_for_the_fork_is_not_waited_for_long_and_only_once():
    lock, taken, done = threading.RLock(), threading.Event(), threading.Event()
    hold_at_fork(lock, 0.2)

    def work():
        with lock:
            taken.set()
            done.wait(30)

    (thread,) = elsewhere(work)
    taken.wait(10)
    assert forked(lambda: lock.acquire(timeout=5)) and not lock._is_owned()
    assert forked(lambda: lock.acquire(timeout=5))
    done.set()
    thread.join(10)
    assert lock.acquire(timeout=5)
    lock.release()


def test_who_holds_a_lock_and_forks_holds_it_afterwards_on_both_sides():
    lock = threading.RLock()
    hold_at_fork(lock)

    def still():
        if not lock._is_owned():
            return False
        lock.release()
        return not lock._is_owned()

    with lock:
        assert forked(still) and lock._is_owned()
    assert not lock._is_owned()


AT_ONCE = """
import threading
from mxcore._forks import hold_at_fork
from tests.core.test_forks import elsewhere, forked
locks, good = [threading.RLock() for _ in range(3)], []
for lock in locks:
    hold_at_fork(lock)
for t in elsewhere(*[lambda: good.extend(forked() for _ in range(10))] * 3):
    t.join(60)
print(good == [True] * 30 and all(lock.acquire(timeout=5) for lock in locks))
"""


def test_threads_that_fork_at_once_take_locks_in_one_order():
    """In a process of its own: where filelock is loaded, as Ray does, it refuses a fork beside another thread's."""
    out = subprocess.run([sys.executable, "-c", AT_ONCE], cwd=ROOT, capture_output=True, text=True, timeout=200)
    assert out.stdout == "True\n", out.stderr


LOGGING = """
from mxcore._forks import hold_at_fork  # before others
import logging, threading, time
from concurrent.futures import ThreadPoolExecutor
from tests.core.test_forks import forked
lock, taken, done = threading.RLock(), threading.Event(), []
hold_at_fork(lock)
def work():
    with lock:
        taken.set()
        time.sleep(0.3)  # who forks waits for the lock by now
        logging.getLogger("what a module says")
        ThreadPoolExecutor(1).submit(int).result()
        done.append(True)
thread = threading.Thread(target=work)
thread.start()
taken.wait()
began = time.monotonic()
print(forked(lambda: bool(done)), time.monotonic() - began < 10)
"""


def test_who_forks_waits_for_those_that_log_or_use_executors():
    out = subprocess.run([sys.executable, "-c", LOGGING], cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert out.stdout.split() == ["True", "True"], out.stderr


INTERRUPTED = """
import os, signal, threading, time
from mxcore._forks import at_fork, hold_at_fork
lock, waited, taken = threading.RLock(), [], threading.Event()
def work():
    with lock:
        taken.set()
        time.sleep(0.6)
        waited.append(True)
hold_at_fork(lock)
thread = threading.Thread(target=work)
thread.start()
taken.wait()
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    if os.fork() == 0:
        os._exit(0 if waited and lock.acquire(timeout=1) else 1)
    time.sleep(20)
    print("unheard")
except KeyboardInterrupt:
    print("heard", os.waitstatus_to_exitcode(os.wait()[1]), lock._is_owned())
"""


def test_an_interrupt_is_heard_after_the_fork_which_waits_on():
    out = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=60)
    assert out.stdout.split() == ["heard", "0", "False"], out.stderr


AFTERWARDS = """
import os, signal, sys, threading, time
from mxcore._forks import at_fork
signal.signal(signal.SIGINT, signal.default_int_handler)
seen, where = [], sys.argv[1]
def interrupt():
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(1000):
        pass
    seen.append("a")
for hook in [interrupt, lambda: seen.append("b")] * 2:
    at_fork(**{where: hook})
def fork():
    pid = 0
    try:
        pid = os.fork()
        time.sleep(5 if (pid == 0) == (where == "after_in_child") else 0)
    except KeyboardInterrupt:
        seen.append("heard")
    if seen:
        print("".join(seen), signal.getsignal(signal.SIGINT) is signal.default_int_handler, flush=True)
    if not pid and where == "after_in_child":
        os._exit(0)
    if pid:
        os.waitpid(pid, 0)
if sys.argv[2] == "thread":
    thread = threading.Thread(target=fork)
    thread.start()
    thread.join()
else:
    fork()
"""


@pytest.mark.parametrize(
    "where, thread", [("after_in_child", ""), ("after_in_child", "thread"), ("after_in_parent", "")]
)
def test_an_interrupt_in_what_is_done_afterwards_waits_for_all_of_it(where, thread):
    out = subprocess.run([sys.executable, "-c", AFTERWARDS, where, thread], capture_output=True, text=True, timeout=60)
    assert out.stdout.split() == ["ababheard", "True"], out.stderr


def test_a_child_of_a_thread_hears_interrupts_while_the_main_thread_forks():
    """The handler that it inherits is not its own."""
    entered, leave, found = threading.Event(), threading.Event(), []
    at_fork(lambda: threading.get_ident() == threading.main_thread().ident and (entered.set(), leave.wait(20)))

    def work():
        entered.wait(20)
        found.append(forked(lambda: signal.getsignal(signal.SIGINT) is before))
        leave.set()

    before = signal.getsignal(signal.SIGINT)
    (thread,) = elsewhere(work)
    assert forked(lambda: signal.getsignal(signal.SIGINT) is before)
    thread.join(20)
    assert found == [True] and signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("where", ["after_in_child", "after_in_parent"])
def test_what_sleeps_behind_a_fork_is_interrupted(where):
    begun = time.monotonic()
    for _ in range(5):
        subprocess.run([sys.executable, "-c", AFTERWARDS, where, ""], capture_output=True, timeout=60)
    assert time.monotonic() - begun < 20, "sleeps of five seconds"


def test_other_handlers_and_none_stay_as_they_are():
    before = signal.getsignal(signal.SIGINT)
    try:
        for handler in (signal.SIG_IGN, signal.SIG_DFL, lambda *_: None):
            signal.signal(signal.SIGINT, handler)
            assert forked(lambda handler=handler: signal.getsignal(signal.SIGINT) == handler)
            assert signal.getsignal(signal.SIGINT) == handler
    finally:
        signal.signal(signal.SIGINT, before)
