"""What operators inside of sub-graphs write to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..._core.graph import Graph
from ..._core.params import Params
from .steps import input_names

__all__ = ["held", "inner_states", "states"]


def inner_states(graph: Graph) -> Mapping[str, bool]:
    """The variables of a graph that are states of its operators; whether something beside backward writes to them."""
    found = graph.info.get("states")
    if found is None:
        found = {}
        for n in [n for n in graph.nodes if n.op is not None]:
            sig = n.params._sig
            for i in sig.states | sig.written:
                v = n.inputs[i][0]
                if v.op is None:
                    found[v.name] = found.get(v.name, False) or i in sig.written
        graph.info["states"] = found
    return found


def states(**places: Callable[[Params], Sequence[int]]) -> Callable[[Params], dict[int, bool]]:
    """The rule for operators that hold graphs, from their names to which inputs of the operator theirs are."""

    def rule(p: Params) -> dict[int, bool]:
        found: dict[int, bool] = {}
        for name, locs in places.items():
            graph = getattr(p, name)
            told = inner_states(graph)
            if told:
                for variable, j in zip(input_names(graph), locs(p)):
                    if variable in told:
                        found[j] = found.get(j, False) or told[variable]
        return found

    return rule


def held(k: Any, p: Params, data: Sequence[Any]) -> dict[int, Any]:
    """What inputs hold that an eager call is about to write to."""
    return {} if k.shapes is not None else {i: data[i].copy() for i in p._sig.written}
