"""Products with a packed matrix, written in LLVM's language: code that the processor at hand gets without Numba.

A matrix (k, n) is packed in panels of three vectors of columns, one after the other, each panel row by row; the last
one has as many vectors as it needs, filled up with zeros. A product is made of tiles, some rows of the other factor by
one panel, that are summed up in registers, as in BLIS (Van Zee and van de Geijn, "BLIS: A Framework for Rapidly
Instantiating BLAS Functionality", 2015).
"""

from __future__ import annotations

import functools
import platform
from typing import Any

from .code import binding, load, optimise, parsed
from .kept import kept
from .writing import counting

__all__ = ["PANEL", "bits", "pack", "packed_size", "part", "rows_of_a_tile", "times", "vector"]

#: Vectors of a panel; rows of the largest tile by bits of vectors: sums take 24 of 32 registers, or 12 of 16.
PANEL, _ROWS = 3, {512: 8, 256: 4}
#: So many rows of a panel stay in the nearest caches while it is used, and so many rows of the other factor.
_DEPTH, _HEIGHT = 1024, 128
#: Rows of a panel that is not packed: they lie in as many pages.
_UNPACKED = 256


@functools.cache
def bits() -> int:
    """How long the processor's vectors are, if it is one that this is written for; else 0."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return 0
    try:
        has = binding().get_host_cpu_features()
    except (RuntimeError, ImportError):
        return 0
    if not has.get("fma"):
        return 0
    return 512 if has.get("avx512f") else 256 if has.get("avx2") else 0


def vector(size: int) -> int:
    """Numbers of so many bytes in a vector."""
    return bits() // (8 * size)


def rows_of_a_tile() -> int:
    """Rows of the largest tile."""
    return _ROWS[bits()]


def packed_size(k: int, n: int, size: int) -> int:
    """Numbers, of so many bytes each, that a packed matrix (k, n) takes."""
    return k * (-(-n // vector(size)) * vector(size))


def times(size: int) -> int:
    """The address of a function that multiplies by a packed matrix, for floats of so many bytes.

    ``void f(m, n, k, a, row, column, b, gap, add, c, line)``, numbers of 64 bits: c = a @ b, or c += a @ b with `add`,
    where a, b and c are addresses: of (m, k), whose numbers lie `row` and `column` apart, of (k, n), and of (m, n) with
    `line` numbers from row to row. Either b is packed, and `gap` is 0, or its rows lie `gap` numbers apart and n fills
    vectors.
    """
    return _made("times", size, bits())


def pack(size: int) -> int:
    """The address of a function that packs a matrix, for floats of so many bytes.

    ``void f(k, n, b, row, column, out)``: the matrix (k, n) at the address b, with numbers `row` and `column` apart.
    """
    return _made("pack", size, bits())


def part(size: int) -> int:
    """The address of ``void f(first, last, frame)``, which does a part of a product; for the parallel driver.

    The frame has the address of :func:`times`, its arguments, and whether items are panels of columns instead of
    the rows of tiles.
    """
    return _made("part", size, bits())


@functools.cache
def _made(what: str, size: int, wide: int) -> int:
    write, n_args = _FUNCTIONS[what]

    def make(name: str) -> Any:
        return optimise(parsed(write(name, size, n_args).module), name)

    found = kept([what, str(size), str(wide)], "mxcore_product", make)
    assert found is not None
    address = load(found)
    assert address is not None  # it asks for nothing
    return address


class _Writer:
    """A function of numbers of 64 bits."""

    def __init__(self, name: str, size: int, n_args: int) -> None:
        from llvmlite import ir

        self.ir, self.size = ir, size
        self.real, self.i64, self.i32 = (
            (ir.FloatType() if size == 4 else ir.DoubleType()),
            ir.IntType(64),
            ir.IntType(32),
        )
        self.n, self.rows = vector(size), rows_of_a_tile()
        self.vector = ir.VectorType(self.real, self.n)
        self.module = ir.Module(name)
        self.function = ir.Function(self.module, ir.FunctionType(ir.VoidType(), [self.i64] * n_args), name)
        self.b = ir.IRBuilder(self.function.append_basic_block())
        self.write(*self.function.args)
        self.b.ret_void()

    def write(self, *args: Any) -> None:
        raise NotImplementedError

    def at(self, base: Any, *steps: Any) -> Any:
        """The address of a number, so many numbers behind another one."""
        for step in steps:
            base = self.b.add(base, self.b.mul(step, self.i64(self.size)))
        return base

    def pointer(self, address: Any, kind: Any = None) -> Any:
        return self.b.inttoptr(address, (kind or self.real).as_pointer())

    def load(self, address: Any, kind: Any = None) -> Any:
        return self.b.load(self.pointer(address, kind), align=self.size)

    def store(self, value: Any, address: Any) -> None:
        self.b.store(value, self.pointer(address, value.type), align=self.size)

    def least(self, x: Any, y: Any) -> Any:
        return self.b.select(self.b.icmp_signed("<", x, y), x, y)

    def place(self) -> Any:
        with self.b.goto_entry_block():
            return self.b.alloca(self.i64)

    def count(self, end: Any, by: Any, place: Any = None, start: Any = None) -> Any:
        """A loop from a start (0), or from what is at a place, to below the end."""
        if place is None:
            place = self.place()
            self.b.store(self.i64(0) if start is None else start, place)
        return counting(self.b, place, end, by if isinstance(by, self.ir.Value) else self.i64(by))

    def rounded(self, x: Any) -> Any:
        """Up to whole vectors."""
        return self.b.mul(self.b.sdiv(self.b.add(x, self.i64(self.n - 1)), self.i64(self.n)), self.i64(self.n))


class _Pack(_Writer):
    def write(self, k: Any, n: Any, source: Any, row: Any, column: Any, out: Any) -> None:
        b, i64, panel = self.b, self.i64, PANEL * self.n
        with self.count(n, panel) as j:
            here = self.least(i64(panel), b.sub(n, j))
            step = self.rounded(here)
            start, given = self.at(out, b.mul(j, k)), self.at(source, b.mul(j, column))
            whole = b.and_(b.icmp_signed("==", here, i64(panel)), b.icmp_signed("==", column, i64(1)))
            with b.if_else(whole) as (yes, no):
                with yes, self.count(k, 1) as i:
                    for v in range(PANEL):
                        values = self.load(self.at(given, b.mul(i, row), i64(v * self.n)), self.vector)
                        self.store(values, self.at(start, b.mul(i, step), i64(v * self.n)))
                with no:
                    # Where it lies transposed, squares of as many columns and rows as a vector is long.
                    square = b.icmp_signed("==", row, i64(1))
                    wide, deep = (b.select(square, b.sub(x, b.srem(x, i64(self.n))), i64(0)) for x in (here, k))
                    with self.count(wide, self.n) as x, self.count(deep, self.n) as i:
                        corner = self.at(given, b.mul(x, column), i)
                        lines = [self.load(self.at(corner, b.mul(i64(v), column)), self.vector) for v in range(self.n)]
                        target = self.at(start, b.mul(i, step), x)
                        for v, line in enumerate(self.transposed(lines)):
                            self.store(line, self.at(target, b.mul(i64(v), step)))
                    # The rest: below the squares, beside them, and zeros up to whole vectors.
                    for x0, x1, i0 in ((i64(0), wide, deep), (wide, here, i64(0))):
                        with self.count(x1, 1, start=x0) as x, self.count(k, 1, start=i0) as i:
                            value = self.load(self.at(given, b.mul(i, row), b.mul(x, column)))
                            self.store(value, self.at(start, b.mul(i, step), x))
                    with self.count(step, 1, start=here) as x, self.count(k, 1) as i:
                        self.store(self.real(0.0), self.at(start, b.mul(i, step), x))

    def transposed(self, lines: list[Any]) -> list[Any]:
        """Vectors of the columns of a square: quarters change places, then those of each quarter."""
        half = self.n // 2
        while half:
            for i in (i for i in range(self.n) if not i & half):
                pair, every = (lines[i], lines[i + half]), range(self.n)
                lines[i] = self.shuffled(pair, [e + self.n - half if e & half else e for e in every])
                lines[i + half] = self.shuffled(pair, [e + self.n if e & half else e + half for e in every])
            half //= 2
        return lines

    def shuffled(self, pair: tuple[Any, Any], places: list[int]) -> Any:
        """A vector of some numbers of two."""
        return self.b.shuffle_vector(*pair, self.ir.Constant(self.ir.VectorType(self.i32, self.n), places))


class _Times(_Writer):
    def write(
        self, m: Any, n: Any, k: Any, a: Any, row: Any, column: Any, right: Any, gap: Any, add: Any, c: Any, line: Any
    ) -> None:
        b, i64, panel = self.b, self.i64, PANEL * self.n
        tiles = {(r, v): self.tile(r, v) for r in sorted({self.rows, 4, 1}) for v in (*range(1, PANEL + 1), 0)}
        packed = b.icmp_signed("==", gap, i64(0))
        deepest = b.select(packed, i64(_DEPTH), i64(_UNPACKED))
        with self.count(k, deepest) as k0:
            depth = self.least(deepest, b.sub(k, k0))
            more = b.or_(b.icmp_signed("!=", add, i64(0)), b.icmp_signed(">", k0, i64(0)))
            with self.count(m, _HEIGHT) as i0:
                end = self.least(b.add(i0, i64(_HEIGHT)), m)
                with self.count(n, panel) as j:
                    here = self.least(i64(panel), b.sub(n, j))
                    step = b.select(packed, self.rounded(here), gap)
                    whole, rest = b.sdiv(here, i64(self.n)), b.srem(here, i64(self.n))
                    start = self.at(right, b.select(packed, b.mul(j, k), j), b.mul(k0, step))
                    at = self.place()
                    b.store(i0, at)
                    for rows in sorted({self.rows, 4, 1}, reverse=True):
                        with self.count(b.sub(end, i64(rows - 1)), rows, at) as i:
                            left = self.at(a, b.mul(i, row), b.mul(k0, column))
                            place = self.at(c, b.mul(i, line), j)
                            common = depth, left, row, column
                            for v in range(1, PANEL + 1):
                                with b.if_then(b.icmp_signed("==", whole, i64(v))):
                                    b.call(tiles[rows, v], [*common, start, step, more, place, line, rest])
                            with b.if_then(b.icmp_signed(">", rest, i64(0))):
                                done = b.mul(whole, i64(self.n))
                                b.call(
                                    tiles[rows, 0],
                                    [*common, self.at(start, done), step, more, self.at(place, done), line, rest],
                                )

    def tile(self, rows: int, vectors: int) -> Any:
        """``void f(depth, a, row, column, b, step, more, c, line, valid)``; no vectors: a part of one."""
        ir, i64, outer = self.ir, self.i64, self.b
        kinds = [i64] * 6 + [ir.IntType(1)] + [i64] * 3
        f = ir.Function(self.module, ir.FunctionType(ir.VoidType(), kinds), f"tile_{rows}_{vectors}")
        f.linkage = "internal"
        f.attributes.add("noinline")
        before = f.append_basic_block()
        b = self.b = ir.IRBuilder(before)
        depth, a, row, column, right, step, more, c, line, valid = f.args
        kind, some = f"v{self.n}f{8 * self.size}", max(vectors, 1)
        fma = self.module.globals.get(f"llvm.fma.{kind}") or ir.Function(
            self.module, ir.FunctionType(self.vector, [self.vector] * 3), f"llvm.fma.{kind}"
        )
        unknown = ir.Constant(self.vector, ir.Undefined)
        everywhere = ir.Constant(ir.VectorType(self.i32, self.n), [0] * self.n)
        lines = [self.at(a, b.mul(row, i64(r))) for r in range(rows)]
        loop, after = f.append_basic_block("sum"), f.append_basic_block("summed")
        b.branch(loop)
        b.position_at_end(loop)
        i = b.phi(i64)
        sums = [[b.phi(self.vector) for _ in range(some)] for _ in range(rows)]
        source, offset = self.at(right, b.mul(i, step)), b.mul(i, column)
        factors = [self.load(self.at(source, i64(v * self.n)), self.vector) for v in range(some)]
        found = []
        for r in range(rows):
            one = b.insert_element(unknown, self.load(self.at(lines[r], offset)), self.i32(0))
            spread = b.shuffle_vector(one, unknown, everywhere)
            found.append([b.call(fma, [spread, factors[v], sums[r][v]]) for v in range(some)])
        following = b.add(i, i64(1))
        i.add_incoming(i64(0), before)
        i.add_incoming(following, loop)
        for old, new in zip(sums, found):
            for phi, value in zip(old, new):
                phi.add_incoming(ir.Constant(self.vector, [0.0] * self.n), before)
                phi.add_incoming(value, loop)
        b.cbranch(b.icmp_signed("<", following, depth), loop, after)
        b.position_at_end(after)
        with b.if_else(more) as (adds, sets):
            for block, adding in ((adds, True), (sets, False)):
                with block:
                    for r, values in enumerate(found):
                        target = self.at(c, b.mul(line, i64(r)))
                        for v, value in enumerate(values):
                            self.put(value, self.at(target, i64(v * self.n)), adding, None if vectors else valid)
        b.ret_void()
        self.b = outer
        return f

    def put(self, value: Any, address: Any, adding: bool, valid: Any) -> None:
        """Write a vector, or its first `valid` numbers, or add them to what is there."""
        b = self.b
        if valid is None:
            self.store(b.fadd(self.load(address, self.vector), value) if adding else value, address)
            return
        for x in range(self.n):
            with b.if_then(b.icmp_signed("<", self.i64(x), valid)):
                number, place = b.extract_element(value, self.i32(x)), self.at(address, self.i64(x))
                self.store(b.fadd(self.load(place), number) if adding else number, place)


class _Part(_Writer):
    def write(self, first: Any, last: Any, frame: Any) -> None:
        b, i64, panel = self.b, self.i64, PANEL * self.n
        words = [b.load(b.gep(b.inttoptr(frame, i64.as_pointer()), [i64(i)])) for i in range(13)]
        address, m, n, k, a, row, column, right, gap, add, c, line, by_columns = words
        call = b.inttoptr(address, self.ir.FunctionType(self.ir.VoidType(), [i64] * 11).as_pointer())
        with b.if_else(b.icmp_signed("!=", by_columns, i64(0))) as (columns, rows):
            with columns:
                begin = b.mul(first, i64(panel))
                width = b.sub(self.least(b.mul(last, i64(panel)), n), begin)
                there = self.at(right, b.select(b.icmp_signed("==", gap, i64(0)), b.mul(begin, k), begin))
                b.call(call, [m, width, k, a, row, column, there, gap, add, self.at(c, begin), line])
            with rows:
                begin = b.mul(first, i64(self.rows))
                height = b.sub(self.least(b.mul(last, i64(self.rows)), m), begin)
                left, place = self.at(a, b.mul(begin, row)), self.at(c, b.mul(begin, line))
                b.call(call, [height, n, k, left, row, column, right, gap, add, place, line])


#: Name -> what writes it, and how many arguments it has.
_FUNCTIONS: dict[str, tuple[type[_Writer], int]] = {"times": (_Times, 11), "pack": (_Pack, 6), "part": (_Part, 3)}
