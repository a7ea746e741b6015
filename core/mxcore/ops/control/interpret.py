"""Graphs run node by node on arrays with eager operators: what autograd, hooks and higher gradients see."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..._core import dispatch
from ..._core.graph import Node, topo

__all__ = ["interpret"]


def interpret(
    heads: Sequence[tuple[Node, int]],
    values: Mapping[str, Any],
    ctx: Any = None,
    monitor: Callable[[Node, Sequence[Any], list[Any]], None] | None = None,
) -> list[Any]:
    """Compute heads from arrays for the variables; recorded like any eager calls.

    Parameters
    ----------
    heads : sequence of entries
    values : dict of str to Array
        By name of the variable.
    ctx : Context, optional
        Where operators without inputs run; the current context unless told.
    monitor : callable, optional
        Called with (node, inputs, outputs) after each operator.

    Returns
    -------
    list of Array
    """
    done: dict[int, list[Any]] = {}
    for n in topo(heads):
        if n.op is None:
            done[id(n)] = [values[n.name]]
            continue
        inputs = [done[id(m)][i] for m, i in n.inputs]
        found = dispatch.invoke(n.op, inputs, n.params, ctx=ctx)
        done[id(n)] = outputs = list(found) if isinstance(found, (list, tuple)) else [found]
        if monitor is not None:
            monitor(n, inputs, outputs)
    return [done[id(n)][i] for n, i in heads]
