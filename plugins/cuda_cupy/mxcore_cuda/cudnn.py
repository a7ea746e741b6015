"""cuDNN by its C interface, where it is found: the library, its calls, its handles."""

from __future__ import annotations

import ctypes
import os
import threading
from functools import cache
from typing import Any

from mxcore.plugin import MXNetError

from .drivers import driver

__all__ = ["TYPES", "Handle", "Refused", "call", "handles", "library", "told", "version"]

TYPES = {"float32": 0, "float64": 1, "float16": 2}
#: Thousands of statuses -> what to do.
_ADVICE = {
    1: "install the cuDNN 9 of this CUDA: pip install 'mxcore-cuda[cudnn13]' (or [cudnn12])",
    4: "MXCORE_CUDNN=0, or cudnn_off=True of the layer, computes it without",
    5: "an earlier kernel may have failed; MXCORE_CUDNN=0 computes it without",
}


class Refused(MXNetError):
    """What cuDNN returned instead of doing it.

    Attributes
    ----------
    status : int
        From 1000 on it cannot be used, from 2000 what it was asked makes no sense to it, from 3000 it does not support
        that, from 4000 it failed.
    """

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def told() -> str:
    """What MXCORE_CUDNN says: 0 never, 1 where it is faster than our own kernels, 2 wherever it can."""
    return os.environ.get("MXCORE_CUDNN", "1").strip()


@cache
def library() -> Any:
    """The library; None where there is none, or MXCORE_CUDNN=0."""
    if told() == "0":
        return None
    found = driver().cudnn()
    if found is not None:
        found.cudnnGetVersion.restype = ctypes.c_size_t
        found.cudnnGetErrorString.restype = ctypes.c_char_p
        found.cudnnGetLastErrorString.restype = None
    return found


def version() -> int:
    """Of the library: 91900 is 9.19.0."""
    return int(library().cudnnGetVersion())


def call(name: str, *arguments: Any) -> None:
    """Call a function of the library's.

    Raises
    ------
    Refused
        With what it says.
    """
    found = library()
    status = getattr(found, name)(*arguments)
    if status:
        said = ctypes.create_string_buffer(512)
        found.cudnnGetLastErrorString(said, ctypes.c_size_t(len(said)))
        what = f"{name}: {found.cudnnGetErrorString(status).decode()} ({status})"
        details = " ".join(said.value.decode(errors="replace").split())
        raise Refused(status, "; ".join(filter(None, (what, details, _ADVICE.get(status // 1000)))))


class Handle:
    """cuDNN on a stream of a device: one call at a time prepares and launches."""

    def __init__(self, index: int, which: str) -> None:
        d = driver()
        d.activate(index)
        self.index, self.lock = index, threading.RLock()  # a signal's handler may come amid it
        self.stream = d.stream(index, which)
        self.pointer = ctypes.c_void_p()
        call("cudnnCreate", ctypes.byref(self.pointer))
        call("cudnnSetStream", self.pointer, d.pointer_of(self.stream))


@cache
def handles(index: int) -> dict[bool, Handle]:
    """By whether the thread captures; made together, for in a capture none can be made."""
    return {False: Handle(index, "compute"), True: Handle(index, "capture")}
