"""Attributes of nodes: how they are kept, and how users see them.

Nodes keep them under the names that files use: those of :data:`HIDDEN` wrapped in underscores.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._core.errors import error
from .._core.graph import Node
from .._core.op import Op
from ..parameters import GraphParam, strings

__all__ = ["HIDDEN", "is_wrapped", "kept", "kept_by_op", "param_texts", "set_attrs", "shown", "sub_graphs"]

#: Attributes that users give and see without underscores too.
HIDDEN = ("ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage", "profiler_scope")


def is_wrapped(key: str) -> bool:
    """Whether an attribute is named ``__like_this__``."""
    return key.startswith("__") and key.endswith("__") and len(key) > 4


def kept(attrs: Mapping[str, Any]) -> dict[str, str]:
    """Attributes under the names that nodes keep them by; raises an error for names and values that are no strings."""
    for k, v in attrs.items():
        if not isinstance(k, str):
            raise error(TypeError, f"names of attributes are strings, {k!r} is a {type(k).__name__}")
        if not isinstance(v, str):
            raise error(ValueError, f"attributes of symbols are strings, {k}={v!r} is a {type(v).__name__}")
    return {f"__{k}__" if k in HIDDEN else k: v for k, v in attrs.items()}


def kept_by_op(op: Op, attrs: Mapping[str, str]) -> dict[str, str]:
    """The same, and raises an error for names that files of the operator cannot hold."""
    found = kept(attrs)
    bad = next((k for k in found if op.params and not is_wrapped(k)), None)
    if bad is not None:
        hidden = next((h for h in HIDDEN if bad.endswith(f"_{h}")), None)
        hint = f"; for an input write {bad[: -len(hidden) - 1]}=Variable(..., {hidden}=...)" if hidden else ""
        raise error(
            ValueError,
            f"operator {op.name} takes no attribute '{bad}': an attribute is a parameter "
            f"({', '.join(op.params)}), one of {', '.join(HIDDEN)}, or named __like_this__{hint}",
        )
    return found


def sub_graphs(n: Node) -> dict[str, Any]:
    """Parameter -> sub-graph, of a node with an operator."""
    return {k: getattr(n.params, k) for k, spec in n.op.params.items() if isinstance(spec, GraphParam)}


def param_texts(n: Node) -> dict[str, str]:
    """Parameters of a node as strings, the way files hold them: without sub-graphs, which MXNet counts as inputs."""
    if n.op is None:
        return {}
    found: dict[str, str] = strings(n.op, n.params)
    graphs = sub_graphs(n)
    if graphs:
        found = {k: v for k, v in found.items() if k not in graphs}
        found[n.op.count] = str(len(n.inputs) + len(graphs))
    return found


def shown(n: Node) -> dict[str, str]:
    """Attributes and parameters of a node, as strings."""
    found = {**param_texts(n), **n.attrs}
    found.update({k: found[f"__{k}__"] for k in HIDDEN if f"__{k}__" in found})
    return found


def set_attrs(n: Node, attrs: Mapping[str, str]) -> None:
    """Set attributes of a node; those named as parameters of its operator replace these."""
    if n.op is None:
        n.attrs.update(kept(attrs))
        return
    params = {k: v for k, v in attrs.items() if k in n.op.params}
    new = kept_by_op(n.op, {k: v for k, v in attrs.items() if k not in params})
    if params:
        p = n.op.parse({**strings(n.op, n.params), **kept(params)})
        if len(p._sig.inputs) != len(n.inputs):
            raise error(
                ValueError,
                f"node '{n.name}': with {params} operator {n.op.name} takes {len(p._sig.inputs)} inputs, "
                f"it has {len(n.inputs)}; compose it anew",
            )
        n.params = p
    n.attrs.update(new)
