"""How long threads of GNU OpenMP wait awake: long while the cores are ours, not at all while others want them, too.

A thread that fell asleep between two kernels takes up to 40 us to wake, as long as a small kernel takes. One that waits
awake keeps the core from whom it waits for, as soon as anybody else is there: a kernel of 0.05 ms then takes
milliseconds. The system knows which of both is the case, as it counts how long a thread was ready and had no core.
"""

from __future__ import annotations

import _thread
import contextlib
import ctypes
import os
import threading
import time
from typing import BinaryIO

__all__ = ["LONG", "SHORT", "Watch", "begin", "spins"]

#: As many as GNU OpenMP does in some 0.3 ms: longer than what Python does between two kernels of a training step. And
#: in 20 to 50 us, where nobody tells whether cores are shared.
LONG, SHORT = "30000", "5000"
#: Seconds between two looks, while something is computed and while nothing is.
_OFTEN, _SELDOM = 0.1, 1.0
#: Shares of its time that a thread waits for a core: from where the cores are shared, and to where they are not. Alone
#: it is 0.01 to 0.03; beside one other process, on two cores, 0.3 to 0.5, and 0.18 while its threads sleep.
_SHARED, _ALONE = 0.2, 0.08
#: Nanoseconds of a second from which on a thread computes.
_BUSY = 0.1e9
#: So many looks one after the other have to say that they are not. Two processes that both believe it at once find out
#: at once that they were wrong: then twice as many are wanted, so many at most.
_LOOKS, _MOST = 2, 64


def spins(threads: int) -> str:
    """What ``GOMP_SPINCOUNT`` should be for so many threads: long if :func:`begin` can see that they disturb."""
    return LONG if 1 < threads >= _cores() and _counted(threading.get_native_id()) else SHORT


def _cores() -> float:
    """Those that GNU OpenMP counts."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else float("inf")


def _open(thread: int) -> BinaryIO:
    """The file in which the system counts nanoseconds of a thread: computing, and waiting for a core."""
    return open(f"/proc/self/task/{thread}/schedstat", "rb", buffering=0)


def _counted(thread: int) -> bool:
    try:
        with _open(thread) as file:
            return int(file.read().split()[0]) > 0  # a system that counts nothing says 0
    except (OSError, ValueError, IndexError):
        return False


def _used() -> dict[int, int]:
    """Nanoseconds that each thread of this process but the calling one has computed or waited for a core."""
    found, mine = {}, threading.get_native_id()
    for name in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError, ValueError), _open(int(name)) as file:
            computed, waited = file.read().split()[:2]
            found[int(name)] = int(computed) + int(waited)
    found.pop(mine, None)
    return found


def busiest(before: dict[int, int], now: dict[int, int], least: float) -> int | None:
    """The thread that used most nanoseconds between two looks at all, if that is so many at least."""
    used = {thread: n - before[thread] for thread, n in now.items() if thread in before}
    found = max(used, key=used.__getitem__, default=None)
    return None if found is None or used[found] < least else found


class Watch:
    """Looks at how a thread fares, and lets OpenMP's threads sleep while it has to wait for cores.

    Parameters
    ----------
    file : binary file
        As the system's ``schedstat``: computed and waited, in nanoseconds.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._last = file, (0, 0)
        self._wanted, self._quiet = _LOOKS, 0  # looks; those since it was last shared
        self._team: _Team | None = None
        self._read()

    @property
    def shared(self) -> bool:
        """Whether somebody else wants the cores."""
        return self._team is not None

    def _read(self) -> tuple[int, int]:
        """What was computed and waited since the last time."""
        self._file.seek(0)
        now, last = self._file.read().split(), self._last
        self._last = int(now[0]), int(now[1])
        return self._last[0] - last[0], self._last[1] - last[1]

    def look(self, seconds: float) -> float:
        """Look, `seconds` after the last time; gives the seconds until the next."""
        computed, waited = self._read()
        if computed + waited < _BUSY * seconds:  # it does not compute
            return min(2 * seconds, _SELDOM)
        share = waited / (computed + waited)
        if share > (_SHARED if self._team is None else _ALONE):
            if self._team is None:
                was_wrong = 0 < self._quiet < 8 * self._wanted
                self._wanted = min(2 * self._wanted, _MOST) if was_wrong else _LOOKS
                self._team = _team()
            self._quiet = 0
        else:
            self._quiet += 1
            if self._team is not None and self._quiet >= self._wanted:
                self._team.leave.set()
                self._team = None
        return _OFTEN

    def run(self) -> None:
        """Look, for as long as the process lives, at a thread that computes; if it has ended, at the main thread."""
        seconds, before = _OFTEN, dict[int, int]()
        while True:
            time.sleep(seconds)
            with contextlib.suppress(OSError):  # there may be no room for another file
                try:
                    following = self.look(seconds)
                except OSError:
                    self.follow(_open(os.getpid()))
                    following = _OFTEN
                now = _used() if following > _OFTEN else {}  # this one does not compute, another may
                if thread := busiest(before, now, _BUSY * seconds):
                    self.follow(_open(thread))
                    following = _OFTEN
                seconds, before = following, now

    def follow(self, file: BinaryIO) -> None:
        """Look at another thread from now on."""
        self._file.close()
        self._file, self._last = file, (0, 0)
        self._read()


class _Team:
    """A thread with a team of its own, which sleeps until it may `leave`; it `left` then.

    GNU OpenMP counts the threads of all teams. As soon as there are more than cores, all of them sleep almost at once
    when they have to wait; they spin again once the team has ended with its thread.
    """

    def __init__(self) -> None:
        self.leave, self.left = threading.Event(), threading.Event()
        _thread.start_new_thread(self._run, ())

    def _run(self) -> None:
        openmp = ctypes.CDLL("libgomp.so.1")
        nothing = ctypes.cast(openmp.omp_get_thread_num, ctypes.c_void_p)
        openmp.GOMP_parallel.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
        if _room(2):
            openmp.GOMP_parallel(nothing, None, 2, 0)
        self.leave.wait()
        self.left.set()


def _team() -> _Team | None:
    try:
        return _Team()
    except RuntimeError:  # no more threads
        return None


def _room(threads: int) -> bool:
    """Whether so many can be started: where one cannot, GNU OpenMP ends the process."""
    leave = threading.Event()
    try:
        for _ in range(threads):
            _thread.start_new_thread(leave.wait, ())
    except RuntimeError:
        return False
    finally:
        leave.set()
        time.sleep(_OFTEN / 2)  # until they have ended
    return True


_watches: list[Watch] = []


def begin() -> bool:
    """Watch the calling thread, which computes; once a process, whose forked children compute with one thread.

    Tells whether there is a watch: there may be no room for its thread.
    """
    if not _watches:
        with contextlib.ExitStack() as opened:
            try:
                watch = Watch(opened.enter_context(_open(threading.get_native_id())))
                # None that `threading` knows: programs join all of those, or count them.
                _thread.start_new_thread(watch.run, ())
            except (OSError, RuntimeError):
                return False
            opened.pop_all()
        _watches.append(watch)
    return True
