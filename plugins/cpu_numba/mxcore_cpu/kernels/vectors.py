"""Loops written in vectors: rows shorter than a vector, and sums over taps that stay in registers.

What LLVM makes of a loop over seven elements is seven single steps and the tests around them. Here a row is one vector,
of which only the elements that exist are read or written. Arrays that rows are written to need some space behind: see
each function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..jit import Lazy, intrinsic

__all__ = [
    "SPARE",
    "STEP",
    "Code",
    "add",
    "dot",
    "dot_block",
    "dot_three",
    "lay",
    "lay_halves",
    "put",
    "put_halves",
    "weigh",
    "weigh_four",
    "window",
    "written",
]

#: Elements that an array must have behind a row that is laid into it or put from it.
SPARE = 16
#: Long rows are so many elements, or a multiple of it.
STEP = 32

_BITS = 512  # of the vector of a row; narrower machines use several of theirs


class Code:
    """What writing LLVM code for some arguments of an intrinsic takes; see :func:`written`."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any) -> None:
        from llvmlite import ir

        self.ir, self.context, self.builder, self.signature, self.args = ir, context, builder, signature, args
        self.real = context.get_value_type(signature.args[0].dtype)
        self.bytes = context.get_abi_sizeof(self.real)
        self.lanes = _BITS // 8 // self.bytes

    def data(self, k: Any) -> Any:
        """The address of an array's first element."""
        return self.context.make_array(self.signature.args[k])(self.context, self.builder, self.args[k]).data

    def whole(self, value: Any) -> Any:
        """A whole number of 64 bits."""
        return self.ir.IntType(64)(value)

    def each(self, count: Any, step: Any) -> Any:
        """Run over range(0, count, step)."""
        from numba.core import cgutils

        return cgutils.for_range_slice(self.builder, self.whole(0), count, self.whole(step), self.ir.IntType(64))

    def at(self, data: Any, i: Any, kind: Any) -> Any:
        """The address of element i as that of a vector."""
        return self.builder.bitcast(self.builder.gep(data, [i]), kind.as_pointer())

    def vector(self, lanes: Any, kind: Any = None) -> Any:
        """The type of so many elements at once."""
        return self.ir.VectorType(kind or self.real, lanes)

    def load(self, data: Any, i: Any, kind: Any) -> Any:
        """The vector from element i on."""
        return self.builder.load(self.at(data, i, kind), align=self.bytes)

    def store(self, value: Any, data: Any, i: Any) -> None:
        """Write a vector from element i on."""
        self.builder.store(value, self.at(data, i, value.type), align=self.bytes)

    def splat(self, value: Any, lanes: Any) -> Any:
        """A vector of one value."""
        i32, kind = self.ir.IntType(32), self.vector(lanes, value.type)
        one = self.builder.insert_element(self.ir.Constant(kind, self.ir.Undefined), value, i32(0))
        return self.builder.shuffle_vector(one, one, self.ir.Constant(self.vector(lanes, i32), [0] * lanes))

    def shuffle(self, a: Any, b: Any, places: Any) -> Any:
        """The elements at these places of two vectors, one behind the other."""
        kind = self.vector(len(places), self.ir.IntType(32))
        return self.builder.shuffle_vector(a, b, self.ir.Constant(kind, list(places)))

    def below(self, count: Any, lanes: Any, test: Any = "<") -> Any:
        """A mask of the first `count` elements."""
        i32 = self.ir.IntType(32)
        return self.builder.icmp_signed(
            test,
            self.ir.Constant(self.vector(lanes, i32), list(range(lanes))),
            self.splat(self.builder.trunc(count, i32), lanes),
        )

    def _call(self, name: Any, result: Any, *others: Any) -> Any:
        """Call one of LLVM's own functions; llvmlite does not spell the names of those of vectors."""
        from numba.core import cgutils

        kind = self.ir.FunctionType(result, [o.type for o in others])
        return self.builder.call(cgutils.get_or_insert_function(self.builder.module, kind, name), others)

    def _spelled(self, kind: Any) -> Any:
        return f"v{kind.count}f{8 * self.bytes}"

    def load_some(self, data: Any, i: Any, mask: Any) -> Any:
        """A vector from element i on, 0 where the mask is not set, which is not read."""
        kind = self.vector(mask.type.count)
        return self._call(
            f"llvm.masked.load.{self._spelled(kind)}.p0",
            kind,
            self.at(data, i, kind),
            self.ir.IntType(32)(self.bytes),
            mask,
            self.ir.Constant(kind, None),
        )

    def store_some(self, value: Any, data: Any, i: Any, mask: Any) -> None:
        """Write those elements of a vector where the mask is set."""
        self._call(
            f"llvm.masked.store.{self._spelled(value.type)}.p0",
            self.ir.VoidType(),
            value,
            self.at(data, i, value.type),
            self.ir.IntType(32)(self.bytes),
            mask,
        )

    def multiply_add(self, a: Any, b: Any, c: Any) -> Any:
        """a * b + c."""
        return self._call(f"llvm.fmuladd.{self._spelled(a.type)}", a.type, a, b, c)

    def sums(self, count: Any, step: Any, firsts: Any, body: Any) -> Any:
        """What the vectors `firsts` become by `body(i, vectors)` for every i in range(0, count, step)."""
        b = self.builder
        start = b.block
        head, inside, end = (b.append_basic_block(n) for n in ("sums", "term", "summed"))
        b.branch(head)
        b.position_at_end(head)
        i, totals = b.phi(self.ir.IntType(64)), [b.phi(f.type) for f in firsts]
        b.cbranch(b.icmp_signed("<", i, count), inside, end)
        b.position_at_end(inside)
        more, following = body(i, totals), b.add(i, self.whole(step))
        for phi, first, next_ in zip([i, *totals], [self.whole(0), *firsts], [following, *more]):
            phi.add_incoming(first, start)
            phi.add_incoming(next_, b.block)
        b.branch(head)
        b.position_at_end(end)
        return totals

    def total(self, vector: Any) -> Any:
        """The sum of a vector's elements."""
        while vector.type.count > 1:
            half = vector.type.count // 2
            vector = self.builder.fadd(
                self.shuffle(vector, vector, range(half)), self.shuffle(vector, vector, range(half, 2 * half))
            )
        return self.builder.extract_element(vector, self.ir.IntType(32)(0))


