"""What a program looks like, in words."""

from __future__ import annotations

from typing import Any

from .program import Program

__all__ = ["describe"]


def describe(program: Program) -> str:
    """The steps of a program, one a line with its inputs and its place in memory, and the bytes planned in all.

    The last three lines are MXNet's, since scripts take them by their number; kernels here ask nobody for memory.
    """
    name = {s: n for n, s in program.variables.items()}
    name.update({s: f"{n.name}[{i}]" for (n, i), s in program.slot.items() if n.op is not None})
    lines = []
    for t, step in enumerate(program.steps):
        if t == program.split:
            lines.append("-- backward")
        if step.head >= 0:
            lines.append(f"head {step.head} = {name[step.ins[0]]}")
            continue
        ins = ", ".join(name.get(s, "?") for s in step.ins)
        outs = ", ".join(_place(program, step, s) for s in step.outs)
        lines.append(f"{step.op.name} {step.node.name}({ins}) -> {outs} on {step.ctx}")
    planned = program.nbytes + program.scratch
    total = planned + sum(_bytes(program.specs[s]) for s in program.claimed if program.claimed[s] < program.n_first)
    lines += [
        f"Planned {planned} bytes",
        f"Total {total >> 20} MB allocated",
        "Total 0 TempSpace resource requested",
        "",
    ]
    return "\n".join(lines)


def _bytes(spec: Any) -> int:
    return int(spec.size * spec.dtype.itemsize)


def _place(program: Program, step: Any, slot: int) -> str:
    spec = program.specs[slot]
    what = f"{spec.dtype}{spec.shape}" if spec.shape is not None else "a shape known by running"
    if slot in program.claimed:
        return f"{what} as head {program.claimed[slot]}"
    if slot in program.places:
        return f"{what} at {program.places[slot][1]}"
    return f"{what} as a view" if step.view else what
