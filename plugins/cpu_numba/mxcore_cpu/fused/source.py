"""Print the Numba source of a fused chain.

The source runs over blocks of lines: a line is the last dimension (or a part of it), a block some consecutive indices
of the other dimensions. Sizes come from the frame, so chains of one pattern share their code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mxcore.plugin import Fused, print_with

from .loops import HEADER, KINDS, REGISTERS

__all__ = ["print_source"]

_TEXT = '''"""A fused elementwise chain over {pattern}."""
from numpy import {dtype}, inf, nan

from mxcore_cpu import math as m
from mxcore_cpu.fused.loops import add_partial, half, half_value, line_of, real, step, value, word


@step
def chain({arguments}):
{steps}
    return {results},


line = line_of(chain, {inputs}, {outputs}, {reduced}, {kinds}, {across})


def body(first, last, frame):
    rows, n, chunk, chunks = word(frame, 3), word(frame, 4), word(frame, 5), word(frame, 6)
    block, by_block, by_part, size = word(frame, 7), word(frame, 8), word(frame, 9), word(frame, 10)
{setup}
    for item in range(first, last):
        number, part = item // chunks, item % chunks
        begin, row = part * chunk, number * block
        end, count = min(rows, row + block), min(chunk, n - begin)
        copy = (number * by_block + part * by_part) * size
{decode}
        while row < end:
{offsets}
{call}
            row += 1
{advance}
'''


def _cast(dtype: str, text: str) -> str:
    """A value in a dtype, as the code holds it: float16 is a float32 that has been rounded."""
    return f"half(float32({text}))" if dtype == "float16" else f"{REGISTERS[dtype]}({text})"


def _expression(tree: tuple[Any, ...], names: Mapping[str, str], dtype: str) -> str:
    held = REGISTERS[dtype]
    return print_with(
        tree,
        names.__getitem__,
        lambda fn, a: f"m.{fn}({', '.join(a)})",
        lambda v: f"{held}({float(v)!r})",
        {"and": "&", "or": "|", "not": "not "},
        _cast,
    )


def _stride(mask: str, letter: str, dims: str) -> list[str]:
    """The factors of a dimension's stride in an array."""
    return [f"d{c}" for c in dims[dims.index(letter) + 1 : -1] if c in mask] + (["n"] if dims[-1] in mask else [])


def _offset(mask: str, dims: str, begin: bool = True) -> str:
    terms = [" * ".join([f"i{c}", *_stride(mask, c, dims)]) for c in dims[:-1] if c in mask]
    return " + ".join(terms + (["begin"] if begin and dims[-1] in mask else [])) or "0"


def print_source(chain: Fused) -> str:
    """The text of a module with the functions `chain` (one element) and `body` (some blocks of lines)."""
    assert chain.pattern is not None and chain.dims is not None
    pattern, dims = chain.pattern, "abcdefghijklmnopqrstuvwxyz"[: len(chain.dims)]
    last = dims[-1]
    types = [*map(chain.type_of, chain.inputs), *map(chain.type_of, chain.outputs)]
    sizes = [np.dtype(t).itemsize for t in types]
    n_in = len(chain.inputs)
    ins, outs = pattern[:n_in], pattern[n_in:]
    along = [i for i in range(n_in) if last in ins[i]]  # vary along the line
    fixed = [i for i in range(n_in) if last not in ins[i]]
    plain = [j for j, how in enumerate(chain.reduce) if how is None]
    kinds = {j: KINDS[how] for j, how in enumerate(chain.reduce) if how is not None}
    reduced = [*kinds]
    across = bool(reduced) and last in outs[reduced[0]]

    names = {name: f"v{i}" for i, name in enumerate(chain.inputs)} | {
        name: f"s{i}" for i, name in enumerate(chain.scalars)
    }
    lines = []
    for i, (name, tree) in enumerate(chain.steps):
        lines.append(f"    t{i} = {_expression(tree, names, chain.type_of(name))}")
        names[name] = f"t{i}"
    arguments = [f"v{i}" for i in (*along, *fixed)] + [f"s{i}" for i in range(len(chain.scalars))]

    # Places in the frame: header, dimensions but the last, addresses, scalars.
    place = HEADER
    setup = []
    for c in dims[:-1]:
        setup.append(f"    d{c} = word(frame, {place})")
        place += 1
    for i in range(n_in):
        setup.append(f"    p{i} = word(frame, {place})")
        place += 1
    for j in (*plain, *reduced):
        setup.append(f"    o{j} = word(frame, {place})")
        place += 1
    for i, name in enumerate(chain.scalars):
        setup.append(f"    s{i} = {_cast(chain.type_of(name), f'real(frame, {place})')}")
        place += 1
    decode = ["        rest = row"] if len(dims) > 1 else []
    for c in dims[-2:0:-1]:
        decode.append(f"        i{c} = rest % d{c}\n        rest = rest // d{c}")
    if len(dims) > 1:
        decode.append(f"        i{dims[0]} = rest")
    advance = []
    for depth, c in enumerate(dims[-2::-1] if len(dims) > 1 else ""):
        pad = "            " + "    " * depth
        advance.append(f"{pad}i{c} += 1")
        if c != dims[0]:
            advance.append(f"{pad}if i{c} == d{c}:\n{pad}    i{c} = 0")

    masks = {(pattern[i], sizes[i]): f"x_{pattern[i]}_{sizes[i]}" for i in (*range(n_in), *(n_in + j for j in plain))}
    offsets = [f"            {name} = ({_offset(mask, dims)}) * {size}" for (mask, size), name in masks.items()]
    if reduced:
        offsets.append(f"            x_partial = (copy + {_offset(outs[reduced[0]], dims)}) * 8")

    def packed(items: Sequence[str]) -> str:
        return f"({', '.join(items) or '0'},)"

    place_of = [masks.get(key, "") for key in zip(pattern, sizes)]
    addresses = [f"p{i} + {place_of[i]}" for i in along] + [f"o{j} + {place_of[n_in + j]}" for j in plain]
    invariants = [
        f"half_value(p{i} + {place_of[i]})"
        if types[i] == "float16"
        else f"value({REGISTERS[types[i]]}, p{i} + {place_of[i]})"
        for i in fixed
    ]
    invariants += [f"s{i}" for i in range(len(chain.scalars))]
    partials = [f"o{j} + x_partial" for j in reduced]
    call = f"line(count, {packed(addresses)}, {packed(invariants)}, {packed(partials if across else [])})"
    if reduced and not across:
        call = f"found = {call}" + "".join(
            f"\n            add_partial({kinds[j]}, o{j} + x_partial, found[{k}])" for k, j in enumerate(reduced)
        )
    return _TEXT.format(
        pattern=", ".join(p or "()" for p in pattern),
        dtype=", ".join(sorted({*REGISTERS.values()})),
        arguments=", ".join(arguments),
        steps="\n".join(lines) or "    pass",
        results=", ".join(names[chain.outputs[j]] for j in (*plain, *reduced)),
        inputs=tuple(types[i] for i in along),
        outputs=tuple(types[n_in + j] for j in plain),
        reduced=tuple(types[n_in + j] for j in reduced),
        kinds=tuple(kinds.values()),
        across=across,
        setup="\n".join(setup),
        decode="\n".join(decode),
        offsets="\n".join(offsets),
        call="            " + call,
        advance="\n".join(advance),
    )
