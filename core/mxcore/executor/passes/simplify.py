"""The pass "simplify": operators that change nothing vanish, equal ones are computed once."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..._core import infer, tables
from ..._core.graph import Graph, Node, topo
from ...rewriting import rewrite

__all__ = ["merge_equal", "simplify"]


def _as_many(out: Any, data: Any) -> bool:
    """Whether two (shape, dtype, storage type) are of equally many elements, at least one, and one dtype, dense."""
    return (
        infer.known(out[0])
        and infer.known(data[0])
        and math.prod(out[0]) == math.prod(data[0]) > 0
        and out[1] == data[1]
        and out[2] == data[2] == "default"
    )


def simplify(graph: Graph, merge: bool = True) -> Graph:
    """Remove identities and common subexpressions; what nobody reads vanishes with them.

    Parameters
    ----------
    graph : Graph
        With shapes and dtypes.
    merge : bool
        Compute common subexpressions once.

    Returns
    -------
    Graph
        Nodes that draw random numbers, keep states or write to their inputs stay as they are.
    """
    seen: dict[Any, Node] = {}
    apart = _handed_out(graph)

    def visit(n: Node, inputs: list[Any], fact: Callable[[Any], Any]) -> Any:
        op, sig = n.op, n.params._sig
        if _alone(n):
            return None
        same = sig.n_out == 1 and n not in apart and op.facet("identity", n.params)
        if same and fact((n, 0)) == fact(n.inputs[0]) and infer.known(fact((n, 0))[0]):
            return [inputs[0]]
        if same == "elements" and _as_many(fact((n, 0)), fact(n.inputs[0])):
            reshape = tables.roles.get("other shape")
            return Node(reshape, reshape.parse({"shape": fact((n, 0))[0]}), inputs[:1], n.name, n.attrs)
        # Consumers may decide the shape of zeros.
        return (
            _first(seen, n, inputs, None if inputs else tuple(str(fact((n, i))) for i in range(sig.n_out)))
            if merge
            else None
        )

    return rewrite(graph, visit)


def _handed_out(graph: Graph) -> set[Node]:
    """Identities between outputs and what the second part reads, either way: who gets a value may write to it."""
    outputs = graph.heads[: graph.info.get("n_first", len(graph.heads))]
    if len(outputs) == len(graph.heads) or not any(map(_is_identity, graph.nodes)):
        return set()
    first = {*topo(outputs)}
    read = {e for n in topo(graph.heads) if n not in first for e in n.inputs}

    def root(e: Any) -> Any:
        while _is_identity(e[0]):
            e = e[0].inputs[0]
        return e

    both = {e for e in {*map(root, outputs)} & {*map(root, read)} if e[0].op is not None}  # no variable is handed out
    between = read.union(outputs)
    return {n for n in first if (n, 0) in between and _is_identity(n) and root((n, 0)) in both}


def _is_identity(n: Node) -> bool:
    same = n.op is not None and n.params._sig.n_out == 1 and n.op.facet("identity", n.params)
    return bool(same) and same != "elements"


def merge_equal(heads: Any) -> Any:
    """The heads of a graph in which equal operators are one, as MXNet shows it to monitors; identities stay."""
    seen: dict[Any, Node] = {}
    return rewrite(
        Graph(heads), lambda n, inputs, fact: None if _alone(n) or not inputs else _first(seen, n, inputs)
    ).heads


def _alone(n: Node) -> bool:
    """Whether a node stays as it is, for it may compute something else every time."""
    sig = n.params._sig
    return bool(sig.random or n.op.stateful or sig.mutates or sig.aux or n.forward is not None)


def _first(seen: dict[Any, Node], n: Node, inputs: list[Any], made: Any = None) -> Any:
    """The outputs of the node that computes the same, which may be this one."""
    key = (n.op, params_key(n.op, n.params), tuple((id(m), i) for m, i in inputs), place_key(n), made)
    first = seen.get(key)
    if first is None:
        first = seen[key] = (
            n if all(a == b for a, b in zip(inputs, n.inputs)) else Node(n.op, n.params, inputs, n.name, n.attrs)
        )
    return [(first, i) for i in range(first.n_out)]


def params_key(op: Any, p: Any) -> tuple[Any, ...]:
    """Equal for equal parameters, scalars that may change from call to call included; by their texts, for -0.0."""
    dynamic = op.parser.dynamic
    return (p._key, *[repr(getattr(p, n)) for n in sorted(dynamic)]) if dynamic else (p._key,)


def place_key(n: Node) -> tuple[Any, ...]:
    """The attributes of a node that decide where and when it is computed."""
    return tuple([n.attrs.get(f"__{k}__", n.attrs.get(k)) for k in _PLACING]) if n.attrs else _ANYWHERE


_PLACING = "ctx_group", "force_mirroring", "mirror_stage"
_ANYWHERE = (None,) * len(_PLACING)
