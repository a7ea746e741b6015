"""Start, stop and write: the functions of ``mx.profiler``."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import threading
import warnings
from collections.abc import Iterator
from typing import Any

from .._forks import hold_at_fork
from .._workers import Latch, begin
from ..base import MXNetError, MXNetWarning, error
from ..ndarray import waitall
from . import observer
from .config import config
from .record import now, recorder
from .tables import as_json, as_table
from .trace import write_trace

__all__ = [
    "autostart",
    "dump",
    "dump_profile",
    "dumps",
    "pause",
    "profiler_set_config",
    "profiler_set_state",
    "resume",
    "set_config",
    "set_kvstore_handle",
    "set_state",
    "start",
    "state",
    "stop",
]

#: What the KVStore of a distributed job registers, to profile its servers.
profiler_kvstore_handle: Any = ctypes.c_void_p()
_lock = threading.RLock()
hold_at_fork(_lock)
_state = {"run": False, "paused": False}
#: Ends the thread that writes the trace while the profiler runs.
_over = [Latch()]


def set_kvstore_handle(handle: Any) -> None:
    """Take the KVStore through which `profile_process='server'` reaches the servers."""
    global profiler_kvstore_handle
    profiler_kvstore_handle = handle


def _process(profile_process: str, command: str, *args: Any) -> bool:
    """Whether a command is for this process; one for servers is handed to the KVStore."""
    if profile_process == "worker":
        return True
    if profile_process != "server":
        raise error(ValueError, f"profiler: profile_process must be 'worker' or 'server', not {profile_process!r}")
    send = getattr(profiler_kvstore_handle, "profile_servers", None)
    if send is None:
        raise error(
            RuntimeError,
            f"profiler.{command}: profile_process='server' needs a distributed KVStore that can profile its servers; "
            "make it first, or leave the argument out to profile this process",
        )
    send(command, *args)
    return False


def set_config(**kwargs: Any) -> None:
    """Say what to record; while the profiler runs, from now on.

    Parameters
    ----------
    filename : str
        Path or URL of the trace (``profile.json``).
    profile_all : bool
        Record everything (False).
    profile_symbolic : bool
        Operators in programs: executors and hybridised blocks (True).
    profile_imperative : bool
        Operators called on arrays (True).
    profile_memory : bool
        Memory of the process and of devices (True).
    profile_api : bool
        Calls that wait, copy or differentiate: ``asnumpy``, ``wait_to_read``, ``backward`` (True).
    continuous_dump : bool
        Write the trace again and again while the profiler runs (False).
    dump_period : float
        Seconds from write to write (1).
    aggregate_stats : bool
        For MXNet's sake: `dumps` always has its tables.
    gpu_memory_profile_filename_prefix : str
        For MXNet's sake: the memory of devices is in the trace.
    profile_process : str
        'worker' or 'server'.

    Raises
    ------
    MXNetError
        (also ValueError) for a setting that there is not, or a wrong value, (also RuntimeError) if a thread that it
        needs cannot be started; nothing is changed then.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.profiler.set_config(profile_all=True, filename="profile.json")
    """
    if not _process(kwargs.pop("profile_process", "worker"), "set_config", kwargs):
        return
    with _lock, _or_as_before():
        config.check(kwargs)
        often = config.continuous_dump
        if recorder.on:
            waitall()
        config.set(kwargs)
        if _state["run"] and config.continuous_dump and not often:
            _write_often()
        if recorder.on:
            observer.install()
        if not config.continuous_dump:
            _over[0].set()


def set_state(state: str = "stop", profile_process: str = "worker") -> None:
    """Start the profiler (``'run'``) or stop it (``'stop'``); what is pending is computed first.

    Raises
    ------
    MXNetError
        (also ValueError) for another state, (also RuntimeError) if a thread that it needs cannot be started; it goes on
        as before then.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.profiler.set_state("run")
    >>> x = mx.nd.relu(mx.nd.ones((2, 2)))
    >>> mx.profiler.set_state("stop")
    >>> "relu" in mx.profiler.dumps(reset=True)
    True
    """
    if state not in ("run", "stop"):
        raise error(ValueError, f"profiler.set_state: state must be 'run' or 'stop', not {state!r}")
    if not _process(profile_process, "set_state", state):
        return
    with _lock:
        run = state == "run"
        if run == _state["run"] and recorder.on == (run and not _state["paused"]):
            return
        waitall()
        with _or_as_before():
            _state.update(run=run, paused=False)
            if run and config.continuous_dump:
                _write_often()
            _switch()
            if not run:
                _over[0].set()


@contextlib.contextmanager
def _or_as_before() -> Iterator[None]:
    """Where there is no room for a thread, leave state and settings as they were, so that all can be asked for again.

    What Ctrl-C leaves, and what cannot be switched off, the next call mends.
    """
    state, settings = _state.copy(), vars(config).copy()
    try:
        yield
    except MXNetError:
        vars(config).update(settings)
        if _state["run"] and not _state["paused"]:
            _state.update(state)
        raise


def _switch() -> None:
    """Exchange functions or put them back, as the state wants."""
    wanted = _state["run"] and not _state["paused"]
    if wanted and not recorder.on:
        if not recorder.events:
            recorder.base = now()
        observer.install()
    elif not wanted and recorder.on:
        observer.uninstall()


def state() -> str:
    """``'run'`` or ``'stop'``.

    >>> import mxcore as mx
    >>> mx.profiler.state()
    'stop'
    """
    return "run" if _state["run"] else "stop"


def start() -> None:
    """Same as ``set_state('run')``."""
    set_state("run")


def stop() -> None:
    """Same as ``set_state('stop')``."""
    set_state("stop")


def pause(profile_process: str = "worker") -> None:
    """Record nothing until `resume`; without effect while the profiler is stopped.

    Raises
    ------
    MXNetError
        (also ValueError or RuntimeError) if `profile_process` is unknown, or ``'server'`` without a distributed
        KVStore.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.profiler.set_state("run")
    >>> mx.profiler.pause()
    >>> x = mx.nd.tanh(mx.nd.ones((2, 2)))
    >>> mx.profiler.resume()
    >>> mx.profiler.set_state("stop")
    >>> "tanh" in mx.profiler.dumps(reset=True)
    False
    """
    _hold(profile_process, "pause", True)


def resume(profile_process: str = "worker") -> None:
    """Go on after `pause`, which see."""
    _hold(profile_process, "resume", False)


def _hold(profile_process: str, command: str, paused: bool) -> None:
    if _process(profile_process, command):
        with _lock:
            if _state["run"] and _state["paused"] != paused:
                waitall()
                with _or_as_before():
                    _state["paused"] = paused
                    _switch()


def dump(finished: bool = True, profile_process: str = "worker") -> None:
    """Write the trace to the file of `set_config`; open it in Perfetto or chrome://tracing.

    Parameters
    ----------
    finished : bool
        Stop the profiler and forget the events, once they are written.
    profile_process : str

    Raises
    ------
    MXNetError
        (also the matching OSError) if the file cannot be written; the events are kept then.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.profiler.set_config(filename="memory://doc/profile.json")
    >>> mx.profiler.dump()
    >>> mx.profiler.set_config(filename="profile.json")
    """
    if not _process(profile_process, "dump", finished):
        return
    with _lock:
        if recorder.on:
            waitall()
        if finished:
            set_state("stop")
        write_trace(recorder, config.filename)
        if finished:
            recorder.clear()


def dumps(reset: bool = False, format: str = "table", sort_by: str = "total", ascending: bool = False) -> str:
    """Tables of all names: how often, and total, shortest, longest and mean time; for memory the bytes.

    Parameters
    ----------
    reset : bool
        Forget the events then.
    format : {'table', 'json'}
    sort_by : {'total', 'avg', 'min', 'max', 'count'}
    ascending : bool

    Returns
    -------
    str

    Raises
    ------
    MXNetError
        (also ValueError) for another format or order.

    Examples
    --------
    >>> import mxcore as mx
    >>> print(mx.profiler.dumps(reset=True).splitlines()[1])
    Profile Statistics:
    """
    if format not in ("table", "json"):
        raise error(ValueError, f"profiler.dumps: format must be 'table' or 'json', not {format!r}")
    for name, value in (("reset", reset), ("ascending", ascending)):
        if value not in (True, False):
            raise error(ValueError, f"profiler.dumps: {name} must be True or False, not {value!r}")
    with _lock:
        if recorder.on:
            waitall()
        text = (as_table if format == "table" else as_json)(recorder, sort_by, ascending)
        if reset:
            recorder.clear()
    return text


# ---- files while it runs -------------------------------------------------------------------------------------------
def _write_often() -> None:
    """Write the trace every `dump_period` seconds until the profiler stops."""

    def write() -> None:
        failed = False
        while not over.wait(config.dump_period):
            with _lock:  # what `dump` has written stays
                if over.is_set() or not (_state["run"] and config.continuous_dump):
                    return
                try:
                    write_trace(recorder, config.filename)
                    failed = False
                except MXNetError as e:
                    if not failed:
                        warnings.warn(f"profiler: {e}; it is tried again", MXNetWarning, stacklevel=1)
                    failed = True

    over = Latch()
    thread = threading.Thread(target=write, name="mxcore-profiler-dump", daemon=True)
    begin(thread, "profiler: the thread that writes the trace", "call set_config(continuous_dump=False)")
    _over[0].set()
    _over[0] = over


# ---- old names -----------------------------------------------------------------------------------------------------
def profiler_set_config(mode: str = "symbolic", filename: str = "profile.json") -> None:
    """Old name of `set_config`: `mode` is ``'symbolic'`` or ``'all'``."""
    warnings.warn("profiler_set_config is old; call profiler.set_config", DeprecationWarning, stacklevel=2)
    if mode not in ("symbolic", "all"):
        raise error(ValueError, f"profiler_set_config: mode must be 'symbolic' or 'all', not {mode!r}")
    more = mode == "all"
    set_config(
        filename=filename,
        profile_all=more,
        profile_symbolic=True,
        profile_imperative=more,
        profile_api=more,
        profile_memory=more,
    )


def profiler_set_state(state: str = "stop") -> None:
    """Old name of `set_state`."""
    warnings.warn("profiler_set_state is old; call profiler.set_state", DeprecationWarning, stacklevel=2)
    set_state(state)


def dump_profile() -> None:
    """Old name of `dump`."""
    warnings.warn("dump_profile is old; call profiler.dump", DeprecationWarning, stacklevel=2)
    dump(True)


def autostart() -> None:
    """Start if the environment says ``MXNET_PROFILER_AUTOSTART=1``, and write the trace when the process ends.

    ``MXNET_PROFILER_MODE=0`` records programs only, anything else everything.
    """
    if os.environ.get("MXNET_PROFILER_AUTOSTART", "0") in ("", "0") or _state["run"]:
        return
    if os.environ.get("MXNET_PROFILER_MODE", "1") == "0":
        set_config(profile_imperative=False, profile_api=False, profile_memory=False)
    set_state("run")
    atexit.register(_at_exit)


def _at_exit() -> None:
    if _state["run"]:
        dump(True)
