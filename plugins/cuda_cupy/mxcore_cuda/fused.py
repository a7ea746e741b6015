"""Fused chains as CUDA C++: a kernel that maps, or one that reduces along some dimensions.

A kernel that reduces has blocks of `bx` times `by` threads: along x the elements that stay, side by side where they lie
so in memory, along y those that are summed up. Where few elements stay, each is shared by several blocks, and a second
kernel sums up what they found. Which block takes what depends on sizes only, so results do not change from run to run.

Scalars are arguments: a rate that changes compiles nothing.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from mxcore.plugin import Alone, Fused, error, print_with

from .drivers import driver
from .dtypes import HALVES, IN_C
from .launching import MOST_BLOCKS, Kernel
from .sources import Code

__all__ = ["Compiled", "code_of", "compile_chain", "print_cuda", "print_expression"]

#: Arrays to copy to, and from.
Copies: TypeAlias = list[tuple[Any, Any]]

_NONE = {"sum": "0", "mean": "0", "max": "-INFINITY", "min": "INFINITY"}
_JOIN = {"sum": "{0} + {1}", "mean": "{0} + {1}", "max": "m::maximum({0}, {1})", "min": "m::minimum({0}, {1})"}
#: Threads of a block; elements that each block of a shared reduction takes at least; blocks of a launch that shares.
_THREADS, _SHARE, _BLOCKS = 256, 1 << 13, 1024

_MAP = """#include "math.cuh"
KERNEL(256) chain({arguments}) {{
{numbers}
    const {index} step = ({index})gridDim.x * blockDim.x, total = {total};
    for ({index} first = blockIdx.x * ({index})blockDim.x + threadIdx.x; first < total; first += {at_once} * step) {{
{memory}
#pragma unroll
        for (int u = 0; u < {at_once}; u++) {{
            const {index} n = first + u * step;
            if (n >= total) break;
{decode}
{reads}
        }}
#pragma unroll
        for (int u = 0; u < {at_once}; u++) {{
            const {index} n = first + u * step;
            if (n >= total) break;
{decode}
{work}
        }}
    }}
}}
EACH(chain)
"""

_REDUCE = """#include "math.cuh"
KERNEL(256) chain({arguments}) {{
{numbers}
    const {index} kept = {kept}, gone = {gone};
    const {index} k = blockIdx.x * ({index})blockDim.x + threadIdx.x;
    const {index} share = (gone + gridDim.y - 1) / gridDim.y, first = blockIdx.y * share;
    const {index} end = first + share < gone ? first + share : gone;
{start}
    if (k < kept) {{
{decode_kept}
        for ({index} next = first + threadIdx.y; next < end; next += {at_once} * ({index})blockDim.y) {{
{memory}
#pragma unroll
            for (int u = 0; u < {at_once}; u++) {{
                const {index} n = next + u * ({index})blockDim.y;
                if (n >= end) break;
{decode}
{reads}
            }}
#pragma unroll
            for (int u = 0; u < {at_once}; u++) {{
                const {index} n = next + u * ({index})blockDim.y;
                if (n >= end) break;
{decode}
{work}
            }}
        }}
    }}
    SHARED({wide}, part, [256]);
    const int at = threadIdx.y * blockDim.x + threadIdx.x;
{fold}
}}
BLOCKS(chain)
{finish}"""

_FINISH = """
// What blocks that shared a sum found, by a block for each.
KERNEL(128) finish{j}(const {wide}* found, {type}* y, {index} kept, {index} gone, int parts) {{
    {wide} total = {none};
    for (int i = threadIdx.x; i < parts; i += blockDim.x) total = {join};
    SHARED({wide}, part, [128]);
    part[threadIdx.x] = total;
    __syncthreads();
    for (int h = blockDim.x / 2; h; h /= 2) {{
        if (threadIdx.x < h) part[threadIdx.x] = {join_parts};
        __syncthreads();
    }}
    if (threadIdx.x == 0) y[blockIdx.x] = ({type})({result});
}}
BLOCKS(finish{j})
"""


def _cast(dtype: str, text: str) -> str:
    """A value in a dtype, as code holds it: half precision is a float that has been rounded."""
    memory, held, _ = IN_C[dtype]
    if dtype == "bool":
        return f"({held})(({text}) != 0)"
    return f"({held})({memory})({held})({text})" if dtype in HALVES else f"({held})({text})"


def _number(v: float, held: str) -> str:
    v = float(v)
    text = "NAN" if v != v else "INFINITY" if v == math.inf else "-INFINITY" if v == -math.inf else repr(v)
    return f"(({held}){text})"


def print_expression(tree: tuple[Any, ...], names: Mapping[str, str], dtype: str) -> str:
    """An expression over C's `names` of values, in a dtype."""
    held = IN_C[dtype].held

    def call(fn: str, a: list[str]) -> str:
        return f"m::where<{held}>({', '.join(a)})" if fn == "where" else f"m::{fn}({', '.join(a)})"

    words = {"and": "&&", "or": "||", "not": "!"}
    # `print_with` gives casts the numbers in them as Python writes them.
    return print_with(tree, names.__getitem__, call, lambda v: _number(v, held), words, _cast)


