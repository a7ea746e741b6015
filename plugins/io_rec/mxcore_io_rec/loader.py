"""Making batches ahead of their use, in threads, in an order that does not depend on the threads."""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, TypeVar

from mxcore.base import error

__all__ = ["Loader", "processors"]


def processors() -> int:
    """Return how many processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


Job = TypeVar("Job")


class Loader(Generic[Job]):
    """Carry out jobs in threads and hand their results over in the order of the jobs.

    The consumer itself plans and submits; threads only work. So nothing waits for a consumer that went away.

    Parameters
    ----------
    plan : callable
        Returns the next job, any object; raises StopIteration when there is none.
    tasks : callable
        Given a job, returns the callables that do it, which may run at the same time.
    threads : int
        How many threads to use.
    ahead : int
        How many jobs to begin before they are asked for.

    Examples
    --------
    >>> loader = Loader(iter(["a", "b"]).__next__, lambda job: [lambda: print("work on", job)], 1, 0)
    >>> loader.next()
    work on a
    'a'
    >>> loader.close()
    """

    def __init__(
        self, plan: Callable[[], Job], tasks: Callable[[Job], Iterable[Callable[[], Any]]], threads: int, ahead: int
    ) -> None:
        self._plan, self._tasks, self._threads, self._ahead = plan, tasks, threads, ahead
        self._coming: deque[tuple[Job, list[Future[Any]]]] = deque()
        self._over = self._closed = False
        self._pool: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()

    def _workers(self) -> ThreadPoolExecutor:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="mxcore-decode")
            self._pid = os.getpid()
            # Dropped mid-epoch: what has not begun is given up, and the threads end.
            self._finalizer = weakref.finalize(self, self._pool.shutdown, wait=False, cancel_futures=True)
        return self._pool

    def _begin(self) -> None:
        while not self._over and len(self._coming) <= self._ahead:
            try:
                job = self._plan()
            except StopIteration:
                self._over = True
                return
            self._coming.append((job, self._submit(job)))

    def _submit(self, job: Job) -> list[Future[Any]]:
        return [self._workers().submit(task) for task in self._tasks(job)]

    def next(self) -> Job:
        """Return the next job once its tasks are done.

        Raises
        ------
        StopIteration
            When there is none.
        MXNetError
            (also RuntimeError) if it is closed, also by another thread meanwhile.
        Exception
            What a task raised: of several the first one, in the order of the tasks.
        """
        with self._lock:
            self._check_open()
            if self._pool is not None and self._pid != os.getpid():
                self._after_fork()
            self._begin()
            if not self._coming:
                raise StopIteration
            job, futures = self._coming.popleft()
            failures = [f.exception() for f in futures]
            del futures
            self._check_open()
            self._begin()
        try:
            for failure in failures:
                if failure is not None:
                    raise failure
        finally:
            failure = None  # a traceback that holds its error would live on
            failures.clear()
        return job

    def _check_open(self) -> None:
        if self._closed:
            raise error(RuntimeError, "this iterator is closed")

    def _after_fork(self) -> None:
        """The threads stayed with the parent: begin again what they had in hand."""
        self._finalizer.detach()
        self._pool = None
        self._coming = deque((job, self._submit(job)) for job, _ in self._coming)

    def restart(self) -> None:
        """Give up the jobs under way; plan anew."""
        with self._lock:
            self._check_open()
            self._give_up()
            self._over = False

    def _give_up(self) -> None:
        for _, futures in self._coming:
            for future in futures:
                future.cancel()
        self._coming.clear()

    def close(self) -> None:
        """Give up the jobs under way, and end the threads. Doing it twice is harmless."""
        self._closed = True
        with self._lock:
            self._give_up()
            if self._pool is not None and self._pid == os.getpid():
                self._finalizer.detach()
                self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None
