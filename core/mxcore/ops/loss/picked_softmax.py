"""The graph pass that computes no more logarithms of a softmax than are picked, as losses of classes do."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..._core import tables
from ..._core.graph import Graph, Node
from ..._core.infer import known
from ..._core.op import Op
from ...context import Context
from ...rewriting import readers_of, rewrite
from .picked import backward_pick_log_softmax, pick_log_softmax

__all__ = ["picked_softmax"]

Entry = tuple[Node, int]


class _Loss(NamedTuple):
    """A `pick` of a `log_softmax`, and what scales it; with their gradients, if they are in the graph."""

    soft: Node
    pick: Node
    scale: Node | None
    back: Node | None
    d_pick: Node | None
    d_scale: Node | None

    @property
    def params(self) -> dict[str, Any]:
        """Those of the operators in their place."""
        scalar = 1.0 if self.scale is None else float(self.scale.params.scalar)
        return {"keepdims": self.pick.params.keepdims, "scalar": scalar}


def picked_softmax(graph: Graph) -> Graph:
    """A graph with `_pick_log_softmax` in the place of `log_softmax`, the `pick` that alone reads it, and a factor.

    So are their gradients. Of a language model the logarithms, and what comes back to them, would each be as large as
    the logits. It is for devices that have kernels for both.

    Parameters
    ----------
    graph : Graph
        Of a late pass.
    """
    losses = _Search(graph).losses()
    if not losses:
        return graph
    gone = {id(n) for loss in losses for n in (loss.soft, loss.scale, loss.d_pick, loss.d_scale) if n is not None}
    picks = {id(loss.pick): loss for loss in losses}
    backs = {id(loss.back): loss for loss in losses if loss.back is not None}
    made: dict[int, tuple[Node, list[Entry]]] = {}

    def visit(n: Node, inputs: list[Entry], fact: Any) -> Any:
        if id(n) in gone:
            return inputs[:1]  # the logits, what is picked, the gradient of that
        if (loss := picks.get(id(n))) is not None:
            made[id(loss.soft)] = _node(pick_log_softmax, loss, inputs, n), inputs
            return [(made[id(loss.soft)][0], 0)]
        if (loss := backs.get(id(n))) is not None:
            node, given = made[id(loss.soft)]
            return _node(backward_pick_log_softmax, loss, [inputs[0], *given, (node, 1), (node, 2)], n)
        return None

    return rewrite(graph, visit)


def _node(op: Op, loss: _Loss, inputs: list[Entry], like: Node) -> Node:
    return Node(op, op.parse(loss.params), inputs, like.name, like.attrs)


def _serves(ctx: Context) -> bool:
    """Whether a device has kernels for what the pass makes: by the bodies, little would be won."""
    return all(tables.kernels.of(ctx.device_type, op) for op in (pick_log_softmax, backward_pick_log_softmax))


class _Search:
    """A graph, and who reads what in it."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.nodes = graph, graph.nodes
        self.shown, self.readers = {*graph.heads}, readers_of(self.nodes)

    def losses(self) -> list[_Loss]:
        """What can be replaced."""
        place = {id(n): i for i, n in enumerate(self.nodes)}
        found = [self._loss(n) for n in self.nodes if n.op is not None and n.op.name == "pick"]
        return [
            loss
            for loss in found
            if loss is not None and (loss.back is None or place[id(loss.pick)] < place[id(loss.back)])
        ]

    def _loss(self, pick: Node) -> _Loss | None:
        soft, label = pick.inputs[0][0], pick.inputs[1]
        if soft.op is None or soft.op.name != "log_softmax" or (soft, 0) in self.shown or not self._fits(soft, pick):
            return None
        others = {n.op.name: n for n in self.readers[soft, 0] if n is not pick}
        back, d_pick = others.get("_backward_log_softmax"), others.get("_backward_pick")
        if len(self.readers[soft, 0]) != 1 + len(others):
            return None
        if others and (
            len(others) != 2
            or back is None
            or d_pick is None
            or [*back.inputs] != [(d_pick, 0), (soft, 0)]
            or [*d_pick.inputs[1:]] != [(soft, 0), label]
            or self._alone((d_pick, 0)) is not back
        ):
            return None
        scale, d_scale = self._alone((pick, 0)), None if d_pick is None else d_pick.inputs[0][0]
        if (
            scale is None
            or scale.op.name != "_mul_scalar"
            or d_scale is not None
            and (
                d_scale.op is None
                or d_scale.op.name != "_mul_scalar"
                or d_scale.params.scalar != scale.params.scalar
                or self._alone((d_scale, 0)) is not d_pick
            )
        ):
            scale = d_scale = None
        some = _Loss(soft, pick, scale, back, d_pick, d_scale)
        contexts, ours = self.graph.info.get("contexts", {}), self.graph.info["ctx"]
        places = {contexts.get(id(n), ours) for n in some if n is not None}
        return some if len(places) == 1 and _serves(places.pop()) else None

    def _alone(self, e: Entry) -> Node | None:
        """Who alone reads a value."""
        found = self.readers.get(e, ())
        return found[0] if len(found) == 1 and e not in self.shown else None

    def _fits(self, soft: Node, pick: Node) -> bool:
        graph, p = self.graph, pick.params
        shape, dtype, label = graph.shapes.get((soft, 0)), graph.dtypes.get((soft, 0)), graph.dtypes.get(pick.inputs[1])
        return (
            known(shape)
            and len(shape) > 1
            and 0 not in shape
            and dtype in (np.float32, np.float64)
            and dtype == graph.dtypes.get(soft.inputs[0])
            and label is not None
            and label.kind in "fiu"
            and label.itemsize >= 4
            and soft.params.temperature is None
            and soft.params.axis in (-1, len(shape) - 1)
            and p.axis in (-1, len(shape) - 1)
            and p.mode == "clip"
            and all(graph.stypes.get(e, "default") == "default" for e in (soft.inputs[0], pick.inputs[1]))
        )
