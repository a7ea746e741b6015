"""What the source of a fused chain calls: the innermost loop, written in LLVM's language, and the launcher.

The innermost loop is not left to Numba because only the printer of a chain knows what LLVM would have to find out: that
no element depends on another one, whatever the buffers are. An input may share its buffer with an output; a loop over
two such arrays that Numba compiles is not vectorised, or it is compiled twice over. The loop here is marked parallel,
so it needs neither a check nor a second version, and it asks for the widest vectors that the machine has.

A chain reads everything from its frame, an array of 64-bit words; see :mod:`.bound` for what lies where.
"""

from __future__ import annotations

import functools
from typing import Any

from .. import cache, jit
from ..jit import Lazy, call_part, helper, intrinsic
from ..typing import Scalar

__all__ = [
    "FINISH",
    "HEADER",
    "KINDS",
    "RECORD",
    "REGISTERS",
    "add_partial",
    "half",
    "half_value",
    "launch",
    "line_of",
    "real",
    "value",
    "word",
]

#: Words before the dimensions, words of one reduction in the frame; where the place of those is found.
HEADER, RECORD, FINISH = 12, 7, 11
KINDS = {"sum": 0, "mean": 0, "max": 1, "min": 2}
#: The type in which code holds a number of each dtype that chains know.
REGISTERS = {
    "float16": "float32",
    "float32": "float32",
    "float64": "float64",
    "bool": "uint8",
    "uint8": "uint8",
    "int8": "int8",
    "int32": "int32",
    "int64": "int64",
}

step = helper  # the name under which chains use it


@intrinsic
def word(typingctx: Any, address: Any, i: Any) -> Any:
    """The i-th 64-bit integer at an address."""
    return _load(typingctx, address, i, "int64")


@intrinsic
def real(typingctx: Any, address: Any, i: Any) -> Any:
    """The i-th float64 at an address."""
    return _load(typingctx, address, i, "float64")


def _load(typingctx: Any, address: Any, i: Any, name: str) -> Any:
    from numba import types

    kind = getattr(types, name)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], context.get_value_type(kind).as_pointer())
        return builder.load(builder.gep(pointer, [args[1]]))

    return kind(types.int64, types.int64), codegen


@intrinsic
def value(typingctx: Any, like: Any, address: Any) -> Any:
    """The element of a type at an address."""
    from numba import types

    kind = like.dtype if isinstance(like, types.NumberClass) else like

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(builder.inttoptr(args[1], context.get_value_type(kind).as_pointer()))

    return kind(like, types.int64), codegen


@intrinsic
def half_value(typingctx: Any, address: Any) -> Any:
    """The float16 at an address, as float32."""
    from numba import types

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        from llvmlite import ir

        return builder.fpext(builder.load(builder.inttoptr(args[0], ir.HalfType().as_pointer())), ir.FloatType())

    return types.float32(types.int64), codegen


@intrinsic
def half(typingctx: Any, x: Any) -> Any:
    """A float32 rounded to float16."""
    from numba import types

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        from llvmlite import ir

        return builder.fpext(builder.fptrunc(args[0], ir.HalfType()), ir.FloatType())

    return types.float32(types.float32), codegen


@intrinsic
def put(typingctx: Any, address: Any, x: Any) -> Any:
    """Write a number to an address."""
    from numba import types

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[1], builder.inttoptr(args[0], args[1].type.as_pointer()))
        return context.get_dummy_value()

    return types.void(types.int64, x), codegen


@helper
def add_partial(kind: int, address: int, x: Scalar) -> None:
    """Add to the partial result at an address, or take the larger or smaller of both; NaN stays."""
    old = real(address, 0)
    if kind == 0:
        put(address, old + x)
    elif kind == 1:
        put(address, x if (x > old) | (x != x) else old)
    else:
        put(address, x if (x < old) | (x != x) else old)


class _Numbers:
    """LLVM types and constants for one float type."""

    def __init__(self, real: Any) -> None:
        from llvmlite import ir

        self.real = real
        self.bits = 32 if isinstance(real, ir.FloatType) else 64
        self.int = ir.IntType(self.bits)
        self.double = ir.DoubleType()
        self.top = self.int((1 << self.bits - 1) - 1)  # greater than any number's order, and a NaN itself
        self.low = self.int(1 << self.bits - 1)

    def wide(self, builder: Any, x: Any) -> Any:
        return x if self.bits == 64 else builder.fpext(x, self.double)

    def order(self, builder: Any, x: Any, nan: Any) -> Any:
        """An integer that is ordered like the number: maxima of integers need no rules for NaN, so they vectorise."""
        i = builder.bitcast(x, self.int)
        i = builder.xor(i, builder.and_(builder.ashr(i, self.int(self.bits - 1)), self.top))
        return builder.select(builder.fcmp_unordered("uno", x, x), nan, i)

    def number(self, builder: Any, i: Any) -> Any:
        i = builder.xor(i, builder.and_(builder.ashr(i, self.int(self.bits - 1)), self.top))
        return builder.bitcast(i, self.real)


