"""Graphs as MXNet's JSON, byte for byte as MXNet 1.9.1 writes it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from .._core import tables
from .._core.errors import error
from .._core.graph import Node, topo
from .._core.state import state
from .._json import encode
from ..parameters import unwritten
from . import outputs
from .attrs import kept, param_texts, sub_graphs
from .base import Entry

__all__ = ["to_json", "uncast"]

_VERSION = ["int", 10901]


#: MXNet's reader knows no other escapes; all else stands as it is, also what JSON would not have so.
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def _quoted(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'


def to_json(heads: Sequence[Entry], remove_amp_cast: bool = True) -> str:
    """The graph as text; without the casts of mixed precision, as MXNet does it: those that are outputs stay."""
    if remove_amp_cast:
        heads = _without_amp(heads)
    heads = _portable(heads)
    text = _write(
        {
            **_graph(heads, {}),
            "attrs": {**({"is_np_shape": ["int", 1]} if state.np_shape else {}), "mxnet_version": _VERSION},
        },
        0,
    )
    encode(text, "the symbol")  # or no reader could have it
    return text


def uncast(e: Entry) -> Entry:
    """What is cast for mixed precision: the entry before the casts, if it is one of them."""
    n, i = e
    while n.op is not None and n.op.facet("precision_cast"):
        n, i = n.inputs[i]
    return n, i


def _without_amp(heads: Sequence[Entry]) -> Sequence[Entry]:
    nodes = topo(heads)
    if not any(n.op is not None and n.op.facet("precision_cast") for n in nodes):
        return heads
    done: dict[int, Node] = {}

    def bare(e: Entry) -> Entry:
        n, i = uncast(e)
        return done[id(n)], i

    for n in nodes:
        done[id(n)] = (
            n if n.op is None else Node(n.op, n.params, [bare(e) for e in n.inputs], n.name, n.attrs, n.forward)
        )
    return [(done[id(n)], i) for n, i in heads]


def _portable(heads: Sequence[Entry]) -> Sequence[Entry]:
    """The graph with MXNet's operators in the place of those that it does not know, where there are such."""
    nodes = topo(heads)
    if not any(n.op is not None and "written_as" in n.op.facets for n in nodes):
        return heads
    done: dict[int, Node] = {}

    def moved(e: Entry) -> Entry:
        return done[id(e[0])], e[1]

    for n in nodes:
        chain = None if n.op is None else n.op.facet("written_as", n.params)
        if n.op is None:
            done[id(n)] = n
        elif chain is None:
            done[id(n)] = Node(n.op, n.params, [moved(e) for e in n.inputs], n.name, n.attrs, n.forward)
        else:
            found = moved(n.inputs[0])
            for i, (name, params) in enumerate(chain or [("_np_copy", {})]):
                op = tables.ops.get(name)
                label = n.name if i >= len(chain) - 1 else f"{n.name}_{name}"
                found = Node(op, op.parse(params), [found], label, n.attrs), 0
            done[id(n)] = found[0]
    return [moved(e) for e in heads]


def _graph(heads: Sequence[Entry], writes: dict[int, int]) -> dict[str, Any]:
    """What is written of a graph; `writes` counts, for each variable, the operators so far that write it as a state."""
    nodes = topo(heads)
    index = {id(n): i for i, n in enumerate(nodes)}
    listed, row_ptr = [], [0]
    for n in nodes:
        if n.forward is not None:
            raise error(
                ValueError,
                f"node '{n.name}' is the backward of '{n.forward.name}' and uses what its forward kept in memory; "
                "files cannot hold that, save the symbol before grad()",
            )
        item: dict[str, Any] = {"op": "null" if n.op is None else n.op.name, "name": n.name}
        attrs = kept(n.attrs)
        inputs, graphs = [], []
        if n.op is not None:
            graphs = [_graph(g.heads, writes) for g in sub_graphs(n).values()]
            _check_literals(n)
            attrs.update(param_texts(n))
            for i, (m, j) in enumerate(n.inputs):
                if m.op is None and (i in n.params._sig.aux or i in n.params._sig.mutates):
                    writes[id(m)] = writes.get(id(m), 0) + 1
                inputs.append([index[id(m)], j, writes.get(id(m), 0)])
        if attrs:
            item["attrs"] = dict(sorted(attrs.items()))
        item["inputs"] = inputs
        if graphs:
            item["subgraphs"] = graphs
        listed.append(item)
        row_ptr.append(row_ptr[-1] + outputs.count(n))
    return {
        "nodes": listed,
        "arg_nodes": [i for i, n in enumerate(nodes) if n.op is None],
        "node_row_ptr": row_ptr,
        "heads": [[index[id(n)], i, writes.get(id(n), 0)] for n, i in heads],
    }


def _check_literals(n: Node) -> None:
    for name, value in unwritten(n.op, n.params).items():
        raise error(
            TypeError,
            f"{n.op.name} (node '{n.name}'): parameter {name} is {value!r:.60}; graph files hold "
            "Python's own finite numbers, texts, truth values, None and tuples of such",
        )


def _write(v: Any, depth: int) -> str:
    """MXNet's layout: objects of more than one item and lists of more than ten, or of objects, take a line an item."""
    if isinstance(v, dict):
        items, brackets, long = ([f"{_quoted(k)}: {_write(x, depth + 1)}" for k, x in v.items()], "{}", len(v) > 1)
    elif isinstance(v, list):
        items, brackets = [_write(x, depth + 1) for x in v], "[]"
        long = len(v) > 10 or any(isinstance(x, dict) for x in v)
    else:
        return _quoted(v) if isinstance(v, str) else json.dumps(v)
    if not items:
        return brackets
    if not long:
        return brackets[0] + ", ".join(items) + brackets[1]
    pad = "\n" + "  " * (depth + 1)
    return brackets[0] + pad + ("," + " " + pad).join(items) + "\n" + "  " * depth + brackets[1]
