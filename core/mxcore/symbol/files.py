"""Symbols as MXNet's JSON: written as MXNet 1.9.1 writes it, read also in the layouts of older versions."""
from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from .. import _io_files
from .._core import registry
from .._core.errors import MXNetError, error
from .._core.graph import Graph, Node, topo
from .._core.params import GraphParam
from .symbol import HIDDEN, Symbol, auto_variable

__all__ = ["to_json", "load_json", "load", "save"]

_VERSION = ["int", 10901]
#: Operator -> how many outputs MXNet's has, those that nobody sees included, where ours has another number of them.
_OUTPUTS: dict[str, Callable[[Any], int]] = {
    "Pooling": lambda p: 1 + (p.pool_type == "max" and bool(p.kernel) and not str(p.layout).endswith("C")),
    "RNN": lambda p: int(p._sig.visible), "L2Normalization": lambda p: 2, "LRN": lambda p: 2, "CTCLoss": lambda p: 2,
    "_linalg_det": lambda p: 3, "_linalg_slogdet": lambda p: 4,
}


def to_json(symbol: Symbol) -> str:
    """The graph as text."""
    return _write({**_graph(symbol._heads), "attrs": {"mxnet_version": _VERSION}}, 0)


def _graph(heads: Any) -> dict[str, Any]:
    nodes = topo(heads)
    index = {id(n): i for i, n in enumerate(nodes)}
    writes: dict[int, int] = {}
    listed, row_ptr = [], [0]
    for n in nodes:
        item: dict[str, Any] = {"op": "null" if n.op is None else n.op.name, "name": n.name}
        attrs = {f"__{k}__" if k in HIDDEN else k: v for k, v in n.attrs.items()}
        inputs, graphs = [], []
        if n.op is not None:
            texts = n.op.parser.strings(n.params)
            for key, spec in n.op.params.items():
                if isinstance(spec, GraphParam):
                    texts.pop(key, None)
                    graphs.append(_graph(getattr(n.params, key).heads))
            attrs.update(texts)
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
        row_ptr.append(row_ptr[-1] + (_OUTPUTS[n.op.name](n.params) if n.op is not None and n.op.name in _OUTPUTS else n.n_out))
    return {"nodes": listed, "arg_nodes": [i for i, n in enumerate(nodes) if n.op is None], "node_row_ptr": row_ptr,
            "heads": [[index[id(n)], i, writes.get(id(n), 0)] for n, i in heads]}


def _write(v: Any, depth: int) -> str:
    """MXNet's layout: objects of more than one item and lists of more than ten, or of objects, take a line an item."""
    if isinstance(v, dict):
        items, brackets, long = [f"{json.dumps(k)}: {_write(x, depth + 1)}" for k, x in v.items()], "{}", len(v) > 1
    elif isinstance(v, list):
        items, brackets = [_write(x, depth + 1) for x in v], "[]"
        long = len(v) > 10 or any(isinstance(x, dict) for x in v)
    else:
        return json.dumps(v)
    if not items:
        return brackets
    if not long:
        return brackets[0] + ", ".join(items) + brackets[1]
    pad = "\n" + "  " * (depth + 1)
    return brackets[0] + pad + ("," + " " + pad).join(items) + "\n" + "  " * depth + brackets[1]


def load_json(json_str: str, called: str = "the JSON text") -> Symbol:
    """Read a graph from text.

    Raises
    ------
    MXNetError
        If it is no JSON or no graph, or names an operator that no plugin provides.
    """
    try:
        data = json.loads(json_str)
    except ValueError as e:
        raise error(ValueError, f"{called} is no JSON: {e}") from None
    return Symbol(_read(data, called))


def _read(data: Any, called: str) -> list[tuple[Node, int]]:
    if not isinstance(data, dict) or not isinstance(data.get("nodes"), list) or "heads" not in data:
        raise error(ValueError, f"{called} is no graph: it needs the keys 'nodes' and 'heads'")
    nodes: list[Node] = []
    for i, item in enumerate(data["nodes"]):
        try:
            nodes.append(_node(item, nodes, called))
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as e:
            name = item.get("name", "?") if isinstance(item, dict) else "?"
            kind = type(e) if isinstance(e, MXNetError) else ValueError
            raise error(kind, f"{called}, node {i} '{name}': {e}") from None
    try:
        return [(nodes[h[0]], h[1] if len(h) > 1 else 0) for h in data["heads"]]
    except (IndexError, TypeError):
        raise error(ValueError, f"{called}: heads {data['heads']!r} do not point to its {len(nodes)} nodes") from None


def _node(item: dict[str, Any], before: list[Node], called: str) -> Node:
    name, op_name = item["name"], item["op"]
    # Before version 1.0 parameters were `param` and attributes `attr`; then both were `attr`.
    texts = {**item.get("param", {}), **item.get("attr", {}), **item.get("attrs", {})}
    inputs = []
    for e in item.get("inputs", ()):
        if not 0 <= e[0] < len(before):
            raise ValueError(f"input {e} points to a node that does not come before it; the graph must not have a cycle")
        inputs.append((before[e[0]], e[1]))
    if op_name == "null":
        return Node(None, None, (), name, {k: str(v) for k, v in texts.items()})
    op = registry.ops.get(op_name)
    params = {k: v for k, v in texts.items() if k in op.params or (op.parser.rest and not k.startswith("__"))}
    attrs = {k: str(v) for k, v in texts.items() if k not in params}
    graphs = iter(item.get("subgraphs", ()))
    for key, spec in op.params.items():
        if isinstance(spec, GraphParam):
            params[key] = Graph(_read(next(graphs), called))
    if op.variadic and op.arg_names is None:
        params.setdefault(op.count, str(len(inputs)))
    p = op.parse(params)
    wanted = p._sig.inputs
    if len(inputs) > len(wanted):
        raise ValueError(f"operator {op_name} takes {len(wanted)} inputs, the file gives {len(inputs)}")
    # Old files do not list auxiliary states among the inputs.
    inputs += [(auto_variable(f"{name}_{label}", op, label, {}), 0) for label in wanted[len(inputs):]]
    return Node(op, p, inputs, name, attrs)


def save(symbol: Symbol, fname: Any) -> None:
    """Write a symbol to a file or URL, wholly or not at all."""
    _io_files.write_atomic(fname, to_json(symbol).encode())


def load(fname: Any) -> Symbol:
    """Read a symbol from a file or URL.

    >>> import mxcore as mx
    >>> (mx.sym.Variable("a") * 2).save("memory://doc/twice-symbol.json")
    >>> mx.sym.load("memory://doc/twice-symbol.json").list_arguments()
    ['a']
    """
    with _io_files.open_read(fname) as f:
        data = f.read()
    try:
        text = data.decode()
    except UnicodeDecodeError as e:
        raise error(ValueError, f"{fname} is no JSON text: {e}") from None
    return load_json(text, str(fname))
