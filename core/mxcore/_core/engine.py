"""The dependency engine: orders reads and writes per storage, inline where it can, on a worker where that overlaps.

An operator is *pushed* only if something it reads or writes is pending, or if it is heavy and more than one context is
in use; everything else runs inline in the caller. A task that fails poisons what it writes, never the engine.
A transfer of a device with a queue of its own is done when its event is reached: until then it is *launched*, and the
device's queues can wait for it without the host.
"""

from __future__ import annotations

import itertools
import os
import queue
import threading
import time
import types
import weakref
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import Any

from .._forks import at_fork
from .._workers import Clerk, Latch, begin, ending
from . import rng
from .array import Storage
from .context import Context
from .errors import MXNetError, error
from .state import state

__all__ = ["Task", "Engine", "NaiveEngine", "ThreadedEnginePerDevice", "engine"]


class Task:
    """Work pushed to the engine: done when `done` is set; `error` is what failed in it or before it."""

    __slots__ = (
        "fn",
        "ctx",
        "reads",
        "writes",
        "sources",
        "waiting",
        "dependents",
        "error",
        "done",
        "name",
        "seen",
        "rank",
        "event",
    )

    def __init__(
        self,
        fn: Callable[[], Any] | None,
        ctx: Context,
        reads: tuple[Storage, ...],
        writes: tuple[Storage, ...],
        name: str,
    ) -> None:
        self.fn, self.ctx, self.reads, self.writes, self.name = fn, ctx, reads, writes, name
        #: What a worker does first: the highest priority, then what was pushed first.
        self.rank = -state.priority, next(_serial)
        #: The device's event that ends it, once it is launched.
        self.event: Any = None
        self.sources: list[Task] = []
        self.dependents: list[Task] = []
        self.error: BaseException | None = None
        self.done = Latch()
        #: How many it waits for; not empty once somebody has seen the error: shared with what fails of it, too.
        self.waiting, self.seen = 0, list[bool]()

    def finished(self) -> None:
        """Wait for the end, whatever it was."""
        if not self.done.is_set():
            if _amid() or ending():  # finalizers behind the end would wait for threads that no longer run
                raise error(RuntimeError, f"{self.name}: neither a worker nor who comes behind the end may wait for it")
            self.done.wait()

    def wait(self) -> None:
        """Wait for the end; raise what failed."""
        self.finished()
        if self.error is not None:
            self.seen.append(True)
            raise self.error


_worker = threading.local()
_serial = itertools.count()


def _amid() -> bool:
    """Whether pending work may wait for this thread: a worker, or one that a finalizer has amid its entering."""
    return getattr(_worker, "ctx", None) is not None or engine.it.clerk.lock._is_owned()


class _Lane:
    """What is ready for one worker: the highest priority first, then what was pushed first.

    A finalizer may enter a task in the midst of the entering of another by the same thread, so there is no lock;
    comparing tuples of numbers runs no Python code. Of a task that is put twice the worker runs the first.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Task]] = []
        self._bell: queue.SimpleQueue[None] = queue.SimpleQueue()

    def put(self, task: Task) -> None:
        heappush(self._heap, (*task.rank, task))
        self._bell.put(None)

    def get(self) -> Task:
        while not self._heap:
            self._bell.get()
        return heappop(self._heap)[-1]


class Engine:
    """The interface: `push` work with what it reads and writes; `wait_all`.

    What a pushed function returns is None, or what ends its work: an event of its device, or a
    `concurrent.futures.Future`, whose exception is its failure.

    Attributes
    ----------
    work_limit : float
        Estimated scalar operations (about nanoseconds) from which an operator may go to a worker.
    parallel : bool
        Whether heavy operators are pushed: more than one context is in use.
    naive : bool
        Whether every operator ends before the next begins, on devices with a queue of their own too, so that errors
        name theirs.
    """

    work_limit = 1e6
    parallel = False
    naive = False

    def __init__(self) -> None:
        self.contexts: set[Context] = set()
        #: Enters tasks, and sees their ends.
        self.clerk = Clerk("mxcore-clerk")

    def note(self, ctx: Context) -> None:
        """Hear that a context has begun to compute."""
        self.contexts.add(ctx)

    def push(
        self,
        ctx: Context,
        fn: Callable[[], Any],
        reads: Iterable[Storage],
        writes: Iterable[Storage],
        name: str = "task",
    ) -> None:
        raise NotImplementedError("an engine must define push()")

    def launched(
        self, ctx: Context, event: Any, reads: Iterable[Storage], writes: Iterable[Storage], name: str
    ) -> None:
        """Hear that a device has begun work that is done at an event."""
        raise NotImplementedError("an engine must define launched()")

    def wait_all(self) -> None:
        """Wait for all work on all contexts; raise the first failure nobody has seen."""
        for ctx in list(self.contexts):
            if (device := ctx._device) is not None:
                device.synchronize(ctx.device_id)


class NaiveEngine(Engine):
    """Runs everything at once in the caller's thread."""

    naive = True

    def push(
        self,
        ctx: Context,
        fn: Callable[[], Any],
        reads: Iterable[Storage],
        writes: Iterable[Storage],
        name: str = "task",
    ) -> None:
        for st in reads:
            st.wait()
        event = fn()
        if hasattr(event, "add_done_callback"):
            event.result()
        elif event is not None:
            ctx.device.finish(event)

    def launched(
        self, ctx: Context, event: Any, reads: Iterable[Storage], writes: Iterable[Storage], name: str
    ) -> None:
        ctx.device.finish(event)


