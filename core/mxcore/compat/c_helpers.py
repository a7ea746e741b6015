"""What C has: helpers around ctypes that scripts take from MXNet's modules; nothing of mxcore needs them."""

from __future__ import annotations

import array
import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base import MXNetError, error

__all__ = [
    "MXCallbackList",
    "c_array",
    "c_array_buf",
    "c_handle_array",
    "c_str",
    "c_str_array",
    "check_call",
    "ctypes2buffer",
    "ctypes2numpy_shared",
    "mx_float_p",
    "py_str",
]

mx_float_p = ctypes.POINTER(ctypes.c_float)


class MXCallbackList(ctypes.Structure):
    """Functions for C to call, with a context for each."""

    _fields_ = [
        ("num_callbacks", ctypes.c_int),
        ("callbacks", ctypes.POINTER(ctypes.CFUNCTYPE(ctypes.c_int))),
        ("contexts", ctypes.POINTER(ctypes.c_void_p)),
    ]


def c_str(string: str) -> ctypes.c_char_p:
    """A text for C, in UTF-8."""
    return ctypes.c_char_p(string.encode("utf-8"))


def c_str_array(strings: Sequence[str]) -> ctypes.Array[ctypes.c_char_p]:
    """Several texts for C."""
    return (ctypes.c_char_p * len(strings))(*[s.encode("utf-8") for s in strings])


def c_array(ctype: Any, values: Sequence[Any]) -> Any:
    """An array of C from a sequence of Python.

    >>> list(c_array(ctypes.c_int, [1, 2]))
    [1, 2]
    """
    return (ctype * len(values))(*values)


def c_array_buf(ctype: Any, buf: array.array[Any]) -> Any:
    """An array of C that shares the memory of an `array.array`."""
    return (ctype * len(buf)).from_buffer(buf)


def c_handle_array(objs: Sequence[Any]) -> Any:
    """The attributes `handle` of objects as an array of pointers."""
    return c_array(ctypes.c_void_p, [ctypes.cast(o.handle, ctypes.c_void_p) for o in objs])


def ctypes2buffer(cptr: Any, length: int) -> bytearray:
    """A copy of `length` bytes from a pointer to char."""
    if not isinstance(cptr, ctypes.POINTER(ctypes.c_char)):
        raise error(TypeError, f"ctypes2buffer takes a pointer to c_char, got {type(cptr).__name__}")
    return bytearray(ctypes.string_at(cptr, length))


def ctypes2numpy_shared(cptr: Any, shape: Sequence[int]) -> np.ndarray[Any, Any]:
    """An array of NumPy over the floats at a pointer."""
    if not isinstance(cptr, mx_float_p):
        raise error(TypeError, f"ctypes2numpy_shared takes a pointer to c_float, got {type(cptr).__name__}")
    return np.ctypeslib.as_array(cptr, tuple(shape))


def py_str(x: bytes | str) -> str:
    """The text of bytes in UTF-8; a text as it is, which is what callbacks get here.

    >>> py_str(b"weight")
    'weight'
    """
    return x if isinstance(x, str) else x.decode("utf-8")


def check_call(ret: int) -> None:
    """Raise MXNetError if a function of C returned something else than 0."""
    if ret != 0:
        raise MXNetError(f"a function of C returned {ret}")
