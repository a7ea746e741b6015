"""The pass "mirror": backward computes cheap results again instead of keeping them.

Source: Chen et al., "Training deep nets with sublinear memory cost", 2016. What is computed again is chosen as in MXNet:
nodes with the attribute ``force_mirroring='True'``, or, with ``MXNET_BACKWARD_DO_MIRROR=1``, all but the expensive ones.
"""
from __future__ import annotations

import os

from .._core.graph import Graph, Node, topo
from .rewrite import rewrite

__all__ = ["MIRRORED", "mirror"]

#: Attribute of recomputed nodes: they run as late as they can.
MIRRORED = "__mirrored__"
_EXPENSIVE = frozenset("Convolution Deconvolution FullyConnected Concat SoftmaxOutput Dropout dot batch_dot RNN Embedding "
                       "linalg_gemm linalg_gemm2 _linalg_gemm _linalg_gemm2 LRN CTCLoss Correlation".split())


def mirror(graph: Graph) -> Graph:
    """Give the backward part copies of the forward nodes that it may compute again.

    Parameters
    ----------
    graph : Graph
        ``info['n_first']`` heads are the forward part.

    Returns
    -------
    Graph
        The same one if no node is to be recomputed. Nodes that draw random numbers, keep a state or write to their
        inputs never are.
    """
    everywhere = os.environ.get("MXNET_BACKWARD_DO_MIRROR", "0").lower() in ("1", "true")
    forward = topo(graph.heads[:graph.info["n_first"]])
    copies: dict[int, Node] = {}
    for n in forward:
        if n.op is not None and _again(n, everywhere):
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
                        values[copy, i] = values[n, i]  # type: ignore[index]
            if id(n) in new.info["contexts"]:
                new.info["contexts"][id(copy)] = new.info["contexts"][id(n)]
    return new


def _again(n: Node, everywhere: bool) -> bool:
    sig = n.params._sig
    if sig.random or n.op.stateful or sig.mutates:
        return False
    forced = n.attrs.get("__force_mirroring__", n.attrs.get("force_mirroring"))
    if forced is not None:
        return forced.lower() in ("1", "true")
    return everywhere and n.op.name not in _EXPENSIVE