class _Reduction:
    """One value reduced along the innermost loop."""

    def __init__(self, numbers: Any, kind: int) -> None:
        self.n, self.kind = numbers, kind
        self.start = numbers.double(0.0) if kind == 0 else numbers.low if kind == 1 else numbers.top

    def combine(self, builder: Any, old: Any, x: Any) -> Any:
        n = self.n
        if self.kind == 0:
            return builder.fadd(old, n.wide(builder, x), flags=("reassoc",))
        key = n.order(builder, x, n.top if self.kind == 1 else n.low)
        return builder.select(builder.icmp_signed(">" if self.kind == 1 else "<", key, old), key, old)

    def result(self, builder: Any, total: Any) -> Any:
        return total if self.kind == 0 else self.n.wide(builder, self.n.number(builder, total))

    def in_place(self, builder: Any, old: Any, x: Any) -> Any:
        """Combine with the partial result of a column."""
        x = self.n.wide(builder, x)
        if self.kind == 0:
            return builder.fadd(old, x)
        better = builder.fcmp_ordered(">" if self.kind == 1 else "<", x, old)
        return builder.select(builder.or_(better, builder.fcmp_unordered("uno", x, x)), x, old)


def line_of(
    function: Lazy,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    reduced: tuple[str, ...],
    kinds: tuple[int, ...],
    across: bool,
) -> Lazy:
    """Make the innermost loop of a chain.

    Parameters
    ----------
    function : helper
        From the elements of all `inputs` and the invariants to a tuple: a value for each of `outputs`, then one for
        each reduction.
    inputs, outputs, reduced : tuple of str
        Dtypes of the arrays that vary along the loop, and of what is reduced.
    kinds : tuple of int
        Of the reductions, see :data:`KINDS`.
    across : bool
        Reductions go across lines, into one partial result for each element; otherwise along the line.

    Returns
    -------
    intrinsic
        ``line(count, addresses, invariants, partials)``: how many elements; `addresses`
        of inputs and outputs, `invariants` what else the function takes, `partials` the addresses of partial results.
        It returns the reductions along the line as float64, in a tuple. Tuples without a member must hold a zero.
    """

    @intrinsic
    def line(typingctx: Any, count: Any, addresses: Any, invariants: Any, partials: Any) -> Any:
        from numba import types

        n_inv = function.__wrapped__.__code__.co_argcount - len(inputs)
        elements = [getattr(types, REGISTERS[t]) for t in inputs]
        called = function._numba_type_.get_call_type(typingctx, (*elements, *invariants.types[:n_inv]), {})
        result = types.UniTuple(types.float64, len(kinds)) if kinds and not across else types.void
        signature = result(count, addresses, invariants, partials)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return _emit(context, builder, signature, args, called)

        return signature, codegen

    def _emit(context: Any, builder: Any, signature: Any, args: Any, called: Any) -> Any:
        from llvmlite import ir

        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        count, addresses, invariants, partials = args
        module, i64 = builder.module, ir.IntType(64)
        target = function._made.overloads[called.args]
        context.active_code_library.add_linking_library(target.library)
        callee = context.declare_function(module, target.fndesc)
        from numba import types

        def stored(dtype: str) -> Any:
            return ir.HalfType() if dtype == "float16" else context.get_value_type(getattr(types, REGISTERS[dtype]))

        double = ir.DoubleType()
        reductions = [_Reduction(_Numbers(stored(dtype)), kind) for dtype, kind in zip(reduced, kinds)]
        group = _distinct(module)

        def pointers(packed: Any, kinds: Any) -> Any:
            return [
                builder.inttoptr(builder.extract_value(packed, i), kind.as_pointer()) for i, kind in enumerate(kinds)
            ]

        def local(instruction: Any) -> Any:
            instruction.set_metadata("llvm.access.group", group)
            return instruction

        n_in, n_out = len(inputs), len(outputs)
        at = pointers(addresses, [*map(stored, inputs), *map(stored, outputs)])
        columns = pointers(partials, [double] * len(kinds)) if across else []
        constants = [builder.extract_value(invariants, i) for i in range(len(called.args) - n_in)]
        before, loop, after = builder.block, builder.append_basic_block("line"), builder.append_basic_block("done")
        builder.cbranch(builder.icmp_signed(">", count, i64(0)), loop, after)
        builder.position_at_end(loop)
        i = builder.phi(i64)
        i.add_incoming(i64(0), before)
        totals = []
        for r in [] if across else reductions:
            totals.append(builder.phi(r.start.type))
            totals[-1].add_incoming(r.start, before)
        loaded = [local(builder.load(builder.gep(p, [i]))) for p in at[:n_in]]
        loaded = [builder.fpext(x, ir.FloatType()) if dtype == "float16" else x for x, dtype in zip(loaded, inputs)]
        _, found = context.call_conv.call_function(
            builder, callee, called.return_type, called.args, [*loaded, *constants]
        )
        found = [builder.extract_value(found, j) for j in range(n_out + len(kinds))]
        old = [local(builder.load(builder.gep(p, [i]))) for p in columns]
        for p, x, dtype in zip(at[n_in:], found, outputs):
            local(builder.store(builder.fptrunc(x, ir.HalfType()) if dtype == "float16" else x, builder.gep(p, [i])))
        for p, r, a, x in zip(columns, reductions, old, found[n_out:]):
            local(builder.store(r.in_place(builder, a, x), builder.gep(p, [i])))
        new = [r.combine(builder, total, x) for r, total, x in zip(reductions, totals, found[n_out:])]
        following = builder.add(i, i64(1), flags=("nuw", "nsw"))
        for phi, x in zip([i, *totals], [following, *new]):
            phi.add_incoming(x, builder.block)
        latch = builder.block
        branch = builder.cbranch(builder.icmp_signed("<", following, count), loop, after)
        branch.set_metadata("llvm.loop", _parallel(module, group))
        builder.position_at_end(after)
        if not totals:
            return context.get_dummy_value()
        ends = []
        for r, x in zip(reductions, new):
            ends.append(builder.phi(r.start.type))
            ends[-1].add_incoming(r.start, before)
            ends[-1].add_incoming(x, latch)
        return context.make_tuple(
            builder, signature.return_type, [r.result(builder, e) for r, e in zip(reductions, ends)]
        )

    return line


