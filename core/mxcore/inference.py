"""Shapes and dtypes of whole graphs, from the rules of their operators, to a fixpoint in both directions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._core.errors import MXNetError, error
from ._core.infer import contradiction, known, merge_dtype, merge_shape, op_dtypes, op_shapes

__all__ = ["infer_graph"]


def infer_graph(nodes: Sequence[Any], given: dict[Any, Any], what: str) -> dict[Any, Any]:
    """Infer shapes or dtypes of all entries of a graph, to a fixpoint in both directions.

    Parameters
    ----------
    nodes : sequence of Node
        In topological order.
    given : dict
        Entry ``(node, index)`` -> shape or dtype where known.
    what : {'shape', 'dtype'}

    Returns
    -------
    dict
        Entry -> shape or dtype; None or shapes with -1 where nothing could be inferred.
    """
    apply, merge, done = (
        (op_shapes, merge_shape, known) if what == "shape" else (op_dtypes, merge_dtype, lambda t: t is not None)
    )
    value: dict[Any, Any] = dict(given)
    work = [n for n in nodes if n.op is not None]
    closed: set[Any] = set()
    changed = True
    while changed:
        changed = False
        for n in (*work, *reversed(work)):
            if n in closed:
                continue
            outs_e = [(n, i) for i in range(n.op.signature(n.params).n_out)]
            ins = [value.get(e) for e in n.inputs]
            outs = [value.get(e) for e in outs_e]
            try:
                new_ins, new_outs = apply(n.op, n.params, ins, outs, n.name)
            except MXNetError as x:
                if n.made_by:
                    raise error(type(x), f"{x}; {n.made_by} made this node") from x.__cause__
                raise
            for e, old, new in zip((*n.inputs, *outs_e), (*ins, *outs), (*new_ins, *new_outs)):
                # `is None` first: NumPy holds float64 and None to be equal.
                if new is not None and (old is None or new != old):
                    try:
                        value[e] = merge(value.get(e), new)
                    except (ValueError, TypeError) as x:  # one entry fed to two inputs of the operator
                        raise contradiction(n.op, n.params, ins, outs, x, n.name) from None
                    changed = True
            if all(map(done, new_ins)) and all(map(done, new_outs)):
                closed.add(n)
    return value
