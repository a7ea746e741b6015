"""Graphs from MXNet's JSON, that of older versions included."""

from __future__ import annotations

import re
from typing import Any

from .._core import tables
from .._core.errors import MXNetError, error
from .._core.graph import Graph, Node
from .._core.op import Op
from .._core.state import state
from .._json import decode
from ..parameters import GraphParam, Int, strings
from .attrs import is_wrapped, kept, kept_by_op
from .base import Entry
from .compose import auto_variable
from .legacy_json import give_to_inputs, texts_of, version_of

__all__ = ["read_json"]

#: How many outputs beyond `USUAL` the operators of a file may have together: each has a name, and is told of in a digit
#: or two.
MOST_OUTPUTS, USUAL = 1 << 18, 16


def read_json(text: str | bytes, called: str = "the JSON text") -> list[Entry]:
    """The heads of a graph.

    Parameters
    ----------
    text : str or bytes
    called : str
        What errors call it, the name of a file most often.

    Raises
    ------
    MXNetError
        If it is no JSON or no graph; names the node by number and name. If it needs an operator that nobody registered;
        names the plugins that failed or are switched off.
    """
    data = decode(text, called)
    return _read(data, called, _File(version_of(data) if isinstance(data, dict) else 0))


class _File:
    """What holds for all graphs of a file: its version, and how many outputs there may be yet."""

    def __init__(self, version: int) -> None:
        self.version, self.outputs = version, MOST_OUTPUTS

    def take(self, outputs: int) -> None:
        self.outputs -= max(outputs - USUAL, 0)
        if self.outputs < 0:
            raise ValueError(f"the operators up to here have {MOST_OUTPUTS} outputs and more")


def _read(data: Any, called: str, file: _File) -> list[Entry]:
    if not isinstance(data, dict):
        raise error(ValueError, f"{called} is no graph: expected an object, got {type(data).__name__}")
    for key in ("nodes", "heads"):
        if not isinstance(data.get(key), list):
            raise error(
                ValueError, f"{called} is no graph: {'it has no' if key not in data else 'no list is its'} '{key}'"
            )
    nodes: list[Node] = []
    for i, item in enumerate(data["nodes"]):
        name = item.get("name") if isinstance(item, dict) else None
        where = f"{called}, node {i}" + (f" '{name}'" if isinstance(name, str) else "")
        try:
            nodes.append(_node(item, nodes, where, file))
        except (KeyError, TypeError, ValueError, IndexError, OverflowError, RecursionError) as e:
            kind = type(e) if isinstance(e, MXNetError) else ValueError
            raise error(kind, str(e) if str(e).startswith(where) else f"{where}: {e}") from None
    attrs = data.get("attrs")
    if state.np_shape and not (isinstance(attrs, dict) and "is_np_shape" in attrs):  # 0 was an unknown length there
        for n in nodes:
            if n.op is None and "__shape__" in n.attrs:
                n.attrs["__shape__"] = re.sub(r"\b0\b", "-1", n.attrs["__shape__"])
    listed = data.get("arg_nodes") or []
    if not isinstance(listed, list):
        raise error(ValueError, f"{called}: 'arg_nodes' must be a list of numbers of nodes, got {listed!r}")
    for i in listed:
        if not isinstance(i, int) or not 0 <= i < len(nodes) or nodes[i].op is not None:
            raise error(
                ValueError, f"{called}: arg_nodes lists {i!r}, which is no variable among its {len(nodes)} nodes"
            )
    try:
        heads = [_entry(e, nodes) for e in data["heads"]]
    except ValueError as e:
        raise error(ValueError, f"{called}: heads: {e}") from None
    if not heads:
        raise error(ValueError, f"{called}: heads is empty; a graph has at least one output")
    return heads


