"""Shapes and dtypes through sub-graphs, in both directions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from ..._core import infer, tables
from ..._core.graph import Graph, topo
from ..._core.state import state
from ...inference import infer_graph

__all__ = ["inner_facts", "merged"]


def inner_facts(
    graph: Graph, given: Mapping[int, Any], what: str, carried: Sequence[tuple[int, int]] = (), fixed: bool = True
) -> tuple[list[Any], list[Any]]:
    """Infer through a sub-graph.

    Parameters
    ----------
    graph : Graph
    given : dict of int to shape or dtype
        Of its inputs, by place.
    what : {'shape', 'dtype'}
    carried : sequence of (int, int)
        Heads that become inputs at the next step: (head, input).
    fixed : bool
        An input that is carried is what its head is, if nothing else tells.

    Returns
    -------
    (list, list)
        What is known of its inputs and of its heads.
    """
    told = {i: v for i, v in given.items() if v is not None}
    key = what, fixed, tuple(carried), tuple(sorted(told.items())), state.np_shape
    facts = _facts.setdefault(graph, {})
    found = facts.get(key)
    if found is None:
        if len(facts) >= _MOST:
            facts.clear()
        found = facts[key] = _inferred(graph, told, what, carried, fixed)
    ins, heads = found
    return [*ins], [*heads]


#: What was inferred of a sub-graph, from what. Rules ask twice, those of graphs within it twice each time: without
#: this, a file of a few kilobytes would take for ever.
_facts: WeakKeyDictionary[Graph, dict[Any, tuple[list[Any], list[Any]]]] = WeakKeyDictionary()
_MOST = 64
tables.on_change.append(_facts.clear)


def _inferred(
    graph: Graph, given: Mapping[int, Any], what: str, carried: Sequence[tuple[int, int]], fixed: bool
) -> tuple[list[Any], list[Any]]:
    variables = graph.variables()
    known = {(variables[i], 0): v for i, v in given.items()}
    found: dict[Any, Any] = {}
    for _ in range(2):
        found = infer_graph(topo(graph.heads), known, what)
        if not fixed:
            break
        for head, i in carried:
            e, new = (variables[i], 0), found.get(graph.heads[head])
            if known.get(e) is None and found.get(e) is None and new is not None:
                known[e] = new
    return [found.get((v, 0)) for v in variables], [found.get(e) for e in graph.heads]


def merged(values: Sequence[Any], what: str) -> Any:
    """The shape or dtype that satisfies all."""
    merge = infer.merge_shape if what == "shape" else infer.merge_dtype
    one = None
    for v in values:
        one = merge(one, v)
    return one
