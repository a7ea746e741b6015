"""Sources that users write (``mx.rtc``), and what kernels are in them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from mxcore.plugin import error

from .sources import COMMENT, Code, Parameter, Signature

__all__ = ["UserCode"]

#: What stands before the name of a kernel.
_WORDS = r"(?:(?:__global__|void|static|inline|__launch_bounds__\s*\([^)]*\))\s*)+"
_C_LINKAGE = re.compile(rf'extern\s*"C"\s+({_WORDS})\b(\w+)\s*\(')
_IN_BLOCK = re.compile(rf"(?<!>)\s({_WORDS})\b(\w+)\s*\(")
_BLOCK = re.compile(r'extern\s*"C"\s*\{')
#: The architecture is that of the device at hand.
_ARCHITECTURE = ("-arch", "--gpu-architecture")


class UserCode(Code):
    """A text of CUDA C++ as users write it.

    Parameters
    ----------
    text : str
    options : sequence of str
        For the compiler.
    exports : sequence of str
        Names of kernels beside those that have C linkage.
    """

    def __init__(self, text: str, options: Sequence[str], exports: Sequence[str]) -> None:
        super().__init__("source.cu", text)
        self.defines = ()
        self.options = tuple(o for o in options if not o.startswith(_ARCHITECTURE))
        self.exports = tuple(exports)

    @property
    def label(self) -> str:
        return self.name

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(repr((self.text, self.options, self.exports)).encode()).hexdigest()

    @cached_property
    def kernels(self) -> tuple[str, ...]:
        """The names that can be asked for."""
        text = COMMENT.sub(" ", self.text)
        pattern = _IN_BLOCK if _BLOCK.search(text) else _C_LINKAGE
        linked = (found[2] for found in pattern.finditer(text) if "__global__" in found[1])
        return tuple(dict.fromkeys((*self.exports, *linked)))

    @cached_property
    def signatures(self) -> dict[str, Signature]:
        """The kernels that were asked for, as who asked describes them."""
        return {}

    def declare(self, name: str, arguments: Sequence[tuple[Any, bool]]) -> None:
        """Note what arguments a kernel has: dtype, and whether it is an array, of each."""
        if name not in self.kernels:
            there = ", ".join(self.kernels) or "none"
            raise error(
                ValueError,
                f"{self.name} has no kernel {name!r} that can be found by its name; there are: {there}. Write extern "
                '"C" __global__ void, or name it in exports',
            )
        parameters = (Parameter(f"number {i}", str(t), array) for i, (t, array) in enumerate(arguments))
        self.signatures[name] = Signature(name, 1024, tuple(parameters), True)
