"""Worker processes of the data loader."""

from __future__ import annotations

import contextlib
import errno
import multiprocessing
import os
import pickle
import secrets
import shutil
import signal
import sys
import tempfile
import time
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from multiprocessing import connection
from typing import TYPE_CHECKING, Any

from ...._locks import fork_safe_lock
from ....base import error
from . import loop
from .transport import receive

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

    from ..dataset import Dataset
    from .loop import Failure

__all__ = ["ProcessPool", "WorkerTraceback"]

#: Jobs that a worker may have at a time; more wait in the loader. See `transport.INLINE`.
_MOST_JOBS = 8

#: What fails for want of descriptors or memory here, not because a worker is gone.
_SCARCE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})

_LIMITS = "Use fewer workers, or raise the limits of the process (ulimit -n, ulimit -u)."


#: Held while connections are made and closed: a process that is forked in the midst of it would hold, or close, those
#: of others.
_starting = fork_safe_lock()

#: The loaders' ends of all connections. As long as a worker holds a copy, others do not notice that their loader is
#: gone.
_ends: weakref.WeakSet[connection.Connection] = weakref.WeakSet()


class WorkerTraceback(Exception):
    """Shows, as the cause of an exception, what the worker saw."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def _start_method() -> str:
    """What the user chose with `multiprocessing.set_start_method`; else fork where safe, else spawn."""
    methods = multiprocessing.get_all_start_methods()
    chosen = multiprocessing.get_start_method(allow_none=True)
    # The system's default, the first of the list, also stands there when nobody chose anything.
    if chosen is not None and chosen != methods[0]:
        return chosen
    # On macOS system libraries may break in a forked child.
    return "fork" if "fork" in methods and sys.platform != "darwin" else "spawn"


class _Worker:
    """One process, the loader's end of its connection, and what it has to do."""

    #: From `ProcessPool._start` on.
    conn: Any
    process: BaseProcess

    def __init__(self, number: int) -> None:
        self.number = number
        #: When each was given to it.
        self.jobs: dict[int, float] = {}

    def __str__(self) -> str:
        return f"DataLoader worker {self.number} (process {self.process.pid})"

    def end(self) -> None:
        """Close the connection; an idle worker leaves by itself, a busy one is stopped."""
        with _starting, contextlib.suppress(OSError):
            self.conn.close()
        if self.jobs:
            self.process.terminate()

    def reap(self) -> None:
        """Wait for the end, which comes one way or another."""
        self.process.join(1.0)
        for stop in (self.process.terminate, self.process.kill):
            if self.process.exitcode is None:
                stop()
                self.process.join(2.0)
        with contextlib.suppress(ValueError):
            self.process.close()


def _close(workers: list[_Worker], folder: str, owner: int) -> None:
    """End workers; only in the process that started them, not in a fork of it."""
    if os.getpid() != owner:
        return
    for w in workers:
        w.end()
    for w in workers:
        w.reap()
    workers.clear()
    shutil.rmtree(folder, ignore_errors=True)


