"""What is recorded: one flat list of plain tuples, filled by many threads."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from time import perf_counter_ns as now
from typing import Any

from .._core.errors import in_a_line, warn

__all__ = ["Label", "LIMIT", "Recorder", "now", "recorder"]

#: Events kept; of more the oldest go.
LIMIT = 1_000_000


class Label:
    """What all calls of one thing have in common.

    Parameters
    ----------
    name : str
    section : str
        Which table it is counted in: ``'operator'``, ``'api'``, the name of a domain.
    where : str
        The device, ``'cpu/0'``, or ``'python'``.
    bytes : int
        Memory of the outputs; -1 for arithmetic on small arrays, of which it is not known.
    args : dict, optional
        Shown with the event.
    kind : str
        ``'X'`` for a duration, ``'C'`` for a counter, ``'i'`` for a mark.
    """

    __slots__ = ("name", "section", "where", "bytes", "args", "kind", "number")
    #: All labels by their number. Events hold numbers: tuples of plain values are no burden to the garbage collector.
    known: dict[Any, Label] = {}
    by_number: list[Label] = []
    number: int

    def __new__(
        cls,
        name: str,
        section: str,
        where: str = "python",
        bytes: int = 0,
        args: dict[str, Any] | None = None,
        kind: str = "X",
    ) -> Label:
        key = (name, section, where, bytes, kind, *sorted((args or {}).items()))
        self = cls.known.get(key)
        if self is None:
            self = cls.known[key] = object.__new__(cls)
            self.number = len(cls.by_number)
            cls.by_number.append(self)
        return self

    def __init__(
        self,
        name: str,
        section: str,
        where: str = "python",
        bytes: int = 0,
        args: dict[str, Any] | None = None,
        kind: str = "X",
    ) -> None:
        self.name, self.section, self.where, self.bytes, self.args, self.kind = name, section, where, bytes, args, kind


class Recorder:
    """The events: tuples of (number of the label, begin, end, thread) and of some a value; times in nanoseconds.

    Attributes
    ----------
    on : bool
        Whether the profiler runs and is not paused.
    """

    def __init__(self) -> None:
        self.events: deque[Any] = deque(maxlen=LIMIT)
        #: (type of device, index) -> a mark, its time here, the device.
        self._clocks: dict[tuple[str, int], tuple[Any, int, Any]] = {}
        self.add = self.events.append
        self.on = False
        self.base = now()
        self.thread_names: dict[int, str] = {}
        self.pid = os.getpid()

    def clear(self) -> None:
        """Forget all events, and the clocks of devices, which may be gone."""
        self.events.clear()
        self._clocks.clear()

    def mark(self, label: Label | tuple[Any, ...], begin: int, end: int, value: Any = None) -> None:
        """Record what is not a timed call, if the profiler is on; instead of a label, its arguments will do."""
        if self.on:
            label = label if isinstance(label, Label) else Label(*label)
            self.add((label.number, begin, end, threading.get_ident(), value))

    def timed(
        self, fn: Callable[..., Any], label: Label, finish: Callable[[], None] | None = None
    ) -> Callable[..., Any]:
        """`fn` with its calls recorded; `finish` waits for a device that computes by itself."""
        add, ident, number = self.add, threading.get_ident, label.number

        if label.bytes < 0:  # arithmetic of two small values: every nanosecond shows, and their memory does not

            def call(a: Any, b: Any) -> Any:
                t = now()
                r = fn(a, b)
                add((number, t, now(), ident()))
                return r
        elif finish is None:

            def call(*args: Any) -> Any:  # type: ignore[misc]  # of more arguments
                t = now()
                r = fn(*args)
                add((number, t, now(), ident()))
                return r
        else:

            def call(*args: Any) -> Any:  # type: ignore[misc]  # of more arguments
                t = now()
                r = fn(*args)
                finish()
                add((number, t, now(), ident()))
                return r

        call.profiled = fn  # type: ignore[attr-defined]
        return call

    def marked(self, fn: Callable[..., Any], label: Label, ctx: Any) -> Callable[..., Any]:
        """`fn` with the time its device takes for what it launches, by marks that are read later; nobody waits."""
        device, add, ident, number = ctx.device, self.add, threading.get_ident, label.number

        def call(*args: Any) -> Any:
            index = getattr(getattr(args[0], "ctx", ctx), "device_id", 0) if args else ctx.device_id
            clock = self._clock(device, index)  # before the first mark, so that no time lies before it
            begin = device.mark(index)
            r = fn(*args)
            add((number, (clock, begin), (clock, device.mark(index)), ident()))
            return r

        call.profiled = fn  # type: ignore[attr-defined]
        return call

    def _clock(self, device: Any, index: int) -> tuple[Any, int, Any]:
        """A mark of a device whose time is known here, and the device."""
        found = self._clocks.get((device.type, index))
        if found is None:
            device.synchronize(index)
            mark, t = device.mark(index), now()
            found = self._clocks[device.type, index] = mark, t, device
        return found

    def snapshot(self) -> list[Any]:
        """The events so far, and the names of the threads that are alive."""
        for t in threading.enumerate():
            if t.ident is not None:
                self.thread_names[t.ident] = t.name
        while True:
            try:
                events = list(self.events)
                break
            except RuntimeError:  # another thread recorded meanwhile
                continue
        found: list[Any] = []
        failed: Exception | None = None
        for (_, index), (_, _, device) in [*self._clocks.items()]:
            try:
                device.synchronize(index)  # marks can be read once they are reached
            except Exception as problem:
                failed = problem
        for e in events:
            try:
                begin, end = _time(e[1]), _time(e[2])
            except Exception as problem:  # of a device's plugin: the others' events are right
                failed = problem
                continue
            found.append((Label.by_number[e[0]], begin, end, e[3], e[4] if len(e) > 4 else None))
        if failed is not None:
            warn(f"profiler: events are left out whose device cannot tell their times: {in_a_line(failed)}")
        return found


def _time(t: Any) -> int:
    """A time of an event in nanoseconds, also one that a device knows."""
    if isinstance(t, int):
        return t
    (mark, base, device), there = t
    return int(base) + int(device.elapsed(mark, there) * 1e9)


recorder = Recorder()
