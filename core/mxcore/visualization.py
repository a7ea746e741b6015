"""Graphs as tables and pictures, as ``mxnet.visualization`` and ``mx.viz``."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ._core.graph import Node, topo
from .base import error
from .symbol import Symbol
from .symbol.attrs import shown

__all__ = ["plot_network", "print_summary"]

#: Endings of names of variables that are parameters, not inputs.
_WEIGHTS = ("_weight", "_bias", "_beta", "_gamma", "_moving_var", "_moving_mean", "_running_var", "_running_mean")

_COLOURS = {"variable": "#8dd3c7", "product": "#fb8072", "activation": "#ffffb3", "norm": "#bebada", "pooling": "#80b1d3",
            "shape": "#fdb462", "softmax": "#b3de69", "other": "#fccde5"}


def _by(sizes: Any) -> str:
    return "x".join(str(s) for s in sizes)


def _pooled(p: dict[str, str]) -> str:
    return f"Pooling\n{p.get('pool_type', 'max')}, {_sizes(p.get('kernel'))}/{_sizes(p.get('stride'))}"


def _sizes(text: str | None) -> str:
    """``(3, 3)`` as ``3x3``; 1 where nothing was said."""
    numbers = [n.strip() for n in (text or "").strip("()[]").split(",") if n.strip()]
    return _by(numbers) or "1"


#: Operator -> (kind of colour, label from the parameters as strings; None for the name of the node).
_STYLES: dict[str, tuple[str, Callable[[dict[str, str]], str] | None]] = {
    "Convolution": ("product", lambda p: f"Convolution\n{_sizes(p['kernel'])}/{_sizes(p.get('stride'))}, {p['num_filter']}"),
    "FullyConnected": ("product", lambda p: f"FullyConnected\n{p['num_hidden']}"),
    "BatchNorm": ("norm", None),
    "Activation": ("activation", lambda p: f"Activation\n{p['act_type']}"),
    "LeakyReLU": ("activation", lambda p: f"LeakyReLU\n{p.get('act_type', 'Leaky')}"),
    "Pooling": ("pooling", _pooled),
    **dict.fromkeys(("Concat", "Flatten", "Reshape"), ("shape", None)),
    "Softmax": ("softmax", None),
}


def _checked(symbol: Any, what: str) -> None:
    if not isinstance(symbol, Symbol):
        raise error(TypeError, f"{what}: symbol must be a Symbol, got {type(symbol).__name__}")


def _inferred(symbol: Any, shape: dict[str, Any] | None, dtype: dict[str, Any] | None = None) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Entry -> shape and entry -> dtype, as far as they are known; all must be, if shapes are given."""
    internals = symbol.get_internals()
    shapes = dict(zip(internals._heads, internals.infer_shape(**shape)[1] or () if shape else internals.infer_shape_partial()[1]))
    if shape and not shapes:
        raise error(ValueError, f"the shapes given ({', '.join(f'{k}={tuple(v)}' for k, v in shape.items())}) do not decide all others; "
                                f"the variables are {', '.join(symbol.list_inputs())}")
    types = dict(zip(internals._heads, internals.infer_type(**dtype)[1] or ())) if dtype else {}
    return shapes, types


def print_summary(symbol: Any, shape: dict[str, Any] | None = None, line_length: int = 120,
                  positions: Sequence[float] = (0.44, 0.64, 0.74, 1.0)) -> None:
    """Print a table of the layers: output shapes without the batch, numbers of parameters, what comes before.

    Parameters
    ----------
    symbol : Symbol
    shape : dict of str to tuple of int, optional
        Shapes of the inputs. Without them only what the graph says itself is known.
    line_length : int
        Width of the table.
    positions : sequence of float
        Where columns end: shares of the width, or numbers of characters.

    Raises
    ------
    MXNetError
        (also TypeError or ValueError) if `symbol` is none, or the shapes fit no variable or do not decide the others.

    Notes
    -----
    The table is that of MXNet 1.9.1. Parameters are counted from the shapes of the learnt arguments, a shared one once;
    MXNet counts those of a few operators from their settings.

    Examples
    --------
    >>> import mxcore as mx
    >>> net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")
    >>> mx.viz.print_summary(net, {"data": (2, 4)}, line_length=80)  # doctest: +NORMALIZE_WHITESPACE
    ________________________________________________________________________________
    Layer (type)                       Output Shape    Param # Previous Layer
    ================================================================================
    data(null)                         4               0
    ________________________________________________________________________________
    fc(FullyConnected)                 3               15      data
    ================================================================================
    Total params: 15
    ________________________________________________________________________________
    """
    _checked(symbol, "print_summary")
    if len(positions) != 4:
        raise error(ValueError, f"print_summary: positions are 4 numbers, one a column, got {positions!r}")
    ends = [int(line_length * p) for p in positions] if positions[-1] <= 1 else list(positions)
    shapes, _ = _inferred(symbol, shape)

    def show(cells: Sequence[Any]) -> None:
        line = ""
        for cell, end in zip(cells, ends):
            line = (line + str(cell))[:int(end)].ljust(int(end))
        print(line)

    nodes = topo(symbol._heads)
    rows = [n for i, n in enumerate(nodes) if n.op is not None or i == 0]
    counted: set[Node] = set(nodes[:1])
    total = 0
    print("_" * line_length)
    show(("Layer (type)", "Output Shape", "Param #", "Previous Layer"))
    print("=" * line_length)
    for n in rows:
        count, before = 0, []
        for i, (source, _) in enumerate(n.inputs):
            if source.op is not None or source is nodes[0]:
                before.append(source.name)
            elif source not in counted:
                counted.add(source)
                if i not in n.params._sig.aux and _learnt(source.name, n.params._sig.inputs[i]):
                    sizes = shapes.get((source, 0)) or ()
                    count += math.prod(sizes) if sizes and min(sizes) > 0 else 0
        total += count
        single = n.op is None or n.params._sig.visible == 1
        known = shapes.get((n, 0)) or () if single else ()
        show((f"{n.name}({_op_name(n)})", _by(known[1:]) if known and min(known) > 0 else "", count, before[0] if before else ""))
        for name in before[1:]:
            show(("", "", "", name))
        print(("=" if n is rows[-1] else "_") * line_length)
    print(f"Total params: {total}")
    print("_" * line_length)


