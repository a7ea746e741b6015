"""Storage and arrays: what an engine orders, and the views that users hold."""
from __future__ import annotations

from typing import Any

import numpy as np

from .context import Context
from .errors import error

__all__ = ["Storage", "Array", "Like", "Sparse", "faces", "fresh"]


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
    turn : lock or None
        Held by a thread that reads the buffer to write it, made for the first one that does.
    """

    __slots__ = ("ctx", "write", "reads", "version", "turn")

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.write: Any = None
        self.reads: Any = None
        self.turn: Any = None
        self.version = 0

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


class Array:
    """An array on a device: a view (`_data`) over a storage (`_st`), with a place on the tape (`_entry`) or none.

    The faces (``mx.nd.NDArray``) derive from it. `dense` and `stype` are class attributes: the class of dense results
    computed from such an array, and its storage type.
    """

    __slots__ = ("_data", "_st", "_entry", "__weakref__")

    stype = "default"
    dense: type[Array]

    def __init__(self, data: Any, st: Storage = None) -> None:  # type: ignore[assignment]  # which unpickling sets later
        self._data = data
        self._st = st
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

    def wait_to_read(self) -> None:
        """Block until the array holds its value; raises what failed in computing it."""
        self._st.wait()

    def asnumpy(self) -> np.ndarray[Any, Any]:
        """Copy to a NumPy array, after waiting for the value."""
        st = self._st
        if st.write is not None:
            st.wait()
        return st.ctx.device.to_host(self._data)


def fresh(cls: type[Array], data: Any, ctx: Context, new: Any = object.__new__) -> Any:
    """``cls(data, Storage(ctx))``, as the hot path makes its results: two Python constructors cost as much as a small kernel."""
    st = new(Storage)
    st.ctx = ctx
    st.write = st.reads = st.turn = None
    st.version = 0
    x = new(cls)
    x._data = data
    x._st = st
    x._entry = None
    return x


Array.dense = Array
#: Storage type -> class for results of that type; the faces enter theirs.
faces: dict[str, type[Array]] = {"default": Array, "row_sparse": Array, "csr": Array}


class Like:
    """Shape, dtype and context of an array without its buffer: what a shape-only input (``lhs~``) needs.

    It stands for the array and for its data at once.
    """

    __slots__ = ("shape", "dtype", "_st")
    stype = "default"
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
        n = 1
        for d in self.shape:
            n *= d
        return n


class Sparse:
    """A device value of a sparse storage type: a full shape, and the arrays it consists of (`parts`, values last)."""

    __slots__ = ("shape", "parts")
    stype = ""

    def __init__(self, shape: tuple[int, ...], *parts: Any) -> None:
        self.shape, self.parts = tuple(shape), parts

    @property
    def values(self) -> Any:
        return self.parts[-1]

    @property
    def dtype(self) -> Any:
        return self.parts[-1].dtype

    def with_parts(self, *parts: Any) -> Any:
        """The same shape with other arrays."""
        return type(self)(self.shape, *parts)

    def astype(self, dtype: Any) -> Any:
        """The values in another dtype."""
        return self.with_parts(*self.parts[:-1], self.parts[-1].astype(dtype))

    def _zeros(self, xp: Any) -> Any:
        try:
            return xp.zeros(self.shape, self.dtype)
        except MemoryError as e:
            raise error(MemoryError, f"a {self.stype} array of shape {self.shape} does not fit into memory when it is dense: {e}; "
                                     "use its parts, such as x.data and x.indices") from None
