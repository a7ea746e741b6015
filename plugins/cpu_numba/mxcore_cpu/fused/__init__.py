"""Fused elementwise chains: written in LLVM's language, compiled once and kept on disk."""

from __future__ import annotations

import functools
import platform
import warnings
from collections import OrderedDict
from typing import Any

from mxcore.plugin import Fused, fork_safe_lock, let_through

from .. import background
from ..loading import compiles
from ..locks import once
from ..native import Object, kept, load, optimise, parsed
from .bound import Code, Compiled
from .emit import write_chain
from .expressions import REGISTERS
from .scalars import bitcode

__all__ = ["compile_chain"]

#: Held while what is kept changes: whoever finds a chain there does not wait for who makes another.
_lock = fork_safe_lock()
_codes: dict[Any, Code] = {}
#: Chain and sizes -> what :func:`compile_chain` gives; it binds the code of the chain to sizes, and is made again in no
#: time.
_compiled: OrderedDict[Any, Compiled | None] = OrderedDict()
_LIMIT = 512


def compile_chain(chain: Fused) -> Compiled | None:
    """The code of a :class:`mxcore.plugin.Fused`, or None if it cannot be compiled.

    A chain with a pattern is compiled here, one without when it meets arrays. One warning says why a chain cannot be
    compiled.
    """
    key = (chain.key, chain.dims)
    with _lock:
        if key in _compiled:
            _compiled.move_to_end(key)
            return _compiled[key]
    return _keep(key, chain)


@once
def _keep(key: Any, chain: Fused) -> Compiled | None:
    if key in _compiled:  # another thread was faster
        return _compiled[key]
    try:
        made = _make(chain)
    except background.NotCompiled:
        return None  # until it is asked for again
    with _lock:
        _compiled[key] = made
        if len(_compiled) > _LIMIT:
            _compiled.popitem(last=False)
    return made


def _make(chain: Fused) -> Compiled | None:
    if not compiles() or chain.dtype not in ("float32", "float64") or not REGISTERS.keys() >= {*chain.types.values()}:
        return None
    if "float16" in chain.types.values() and not _has_halves():
        return None
    if chain.pattern is None or chain.dims is None:
        return Compiled(chain, None, _code)
    if 0 in chain.dims:
        return None
    try:
        if not background.enabled():
            return Compiled(chain, _code(chain), _code)
        with background.trying():
            return Compiled(chain, _code(chain), _code)
    except background.NotCompiled:
        raise
    except Exception as e:
        let_through(e)
        if chain.key not in _failed:
            _failed.add(chain.key)
            warnings.warn(
                f"a fused chain could not be compiled and runs in parts: {type(e).__name__}: {e}", stacklevel=4
            )
        return None


_failed: set[Any] = set()


@functools.cache
def _has_halves() -> bool:
    """Whether the processor converts float16 by itself; else LLVM calls functions that nobody brings."""
    import llvmlite.binding as llvm

    known = not platform.machine().lower().startswith(("x86", "amd64", "i"))
    return bool(llvm.get_host_cpu_features().get("f16c", known))


def _code(chain: Fused) -> Code:
    return _codes.get(chain.key) or _build(chain)


@once
def _build(chain: Fused) -> Code:
    if chain.key in _codes:  # another thread was faster
        return _codes[chain.key]
    found = kept([repr(chain.key)], "mxcore_fused", lambda name: _compile(chain, name))
    assert found is not None
    address = load(found)
    if address is None:
        raise ImportError(f"this process lacks one of {', '.join(found.needs)}")
    code = _codes[chain.key] = Code(chain, address)
    return code


def _compile(chain: Fused, name: str) -> Object:
    module, called = write_chain(chain, name)
    return optimise(parsed(module, *(bitcode(fn, types) for fn, types in called)), name)
