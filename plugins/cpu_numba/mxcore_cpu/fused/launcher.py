"""What calls the code of a chain: a function of Python for each bound chain, all of one code.

It fills the partial results of reductions, runs the chain over its items, here or dealt to threads, and puts the
partial results together.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from ..locks import once
from ..native import FAST, function, kept, load, optimise, parsed
from ..native.writing import counting, word
from .emit import DRIVER, FINISH, RECORD, partial

__all__ = ["runner"]


def _fold(b: Any, kind: Any, old: Any, x: Any) -> Any:
    """Two partial results of a kind that is known at run time only."""
    low = b.select(b.icmp_signed("==", kind, kind.type(1)), partial(b, 1, old, x), partial(b, 2, old, x))
    return b.select(b.icmp_signed("==", kind, kind.type(0)), partial(b, 0, old, x), low)


def _write(name: str) -> Any:
    """``PyObject *name(PyObject *frame, PyObject **args, Py_ssize_t n)``: no argument, or the number of parts."""
    from llvmlite import ir

    i64, i8p, double, single = ir.IntType(64), ir.IntType(8).as_pointer(), ir.DoubleType(), ir.FloatType()
    module = ir.Module(name)

    def outside(result: Any, name: str, *args: Any) -> Any:
        return ir.Function(module, ir.FunctionType(result, args), name)

    number = outside(i64, "PyLong_AsLongLong", i8p)
    release, take = outside(i8p, "PyEval_SaveThread"), outside(ir.VoidType(), "PyEval_RestoreThread", i8p)
    hold = outside(ir.VoidType(), "Py_IncRef", i8p)
    none = ir.GlobalVariable(module, ir.IntType(8), "_Py_NoneStruct")

    f = ir.Function(module, ir.FunctionType(i8p, [i8p, i8p, i64]), name)
    b = ir.IRBuilder(f.append_basic_block())
    place = b.alloca(i64)
    again = b.alloca(i64)
    parts_at = b.alloca(i64)
    frame = b.call(number, [f.args[0]])
    b.store(i64(1), parts_at)
    with b.if_then(b.icmp_signed(">", f.args[2], i64(0))):
        b.store(b.call(number, [b.load(b.bitcast(f.args[1], i8p.as_pointer()))]), parts_at)
    parts = b.load(parts_at)
    state = b.call(release, [])
    records, first = word(b, frame, i64(2), i64), word(b, frame, i64(FINISH), i64)

    def record(r: Any) -> list[Any]:
        at = b.add(first, b.mul(r, i64(RECORD)))
        return [word(b, frame, b.add(at, i64(k)), i64) for k in range(RECORD)]

    def start(k: Any) -> Any:
        far = b.select(b.icmp_signed("==", k, i64(1)), double(-math.inf), double(math.inf))
        return b.select(b.icmp_signed("==", k, i64(0)), double(0.0), far)

    def put(address: Any, x: Any) -> None:
        b.store(x, b.inttoptr(address, x.type.as_pointer()))

    b.store(i64(0), place)
    with counting(b, place, records, i64(1)) as r:
        kind, copies, size, _, partials, _, _ = record(r)
        b.store(i64(0), again)
        with counting(b, again, b.mul(copies, size), i64(1)) as i:
            put(b.add(partials, b.mul(i, i64(8))), start(kind))

    chain, items = word(b, frame, i64(0), i64), word(b, frame, i64(1), i64)
    with b.if_else(b.icmp_signed(">", parts, i64(1))) as (many, one):
        with many:
            drive = ir.FunctionType(ir.VoidType(), [i64] * 4).as_pointer()
            b.call(b.inttoptr(word(b, frame, i64(DRIVER), i64), drive), [chain, frame, parts, items])
        with one:
            b.call(b.inttoptr(chain, ir.FunctionType(ir.VoidType(), [i64] * 3).as_pointer()), [i64(0), items, frame])

    b.store(i64(0), place)
    with counting(b, place, records, i64(1)) as r:
        kind, copies, size, out, partials, divisor, item = record(r)
        divisor = b.bitcast(divisor, double)
        copy = b.alloca(i64)
        total = b.alloca(double)
        b.store(i64(0), again)
        with counting(b, again, size, i64(1)) as i:
            here = b.add(partials, b.mul(i, i64(8)))
            b.store(word(b, here, i64(0), double), total)
            b.store(i64(1), copy)
            with counting(b, copy, copies, i64(1)) as c:
                b.store(_fold(b, kind, b.load(total), word(b, here, b.mul(c, size), double)), total)
            result = b.fdiv(b.load(total), divisor)
            with b.if_else(b.icmp_signed("==", item, i64(4))) as (short, long):
                with short:
                    put(b.add(out, b.mul(i, i64(4))), b.fptrunc(result, single))
                with long:
                    put(b.add(out, b.mul(i, i64(8))), result)
    b.call(take, [state])
    b.call(hold, [none])
    b.ret(none)
    return module


@functools.cache
@once
def _address() -> int:
    found = kept([], "mxcore_launch", lambda name: optimise(parsed(_write(name)), name, 2))
    assert found is not None
    address = load(found)
    if address is None:
        raise ImportError("this Python does not show its functions to compiled code")
    return address


def runner(frame: int) -> Any:
    """A function for the chain of the frame at an address: ``f()`` runs it here, ``f(parts)`` in that many parts."""
    return function(_address(), FAST, frame)
