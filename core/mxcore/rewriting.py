"""The walk that passes share: a graph rebuilt from its inputs to its heads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ._core.graph import Graph, Node, topo
from .base import error

__all__ = ["rewrite"]

Entry = tuple[Node, int]


def rewrite(
    graph: Graph, visit: Callable[[Node, list[Entry], Callable[[Entry], Any]], Node | Sequence[Entry] | None]
) -> Graph:
    """A graph in which `visit` may replace operators.

    Parameters
    ----------
    graph : Graph
    visit : callable
        ``(node, its inputs in the new graph, fact) -> replacement``: a node with the same outputs, a list of entries
        that take the place of the outputs, or None to keep the node (over its new inputs). An entry is (node, number
        of the output), such as the ``entry`` of what `GraphF` gives. ``fact(entry)`` is (shape, dtype, stype) of an
        entry of the old graph.

    Returns
    -------
    Graph
        Shapes, dtypes, stypes and info are carried over; what belongs to a node by id in ``info['contexts']`` too.
    """
    done: dict[int, Any] = {}
    new = Graph([])
    new.info = dict(graph.info)
    contexts = new.info["contexts"] = dict(graph.info.get("contexts", {}))

    def fact(e: Entry) -> tuple[Any, Any, str]:
        return graph.shapes.get(e), graph.dtypes.get(e), graph.stypes.get(e, "default")

    def entry(e: Entry) -> Entry:
        found: Entry = done[id(e[0])][e[1]]
        return found

    for n in topo(graph.heads):
        if n.op is None:
            done[id(n)] = [(n, 0)]
        else:
            inputs = [entry(e) for e in n.inputs]
            found = visit(n, inputs, fact)
            if found is None:
                changed = any(a != b for a, b in zip(inputs, n.inputs))
                forward = n.forward if n.forward is None else done[id(n.forward)][0][0]
                found = (
                    Node(n.op, n.params, inputs, n.name, n.attrs, forward) if changed or forward is not n.forward else n
                )
            if isinstance(found, Node):
                if id(n) in contexts:
                    contexts[id(found)] = contexts[id(n)]
                found = [(found, i) for i in range(found.n_out)]
            elif not isinstance(found, (list, tuple)) or not all(isinstance(e, tuple) and len(e) == 2 for e in found):
                raise error(
                    TypeError,
                    f"in the place of node '{n.name}' ({n.op.name}) a list of entries (node, number) is needed, one for "
                    f"each output, or a node, or None to keep it, got {found!r}; the entry of a Value is its `entry`",
                )
            done[id(n)] = found
        for i, e in enumerate(done[id(n)]):
            if e not in new.dtypes:
                new.shapes[e], new.dtypes[e], new.stypes[e] = fact((n, i))
    new.heads = [entry(e) for e in graph.heads]
    return new