class ThreadedEnginePerDevice(Engine):
    """One worker thread per context, started when first needed."""

    def __init__(self) -> None:
        super().__init__()
        self._queues: dict[Any, _Lane] = {}
        self._open: weakref.WeakSet[Task] | set[Task] = set()
        self._failed: list[Task] = []
        #: A new one while a fork waits: who pushes without end would let it wait for ever.
        self._gate = Latch(True)
        at_fork(before=self._before_fork, after_in_parent=lambda: self._gate.set(), first=True)

    def note(self, ctx: Context) -> None:
        self.contexts.add(ctx)
        self.parallel = len(self.contexts) > 1

    def push(
        self,
        ctx: Context,
        fn: Callable[[], Any],
        reads: Iterable[Storage],
        writes: Iterable[Storage],
        name: str = "task",
    ) -> None:
        writes = tuple(dict.fromkeys(writes))
        reads = tuple(st for st in dict.fromkeys(reads) if st not in writes) + tuple(
            st for st in dict.fromkeys(reads) if st in writes
        )
        self._enter(Task(fn, ctx, reads, writes, name), self._run)

    def launched(
        self, ctx: Context, event: Any, reads: Iterable[Storage], writes: Iterable[Storage], name: str
    ) -> None:
        task = Task(None, ctx, tuple(reads), tuple(writes), name)
        task.event = event
        self._enter(task, self._land)

    def _enter(self, task: Task, run: Callable[[Task], None]) -> None:
        self._gate.wait(1)  # not longer: what is waited for may need this task
        self.clerk.do(self._take, task, run)

    def _take(self, task: Task, run: Callable[[Task], None]) -> Any:
        """Enter a task, and give it to a worker unless it waits for others; what was launched does not wait.

        Returns what was there before, whose errors keep frames of the user's.
        """
        lane = self._queue(task.ctx, run)
        before: dict[Task, None] = {}
        for st in task.reads:
            if st.write is not None:
                before[st.write] = None
                task.sources.append(st.write)
        for st in task.writes:
            if st.write is not None:
                before[st.write] = None
            for r in st.reads or ():
                before[r] = None
        for b in before:
            if not b.done.is_set():
                b.dependents.append(task)
                task.waiting += 1
        for st in task.reads:
            if st not in task.writes:
                if st.reads is None:
                    st.reads = []
                st.reads.append(task)
        for st in task.writes:
            st.write, st.reads = task, None
        self._open.add(task)
        if task.waiting == 0 or task.event is not None:
            lane.put(task)
        return before

    def _queue(self, ctx: Context, run: Callable[[Task], None] | None = None) -> _Lane:
        """The queue of a worker that runs tasks of a context, or sees those end that were launched."""
        run = run or self._run
        key = ctx, run.__name__
        if key not in self._queues:
            q = _Lane()
            begin(  # where it cannot be started, the next push tries again
                threading.Thread(target=self._work, args=(ctx, q, run), name=f"mxcore-{ctx}", daemon=True),
                f"the engine's worker of {ctx}",
                "use fewer contexts, or MXNET_ENGINE_TYPE=NaiveEngine",
            )
            self._queues[key] = q
        return self._queues[key]

    def _work(self, ctx: Context, q: _Lane, run: Callable[[Task], None]) -> None:
        _worker.ctx = ctx
        while True:
            task = q.get()
            run(task)
            del task

    def _run(self, task: Task) -> None:
        if task.fn is None:
            return  # it was put twice
        bad = next((s for s in task.sources if s.error is not None), None)
        if bad is not None:
            task.error, task.seen = bad.error, bad.seen
        else:
            try:
                task.ctx.device.activate(task.ctx.device_id)
                task.event = task.fn()
            except BaseException as e:
                task.error = e
        task.fn = None
        if hasattr(task.event, "add_done_callback"):
            task.event.add_done_callback(lambda future: self._over(task, future))
        elif task.event is not None:
            try:
                self.clerk.do(self._queue, task.ctx, self._land).put(task)
            except MXNetError:  # no room for a thread: the next one may have it, and this one waits itself
                self._land(task)
        else:
            self._done(task)

    def _over(self, task: Task, future: Any) -> None:
        """See the end of a task that a future tells."""
        task.event, task.error = None, future.exception()
        self._done(task)

    def _land(self, task: Task) -> None:
        """See the end of a task that was launched."""
        try:
            task.ctx.device.finish(task.event)
        except BaseException as e:
            task.error = e
        self._done(task)

    def _done(self, task: Task) -> None:
        """Let go what waits for a task; what it failed to write stays as it is."""
        task.sources = []
        self.clerk.do(self._let_go, task)

    def _let_go(self, task: Task) -> Any:
        for st in task.writes:
            # A failed task stays in place: whoever reads the storage learns why it holds nothing.
            if st.write is task and task.error is None:
                st.write = None
        for st in task.reads:
            if st.reads and task in st.reads:
                st.reads.remove(task)
                if not st.reads:
                    st.reads = None
        task.reads = task.writes = ()
        before = self._failed
        if task.error is not None:
            self._failed = [t for t in before if not t.seen][-99:] + [task]
        self._open.discard(task)
        task.done.set()
        dependents, task.dependents = task.dependents, []
        for d in dependents:
            d.waiting -= 1
            if d.waiting == 0:
                self._queue(d.ctx).put(d)
        return before

    def drain(self, patience: float | None = None) -> None:
        """Wait until all that was pushed before is done, whatever failed, or for so many seconds."""
        if not _amid():
            end = None if patience is None else time.monotonic() + patience
            for task in [*self._open]:
                task.done.wait(None if end is None else max(0, end - time.monotonic()))

    def _before_fork(self) -> None:
        self._gate = Latch()
        self.drain(30)  # what is left may wait for a lock of another library that who forks holds

    def wait_all(self) -> None:
        self.drain()
        super().wait_all()
        if bad := self.clerk.do(self._take_failures):
            bad[0].wait()

    def _take_failures(self) -> list[Task]:
        """Those that nobody has seen."""
        failed, self._failed = self._failed, []
        return [t for t in failed if not t.seen]


ENGINES: dict[str, type[Engine]] = {
    "NaiveEngine": NaiveEngine,
    "ThreadedEnginePerDevice": ThreadedEnginePerDevice,
    "ThreadedEngine": ThreadedEnginePerDevice,
}


_name = os.environ.get("MXNET_ENGINE_TYPE", "ThreadedEnginePerDevice")
if _name not in ENGINES:
    raise error(ValueError, f"MXNET_ENGINE_TYPE={_name!r}: use one of {', '.join(ENGINES)}")
#: Holds the engine in use as `it`, so that a fork or a test can exchange it.
engine = types.SimpleNamespace(it=ENGINES[_name]())


def _in_child() -> None:
    # Worker threads do not survive a fork, and parallel kernels may not: the child computes inline. What other threads
    # pushed in the last moment, nobody will ever do here.
    old, engine.it = engine.it, NaiveEngine()
    rng.lock = threading.RLock()  # its owner may not exist here
    for task in getattr(old, "_open", ()):
        task.error = error(RuntimeError, f"{task.name}: another thread pushed it while this process was forked")
        task.done = Latch(True)


at_fork(after_in_child=_in_child)
