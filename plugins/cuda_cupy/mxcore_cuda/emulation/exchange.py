"""DLPack between emulated devices: NumPy's capsules that say they lie on a GPU."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from .memory import Block, block_at

__all__ = ["KIND", "capsule", "taken"]

#: DLPack's number of CUDA.
KIND = 2
#: Name of a capsule -> where in it the device stands.
_DEVICE = {b"dltensor": 8, b"dltensor_versioned": 40}
_pointer = ctypes.PYFUNCTYPE(ctypes.c_size_t, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


class _Held(np.ndarray[Any, Any]):
    """Memory that keeps the array whose it is."""

    owner: Any


class _Host:
    """A capsule as NumPy takes it."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **kw: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def _say(capsule: Any, kind: int, index: int) -> None:
    """Write the device into a capsule."""
    for name, place in _DEVICE.items():
        if ctypes.pythonapi.PyCapsule_IsValid(ctypes.py_object(capsule), name):
            (ctypes.c_int32 * 2).from_address(_pointer(capsule, name) + place)[:] = [kind, index]


def capsule(owner: Any, values: np.ndarray[Any, Any], index: int, version: Any) -> Any:
    """A capsule of an array's memory, which keeps the array."""
    held = values.view(_Held)
    held.owner = owner
    found = held.__dlpack__(max_version=version)
    _say(found, KIND, index)
    return found


def taken(capsule: Any) -> tuple[np.ndarray[Any, Any], Block]:
    """The memory in a capsule, and its block."""
    _say(capsule, 1, 0)
    shown = np.from_dlpack(_Host(capsule))
    block = block_at(shown.__array_interface__["data"][0])
    offset = shown.__array_interface__["data"][0] - block.memory.ctypes.data
    return np.ndarray(shown.shape, shown.dtype, block.memory.data, offset, shown.strides), block
