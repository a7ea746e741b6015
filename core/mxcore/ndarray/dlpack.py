"""Arrays over memory that other libraries offer through DLPack."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.array import Storage, faces
from .._core.context import Context
from .._core.errors import error
from .._core.params import as_dtype

if TYPE_CHECKING:
    from .ndarray import NDArray

__all__ = ["OPEN", "from_dlpack", "offer", "to_capsule"]

#: Among the views of a storage: one of somebody else's, who may write unseen.
OPEN = 1 << 62

#: DLPack's device types that are MXNet contexts.
_CONTEXTS = {1: "cpu", 2: "gpu", 3: "cpu_pinned"}


_pointer = ctypes.PYFUNCTYPE(ctypes.c_size_t, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


class _Capsule:
    """Gives a capsule the methods that array libraries ask for."""

    def __init__(self, capsule: Any, device: tuple[int, int] = (1, 0)) -> None:
        self.capsule, self.device = capsule, device

    def __dlpack__(self, **kw: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


class _Open:
    """The memory of an array, to be written to; the array stays alive with it."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}


def from_dlpack(source: Any) -> NDArray:
    """An array over the memory of `source`, which has ``__dlpack__`` or is a capsule."""
    bare = type(source).__name__ == "PyCapsule"
    if not bare and not hasattr(source, "__dlpack__"):
        raise error(
            TypeError, f"from_dlpack needs an object with __dlpack__ or a DLPack capsule, got {type(source).__name__}"
        )
    kind, index = _device_of(source) if bare else source.__dlpack_device__()
    if kind not in _CONTEXTS:
        raise error(ValueError, f"from_dlpack: no context stands for DLPack device type {kind}")
    ctx = Context(_CONTEXTS[kind], index)
    if kind == 2:
        ctx.activate()  # the device tells the producer its current stream
        taken = ctx.device.xp.from_dlpack(_Capsule(source, (kind, index)) if bare else source)
        return faces["default"](taken[...], Storage(ctx))  # type: ignore[return-value]  # a view: others have the memory
    return faces["default"](_from_host(source, bare), Storage(ctx))  # type: ignore[return-value]


def _device_of(capsule: Any) -> tuple[int, int]:
    """DLPack's device of a capsule, as it lies in memory; that of a capsule that was taken is the CPU."""
    given = ctypes.py_object(capsule)
    # What stands before the device: the address of the values, and in newer capsules version, context, deleter, flags.
    for name, before in ((b"dltensor", 8), (b"dltensor_versioned", 40)):
        if ctypes.pythonapi.PyCapsule_IsValid(given, name):
            pointer = _pointer(capsule, name)
            kind, index = (ctypes.c_int32 * 2).from_address(pointer + before)
            return int(kind), int(index)
    return 1, 0


def offer(x: Any, kw: dict[str, Any]) -> Any:
    """What ``x.__dlpack__(**kw)`` gives: ordered by the queue of its device if it has one, without waiting here."""
    x._st.views |= OPEN
    ctx = x.context
    if not ctx.device.async_:
        x.wait_to_read()
        return x._data.__dlpack__(**kw)
    if (kw.get("dl_device") or (2,))[0] == 1 or ("max_version" in kw and "stream" not in kw):  # the latter is NumPy
        raise error(BufferError, f"an array on {ctx} shares no memory with arrays on the CPU: copy it, x.asnumpy()")
    x._st.order()
    ctx.activate()
    return x._data.__dlpack__(**kw)


def _capsule_of(source: Any) -> Any:
    try:
        return source.__dlpack__(max_version=(1, 0))
    except TypeError:  # older than versions
        return source.__dlpack__()


def _from_host(source: Any, bare: bool) -> np.ndarray[Any, Any]:
    try:
        capsule = source if bare else _capsule_of(source)
        # Only capsules with a version can say that their memory is read-only; NumPy takes all others to be, MXNet none.
        silent = ctypes.pythonapi.PyCapsule_IsValid(ctypes.py_object(capsule), b"dltensor")
        array = np.from_dlpack(_Capsule(capsule))
    except (BufferError, ValueError, RuntimeError) as e:
        once = "; a capsule can be taken only once" if bare else ""
        raise error(
            ValueError, f"from_dlpack: {type(source).__name__} offers nothing that an array can lie over: {e}{once}"
        ) from e
    as_dtype(array.dtype)  # an error for what an array cannot hold
    return np.asarray(_Open(array)) if silent and not array.flags.writeable else array


def to_capsule(x: Any, verb: str) -> Any:
    """A capsule of the memory of an array; one with a version where that is read-only, since others cannot say so."""
    x._st.views |= OPEN
    x.context.activate()
    try:
        return x._data.__dlpack__(**({} if x.writable else {"max_version": (1, 0)}))
    except BufferError as e:
        raise error(ValueError, f"to_dlpack_for_{verb}: an array of {x.dtype} cannot be offered: {e}") from e
