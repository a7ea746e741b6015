"""Working space of kernels: what Numba's runtime does for ``np.empty``, without that runtime."""

from __future__ import annotations

import functools
from typing import Any

__all__ = ["complete"]

#: Bytes of the record before the space: count of references, two words that are not used here, address, size, one more.
_RECORD = 48


@functools.cache
def _runtime() -> str:
    """In LLVM's language, the functions of Numba's runtime that kernels call."""
    from llvmlite import ir

    i32, i64, i8p = ir.IntType(32), ir.IntType(64), ir.IntType(8).as_pointer()
    module = ir.Module("runtime")
    malloc = ir.Function(module, ir.FunctionType(i8p, [i64]), "malloc")
    free = ir.Function(module, ir.FunctionType(ir.VoidType(), [i8p]), "free")

    make = ir.Function(module, ir.FunctionType(i8p, [i64, i32]), "NRT_MemInfo_alloc_aligned")
    b = ir.IRBuilder(make.append_basic_block())
    size, align = make.args[0], b.zext(make.args[1], i64)
    record = b.call(malloc, [b.add(b.add(size, align), i64(_RECORD))])
    with b.if_then(b.icmp_unsigned("==", record, i8p(None)), likely=False):
        b.ret(record)
    after = b.add(b.ptrtoint(record, i64), b.add(align, i64(_RECORD - 1)))
    words = b.bitcast(record, i64.as_pointer())
    zero = i64(0)
    for i, x in enumerate((i64(1), zero, zero, b.sub(after, b.urem(after, align)), size, zero)):
        b.store(x, b.gep(words, [i64(i)]))
    b.ret(record)

    drop = ir.Function(module, ir.FunctionType(ir.VoidType(), [i8p]), "NRT_MemInfo_call_dtor")
    b = ir.IRBuilder(drop.append_basic_block())
    b.call(free, [drop.args[0]])
    b.ret_void()
    return str(module)


def complete(module: Any, llvm: Any) -> None:
    """Give a parsed module what it asks for of this."""
    asked = {f.name for f in module.functions if f.is_declaration}
    if asked & {"NRT_MemInfo_alloc_aligned", "NRT_MemInfo_call_dtor"}:
        module.link_in(llvm.parse_assembly(_runtime()))
