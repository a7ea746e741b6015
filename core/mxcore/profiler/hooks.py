"""Where calls are recorded: functions are exchanged when the profiler starts and put back when it stops.

So it costs nothing while it is off, and a clock and a tuple a call while it is on.
"""
from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

from .._core import context, dispatch, registry
from ..executor import instance
from ..ndarray import NDArray, operators
from .config import config
from .record import Label, now, recorder

__all__ = ["install", "uninstall"]

_make_plan, _learn = dispatch.make_plan, operators._learn
#: Methods that wait or copy, recorded as calls of the API.
_API = ("asnumpy", "backward", "wait_to_read")
_methods: dict[str, Any] = {}
_sampler: _Sampler | None = None
#: Instance -> the recorded calls of its parts, as they were made last.
_made: weakref.WeakKeyDictionary[Any, list[list[Any]]] = weakref.WeakKeyDictionary()


def _where(ctx: Any) -> str:
    return f"{ctx.device_type}/{ctx.device_id}"


def _bytes(specs: Any) -> int:
    return sum(s.size * s.dtype.itemsize for s in specs if s.shape is not None and s.stype == "default")


def _finish(device: Any, index: int) -> Callable[[], None] | None:
    return partial(device.synchronize, index) if device.async_ else None


# ---- eager calls -------------------------------------------------------------------------------------------------
def _planned(op: Any, p: Any, device: Any, ins: Any) -> Any:
    """A plan whose kernel is recorded. Devices of one type share plans, so events bear the number of the first."""
    plan = _make_plan(op, p, device, ins)
    label = Label(op.name, "operator", f"{device.type}/0", _bytes(plan.specs), {"shapes": _shapes(ins)} if ins else None)
    plan.fn = recorder.timed(plan.fn, label, _finish(device, 0))
    return plan


def _shapes(specs: Any) -> str:
    return ", ".join("?" if s.shape is None else "x".join(map(str, s.shape)) or "1" for s in specs)


def _learnt(ctx: Any, op: Any, dtype: Any, p: Any, plan_fn: Any, two: bool) -> None:
    """The short way of arithmetic, recorded."""
    key = op.name, dtype
    if key not in ctx.fast:
        _learn(ctx, op, dtype, p, getattr(plan_fn, "profiled", plan_fn), two)
        _shorten(ctx, key)


def _shorten(ctx: Any, key: Any) -> None:
    entry = ctx.fast.get(key)
    if entry is not None and not hasattr(entry[0], "profiled"):
        entry[0] = recorder.timed(entry[0], Label(entry[1].name, "operator", _where(ctx), -1))


# ---- programs ----------------------------------------------------------------------------------------------------
def _program_calls(inst: Any, part: int) -> list[Callable[[], Any]]:
    """The calls of a part, each recorded under its operator, with the name of its node."""
    steps, found = inst.program.steps, []
    before = _made.setdefault(inst, [[], []])
    known = before[part] if len(before[part]) == len(inst._where[part]) else [None] * len(inst._where[part])
    for call, t, old in zip(inst._parts[part], inst._where[part], known):
        if old is call or getattr(old, "profiled", None) is call:
            found.append(old)
            continue
        step = steps[t]
        device, index = step.ctx.device, step.ctx.device_id
        if getattr(call, "func", None) == device.activate:
            found.append(call)
            continue
        if step.op is None:
            label = Label("copy to output", "operator", _where(step.ctx))
        else:
            label = Label(step.op.name, "operator", _where(step.ctx), _bytes(step.plan.specs), {"node": step.node.name})
        found.append(recorder.timed(call, label, _finish(device, index)))
    before[part] = found
    return found


# ---- memory ------------------------------------------------------------------------------------------------------
class _Sampler(threading.Thread):
    """Looks every 20 ms how much memory the process and each device in use hold."""

    def __init__(self) -> None:
        super().__init__(name="mxcore-profiler-memory", daemon=True)
        self._over = threading.Event()
        self._look()
        self.start()

    def run(self) -> None:
        recorder.thread_names[threading.get_ident()] = self.name  # the trace is written when it is gone
        while not self._over.wait(0.02):
            self._look()

    def _look(self) -> None:
        for where, n in _used():
            t = now()
            recorder.add((Label(f"Memory: {where}", "memory", where, kind="C").number, t, t, threading.get_ident(), n))

    def stop(self) -> None:
        """End, with a last look."""
        self._over.set()
        self.join()
        self._look()


def _used() -> list[tuple[str, int]]:
    found = []
    try:
        with open("/proc/self/statm") as f:
            found.append(("cpu/0", int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")))
    except (OSError, ValueError, AttributeError):
        pass  # another system: no curve of the process
    for ctx in list(context._INTERNED.values()):
        device = ctx._device
        if device is not None and device.async_:
            free, total = device.memory(ctx.device_id)
            found.append((_where(ctx), total - free))
    return found


# ---- all together ------------------------------------------------------------------------------------------------
def install() -> None:
    """Begin to record, what `config` says."""
    global _sampler
    recorder.on = True
    if config.wants("imperative"):
        dispatch.make_plan = _planned
        operators._learn = _learnt
        for ctx in list(context._INTERNED.values()):
            for key in list(ctx.fast):
                _shorten(ctx, key)
        _forget_plans()
    if config.wants("symbolic"):
        instance.on_run = _program_calls
    if config.wants("api"):
        for name in _API:
            _methods[name] = NDArray.__dict__.get(name)
            setattr(NDArray, name, _recorded(getattr(NDArray, name), Label(name, "api")))
    if config.wants("memory"):
        _sampler = _Sampler()


def uninstall() -> None:
    """Put everything back."""
    global _sampler
    recorder.on = False
    if _sampler is not None:
        _sampler.stop()
        _sampler = None
    if dispatch.make_plan is _planned:
        dispatch.make_plan, operators._learn = _make_plan, _learn
        for ctx in list(context._INTERNED.values()):
            for entry in list(ctx.fast.values()):
                entry[0] = getattr(entry[0], "profiled", entry[0])
        _forget_plans()
    instance.on_run = None
    _made.clear()
    for name, old in _methods.items():
        if old is None:
            delattr(NDArray, name)
        else:
            setattr(NDArray, name, old)
    _methods.clear()


def _recorded(method: Any, label: Label) -> Any:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        t = now()
        try:
            return method(self, *args, **kwargs)
        finally:
            recorder.mark(label, t, now())

    call.__name__, call.__doc__ = method.__name__, method.__doc__
    return call


def _forget_plans() -> None:
    for op in set(registry.ops.items.values()):
        op.plans.clear()
