"""Arrays over memory that other libraries offer through DLPack."""

from __future__ import annotations

import ctypes
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.array import Storage, faces
from .._core.context import Context
from .._core.errors import error
from .._core.params import as_dtype
from .._noting import check_readable
from .windows import storage_over, tell

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


class _Tensor(ctypes.Structure):
    """How a tensor of DLPack's lies in memory."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_uint32),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
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
    kind, index = _device_of(source) if bare else _told(source)
    if kind not in _CONTEXTS:
        raise error(ValueError, f"from_dlpack: no context stands for DLPack device type {kind}")
    ctx = Context(_CONTEXTS[kind], index)
    if kind == 2:
        ctx.activate()  # the device tells the producer its current stream
        taken = ctx.device.xp.from_dlpack(_Capsule(source, (kind, index)) if bare else source)
        return faces["default"](taken[...], Storage(ctx))  # type: ignore[return-value]  # a view: others have the memory
    data = _from_host(source, bare)
    return faces["default"](data, storage_over(data, ctx))  # type: ignore[return-value]


def _told(source: Any) -> tuple[int, int]:
    """The device that an object says it is on."""
    told = source.__dlpack_device__()
    try:
        kind, index = map(operator.index, told)
    except (TypeError, ValueError) as e:
        raise error(
            TypeError,
            f"from_dlpack: {type(source).__name__}.__dlpack_device__() must give two whole numbers, type and index of "
            f"a device, got {told!r}",
        ) from e
    return kind, index


def _tensor_of(capsule: Any) -> _Tensor | None:
    """What a capsule holds; nothing if it was taken."""
    given = ctypes.py_object(capsule)
    # In newer capsules version, context, deleter and flags stand before it.
    for name, before in ((b"dltensor", 0), (b"dltensor_versioned", 32)):
        if ctypes.pythonapi.PyCapsule_IsValid(given, name):
            return _Tensor.from_address(_pointer(capsule, name) + before)
    return None


def _device_of(capsule: Any) -> tuple[int, int]:
    """DLPack's device of a capsule; that of a capsule that was taken is the CPU."""
    tensor = _tensor_of(capsule)
    return (1, 0) if tensor is None else (int(tensor.device[0]), int(tensor.device[1]))


def _checked(capsule: Any) -> Any:
    """The capsule, if it has places for what it says it has: NumPy would read from nowhere."""
    tensor = _tensor_of(capsule)
    if tensor is not None and tensor.ndim > 0:
        if not tensor.shape:
            raise ValueError(f"its tensor has {tensor.ndim} dimensions and no shape")
        if not 0 < tensor.ndim <= 64:
            raise ValueError(f"its tensor has {tensor.ndim} dimensions, at most 64 can be")
        sizes = (ctypes.c_int64 * tensor.ndim).from_address(tensor.shape)
        if min(sizes) < 0:
            raise ValueError(f"its tensor has shape {tuple(sizes)}")
    if tensor is not None and not tensor.data and (tensor.ndim <= 0 or 0 not in sizes):
        raise ValueError("its tensor has no memory")
    return capsule


_SPARSE = "a {} array does not lie in one memory: offer x.tostype('default')"


def offer(x: Any, kw: dict[str, Any]) -> Any:
    """What ``x.__dlpack__(**kw)`` gives: ordered by the queue of its device if it has one, without waiting here."""
    check_readable(x)
    if x.stype != "default":
        raise error(BufferError, _SPARSE.format(x.stype))
    x._st.views |= OPEN
    tell(x._data, x._st)
    ctx = x.context
    # Who takes it may write to it at once, and what still reads it came before. No write is counted, though: most only
    # look, and a backward would refuse what nobody wrote.
    write = x.writable and not kw.get("copy")
    if not ctx.device.async_:
        (x._st.wait_free if write else x.wait_to_read)()
        return x._data.__dlpack__(**kw)
    if (kw.get("dl_device") or (2,))[0] == 1 or ("max_version" in kw and "stream" not in kw):  # the latter is NumPy
        raise error(BufferError, f"an array on {ctx} shares no memory with arrays on the CPU: copy it, x.asnumpy()")
    x._st.order(write)
    ctx.activate()
    return x._data.__dlpack__(**kw)


def _capsule_of(source: Any) -> Any:
    try:
        return source.__dlpack__(max_version=(1, 0))
    except TypeError:  # older than versions
        return source.__dlpack__()


def _from_host(source: Any, bare: bool) -> np.ndarray[Any, Any]:
    try:
        capsule = _checked(source if bare else _capsule_of(source))
        # Only capsules with a version can say that their memory is read-only; NumPy takes all others to be, MXNet none.
        silent = ctypes.pythonapi.PyCapsule_IsValid(ctypes.py_object(capsule), b"dltensor")
        array = np.from_dlpack(_Capsule(capsule))
    except (BufferError, ValueError, RuntimeError) as e:
        once = "; a capsule can be taken only once" if bare and _tensor_of(source) is None else ""
        raise error(
            ValueError, f"from_dlpack: {type(source).__name__} offers nothing that an array can lie over: {e}{once}"
        ) from e
    as_dtype(array.dtype)  # an error for what an array cannot hold
    return np.asarray(_Open(array)) if silent and not array.flags.writeable else array


def to_capsule(x: Any, verb: str) -> Any:
    """A capsule of the memory of an array; one with a version where that is read-only, since others cannot say so."""
    check_readable(x)
    if x.stype != "default":
        raise error(ValueError, f"to_dlpack_for_{verb}: {_SPARSE.format(x.stype)}")
    x._st.views |= OPEN
    tell(x._data, x._st)
    x.context.activate()
    try:
        return x._data.__dlpack__(**({} if x.writable else {"max_version": (1, 0)}))
    except BufferError as e:
        raise error(ValueError, f"to_dlpack_for_{verb}: an array of {x.dtype} cannot be offered: {e}") from e
