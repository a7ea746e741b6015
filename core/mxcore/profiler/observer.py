"""Where calls are recorded: an observer of bound calls, and one of methods of arrays.

It costs nothing while it is off, and a clock and a tuple a call while it is on.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from .._core import context
from .._core.call import unwatch, watch
from .._core.errors import MXNetError
from .._workers import Latch, begin
from ..ndarray import watched
from .config import config
from .record import Label, now, recorder

__all__ = ["install", "uninstall"]

_sampler: _Sampler | None = None


def _where(ctx: Any) -> str:
    return f"{ctx.device_type}/{ctx.device_id}"


def _bytes(specs: Any) -> int:
    return sum(s.size * s.dtype.itemsize for s in specs if s.shape is not None and s.stype == "default")


def _finish(device: Any, index: int) -> Callable[[], None] | None:
    return partial(device.synchronize, index) if device.async_ else None


# ---- calls -------------------------------------------------------------------------------------------------------
def _record(fn: Any, name: str, ctx: Any, ins: Any, outs: Any, node: Any) -> Any:
    """The observer of bound calls: eager ones and those of programs, as `config` wants them."""
    if not config.wants("imperative" if node is None else "symbolic"):
        return fn
    if outs is None:
        return recorder.timed(fn, Label(name, "operator", _where(ctx), -1))
    args = {"node": node} if node is not None else {"shapes": _shapes(ins)} if ins else None
    label = Label(name, "operator", _where(ctx), _bytes(outs), args)
    if ctx.device.async_ and ctx.device.mark(ctx.device_id) is not None:
        return recorder.marked(fn, label, ctx)
    return recorder.timed(fn, label, _finish(ctx.device, ctx.device_id))


def _record_method(method: Any, name: str) -> Any:
    """The watcher of methods that wait, copy or differentiate: calls of the API."""
    label = Label(name, "api")

    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        t = now()
        try:
            return method(*args, **kwargs)
        finally:
            recorder.mark(label, t, now())

    return call


def _shapes(specs: Any) -> str:
    return ", ".join("?" if s.shape is None else "x".join(map(str, s.shape)) or "1" for s in specs)


# ---- memory ------------------------------------------------------------------------------------------------------
class _Sampler(threading.Thread):
    """Looks every 20 ms how much memory the process and each device in use hold."""

    def __init__(self) -> None:
        super().__init__(name="mxcore-profiler-memory", daemon=True)
        self._over, self._ended = Latch(), Latch()

    def run(self) -> None:
        recorder.thread_names[threading.get_ident()] = self.name  # the trace is written when it is gone
        try:
            while not self._over.wait(0.02) and _sampler is self:
                self._look()
        finally:
            self._ended.set()

    def _look(self) -> None:
        for where, n in _used():
            t = now()
            recorder.add((Label(f"Memory: {where}", "memory", where, kind="C").number, t, t, threading.get_ident(), n))

    def stop(self) -> None:
        """End, with a last look."""
        self._over.set()
        if self.is_alive():  # an interrupt may have come before
            # Not `join`, nor for ever: where a signal's handler calls this, who is interrupted may hold the lock of
            # `threading` that threads need to begin and to end.
            self._ended.wait(1)
        self._look()


def _used() -> list[tuple[str, int]]:
    found = []
    try:
        with open("/proc/self/statm") as f:
            found.append(("cpu/0", int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")))
    except (OSError, ValueError, AttributeError):
        pass  # another system: no curve of the process
    for ctx in list(context.INTERNED.values()):
        device = ctx._device
        if device is not None and device.async_:
            free, total = device.memory(ctx.device_id)
            found.append((_where(ctx), total - free))
    return found


# ---- all together ------------------------------------------------------------------------------------------------
def install() -> None:
    """Begin to record what `config` says, or go on with that; without room for a thread all is as before."""
    global _sampler
    on, recorder.on = recorder.on, True
    if not config.wants("memory"):
        _end_sampler()
    elif _sampler is None or not _sampler.is_alive():
        sampler = _sampler = _Sampler()
        try:
            begin(sampler, "profiler: the thread that looks at memory", "call set_config(profile_memory=False)")
        except MXNetError:
            _sampler, recorder.on = None, on
            raise
        sampler._look()
    _unwatch()  # what an interrupt has left, or other settings
    watch(_record)
    if config.wants("api"):
        watched.watch(_record_method)


def uninstall() -> None:
    """Put everything back; where an interrupt has ended it, the next time does the rest."""
    _unwatch()
    _end_sampler()
    recorder.on = False


def _unwatch() -> None:
    unwatch(_record)
    watched.unwatch(_record_method)


def _end_sampler() -> None:
    global _sampler
    sampler, _sampler = _sampler, None
    if sampler is not None:
        sampler.stop()
