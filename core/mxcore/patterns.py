"""Fusion patterns: operators that read one another, written as an expression, and what takes their place.

A library that computes several operators together says so by a table of patterns; :func:`fusing` makes it a graph pass.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from ._core import tables
from ._core.errors import error
from ._core.graph import Graph, GraphPass, Node
from .composing import GraphF, Value, mode_of
from .rewriting import readers_of, rewrite

__all__ = ["Match", "Pattern", "fusing"]

Entry = tuple[Node, int]


class Match:
    """Where a pattern fits: its names are attributes.

    A name of a value is a :class:`mxcore.plugin.Value` for `make`, and its entry in the graph for `when`; a name of an
    operator (``norm := BatchNorm(...)``) is its :class:`mxcore.plugin.Node`. Passes by :func:`fusing` make them.

    Parameters
    ----------
    graph : Graph
    root : Node
        The last operator, whose first output is replaced.
    readers : sequence of Node
        Who reads that; what the graph is for is not among them.
    """

    def __init__(self, graph: Graph, root: Node, readers: Sequence[Node]) -> None:
        self._graph, self.root, self.readers = graph, root, readers
        #: Name of a value -> the entry, and who reads it at which place.
        self._values: dict[str, tuple[Entry, Node, int]] = {}
        #: Name of a value -> what `make` gets.
        self._given: dict[str, Value] = {}
        self._inside: list[Node] = []

    def shape(self, name: str) -> Any:
        """The shape of a value."""
        return self._graph.shapes.get(self._entry(name))

    def dtype(self, name: str) -> Any:
        """The dtype of a value."""
        return self._graph.dtypes.get(self._entry(name))

    def trains(self, node: Node) -> bool:
        """Whether a node runs in training mode."""
        return mode_of(node, self._graph.info["is_train"])

    def __getattr__(self, name: str) -> Any:
        entry = self._entry(name)
        return self.__dict__.get("_given", {}).get(name, entry)

    def _entry(self, name: str) -> Any:
        values = self.__dict__.get("_values", {})
        if name not in values:
            raise AttributeError(f"the pattern has no name {name!r}; its values are {', '.join(values) or 'none'}")
        return values[name][0]


#: What matches have beside the names of their pattern.
_TAKEN = "root", "readers", "shape", "dtype", "trains"


class Pattern:
    """Operators that are computed together, and what takes their place.

    Parameters
    ----------
    text : str
        An expression: operators are called, all other names are values from outside, one that stands twice is one
        value. An operator may have a name: ``"Activation(norm := BatchNorm(data, gamma, beta, mean, var))"``, the
        last one in brackets. It has as many inputs as are written. Between the operators go first outputs only, which
        nobody else reads; other outputs nobody reads at all.
    make : callable
        ``(F, match) -> Value``: composes what takes the place of the last operator's first output, by
        ``F.operator(match.data, ...)``.
    when : callable, optional
        ``match -> bool``, asked before: whether parameters, shapes and dtypes fit.

    Raises
    ------
    MXNetError
        If the text is no such expression.

    Examples
    --------
    >>> from mxcore.plugin import Pattern
    >>> Pattern("(act := Activation(x * y))", lambda F, m: m.x)
    Traceback (most recent call last):
        ...
    mxcore.base.MXNetValueError: pattern '(act := Activation(x * y))': 'x * y' is neither a name nor an operator's call
    >>> p = Pattern("Activation(FullyConnected(x, w, b))", lambda F, m: F.dense_relu(m.x, m.w, m.b))
    >>> p.operators
    ['Activation', 'FullyConnected']
    """

    def __init__(
        self, text: str, make: Callable[[GraphF, Match], Any], when: Callable[[Match], Any] | None = None
    ) -> None:
        self.text, self.make, self.when = text, make, when
        #: Names of the operators, the last one first.
        self.operators: list[str] = []
        #: Names of values, and of operators that have one.
        self.values: list[str] = []
        self.nodes: list[str] = []
        try:
            tree = ast.parse(text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
            raise error(ValueError, f"pattern {text!r} is no expression: {e}") from None
        self._tree = self._read(tree)
        if not self.operators or isinstance(self._tree, str):
            raise error(ValueError, f"pattern {text!r} has no operator")

    def __repr__(self) -> str:
        return f"Pattern({self.text!r})"

    def _read(self, tree: ast.expr) -> Any:
        """A name, or (name or None, operator, what it reads)."""
        name = None
        if isinstance(tree, ast.NamedExpr):
            name, tree = self._named(tree.target.id), tree.value
            if name in self.nodes or name in self.values:
                raise error(ValueError, f"pattern {self.text!r}: two are called {name!r}")
            self.nodes.append(name)
        if isinstance(tree, ast.Name) and name is None:
            if tree.id in self.nodes:
                raise error(ValueError, f"pattern {self.text!r}: {tree.id!r} is an operator, and cannot be a value")
            self.values.append(self._named(tree.id))
            return tree.id
        if not (isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and not tree.keywords):
            what = ast.unparse(tree)
            raise error(ValueError, f"pattern {self.text!r}: {what!r} is neither a name nor an operator's call")
        self.operators.append(tree.func.id)
        return name, tree.func.id, [self._read(arg) for arg in tree.args]

    def _named(self, name: str) -> str:
        if name[0] == "_" or name in _TAKEN:
            raise error(
                ValueError,
                f"pattern {self.text!r}: nothing can be called {name!r}, as matches have {', '.join(_TAKEN)}",
            )
        return name

    def match(self, search: _Search, root: Node) -> Match | None:
        """Where it fits with this last operator; None if it does not."""
        found = Match(search.graph, root, [*dict.fromkeys(search.readers.get((root, 0), ()))])
        fits = self._fits(self._tree, (root, 0), search, found) and (self.when is None or bool(self.when(found)))
        return found if fits else None

    def _fits(self, tree: Any, e: Entry, search: _Search, found: Match) -> bool:
        name, op, args = tree
        n, i = e
        if (
            n.op is not tables.ops.get(op)
            or i
            or n.forward is not None
            or n in search.kept
            or len(n.inputs) != len(args)
            or search.contexts.get(id(n), search.ctx) is not search.ctx
        ):
            return False
        if any(search.times((n, j)) for j in range(1, n.n_out)):
            return False
        if n is not found.root:
            if search.times(e) != 1 or n in search.taken:
                return False
            found._inside.append(n)
        if name is not None:
            found.__dict__[name] = n
        for at, (arg, given) in enumerate(zip(args, n.inputs)):
            if isinstance(arg, str):
                if found._values.setdefault(arg, (given, n, at))[0] != given:
                    return False
            elif not self._fits(arg, given, search, found):
                return False
        return True


class _Search:
    """A graph, who reads what in it, and which operators a pattern has taken."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.nodes = graph, graph.nodes
        self.ctx, self.contexts = graph.info["ctx"], graph.info.get("contexts", {})
        self.heads, self.readers = Counter(graph.heads), readers_of(self.nodes)
        self.taken: set[Node] = set()
        #: Stateful operators whose gradients take the state: they stay.
        self.kept = {n.forward for n in self.nodes if n.forward is not None}

    def times(self, e: Entry) -> int:
        """How often a value is wanted."""
        return self.heads[e] + len(self.readers.get(e, ()))


