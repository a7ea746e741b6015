"""The pass "place": nodes go to the contexts of their groups, and values are copied where they cross."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..._core.context import Context
from ..._core.graph import Graph, Node
from ..._core.op import Op
from ...crossing import across
from ...parameters import Any_
from ...rewriting import rewrite

__all__ = ["beside", "context_of", "group_context", "group_of", "place"]


def _bind_crossing(data: Any, source: Context, out: Any, ctx: Context) -> Callable[[], None]:
    """The call that copies between two contexts; two kinds of device meet in the host's memory."""
    here, there = source.device, ctx.device
    if here is there:
        return lambda: across(there, data, source.device_id, out, ctx.device_id)
    return lambda: there.copy(there.from_host(here.to_host(data), ctx.device_id), out)


#: Copies its input from the context `source` to the one where the node is placed.
crossing = Op(
    "_CrossDeviceCopy",
    lambda k, p, data: data,
    inputs="data",
    params={"source": Any_()},
    doc="A copy of `data` on another context.\n\nParameters\n"
    "----------\ndata : array\nsource : Context\n    Where it comes from.",
)
crossing.crossing = _bind_crossing  # type: ignore[attr-defined]


def group_of(n: Node) -> str | None:
    """The group (``ctx_group``) of a node."""
    return n.attrs.get("__ctx_group__", n.attrs.get("ctx_group"))


def beside(n: Node) -> dict[str, str]:
    """The attributes that put another node where a node is."""
    return {k: v for k, v in n.attrs.items() if k.strip("_") == "ctx_group"}


def group_context(n: Node, default: Context, groups: Mapping[str, Context]) -> Context:
    """The context of a node's group, `default` if it has none or nobody placed it."""
    return groups.get(group_of(n) or "", default)


def context_of(n: Node, default: Context, groups: Mapping[str, Context], variables: Mapping[str, Context]) -> Context:
    """Where an operator computes, by its group, or the array of a variable lives, by its name."""
    return variables.get(n.name, default) if n.op is None else group_context(n, default, groups)


def place(
    graph: Graph,
    default: Context,
    groups: Mapping[str, Context],
    variables: Mapping[str, Context],
    homes: Mapping[int, Context],
) -> Graph:
    """Place nodes by their groups.

    Parameters
    ----------
    graph : Graph
    default : Context
        Where nodes without a group compute.
    groups : dict of str to Context
        MXNet's ``group2ctx``.
    variables : dict of str to Context
        Where the arrays of variables live.
    homes : dict of int to Context
        Number of a head -> where the array lives that takes it; the others stay where they are computed.

    Returns
    -------
    Graph
        With ``info['contexts']`` and copies; gradients are computed where their forward nodes are.
    """
    where: dict[int, Context] = {}
    copies: dict[tuple[int, int, Context], Node] = {}

    def moved(e: tuple[Node, int], here: Context) -> tuple[Node, int]:
        n, i = e
        there = context_of(n, default, groups, variables) if n.op is None else where[id(n)]
        if there is here:
            return e
        key = (id(n), i, here)
        copy = copies.get(key)
        if copy is None:
            copy = copies[key] = Node(crossing, crossing.parse({"source": there}), [e], f"{n.name}_to_{here}")
            where[id(copy)] = here
        return copy, 0

    def visit(n: Node, inputs: list[tuple[Node, int]], fact: Callable[[Any], Any]) -> Node:
        here = context_of(n, default, groups, variables)
        local = [moved(e, here) for e in inputs]
        new = (
            n
            if all(a == b for a, b in zip(local, n.inputs))
            else Node(n.op, n.params, local, n.name, n.attrs, n.forward)
        )
        where[id(new)] = here
        return new

    new = rewrite(graph, visit)
    for i, here in homes.items():
        e = new.heads[i]
        if new.stypes.get(e, "default") == "default":  # the parts of others are moved when they are taken
            new.heads[i] = moved(e, here)
    for n in new.nodes:
        if n.op is crossing:
            for values in (new.shapes, new.dtypes, new.stypes):
                values[n, 0] = values[n.inputs[0]]
        if n.op is None:
            where[id(n)] = context_of(n, default, groups, variables)
    new.info["contexts"] = where
    return new
