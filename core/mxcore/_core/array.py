"""Storage and arrays: what an engine orders, and the views that users hold."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from .context import Context

__all__ = ["Storage", "Array", "Like", "Sparse", "faces", "fresh", "ruled"]


class Storage:
    """One buffer and its engine variable; every view of the buffer shares it.

    Attributes
    ----------
    ctx : Context
    write : Task or None
        The pending (or failed) task that writes the buffer; None when the buffer is ready.
    reads : list of Task or None
        Pending tasks that read it.
    version : int
        Counts the writes; the tape compares it.
    views : int
        Arrays over the buffer beside the first, ever: 0 tells that whoever has the only array has the buffer.
    lock : lock
        Held by a thread that reads the buffer to write it; missing until the first one does.
    readers : set of references to TapeNode
        Those that have kept (a part of) the buffer as a constant, as long as they live; missing before the first.
    parts : sequence of Storage or None
        Those whose locks are held in its place, if there are such.
    """

    __slots__ = ("ctx", "write", "reads", "version", "views", "lock", "readers")
    lock: Any
    parts: Any = None

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.write: Any = None
        self.reads: Any = None
        self.version = 0
        self.views = -1

    def wait(self) -> None:
        """Wait for the pending write; raise what failed in it."""
        task = self.write
        if task is not None:
            task.wait()

    def wait_free(self) -> None:
        """Wait until nobody writes or reads the buffer."""
        self.wait()
        for task in list(self.reads or ()):
            task.finished()

    def order(self, write: bool = False) -> None:
        """As `wait`, or `wait_free` for a `write`, for work on its device's queue, which orders what it holds."""
        for task in (self.write, *(self.reads or ())) if write else (self.write,):
            if task is None or task.done.is_set() and task.error is None:
                continue
            if task.event is not None and task.ctx.device is self.ctx.device:
                self.ctx.device.wait(self.ctx.device_id, task.event)
            elif task is self.write:
                task.wait()
            else:
                task.finished()


class Array:
    """An array on a device: a view (`_data`) over a storage (`_st`), with a place on the tape (`_entry`) or none.

    The faces (``mx.nd.NDArray``) derive from it. `dense` and `stype` are class attributes: the class of dense results
    computed from such an array, and its storage type. `rules` is the class by which gradient rules see it, None if by
    its own.
    """

    __slots__ = ("_data", "_st", "_entry", "__weakref__")

    stype = "default"
    dense: type[Array]
    rules: type[Array] | None = None

    def __init__(self, data: Any, st: Storage = None) -> None:  # type: ignore[assignment]  # which unpickling sets later
        self._data = data
        self._st = st
        if st is not None:
            st.views += 1
        self._entry: Any = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the dimensions."""
        return tuple(self._data.shape)

    @property
    def context(self) -> Context:
        """Where the array lives."""
        return self._st.ctx

    def twin(self) -> Any:
        """The same memory without a place on the tape."""
        return self.__class__(self._data, self._st)

    def of(self, cls: type[Array]) -> Any:
        """The same memory and place on the tape as an array of another class."""
        x = cls(self._data, self._st)
        x._entry = self._entry
        return x

    def wait_to_read(self) -> None:
        """Block until the array holds its value; raises what failed in computing it."""
        st = self._st
        st.wait()
        device = st.ctx._device
        if device is not None and device.async_:
            device.wait_for(self._data, st.ctx.device_id)

    def asnumpy(self) -> np.ndarray[Any, Any]:
        """Copy to a NumPy array, after waiting for the value."""
        st = self._st
        if st.write is not None:
            st.wait()
        return st.ctx.device.to_host(self._data)


def fresh(cls: type[Array], data: Any, ctx: Context, new: Any = object.__new__) -> Any:
    """``cls(data, Storage(ctx))``, as the hot path makes its results: constructors cost as much as small kernels."""
    st = new(Storage)
    st.ctx = ctx
    st.write = st.reads = None
    st.version = st.views = 0
    x = new(cls)
    x._data = data
    x._st = st
    x._entry = None
    return x


def ruled(x: Any) -> Any:
    """An array as gradient rules see it, at its place on the tape: what Python's operators mean there is one thing."""
    return x if x.rules is None else x.of(x.rules)


Array.dense = Array
#: Storage type -> class for results of that type; the faces enter theirs.
faces: dict[str, type[Array]] = {"default": Array}


class Like:
    """Shape, dtype and context of an array without its buffer: what a shape-only input (``lhs~``) needs.

    It stands for the array and for its data at once.
    """

    __slots__ = ("shape", "dtype", "_st")
    stype = "default"
    rules = None
    _entry = None

    def __init__(self, x: Array) -> None:
        d = x._data
        # The storage tells context and readiness; it does not hold the buffer.
        self.shape, self.dtype, self._st = d.shape, d.dtype, x._st

    @property
    def _data(self) -> Like:
        return self

    @property
    def dense(self) -> type[Array]:
        return faces["default"]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)


class Sparse:
    """What device values of other storage types derive from; a dense one is an array.

    Such a value has `stype`, `shape` and `dtype`, the arrays it consists of (`parts`), ``with_parts(*parts)``, the same
    over other arrays, ``copy()`` and ``todense(xp)``. Its class enters the storage type in `faces`.
    """

    __slots__ = ()
    stype = ""

    def frozen(self) -> Any:
        """The value as it is now: itself, unless it is one that is changed in place."""
        return self

    def is_apart(self, device: Any, others: Any) -> bool:
        """Whether its parts stay as they are, in memory that none of the `others` has: arrays and None."""
        return False
