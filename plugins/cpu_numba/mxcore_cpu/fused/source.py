"""Print the Numba source of a fused chain.

The source runs over blocks of lines: a line is the last dimension (or a part of it), a block some consecutive indices of
the other dimensions. Sizes come from the frame, so chains of one pattern share their code.
"""
from __future__ import annotations

from mxcore.plugin import print_with

from .loops import HEADER, KINDS

__all__ = ["print_source"]

_TEXT = '''"""A fused elementwise chain over {pattern}."""
from numpy import {dtype} as F, inf, nan

from mxcore_cpu import math as m
from mxcore_cpu.fused.loops import add_partial, line_of, real, step, value, word


@step
def chain({arguments}):
{steps}
    return {results},


line = line_of(chain, {inputs}, {outputs}, {kinds}, {across})


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


def _number(v: float) -> str:
    text = repr(float(v))
    return f"F({text})" if "n" not in text else f"F({'-' if text[0] == '-' else ''}{text.lstrip('-')})"


def _expression(tree, names) -> str:
    return print_with(tree, names.__getitem__, lambda fn, a: f"m.{fn}({', '.join(a)})", _number, {"and": "&", "or": "|", "not": "not "})


def _stride(mask: str, letter: str, dims: str) -> list[str]:
    """The factors of a dimension's stride in an array."""
    return [f"d{c}" for c in dims[dims.index(letter) + 1:-1] if c in mask] + (["n"] if dims[-1] in mask else [])


def _offset(mask: str, dims: str, begin: bool = True) -> str:
    terms = [" * ".join([f"i{c}", *_stride(mask, c, dims)]) for c in dims[:-1] if c in mask]
    return " + ".join(terms + (["begin"] if begin and dims[-1] in mask else [])) or "0"


def print_source(chain) -> str:
    """The text of a module with the functions `chain` (one element) and `body` (some blocks of lines)."""
    pattern, dims = chain.pattern, "abcdefghijklmnopqrstuvwxyz"[:len(chain.dims)]
    last, size = dims[-1], 4 if chain.dtype == "float32" else 8
    n_in = len(chain.inputs)
    ins, outs = pattern[:n_in], pattern[n_in:]
    along = [i for i in range(n_in) if last in ins[i]]        # vary along the line
    fixed = [i for i in range(n_in) if last not in ins[i]]
    plain = [j for j, how in enumerate(chain.reduce) if how is None]
    reduced = [j for j, how in enumerate(chain.reduce) if how is not None]
    across = bool(reduced) and last in outs[reduced[0]]

    names = {name: f"v{i}" for i, name in enumerate(chain.inputs)} | {name: f"s{i}" for i, name in enumerate(chain.scalars)}
    lines = []
    for i, (name, tree) in enumerate(chain.steps):
        lines.append(f"    t{i} = {_expression(tree, names)}")
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
    for i in range(len(chain.scalars)):
        setup.append(f"    s{i} = F(real(frame, {place}))")
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

    masks = {mask: f"x_{mask}" for mask in (*ins, *(outs[j] for j in plain))}
    offsets = [f"            {name} = ({_offset(mask, dims)}) * {size}" for mask, name in masks.items()]
    if reduced:
        offsets.append(f"            x_partial = (copy + {_offset(outs[reduced[0]], dims)}) * 8")

    def packed(items) -> str:
        return f"({', '.join(items) or '0'},)"

    addresses = [f"p{i} + {masks[ins[i]]}" for i in along] + [f"o{j} + {masks[outs[j]]}" for j in plain]
    invariants = [f"value(F, p{i} + {masks[ins[i]]})" for i in fixed] + [f"s{i}" for i in range(len(chain.scalars))]
    partials = [f"o{j} + x_partial" for j in reduced]
    call = f"line(F, count, {packed(addresses)}, {packed(invariants)}, {packed(partials if across else [])})"
    if reduced and not across:
        call = f"found = {call}" + "".join(
            f"\n            add_partial({KINDS[chain.reduce[j]]}, o{j} + x_partial, found[{k}])" for k, j in enumerate(reduced))
    return _TEXT.format(
        pattern=", ".join(p or "()" for p in pattern), dtype=chain.dtype, arguments=", ".join(arguments), steps="\n".join(lines) or "    pass",
        results=", ".join(names[chain.outputs[j]] for j in (*plain, *reduced)), inputs=len(along), outputs=len(plain),
        kinds=tuple(KINDS[chain.reduce[j]] for j in reduced), across=across, setup="\n".join(setup), decode="\n".join(decode),
        offsets="\n".join(offsets), call="            " + call, advance="\n".join(advance))
