"""In which order a program draws random keys: that of its graph, whatever passes make of it.

A block that is not hybridised draws so, and so does a graph that runs node by node for gradients of gradients, which
must have the masks of the outputs. Passes make new nodes of old ones; what they carry on is the name, and attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from .._core.context import Context
from .._core.graph import Graph, Node, topo
from ..rewriting import rewrite

__all__ = ["Draw", "may_draw", "order_of_draws", "in_order", "origin", "told_apart"]

#: The attribute of a node that draws and shares its name with another one that does.
_WHICH = "__which_draw__"


class Draw(NamedTuple):
    """A node that may draw: where it computes, and whether it draws one key for each run, or as it runs."""

    ctx: Context
    random: bool


def may_draw(n: Node) -> bool:
    """Whether a node draws a key, or may draw as it runs, as loops and Python code."""
    return n.op is not None and bool(n.params._sig.random or n.op.stateful)


def origin(n: Node) -> str:
    """What tells a node that may draw from all others, also when passes have made another node of it."""
    return n.attrs.get(_WHICH, n.name)


def told_apart(graph: Graph, n_first: int) -> Graph:
    """The graph, in which nodes of one name that may draw can be told apart: a layer that is called twice has two."""
    drawing = [n for n in topo(graph.heads[:n_first]) if may_draw(n)]
    if len({n.name for n in drawing}) == len(drawing):
        return graph
    which = {id(n): f"{n.name} {i}" for i, n in enumerate(drawing)}
    done: dict[int, Node] = {}

    def visit(n: Node, inputs: list[tuple[Node, int]], fact: Callable[[tuple[Node, int]], object]) -> Node:
        attrs = {**n.attrs, _WHICH: which[id(n)]} if id(n) in which else n.attrs
        forward = n.forward and done[id(n.forward)]
        same = attrs is n.attrs and tuple(inputs) == n.inputs and forward is n.forward
        new = done[id(n)] = n if same else Node(n.op, n.params, inputs, n.name, attrs, forward)
        return new

    return rewrite(graph, visit)


def order_of_draws(graph: Graph, n_first: int, context: Callable[[Node], Context]) -> dict[str, Draw]:
    """Of the first heads' graph, all nodes that may draw, in their order."""
    drawing = (n for n in topo(graph.heads[:n_first]) if may_draw(n))
    return {origin(n): Draw(context(n), n.params._sig.random) for n in drawing}


def in_order(nodes: Sequence[tuple[int, Node]], drawn: Mapping[str, Draw]) -> tuple[list[int | Context], bool]:
    """What draws keys one after the other, and whether the nodes, as they stand, draw so by themselves.

    Parameters
    ----------
    nodes : sequence of (int, Node)
        Steps of the first part that may draw, with their nodes.
    drawn : dict
        As :func:`order_of_draws` gives it.

    Returns
    -------
    list of int or Context
        The random steps; for one that passes have removed, where its key is drawn. What passes have added comes last.
    bool
    """
    found = {origin(n): t for t, n in nodes}
    order: list[int | Context] = [found.get(name, draw.ctx) for name, draw in drawn.items() if draw.random]
    placed = {t for t in order if isinstance(t, int)}
    order += [t for t, n in nodes if n.params._sig.random and t not in placed]
    return order, [origin(n) for _, n in nodes] == [*drawn]
