"""The walk that passes share: a graph rebuilt from its inputs to its heads; and how those of plugins are run."""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import kinds
from ._core import tables
from ._core.errors import MXNetError, caught, error, in_a_line, suggest, warn
from ._core.graph import STOCK_PASSES, Graph, Node, topo
from ._core.infer import known, show
from ._core.state import state
from .inference import infer_graph

__all__ = ["changed_output", "pass_named", "readers_of", "rewrite", "run_pass", "switched_off"]

Entry = tuple[Node, int]


def rewrite(
    graph: Graph, visit: Callable[[Node, list[Entry], Callable[[Entry], Any]], Node | Sequence[Entry] | None]
) -> Graph:
    """A graph in which `visit` may replace operators.

    Parameters
    ----------
    graph : Graph
    visit : callable
        ``(node, its inputs in the new graph, fact) -> replacement``: a node with the same outputs, a list of entries
        that take the place of the outputs, or None to keep the node (over its new inputs). An entry is (node, number
        of the output), such as the ``entry`` of what `GraphF` gives. ``fact(entry)`` is (shape, dtype, stype) of an
        entry of the old graph.

    Returns
    -------
    Graph
        Shapes, dtypes, stypes and info are carried over; what belongs to a node by id in ``info['contexts']`` too.
    """
    done: dict[int, Any] = {}
    new = Graph([])
    new.info = dict(graph.info)
    contexts = new.info["contexts"] = dict(graph.info.get("contexts", {}))

    def fact(e: Entry) -> tuple[Any, Any, str]:
        return graph.shapes.get(e), graph.dtypes.get(e), graph.stypes.get(e, "default")

    def entry(e: Entry) -> Entry:
        found: Entry = done[id(e[0])][e[1]]
        return found

    for n in topo(graph.heads):
        if n.op is None:
            done[id(n)] = [(n, 0)]
        else:
            inputs = [entry(e) for e in n.inputs]
            found = visit(n, inputs, fact)
            if found is None:
                changed = any(a != b for a, b in zip(inputs, n.inputs))
                forward = n.forward if n.forward is None else _keeper(n.forward, done[id(n.forward)])
                found = (
                    Node(n.op, n.params, inputs, n.name, n.attrs, forward) if changed or forward is not n.forward else n
                )
            if isinstance(found, Node):
                if id(n) in contexts:
                    contexts[id(found)] = contexts[id(n)]
                found = [(found, i) for i in range(found.n_out)]
            elif not isinstance(found, (list, tuple)) or not all(isinstance(e, tuple) and len(e) == 2 for e in found):
                raise error(
                    TypeError,
                    f"in the place of node '{n.name}' ({n.op.name}) a list of entries "
                    "(node, number) is needed, one for each output, "
                    f"or a node, or None to keep it, got {found!r}; the entry of a Value is its `entry`",
                )
            if len(found) != n.n_out:
                raise error(
                    ValueError,
                    f"in the place of node '{n.name}' ({n.op.name}), which has {n.n_out} output(s), {len(found)} "
                    "entries were given; one for each output is needed",
                )
            done[id(n)] = found
        for i, e in enumerate(done[id(n)]):
            if e not in new.dtypes:
                new.shapes[e], new.dtypes[e], new.stypes[e] = fact((n, i))
    new.heads = [entry(e) for e in graph.heads]
    return new


def _keeper(old: Node, found: list[Entry]) -> Node:
    """The node among those that took the place of a stateful one which keeps its state for the gradient."""
    if found[0][0].op is old.op:
        return found[0][0]
    for n in reversed(topo(found)):
        if n.op is old.op and n.params is old.params:
            return n
    raise error(
        ValueError,
        f"node '{old.name}' ({old.op.name}) keeps what its gradient needs; in its place a node of this operator and of "
        "its parameters is needed, whatever else stands around it",
    )


def readers_of(nodes: Sequence[Node]) -> dict[Entry, list[Node]]:
    """Entry -> the nodes that read it; one that does so by several inputs, so many times."""
    found: dict[Entry, list[Node]] = {}
    for n in nodes:
        for e in n.inputs:
            found.setdefault(e, []).append(n)
    return found


def switched_off() -> frozenset[str]:
    """The graph passes that MXCORE_DISABLE_PASSES and, in this thread, `executor.passes_off` leave out."""
    names = os.environ.get("MXCORE_DISABLE_PASSES")
    off: frozenset[str] = state.extra.get("passes_off", frozenset())
    return off | (_listed(names) if names else frozenset())