class ProcessPool:
    """Worker processes.

    Parameters
    ----------
    count : int
    dataset : Dataset
    batchify : callable

    Raises
    ------
    MXNetError (TypeError)
        If the processes cannot be forked and the dataset cannot be pickled.
    """

    def __init__(self, count: int, dataset: Dataset, batchify: Callable[..., Any]) -> None:
        method = _start_method()
        self._context: Any = multiprocessing.get_context(method)
        work: Any = (dataset, batchify)
        if method != "fork":
            work = _pickled(work, method)
        self._folder = os.path.join(tempfile.gettempdir(), f"mxcore-loader-{secrets.token_hex(8)}")
        self._queue: deque[tuple[int, int, Sequence[Any]]] = deque()
        self._workers: list[_Worker] = []
        self._count = count
        # Runs at the latest when the interpreter ends.
        self._finish = weakref.finalize(self, _close, self._workers, self._folder, os.getpid())
        try:
            for number in range(count):
                self._start(_Worker(number), work, method)
        except OSError as e:
            started = len(self._workers)
            self.close()
            raise error(OSError, f"DataLoader: cannot start worker {started} of {count}: {e}. {_LIMITS}") from e
        except BaseException:
            self.close()
            raise

    def _start(self, worker: _Worker, work: tuple[Any, ...] | bytes, method: str) -> None:
        with _starting, warnings.catch_warnings():
            # Python warns of threads at a fork. The library's own are quiet then; the child touches no
            # others.
            warnings.simplefilter("ignore", DeprecationWarning)
            worker.conn, theirs = self._context.Pipe(duplex=True)
            _ends.add(worker.conn)
            worker.process = self._context.Process(
                target=loop.run,
                daemon=True,
                name=f"DataLoader-{worker.number}",
                args=(theirs, [*_ends] if method == "fork" else [], worker.number, os.getpid(), self._folder, work),
            )
            worker.process.start()
            theirs.close()
        self._workers.append(worker)

    # -- jobs ------------------------------------------------------------------------------------------------

    def submit(self, job: int, seed: int, indices: Sequence[Any]) -> None:
        """Give a job to whoever has the least to do."""
        self._queue.append((job, seed, indices))
        self._dispatch()

    def _dispatch(self) -> None:
        while self._queue:
            worker = min(self._workers, key=lambda w: len(w.jobs))
            if len(worker.jobs) >= _MOST_JOBS:
                return
            job, seed, indices = self._queue.popleft()
            worker.jobs[job] = time.monotonic()
            try:
                worker.conn.send_bytes(pickle.dumps((job, seed, indices)))
            except OSError:
                raise self._died(worker) from None

    def collect(self, left: float, timeout: float) -> tuple[int, Any]:
        """Wait for a finished job: (job, batch).

        Parameters
        ----------
        left : float
            Seconds to wait.
        timeout : float
            Seconds that the user granted in all, for the message.

        Raises
        ------
        MXNetError (TimeoutError)
            If nothing is finished in time.
        MXNetError (RuntimeError)
            If a worker died.
        Exception
            Whatever the dataset raised, with the worker's traceback as its cause.
        """
        by_handle = {w.conn: w for w in self._workers}
        by_handle.update((w.process.sentinel, w) for w in self._workers)
        ready = connection.wait(list(by_handle), max(0.0, left))
        if not ready:
            raise self._late(timeout)
        # What a dead worker still sent counts.
        handle = next((h for h in ready if h in by_handle and not isinstance(h, int)), ready[0])
        worker = by_handle[handle]
        if isinstance(handle, int) and not worker.conn.poll():
            raise self._died(worker)
        try:
            job, failed, value = receive(worker.conn)
        except (EOFError, OSError) as e:
            if getattr(e, "errno", None) in _SCARCE:
                raise error(OSError, f"DataLoader: cannot take a batch from {worker}: {e}. {_LIMITS}") from e
            raise self._died(worker) from None
        worker.jobs.pop(job)
        if failed:
            raise _exception(value) from WorkerTraceback(value.text)
        self._dispatch()
        return job, value

    # -- what can go wrong -----------------------------------------------------------------------------------

    def _died(self, worker: _Worker) -> Exception:
        worker.process.join(1.0)
        code = worker.process.exitcode
        if code is None:
            how = "closed its connection"
        elif code >= 0:
            how = f"ended with exit code {code}"
        else:
            name = next((s.name for s in signal.Signals if s == -code), "?")
            how = f"was killed by signal {-code} ({name})"
        hint = ""
        if code == -9:
            hint = " Most often memory ran out: use fewer workers, smaller batches or a smaller prefetch."
        elif code == 1 and self._context.get_start_method() != "fork":
            hint = " A script that starts workers must do so below `if __name__ == '__main__':`."
        job = min(worker.jobs, default=None)
        doing = f" while making batch {job}" if job is not None else ""
        return error(RuntimeError, f"{worker} of {self._count} {how}{doing}.{hint}")

    def _late(self, timeout: float) -> Exception:
        now = time.monotonic()
        busy = [
            f"worker {w.number} (process {w.process.pid}) has worked on batch {min(w.jobs)} for "
            f"{now - w.jobs[min(w.jobs)]:.1f} s"
            for w in self._workers
            if w.jobs
        ]
        return error(
            TimeoutError,
            f"DataLoader: no batch within timeout={timeout:g} s; {'; '.join(busy)}. Raise timeout= if the "
            "samples take that long; num_workers=0 shows where the dataset hangs.",
        )

    def close(self) -> None:
        """End all workers. Doing it twice is harmless."""
        self._finish()

    def idle(self) -> bool:
        """Whether there is nothing left to do."""
        return not self._queue and not any(w.jobs for w in self._workers)


def _pickled(work: tuple[Any, ...], method: str) -> bytes:
    try:
        return pickle.dumps(work)
    except Exception as e:
        raise error(
            TypeError,
            f"DataLoader: workers started by {method!r} get the dataset and batchify_fn by pickle, which "
            f"fails: {e}. Use functions defined at the top of a module, or thread_pool=True.",
        ) from e


def _exception(failure: Failure) -> Any:
    if failure.pickled is not None:
        try:
            return pickle.loads(failure.pickled)
        except Exception:
            pass
    return error(RuntimeError, f"{failure.name} in a DataLoader worker, see above")
