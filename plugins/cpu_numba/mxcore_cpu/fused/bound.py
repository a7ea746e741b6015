"""Compiled chains and what comes of them when they are bound to arrays: a call without arguments.

The frame of a bound chain is one array of 64-bit words:

====================  ==================================================================================================
words                 meaning
====================  ==================================================================================================
0, 1, 2               address of the code, items to deal to threads, number of reductions
3 … 10                rows, length of a line, length of a part of a line, parts of a line, rows of a block, two factors
                      that say which copy of the partial results an item writes to, size of a copy
11, 12                where the reductions are described, address of the parallel driver
13 …                  dimensions but the last; addresses of inputs, of outputs, of partial results; scalars as float64
the rest              per reduction: kind, copies, size of each, address of output, of partial results, divisor, item
size ====================
==================================================================================================
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from mxcore.plugin import Fused, error

from .. import jit, threads
from ..typing import Array
from .emit import DRIVER, FINISH, HEADER, KINDS, RECORD
from .launcher import runner

__all__ = ["Code", "Compiled"]

#: Arrays to copy to, and from.
Copies: TypeAlias = list[tuple[Array, Array]]

#: Elements of an item, blocks that a reduction over leading dimensions is cut into at most. They depend on nothing but
#: the shape, so sums do not depend on the number of threads.
_ITEM, _BLOCKS = 1 << 14, 16
#: Elements times cost of each, from which threads pay.
_WORTH = 1 << 21


class Code:
    """The machine code of one chain and pattern."""

    def __init__(self, chain: Fused, address: int) -> None:
        self.chain, self.address = chain, address
        self.cost = sum(map(_cost, (tree for _, tree in chain.steps))) + 2 * len(chain.inputs) + 2
        n, pattern = len(chain.inputs), chain.pattern
        assert pattern is not None  # code is compiled for one
        self.plain = [j for j, how in enumerate(chain.reduce) if how is None]
        self.reduced = {j: how for j, how in enumerate(chain.reduce) if how is not None}
        self.in_patterns, self.out_patterns = pattern[:n], pattern[n:]

    def plan(self, dims: tuple[int, ...]) -> tuple[int, tuple[int, ...], int]:
        """Words 1 and 3 … 10 of the frame, and how many copies of the partial results there are."""
        letters = "abcdefghijklmnopqrstuvwxyz"[: len(dims)]
        n, rows = dims[-1], math.prod(dims[:-1])
        if not self.reduced:
            chunk = n if n <= _ITEM else 4096
            chunks = -(-n // chunk)
            block = max(1, min(rows, 4096 // chunk))
            return -(-rows // block) * chunks, (rows, n, chunk, chunks, block, 0, 0, 0), 1
        kept = self.out_patterns[next(iter(self.reduced))]
        size = math.prod(d for c, d in zip(letters, dims) if c in kept)
        across = letters[-1] in kept
        per_slice = rows // dims[0] if len(dims) > 1 else 1
        if len(dims) > 1 and letters[0] in kept:  # items write to different places
            block = per_slice * max(1, min(dims[0], _ITEM // (per_slice * n)))
            by_block = 0
        else:  # each block has a copy of its own; they must be fewer than what they save
            copies = max(1, min(_BLOCKS, rows * n // _ITEM, rows * n // (8 * size)))
            block = -(-rows // copies)
            by_block = 1
        blocks = -(-rows // block)
        chunk = n if n <= _ITEM // 4 or (blocks >= _BLOCKS and not across) else max(_ITEM // 4, -(-n // 64))
        if not across and chunk < n and blocks * -(-n // chunk) * size * 8 > rows * n:
            chunk = n  # too many copies
        chunks = -(-n // chunk)
        by_part = 0 if across or chunks == 1 else 1
        if by_part and by_block:
            by_block = chunks
        copies = (blocks - 1) * by_block + (chunks - 1) * by_part + 1
        return blocks * chunks, (rows, n, chunk, chunks, block, by_block, by_part, size), copies

    def bind(
        self, dims: tuple[int, ...], outs: Sequence[Array], inputs: Sequence[Array], scalars: Sequence[float]
    ) -> Any:
        """A function without arguments that computes `outs` from `inputs`, always in these buffers."""
        chain = self.chain
        letters = "abcdefghijklmnopqrstuvwxyz"[: len(dims)]
        before: Copies = []
        after: Copies = []
        sources = [
            _fit(chain, name, dims, letters, p, a, before, None)
            for name, p, a in zip(chain.inputs, self.in_patterns, inputs)
        ]
        targets = [
            _fit(chain, name, dims, letters, p, a, None, after)
            for name, p, a in zip(chain.outputs, self.out_patterns, outs)
        ]
        items, shape, copies = self.plan(dims)
        size = shape[-1]
        partials = [np.empty(copies * size) for _ in self.reduced]
        start = HEADER + len(dims) - 1 + len(inputs) + len(outs)
        finish = start + len(chain.scalars)
        frame = np.empty(finish + RECORD * len(self.reduced), np.int64)
        frame[:3] = self.address, items, len(self.reduced)
        frame[3:FINISH] = shape
        frame[FINISH] = finish
        frame[HEADER:start] = [*dims[:-1], *map(_address, (*sources, *(targets[j] for j in self.plain), *partials))]
        numbers = frame[start:finish].view(np.float64)
        numbers[:] = scalars
        count = math.prod(dims) // max(size, 1)
        for k, ((j, how), partial) in enumerate(zip(self.reduced.items(), partials)):
            at = finish + k * RECORD
            frame[at : at + RECORD] = (
                KINDS[how],
                copies,
                size,
                _address(targets[j]),
                _address(partial),
                0,
                targets[j].itemsize,
            )
            frame[at + 5 : at + 6].view(np.float64)[0] = count if how == "mean" else 1
        address = _address(frame)
        serial = runner(address)
        run: Any = functools.partial(serial)  # which has attributes
        if items > 1 and math.prod(dims) * self.cost >= _WORTH and threads.maximum() > 1:
            run = _parallel(serial, frame, items)
        if before or after:
            run = _around(run, before, after)
        run.scalars = numbers
        run.keep = (frame, sources, targets, partials, self)
        return run


def _cost(tree: tuple[Any, ...]) -> int:
    """About how many operations an expression takes for an element."""
    if tree[0] in ("name", "num"):
        return 0
    own = 1 if tree[0] != "call" or tree[1] in _CHEAP else 20
    return own + sum(_cost(t) for t in tree[1:] if isinstance(t, tuple))


_CHEAP = frozenset("where maximum minimum abs square relu sign sqrt rsqrt reciprocal floor ceil trunc rint fix".split())


def _address(a: Array) -> int:
    address: int = a.__array_interface__["data"][0]  # a tenth of the time of `a.ctypes.data`
    return address


def _fit(
    chain: Fused,
    name: str,
    dims: tuple[int, ...],
    letters: str,
    mask: str,
    a: Array,
    before: Copies | None,
    after: Copies | None,
) -> Array:
    """An array as the code takes it: dense; a strided one gets a stand-in that is copied in or out at each call."""
    size = math.prod(d for c, d in zip(letters, dims) if c in mask)
    dtype = chain.type_of(name)
    if a.size != size or a.dtype != dtype:
        raise error(
            ValueError,
            f"fused chain {chain!r}: operand over '{mask}' must have {size} elements of {dtype}, "
            f"got {a.dtype} {a.shape}",
        )
    if a.flags.c_contiguous and a.flags.aligned:
        return a
    lent = np.empty(a.shape, a.dtype)
    if before is not None:
        before.append((lent, a))
    if after is not None:
        after.append((a, lent))
    return lent


def _parallel(call: Callable[..., Any], frame: Array, items: int) -> Callable[[], None]:
    def run() -> None:
        workers = threads.count()
        if workers > 1:
            workers = min(workers, items)
            with threads.parallel(workers) as granted:
                if granted:
                    frame[DRIVER] = jit.driver_address()
                    call(workers)
                    return
        call()

    return run


def _around(inner: Callable[[], Any], before: Copies, after: Copies) -> Callable[[], None]:
    def run() -> None:
        for to, a in before:
            np.copyto(to, a)
        inner()
        for to, a in after:
            np.copyto(to, a)

    return run


class Compiled:
    """What ``compile_fused`` returns: bind it to arrays once, or call it on arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from mxcore.plugin import Fused
    >>> from mxcore_cpu.fused import compile_chain
    >>> code = compile_chain(Fused(["x"], ["x * s + 1"], scalars=["s"]))
    >>> x, y = np.arange(3, dtype="f4"), np.empty(3, "f4")
    >>> run = code.bind([y], [x], [2.0])
    >>> run(); y.tolist()
    [1.0, 3.0, 5.0]
    >>> run.scalars[0] = 3; run(); y.tolist()
    [1.0, 4.0, 7.0]
    """

    __slots__ = ("chain", "_code", "_find")

    def __init__(self, chain: Fused, code: Code | None, find: Callable[[Fused], Code]) -> None:
        self.chain, self._code, self._find = chain, code, find

    def bind(self, outs: Sequence[Array], inputs: Sequence[Array], scalars: Sequence[float] = ()) -> Any:
        """A function without arguments that computes the outputs in these buffers.

        Parameters
        ----------
        outs : sequence of ndarray
            Written. They may be inputs as :attr:`Fused.inplace` says.
        inputs : sequence of ndarray
        scalars : sequence of float

        Returns
        -------
        callable
            Its array `scalars` may be written to between calls. Not for two threads at once if the chain reduces.

        Raises
        ------
        MXNetError, ValueError
            If numbers of operands, sizes or dtypes differ from what was compiled.
        """
        known = self.chain.for_operands(outs, inputs, scalars)
        if known is None:
            return _empty(self.chain, outs)
        assert known.dims is not None  # as it has a layout
        code = self._code if known is self.chain and self._code is not None else self._find(known)
        return code.bind(known.dims, outs, inputs, scalars)

    def __call__(self, outs: Sequence[Array], *operands: Any) -> None:
        """Compute once: ``f(outs, *inputs, *scalars)``."""
        n = len(self.chain.inputs)
        self.bind(outs, operands[:n], operands[n:])()


def _empty(chain: Fused, outs: Sequence[Array]) -> Any:
    """The call for inputs without elements."""
    bound: Any = functools.partial(chain.fill_empty, outs)
    bound.scalars = np.empty(len(chain.scalars))
    return bound