def fused(graph: Graph, patterns: Iterable[Pattern], devices: Collection[str] | None = None) -> Graph:
    """A graph in which patterns are replaced, those first that stand first; later operators before earlier ones.

    Parameters
    ----------
    graph : Graph
        Of a late pass.
    patterns : iterable of Pattern
    devices : collection of str, optional
        Types of devices; on others a graph stays as it is.
    """
    if devices is not None and graph.info["ctx"].device_type not in devices:
        return graph
    by_root: dict[Any, list[Pattern]] = {}
    for pattern in patterns:
        by_root.setdefault(tables.ops.get(pattern.operators[0]), []).append(pattern)
    search, found = _Search(graph), dict[Node, tuple[Pattern, Match]]()
    for n in reversed(search.nodes):
        if n in search.taken:
            continue
        for pattern in by_root.get(n.op, ()):
            match = pattern.match(search, n)
            if match is not None:
                found[n] = pattern, match
                search.taken.update((n, *match._inside))
                break
    if not found:
        return graph
    inputs_of: dict[Node, list[Entry]] = {}

    def visit(n: Node, inputs: list[Entry], fact: Any) -> Any:
        if n not in search.taken:
            return None
        inputs_of[n] = inputs
        if n not in found:
            return None  # nobody reads it any more
        pattern, match = found[n]
        F = GraphF(n.name, like=n)
        match._given = {name: Value(inputs_of[m][at], F) for name, (_, m, at) in match._values.items()}
        made = pattern.make(F, match)
        if not isinstance(made, Value):
            raise error(TypeError, f"{pattern!r}: make must return a Value, got {made!r}")
        return [made.entry] * n.n_out  # nobody reads the others

    return rewrite(graph, visit)


def fusing(name: str, patterns: Sequence[Pattern], devices: Collection[str] | None = None, order: int = 0) -> GraphPass:
    """A graph pass that replaces what fits a pattern, in the graphs of programs.

    Parameters
    ----------
    name : str
        Of the pass, by which it is switched off.
    patterns : sequence of Pattern
        The first that fits is taken.
    devices : collection of str, optional
        Types of devices that it is for; all unless told.
    order : int
        Among late passes.

    Examples
    --------
    A plugin whose operator ``dense_relu`` computes two at once:

    >>> from mxcore.plugin import Pattern, fusing, hookimpl
    >>> @hookimpl
    ... def mxcore_graph_passes():
    ...     relu = lambda m: m.act.params.act_type == "relu" and not m.trains(m.act)
    ...     make = lambda F, m: F.dense_relu(m.x, m.w, m.b)
    ...     return [fusing("my_layers", [Pattern("(act := Activation(FullyConnected(x, w, b)))", make, relu)])]
    """
    kept = tuple(patterns)
    for p in kept:
        if not isinstance(p, Pattern):
            raise error(TypeError, f"fusing({name!r}): {p!r} is no Pattern")
    roots = dict.fromkeys(p.operators[0] for p in kept)
    return GraphPass(name, order, lambda graph: fused(graph, kept, devices), late=True, operators=[*roots])
