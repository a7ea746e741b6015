"""What kernels take: how arguments are told apart, by Python and by compiled code.

A signature is a row of words, one for each argument: ``int64``, ``float64``, ``float32``, ``bool``, ``int64*3`` (a
tuple of three, or of floats: ``float64*3``), and for arrays dtype and number of dimensions, ``float32[2]``: dense,
aligned, writable, of the machine's byte order. For anything else a kernel is Numba's.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["normal", "signature", "usable"]

_DTYPES = frozenset(
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()
)
_EXACT = {int: "int64", float: "float64", bool: "bool", np.float32: "float32"}


def usable() -> bool:
    """Whether objects lie in memory as compiled code takes them to: in CPython with its lock, on 64 bits."""
    return (
        sys.implementation.name == "cpython"
        and sys.maxsize > 1 << 32
        and sys.byteorder == "little"
        and getattr(sys, "_is_gil_enabled", lambda: True)()
        and not hasattr(sys, "gettotalrefcount")  # a debug build: its objects begin with more
    )


def _word(a: Any) -> str | None:
    kind = type(a)
    if kind is np.ndarray:
        if a.flags.carray and a.dtype.isnative and a.dtype.name in _DTYPES and a.ndim:
            return f"{a.dtype.name}[{a.ndim}]"
        return None
    if kind is tuple and len(of := {*map(type, a)}) == 1 and (word := _EXACT.get(of.pop())) in ("int64", "float64"):
        return f"{word}*{len(a)}"
    return _EXACT.get(kind)


def signature(args: Sequence[Any]) -> tuple[str, ...] | None:
    """The words of these arguments; None where one has none."""
    words = []
    for a in args:
        word = _word(a)
        if word is None:
            return None
        words.append(word)
    return tuple(words)


def normal(a: Any) -> Any:
    """NumPy's numbers as Python's, but for float32, and tuples of them."""
    if isinstance(a, np.generic):
        if isinstance(a, np.bool_):
            return bool(a)
        if isinstance(a, np.integer) and a.dtype != np.uint64:
            return int(a)
        return float(a) if isinstance(a, np.float64) else a
    if type(a) is tuple:
        return tuple(map(normal, a))
    return a