def _distinct(module: Any) -> Any:
    """A node of metadata that is equal to no other one: what names the accesses of one loop."""
    from llvmlite import ir

    class Distinct(ir.values.MDValue):  # type: ignore[misc]  # llvmlite comes without types
        def descr(self, buf: Any) -> None:
            buf.append("distinct !{}\n")

    return Distinct(module, (), name=str(len(module.metadata)))


def _parallel(module: Any, group: Any) -> Any:
    """Loop metadata: no iteration depends on another one through the accesses of the group."""
    from llvmlite import ir

    claim = ir.values.MDValue(
        module, (ir.MetaDataString(module, "llvm.loop.parallel_accesses"), group), name=str(len(module.metadata))
    )
    loop = ir.values.MDValue(module, (), name=str(len(module.metadata)))
    loop.operands = (loop, claim)  # its own first operand: that is how LLVM tells loops apart
    return loop


@intrinsic
def _drive_parts(typingctx: Any, driver: Any, part: Any, frame: Any, parts: Any, n: Any) -> Any:
    """Call the parallel driver of :mod:`mxcore_cpu.jit`."""
    from llvmlite import ir
    from numba import types

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        i64 = ir.IntType(64)
        drive = builder.inttoptr(args[0], ir.FunctionType(ir.VoidType(), [i64] * 4).as_pointer())
        builder.call(drive, list(args[1:]))
        return context.get_dummy_value()

    return types.void(*[types.int64] * 5), codegen


def _launch(frame: int, driver: int, parts: int) -> None:
    """Run the chain of a frame, in that many parts at once, and put the partial results of its reductions together."""
    records, first = word(frame, 2), word(frame, FINISH)
    for r in range(records):
        at = first + r * RECORD
        kind, size, total = word(frame, at), word(frame, at + 2), word(frame, at + 1) * word(frame, at + 2)
        partials = word(frame, at + 4)
        start = 0.0 if kind == 0 else (-_INFINITY if kind == 1 else _INFINITY)
        for i in range(total):
            put(partials + i * 8, start)
    if parts > 1:
        _drive_parts(driver, word(frame, 0), frame, parts, word(frame, 1))
    else:
        call_part(word(frame, 0), 0, word(frame, 1), frame)
    for r in range(records):
        at = first + r * RECORD
        kind, copies, size = word(frame, at), word(frame, at + 1), word(frame, at + 2)
        out, partials, divisor = word(frame, at + 3), word(frame, at + 4), real(frame, at + 5)
        for i in range(size):
            here = partials + i * 8
            for c in range(1, copies):
                add_partial(kind, here, real(here, c * size))
            total = real(here, 0) / divisor
            if word(frame, at + 6) == 4:
                put(out + i * 4, _SINGLE(total))
            else:
                put(out + i * 8, total)


_INFINITY = float("inf")


def _SINGLE(x: float) -> Any:  # replaced by NumPy's float32 where it is compiled
    return x


@functools.cache
def launch() -> Any:
    """Return the launcher, compiled: ``launch(frame, driver, parts)``."""
    import types

    import numpy as np

    nb = jit.numba()
    function = types.FunctionType(_launch.__code__, dict(globals(), _SINGLE=np.float32), "_launch")
    function.__module__ = __name__
    compiled = cache.attach(jit.njit(function), cache.source_stamp(_launch))
    compiled.compile(nb.void(*[nb.int64] * 3))
    return compiled
