"""Graphs as text for people."""

from __future__ import annotations

from collections.abc import Sequence

from .._core.graph import topo
from .attrs import param_texts
from .base import Entry

__all__ = ["debug_text"]


def debug_text(heads: Sequence[Entry]) -> str:
    """All nodes with their inputs and attributes, in the layout of MXNet's ``debug_str``."""
    first = heads[0][0]
    if len(heads) == 1 and first.op is None:
        return f"Variable:{first.name}\n"
    if len(heads) == 1 and not first.inputs:
        return f"AtomicFunctor  Op:{first.op.name}\n"
    lines = ["Symbol Outputs:", *(f"\toutput[{k}]={n.name}({i})" for k, (n, i) in enumerate(heads))]
    writes: dict[int, int] = {}
    for n in topo(heads):
        if n.op is None:
            lines.append(f"Variable:{n.name}")
            continue
        lines += ["-" * 20, f"Op:{n.op.name}, Name={n.name}", "Inputs:"]
        for k, (m, i) in enumerate(n.inputs):
            if m.op is None and (k in n.params._sig.aux or k in n.params._sig.mutates):
                writes[id(m)] = writes.get(id(m), 0) + 1
            lines.append(f"\targ[{k}]={m.name}({i})" + (f" version={writes.get(id(m), 0)}" if m.op is None else ""))
        attrs = {**param_texts(n), **n.attrs}
        if attrs:
            lines += ["Attrs:", *(f"\t{k}={v}" for k, v in sorted(attrs.items()))]
    return "\n".join(lines) + "\n"
