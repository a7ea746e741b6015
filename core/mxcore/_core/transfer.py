"""Values from array to array: writing, copying between contexts, and who may be written to."""
from __future__ import annotations

from typing import Any

from . import dispatch, registry, tape  # circular, used at call time only
from .array import Array, Storage, faces
from .context import Context
from .engine import engine
from .errors import error
from .state import state

__all__ = ["assign", "guard_write", "store", "to_context", "wrap"]


def guard_write(x: Array, what: str) -> None:
    """Refuse to write to an array of the graph while recording, as MXNet does."""
    if state.record and x._entry is not None and tape.differentiable(x._entry):
        raise error(RuntimeError, f"{what}: inplace operations (+=, -=, x[:]=, out=) are not supported on an array of the graph "
                                  "while recording; use a new array, or leave autograd.record()")


def store(device: Any, v: Any, out: Array) -> None:
    stype = getattr(v, "stype", "default")
    if out.stype == "default":
        device.copy(v if stype == "default" else v.todense(device.xp), out._data)
    elif out.stype == stype:
        out._data = v
    else:
        raise error(TypeError, f"a {stype} result cannot be written to a {out.stype} array")


def assign(dst: Array, src: Array) -> None:
    """Write one array into another of the same context and shape, in the order of the engine; sparse ones are replaced."""
    sd, ss = dst._st, src._st
    device = sd.ctx.device
    a, b = src._data, dst._data
    if a is b:
        return
    if (ss.write is None and sd.write is None and not sd.reads) or device.async_ or dst.stype != "default" or src.stype != "default":
        if ss.write is not None:
            ss.wait()
        if sd.write is not None or sd.reads:
            sd.wait_free()
        store(device, a, dst)
    else:
        engine.it.push(sd.ctx, lambda: device.copy(a, b), (ss,), (sd,), "copy")
    sd.version += 1


def to_context(x: Array, ctx: Context) -> Array:
    """Copy an array to another context, in the order of the engine; recorded, so that gradients come back."""
    src, out_st = x._st, Storage(ctx)
    a, device, home = x._data, ctx.device, src.ctx.device
    dispatch.context_k(ctx, state.train)
    if x.stype != "default":
        src.wait()
        moved = [device.from_host(home.to_host(part), ctx.device_id) for part in a.parts]
        out = x.__class__(a.with_parts(*moved), out_st)
    elif home is device:
        if device.async_:
            device.activate(ctx.device_id)
        data = device.empty(tuple(a.shape), a.dtype, ctx.device_id)
        out = x.dense(data, out_st)
        if src.write is None or device.async_:
            src.wait()
            device.copy(a, data)
        else:
            engine.it.push(ctx, lambda: device.copy(a, data), (src,), (out_st,), "copy")
    else:  # two types of device meet in the host's memory, on the user's word
        src.wait()
        out = x.dense(device.from_host(home.to_host(a), ctx.device_id), out_st)
    if state.record and x._entry is not None:
        op = registry.ops.get("_copyto")
        tape.record(op, op.parse({"source": src.ctx}), (x,), (out,))
    return out


def wrap(data: Any, ctx: Context, cls: type[Array] | None = None) -> Array:
    """A new array around a device value."""
    stype = getattr(data, "stype", "default")
    return (cls or faces[stype])(data, Storage(ctx))
