"""The code of a fused chain, written in LLVM's language.

It runs over blocks of lines: a line is the last dimension (or a part of it), a block some consecutive indices of the
other dimensions. Sizes come from the frame, an array of 64-bit words, so chains of one pattern share their code; see
:mod:`.bound` for what lies where.

The innermost loop says what LLVM would have to find out: that no element depends on another one, whatever the buffers
are. An input may share its buffer with an output; a loop over two such arrays that LLVM knows nothing of is not
vectorised, or it is compiled twice over. The loop here is marked parallel, so it needs neither a check nor a second
version, and it asks for the widest vectors that the machine has.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from mxcore.plugin import Fused

from .expressions import REGISTERS, Value, Writer, ir_type

__all__ = ["DRIVER", "FINISH", "HEADER", "KINDS", "RECORD", "partial", "write_chain"]

#: Words of the frame before the dimensions, words of one reduction; where the place of those, and the driver, stand.
HEADER, RECORD, FINISH, DRIVER = 13, 7, 11, 12
KINDS = {"sum": 0, "mean": 0, "max": 1, "min": 2}


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
        return builder.select(builder.fcmp_unordered("uno", x, x, flags=("contract",)), nan, i)

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


def partial(builder: Any, kind: int, old: Any, x: Any) -> Any:
    """A partial result (float64) and another value: their sum, or the larger or smaller of both; NaN stays."""
    if kind == 0:
        return builder.fadd(old, x, flags=("contract",))
    better = builder.fcmp_ordered(">" if kind == 1 else "<", x, old, flags=("contract",))
    nan = builder.fcmp_unordered("uno", x, x, flags=("contract",))
    return builder.select(builder.or_(better, nan), x, old)


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


class _Chain:
    """What of a chain the code depends on."""

    def __init__(self, chain: Fused) -> None:
        assert chain.pattern is not None and chain.dims is not None
        self.chain, self.dims = chain, "abcdefghijklmnopqrstuvwxyz"[: len(chain.dims)]
        self.pattern, self.last, self.n_in = chain.pattern, self.dims[-1], len(chain.inputs)
        self.types = [*map(chain.type_of, chain.inputs), *map(chain.type_of, chain.outputs)]
        self.sizes = [np.dtype(t).itemsize for t in self.types]
        self.along = [i for i in range(self.n_in) if self.last in self.pattern[i]]  # vary along the line
        self.fixed = [i for i in range(self.n_in) if self.last not in self.pattern[i]]
        self.plain = [j for j, how in enumerate(chain.reduce) if how is None]
        self.kinds = {j: KINDS[how] for j, how in enumerate(chain.reduce) if how is not None}
        self.across = bool(self.kinds) and self.last in self.pattern[self.n_in + next(iter(self.kinds))]


class _Body:
    """Writes ``void f(first, last, frame)``: some blocks of lines of a chain."""

    def __init__(self, known: _Chain, module: Any, name: str) -> None:
        from llvmlite import ir

        self.known, self.module = known, module
        self.i64 = ir.IntType(64)
        f = ir.Function(module, ir.FunctionType(ir.VoidType(), [self.i64, self.i64, self.i64]), name)
        set.add(f.attributes, '"prefer-vector-width"="512"')
        self.function = f
        self.b = ir.IRBuilder(f.append_basic_block())
        self.writer = Writer(self.b)
        self.frame = self.b.inttoptr(f.args[2], self.i64.as_pointer())
        self._write()

    # -- pieces ----------------------------------------------------------------------------------------------------
    def _word(self, i: int) -> Any:
        return self.b.load(self.b.gep(self.frame, [self.i64(i)]))

    def _at(self, address: Any, kind: Any) -> Any:
        return self.b.inttoptr(address, kind.as_pointer())

    def _stored(self, dtype: str) -> Any:
        from llvmlite import ir

        return ir.HalfType() if dtype == "float16" else ir_type(REGISTERS[dtype])

    def _held(self, x: Any, dtype: str) -> Value:
        """What was loaded, as code holds it."""
        from llvmlite import ir

        return (self.b.fpext(x, ir.FloatType()) if dtype == "float16" else x), REGISTERS[dtype]

    def _smaller(self, x: Any, y: Any) -> Any:
        return self.b.select(self.b.icmp_signed("<", x, y), x, y)

    def _offset(self, mask: str, begin: Any) -> Any:
        """Where in an array over these dimensions the line lies."""
        b, dims = self.b, self.known.dims
        total = begin if self.known.last in mask else self.i64(0)
        for c in dims[:-1]:
            if c in mask:
                term = b.load(self.index[c])
                for d in dims[dims.index(c) + 1 : -1]:
                    if d in mask:
                        term = b.mul(term, self.sizes[d])
                if self.known.last in mask:
                    term = b.mul(term, self.n)
                total = b.add(total, term)
        return total

    # -- the whole -------------------------------------------------------------------------------------------------
    def _write(self) -> None:
        b, known, i64 = self.b, self.known, self.i64
        first, last, _ = self.function.args
        rows, self.n, chunk, chunks, block, by_block, by_part, size = (self._word(i) for i in range(3, 11))
        place = itertools.count(HEADER)
        self.sizes = {c: self._word(next(place)) for c in known.dims[:-1]}
        ins = [self._word(next(place)) for _ in range(known.n_in)]
        outs = {j: self._word(next(place)) for j in (*known.plain, *known.kinds)}
        scalars = {}
        for name in known.chain.scalars:
            x = b.bitcast(self._word(next(place)), ir_type("float64"))
            dtype = known.chain.type_of(name)
            found = self.writer.cast((x, "float64"), REGISTERS[dtype])
            scalars[name] = self.writer.rounded(found) if dtype == "float16" else found
        self.index = {c: b.alloca(i64) for c in known.dims[:-1]}
        item, row = b.alloca(i64), b.alloca(i64)
        b.store(first, item)
        items, lines, after_lines, done = (self.function.append_basic_block() for _ in range(4))
        start = self.function.append_basic_block()
        b.branch(items)

        b.position_at_end(items)
        at = b.load(item)
        b.cbranch(b.icmp_signed("<", at, last), start, done)
        b.position_at_end(start)
        number, part = b.sdiv(at, chunks), b.srem(at, chunks)
        begin, at_row = b.mul(part, chunk), b.mul(number, block)
        end, count = self._smaller(rows, b.add(at_row, block)), self._smaller(chunk, b.sub(self.n, begin))
        copy = b.mul(b.add(b.mul(number, by_block), b.mul(part, by_part)), size)
        b.store(at_row, row)
        rest = at_row
        for c in known.dims[-2:0:-1]:
            b.store(b.srem(rest, self.sizes[c]), self.index[c])
            rest = b.sdiv(rest, self.sizes[c])
        if len(known.dims) > 1:
            b.store(rest, self.index[known.dims[0]])
        b.branch(lines)

        b.position_at_end(lines)
        body = self.function.append_basic_block()
        b.cbranch(b.icmp_signed("<", b.load(row), end), body, after_lines)
        b.position_at_end(body)
        self._line(begin, count, copy, ins, outs, scalars)
        b.store(b.add(b.load(row), i64(1)), row)
        self._advance()
        b.branch(lines)

        b.position_at_end(after_lines)
        b.store(b.add(b.load(item), i64(1)), item)
        b.branch(items)
        b.position_at_end(done)
        b.ret_void()

    def _advance(self) -> None:
        """To the next line."""
        b, dims = self.b, self.known.dims
        done = self.function.append_basic_block()
        for c in dims[-2::-1] if len(dims) > 1 else "":
            following = b.add(b.load(self.index[c]), self.i64(1))
            b.store(following, self.index[c])
            if c == dims[0]:
                break
            carry = self.function.append_basic_block()
            b.cbranch(b.icmp_signed("==", following, self.sizes[c]), carry, done)
            b.position_at_end(carry)
            b.store(self.i64(0), self.index[c])
        b.branch(done)
        b.position_at_end(done)

    def _line(
        self, begin: Any, count: Any, copy: Any, ins: Sequence[Any], outs: dict[int, Any], scalars: dict[str, Value]
    ) -> None:
        b, known, i64 = self.b, self.known, self.i64
        double, chain, n_in = ir_type("float64"), known.chain, known.n_in
        offsets: dict[tuple[str, int], Any] = {}
        for i in (*range(n_in), *(n_in + j for j in known.plain)):
            key = known.pattern[i], known.sizes[i]
            if key not in offsets:
                offsets[key] = b.mul(self._offset(key[0], begin), i64(key[1]))
        addresses = [*ins, *(outs.get(j) for j in range(len(chain.outputs)))]

        def pointer(i: int) -> Any:
            address = b.add(addresses[i], offsets[known.pattern[i], known.sizes[i]])
            return self._at(address, self._stored(known.types[i]))

        at = {i: pointer(i) for i in known.along} | {n_in + j: pointer(n_in + j) for j in known.plain}
        names = dict(scalars)
        for i in known.fixed:
            names[chain.inputs[i]] = self._held(b.load(pointer(i)), known.types[i])
        if known.kinds:
            mask = known.pattern[n_in + next(iter(known.kinds))]
            x_partial = b.mul(b.add(copy, self._offset(mask, begin)), i64(8))
            partials = {j: self._at(b.add(outs[j], x_partial), double) for j in known.kinds}
        reductions = {
            j: _Reduction(_Numbers(self._stored(known.types[n_in + j])), kind) for j, kind in known.kinds.items()
        }

        group = _distinct(self.module)

        def local(instruction: Any) -> Any:
            instruction.set_metadata("llvm.access.group", group)
            return instruction

        before, loop, after = b.block, self.function.append_basic_block("line"), self.function.append_basic_block()
        b.cbranch(b.icmp_signed(">", count, i64(0)), loop, after)
        b.position_at_end(loop)
        i = b.phi(i64)
        i.add_incoming(i64(0), before)
        totals: dict[int, Any] = {}
        for j, r in () if known.across else reductions.items():
            totals[j] = b.phi(r.start.type)
            totals[j].add_incoming(r.start, before)
        loaded = {k: local(b.load(b.gep(at[k], [i]))) for k in known.along}
        names |= {chain.inputs[k]: self._held(x, known.types[k]) for k, x in loaded.items()}
        for name, tree in chain.steps:
            names[name] = self._step(name, tree, names)
        old = {j: local(b.load(b.gep(partials[j], [i]))) for j in known.kinds} if known.across else {}
        for j in known.plain:
            x = self._found(chain.outputs[j], names)
            if known.types[n_in + j] == "float16":
                from llvmlite import ir

                x = b.fptrunc(x, ir.HalfType())
            local(b.store(x, b.gep(at[n_in + j], [i])))
        for j, before_ in old.items():
            x = reductions[j].n.wide(b, self._found(chain.outputs[j], names))
            local(b.store(partial(b, known.kinds[j], before_, x), b.gep(partials[j], [i])))
        new = {j: reductions[j].combine(b, t, self._found(chain.outputs[j], names)) for j, t in totals.items()}
        following = b.add(i, i64(1), flags=("nuw", "nsw"))
        for phi, x in zip([i, *totals.values()], [following, *new.values()]):
            phi.add_incoming(x, b.block)
        latch = b.block
        branch = b.cbranch(b.icmp_signed("<", following, count), loop, after)
        branch.set_metadata("llvm.loop", _parallel(self.module, group))
        b.position_at_end(after)
        ends = {}
        for j in totals:
            ends[j] = b.phi(reductions[j].start.type)
            ends[j].add_incoming(reductions[j].start, before)
            ends[j].add_incoming(new[j], latch)
        for j, x in ends.items():
            p = partials[j]
            b.store(partial(b, known.kinds[j], b.load(p), reductions[j].result(b, x)), p)

    def _step(self, name: str, tree: tuple[Any, ...], names: dict[str, Value]) -> Value:
        dtype = self.known.chain.type_of(name)
        found = self.writer.value(tree, names, dtype)
        return self.writer.cast(found, REGISTERS[dtype])

    def _found(self, name: str, names: dict[str, Value]) -> Any:
        return names[name][0]


def write_chain(chain: Fused, name: str) -> tuple[Any, dict[tuple[str, tuple[str, ...]], Any]]:
    """The code of a chain with a pattern.

    Parameters
    ----------
    chain : Fused
    name : str
        Of the function to write: ``void name(int64 first, int64 last, int64 frame)``.

    Returns
    -------
    llvmlite.ir.Module
    dict
        Functions that it calls: (name in :mod:`mxcore_cpu.math`, types) -> declaration.
    """
    from llvmlite import ir

    module = ir.Module(name)
    body = _Body(_Chain(chain), module, name)
    return module, body.writer.called
