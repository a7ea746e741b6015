"""Graph passes of plugins, run over a symbol by their name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._core import infer, tables
from .._core.errors import error, suggest
from .._core.graph import Graph
from .._core.params import as_dtype
from ..rewriting import run_pass, switched_off
from .base import Entry
from .inference import infer_heads, named, unknown_dims

__all__ = ["run_backend"]


def run_backend(
    heads: Sequence[Entry],
    backend: str,
    facts: Mapping[str, Mapping[str, Any]],
    skip_infer: bool,
    info: Mapping[str, Any],
) -> list[Entry]:
    """The heads of the graph that the graph pass `backend` makes of a graph; its own if the pass is switched off.

    Parameters
    ----------
    facts : dict
        ``shapes`` and ``dtypes`` by name of a variable; inferred from there unless `skip_infer`.
    info : dict
        What the pass finds in ``graph.info``.
    """
    known = [n for n, brought in tables.by_kind["graph_pass"].entries().items() if not brought.late]
    if backend not in known:
        raise error(
            ValueError,
            f"no graph pass is named {backend!r}{suggest(str(backend), known)}; registered: "
            f"{', '.join(known) or 'none'} (plugins bring them through the hook mxcore_graph_passes){tables.why()}",
        )
    if backend in switched_off():
        return list(heads)
    graph = Graph(heads)
    graph.info.update(info)
    if not skip_infer:
        graph.shapes = {
            e: s
            for e, s in infer_heads(heads, "shape", named(heads, (), facts["shapes"], unknown_dims)).items()
            if infer.known(s)
        }
        graph.dtypes = infer_heads(heads, "dtype", named(heads, (), facts["dtypes"], as_dtype))
    return run_pass(backend, graph).heads