def _offset(mask: str, dims: str) -> str:
    terms: list[str] = []
    stride: list[str] = []
    for c in reversed(dims):
        if c in mask:
            terms.append(" * ".join([f"i{c}", *stride]))
            stride.append(f"d{c}")
    return " + ".join(terms) or "0"


def _decoded(letters: str, count: str, index: str, pad: str) -> str:
    """Lines that find the place along each dimension, the last one running fastest."""
    if not letters:
        return ""
    lines = [f"{pad}{index} rest_{count} = {count};"] if len(letters) > 1 else []
    for c in letters[:0:-1]:
        lines.append(f"{pad}const {index} i{c} = rest_{count} % d{c};\n{pad}rest_{count} /= d{c};")
    lines.append(f"{pad}const {index} i{letters[0]} = {f'rest_{count}' if len(letters) > 1 else count};")
    return "\n".join(lines)


def print_cuda(chain: Fused, wide: bool = False) -> str:
    """The text of the kernels of a chain that has a pattern; `wide`, with indices of 64 bits."""
    assert chain.pattern is not None and chain.dims is not None
    index = "i64" if wide else "int"
    letters = "abcdefghijklmnopqrstuvwxyz"[: len(chain.dims)]
    n_in = len(chain.inputs)
    ins, outs = chain.pattern[:n_in], chain.pattern[n_in:]
    reduced = [j for j, how in enumerate(chain.reduce) if how is not None]
    kept = "".join(c for c in letters if not reduced or c in outs[reduced[0]])
    gone = "".join(c for c in letters if c not in kept)
    pad = " " * (16 if reduced else 12)
    names = {name: f"v{i}" for i, name in enumerate(chain.inputs)}
    names |= {name: f"s{i}" for i, name in enumerate(chain.scalars)}
    reads, work = [], []
    held_in = [IN_C[chain.type_of(name)].held for name in chain.inputs]
    for i, (held, mask) in enumerate(zip(held_in, ins)):
        reads.append(f"r{i}[u] = ({held})p{i}[{_offset(mask, letters)}];")
        work.append(f"const {held} v{i} = r{i}[u];")
    for i, (name, tree) in enumerate(chain.steps):
        dtype = chain.type_of(name)
        text = print_expression(tree, names, dtype)
        rounded = _cast(dtype, text) if dtype in (*HALVES, "bool") else text
        work.append(f"const {IN_C[dtype].held} t{i} = {rounded};")
        names[name] = f"t{i}"
    stored = {j: f"({IN_C[chain.type_of(name)].memory}){names[name]}" for j, name in enumerate(chain.outputs)}
    work += [f"o{j}[{_offset(outs[j], letters)}] = {stored[j]};" for j in range(len(outs)) if j not in reduced]
    # Sums of many are at least as exact as any of their results.
    sums = "double" if any(chain.type_of(chain.outputs[j]) == "float64" for j in reduced) else "A"
    for j in reduced:
        join = _JOIN[str(chain.reduce[j])].format(f"a{j}", f"({sums}){names[chain.outputs[j]]}")
        work.append(f"a{j} = {join};")
    memory = [IN_C[chain.type_of(name)].memory for name in chain.outputs]
    arguments = [f"const {IN_C[chain.type_of(name)].memory}* p{i}" for i, name in enumerate(chain.inputs)]
    arguments += [f"{t}* o{j}" for j, t in enumerate(memory)]
    arguments += [f"{sums}* q{j}" for j in reduced]
    arguments += [f"{index} d{c}" for c in letters]
    arguments += [f"double u{i}" for i in range(len(chain.scalars))]
    common = {
        "arguments": ", ".join(arguments),
        "index": index,
        "wide": sums,
        "numbers": "\n".join(
            f"    const {IN_C[chain.type_of(name)].held} s{i} = {_cast(chain.type_of(name), f'u{i}')};"
            for i, name in enumerate(chain.scalars)
        ),
        "work": "\n".join(pad + line for line in work),
        "total": " * ".join(f"d{c}" for c in letters),
    }
    # Elements whose reads are on their way together.
    at_once = 4 if n_in <= 4 else 2 if n_in <= 8 else 1
    common |= {
        "at_once": str(at_once),
        "memory": "\n".join(f"{pad[4:]}{held} r{i}[{at_once}];" for i, held in enumerate(held_in)),
        "reads": "\n".join(pad + line for line in reads),
    }
    if not reduced:
        return _MAP.format(**common, decode=_decoded(letters, "n", index, pad))
    return _REDUCE.format(
        **common,
        kept=" * ".join(["1", *(f"d{c}" for c in kept)]),
        gone=" * ".join(["1", *(f"d{c}" for c in gone)]),
        start="\n".join(f"    {sums} a{j} = {_NONE[str(chain.reduce[j])]};" for j in reduced),
        decode_kept=_decoded(kept, "k", index, "        "),
        decode=_decoded(gone, "n", index, pad),
        fold="\n".join(_fold(chain, j, memory[j], sums) for j in reduced),
        finish="".join(_finish(chain, j, memory[j], sums, common) for j in reduced),
    )