@functools.cache
def _listed(names: str) -> frozenset[str]:
    """The names in a list of the environment; the first look at one that is no pass warns."""
    found = frozenset(names.replace(",", " ").split())
    known = [*STOCK_PASSES, *kinds.names("graph_pass")]
    for name in sorted(found - set(known)):
        warn(
            f"MXCORE_DISABLE_PASSES: no graph pass is named {name!r}{suggest(name, known)}; there are "
            f"{', '.join(known)}{tables.why()}"
        )
    return found


def pass_named(name: str) -> str:
    """What errors call a plugin's graph pass."""
    return f"graph pass '{name}' of {tables.by_kind['graph_pass'].owners.get(name, 'a plugin that is gone')}"


def run_pass(name: str, graph: Graph, bound: bool = False) -> Graph:
    """What a plugin's graph pass makes of a graph: the same, if the plugin has gone since somebody asked for it.

    Parameters
    ----------
    name : str
    graph : Graph
    bound : bool
        Its variables are those of a user, who gives them values: the pass must make none.

    Raises
    ------
    MXNetError
        If the pass raises, or returns something else than a sound graph of as many heads, or changes the order or what
        is known of the outputs, or a node that it was given; names the pass and its plugin.
    """
    todo, where = tables.by_kind["graph_pass"].items.get(name), pass_named(name)
    if todo is None:
        return graph
    heads, given, kept = [*graph.heads], {*graph.nodes}, _Kept(graph)
    shapes, dtypes = ({n.name: v for (n, _), v in f.items() if n.op is None} for f in (graph.shapes, graph.dtypes))
    try:
        try:
            found: Graph = todo.fn(graph)
        finally:
            changed = kept.put_back()
        same = found is graph and graph.heads == heads  # it was sound before
        flaw = changed or ("" if same else _flaw(found))
    except BaseException as e:  # such as sys.exit()
        reason = caught(e)
        kind = type(reason) if isinstance(reason, MXNetError) else RuntimeError
        raise error(kind, f"{where} failed: {in_a_line(reason)}") from e
    if changed:
        raise error(ValueError, f"{where} {changed}")
    if same:
        return graph
    if not isinstance(found, Graph) or len(found.heads) != len(heads):
        raise error(TypeError, f"{where} must return a Graph with {len(heads)} heads, got {found!r}")
    if bound and not flaw:
        new = [n.name for n in found.variables() if n not in given]
        flaw = f"variable '{new[0]}' is none of the graph that it was given" if new else ""
    if flaw:
        raise error(ValueError, f"{where} returned a broken graph: {flaw}")
    flaw = changed_output(heads, found.heads, shapes, dtypes) or _reordered(heads, found.heads)
    if flaw:
        raise error(ValueError, f"{where} {flaw}")
    for n in topo(found.heads):
        if n not in given:
            n.made_by = where
    return found


class _Kept:
    """What a graph's nodes hold, also those of graphs in their parameters: they are the user's symbol's, too."""

    def __init__(self, graph: Graph) -> None:
        self.graphs: dict[int, tuple[Graph, list[Entry]]] = {}
        self.nodes: dict[Node, tuple[Any, ...]] = {}
        stack = [graph]
        while stack:
            g = stack.pop()
            if id(g) not in self.graphs:
                self.graphs[id(g)] = g, [*g.heads]
                for n in g.nodes:
                    params = self._params(n.params)
                    self.nodes[n] = n.op, n.params, params, n.inputs, n.name, n.attrs, dict(n.attrs), n.forward
                    stack += [v for v in params.values() if isinstance(v, Graph)]
        del self.graphs[id(graph)]  # whose list of heads is the pass's

    @staticmethod
    def _params(p: Any) -> dict[str, Any]:
        return {} if p is None else {k: v for k, v in vars(p).items() if k[0] != "_"}

    def put_back(self) -> str:
        """Give everything back what it held; tells what was changed first, an empty string if nothing was."""
        found = ""
        for n, (op, p, params, inputs, name, attrs, held, forward) in self.nodes.items():
            now = self._params(p)
            what = [
                word
                for word, same in (
                    ("operator", n.op is op),
                    ("parameters", n.params is p and [*map(id, now.values())] == [*map(id, params.values())]),
                    ("inputs", n.inputs is inputs),
                    ("name", n.name == name),
                    ("attributes", n.attrs is attrs and attrs == held),
                    ("forward node", n.forward is forward),
                )
                if not same
            ]
            if not what:
                continue
            n.op, n.params, n.inputs, n.name, n.attrs, n.forward = op, p, inputs, name, attrs, forward
            if p is not None:
                for k in now.keys() - params.keys():
                    del vars(p)[k]
                vars(p).update(params)
            attrs.clear()
            attrs.update(held)
            found = found or (
                f"changed the {' and the '.join(what)} of node '{name}' in place, which is the user's symbol's, too; "
                "it must make another node, as rewrite() does"
            )
        for g, heads in self.graphs.values():
            if g.heads != heads:
                g.heads[:] = heads
                found = found or "changed the heads of a graph among the parameters of a node in place"
        return found


