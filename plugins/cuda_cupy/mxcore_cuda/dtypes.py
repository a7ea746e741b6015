"""Dtypes by their names: what they are in C, and which ones kernels take."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

__all__ = ["FLOATS", "HALVES", "IN_C", "MOVED", "InC", "name_of"]

#: The name of a dtype, which takes its time to tell it.
name_of = cache(str)


class InC(NamedTuple):
    """How a number lies in memory, in which type code holds it, and the macro that makes sources know the first."""

    memory: str
    held: str
    macro: str = ""


IN_C = {
    "float16": InC("mx_half", "float", "MX_HALF"),
    "bfloat16": InC("mx_bfloat16", "float", "MX_BFLOAT16"),
    "float32": InC("float", "float"),
    "float64": InC("double", "double"),
    "bool": InC("unsigned char", "unsigned char"),
    "uint8": InC("unsigned char", "unsigned char"),
    "int8": InC("signed char", "signed char"),
    "int32": InC("int", "int"),
    "int64": InC("i64", "i64"),
}
#: What is computed in float32, and rounded once.
HALVES = ("float16", "bfloat16")
#: What is computed with, and what is moved, too.
FLOATS = (*HALVES, "float32", "float64")
MOVED = ("int8", "uint8", "int32", "int64", *FLOATS)