def _fold(chain: Fused, j: int, t: str, sums: str) -> str:
    """How a block joins what its threads have of an output of type `t`."""
    how = str(chain.reduce[j])
    return (
        f"    part[at] = a{j};\n    __syncthreads();\n"
        "    for (int h = blockDim.y / 2; h; h /= 2) {\n"
        f"        if (threadIdx.y < h) part[at] = {_JOIN[how].format('part[at]', 'part[at + h * blockDim.x]')};\n"
        "        __syncthreads();\n    }\n"
        "    if (threadIdx.y == 0 && k < kept) {\n"
        f"        if (gridDim.y > 1) q{j}[blockIdx.y * kept + k] = part[at];\n"
        f"        else o{j}[k] = ({t})({_result(how, 'part[at]', sums)});\n"
        "    }"  # no barrier: since the last one each thread has read its own place only, as the next output writes
    )


def _finish(chain: Fused, j: int, t: str, sums: str, common: Mapping[str, str]) -> str:
    """The kernel that joins what blocks have of an output of type `t`."""
    how = str(chain.reduce[j])
    return _FINISH.format(
        **common,
        j=j,
        type=t,
        none=_NONE[how],
        join=_JOIN[how].format("total", "found[i * kept + blockIdx.x]"),
        join_parts=_JOIN[how].format("part[threadIdx.x]", "part[threadIdx.x + h]"),
        result=_result(how, "part[0]", sums),
    )


def _result(how: str, text: str, held: str) -> str:
    return f"{text} / ({held})gone" if how == "mean" else text


def code_of(chain: Fused, wide: bool = False) -> Code:
    """The source of the kernels of a chain, which knows the types that it mixes."""
    macros = sorted({IN_C[t].macro for t in chain.types.values()} - {""})
    return Code("fused.cu", print_cuda(chain, wide), chain.dtype, tuple(macros))


class Chain:
    """The compiled kernels of a chain on one device."""

    def __init__(self, chain: Fused, wide: bool, index: int) -> None:
        code = code_of(chain, wide)
        self.kernel = Kernel(code, "chain", index)
        self.reduced = [j for j, how in enumerate(chain.reduce) if how is not None]
        self.finish = [Kernel(code, f"finish{j}", index) for j in self.reduced]
        sums = [chain.type_of(chain.outputs[j]) for j in self.reduced]
        self.sums = "float64" if "float64" in (*sums, chain.dtype) else "float32"


class Bound:
    """A chain bound to arrays: a call without arguments.

    Attributes
    ----------
    scalars : numpy.ndarray
        May be written to between calls.
    """

    __slots__ = ("scalars", "_launches", "_pack", "_memory", "_place", "_keep", "_before", "_after")

    def __init__(
        self,
        launches: Sequence[tuple[Kernel, Any, Any, Any]],
        scalars: Sequence[float],
        place: int,
        keep: Any,
        before: Copies,
        after: Copies,
    ) -> None:
        self.scalars = np.array(scalars, np.float64)
        self._launches, self._keep = launches, keep
        self._pack = struct.Struct(f"={len(scalars)}d").pack_into
        self._memory, self._place = launches[0][3].memory, place
        self._before, self._after = before, after

    def __call__(self) -> None:
        for to, a in self._before:
            to[...] = a
        if self.scalars.size:
            self._pack(self._memory, self._place, *self.scalars)
        for kernel, grid, block, packed in self._launches:
            kernel.launch_packed(grid, block, packed)
        for to, a in self._after:
            to[...] = a