def _entry(e: Any, before: list[Node]) -> Entry:
    """An entry given as [node, output] or [node, output, version]."""
    if (
        not isinstance(e, list)
        or not 1 <= len(e) <= 3
        or not all(isinstance(v, int) and not isinstance(v, bool) for v in e)
    ):
        raise ValueError(f"{e!r} must be a list [number of a node, number of its output, version]")
    if not 0 <= e[0] < len(before):
        raise ValueError(
            f"{e} points to node {e[0]}, which is not among the {len(before)} nodes before it: the number is wrong, "
            "or the graph has a cycle"
        )
    n, i = before[e[0]], e[1] if len(e) > 1 else 0
    if not 0 <= i < n.n_out:
        raise ValueError(f"{e} asks for output {i} of '{n.name}', which has {n.n_out}")
    return n, i


def _text(item: dict[str, Any], key: str) -> str:
    if not isinstance(item.get(key), str):
        raise ValueError(f"it has no '{key}'" if key not in item else f"'{key}' must be a string, got {item[key]!r}")
    return str(item[key])


def _node(item: Any, before: list[Node], where: str, file: _File) -> Node:
    if not isinstance(item, dict):
        raise ValueError(f"a node is an object, got {item!r}")
    name, op_name = _text(item, "name"), _text(item, "op")
    texts = texts_of(item, file.version)
    given = item.get("inputs", [])
    if not isinstance(given, list):
        raise ValueError(f"'inputs' must be a list, got {given!r}")
    try:
        inputs = [_entry(e, before) for e in given]
    except ValueError as e:
        raise ValueError(f"input {e}") from None
    if op_name == "null":
        if inputs:
            raise ValueError(f"a variable has no inputs, the file gives {given}")
        return Node(None, None, (), name, kept(texts))
    op = _operator(op_name)
    params: dict[str, Any] = {
        k: v for k, v in texts.items() if k in op.params or (op.parser.rest and not is_wrapped(k))
    }
    attrs = kept({k: v for k, v in texts.items() if k not in params})
    keys = [key for key, spec in op.params.items() if isinstance(spec, GraphParam)]
    graphs = item.get("subgraphs") or []
    if not isinstance(graphs, list):
        raise ValueError(f"'subgraphs' must be a list of graphs, got {graphs!r}")
    if len(graphs) != len(keys):
        raise ValueError(f"operator {op_name} holds {len(keys)} sub-graphs, the file gives {len(graphs)}")
    for i, (key, graph) in enumerate(zip(keys, graphs)):
        params[key] = Graph(_read(graph, f"{where}, sub-graph {i}", file))
    if op.variadic and op.arg_names is None and (keys or op.count not in params):
        params[op.count] = str(len(inputs))
    # Else a million would be made up.
    if op.variadic and _number(op.params.get(op.count), params.get(op.count)) > len(inputs):
        raise ValueError(f"{op.count} of operator {op_name} is {params[op.count]}, the file gives {len(inputs)} inputs")
    p = op.parse(params)
    file.take(p._sig.n_all)
    wanted = p._sig.inputs
    if len(inputs) > len(wanted):
        raise ValueError(
            f"operator {op_name} takes {len(wanted)} inputs ({', '.join(wanted)}) with these parameters, "
            f"the file gives {len(inputs)}"
        )
    # Old files list neither auxiliary states nor what the user left out.
    added = {**attrs, **strings(op, p)}
    inputs += [(auto_variable(f"{name}_{label}", op, label, added), 0) for label in wanted[len(inputs) :]]
    give_to_inputs(op, wanted, inputs, attrs, file.version)
    kept_by_op(op, attrs)  # a misspelt parameter must not pass for an attribute
    for label, (n, _) in zip(wanted, inputs):
        if n.op is not None and p._sig.index[label] in p._sig.aux:
            raise ValueError(
                f"operator {op_name} writes its input '{label}', "
                f"which must be a variable; it is an output of '{n.name}'"
            )
    return Node(op, p, inputs, name, attrs)


def _number(spec: Any, text: str | None) -> int:
    """How many inputs a parameter tells of; 0 where there is none, or none that can be read."""
    try:
        return spec.convert(text) if isinstance(spec, Int) and text is not None else 0
    except (TypeError, ValueError):
        return 0


def _operator(name: str) -> Op:
    try:
        return tables.ops.get(name)
    except KeyError as e:
        raise error(
            KeyError, f"{e}; if a plugin provides it, install that (`mxcore plugins` lists those present)"
        ) from None
