"""Sources that users write, for the host: what they have beyond the plugin's own is in `user.h`."""

from __future__ import annotations

import re
from functools import cache

from mxcore.plugin import error

from ..sources import Code
from ..user_sources import UserCode
from .compiler import Function, load

__all__ = ["translated", "user_function"]

#: Memory whose size the launch says.
_DYNAMIC = re.compile(r"extern\s+__shared__\s+(?:__align__\s*\(\s*\d+\s*\)\s*)?((?:\w+\s+)*\w+)\s+(\w+)\s*\[\s*\]\s*;")
_KEPT = ("-D", "-U", "-I")


@cache
def translated(code: UserCode) -> Code:
    """A source for g++: with an entry for each kernel, by its number."""
    body = _DYNAMIC.sub(r"static emulate::Dynamic<\1> \2;", code.text)
    entries = "".join(f"MX_EXPORT({i}, {name})\n" for i, name in enumerate(code.kernels))
    found = _Translated(code.name, f'#include "user.h"\n#line 1 "{code.name}"\n{body}\n#line 1 "exports"\n{entries}')
    found.defines = ()
    found.options = tuple(o for o in code.options if o.startswith(_KEPT))
    return found


class _Translated(Code):
    hint = "(the emulation has no inline PTX, textures, cooperative groups, matrix operations of warps, CUB, Thrust)"

    @property
    def label(self) -> str:
        return self.name


def user_function(code: UserCode, name: str) -> Function:
    """A kernel of a user's source, whose arguments are as many as it was declared with."""
    other, i, parameters = translated(code), code.kernels.index(name), code.signatures[name].parameters
    n = getattr(load(other), f"mx_count_{i}")()
    if n != len(parameters):
        raise error(ValueError, f"kernel {name} has {n} arguments, its signature {len(parameters)}")
    found = Function(other, str(i), parameters)
    found.name = name
    return found