def written(arity: int) -> Callable[[Callable[[Code], None]], Lazy]:
    """Make an intrinsic without result of a function that writes its code: arrays and whole numbers."""

    def make(write: Callable[[Code], None]) -> Lazy:
        def build(args: Any) -> Any:
            from numba import types

            def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
                write(Code(context, builder, signature, values))
                return context.get_dummy_value()

            return types.void(*(types.int64 if isinstance(a, types.Integer) else a for a in args)), codegen

        names = ", ".join(f"a{i}" for i in range(arity))
        space: dict[str, Any] = {"build": build}
        exec(f"def {write.__name__}(typingctx, {names}):\n    return build(({names},))", space)
        function = space[write.__name__]
        function.__doc__ = write.__doc__
        return intrinsic(function)

    return make


@written(5)
def lay(c: Code) -> None:
    """lay(x, x0, n, y, y0): copy n elements from x[x0] on to y[y0]; up to SPARE - 1 elements behind them become 0."""
    x, y, b = c.data(0), c.data(3), c.builder
    with c.each(c.args[2], c.lanes) as (z, _):
        row = c.load_some(x, b.add(c.args[1], z), c.below(b.sub(c.args[2], z), c.lanes))
        c.store(row, y, b.add(c.args[4], z))


@written(6)
def lay_halves(c: Code) -> None:
    """lay_halves(x, x0, n, y, y0, y1): as `lay`, every second element of x to y[y0], the others to y[y1]."""
    x, y, b = c.data(0), c.data(3), c.builder
    with c.each(c.args[2], 2 * c.lanes) as (z, _):
        row, half = (
            c.load_some(x, b.add(c.args[1], z), c.below(b.sub(c.args[2], z), 2 * c.lanes)),
            b.ashr(z, c.whole(1)),
        )
        for k in (0, 1):
            c.store(c.shuffle(row, row, range(k, 2 * c.lanes, 2)), y, b.add(c.args[4 + k], half))


@written(5)
def put(c: Code) -> None:
    """put(x, x0, n, y, y0): copy n elements from x[x0] on to y[y0]; reads up to SPARE - 1 behind them."""
    x, y, b = c.data(0), c.data(3), c.builder
    with c.each(c.args[2], c.lanes) as (z, _):
        row = c.load(x, b.add(c.args[1], z), c.vector(c.lanes))
        c.store_some(row, y, b.add(c.args[4], z), c.below(b.sub(c.args[2], z), c.lanes))


@written(6)
def put_halves(c: Code) -> None:
    """put_halves(x, x0, x1, n, y, y0): as `put`, elements from x[x0] and x[x1] on in turns."""
    x, y, b = c.data(0), c.data(4), c.builder
    with c.each(c.args[3], 2 * c.lanes) as (z, _):
        half = b.ashr(z, c.whole(1))
        even, odd = (c.load(x, b.add(c.args[k], half), c.vector(c.lanes)) for k in (1, 2))
        row = c.shuffle(even, odd, [k * c.lanes + i for i in range(c.lanes) for k in (0, 1)])
        c.store_some(row, y, b.add(c.args[5], z), c.below(b.sub(c.args[3], z), 2 * c.lanes))


@written(7)
def window(c: Code) -> None:
    """window(x, x0, n, low, high, y, y0): write n elements from y[y0] on: those of x in [low, high), 0 elsewhere.

    They stand from x[x0] on, and x is read only there.
    """
    x, y, b, lanes = c.data(0), c.data(5), c.builder, c.lanes
    with c.each(c.args[2], lanes) as (z, _):
        inside = b.and_(c.below(b.sub(c.args[3], z), lanes, ">="), c.below(b.sub(c.args[4], z), lanes))
        row = c.load_some(x, b.add(c.args[1], z), inside)
        c.store_some(row, y, b.add(c.args[6], z), c.below(b.sub(c.args[2], z), lanes))