def _learnt(name: str, role: str) -> bool:
    """Whether a variable is a parameter, by its name or by what the operator takes it for."""
    return name.endswith(_WEIGHTS) or role in ("weight", "bias", "gamma", "beta", "parameters")


def _op_name(n: Node) -> str:
    return "null" if n.op is None else str(n.op.name)


def plot_network(symbol: Any, title: str = "plot", save_format: str = "pdf", shape: dict[str, Any] | None = None,
                 dtype: dict[str, Any] | None = None, node_attrs: dict[str, str] | None = None, hide_weights: bool = True) -> Any:
    """Draw a graph with graphviz.

    Parameters
    ----------
    symbol : Symbol
    title : str
        Name of the picture and of its file.
    save_format : str
        What ``render()`` writes: ``'pdf'``, ``'svg'``, ``'png'`` …
    shape : dict of str to tuple of int, optional
        Shapes of the inputs; edges then show shapes, without the batch.
    dtype : dict of str to dtype, optional
        Dtypes of the inputs; edges then show dtypes too.
    node_attrs : dict of str to str, optional
        Attributes of all nodes, such as ``{'shape': 'oval', 'fixedsize': 'false'}``.
    hide_weights : bool
        Leave out the edges from weights, biases and statistics.

    Returns
    -------
    graphviz.Digraph
        ``.source`` is the text, ``.render()`` writes the picture (for which the program ``dot`` is needed), and a notebook
        shows it.

    Raises
    ------
    MXNetError
        (also TypeError, ValueError or ImportError) if `symbol` is none, shapes do not fit, or the package graphviz is missing.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1. Edges that end in nodes of several outputs show the shape of the output they use.

    Examples
    --------
    >>> import mxcore as mx
    >>> net = mx.sym.tanh(mx.sym.Variable("x"), name="t")
    >>> print(mx.viz.plot_network(net, shape={"x": (2, 5)}).source.splitlines()[3].strip())
    t -> x [label=5 arrowtail=open dir=back]
    """
    try:
        from graphviz import Digraph
    except ImportError:
        raise error(ImportError, "plot_network needs the package graphviz: pip install graphviz") from None
    _checked(symbol, "plot_network")
    if node_attrs is not None and not isinstance(node_attrs, dict):
        raise error(TypeError, f"plot_network: node_attrs must be a dict, got {type(node_attrs).__name__}")
    dot = Digraph(name=title, format=save_format)
    for name, label, attrs in drawn_nodes(symbol, node_attrs):
        dot.node(name=name, label=label, **attrs)
    for name, source, label in drawn_edges(symbol, shape, dtype, hide_weights):
        dot.edge(tail_name=name, head_name=source, label=label, dir="back", arrowtail="open")
    return dot


def drawn_nodes(symbol: Any, node_attrs: dict[str, str] | None = None) -> list[tuple[str, str, dict[str, str]]]:
    """Name, label and graphviz's attributes of what a picture shows: all operators, and variables that are no weights."""
    found = []
    for n in topo(symbol._heads):
        if n.op is None:
            if n.name.endswith(_WEIGHTS):
                continue
            kind, label, form = "variable", n.name, "oval"
        else:
            kind, text = _STYLES.get(n.op.name, ("other", None))
            label, form = n.name if text is None else text(shown(n)), "box"
        attrs = {"shape": form, "fixedsize": "true", "width": "1.3", "height": "0.8034", "style": "filled", **(node_attrs or {})}
        found.append((n.name, label, {**attrs, "fillcolor": _COLOURS[kind]}))
    return found


def drawn_edges(symbol: Any, shape: dict[str, Any] | None = None, dtype: dict[str, Any] | None = None,
                hide_weights: bool = True) -> list[tuple[str, str, str]]:
    """User, source and label of each edge."""
    shapes, types = _inferred(symbol, shape, dtype) if shape else ({}, {})
    found = []
    for n in topo(symbol._heads):
        for source, i in n.inputs:
            if hide_weights and source.op is None and source.name.endswith(_WEIGHTS):
                continue
            label = _by(shapes[source, i][1:]) if shape else ""
            if shape and dtype:
                label += f"({types[source, i].__name__})"
            found.append((n.name, source.name, label))
    return found