class Compiled:
    """What ``compile_fused`` returns: bind it to arrays once, or call it on arrays.

    Parameters
    ----------
    chain : Fused
    """

    __slots__ = ("chain",)

    def __init__(self, chain: Fused) -> None:
        self.chain = chain

    def __call__(self, outs: Sequence[Any], *operands: Any) -> None:
        """Compute once: ``f(outs, *inputs, *scalars)``."""
        n = len(self.chain.inputs)
        self.bind(outs, operands[:n], operands[n:])()

    def bind(self, outs: Sequence[Any], inputs: Sequence[Any], scalars: Sequence[float] = ()) -> Callable[[], None]:
        """A function without arguments that computes the outputs in these arrays.

        Raises
        ------
        MXNetError
            (also ValueError) if numbers of operands, sizes or dtypes differ from what was compiled.
        """
        chain = self.chain.for_operands(outs, inputs, scalars)
        if chain is None:
            return partial(self.chain.fill_empty, outs)
        assert chain.dims is not None  # as it has a layout
        wide = math.prod(chain.dims) >= 2**30  # a step beyond the end must fit too
        return _bound(chain, chain.dims, _kernels(chain, wide, driver().index_of(outs[0])), outs, inputs, scalars)


def _bound(
    chain: Fused,
    dims: tuple[int, ...],
    kernels: Chain,
    outs: Sequence[Any],
    inputs: Sequence[Any],
    scalars: Sequence[float],
) -> Bound:
    letters = "abcdefghijklmnopqrstuvwxyz"[: len(dims)]
    lengths = dict(zip(letters, dims))
    assert chain.pattern is not None  # as it has dims
    before: Copies = []
    after: Copies = []
    operands = [
        _fit(chain, name, math.prod(lengths[c] for c in mask), a, before if i < len(inputs) else after, i < len(inputs))
        for i, (name, mask, a) in enumerate(zip((*chain.inputs, *chain.outputs), chain.pattern, (*inputs, *outs)))
    ]
    total = math.prod(dims)
    launches: list[tuple[Kernel, Any, Any, Any]] = []
    run, partials = kernels.kernel, []
    if not kernels.reduced:
        grid, block = (min(-(-total // _THREADS), MOST_BLOCKS), 1, 1), (_THREADS, 1, 1)
    else:
        mask = chain.pattern[len(inputs) + kernels.reduced[0]]
        kept = math.prod(lengths[c] for c in mask)
        gone = total // kept
        bx = 32 if letters[-1] in mask else 1
        blocks = -(-kept // bx)
        parts = max(1, min(_BLOCKS // blocks, gone // (_SHARE // bx)))
        grid, block = (blocks, parts, 1), (bx, _THREADS // bx, 1)
        if parts > 1:
            index = driver().index_of(outs[0])
            partials = [driver().empty((parts, kept), kernels.sums, index) for _ in kernels.reduced]
    numbers = [0.0] * len(scalars)
    places = partials or [None] * len(kernels.reduced)
    launches.append((run, grid, block, run.arguments([*operands, *places, *dims, *numbers])))
    for j, finish, found in zip(kernels.reduced, kernels.finish, partials):
        over = (kept, 1, 1), (128, 1, 1)
        launches.append((finish, *over, finish.arguments([found, operands[len(inputs) + j], kept, gone, parts])))
    place = 8 * (len(operands) + len(kernels.reduced) + len(dims))
    return Bound(launches, scalars, place, (operands, partials, kernels), before, after)


def _fit(chain: Fused, name: str, size: int, a: Any, copies: Copies, read: bool) -> Any:
    """An array as kernels take it; a strided one gets a stand-in that is copied in or out at each call."""
    dtype = chain.type_of(name)
    if a.size != size or a.dtype != dtype:
        raise error(
            ValueError, f"fused chain {chain!r}: {name} must have {size} elements of {dtype}, got {a.dtype} {a.shape}"
        )
    if a.flags.c_contiguous:
        return a
    lent = driver().empty(a.shape, a.dtype, driver().index_of(a))
    copies.append((lent, a) if read else (a, lent))
    return lent


_alone = Alone()
#: Chains with equal keys share their kernels, whatever their sizes.
_made: dict[Any, Chain] = {}


def _kernels(chain: Fused, wide: bool, index: int) -> Chain:
    found = _made.get((chain.key, wide, index))
    return _alone.do(_compiled, chain, wide, index) if found is None else found


def _compiled(chain: Fused, wide: bool, index: int) -> Chain:
    key = chain.key, wide, index
    if key not in _made:
        _made[key] = Chain(chain, wide, index)
    return _made[key]


def compile_chain(chain: Fused) -> Compiled | None:
    """The kernels of a chain, which are compiled when it is bound; None if some dtype or size is not for them."""
    if chain.dtype not in ("float32", "float64") or not IN_C.keys() >= {*chain.types.values()}:
        return None
    return None if chain.dims is not None and 0 in chain.dims else Compiled(chain)
