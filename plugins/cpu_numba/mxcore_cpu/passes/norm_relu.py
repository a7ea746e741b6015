"""The graph pass that lets a normalization take the positive part behind it along: programs that train."""

from __future__ import annotations

from collections import Counter
from typing import Any

from mxcore.plugin import Graph, Node, given_params, rewrite

from . import DEVICES, stand_in

__all__ = ["norm_relu"]

Entry = tuple[Node, int]


def norm_relu(graph: Graph) -> Graph:
    """A graph with `BatchNormWithReLU` in the place of `BatchNorm` and an `Activation` that alone reads it.

    So are their gradients, and what one of them gives the other is not written to memory.

    Parameters
    ----------
    graph : Graph
        Of a late pass.
    """
    info = graph.info
    if not info["is_train"]:
        return graph
    reads = Counter(e for n in graph.nodes for e in n.inputs)
    reads.update(graph.heads)
    contexts, ours = info.get("contexts", {}), info["ctx"]
    joined: dict[int, Node] = {}  # an activation, or a normalization's gradient -> what it reads and takes in
    norms: dict[Entry, Node] = {}  # the result of an activation that has taken in a normalization -> that
    by_statistics: dict[Entry, Node] = {}
    for n in graph.nodes:
        if n.op is None or not n.inputs:
            continue
        before, i = n.inputs[0]
        ctx = contexts.get(id(n), ours)
        if before.op is None or i or reads[before, 0] > 1 or contexts.get(id(before), ours) is not ctx:
            continue
        if ctx.device_type not in DEVICES:
            continue
        if _is(n, "Activation") and before.op.name == "BatchNorm" and not before.params.output_mean_var:
            joined[id(n)] = before
            norms[n, 0] = by_statistics[before, 1] = before
        elif n.op.name == "_backward_BatchNorm" and _is(before, "_backward_Activation"):
            # Of that activation, and of that normalization.
            norm = norms.get(before.inputs[1])
            if norm is not None and by_statistics.get(n.inputs[3]) is norm and n.inputs[1] == norm.inputs[0]:
                joined[id(n)] = before
    taken = {id(before) for before in joined.values()}
    if not taken:
        return graph
    made: dict[int, Node] = {}

    def visit(n: Node, inputs: list[Entry], fact: Any) -> Any:
        if id(n) in taken:
            if n.op.name == "BatchNorm":
                made[id(n)] = stand_in("_contrib_BatchNormWithReLU", given_params(n.params), inputs, n)
                return made[id(n)]
            return [inputs[0]]
        before = joined.get(id(n))
        if before is None:
            return None
        if n.op.name == "Activation":
            return [(made[id(before)], 0)]
        norm = made[id(norms[before.inputs[1]])]
        given = [inputs[0], (norm, 0), *inputs[1:]]
        return stand_in("_backward_contrib_BatchNormWithReLU", given_params(n.params), given, n)

    return rewrite(graph, visit)


def _is(n: Node, op: str) -> bool:
    return bool(n.op.name == op and n.params.act_type == "relu")
