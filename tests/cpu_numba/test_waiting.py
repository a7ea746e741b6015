"""How long OpenMP's threads wait awake: what a thread tells of its cores, and what follows of it."""

import os
import subprocess
import sys
import threading

import pytest

pytest.importorskip("mxcore_cpu")
from mxcore_cpu import waiting
from mxcore_cpu.native import driver

pytestmark = pytest.mark.skipif(
    not waiting._counted(threading.get_native_id()) or not driver.usable(), reason="the system tells nothing of threads"
)
SECOND = 10**9


class Counted:
    """A file in which a test writes what the system would."""

    def __init__(self):
        self.computed = self.waited = 0

    def seek(self, place):
        assert place == 0

    def read(self):
        return b"%d %d 7\n" % (self.computed, self.waited)

    def close(self):
        self.computed = None

    def passed(self, watch, computed, waited, seconds=1.0):
        """Look again when so much has been added, in parts of the time."""
        self.computed += int(computed * seconds * SECOND)
        self.waited += int(waited * seconds * SECOND)
        return watch.look(seconds)


@pytest.fixture
def counted():
    return Counted()


@pytest.fixture
def watch(counted):
    watch = waiting.Watch(counted)
    yield watch
    if watch.shared:
        watch._team.leave.set()


def test_they_sleep_while_somebody_else_wants_the_cores(watch, counted):
    for _ in range(20):
        counted.passed(watch, 0.97, 0.03)
    assert not watch.shared
    counted.passed(watch, 0.6, 0.3)
    team = watch._team
    assert watch.shared and not team.left.is_set()
    for computed, waited in ((0.5, 0.5), (0.82, 0.18), (0.97, 0.03), (0.9, 0.1)):
        counted.passed(watch, computed, waited)
        assert watch._team is team and not team.left.is_set()  # one quiet look is not enough
    counted.passed(watch, 0.97, 0.03)
    counted.passed(watch, 0.5, 0.01)
    assert not watch.shared and team.left.wait(30)


def quiet(watch, counted):
    """How many quiet looks it takes until cores are its own again."""
    looks = 0
    while watch.shared:
        counted.passed(watch, 0.9, 0.01)
        looks += 1
    return looks


def test_who_was_wrong_takes_longer_to_believe_it_again(watch, counted):
    for _ in range(100):
        counted.passed(watch, 0.9, 0.01)
    found = []
    for _ in range(8):
        counted.passed(watch, 0.5, 0.5)
        found.append(quiet(watch, counted))
    assert found == [2, 4, 8, 16, 32, 64, 64, 64]
    for _ in range(8 * 64):
        counted.passed(watch, 0.9, 0.01)
    counted.passed(watch, 0.5, 0.5)
    assert quiet(watch, counted) == 2


def test_who_does_not_compute_says_nothing_and_is_looked_at_less(watch, counted):
    counted.passed(watch, 0.5, 0.5)
    waits = [0.1]
    for _ in range(6):
        waits.append(counted.passed(watch, 0.01, 0.02, waits[-1]))
    assert waits == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0] and watch.shared
    assert counted.passed(watch, 0.9, 0.01, 1.0) == 0.1


def test_the_busiest_thread():
    before = {1: 100, 2: 100, 3: 0}
    assert waiting.busiest(before, {1: 150, 2: 400, 4: 9000}, 200) == 2  # 4 is new, what it did before is not known
    assert waiting.busiest(before, {1: 150, 2: 400, 4: 9000}, 301) is None
    assert waiting.busiest({}, {1: 5}, 0) is waiting.busiest({1: 5}, {}, 0) is None


def test_threads_spin_long_only_where_they_can_be_told_not_to(monkeypatch):
    monkeypatch.setattr(waiting, "_cores", lambda: 4)
    assert [waiting.spins(n) for n in (1, 2, 4, 8)] == ["5000", "5000", waiting.LONG, waiting.LONG]
    monkeypatch.setattr(waiting, "_cores", lambda: 1)
    assert waiting.spins(1) == "5000"  # nobody to wait for
    monkeypatch.setattr(waiting, "_cores", lambda: 2)
    for refused in (OSError("no /proc"), ValueError("no number")):

        def fails(thread, refused=refused):
            raise refused

        monkeypatch.setattr(waiting, "_open", fails)
        assert waiting.spins(2) == "5000"