def _reordered(heads: Sequence[Entry], found: Sequence[Entry]) -> str:
    """What took the place of what among the heads of a graph, if they are the old ones in another order.

    They are the same entries, or nodes of the names that the old ones have alone. One that stands in several places
    says nothing: it may have the values of both. Neither does one with a name of its own.
    """
    if heads != found and Counter((id(n), i) for n, i in heads) == Counter((id(n), i) for n, i in found):
        k = next(k for k, (a, b) in enumerate(zip(heads, found)) if a != b)
        return _in_the_place(heads[k], found[k])
    names = [n.name for n, _ in heads]
    for old, new in ((heads, found), (names, [n.name for n, _ in found])):
        at = {key: i for i, key in enumerate(old)}
        if old is names and len(at) < len(names):
            continue
        for i in range(len(old)):
            j, seen = i, {i}
            while new[j] != old[j] and (j := at.get(new[j], -1)) not in seen and j >= 0:
                seen.add(j)
            if j == i and len(seen) > 1:
                return _in_the_place(heads[i], found[i])
    return ""


def _in_the_place(old: Entry, new: Entry) -> str:
    return (
        f"changed the order of the outputs: in the place of output {old[1]} of node '{old[0].name}' "
        f"stands output {new[1]} of node '{new[0].name}'"
    )


def changed_output(
    heads: Sequence[Entry], found: Sequence[Entry], shapes: Mapping[str, Any], dtypes: Mapping[str, Any]
) -> str:
    """What of a graph does not fit after a pass, as far as it follows from the shapes and dtypes of variables.

    That is a head of another shape or dtype, or a node whose inputs are none for it. A graph that did not fit before
    is its user's affair, who gets the error.
    """
    if len(found) != len(heads) or [*found] == [*heads]:
        return ""
    for what, facts in (("shape", shapes), ("dtype", dtypes)):
        before = _inferred(heads, facts, what)
        try:
            after = _inferred(found, facts, what)
        except MXNetError as e:
            return f"left a node whose inputs do not fit: {in_a_line(e)}"
        for old, new in zip(heads, found):
            a, b = before.get(old), after.get(new)
            if a is not None and b is not None and a != b and (what == "dtype" or known(a) and known(b)):
                return f"changed the {what} of output {old[1]} of node '{old[0].name}' from {show(a)} to {show(b)}"
    return ""


def _inferred(heads: Sequence[Entry], facts: Mapping[str, Any], what: str) -> dict[Entry, Any]:
    nodes = topo(heads)
    known = {(n, 0): facts[n.name] for n in nodes if n.op is None and facts.get(n.name) is not None}
    return infer_graph(nodes, known, what)


def _flaw(graph: Any) -> str:
    """What is wrong with a graph; an empty string if nothing is."""
    done: set[Node] = set()

    def wrong(e: Any) -> str:
        n, i = e
        if not isinstance(i, int) or not 0 <= i < n.n_out:
            return f"there is no output {i!r} of node '{n.name}'"
        return "" if n in done else f"node '{n.name}' depends on itself"

    if not isinstance(graph, Graph):
        return ""
    for n in topo(graph.heads):
        wants = () if n.op is None else n.op.signature(n.params).inputs
        if len(n.inputs) != len(wants):
            return f"node '{n.name}' has {len(n.inputs)} inputs, it takes {', '.join(wants) or 'none'}"
        for e in n.inputs:
            if text := wrong(e):
                return text
        done.add(n)
    return next(filter(None, map(wrong, graph.heads)), "")
