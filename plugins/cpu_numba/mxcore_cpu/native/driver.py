"""The parallel driver: parts of a job dealt to the threads of GNU OpenMP.

It is the same pool of threads that Numba's ``omp`` layer uses, entered by OpenMP's own door, without Numba.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from typing import Any

from mxcore.plugin import let_through

from ..locks import once
from .code import binding, load, optimise, parsed
from .kept import kept
from .writing import counting

__all__ = ["driver", "usable"]


@functools.cache
@once
def usable() -> bool:
    """Whether there is such a pool, and nobody has asked Numba for another one."""
    if sys.platform != "linux" or any(name.startswith("NUMBA_THREADING_LAYER") for name in os.environ):
        return False
    try:
        library = ctypes.CDLL("libgomp.so.1")
        for name in ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads"):
            binding().add_symbol(name, ctypes.cast(getattr(library, name), ctypes.c_void_p).value)
    except (OSError, AttributeError, ImportError) as e:
        let_through(e)
        return False
    return True


def _write(name: str) -> Any:
    """``void name(int64 part, int64 frame, int64 parts, int64 n)``"""
    from llvmlite import ir

    i32, i64, nothing = ir.IntType(32), ir.IntType(64), ir.VoidType()
    module = ir.Module(name)
    parallel = ir.Function(module, ir.FunctionType(nothing, [i64, i64, i32, i32]), "GOMP_parallel")
    asked = [ir.Function(module, ir.FunctionType(i32, []), f"omp_get_{what}") for what in ("thread_num", "num_threads")]

    # What each thread does, with a job of four words: part, frame, number of parts, number of items.
    share = ir.Function(module, ir.FunctionType(nothing, [i64]), "share")
    b = ir.IRBuilder(share.append_basic_block())
    thread, threads = (b.sext(b.call(f, []), i64) for f in asked)
    job = b.inttoptr(share.args[0], i64.as_pointer())
    part, frame, parts, n = (b.load(b.gep(job, [i64(k)])) for k in range(4))
    f = b.inttoptr(part, ir.FunctionType(nothing, [i64] * 3).as_pointer())
    i = b.alloca(i64)
    b.store(thread, i)
    with counting(b, i, parts, threads) as at:
        first, last = (b.sdiv(b.mul(b.add(at, i64(k)), n), parts) for k in (0, 1))
        b.call(f, [first, last, frame])
    b.ret_void()

    drive = ir.Function(module, ir.FunctionType(nothing, [i64] * 4), name)
    b = ir.IRBuilder(drive.append_basic_block())
    job = b.alloca(i64, 4)
    for k, x in enumerate(drive.args):
        b.store(x, b.gep(job, [i64(k)]))
    b.call(parallel, [b.ptrtoint(share, i64), b.ptrtoint(job, i64), b.trunc(drive.args[2], i32), i32(0)])
    b.ret_void()
    return module


@functools.cache
def driver() -> int:
    """The address of ``void f(int64 part, int64 frame, int64 parts, int64 n)``: it calls part(first, last, frame)."""
    if not usable():
        raise OSError("there is no GNU OpenMP")
    found = kept([], "mxcore_driver", lambda name: optimise(parsed(_write(name)), name, 1))
    assert found is not None
    address = load(found)
    assert address is not None  # its needs were looked up
    return address