@written(5)
def add(c: Code) -> None:
    """add(x, x0, n, y, y0): add n elements from x[x0] on to those from y[y0] on; nothing behind them is touched."""
    x, y, b = c.data(0), c.data(3), c.builder
    with c.each(c.args[2], c.lanes) as (z, _):
        own, place = c.below(b.sub(c.args[2], z), c.lanes), b.add(c.args[4], z)
        c.store_some(b.fadd(c.load_some(y, place, own), c.load_some(x, b.add(c.args[1], z), own)), y, place, own)


def _weighs(filters: Any) -> Any:
    def write(c: Code) -> None:
        x, at, v, y, b = c.data(0), c.data(1), c.data(2), c.data(5), c.builder
        kind, wide = c.vector(STEP), range(filters)
        with c.each(c.args[8], STEP) as (z, _):
            places = [b.add(b.add(c.args[6], z), b.mul(c.args[7], c.whole(f))) for f in wide]
            firsts = [b.add(c.args[3], b.mul(c.args[4], c.whole(f))) for f in wide]

            def tap(t: Any, totals: Any) -> Any:
                moved = c.load(x, b.add(b.load(b.gep(at, [t])), z), kind)
                return [
                    c.multiply_add(c.splat(b.load(b.gep(v, [b.add(first, t)])), STEP), moved, total)
                    for first, total in zip(firsts, totals)
                ]

            for total, place in zip(c.sums(c.args[4], 1, [c.load(y, p, kind) for p in places], tap), places):
                c.store(total, y, place)

    write.__name__ = {1: "weigh", 4: "weigh_four"}[filters]
    write.__doc__ = f"""{write.__name__}(x, at, v, v0, count, y, y0, pitch, n): weighted sums of moved rows.

    Add to y[y0:], n elements, the sum of v[v0 + t] * x[at[t]:] over `count` taps. So for {filters} filter(s): weights
    are one after the other, outputs `pitch` elements apart. n is a multiple of STEP.
    """
    return written(9)(write)


weigh, weigh_four = _weighs(1), _weighs(4)


def _dots(taps: Any, filters: Any) -> Any:
    def write(c: Code) -> None:
        x, at, y, counts, out, b = c.data(0), c.data(1), c.data(5), c.data(9), c.data(12), c.builder
        lanes, pairs = c.lanes, [(f, k) for f in range(filters) for k in range(taps)]
        kind, bytes_ = c.vector(lanes), c.vector(lanes, c.ir.IntType(8))
        xs = [b.add(c.args[3], b.load(b.gep(at, [b.add(c.args[2], c.whole(k))]))) for k in range(taps)]
        ys = [b.add(c.args[6], b.mul(c.args[7], c.whole(f))) for f in range(filters)]

        def image(i: Any, totals: Any) -> Any:
            left, right = b.mul(i, c.args[4]), b.mul(i, c.args[8])

            def block(z: Any, totals: Any) -> Any:
                real = b.icmp_signed("!=", b.load(c.at(counts, z, bytes_), align=1), c.ir.Constant(bytes_, None))
                at_x, at_y = b.add(left, z), b.add(right, z)
                ones = [b.select(real, c.load(x, b.add(p, at_x), kind), c.ir.Constant(kind, None)) for p in xs]
                others = [c.load(y, b.add(p, at_y), kind) for p in ys]
                return [c.multiply_add(ones[k], others[f], total) for (f, k), total in zip(pairs, totals)]

            return c.sums(c.args[10], lanes, totals, block)

        totals = c.sums(c.args[11], 1, [c.ir.Constant(kind, None)] * len(pairs), image)
        for (f, k), total in zip(pairs, totals):
            place = b.gep(out, [b.add(b.add(c.args[13], c.args[2]), b.add(b.mul(c.args[14], c.whole(f)), c.whole(k)))])
            b.store(b.fadd(b.load(place), c.total(total)), place)

    write.__name__ = {(3, 4): "dot_block", (3, 1): "dot_three", (1, 1): "dot"}[taps, filters]
    parameters = "x, at, t, x0, x_step, y, y0, pitch, y_step, counts, n, images, out, o0, o_pitch"
    write.__doc__ = f"""{write.__name__}({parameters}): products of moved rows, summed.

    Add to out[o0 + t] the sum of x[x0 + at[t]:] * y[y0:] over n elements, a multiple of SPARE, of each of some images,
    `x_step` and `y_step` elements apart. So for {taps} tap(s) from t on and {filters} filter(s): rows of y `pitch`,
    results `o_pitch` elements apart. Where the bytes `counts` are 0, x does not count, whatever it is.
    """
    return written(15)(write)


dot, dot_three, dot_block = _dots(1, 1), _dots(3, 1), _dots(3, 4)
