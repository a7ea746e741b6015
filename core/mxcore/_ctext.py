"""Texts as C has them: helpers that scripts take from MXNet's modules; nothing of mxcore needs them."""
from __future__ import annotations

import ctypes
from collections.abc import Sequence

from .base import MXNetError

__all__ = ["c_str", "c_str_array", "check_call", "py_str"]


def c_str(string: str) -> ctypes.c_char_p:
    """A text for C, in UTF-8."""
    return ctypes.c_char_p(string.encode("utf-8"))


def c_str_array(strings: Sequence[str]) -> ctypes.Array[ctypes.c_char_p]:
    """Several texts for C."""
    return (ctypes.c_char_p * len(strings))(*[s.encode("utf-8") for s in strings])


def py_str(x: bytes) -> str:
    """The text of bytes in UTF-8.

    >>> py_str(b"weight")
    'weight'
    """
    return x.decode("utf-8")


def check_call(ret: int) -> None:
    """Raise MXNetError if a function of C returned something else than 0."""
    if ret != 0:
        raise MXNetError(f"a function of C returned {ret}")
