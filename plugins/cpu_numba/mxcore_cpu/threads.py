"""How many threads compute: one place for Numba, BLAS and the engine's workers.

``count()`` is what a kernel called from this thread may use. The default is the number of cores this process
may run on (affinity and cgroup quota), or ``MXCORE_NUM_THREADS``, or ``OMP_NUM_THREADS``. ``limit(n)`` lowers
it for the calling thread: an engine that runs one worker per context enters ``limit(1)`` in each of them, and
then every kernel and every BLAS call takes exactly one core, so that independent contexts run side by side.
"""

from __future__ import annotations

import contextlib
import functools
import math
import operator
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from mxcore.plugin import at_fork, hold_at_fork

from . import blas, loading, waiting
from .locks import once, setup

__all__ = ["available_cores", "count", "limit", "maximum", "parallel", "patient", "setup", "share"]

_ENVIRONMENT = ("MXCORE_NUM_THREADS", "OMP_NUM_THREADS")


class _Local(threading.local):
    limit: int | None = None
    share = 0  # of an engine worker
    mask = 0  # what Numba was last told in this thread; 0: nothing yet


_local = _Local()
_launched = False  # a parallel kernel has run in this process
_forked = False  # … in the process that this one was forked from
_workqueue = threading.Lock()
#: What compiles for others, too, by module.
_COMPILERS = {"numba.core.compiler_lock": "global_compiler_lock", "llvmlite.binding.ffi": "lib._lock"}
_forking = contextlib.ExitStack()


def _before_fork() -> None:
    """Let other threads end what they compile: in a child nobody would, and it would wait for ever."""
    for module, lock in _COMPILERS.items():
        with contextlib.suppress(KeyError, AttributeError):  # not imported yet; a Numba with other insides
            _forking.enter_context(operator.attrgetter(lock)(sys.modules[module]))


def _in_child() -> None:
    global _forked, _launched, _workqueue
    _forked, _launched = _forked or _launched, False
    _workqueue = threading.Lock()
    maximum.cache_clear()


at_fork(before=_before_fork, after_in_parent=_forking.close, after_in_child=_forking.close)
at_fork(after_in_child=_in_child)
hold_at_fork(setup)  # the last comes first: who compiles holds it


def _cgroup_quota() -> float:
    """Return the CPU quota of this container in cores, infinity where there is none."""
    try:  # version 2
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return math.inf if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError):
        pass
    try:  # version 1
        folder = Path("/sys/fs/cgroup/cpu")
        quota_us = int((folder / "cpu.cfs_quota_us").read_text())
        return quota_us / int((folder / "cpu.cfs_period_us").read_text()) if quota_us > 0 else math.inf
    except (OSError, ValueError, ZeroDivisionError):
        return math.inf


def available_cores() -> int:
    """Return how many cores this process may use: its affinity mask, cut by its cgroup's quota."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS or Windows
        cores = os.cpu_count() or 1
    return max(1, min(cores, math.ceil(_cgroup_quota())) if math.isfinite(_cgroup_quota()) else cores)


@functools.cache
def maximum() -> int:
    """Return the number of compute threads of this process where no :func:`limit` holds."""
    for name in _ENVIRONMENT:
        first = os.environ.get(name, "").split(",")[0].strip()  # OpenMP allows one number per nesting level
        if first.isdigit() and int(first) > 0:
            return int(first)
    return available_cores()


def count() -> int:
    """Return how many threads a kernel called from this thread may use; 1 in a forked child."""
    if _forked:
        return 1
    n = _local.limit
    return maximum() if n is None else n


@contextlib.contextmanager
def limit(n: int) -> Iterator[None]:
    """Let kernels called from this thread use at most `n` threads, and BLAS too.

    Parameters
    ----------
    n : int
        At least 1. A limit inside a limit can only lower it.

    Notes
    -----
    Numba keeps a mask per thread. OpenBLAS has one count for the whole process, so while several limits hold
    the smallest one rules BLAS everywhere; its own count comes back when the last limit is left.

    Examples
    --------
    >>> with limit(1):
    ...     count()
    1
    """
    saved = _local.limit
    n = max(1, min(n, count()))
    _local.limit = n
    blas.hold(n)
    try:
        yield
    finally:
        blas.release(n)
        _local.limit = saved


_workers: set[int] = set()


def share(index: int) -> None:
    """Take this context's share of the cores for the calling thread, a worker of an engine, for as long as it lives.

    Parameters
    ----------
    index : int
        Of the context; each that ever computed on a worker counts.
    """
    if index not in _workers:
        _workers.add(index)
    n = max(1, maximum() // max(2, len(_workers)))
    if _local.share != n:
        if _local.share:
            blas.release(_local.share)
        blas.hold(n)
        _local.share = _local.limit = n


class _Parallel:
    """Right to run one parallel kernel; entering gives False where the serial twin must run instead."""

    __slots__ = ("workers", "locked")

    def __init__(self, workers: int) -> None:
        self.workers, self.locked = workers, False

    def __enter__(self) -> bool:
        if _forked:
            return False
        n = self.workers
        if not _launched:
            _launch()
        if _own_driver():
            return True
        if not loading.available():  # code of the last process runs without
            return False
        if n != _local.mask:
            from numba import config, set_num_threads

            set_num_threads(min(n, config.NUMBA_NUM_THREADS))
            _local.mask = n
        if _layer() == "workqueue":
            self.locked = _workqueue.acquire(blocking=False)
            return self.locked
        return True

    def __exit__(self, *exc: object) -> None:
        if self.locked:
            _workqueue.release()


parallel = _Parallel


@contextlib.contextmanager
def patient() -> Iterator[None]:
    """A with-block in which GNU OpenMP may be loaded, whoever brings it first.

    Its threads spin for milliseconds at the end of a parallel region, unless the environment says otherwise while it is
    loaded; see :mod:`mxcore_cpu.waiting`.
    """
    with setup:
        ours = not {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & set(os.environ)
        try:
            if ours:
                spins = waiting.spins(maximum())
                os.environ["GOMP_SPINCOUNT"] = spins if spins != waiting.LONG or waiting.begin() else waiting.SHORT
            yield
        finally:
            if ours:
                os.environ.pop("GOMP_SPINCOUNT", None)


@once
def _launch() -> None:
    """Load the threads that compute, our driver's or Numba's, once a process."""
    global _launched
    with patient():
        if not _own_driver() and loading.available():
            from numba import get_num_threads

            get_num_threads()
        _launched = True


@functools.cache
def _own_driver() -> bool:
    """Whether kernels are dealt to threads without Numba; asking loads those threads' library."""
    from .native import driver

    return driver.usable()


@functools.cache
def _layer() -> str:
    from numba import threading_layer

    return str(threading_layer())
