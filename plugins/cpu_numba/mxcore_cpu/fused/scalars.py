"""The functions of :mod:`mxcore_cpu.math` as code that chains are linked with.

Numba compiles each once for each type; what it gives is kept as LLVM's bitcode, and merged into chains.
"""

from __future__ import annotations

import functools
import threading
from typing import Any

from .. import background, cache, jit
from ..native import shipped
from ..native.kept import name_of
from .expressions import ir_type

__all__ = ["bitcode"]

_lock = threading.Lock()


@functools.lru_cache(256)
def bitcode(fn: str, types: tuple[str, ...]) -> bytes:
    """LLVM's bitcode of a function of :mod:`mxcore_cpu.math` for these types, under the name that chains call it by."""
    from .. import math

    stamp = _stamp(getattr(math, fn), fn)
    name = name_of("mxcore_scalar", [fn, *types, stamp or ""])
    if stamp is None:
        return _compile(fn, types)
    brought = shipped.find(["scalar", fn, *types], stamp)
    return brought or cache.CODE.made(name + ".code", lambda: _compile(fn, types))


def _stamp(function: Any, fn: str) -> str | None:
    def named(x: Any) -> Any:
        return function(x)

    return cache.source_stamp(named, fn)


def _compile(fn: str, types: tuple[str, ...]) -> bytes:
    """Compile a function of one or two numbers, and one around it that has no more than these arguments."""
    if background.enabled():
        try:
            background.require()
        except background.NotCompiled:
            background.ask({"scalar": [fn, types]})
            raise
    nb = jit.numba()
    from llvmlite import ir
    from numba.core import cgutils
    from numba.core.registry import cpu_target

    from .. import math

    called = getattr(math, fn)
    one, two = (lambda x: called(x)), (lambda x, y: called(x, y))
    compiled = jit.njit(
        one if len(types) == 1 else two, fastmath=set(jit.CONTRACT), forceinline=True, no_cpython_wrapper=True
    )
    signature = tuple(getattr(nb, t) for t in types)
    compiled.compile(signature)
    result = compiled.overloads[signature]
    context = cpu_target.target_context
    module = ir.Module("scalar")
    kind = context.get_value_type(result.signature.return_type)
    name = f"mxcore.{fn}.{'.'.join(types)}"
    f = ir.Function(module, ir.FunctionType(kind, [ir_type(t) for t in types]), name)
    f.attributes.add("alwaysinline")
    b = ir.IRBuilder(f.append_basic_block())
    target = context.declare_function(module, result.fndesc)
    _, value = context.call_conv.call_function(b, target, result.signature.return_type, signature, f.args)
    b.ret(value)
    import llvmlite.binding as llvm

    whole = llvm.parse_assembly(cgutils.normalize_ir_text(str(module)))
    whole.link_in(result.library._get_module_for_linking(), preserve=True)
    for g in (*whole.functions, *whole.global_variables):
        if not g.is_declaration and g.name != name:
            g.linkage = "internal"
    content: bytes = whole.as_bitcode()
    return content
