"""Graphs as tables and pictures, as ``mxnet.visualization`` and ``mx.viz``."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ._core.graph import Node, topo
from .base import error
from .symbol import Symbol
from .symbol.attrs import shown

__all__ = ["plot_network", "print_summary"]

#: Inputs of operators that are learnt, whatever they are called in a graph.
_LEARNT = ("weight", "bias", "gamma", "beta", "alpha", "parameters")
#: Endings of names of variables that are parameters, not inputs.
_WEIGHTS = ("_weight", "_bias", "_beta", "_gamma", "_moving_var", "_moving_mean", "_running_var", "_running_mean")

#: Operators with a bias as their third input -> the attribute that says its length.
_BIASED = {"Convolution": "num_filter", "Deconvolution": "num_filter", "FullyConnected": "num_hidden"}
_COLOURS = {
    "variable": "#8dd3c7",
    "product": "#fb8072",
    "activation": "#ffffb3",
    "norm": "#bebada",
    "pooling": "#80b1d3",
    "shape": "#fdb462",
    "softmax": "#b3de69",
    "other": "#fccde5",
}


def _by(sizes: Any) -> str:
    return "x".join(str(s) for s in sizes)


def _pooled(p: dict[str, str]) -> str:
    return (
        f"Pooling\n{p.get('pool_type', 'max')}, "
        f"{_sizes(p.get('kernel')) if 'kernel' in p else '[]'}/{_sizes(p.get('stride'))}"
    )


def _sizes(text: str | None) -> str:
    """``(3, 3)`` as ``3x3``; 1 where nothing was said."""
    numbers = [n.strip() for n in (text or "").strip("()[]").split(",") if n.strip()]
    return _by(numbers) or "1"


#: Operator -> (kind of colour, label from the parameters as strings; None for the name of the node).
_STYLES: dict[str, tuple[str, Callable[[dict[str, str]], str] | None]] = {
    "Convolution": (
        "product",
        lambda p: f"Convolution\n{_sizes(p['kernel'])}/{_sizes(p.get('stride'))}, {p['num_filter']}",
    ),
    "FullyConnected": ("product", lambda p: f"FullyConnected\n{p['num_hidden']}"),
    "BatchNorm": ("norm", None),
    "Activation": ("activation", lambda p: f"Activation\n{p['act_type']}"),
    "LeakyReLU": ("activation", lambda p: f"LeakyReLU\n{p.get('act_type', 'Leaky')}"),
    "Pooling": ("pooling", _pooled),
    **dict.fromkeys(("Concat", "Flatten", "Reshape"), ("shape", None)),
    "Softmax": ("softmax", None),
    "Custom": ("other", lambda p: p["op_type"]),
}


@dataclass
class Layer:
    """What there is to say of an operator, or of an input.

    Attributes
    ----------
    name, kind : str
        Kind is the operator, ``null`` for an input.
    shapes : list of tuple or None
        Of the outputs; 0 is an unknown dimension.
    params : int or None
        Learnt numbers that come in here and were not counted before; None if unknown.
    states : int or None
        The same of auxiliary states.
    before : list of str
        The layers and inputs it reads, one read twice also twice.
    at_least : int
        `params` of those arrays whose shapes are known.
    """

    name: str
    kind: str
    shapes: list[Any]
    params: int | None
    states: int | None
    before: list[str]
    at_least: int = 0


def inputs_of(symbol: Any) -> list[str]:
    """Names of the variables that are inputs and not parameters, as far as a graph tells.

    >>> import mxcore as mx
    >>> inputs_of(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc"))
    ['data']
    """
    aux, learnt, order = set(symbol.list_auxiliary_states()), set(), []
    for node in topo(symbol._heads):
        if node.op is None:
            order.append(node.name)
            # Gluon notes factors of the learning rate on all its parameters, Module on those that have any.
            if {"__init__", "__lr_mult__", "__wd_mult__"} & set(node.attrs) or node.name.endswith(_WEIGHTS):
                learnt.add(node.name)
            continue
        for label, (source, _) in zip(node.params._sig.inputs, node.inputs):
            if source.op is None and label in _LEARNT:
                learnt.add(source.name)
    return [n for n in order if n not in aux and n not in learnt]


def layers(symbol: Any, shapes: dict[str, Any] | None = None, inputs: Iterable[str] | None = None) -> list[Layer]:
    """What there is to say of each operator and each input, in the graph's order.

    Parameters
    ----------
    symbol : Symbol
    shapes : dict of str to tuple, optional
        Of variables.
    inputs : list of str, optional
        Variables with a line of their own, instead of `inputs_of`.

    Raises
    ------
    MXNetError
        (also ValueError) if shapes contradict each other.

    Examples
    --------
    >>> import mxcore as mx
    >>> net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")
    >>> [(x.name, x.shapes, x.params) for x in layers(net, {"data": (2, 4)})]
    [('data', [(2, 4)], 0), ('fc', [(2, 3)], 15)]
    """
    internals = symbol.get_internals()
    arg, out, aux = internals.infer_shape_partial(**(shapes or {}))
    sizes = {**dict(zip(internals.list_arguments(), arg)), **dict(zip(internals.list_auxiliary_states(), aux))}
    states, inputs = set(internals.list_auxiliary_states()), set(inputs_of(symbol) if inputs is None else inputs)
    outputs: dict[Any, list[Any]] = {}
    counted, found = set(inputs), []
    for (node, _), shape in zip(internals._heads, out):
        outputs.setdefault(node, []).append(shape or None)
    for node, its in outputs.items():
        if node.op is None:
            if node.name in inputs:
                found.append(Layer(node.name, "null", its, 0, 0, []))
            continue
        sources = [source for source, _ in node.inputs]
        before = [s.name for s in sources if s.op is not None or s.name in inputs]
        new = list(dict.fromkeys(s.name for s in sources if s.op is None and s.name not in counted))
        counted.update(new)
        # Its length is known whatever the data are.
        if node.op.name in _BIASED and len(sources) > 2 and sizes.get(sources[2].name) == ():
            sizes[sources[2].name] = (getattr(node.params, _BIASED[node.op.name]),)
        learnt = [sizes[n] for n in new if n not in states]
        found.append(
            Layer(
                node.name,
                node.op.name,
                its,
                _total(learnt),
                _total(sizes[n] for n in new if n in states),
                before,
                sum(_total([s]) or 0 for s in learnt),
            )
        )
    return found


def _total(shapes: Iterable[Any]) -> int | None:
    """Numbers in arrays of these shapes, None if one is unknown."""
    shapes = list(shapes)
    return None if any(not s or 0 in s for s in shapes) else sum(map(math.prod, shapes))


def _checked(symbol: Any, what: str) -> None:
    if not isinstance(symbol, Symbol):
        raise error(TypeError, f"{what}: symbol must be a Symbol, got {type(symbol).__name__}")


def _inferred(
    symbol: Any, shape: dict[str, Any] | None, dtype: dict[str, Any] | None = None
) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Entry -> shape and entry -> dtype, as far as they are known; all must be, if shapes are given."""
    # Internals list what is visible; an edge of a graph from a file may come from any output, such as the mean of a
    # BatchNorm.
    read = (e for n in topo(symbol._heads) for e in n.inputs)
    internals = Symbol(list(dict.fromkeys([*symbol.get_internals()._heads, *read])))
    shapes = dict(
        zip(internals._heads, internals.infer_shape(**shape)[1] or () if shape else internals.infer_shape_partial()[1])
    )
    if shape and not shapes:
        raise error(
            ValueError,
            f"the shapes given ({', '.join(f'{k}={tuple(v)}' for k, v in shape.items())}) do not decide all others; "
            f"the variables are {', '.join(symbol.list_inputs())}",
        )
    types = dict(zip(internals._heads, internals.infer_type(**dtype)[1] or ())) if dtype else {}
    if dtype and not types:
        raise error(
            ValueError,
            f"the dtypes given ({', '.join(f'{k}={v}' for k, v in dtype.items())}) do not decide all others; "
            f"the variables are {', '.join(symbol.list_inputs())}",
        )
    return shapes, types


def print_summary(
    symbol: Any,
    shape: dict[str, Any] | None = None,
    line_length: int = 120,
    positions: Sequence[float] = (0.44, 0.64, 0.74, 1.0),
) -> None:
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
    _inferred(symbol, shape)
    first = topo(symbol._heads)[0].name  # MXNet's table begins with it, whatever it is, and has no other variables
    rows = [x for x in layers(symbol, shape, [first, *inputs_of(symbol)]) if x.kind != "null" or x.name == first]

    def show(cells: Sequence[Any]) -> None:
        line = ""
        for cell, end in zip(cells, ends):
            line = (line + str(cell))[: int(end)].ljust(int(end))
        print(line)

    kept = {x.name for x in rows}
    print("_" * line_length)
    show(("Layer (type)", "Output Shape", "Param #", "Previous Layer"))
    print("=" * line_length)
    for x in rows:
        known = x.shapes[0] if len(x.shapes) == 1 and x.shapes[0] and 0 not in x.shapes[0] else ()
        before = [name for name in x.before if name in kept]
        show((f"{x.name}({x.kind})", _by(known[1:]), x.at_least, before[0] if before else ""))
        for name in before[1:]:
            show(("", "", "", name))
        print(("=" if x is rows[-1] else "_") * line_length)
    print(f"Total params: {sum(x.at_least for x in rows)}")
    print("_" * line_length)


def plot_network(
    symbol: Any,
    title: str = "plot",
    save_format: str = "pdf",
    shape: dict[str, Any] | None = None,
    dtype: dict[str, Any] | None = None,
    node_attrs: dict[str, str] | None = None,
    hide_weights: bool = True,
) -> Any:
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
        Dtypes of the inputs; edges then show dtypes.
    node_attrs : dict of str to str, optional
        Attributes of all nodes, such as ``{'shape': 'oval', 'fixedsize': 'false'}``; variables stay oval.
    hide_weights : bool
        Leave out the edges from weights, biases and statistics.

    Returns
    -------
    graphviz.Digraph
        ``.source`` is the text, ``.render()`` writes the picture (for which the program ``dot`` is needed), and a
        notebook shows it.

    Raises
    ------
    MXNetError
        (also TypeError, ValueError or ImportError) if `symbol` is none, shapes do not fit, or the package graphviz is
        missing.

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
    names = [n.name for n in topo(symbol._heads)]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        warnings.warn(
            "plot_network: several nodes of the graph have one name, "
            f"and become one in the picture: {', '.join(twice)}",
            RuntimeWarning,
            stacklevel=2,
        )
    dot = Digraph(name=title, format=save_format)
    for name, label, attrs in drawn_nodes(symbol, node_attrs):
        dot.node(name=name, label=label, **attrs)
    for name, source, label in drawn_edges(symbol, shape, dtype, hide_weights):
        dot.edge(tail_name=name, head_name=source, label=label, dir="back", arrowtail="open")
    return dot


def told_apart(symbol: Any) -> dict[Node, str]:
    """A name of its own for each node: its name, with a number where others have the same."""
    found: dict[Node, str] = {}
    count: dict[str, int] = {}
    for n in topo(symbol._heads):
        count[n.name] = count.get(n.name, 0) + 1
        found[n] = n.name if count[n.name] == 1 else f"{n.name} ({count[n.name]})"
    return found


def drawn_nodes(
    symbol: Any, node_attrs: dict[str, str] | None = None, keys: dict[Node, str] | None = None
) -> list[tuple[str, str, dict[str, str]]]:
    """Name (or key), label and graphviz's attributes of what a picture shows: all nodes but weights."""
    found = []
    for n in topo(symbol._heads):
        if n.op is None:
            if n.name.endswith(_WEIGHTS):
                continue
            kind, label = "variable", n.name
        else:
            kind, text = _STYLES.get(n.op.name, ("other", None))
            label = n.name if text is None else text(shown(n))
        attrs = {
            "shape": "box",
            "fixedsize": "true",
            "width": "1.3",
            "height": "0.8034",
            "style": "filled",
            **(node_attrs or {}),
        }
        if n.op is None:
            attrs["shape"] = "oval"  # whatever was asked for: it tells variables from operators
        found.append((keys[n] if keys else n.name, label, {**attrs, "fillcolor": _COLOURS[kind]}))
    return found


def drawn_edges(
    symbol: Any,
    shape: dict[str, Any] | None = None,
    dtype: dict[str, Any] | None = None,
    hide_weights: bool = True,
    keys: dict[Node, str] | None = None,
) -> list[tuple[str, str, str]]:
    """User, source (names, or keys) and label of each edge."""
    shapes, types = _inferred(symbol, shape, dtype) if shape or dtype else ({}, {})
    found = []
    for n in topo(symbol._heads):
        shape_only = n.params._sig.like if n.op is not None else ()
        for j, (source, i) in enumerate(n.inputs):
            if j in shape_only and n.op.name == "_contrib_BilinearResize2D":
                continue  # MXNet shows no arrow from what only lends its size
            if hide_weights and source.op is None and source.name.endswith(_WEIGHTS):
                continue
            label = _by(shapes[source, i][1:]) if shape else ""
            if dtype:
                label += f"({types[source, i].__name__})"
            found.append((keys[n], keys[source], label) if keys else (n.name, source.name, label))
    return found
