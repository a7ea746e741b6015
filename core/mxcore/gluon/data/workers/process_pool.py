"""Worker processes of the data loader."""

from __future__ import annotations

import errno
import multiprocessing
import os
import pickle
import shutil
import signal
import sys
import time
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from multiprocessing import connection
from typing import TYPE_CHECKING, Any

import numpy as np

from ...._forks import at_fork
from ...._interrupts import Uninterrupted, let_through, suppress
from ...._locks import fork_safe_lock
from ...._scopes import modes
from ....base import MXNetError, error
from . import loop
from .transport import pack, receive, send, temporary_folder

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

    from ..dataset import Dataset
    from .loop import Failure

__all__ = ["ProcessPool", "WorkerTraceback"]

#: Jobs that a worker may have at a time; more wait in the loader. See `transport.INLINE`.
_MOST_JOBS = 8

#: What fails for want of descriptors, memory or room here, not because a worker is gone.
_SCARCE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC})

#: Seconds after which who waits for a worker's end looks whether the user has pressed Ctrl-C.
_GLANCE = 0.05

_LIMITS = "Use fewer workers, or raise the limits of the process (ulimit -n, ulimit -u)."


#: Held while connections are made and closed: a worker that is forked in the midst of it would hold, or close, those
#: of others.
_starting = fork_safe_lock()

#: All workers of this process.
_workers: weakref.WeakSet[_Worker] = weakref.WeakSet()


def _disown() -> None:
    """Let a fork have nothing to do with the workers of its parent."""
    for worker in [*_workers]:
        # As long as the loader's end is open anywhere, a worker does not notice that its loader is gone.
        with suppress(OSError):
            worker.conn.close()
        # Else they are taken for the fork's own, and terminated when it ends; a child of `multiprocessing` does so too.
        multiprocessing.process._children.discard(worker.process)  # type: ignore[attr-defined]
    _workers.clear()


at_fork(after_in_child=_disown)


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
        #: Whether it has ever done a job.
        self.answered = False
        #: When each was given to it.
        self.jobs: dict[int, float] = {}

    def __str__(self) -> str:
        return f"DataLoader worker {self.number} (process {self.process.pid})"

    def end(self) -> None:
        """Close the connection; an idle worker leaves by itself, a busy one is stopped."""
        with _starting, suppress(OSError):
            _workers.discard(self)
            self.conn.close()
        if self.jobs:
            self.process.terminate()

    def reap(self, region: Uninterrupted) -> None:
        """Wait for the end, which comes one way or another, and soon if the user does not want to wait."""
        self._wait(1.0, region)
        for stop in (self.process.terminate, self.process.kill):
            if self.process.exitcode is None:
                stop()
                self._wait(2.0, region)
        if self.process.exitcode is None:
            self.process.join(1.0)  # it was killed
        with suppress(ValueError):
            self.process.close()

    def _wait(self, seconds: float, region: Uninterrupted) -> None:
        end = time.monotonic() + seconds
        while self.process.exitcode is None and not region.came and (left := end - time.monotonic()) > 0:
            self.process.join(min(left, _GLANCE))


