"""The pass "place": nodes go to the contexts of their groups, and values are copied where they cross."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..._core.context import Context
from ..._core.errors import error
from ..._core.graph import Graph, Node, topo
from ..._core.op import Op
from ...crossing import across
from ...parameters import Any_
from ...rewriting import rewrite

__all__ = ["context_of", "crossing", "group_context", "group_of", "place", "states_at"]


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


def group_context(n: Node, default: Context, groups: Mapping[str, Context]) -> Context:
    """The context of a node's group, `default` if it has none or nobody placed it."""
    return groups.get(group_of(n) or "", default)


def context_of(n: Node, default: Context, groups: Mapping[str, Context], variables: Mapping[str, Context]) -> Context:
    """Where an operator computes, by its group, or the array of a variable lives, by its name."""
    return variables.get(n.name, default) if n.op is None else group_context(n, default, groups)


def states_at(heads: Sequence[tuple[Node, int]], default: Context, groups: Mapping[str, Context]) -> dict[str, Context]:
    """Where variables must live that operators write to, by name: with the operators, which would move copies.

    Raises
    ------
    MXNetError
        If operators on several contexts write to one.
    """
    found: dict[str, tuple[Context, Node]] = {}
    for n in topo(heads):
        for i in () if n.op is None else n.params._sig.states | n.params._sig.written:
            v, here = n.inputs[i][0], group_context(n, default, groups)
            if v.op is None and found.setdefault(v.name, (here, n))[0] is not here:
                there, other = found[v.name]
                raise error(
                    ValueError,
                    f"bind: '{v.name}' is written to by '{other.name}' on {there} and by '{n.name}' on {here}; "
                    "operators that share a state need groups on one context",
                )
    return {name: here for name, (here, _) in found.items()}


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
        Number of a head -> where the array lives that takes it.

    Returns
    -------
    Graph
        With ``info['contexts']`` and copies; gradients are computed where their forward nodes are.
    """
    where: dict[int, Context] = {}
    copies: dict[tuple[int, int, Context], Node] = {}
    placed: dict[int, Node] = {}

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
        forward = n.forward and placed[id(n.forward)]  # whose state it reads
        same = all(a == b for a, b in zip(local, n.inputs)) and forward is n.forward
        new = placed[id(n)] = n if same else Node(n.op, n.params, local, n.name, n.attrs, forward)
        where[id(new)] = here
        return new

    new = rewrite(graph, visit)
    for i, here in homes.items():
        new.heads[i] = moved(new.heads[i], here)
    for n in new.nodes:
        if n.op is crossing:
            for values in (new.shapes, new.dtypes, new.stypes):
                values[n, 0] = values[n.inputs[0]]
        if n.op is None:
            where[id(n)] = context_of(n, default, groups, variables)
    new.info["contexts"] = where
    return new
