"""Functions of Python whose body is machine code: what a call costs is the interpreter's call, and no more."""

from __future__ import annotations

import ctypes
from typing import Any

__all__ = ["FAST", "NONE", "ONE", "function"]

#: How a function takes its arguments: as an array and a count, not at all, one.
FAST, NONE, ONE = 0x80, 0x04, 0x08


class _Definition(ctypes.Structure):
    """PyMethodDef"""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)
#: Functions point to their definitions, as long as they live: one of each kind is kept for ever.
_definitions: dict[tuple[int, int], _Definition] = {}


def function(address: int, how: int, of: Any = None, name: str = "compiled") -> Any:
    """A built-in function.

    Parameters
    ----------
    address : int
        Of C's ``PyObject *f(PyObject *of, …)``.
    how : int
        :data:`FAST`, :data:`NONE` or :data:`ONE`.
    of : object
        What the code gets as its first argument.
    """
    definition = _definitions.get((address, how))
    if definition is None:
        definition = _definitions[address, how] = _Definition(name.encode(), address, how, None)
    return _new(ctypes.addressof(definition), of, None)
