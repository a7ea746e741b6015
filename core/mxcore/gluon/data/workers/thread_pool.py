"""Worker threads of the data loader."""

from __future__ import annotations

import os
import queue
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...._scopes import modes, take_modes
from ...._workers import begin
from ....base import MXNetError, error

if TYPE_CHECKING:
    from ..dataset import Dataset

__all__ = ["ThreadPool"]


#: Seconds after which a thread that has nothing to do looks whether its pool is still there: what tells it of the end
#: may be interrupted.
_LOOK = 5.0


def _next(jobs: queue.SimpleQueue[Any], pool: weakref.ref[ThreadPool]) -> Any:
    """The next job; None behind the last one."""
    while True:
        try:
            return jobs.get(timeout=_LOOK)
        except queue.Empty:
            if (found := pool()) is None or not found.alive:
                return None
            del found


def _serve(
    pool: weakref.ref[ThreadPool],
    jobs: queue.SimpleQueue[Any],
    results: queue.SimpleQueue[Any],
    dataset: Dataset,
    batchify: Callable[..., Any],
    of_owner: tuple[bool, bool, bool],
) -> None:
    take_modes(*of_owner)
    while (task := _next(jobs, pool)) is not None:
        job, indices = task
        try:
            results.put((job, False, batchify([dataset[i] for i in indices])))
        except BaseException as e:
            results.put((job, True, e))


def _stop(jobs: queue.SimpleQueue[Any], count: int) -> None:
    for _ in range(count):
        jobs.put(None)


class ThreadPool:
    """Worker threads. They are daemons: a dataset that hangs does not keep the interpreter from ending.

    Parameters
    ----------
    count : int
    dataset : Dataset
    batchify : callable

    Raises
    ------
    MXNetError
        (also RuntimeError or MemoryError) if the system has no room for so many threads.
    """

    def __init__(self, count: int, dataset: Dataset, batchify: Callable[..., Any]) -> None:
        self.owner = os.getpid()
        #: What shapes and arrays mean in its threads, as in the one that makes it.
        self.modes = modes()
        self._jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._open: set[int] = set()
        self._finish = weakref.finalize(self, _stop, self._jobs, count)
        work = weakref.ref(self), self._jobs, self._results, dataset, batchify, self.modes
        try:
            for number in range(count):
                thread = threading.Thread(target=_serve, args=work, daemon=True, name=f"DataLoader-{number}")
                begin(thread, f"DataLoader: thread {number} of {count}", "use fewer workers")
        except MXNetError:
            self._finish()
            raise

    def submit(self, job: int, seed: int, indices: Sequence[Any]) -> None:
        """Queue a job. The seed is not used: threads share the generators of the process."""
        self._open.add(job)
        self._jobs.put((job, indices))

    def collect(self, left: float, timeout: float) -> tuple[int, bool, Any]:
        """Wait for a finished job: (job, whether it failed, batch or exception), as `ProcessPool.collect` does."""
        try:
            job, failed, value = self._results.get(timeout=max(0.0, left))
        except queue.Empty:
            raise error(
                TimeoutError,
                f"DataLoader: no batch within timeout={timeout:g} s; "
                f"the threads work on batches from {min(self._open)}. "
                "Raise timeout= if the samples take that long; num_workers=0 shows where the dataset hangs.",
            ) from None
        if job is None:
            self.interrupt()  # whoever collects next is to see it, too
            raise error(RuntimeError, "DataLoader: the iterator was closed")
        self._open.discard(job)
        return job, failed, value

    def interrupt(self) -> None:
        """Let `collect` fail, also in a thread that waits in it. Any thread may call this."""
        self._results.put((None, True, None))

    def close(self) -> None:
        """Let the threads end after what they are doing. Doing it twice is harmless."""
        # Jobs that nobody waits for are not begun.
        while not self._jobs.empty():
            try:
                self._jobs.get_nowait()
            except queue.Empty:
                break
        self._finish()

    @property
    def alive(self) -> bool:
        """Whether it has workers: not once it was closed, or the process has begun to end."""
        return self._finish.alive

    def idle(self) -> bool:
        """Whether there is nothing left to do."""
        return not self._open
