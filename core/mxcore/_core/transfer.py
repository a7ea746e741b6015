"""Values from array to array: writing, copying between contexts, and who may be written to."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from numpy import ndarray

from .array import Array, Like, Sparse, Storage, faces
from .context import Context
from .errors import MXNetError, error
from .state import state
from .stream import ordered

__all__ = [
    "apart",
    "assign",
    "check_writable",
    "guard_write",
    "meets",
    "overlaps",
    "read_only",
    "store",
    "together",
    "wrap",
]


def check_writable(x: Array, what: str) -> None:
    """Refuse to write to read-only memory."""
    d = x._data
    if not (d.flags.writeable if d.__class__ is ndarray else x._st.ctx.device.writable(d)):
        raise read_only(what)


def read_only(what: str) -> MXNetError:
    """The error of whoever wants to write to read-only memory."""
    return error(
        ValueError,
        f"{what}: the array's memory is read-only "
        "(such as from_numpy or from_dlpack bring along); write to a copy() of it",
    )


def apart(device: Any, arrays: Iterable[Array | Like]) -> bool:
    """Whether no two of some arrays can overlap, by a quick look at each; if not, `overlaps` tells of two."""
    owns = device.owns
    for x in arrays:
        d = x._data
        if not (d.__class__ is Like or isinstance(d, Sparse) or owns(d)):
            return False
    return True


def overlaps(device: Any, a: Any, others: Iterable[Any]) -> bool:
    """Whether a value may share memory with others; `Like` has none, sparse ones are never written to."""
    return not isinstance(a, Sparse) and any(not isinstance(b, (Like, Sparse)) and device.shares(a, b) for b in others)


def meets(x: Array, others: Iterable[Array]) -> bool:
    """Whether an array is one of others, or may share memory with them, of whatever devices."""
    return any(
        x is y or y._st.ctx.device is x._st.ctx.device and overlaps(x._st.ctx.device, x._data, [y._data])
        for y in others
    )


def is_view(x: Array) -> bool:
    """Whether an array was made of another one, whose memory it has, and which is still there."""
    return x._st.views > 0 and hasattr(getattr(x._data, "base", None), "nbytes") and sys.getrefcount(x._data.base) > 2


def kept(x: Array) -> bool:
    """Whether an array is a constant whose memory a gradient that is still to come will read."""
    return any(
        (n := r()) and n.flows and n.live and meets(x, [y for y in (n.saved or [()])[0] if isinstance(y, Array)])
        for r in [*getattr(x._st, "readers", ())]
    )


def guard_write(x: Array, what: str, read: Sequence[Array] = ()) -> None:
    """Refuse to write to read-only memory and, while recording, to an array of the graph, as MXNet does.

    So it does where gradients will `read` what was there. What stands in the place of the tape notes a graph, which
    cannot hold any write.
    """
    check_writable(x, what)
    if state.record and (
        state.record is not True or x._entry is not None and x._entry[0].flows or kept(x) or read and meets(x, read)
    ):
        raise error(
            RuntimeError,
            f"{what}: inplace operations (+=, -=, x[:]=, out=) are not supported "
            + (
                "on an array of the graph, or one that a gradient will read, while recording; use a new array, or "
                "leave autograd.record()"
                if state.record is True
                else "where calls are noted as a graph, as those of a block after hybridize(); use a new array, or do "
                "not hybridize the block"
            ),
        )


def together(a: Context, b: Context) -> bool:
    """Whether arrays of two contexts meet in operators as they are: of one, or of several whose memory is one."""
    return a is b or bool(a.device.computes_as) and a.device.computes_as == b.device.computes_as


def store(device: Any, v: Any, out: Array) -> None:
    stype = getattr(v, "stype", "default")
    if stype not in ("default", out.stype):
        v = v.todense(device.xp)
    if out.stype == "default":
        device.copy(v, out._data)
    else:
        out._data = v if stype == out.stype else out.packed(device.xp, v)  # type: ignore[attr-defined]


def assign(dst: Array, src: Array, own: bool = False) -> None:
    """Write an array into another of its context and shape, in the order of the engine; sparse ones are replaced.

    A sparse value is copied, for who gets a value owns it; one that is our `own`, which nobody else has, is taken.
    """
    sd, ss, value = dst._st, src._st, src._data
    if value is dst._data:
        return
    if isinstance(value, Sparse):
        src._ready()  # type: ignore[attr-defined]  # others may still write to its parts
        value = src._data if own else src._data.copy()
    check_writable(dst, "writing to an array")
    ordered(
        sd.ctx,
        store,
        (sd.ctx.device, value, dst),
        (ss,),
        (sd,),
        "copy",
        now=dst.stype != "default" or src.stype != "default",
    )


def wrap(data: Any, ctx: Context, cls: type[Array] | None = None) -> Array:
    """A new array around a device value."""
    return (cls or faces[getattr(data, "stype", "default")])(data, Storage(ctx))
