"""Loops written in vectors: rows shorter than a vector, and sums over taps that stay in registers.

What LLVM makes of a loop over seven elements is seven single steps and the tests around them. Here a row is one vector, of which only
the elements that exist are read or written. Arrays that rows are written to need some space behind: see each function.
"""
from __future__ import annotations

from ..jit import intrinsic

__all__ = ["SPARE", "STEP", "dot", "dot_three", "lay", "lay_halves", "put", "put_halves", "weigh"]

#: Elements that an array must have behind a row that is laid into it or put from it.
SPARE = 16
#: Long rows are so many elements, or a multiple of it.
STEP = 32

_BITS = 512  # of the vector of a row; narrower machines use several of theirs


class _Code:
    """What writing LLVM code for some arguments of an intrinsic takes."""

    def __init__(self, context, builder, signature, args) -> None:
        from llvmlite import ir
        self.ir, self.context, self.builder, self.signature, self.args = ir, context, builder, signature, args
        self.real = context.get_value_type(signature.args[0].dtype)
        self.bytes = context.get_abi_sizeof(self.real)
        self.lanes = _BITS // 8 // self.bytes

    def data(self, k):
        """The address of an array's first element."""
        return self.context.make_array(self.signature.args[k])(self.context, self.builder, self.args[k]).data

    def whole(self, value):
        return self.ir.IntType(64)(value)

    def each(self, count, step):
        """Run over range(0, count, step)."""
        from numba.core import cgutils
        return cgutils.for_range_slice(self.builder, self.whole(0), count, self.whole(step), self.ir.IntType(64))

    def at(self, data, i, kind):
        """The address of element i as that of a vector."""
        return self.builder.bitcast(self.builder.gep(data, [i]), kind.as_pointer())

    def vector(self, lanes, kind=None):
        return self.ir.VectorType(kind or self.real, lanes)

    def load(self, data, i, kind):
        return self.builder.load(self.at(data, i, kind), align=self.bytes)

    def store(self, value, data, i):
        self.builder.store(value, self.at(data, i, value.type), align=self.bytes)

    def splat(self, value, lanes):
        i32, kind = self.ir.IntType(32), self.vector(lanes, value.type)
        one = self.builder.insert_element(self.ir.Constant(kind, self.ir.Undefined), value, i32(0))
        return self.builder.shuffle_vector(one, one, self.ir.Constant(self.vector(lanes, i32), [0] * lanes))

    def shuffle(self, a, b, places):
        kind = self.vector(len(places), self.ir.IntType(32))
        return self.builder.shuffle_vector(a, b, self.ir.Constant(kind, list(places)))

    def below(self, count, lanes):
        """A mask of the first `count` elements."""
        i32 = self.ir.IntType(32)
        return self.builder.icmp_signed("<", self.ir.Constant(self.vector(lanes, i32), list(range(lanes))),
                                        self.splat(self.builder.trunc(count, i32), lanes))

    def _call(self, name, result, *others):
        """Call one of LLVM's own functions; llvmlite does not spell the names of those of vectors."""
        from numba.core import cgutils
        kind = self.ir.FunctionType(result, [o.type for o in others])
        return self.builder.call(cgutils.get_or_insert_function(self.builder.module, kind, name), others)

    def _spelled(self, kind):
        return f"v{kind.count}f{8 * self.bytes}"

    def load_some(self, data, i, mask):
        """A vector from element i on, 0 where the mask is not set, which is not read."""
        kind = self.vector(mask.type.count)
        return self._call(f"llvm.masked.load.{self._spelled(kind)}.p0", kind, self.at(data, i, kind), self.ir.IntType(32)(self.bytes), mask,
                          self.ir.Constant(kind, None))

    def store_some(self, value, data, i, mask):
        """Write those elements of a vector where the mask is set."""
        self._call(f"llvm.masked.store.{self._spelled(value.type)}.p0", self.ir.VoidType(), value, self.at(data, i, value.type),
                   self.ir.IntType(32)(self.bytes), mask)

    def multiply_add(self, a, b, c):
        return self._call(f"llvm.fmuladd.{self._spelled(a.type)}", a.type, a, b, c)


def _written(arity):
    """Make an intrinsic without result of a function that writes its code: arrays and whole numbers."""
    def make(write):
        def build(args):
            from numba import types

            def codegen(context, builder, signature, values):
                write(_Code(context, builder, signature, values))
                return context.get_dummy_value()

            return types.void(*(types.int64 if isinstance(a, types.Integer) else a for a in args)), codegen

        names = ", ".join(f"a{i}" for i in range(arity))
        space = {"build": build}
        exec(f"def {write.__name__}(typingctx, {names}):\n    return build(({names},))", space)
        function = space[write.__name__]
        function.__doc__ = write.__doc__
        return intrinsic(function)

    return make


@_written(5)
def lay(c):
    """lay(x, x0, n, y, y0): copy n elements from x[x0] on to y[y0]; up to SPARE - 1 elements behind them become 0."""
    x, y, b = c.data(0), c.data(3), c.builder
    with c.each(c.args[2], c.lanes) as (z, _):
        row = c.load_some(x, b.add(c.args[1], z), c.below(b.sub(c.args[2], z), c.lanes))
        c.store(row, y, b.add(c.args[4], z))


