"""How MXNet counts and names outputs: what the facets `labels` and `mxnet_outputs` say where ours differ."""

from __future__ import annotations

from .._core.graph import Node

__all__ = ["count", "label", "told"]


def count(n: Node) -> int:
    """MXNet's number of outputs of a node."""
    return n.n_out if n.op is None else int(n.op.facet("mxnet_outputs", n.params, default=n.n_out))


def label(n: Node, i: int) -> str:
    """MXNet's name of an output of an operator: ``output``, ``output1``, ``mean``."""
    if "numbers" in n.op.facets.get("labels", ()):
        return f"output{i}" if count(n) > 1 else "output"
    return str(n.params._sig.outputs[i])


def told(n: Node, i: int) -> str:
    """What MXNet tells hooks of an output, and calls casts after: its `label`, or its number."""
    return label(n, i) if "outputs" in n.op.facets.get("labels", ()) else str(i)
