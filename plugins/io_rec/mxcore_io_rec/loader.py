"""Making batches ahead of their use, in threads, in an order that does not depend on the threads."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from mxcore.base import error
from mxcore.plugin import Job, Workers, fork_safe_lock

__all__ = ["Loader"]


Item = TypeVar("Item")


class Loader(Generic[Item]):
    """Make items in threads and hand them over in their order.

    The consumer itself plans and submits; threads only work. So nothing waits for a consumer that went away.

    Parameters
    ----------
    plan : callable
        Returns the next item, any object; raises StopIteration when there is none.
    tasks : callable
        Given an item, returns the callables that make it, which may run at the same time.
    threads : int
        How many threads to use.
    ahead : int
        How many items to begin before they are asked for.

    Examples
    --------
    >>> loader = Loader(iter(["a", "b"]).__next__, lambda item: [lambda: print("work on", item)], 1, 0)
    >>> loader.next()
    work on a
    'a'
    >>> loader.close()
    """

    def __init__(
        self, plan: Callable[[], Item], tasks: Callable[[Item], Iterable[Callable[[], Any]]], threads: int, ahead: int
    ) -> None:
        self._plan, self._tasks, self._threads, self._ahead = plan, tasks, threads, ahead
        self._coming: deque[tuple[Item, list[Job]]] = deque()
        self._over = self._closed = False
        self._workers: Workers | None = None
        self._lock = fork_safe_lock()

    def _begin(self) -> None:
        while not self._over and len(self._coming) <= self._ahead:
            try:
                item = self._plan()
            except StopIteration:
                self._over = True
                return
            self._coming.append((item, [Job(task) for task in self._tasks(item)]))
            self._submit(self._coming[-1][1])

    def _submit(self, jobs: Iterable[Job]) -> None:
        """Give threads what none has begun; they end, and give up the rest, when this is dropped mid-epoch."""
        if self._workers is None:
            self._workers = Workers(self._threads, "mxcore-decode")
        self._workers.put(*jobs)

    def next(self) -> Item:
        """Return the next item once it is made.

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
            if self._workers is not None and self._workers.pid != os.getpid():
                self._after_fork()
            self._begin()
            if not self._coming:
                raise StopIteration
            item, jobs = self._coming[0]
            self._submit(jobs)  # unless an interrupt came before
            failures = [job.error() for job in jobs]
            self._coming.popleft()
            del jobs
            self._check_open()
            self._begin()
        try:
            for failure in failures:
                if failure is not None:
                    raise failure
        finally:
            failure = None  # a traceback that holds its error would live on
            failures.clear()
        return item

    def _check_open(self) -> None:
        if self._closed:
            raise error(RuntimeError, "this iterator is closed")

    def _after_fork(self) -> None:
        """The threads stayed with the parent: begin again what they had in hand."""
        self._workers = None
        self._coming = deque((item, [Job(task) for task in self._tasks(item)]) for item, _ in self._coming)
        for _, jobs in self._coming:
            self._submit(jobs)

    def restart(self) -> None:
        """Give up the items under way; plan anew."""
        with self._lock:
            self._check_open()
            self._give_up()

    def _give_up(self) -> None:
        # Nobody waits for these once they are cancelled, wherever an interrupt comes.
        coming, self._coming, self._over = self._coming, deque(), False
        for _, jobs in coming:
            for job in jobs:
                job.cancel()

    def close(self) -> None:
        """Give up the items under way, and end the threads. Doing it twice is harmless."""
        self._closed = True
        with self._lock:
            self._give_up()
            if self._workers is not None:
                self._workers.close()
            self._workers = None
