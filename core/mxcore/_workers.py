"""Threads that work for others, such that an interrupt (Ctrl-C) in those who wait for them locks nobody out.

Python's own `Event`, `Condition`, `Semaphore` and all that is made of them, as queues and executors of the standard
library are, take their locks in Python code: where an interrupt comes between two lines of it, the lock stays taken,
and the thread that wants to tell that it is done waits for ever. Here the locks are C's, which are taken and given
back as a whole, and whoever waits looks now and then by itself.
"""

from __future__ import annotations

import atexit
import contextlib
import contextvars
import gc
import operator
import os
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from ._core.errors import MXNetError, error
from ._forks import at_fork
from ._importing import importing
from ._interrupts import Uninterrupted, handled, let_all_through, suppress

__all__ = [
    "Alone",
    "Clerk",
    "Job",
    "Latch",
    "Promise",
    "Uncollected",
    "Workers",
    "apart",
    "begin",
    "ending",
    "processors",
]

#: Seconds after which whoever waits looks by itself.
_LOOK = 0.05
#: Seconds that a process which ends waits for its threads: some wait for what never comes.
_PATIENCE = 5.0


def processors() -> int:
    """How many processors this process may use.

    Examples
    --------
    >>> processors() > 0
    True
    """
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def begin(thread: threading.Thread, what: str, instead: str) -> None:
    """Start a thread, for which the system may have no room.

    Parameters
    ----------
    thread : threading.Thread
    what : str
        What it is, and who wants it.
    instead : str
        What to do where it cannot be had.

    Raises
    ------
    MXNetError
        (also RuntimeError or MemoryError) with all of that.

    Examples
    --------
    >>> begin(threading.Thread(target=int), "the thread of an example", "do without")
    """
    outside = sys.exc_info()[1]
    try:
        with Uninterrupted():
            thread.start()
    except BaseException as e:
        let_all_through(e, outside)  # Python's own code makes a RuntimeError or KeyError of what a handler raised there
        if not isinstance(e, (RuntimeError, MemoryError)):
            raise
        raise error(
            MemoryError if isinstance(e, MemoryError) else RuntimeError,
            f"{what} cannot be started: {e or 'out of memory'}; {instead}, or raise the limits of the process "
            "(`ulimit -u`, `ulimit -v`)",
        ) from e


