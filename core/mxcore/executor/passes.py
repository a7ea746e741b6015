"""Graph passes that plugins bring: run over every graph that is bound, by ascending order."""
from __future__ import annotations

from typing import Any

from .._core import registry
from .._core.errors import MXNetError, error
from .._core.graph import Graph

__all__ = ["run_passes"]


def run_passes(heads: Any) -> Any:
    """The heads of a graph after all registered passes.

    Raises
    ------
    MXNetError
        If a pass raises, or returns something else than a graph with as many heads; names the pass and its plugin.
    """
    table = registry.tables["graph_pass"]
    for name in sorted(table.names(), key=lambda n: (table.items[n].order, n)):
        where = f"graph pass '{name}' of {table.owners[name]}"
        try:
            found = table.items[name].fn(Graph(heads))
        except MXNetError:
            raise
        except Exception as e:
            raise error(RuntimeError, f"{where} failed: {type(e).__name__}: {e}") from e
        if not isinstance(found, Graph) or len(found.heads) != len(heads):
            raise error(TypeError, f"{where} must return a Graph with {len(heads)} heads, got {found!r}")
        heads = found.heads
    return heads
