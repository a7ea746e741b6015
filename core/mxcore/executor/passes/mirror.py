"""The pass "mirror": backward computes cheap results again instead of keeping them.

Source: Chen et al., "Training deep nets with sublinear memory cost", 2016. What is computed again is chosen as in
MXNet: nodes with the attribute ``force_mirroring='True'``, or, with ``MXNET_BACKWARD_DO_MIRROR=1``, all but the
expensive ones and those whose copy would have to live long.
"""

from __future__ import annotations

import os

from ..._core.graph import Graph, Node, topo
from ...rewriting import rewrite

__all__ = ["MIRRORED", "mirror", "mirror_all"]

#: Attribute of recomputed nodes: they run as late as they can.
MIRRORED = "__mirrored__"


def mirror_all() -> bool:
    """Whether the environment asks for it in all graphs."""
    return os.environ.get("MXNET_BACKWARD_DO_MIRROR", "0").lower() in ("1", "true")


def mirror(graph: Graph, everywhere: bool) -> Graph:
    """Give the backward part copies of the forward nodes that it may compute again.

    Parameters
    ----------
    graph : Graph
        ``info['n_first']`` heads are the forward part.
    everywhere : bool
        Not only those with the attribute.

    Returns
    -------
    Graph
        The same one if no node is to be recomputed. Nodes that draw random numbers, keep a state or write to their
        inputs never are.
    """
    forward = topo(graph.heads[: graph.info["n_first"]])
    chosen = _forced(forward)
    if everywhere:
        chosen |= _cheap(forward, chosen)
    copies: dict[int, Node] = {}
    for n in forward:
        if id(n) in chosen:
            inputs = [(copies.get(id(m), m), i) for m, i in n.inputs]
            copies[id(n)] = Node(n.op, n.params, inputs, f"{n.name}_mirror", {**n.attrs, MIRRORED: "1"})
    if not copies:
        return graph
    kept = {id(n) for n in forward}

    def visit(n: Node, inputs: list[tuple[Node, int]], fact: object) -> Node | None:
        # The backward of a stateful node reads what its forward kept, which is the originals.
        if id(n) in kept or n.forward is not None or not any(id(m) in copies for m, _ in inputs):
            return None
        return Node(n.op, n.params, [(copies.get(id(m), m), i) for m, i in inputs], n.name, n.attrs, n.forward)

    new = rewrite(graph, visit)
    for n in forward:
        copy = copies.get(id(n))
        if copy is not None:
            for i in range(n.n_out):
                for values in (new.shapes, new.dtypes, new.stypes):
                    if (n, i) in values:
                        values[copy, i] = values[n, i]
            if id(n) in new.info["contexts"]:
                new.info["contexts"][id(copy)] = new.info["contexts"][id(n)]
    return new


def _may(n: Node) -> bool:
    """Whether computing a node again gives the same and does no harm."""
    return n.op is not None and not (n.params._sig.random or n.op.stateful or n.params._sig.mutates)


def _dear(n: Node) -> bool:
    """Whether computing a node again takes longer than its result is worth."""
    return not n.op.facet("recompute", n.params, default=True)


def _forced(forward: list[Node]) -> set[int]:
    return {
        id(n)
        for n in forward
        if _may(n) and n.attrs.get("__force_mirroring__", n.attrs.get("force_mirroring", "")).lower() in ("1", "true")
    }


def _cheap(forward: list[Node], forced: set[int]) -> set[int]:
    """The cheap nodes whose copies live for a moment only.

    Backward goes through the nodes from the last to the first. A node's copy lives from the first time that backward
    needs it, for itself or to compute another copy, to the backward of the first node that reads it. With expensive
    nodes in between, as over the short cut of a residual block, it saves no memory over keeping the original.
    """
    readers: dict[int, list[Node]] = {}
    for n in forward:
        for m, _ in n.inputs:
            readers.setdefault(id(m), []).append(n)
    at = {id(n): i for i, n in enumerate(forward)}
    dear, total = [], 0  # expensive nodes before each
    for n in forward:
        dear.append(total)
        total += n.op is not None and (_dear(n) or not _may(n))
    chosen: set[int] = set()
    needed: dict[int, int] = {}
    for n in reversed(forward):
        times = [max(at[id(r)], needed.get(id(r), 0)) for r in readers.get(id(n), ())]
        if not times or not _may(n) or _dear(n) or id(n) in forced:
            continue
        last = min(at[id(r)] for r in readers[id(n)])
        if dear[max(times)] - dear[last] <= _dear(forward[last]):
            chosen.add(id(n))
            needed[id(n)] = max(times)
    return chosen
