"""Arrays from one context to another, in the order of the engine, and on the tape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numpy import ndarray

from ._core import tables, tape
from ._core.array import Array, Storage
from ._core.call import op_context
from ._core.context import Context
from ._core.engine import engine
from ._core.state import state
from ._core.stream import begin, ordered

__all__ = ["across", "across_each", "moved", "to_context"]


def across(device: Any, a: Any, source: int, dst: Any, index: int) -> None:
    """Copy from one index of a device to another: queues of their own wait for each other, the caller for neither."""
    _between(device, source, index, device.copy, a, dst)


def across_each(device: Any, arrays: Sequence[Any], source: int, outs: Sequence[Any], index: int) -> None:
    """Copy some arrays, of a device that has `copy_each`, as `across` copies one; queues wait for each other once."""
    _between(device, source, index, device.copy_each, arrays, outs)


def _between(device: Any, source: int, index: int, copy: Callable[[Any, Any], None], given: Any, places: Any) -> None:
    crosses = device.async_ and source != index
    if crosses:
        device.wait(index, device.record(source))
    if device.async_:
        device.activate(index)
    copy(given, places)
    if crosses:  # its memory may be written, or given to others, from then on
        device.wait(source, device.record(index))


def moved(a: Any, source: Context, ctx: Context) -> Any:
    """A copy of a value, dense or sparse, on another context; two types of device meet in the host's memory."""
    device, home = ctx.device, source.device
    if getattr(a, "stype", "default") != "default":
        source.activate()  # some parts are computed when they are asked for
        return a.with_parts(*(moved(part, source, ctx) for part in a.parts))
    if home is not device:
        return device.from_host(home.to_host(a), ctx.device_id)
    data = device.empty(tuple(a.shape), a.dtype, ctx.device_id)
    across(device, a, source.device_id, data, ctx.device_id)
    return data


def to_context(x: Array, ctx: Context) -> Array:
    """Copy an array to another context, in the order of the engine; recorded, so that gradients come back."""
    src, out_st = x._st, Storage(ctx)
    a, device, home = x._data, ctx.device, src.ctx.device
    op_context(ctx, state.train)
    if x.stype != "default":
        src.wait()
        out = x.__class__(moved(a, src.ctx, ctx), out_st)
    elif home is device:
        data = device.empty(tuple(a.shape), a.dtype, ctx.device_id)
        out = x.dense(data, out_st)
        ordered(ctx, across, (device, a, src.ctx.device_id, data, ctx.device_id), (src,), (out_st,), "copy")
    elif isinstance(a, ndarray) and device.transfers:
        data = device.empty(a.shape, a.dtype, ctx.device_id)
        out = x.dense(data, out_st)
        if begin((src,), ()):
            engine.it.push(ctx, lambda: device.send(a, data), (src,), (out_st,), "copy")
        else:
            engine.it.launched(ctx, device.send(a, data), (src,), (out_st,), "copy")
    elif home.transfers and not device.async_:
        data = device.empty(tuple(a.shape), a.dtype, ctx.device_id)
        out = x.dense(data, out_st)
        src.order()
        engine.it.launched(src.ctx, home.fetch(a, data), (src,), (out_st,), "copy")
    else:  # two types of device meet in the host's memory, on the user's word
        src.wait()
        out = x.dense(moved(a, src.ctx, ctx), out_st)
    if state.record and x._entry is not None:
        op = tables.roles.get("other context")
        tape.record(op, op.parse({"source": src.ctx}), (x,), (out,))
    return out