def _close(workers: list[_Worker], bell: list[Connection], folder: str, owner: int) -> None:
    """End workers; only in the process that started them, not in a fork of it."""
    if os.getpid() != owner:
        return
    with Uninterrupted() as region:  # it is done once: nobody would come back for the rest
        for w in workers:
            w.end()
        for w in workers:
            w.reap(region)
        workers.clear()
        for end in bell:
            end.close()
        if folder:
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
    MXNetError (RuntimeError)
        In a worker process, which can have none of its own.
    MXNetError (TypeError)
        If the processes cannot be forked and the dataset cannot be pickled.
    """

    def __init__(self, count: int, dataset: Dataset, batchify: Callable[..., Any]) -> None:
        self.owner = os.getpid()
        #: What shapes and arrays mean in its processes, as in the thread that makes it.
        self.modes = modes()
        if multiprocessing.current_process().daemon:
            raise error(
                RuntimeError,
                "DataLoader: a worker process cannot start workers of its own; give the loader that is used there "
                "num_workers=0, or thread_pool=True",
            )
        method = _start_method()
        self._context: Any = multiprocessing.get_context(method)
        work: Any = (dataset, batchify, self.modes)
        if method != "fork":
            work = _pickled(work, method)
        self._folder = temporary_folder()
        self._queue: deque[tuple[int, int, Sequence[Any]]] = deque()
        self._workers: list[_Worker] = []
        #: Both ends of what `collect` hears beside the workers: the end that it waits for, and that of `interrupt`.
        self._bell: list[Connection] = []
        self._count = count
        # Runs at the latest when the interpreter ends.
        self._finish = weakref.finalize(self, _close, self._workers, self._bell, self._folder, self.owner)
        try:
            with _starting, Uninterrupted():
                self._bell += self._context.Pipe(duplex=False)
            for number in range(count):
                self._start(_Worker(number), work)
        except OSError as e:
            started = len(self._workers)
            self.close()
            raise error(OSError, f"DataLoader: cannot start worker {started} of {count}: {e}. {_LIMITS}") from e
        except BaseException:
            self.close()
            raise

    def _start(self, worker: _Worker, work: tuple[Any, ...] | bytes) -> None:
        with _starting, warnings.catch_warnings(), Uninterrupted():
            # Python warns of threads at a fork. The library's own are quiet then; the child touches no
            # others.
            warnings.simplefilter("ignore", DeprecationWarning)
            worker.conn, theirs = self._context.Pipe(duplex=True)
            worker.process = self._context.Process(
                target=loop.run,
                daemon=True,
                name=f"DataLoader-{worker.number}",
                args=(theirs, worker.number, self.owner, self._folder, work),
            )
            _workers.add(worker)
            worker.process.start()
            self._workers.append(worker)
            theirs.close()

    # -- jobs ------------------------------------------------------------------------------------------------

    def submit(self, job: int, seed: int, indices: Sequence[Any]) -> None:
        """Give a job to whoever has the least to do."""
        plan: Any = indices
        kinds = {*map(type, indices)}
        if len(kinds) == 1 and issubclass(kinds.pop(), np.integer):
            plan = np.array(indices)  # which gives them back, and takes a tenth of their room in a pickle
        self._queue.append((job, seed, plan))
        self._dispatch()

    def _dispatch(self) -> None:
        while self._queue:
            worker = min(self._workers, key=lambda w: len(w.jobs))
            if len(worker.jobs) >= _MOST_JOBS:
                return
            job, seed, indices = self._queue.popleft()
            worker.jobs[job] = time.monotonic()
            try:
                send(worker.conn, (job, seed), pack(indices), self._folder, f"the list of samples for {worker}")
            except OSError as e:
                let_through(e)
                if isinstance(e, MXNetError):  # nothing was given to it
                    del worker.jobs[job]
                    raise
                raise self._lost(worker, "give a job to", e) from e

    def collect(self, left: float, timeout: float) -> tuple[int, bool, Any]:
        """Wait for a finished job: (job, whether it failed, batch or exception).

        The exception is what the dataset raised, with the worker's traceback as its cause.

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
        """
        by_handle = {w.conn: w for w in self._workers}
        by_handle.update((w.process.sentinel, w) for w in self._workers)
        listener, _ = self._bell
        ready = connection.wait([listener, *by_handle], max(0.0, left))
        if listener in ready:
            raise error(RuntimeError, "DataLoader: the iterator was closed")
        if not ready:
            raise self._late(timeout)
        # What a dead worker still sent counts.
        handle = next((h for h in ready if h in by_handle and not isinstance(h, int)), ready[0])
        worker = by_handle[handle]
        if isinstance(handle, int) and not worker.conn.poll():
            raise self._died(worker)
        try:
            (job, failed), value = receive(worker.conn)
        except (EOFError, OSError) as e:
            let_through(e)
            raise self._lost(worker, "take a batch from", e) from e
        worker.answered = True
        worker.jobs.pop(job)
        self._dispatch()
        return job, failed, _exception(value) if failed else value

    # -- what can go wrong -----------------------------------------------------------------------------------

    def _lost(self, worker: _Worker, doing: str, e: EOFError | OSError) -> Exception:
        """For want of what the system has to give, or because the worker is gone."""
        if getattr(e, "errno", None) in _SCARCE:
            return error(OSError, f"DataLoader: cannot {doing} {worker}: {e}. {_LIMITS}")
        return self._died(worker)

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
        elif code == 1 and not worker.answered and self._context.get_start_method() != "fork":
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

    def interrupt(self) -> None:
        """Let `collect` fail, also in a thread that waits in it. Any thread may call this."""
        with suppress(ValueError, OSError):  # closed meanwhile
            _, ringer = self._bell
            ringer.send_bytes(b"")

    def close(self) -> None:
        """End all workers. Doing it twice is harmless."""
        with Uninterrupted():
            self._finish()

    @property
    def alive(self) -> bool:
        """Whether it has workers: not once it was closed, or the process has begun to end."""
        return self._finish.alive

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
    found: Any = None
    if failure.pickled is not None:
        with suppress(Exception):
            found = pickle.loads(failure.pickled)
    if not isinstance(found, BaseException):
        found = error(RuntimeError, f"{failure.name} in a DataLoader worker, see above")
    found.__cause__ = WorkerTraceback(failure.text)
    return found
