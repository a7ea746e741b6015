"""Graph passes: the stock ones by name, which can be switched off, and those that plugins bring.

A bound graph goes through these stages:

1. the passes of plugins, by ascending order, over the symbol as the user made it;
2. gradient and inference (:mod:`mxcore.gradient`, :mod:`mxcore._core.infer`), which are no choice;
3. the stock passes in :data:`STOCK`, over the joint graph of outputs and gradients, with shapes known; before `fuse`
   the `late` passes of plugins.

``MXCORE_DISABLE_PASSES=fuse,plan`` switches stock passes and plugins' passes off by name, :func:`passes_off` does so
for the graphs that are bound in a with-block. The results are the same; only speed and memory differ.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ... import kinds
from ..._core import tables
from ..._core.context import Context
from ..._core.errors import error, suggest
from ..._core.graph import STOCK_PASSES, Graph, Node
from ..._core.infer import known, show
from ..._core.state import state
from ...rewriting import changed_output, pass_named, run_pass, switched_off
from ..program import infer_all
from .mirror import mirror_all

__all__ = ["STOCK", "Settings", "check_passed", "enabled", "passes_off", "run_late_passes", "run_passes"]

#: Stock passes that can be switched off, in their order -> what they do.
STOCK = STOCK_PASSES


def enabled() -> frozenset[str]:
    """The stock passes that are switched on in this thread.

    >>> from mxcore.executor import enabled, passes_off
    >>> with passes_off("fuse"):
    ...     "fuse" in enabled()
    False
    """
    return frozenset(STOCK) - switched_off()


class Settings(NamedTuple):
    """What decides how a graph is compiled, as it is when an executor is bound.

    Attributes
    ----------
    passes : frozenset of str
        See `enabled`.
    mirror_all : bool
        See `mirror.mirror_all`.
    merge : bool
        Whether equal operators are computed once: ``MXNET_ELIMINATE_COMMON_EXPR``.
    late : tuple of str
        The late passes of plugins, in their order.
    """

    passes: frozenset[str]
    mirror_all: bool
    merge: bool
    late: tuple[str, ...]

    @classmethod
    def now(cls) -> Settings:
        """Those of this thread and of the environment."""
        merge = os.environ.get("MXNET_ELIMINATE_COMMON_EXPR", "1") not in ("0", "false", "False")
        return cls(enabled(), mirror_all(), merge, tuple(_brought(late=True)))


@contextlib.contextmanager
def passes_off(*names: str) -> Iterator[None]:
    """A with-block in which graphs are bound without these passes; without arguments, without any stock pass.

    Parameters
    ----------
    *names : str
        Of :data:`STOCK` or of plugins' passes.

    Raises
    ------
    MXNetError
        If no pass has such a name.
    """
    known = [*STOCK, *kinds.names("graph_pass")]
    for name in names:
        if name not in known:
            raise error(
                ValueError,
                f"no graph pass is named {name!r}{suggest(name, known)}; there are {', '.join(known)}{tables.why()}",
            )
    old = state.extra.get("passes_off", frozenset())
    state.extra["passes_off"] = old | frozenset(names or STOCK)
    try:
        yield
    finally:
        state.extra["passes_off"] = old


def run_passes(heads: Any, shapes: Mapping[str, Any] | None = None, dtypes: Mapping[str, Any] | None = None) -> Any:
    """The heads of a graph after all passes that plugins registered.

    Parameters
    ----------
    heads : list of entry
    shapes, dtypes : dict, optional
        Of variables by name, where they are known: then those of the heads must stay.

    Raises
    ------
    MXNetError
        If a pass raises, or returns something else than a sound graph with as many heads; names the pass and its
        plugin.
    """
    for name in _brought(late=False):
        graph = Graph(heads)
        if not _asked(name, graph):
            continue
        graph.shapes, graph.dtypes = (
            {(n, 0): facts[n.name] for n in graph.variables() if n.name in facts}
            for facts in (shapes or {}, dtypes or {})
        )
        heads = run_pass(name, graph, bound=True).heads
    return heads


def run_late_passes(graph: Graph, names: Iterable[str], **info: Any) -> Graph:
    """The graph of a program after the late passes of these names, which find `info` beside what is there.

    What is known of entries is inferred anew behind each of them, from variables and from the nodes that it left as
    they were; `info` stays as it is but for the contexts of nodes: no pass is counted on for either.

    Raises
    ------
    MXNetError
        As `run_passes` does; also if an output gets another shape, dtype or storage type, or a node no context.
    """
    graph.info.update(info)
    for name in names:
        if not _asked(name, graph):
            continue
        before = Graph(graph.heads)
        before.shapes, before.dtypes, before.stypes = dict(graph.shapes), dict(graph.dtypes), dict(graph.stypes)
        before.info = dict(graph.info)
        nodes = {*before.nodes}
        found = run_pass(name, graph, bound=True)
        graph = _completed(before, nodes, found, pass_named(name))
    return graph


def _asked(name: str, graph: Graph) -> bool:
    """Whether a graph has one of the operators that a pass is for."""
    todo = tables.by_kind["graph_pass"].items.get(name)
    wanted = None if todo is None else todo.operators
    return not (
        wanted
        and wanted.isdisjoint(name for n in graph.nodes if n.op is not None for name in (n.op.name, *n.op.aliases))
    )


def _completed(before: Graph, nodes: set[Node], found: Graph, where: str) -> Graph:
    """What a late pass made of a graph of these nodes, with all that is to be known of it."""
    graph = Graph(found.heads)
    graph.info = {**before.info, "contexts": _contexts(before, found, where)}
    graph.shapes, graph.dtypes, graph.stypes = before.shapes, before.dtypes, before.stypes
    if not nodes.issuperset(found.nodes):
        variables = [n for n in found.variables() if (n, 0) in before.shapes]
        shapes, dtypes, stypes = (
            {n.name: f[n, 0] for n in variables if (n, 0) in f} for f in (before.shapes, before.dtypes, before.stypes)
        )
        # A consumer may have decided what a node is, as of zeros of unknown shape; who took its place need not tell.
        kept = [(n, i) for n in nodes.intersection(found.nodes) if n.op is not None for i in range(n.n_out)]
        facts = [{e: f[e] for e in kept if f.get(e) is not None} for f in (before.shapes, before.dtypes)]
        graph.shapes, graph.dtypes, graph.stypes = infer_all(found.heads, shapes, dtypes, stypes, (facts[0], facts[1]))
    for what, was, now in (
        ("shape", before.shapes, graph.shapes),
        ("dtype", before.dtypes, graph.dtypes),
        ("storage type", before.stypes, graph.stypes),
    ):
        usual = "default" if what == "storage type" else None
        for old, new in zip(before.heads, graph.heads):
            a, b = was.get(old, usual), now.get(new, usual)
            if a != b and a is not None and b is not None and (what != "shape" or known(a) and known(b)):
                raise error(
                    ValueError,
                    f"{where} changed the {what} of output {old[1]} of node '{old[0].name}' from {show(a)} "
                    f"to {show(b)}",
                )
    return graph


def _contexts(before: Graph, found: Graph, where: str) -> dict[int, Any]:
    """Which nodes run elsewhere, by their ids: as it was, and as the pass says of its own nodes."""
    said = found.info.get("contexts", {}) if isinstance(found.info, Mapping) else {}
    if not isinstance(said, Mapping):
        raise error(TypeError, f"{where} must leave a dict of contexts in info['contexts'], got {said!r}")
    contexts = {**before.info.get("contexts", {}), **said}
    for n in found.nodes:
        if not isinstance(contexts.get(id(n), before.info["ctx"]), Context):
            raise error(
                TypeError,
                f"{where} must give a context for node '{n.name}' in info['contexts'], got {contexts[id(n)]!r}",
            )
    return contexts


def _brought(late: bool) -> list[str]:
    """The passes that plugins registered for every graph and that are switched on, in their order."""
    off, brought = switched_off(), tables.by_kind["graph_pass"].entries()
    found = {n: p.order for n, p in brought.items() if n not in off and p.order is not None and p.late is late}
    return sorted(found, key=lambda n: (found[n], n))


def check_passed(heads: Any, passed: Any, shapes: Mapping[str, Any], dtypes: Mapping[str, Any]) -> None:
    """Raise, naming the pass, if what the passes made of a graph before shapes were known has outputs of others."""
    if passed is not heads and changed_output(heads, passed, shapes, dtypes):
        run_passes(heads, shapes, dtypes)
