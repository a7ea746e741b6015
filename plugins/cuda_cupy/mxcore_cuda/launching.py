"""Launching kernels: arguments packed as the driver takes them, grids that cover what is to be done."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import accumulate
from typing import Any

from mxcore.plugin import Device, error

from .drivers import driver
from .sources import Code, Signature, source
from .tables import Place, Table

__all__ = ["Arguments", "Kernel", "kernel"]

#: Blocks of a launch over elements at most: enough for the largest GPU, whose threads go on from there.
MOST_BLOCKS = 4096
#: Elements up to which a warp takes a row by itself.
SHORT_ROW = 256
#: What a thread keeps of the rows that it works on (`rows.cuh`).
KEPT_BYTES = 128


class Arguments:
    """The arguments of one launch in memory: eight bytes each (a table has more), and the address of each.

    Parameters
    ----------
    formats : sequence of str
        Of `struct`, one for each.

    Attributes
    ----------
    offsets : tuple of int
        Where in the memory each begins.
    pointer : int
        What the driver takes: where the addresses lie.
    table : Table or None
        What was packed last as an argument that has addresses in it.
    set : callable
        Packs values: addresses as numbers, tables as bytes.
    """

    __slots__ = ("memory", "offsets", "addresses", "pointer", "table", "set")

    def __init__(self, formats: Sequence[str]) -> None:
        ends = [0, *accumulate(struct.calcsize(f"={f}") for f in formats)]
        self.offsets = tuple(ends[:-1])
        self.memory = ctypes.create_string_buffer(max(ends[-1], 8))
        start = ctypes.addressof(self.memory)
        self.addresses = (ctypes.c_void_p * max(len(formats), 1))(*(start + at for at in self.offsets))
        self.pointer = ctypes.addressof(self.addresses)
        self.table: Table | None = None
        self.set = partial(struct.Struct("=" + "".join(formats)).pack_into, self.memory, 0)


class Kernel:
    """A kernel of a source on a device, compiled and ready.

    Parameters
    ----------
    code : Code
    name : str
    index : int
        Of the device.
    """

    __slots__ = (
        "index",
        "signature",
        "function",
        "stream",
        "formats",
        "kept",
        "threads",
        "_pointers",
        "_free",
        "_launch",
        "_address",
    )

    def __init__(self, code: Code, name: str, index: int) -> None:
        d = driver()
        self.index = index
        self.signature: Signature = code.signatures[name]
        self.function = d.function(code, name, index)
        self.stream = d.stream(index)
        self.threads = self.signature.threads
        self.formats = [p.format(code.double) for p in self.signature.parameters]
        #: Numbers of rows that a thread keeps.
        self.kept = KEPT_BYTES // (8 if code.double else 4)
        self._pointers = tuple(p.pointer for p in self.signature.parameters)
        #: Arguments not in use: threads take one and put it back.
        self._free: list[Arguments] = []
        self._launch, self._address = d.launch, d.address

    def arguments(self, values: Sequence[Any]) -> Arguments:
        """Packed arguments; arrays and numbers, None for an address of nothing."""
        address = self._address
        try:
            packed = self._free.pop()
        except IndexError:
            packed = Arguments(self.formats)
        try:
            packed.set(
                *[
                    (0 if v is None else v.address if v.__class__ is Place else address(v)) if pointer else v
                    for v, pointer in zip(values, self._pointers)
                ]
            )
        except struct.error as e:
            raise error(TypeError, f"kernel {self.signature.name}: {e}; it takes {self.signature.parameters}") from None
        return packed

    def at(self, a: Any, elements: int) -> Place:
        """The place of an element of a dense array."""
        return Place(self._address(a) + elements * a.dtype.itemsize)

    def launch(self, grid: Sequence[int], block: Sequence[int], values: Sequence[Any]) -> None:
        """Launch a grid of blocks."""
        packed = self.arguments(values)
        try:
            self.launch_packed(grid, block, packed)
        finally:
            self._free.append(packed)

    def launch_packed(self, grid: Sequence[int], block: Sequence[int], packed: Arguments) -> None:
        """Launch with arguments that the caller keeps."""
        self._launch(self.function, grid, block, 0, self.stream, packed)

    def each(self, n: int, *values: Any) -> None:
        """Launch over `n` elements, of which a thread takes one or more."""
        if n:
            blocks = min(-(-n // self.threads), MOST_BLOCKS)
            self.launch((blocks, 1, 1), (self.threads, 1, 1), values)

    def prepared(self, device: Device, dtype: Any, number: bool) -> Callable[[Any, Any], Any]:
        """``(a, b) -> array`` for a kernel that computes each element from those of `a` and `b`, few enough for a grid.

        It costs as little as it can: what a launch needs is looked up here, once.

        Parameters
        ----------
        device : Device
        dtype : numpy.dtype
            Of the arrays and the result.
        number : bool
            `b` is a number.
        """
        d, index = driver(), self.index
        activate, empty, address, faults = d.activate, d.empty, d.address, d.faults
        dense = d.xp.ascontiguousarray
        launch, function, stream, free = self._launch, self.function, self.stream, self._free
        threads, block, one = self.threads, (self.threads, 1, 1), (1, 1, 1)

        def call(a: Any, b: Any) -> Any:
            if faults.refusal is not None:
                faults.check()
            activate(index)
            if not a.flags.c_contiguous:
                a = dense(a)
            if not (number or b.flags.c_contiguous):
                b = dense(b)
            try:
                out = empty(a.shape, dtype, index)
            except MemoryError:
                out = device.empty(a.shape, dtype, index)
            n = a.size
            if n:
                try:
                    packed = free.pop()
                except IndexError:
                    packed = Arguments(self.formats)
                try:
                    packed.set(address(a), b if number else address(b), address(out), n)
                    launch(function, one if n <= threads else (-(-n // threads), 1, 1), block, 0, stream, packed)
                finally:
                    free.append(packed)
            return out

        return call

    def planes(self, n: int, size: int, *values: Any) -> None:
        """Launch over `n` planes of a size: blocks as wide as a plane, or as they can be, of as many as fit."""
        if not n or not size:
            return
        width = min(max(32, 1 << (size - 1).bit_length()), self.threads)
        together = self.threads // width
        grid = min(-(-size // width), MOST_BLOCKS), min(-(-n // together), 65535), 1
        self.launch(grid, (width, together, 1), values)

    def rows(self, n: int, length: int, *values: Any) -> None:
        """Launch over `n` rows of a length: a warp for each short one, a block for each long one."""
        if not n:
            return
        if length <= SHORT_ROW:
            together = self.threads // 32
            self.launch((-(-n // together), 1, 1), (32, together, 1), values)
        else:
            self.launch((n, 1, 1), (self.threads, 1, 1), values)

    def kept_rows(self, n: int, length: int, together: int, *values: Any) -> None:
        """Launch over `n` rows of numbers side by side; threads keep what they read of them, of arrays `together`.

        A warp takes a row by itself if it can keep it; other rows have blocks, as many threads as keep them.
        """
        if not n:
            return
        warps = min(-(-length * together // (32 * self.kept)), self.threads // 32)
        if warps <= 1:
            many = self.threads // 32
            self.launch((-(-n // many), 1, 1), (32, many, 1), values)
        else:
            self.launch((n, 1, 1), (warps * 32, 1, 1), values)

    def columns(self, n: int, *values: Any) -> None:
        """Launch over `n` columns: blocks of 32, 8 rows at a time."""
        if n:
            self.launch((-(-n // 32), 1, 1), (32, 8, 1), values)

    def many(self, table: Table, *values: Any, grid: Sequence[int] | None = None) -> None:
        """Launch over a table of arrays, the first argument: a block for each part of one, unless told otherwise."""
        grid = grid or (table.blocks, 1, 1)
        if not all(grid):
            return
        packed = self.arguments([table.data, *values])
        packed.table = table
        try:
            self.launch_packed(grid, (self.threads, 1, 1), packed)
        finally:
            packed.table = None
            self._free.append(packed)

    def blocks(self, n: int, *values: Any, threads: int | None = None) -> None:
        """Launch `n` blocks."""
        if n:
            self.launch((n, 1, 1), (threads or self.threads, 1, 1), values)


@cache
def kernel(file: str, name: str, dtype: Any, index: int) -> Kernel:
    """A kernel of this package's sources, for a dtype or its name."""
    return Kernel(source(file, str(dtype)), name, index)
