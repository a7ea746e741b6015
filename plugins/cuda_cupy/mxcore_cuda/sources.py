"""The sources of kernels: what kernels a text has, with which arguments, and what a compiler is told.

A source is compiled for one dtype at a time, when one of its kernels is first wanted for it.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

from mxcore.plugin import error

__all__ = [
    "COMMENT",
    "FOLDER",
    "MOST_KEYS",
    "TABLE_BYTES",
    "Code",
    "Parameter",
    "Signature",
    "files",
    "signatures",
    "source",
]

FOLDER = Path(__file__).with_name("kernels")

#: Bytes of a table (`many.cuh`), which is given by value.
TABLE_BYTES = 4000
#: Keys of random numbers that are given by value at once (`random.cu`).
MOST_KEYS = 128
#: Type in C -> how `struct` packs it; a slot of an argument has eight bytes, or as many as it needs. T and A depend on
#: the dtype.
_FORMATS = {
    "i64": "q",
    "u64": "Q",
    "long long": "q",
    "int": "i4x",
    "u32": "I4x",
    "unsigned": "I4x",
    "float": "f4x",
    "double": "d",
    "Table": f"{TABLE_BYTES}s",
    "Keys": f"{24 * MOST_KEYS}s",
}
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_KERNEL = re.compile(r"KERNEL\((\d+)(?:,[^)]*)?\)\s*(\w+)\s*\(([^)]*)\)")
_MACRO = re.compile(r"^[ \t]*#define[ \t]+(\w+)[ \t]+(.*)$", re.M)
_WAYS = re.compile(r"\b(EACH|BLOCKS)\((\w+)\)")


class Parameter(NamedTuple):
    """One argument of a kernel: its name, its type in C without `const`, whether it is an address."""

    name: str
    type: str
    pointer: bool

    def format(self, double: bool) -> str:
        """How `struct` packs it, where arithmetic is in double or not."""
        if self.pointer:
            return "Q"
        return ("d" if double else "f4x") if self.type == "A" else _FORMATS[self.type]


class Signature(NamedTuple):
    """A kernel's name, the most threads of its blocks, its arguments, and whether its threads wait for each other."""

    name: str
    threads: int
    parameters: tuple[Parameter, ...]
    waits: bool


class Code:
    """A text of CUDA C++, to be compiled.

    Parameters
    ----------
    name : str
        For errors, and for the name of what is kept.
    text : str
    dtype : str
        What T is.
    defines : tuple of str
        Further macros, ``NAME=value`` or ``NAME``.
    """

    def __init__(self, name: str, text: str, dtype: str = "float32", defines: tuple[str, ...] = ()) -> None:
        self.name, self.text, self.dtype, self.defines = name, text, dtype, (f"MX_{dtype}", *defines)
        self.double = dtype == "float64"

    #: For the compiler, beside what it is always told.
    options: tuple[str, ...] = ()
    #: What its errors end with.
    hint = ""

    @cached_property
    def digest(self) -> str:
        """Of all that the compiled code depends on but the compiler and the architecture."""
        found = hashlib.sha256("\0".join((self.text, *self.defines)).encode())
        found.update(_headers(FOLDER))
        return found.hexdigest()

    @property
    def label(self) -> str:
        """What it is called in errors."""
        return f"{self.name}, {self.dtype}"

    @cached_property
    def signatures(self) -> dict[str, Signature]:
        """Its kernels by name."""
        return signatures(self.text, self.name)

    def __repr__(self) -> str:
        return f"<Code {self.name} {self.dtype}>"


def signatures(text: str, name: str) -> dict[str, Signature]:
    """The kernels of a text.

    Raises
    ------
    MXNetError
        (also ValueError) if a kernel lacks its EACH or BLOCKS, or has an argument of an unknown type.
    """
    text = COMMENT.sub(" ", text).replace("\\\n", " ")
    macros = dict(_MACRO.findall(text))  # lists of arguments that several kernels have
    ways = {kernel: way == "BLOCKS" for way, kernel in _WAYS.findall(text)}
    found = {}
    for threads, kernel, arguments in _KERNEL.findall(text):
        if kernel not in ways:
            raise error(ValueError, f"{name}: kernel {kernel} has no line EACH({kernel}) or BLOCKS({kernel})")
        for macro, meaning in macros.items():
            arguments = re.sub(rf"\b{macro}\b", meaning, arguments)
        parameters = tuple(_parameter(a, name, kernel) for a in arguments.split(",") if a.strip())
        found[kernel] = Signature(kernel, int(threads), parameters, ways[kernel])
    return found


def _parameter(text: str, name: str, kernel: str) -> Parameter:
    words = re.sub(r"\bconst\b|__restrict__|__grid_constant__", " ", text).replace("*", " * ").split()
    pointer, kind = "*" in words, " ".join(w for w in words[:-1] if w != "*")
    if not pointer and kind != "A" and kind not in _FORMATS:
        raise error(ValueError, f"{name}: kernel {kernel} has an argument of type {kind!r}; one of {sorted(_FORMATS)}")
    return Parameter(words[-1], kind, pointer)


@cache
def _headers(folder: Path) -> bytes:
    return b"\0".join(path.read_bytes() for path in sorted(folder.glob("*.cuh")))


@cache
def source(name: str, dtype: str) -> Code:
    """A source of this package, for a dtype."""
    return Code(f"{name}.cu", (FOLDER / f"{name}.cu").read_text(), dtype)


def files() -> list[str]:
    """The names of all sources."""
    return sorted(p.stem for p in FOLDER.glob("*.cu"))
