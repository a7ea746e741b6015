"""Graphs run node by node on arrays with eager operators: what autograd, hooks and higher gradients see."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..._core import dispatch
from ..._core.graph import Node, topo
from ..._core.infer import known, op_shapes
from ..._core.params import Params
from ...inference import infer_graph

__all__ = ["interpret"]


def interpret(
    heads: Sequence[tuple[Node, int]],
    values: Mapping[str, Any],
    ctx: Any = None,
    monitor: Callable[[Node, Sequence[Any], list[Any]], None] | None = None,
    order: Sequence[Node] | None = None,
) -> list[Any]:
    """Compute heads from arrays for the variables; recorded like any eager calls.

    Parameters
    ----------
    heads : sequence of entries
    values : dict of str to Array
        By name of the variable.
    ctx : Context, optional
        Where operators without inputs run; the current context unless told.
    monitor : callable, optional
        Called with (node, inputs, outputs) after each operator.
    order : sequence of Node, optional
        The nodes, inputs first, for who knows it.

    Returns
    -------
    list of Array
    """
    done: dict[int, list[Any]] = {}
    nodes = topo(heads) if order is None else order
    decided = _decided(nodes, values)
    for n in nodes:
        if n.op is None:
            done[id(n)] = [values[n.name]]
            continue
        inputs = [done[id(m)][i] for m, i in n.inputs]
        found = dispatch.invoke(n.op, inputs, decided.get(n, n.params), ctx=ctx)
        done[id(n)] = outputs = list(found) if isinstance(found, (list, tuple)) else [found]
        if monitor is not None:
            monitor(n, inputs, outputs)
    return [done[id(n)][i] for n, i in heads]


def _decided(nodes: Sequence[Node], values: Mapping[str, Any]) -> dict[Node, Params]:
    """Parameters of nodes whose shapes their consumers decide, as of begin states; alone they would be of length zero.

    An operator whose parameters say the shape otherwise than by `shape` has the helper ``decided(p, shape)``, which
    gives those that do.
    """
    left = [n for n in nodes if n.op is not None and not n.inputs and not _is_known(n)]
    if not left:
        return {}
    shapes = infer_graph(nodes, {(n, 0): tuple(values[n.name].shape) for n in nodes if n.op is None}, "shape")
    found = {}
    for n in left:
        if known(shape := shapes.get((n, 0))):
            told = getattr(n.op.facet("helpers"), "decided", _by_shape)(n.params, shape)
            found[n] = n.op.parse({**{k: getattr(n.params, k) for k in n.op.params}, **told})
    return found


def _is_known(n: Node) -> bool:
    return all(map(known, op_shapes(n.op, n.params, [], None, n.name)[1]))


def _by_shape(p: Params, shape: tuple[int, ...]) -> dict[str, Any]:
    return {"shape": shape}