@_written(6)
def lay_halves(c):
    """lay_halves(x, x0, n, y, y0, y1): as `lay`, every second element of x to y[y0], the others to y[y1]."""
    x, y, b = c.data(0), c.data(3), c.builder
    with c.each(c.args[2], 2 * c.lanes) as (z, _):
        row, half = c.load_some(x, b.add(c.args[1], z), c.below(b.sub(c.args[2], z), 2 * c.lanes)), b.ashr(z, c.whole(1))
        for k in (0, 1):
            c.store(c.shuffle(row, row, range(k, 2 * c.lanes, 2)), y, b.add(c.args[4 + k], half))


@_written(5)
def put(c):
    """put(x, x0, n, y, y0): copy n elements from x[x0] on to y[y0]; up to SPARE - 1 elements behind them are read too."""
    x, y, b = c.data(0), c.data(3), c.builder
    with c.each(c.args[2], c.lanes) as (z, _):
        row = c.load(x, b.add(c.args[1], z), c.vector(c.lanes))
        c.store_some(row, y, b.add(c.args[4], z), c.below(b.sub(c.args[2], z), c.lanes))


@_written(6)
def put_halves(c):
    """put_halves(x, x0, x1, n, y, y0): as `put`, elements from x[x0] and x[x1] on in turns."""
    x, y, b = c.data(0), c.data(4), c.builder
    with c.each(c.args[3], 2 * c.lanes) as (z, _):
        half = b.ashr(z, c.whole(1))
        rows = [c.load(x, b.add(c.args[k], half), c.vector(c.lanes)) for k in (1, 2)]
        row = c.shuffle(*rows, [k * c.lanes + i for i in range(c.lanes) for k in (0, 1)])
        c.store_some(row, y, b.add(c.args[5], z), c.below(b.sub(c.args[3], z), 2 * c.lanes))


@_written(7)
def weigh(c):
    """weigh(x, at, v, count, y, y0, n): add the sum of v[t] * x[at[t]:] over `count` taps to y[y0:], n elements, a multiple of STEP."""
    x, at, v, y, b = c.data(0), c.data(1), c.data(2), c.data(4), c.builder
    kind = c.vector(STEP)
    with c.each(c.args[6], STEP) as (z, _):
        place = b.add(c.args[5], z)
        start, first = b.block, c.load(y, place, kind)
        head, body, end = (b.append_basic_block(n) for n in ("taps", "tap", "summed"))
        b.branch(head)
        b.position_at_end(head)
        t, total = b.phi(c.ir.IntType(64)), b.phi(kind)
        t.add_incoming(c.whole(0), start)
        total.add_incoming(first, start)
        b.cbranch(b.icmp_signed("<", t, c.args[3]), body, end)
        b.position_at_end(body)
        moved = c.load(x, b.add(b.load(b.gep(at, [t])), z), kind)
        more = c.multiply_add(c.splat(b.load(b.gep(v, [t])), STEP), moved, total)
        t.add_incoming(b.add(t, c.whole(1)), body)
        total.add_incoming(more, body)
        b.branch(head)
        b.position_at_end(end)
        c.store(total, y, place)


def _dots(count):
    def write(c):
        x, at, y, counts, sums, b = c.data(0), c.data(1), c.data(3), c.data(4), c.data(6), c.builder
        kind, lanes = c.vector(SPARE), SPARE
        places = [b.load(b.gep(at, [b.add(c.args[2], c.whole(k))])) for k in range(count)]
        slots = [b.mul(b.add(c.args[2], c.whole(k)), c.whole(lanes)) for k in range(count)]
        start, firsts = b.block, [c.load(sums, s, kind) for s in slots]
        head, body, end = (b.append_basic_block(n) for n in ("blocks", "block", "done"))
        b.branch(head)
        b.position_at_end(head)
        z, totals = b.phi(c.ir.IntType(64)), [b.phi(kind) for _ in slots]
        z.add_incoming(c.whole(0), start)
        for total, first in zip(totals, firsts):
            total.add_incoming(first, start)
        b.cbranch(b.icmp_signed("<", z, c.args[5]), body, end)
        b.position_at_end(body)
        i8 = c.vector(lanes, c.ir.IntType(8))
        real = b.icmp_signed("!=", b.load(c.at(counts, z, i8), align=1), c.ir.Constant(i8, None))
        other = c.load(y, z, kind)
        for place, total in zip(places, totals):
            one = b.select(real, c.load(x, b.add(place, z), kind), c.ir.Constant(kind, None))
            total.add_incoming(c.multiply_add(one, other, total), body)
        z.add_incoming(b.add(z, c.whole(lanes)), body)
        b.branch(head)
        b.position_at_end(end)
        for slot, total in zip(slots, totals):
            c.store(total, sums, slot)

    write.__name__ = {1: "dot", 3: "dot_three"}[count]
    write.__doc__ = f"""{write.__name__}(x, at, t, y, counts, n, sums): add the products of x[at[t]:] and y to the SPARE sums from sums[t * SPARE] on.

    So for {count} tap(s) from t on. n is a multiple of SPARE; where the bytes `counts` are 0, x is not looked at.
    """
    return _written(7)(write)


dot, dot_three = _dots(1), _dots(3)
