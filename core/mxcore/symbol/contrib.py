"""Contributed operators over symbols (``mx.sym.contrib``), and control flow as operators with sub-graphs."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import name as naming
from .._core.errors import error
from .._core.graph import Graph
from .._views import namespace
from ..ndarray.contrib import _flat
from . import symbol_function
from .symbol import Symbol, Variable, compose

__all__ = ["foreach"]


def foreach(body: Callable[[Any, Any], tuple[Any, Any]], data: Any, init_states: Any, name: str = "foreach") -> tuple[Any, Any]:
    """Run ``body(data_t, states) -> (outputs, states)`` over the first axis of `data`, as one operator.

    Parameters
    ----------
    body : callable
        Called once, with symbols.
    data, init_states : Symbol or nested list of Symbol
    name : str

    Returns
    -------
    (outputs, states)
        Outputs stacked along a new first axis; the final states.
    """
    name = naming.current().get(None, name)
    arrays, data_back = _flat(data, "data")
    states, states_back = _flat(init_states, "states")
    for s in (*arrays, *states):
        if not isinstance(s, Symbol):
            raise error(TypeError, f"sym.contrib.foreach takes Symbols, got {type(s).__name__}")
    in_data = [Variable(f"{name}_data{i}") for i in range(len(arrays))]
    in_states = [Variable(f"{name}_state{i}") for i in range(len(states))]
    outs, new_states = body(data_back(in_data), states_back(in_states))
    flat_outs, outs_back = _flat(outs, "outputs")
    flat_states, _ = _flat(new_states, "states")
    if len(flat_states) != len(states):
        raise error(ValueError, f"foreach: the body returned {len(flat_states)} states, it was given {len(states)}")
    graph = Graph([s._entry() for s in (*flat_outs, *flat_states)])
    inside = {id(s._heads[0][0]): s for s in (*in_data, *in_states)}
    variables = graph.variables()
    places = {id(n): i for i, n in enumerate(variables)}
    free = [n for n in variables if id(n) not in inside]
    unused = [s.name for s in (*in_data, *in_states) if id(s._heads[0][0]) not in places]
    if unused:
        raise error(ValueError, f"foreach: the body does not use {', '.join(map(str, unused))}; leave it out")
    result = compose("_foreach", (*arrays, *states, *[Symbol([(n, 0)]) for n in free]), dict(
        fn=graph, num_outputs=len(graph.heads), num_out_data=len(flat_outs), name=name,
        in_data_locs=tuple(places[id(s._heads[0][0])] for s in in_data),
        in_state_locs=tuple(places[id(s._heads[0][0])] for s in in_states),
        remain_locs=tuple(places[id(n)] for n in free)))
    parts = list(result)
    return outs_back(parts[:len(flat_outs)]), states_back(parts[len(flat_outs):])


__getattr__, __dir__ = namespace(globals(), "contrib", symbol_function)
