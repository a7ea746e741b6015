"""Contributed operators over symbols (``mx.sym.contrib``), and control flow as operators with sub-graphs."""
from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .. import attribute
from .._core.errors import error
from .._core.graph import Graph, Node, topo, variable
from .._views import namespace
from ..ndarray.contrib import _flat
from . import symbol_function
from .symbol import Entry, Symbol, compose, output_name
from .variable import Variable

__all__ = ["foreach"]

#: The attribute that marks what was composed in the body of a loop; its value is unique to the loop.
_MARK = "__subgraph_name__"
_counts: dict[str, Iterator[int]] = {}


def _unique(name: str) -> str:
    """A name for a sub-graph: numbered, and after that of the loop around it."""
    around = attribute.current().get(None).get(_MARK)
    name = f"{around}${name}" if around else name
    return f"{name}{next(_counts.setdefault(name, itertools.count()))}"


def _symbols(x: Any, what: str) -> tuple[list[Symbol], Callable[[list[Any]], Any]]:
    """Nested lists of symbols as a flat list of single outputs, and the way back."""
    def single(s: Any) -> Any:
        if isinstance(s, (list, tuple)):
            return [single(v) for v in s]
        if not isinstance(s, Symbol):
            raise error(TypeError, f"sym.contrib.foreach: {what} must be Symbols or nested lists of them, got {type(s).__name__}")
        return s if len(s) == 1 else list(s)

    return _flat(single(x), what)


def _inside(symbols: Sequence[Symbol], taken: set[str]) -> list[Symbol]:
    """Variables that stand for symbols in the body of a loop."""
    found = []
    for s in symbols:
        n, i = s._heads[0]
        name = f"{n.name}-{i}"
        while name in taken:
            name += "-"
        taken.add(name)
        found.append(Variable(name))
    return found


def _own(outs: Sequence[Symbol], states: Sequence[Symbol], mark: str) -> list[Entry]:
    """The heads of a sub-graph, each of them an operator of its own: others go through a copy."""
    inputs = set(Graph([s._entry() for s in (*outs, *states)]).variables())
    before = {s.name for s in outs}
    heads = []
    for i, s in enumerate((*outs, *states)):
        n = s._heads[0][0]
        copied = n in inputs or n.attrs.get(_MARK) != mark or i >= len(outs) and n.name in before
        heads.append((compose("identity", (s,), {}) if copied else s)._entry())
    return heads


def _cut(heads: Sequence[Entry], mark: str) -> tuple[Graph, dict[str, Entry]]:
    """The part of a graph that bears the mark, and what its variables stand for outside, by name."""
    outside: dict[str, Entry] = {}
    cut: dict[Entry, Node] = {}
    done: dict[int, Node] = {}

    def entry(e: Entry) -> Entry:
        n, i = e
        if n.attrs.get(_MARK) == mark:
            return done.get(id(n), n), i
        if e not in cut:
            cut[e] = variable(output_name(e))
            outside[cut[e].name] = e
        return cut[e], 0

    for n in topo(heads):
        if n.op is not None and n.attrs.get(_MARK) == mark:
            inputs = [entry(e) for e in n.inputs]
            if inputs != list(n.inputs):
                done[id(n)] = Node(n.op, n.params, inputs, n.name, n.attrs)
    graph = Graph([entry(e) for e in heads])
    for n in graph.variables():
        outside.setdefault(n.name, (n, 0))
    return graph, outside


def foreach(body: Callable[[Any, Any], tuple[Any, Any]], data: Any, init_states: Any, name: str = "foreach") -> tuple[Any, Any]:
    """Run ``body(data_t, states) -> (outputs, states)`` over the first axis of `data`, as one operator.

    What the body uses from outside is computed once, before the loop.

    Parameters
    ----------
    body : callable
        Called once, with symbols.
    data, init_states : Symbol or nested list of Symbol
        Each must be used in the body. A symbol of several outputs counts as the list of them.
    name : str
        Marks the sub-graph in files.

    Returns
    -------
    (outputs, states)
        Outputs stacked along a new first axis; the final states.

    Raises
    ------
    MXNetError
        If the body returns other states than it was given or leaves some input unused.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``sym.contrib.foreach``, names and files included.
    """
    arrays, data_back = _symbols(data, "data")
    states, states_back = _symbols(init_states, "states")
    mark, taken = _unique(name), set[str]()
    with attribute.AttrScope(**{_MARK: mark}):
        ins = _inside([*arrays, *states], taken)
        outs, new_states = body(data_back(ins[:len(arrays)]), states_back(ins[len(arrays):]))
        flat_outs, outs_back = _symbols(outs, "outputs")
        flat_states, _ = _symbols(new_states, "states")
        if len(flat_states) != len(states):
            raise error(ValueError, f"foreach: the body returned {len(flat_states)} states, it was given {len(states)}")
        heads = _own(flat_outs, flat_states, mark)
    graph, outside = _cut(heads, mark)
    names = [n.name for n in graph.variables()]
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise error(ValueError, f"foreach: two inputs of the body are named {twice!r}; name the symbols it uses differently")
    unused = [str(s.name) for s, v in zip((*arrays, *states), ins) if v.name not in names]
    if unused:
        raise error(ValueError, f"foreach: the body does not use {', '.join(unused)}; leave it out")
    rest = [n for n in names if n not in taken]
    result = list(compose("_foreach", (*arrays, *states, *[Symbol([outside[n]]) for n in rest]), dict(
        fn=graph, num_outputs=len(heads), num_out_data=len(flat_outs),
        in_data_locs=[names.index(str(s.name)) for s in ins[:len(arrays)]],
        in_state_locs=[names.index(str(s.name)) for s in ins[len(arrays):]], remain_locs=[names.index(n) for n in rest])))
    return outs_back(result[:len(flat_outs)]), states_back(result[len(flat_outs):])


__getattr__, __dir__ = namespace(globals(), "contrib", symbol_function)