def run(program, **env):
    """Run a program with two threads on at most two cores."""
    kept = {n: v for n, v in os.environ.items() if n not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    cores = "import os; os.sched_setaffinity(0, [*os.sched_getaffinity(0)][:2])\n"
    done = subprocess.run(
        [sys.executable, "-c", cores + program],
        env={**kept, "MXCORE_NUM_THREADS": "2", **env},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


NAMES = """
import threading
import mxcore as mx
from mxcore_cpu import waiting
mx.nd.exp(mx.nd.ones((2000, 2000))).asnumpy()
print(len(waiting._watches), "GOMP_SPINCOUNT" in os.environ, threading.active_count())
"""


@pytest.mark.parametrize(
    "env, found",
    [
        ({}, ["1", "False", "1"]),
        ({"GOMP_SPINCOUNT": "7"}, ["0", "True", "1"]),
        ({"OMP_WAIT_POLICY": "passive"}, ["0", "False", "1"]),
        ({"MXCORE_NUM_THREADS": "1"}, ["0", "False", "1"]),
    ],
)
def test_what_the_user_says_counts(env, found):
    assert run(NAMES, **env) == found


BESIDE = """
import subprocess, sys, threading, time
import numpy as np
import mxcore as mx
from mxcore_cpu import waiting
x = mx.nd.array(np.random.RandomState(0).rand(700, 700))
want = (mx.nd.dot(x, x) + mx.nd.exp(x)).asnumpy()
(watch,) = waiting._watches
def compute():
    assert np.array_equal((mx.nd.dot(x, x) + mx.nd.exp(x)).asnumpy(), want)
def until(done):
    end = time.monotonic() + 60
    while not done() and time.monotonic() < end:
        compute()
    return done()
others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
try:
    print(until(lambda: watch.shared))
finally:
    for p in others:
        p.kill()
        p.wait()
"""


def test_it_is_seen_that_others_want_the_cores_and_numbers_stay():
    assert run(BESIDE) == ["True"]


ELSEWHERE = """
import subprocess, sys, threading, time
import numpy as np
import mxcore as mx
from mxcore_cpu import waiting
x = mx.nd.array(np.random.RandomState(0).rand(700, 700))
def compute():
    return mx.nd.exp(mx.nd.dot(x, x)).asnumpy()
compute()  # by the main thread, which then waits
(watch,) = waiting._watches
over = threading.Event()
def work():
    while not over.is_set():
        compute()
threads = [threading.Thread(target=work) for _ in range(2)]
others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
try:
    for t in threads:
        t.start()
    end = time.monotonic() + 60
    main = f"/proc/self/task/{os.getpid()}/schedstat"
    while not (watch.shared and watch._file.name != main) and time.monotonic() < end:
        time.sleep(0.1)
    print(watch.shared, watch._file.name != main)
finally:
    over.set()
    for p in others:
        p.kill()
        p.wait()
"""


def test_it_is_seen_wherever_threads_compute():
    assert run(ELSEWHERE) == ["True", "True"]


@pytest.mark.parametrize("at", ["start", "file"])
def test_without_room_for_a_watch_threads_spin_shortly(monkeypatch, at):
    from mxcore_cpu import threads

    def refuse(*args):
        raise RuntimeError("can't start new thread") if at == "start" else OSError(24, "Too many open files")

    monkeypatch.setattr(waiting, "_watches", [])
    monkeypatch.setattr(waiting, "spins", lambda n: waiting.LONG)
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.delenv(name, raising=False)
    if at == "start":
        monkeypatch.setattr(waiting._thread, "start_new_thread", refuse)
    else:
        monkeypatch.setattr(waiting, "_open", refuse)
    with threads.patient():
        assert os.environ["GOMP_SPINCOUNT"] == waiting.SHORT
    assert "GOMP_SPINCOUNT" not in os.environ and not waiting._watches


def test_a_watch_without_room_for_files_looks_again_later(monkeypatch, watch):
    """It ends by nothing: neither where its thread has ended, nor where it looks for another one."""
    slept = []

    def sleep(seconds):
        slept.append(seconds)
        if len(slept) > 5:
            raise SystemExit

    def refuse(*args):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(waiting.time, "sleep", sleep)
    monkeypatch.setattr(waiting, "_open", refuse)
    for failing in (watch._file.read, refuse):
        slept.clear()
        monkeypatch.setattr(watch._file, "read", failing)
        with pytest.raises(SystemExit):
            watch.run()
        assert len(slept) == 6


LATER = """
import threading, time
import mxcore as mx
from mxcore_cpu import waiting
def compute():
    mx.nd.exp(mx.nd.ones((2000, 2000))).asnumpy()
thread = threading.Thread(target=compute)
thread.start()
thread.join()
(watch,) = waiting._watches
end = time.monotonic() + 60
first = watch._file.name
while watch._file.name == first and time.monotonic() < end:
    time.sleep(0.05)
print(watch._file.name == f"/proc/self/task/{os.getpid()}/schedstat", first != watch._file.name)
pid = os.fork()
if not pid:
    compute()
    os._exit(0 if len(os.listdir("/proc/self/task")) == 1 else 1)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def test_when_the_thread_has_ended_it_is_the_main_one_and_children_are_on_their_own():
    assert run(LATER) == ["True", "True", "0"]