class Latch:
    """Something that has happened or not, for which threads wait; once it has, it has for good.

    Parameters
    ----------
    happened : bool

    Examples
    --------
    >>> latch = Latch()
    >>> latch.is_set(), latch.wait(0)
    (False, False)
    >>> latch.set()
    >>> latch.is_set(), latch.wait()
    (True, True)
    """

    __slots__ = ("_set", "_lock")

    def __init__(self, happened: bool = False) -> None:
        self._set, self._lock = happened, threading.Lock()
        if not happened:
            self._lock.acquire()

    def is_set(self) -> bool:
        """Whether it has happened."""
        return self._set

    def set(self) -> None:
        """It happens; doing it twice is harmless."""
        self._set = True
        self._free()

    def _free(self) -> None:
        with suppress(RuntimeError):  # it is free
            self._lock.release()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it has happened, or for so many seconds; tells whether it has."""
        end = None if timeout is None else time.monotonic() + timeout
        while not self._set:
            left = _LOOK if end is None else min(_LOOK, end - time.monotonic())
            if left <= 0:
                break
            if self._lock.acquire(timeout=left):
                self._free()  # for the next one who waits; an interrupt before it, and that one looks by itself
        return self._set


class _Outcome:
    """What comes of something, or why nothing does."""

    __slots__ = ("_claims", "_done", "_value", "_error")
    #: Gives why nothing does, or None, once that is known.
    _failure: Callable[..., BaseException | None]

    def __init__(self) -> None:
        #: Who came first, told by a dict's method, which an interrupt does not cut in two.
        self._claims: dict[str, object] = {}
        self._done = Latch()
        self._value: Any = None
        self._error: BaseException | None = None

    def result(self, *timeout: float | None) -> Any:
        """What has come, once it has; raises why nothing will."""
        failed = self._failure(*timeout)
        if failed is not None:
            try:
                raise failed
            finally:
                del failed, self  # a traceback that holds its error would live on
        return self._value


class Promise(_Outcome):
    """What will come, or why it will not: who tells it first is heard. The names are those of `concurrent.futures`.

    Examples
    --------
    >>> promise = Promise()
    >>> promise.set_result(6)
    >>> promise.set_exception(ValueError("too late"))
    >>> promise.result()
    6
    """

    __slots__ = ("_calls",)

    def __init__(self) -> None:
        super().__init__()
        self._calls: list[Callable[[Promise], Any]] = []

    def done(self) -> bool:
        """Whether it has come, or will not."""
        return self._done.is_set()

    def set_result(self, value: Any) -> None:
        """It has come."""
        self._end(value, None)

    def set_exception(self, exception: BaseException) -> None:
        """It will not come."""
        self._end(None, exception)

    def _end(self, value: Any, exception: BaseException | None) -> None:
        mine = object()
        with Uninterrupted():
            if self._claims.setdefault("first", mine) is mine:
                self._value, self._error = value, exception
                self._done.set()
                self._tell()

    def _tell(self) -> None:
        """Make the calls that nobody else takes meanwhile; the first failure among them is raised behind the others."""
        failure: BaseException | None = None
        while True:
            try:
                call = self._calls.pop()
            except IndexError:
                break
            try:
                call(self)
            except BaseException as e:
                failure = failure or e
        if failure is not None:
            try:
                raise failure
            finally:
                del failure  # a traceback that holds its error would live on

    def add_done_callback(self, call: Callable[[Promise], Any]) -> None:
        """Let something be called with this object when it has come, or will not; at once, if that is known.

        Parameters
        ----------
        call : callable
        """
        self._calls.append(call)
        if self.done():
            self._tell()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it has come, or will not, or for so many seconds; tells whether that is known."""
        return self._done.wait(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Why it will not come, or None, once that is known.

        Parameters
        ----------
        timeout : float, optional
            Seconds to wait for it.

        Raises
        ------
        TimeoutError
            If that is not known by then.
        """
        if not self.wait(timeout):
            raise TimeoutError
        return self._error

    _failure = exception


def apart(fn: Callable[..., Any], *args: Any) -> Any:
    """What a function gives that must not begin again in its own midst, such as one that imports a package.

    In the main thread a signal's handler of the user's may come anywhere, and ask for the same: where there are such, a
    thread is started that makes the call, so that locks keep out who asks meanwhile. What is of this thread alone, but
    for context variables, is not there. Amid an import the call is made here: the other thread might ask for the same
    module.

    Parameters
    ----------
    fn : callable
    *args
        Of the function.

    Examples
    --------
    >>> apart(sum, [1, 2])
    3
    """
    if not handled() or importing():
        return fn(*args)
    job, context = Job(lambda: fn(*args)), contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(job.run,), name="mxcore-apart", daemon=True)
    try:
        begin(thread, "a thread beside the main one", "use fewer")
    except MXNetError:  # no room for one, or the process ends
        job.run()
    return job.result()


class Alone:
    """Makes calls that may take long, one at a time, whoever asks: of what a process does once.

    They go by `apart`, so that a signal's handler amid one may ask for the same, or wait for another thread that does.
    For what takes a moment, and must not be left in its midst, there is `Clerk`.

    Attributes
    ----------
    lock : lock
        Held meanwhile.

    Examples
    --------
    >>> Alone().do(sum, [1, 2])
    3
    """

    def __init__(self) -> None:
        self.lock: Any = threading.RLock()

    def do(self, fn: Callable[..., Any], *args: Any) -> Any:
        """What a function gives."""
        # No other thread could have the lock that this one has, as by a handler while it forks.
        return fn(*args) if self.lock._is_owned() else apart(self._locked, fn, *args)

    def _locked(self, fn: Callable[..., Any], *args: Any) -> Any:
        with self.lock:
            return fn(*args)


_CANCELLED = object()


class Job(_Outcome):
    """A call that a thread makes, once.

    Parameters
    ----------
    fn : callable
        Without arguments.

    Examples
    --------
    >>> job = Job(lambda: 6 * 7)
    >>> with Workers(1, "example") as workers:
    ...     workers.put(job)
    ...     job.result()
    42
    """

    __slots__ = ("left", "_fn")

    def __init__(self, fn: Callable[[], Any]) -> None:
        super().__init__()
        #: Whether no thread will take it: who asks for the result makes the call.
        self.left = False
        self._fn: Callable[[], Any] | None = fn

    @property
    def begun(self) -> bool:
        """Whether a thread has taken it, or it was cancelled."""
        return bool(self._claims)

    @property
    def _cancelled(self) -> bool:
        return self._claims.get("first") is _CANCELLED

    @property
    def done(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self._done.is_set() or self._cancelled

    def run(self) -> None:
        """Make the call, unless somebody has begun to."""
        fn, mine = self._fn, object()
        if fn is None or self._claims.setdefault("first", mine) is not mine:
            return
        try:
            self._value = fn()
        except BaseException as e:
            self._error = e
        self._fn = fn = None
        self._done.set()
        del self  # a job that holds an error, whose traceback holds this frame, would live on

    def cancel(self) -> bool:
        """See to it that the call is not made; False if a thread has begun it."""
        if self._claims.setdefault("first", _CANCELLED) is not _CANCELLED:
            return False
        self._fn = None
        self._done.set()  # who waits need not look by himself
        return True

    def error(self) -> BaseException | None:
        """What the call raised, once it has ended."""
        while not self.done:
            if self.left:
                self.run()
            self._done.wait(_LOOK)
        return RuntimeError("it was cancelled") if self._cancelled else self._error

    _failure = error


class Workers:
    """Some threads that make calls in the order in which they came.

    Parameters
    ----------
    n : int
        One at least.
    name : str
        Of the threads, with a number.

    Raises
    ------
    MXNetError
        (also RuntimeError or MemoryError) if the system has no room for so many, (also ValueError) if there were none.

    Attributes
    ----------
    pid : int
        The process that has the threads: one that was forked from it has none.
    """

    pid = -1  # of one whose making was interrupted
    _getpid = staticmethod(os.getpid)  # finalizers run, too, when the interpreter has emptied its modules

    def __init__(self, n: int, name: str) -> None:
        if n < 1:
            raise error(ValueError, f"{name}: {n} threads make no call, one at least is needed")
        # For each job there is a turn, or more: who has one takes all jobs, and those behind a turn that never came.
        self._jobs: deque[Job] = deque()
        self._turns: SimpleQueue[bool] = SimpleQueue()
        work = self._turns, self._jobs
        self._threads = [threading.Thread(target=_work, args=work, name=f"{name}_{i}", daemon=True) for i in range(n)]
        self.pid = os.getpid()
        _all.add(self)
        self._ended, self._closed = ending(), False
        try:
            for t in () if self._ended else self._threads:
                begin(t, f"{name}: a thread, of {n},", "use fewer")
        except MXNetError:
            self.close(wait=False)
            raise

    def put(self, *jobs: Job) -> None:
        """Let threads make calls; of one that was put twice only the first time counts.

        While the process ends there are none any more: who asks for a result then makes the call. Behind `close` it is
        given up.
        """
        for job in jobs:
            if not job.begun:
                self._jobs.append(job)
                self._turns.put(True)
        if self._ended:  # looked at behind it: the end may have come in between, or another thread's `close`
            self._leave()
        elif self._closed:
            self._give_up()

    def close(self, wait: bool = True) -> None:
        """Give up what no thread has begun, and end the threads; harmless twice, and in a fork of their process."""
        if self.pid != self._getpid():
            return
        self._closed = True
        self._give_up()
        for _ in self._threads:
            self._turns.put(False)
        if wait:
            self._join()

    def _give_up(self) -> None:
        for job in self._jobs.copy():
            job.cancel()

    def _leave(self) -> None:
        """Let the threads end, and what they have not begun to who asks for it: exit handlers may."""
        self._ended = True
        while self._jobs:
            with suppress(IndexError):  # a thread has taken it
                self._jobs.pop().left = True
        for _ in self._threads:
            self._turns.put(False)

    def _join(self, end: float | None = None) -> None:
        """Wait until all threads have ended, or for so long a time."""
        for t in filter(threading.Thread.is_alive, self._threads):
            t.join(None if end is None else max(end - time.monotonic(), 0))

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close(wait=False)


_end_begun = False
#: Whose threads a process ends before it ends itself: one in the midst of native code would end it otherwise.
_all: weakref.WeakSet[Workers] = weakref.WeakSet()


#: Calls what it is given, without code of Python's.
_call: Callable[..., Any] = getattr(operator, "call", type(gc.disable).__call__)
#: What regions have found on, and will let go on.
_stopped: dict[int, list[bool]] = {}


def _go_on() -> None:
    """Let the collector go on in a child, if another thread's region had stopped it: it would do so nowhere."""
    stopped = any(map(any, _stopped.values()))
    _stopped.clear()
    if stopped:
        gc.enable()


at_fork(after_in_child=_go_on)


class Uncollected:
    """A region in which the garbage collector does not run, nor any finalizer that it would call; for what is short.

    A thread that stops the collector itself meanwhile stops it for the time of the region only.

    Examples
    --------
    >>> import gc
    >>> with Uncollected():
    ...     gc.isenabled()
    False
    """

    def __enter__(self) -> Uncollected:
        found = self._found = _stopped[id(self)] = []
        # Each stops it in one step of the interpreter: of all threads that do, one alone finds it on.
        first, self._again = (filter(None, map(_call, (gc.isenabled, gc.disable))) for _ in range(2))
        found.extend(first)
        return self

    def again(self) -> None:
        """Stop it once more, once: another thread that was in such a region, too, may have let it go on."""
        self._found.extend(self._again)

    def __exit__(self, *exc: object) -> None:
        if self._found:
            gc.enable()
        _stopped.pop(id(self), None)


class Clerk:
    """Does short things one at a time, each as a whole, whoever asks: no code of the user's comes in their midst.

    In the main thread a signal's handler of the user's may come anywhere, and ask for such a thing, too, or wait for
    another thread that does: where there are such, a thread of the clerk's has the lock. Nor does the garbage collector
    run meanwhile, whose finalizers may do the same. What a thing drops that may have finalizers it returns.

    Parameters
    ----------
    name : str
        Of that thread.
    patience : float
        Seconds that who is interrupted by an exception waits, at most, for what was begun.

    Examples
    --------
    >>> Clerk("counts").do(sum, [1, 2])
    3
    """

    def __init__(self, name: str, patience: float = _PATIENCE) -> None:
        self._name, self._patience = name, patience
        self.lock: Any = threading.RLock()
        self._workers: Workers | None = None

    def do(self, fn: Callable[..., Any], *args: Any) -> Any:
        """What a function gives; nobody else does such a thing meanwhile, and Ctrl-C comes behind it."""
        # Who has the lock is a finalizer or a handler of its holder's, which may be he who forks.
        if self.lock._is_owned() or not handled():
            return self._locked(fn, *args)
        workers = self._workers
        if workers is None or workers.pid != os.getpid():
            try:
                workers = self._workers = Workers(1, self._name)
            except MXNetError:  # no room for a thread, or the process ends
                return self._locked(fn, *args)
        job = Job(lambda: self._locked(fn, *args))
        try:
            workers.put(job)
            return job.result()
        except BaseException:  # perhaps of the handler: then it is done, or never will be, before anything else is
            end = time.monotonic() + self._patience
            while not job.cancel() and not job.done and workers.pid == os.getpid() and time.monotonic() < end:
                with contextlib.suppress(BaseException):  # as above
                    job._done.wait(_LOOK)
            raise

    def _locked(self, fn: Callable[..., Any], *args: Any) -> Any:
        # It stops before the lock is taken: newer Pythons collect at the next call.
        with Uninterrupted(), Uncollected() as region, self.lock:
            region.again()
            return fn(*args)


def ending() -> bool:
    """Whether this process ends, and what works for it: exit handlers that ask for something make it themselves."""
    return _end_begun


@atexit.register
def _end() -> None:
    global _end_begun
    _end_begun = True
    mine = [workers for workers in _all if workers.pid == os.getpid()]
    for workers in mine:
        workers._leave()
    end = time.monotonic() + _PATIENCE
    for workers in mine:
        workers._join(end)


def _work(turns: SimpleQueue[bool], jobs: deque[Job]) -> None:
    while turns.get():
        while jobs:
            try:
                job = jobs.popleft()
            except IndexError:  # another thread took it
                break
            job.run()
            del job  # what it holds is let go before the next one comes
