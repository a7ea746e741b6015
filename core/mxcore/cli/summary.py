"""``mxcore summary``: the layers of a model, one line each."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .. import symbol as sym
from .._core.errors import suggest
from .._core.graph import topo
from ..base import error
from .arguments import named_shape
from .model import load_params

__all__ = ["add_arguments", "inputs_of", "layers", "main", "named_shapes", "table"]

#: Inputs of operators that are learnt, whatever they are called in a graph.
_LEARNT = {"weight", "bias", "gamma", "beta", "alpha", "parameters"}
_COLUMNS = ("Layer (type)", "Output Shape", "Param #", "Previous Layer")


def add_arguments(parser):
    """Declare the arguments."""
    parser.add_argument("model", metavar="MODEL", help="graph file, path or URL, such as resnet-symbol.json")
    parser.add_argument(
        "--shape", metavar="NAME=N,C,H,W", type=named_shape, action="append", default=[],
        help="shape of an input, such as data=1,3,224,224; may be given several times. Without a name: of the first "
        "input. Without shapes, what the file says of its parameters is shown",
    )  # fmt: skip
    parser.add_argument("--params", metavar="FILE", help="parameters of the model, whose shapes are then known")


@dataclass
class Layer:
    """A line of the table.

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
        The layers and inputs it reads.
    """

    name: str
    kind: str
    shapes: list
    params: int | None
    states: int | None
    before: list


def inputs_of(symbol):
    """Names of the variables that are inputs and not parameters, as far as a graph tells."""
    aux, learnt, order = set(symbol.list_auxiliary_states()), set(), []
    for node in topo(symbol._heads):
        if node.op is None:
            order.append(node.name)
            # Gluon notes factors of the learning rate on all its parameters, Module on those that have any.
            if {"__init__", "__lr_mult__", "__wd_mult__"} & set(node.attrs):
                learnt.add(node.name)
            continue
        for label, (source, _) in zip(node.params._sig.inputs, node.inputs):
            if source.op is None and label in _LEARNT:
                learnt.add(source.name)
    return [n for n in order if n not in aux and n not in learnt]


def layers(symbol, shapes=None):
    """What there is to say of each layer.

    Parameters
    ----------
    symbol : Symbol
    shapes : dict of str to tuple, optional
        Of inputs.

    Returns
    -------
    list of Layer

    Raises
    ------
    MXNetError
        (also ValueError) if a name is none of the graph's, or shapes contradict each other.
    """
    shapes = named_shapes(symbol, shapes or {})
    internals = symbol.get_internals()
    arg, out, aux = internals.infer_shape_partial(**shapes)
    sizes = {**dict(zip(internals.list_arguments(), arg)), **dict(zip(internals.list_auxiliary_states(), aux))}
    states, inputs = set(internals.list_auxiliary_states()), set(inputs_of(symbol))
    outputs, counted, found = {}, set(inputs), []
    for (node, _), shape in zip(internals._heads, out):
        outputs.setdefault(node, []).append(shape or None)
    for node, its in outputs.items():
        if node.op is None:
            if node.name in inputs:
                found.append(Layer(node.name, "null", its, 0, 0, []))
            continue
        sources = list(dict.fromkeys(source for source, _ in node.inputs))
        before = [s.name for s in sources if s.op is not None or s.name in inputs]
        new = [s.name for s in sources if s.op is None and s.name not in counted]
        counted.update(new)
        params = _total(sizes[n] for n in new if n not in states)
        found.append(Layer(node.name, node.op.name, its, params, _total(sizes[n] for n in new if n in states), before))
    return found


def named_shapes(symbol, shapes):
    """Shapes from the command line by name of the input; one without a name is of the first.

    Raises
    ------
    MXNetError
        (also ValueError) if the graph has no such input.
    """
    inputs, names = inputs_of(symbol), symbol.list_inputs()
    found = {}
    for name, shape in shapes.items():
        if name is None:
            if not inputs:
                raise error(ValueError, "--shape needs a name: the graph has no input that looks like one")
            name = inputs[0]
        if name not in names:
            raise error(
                ValueError,
                f"--shape: the graph has no input named {name!r}{suggest(name, names)}; its inputs are {', '.join(inputs)}",
            )
        found[name] = shape
    return found


def _total(shapes):
    """Numbers in arrays of these shapes, None if one is unknown."""
    shapes = list(shapes)
    return None if any(not s or 0 in s for s in shapes) else sum(map(math.prod, shapes))


def _text(shape):
    return "?" if not shape else "(" + ", ".join(str(d or "?") for d in shape) + ("," if len(shape) == 1 else "") + ")"


def table(found):
    """Lines of the table, with totals below.

    Parameters
    ----------
    found : list of Layer
    """
    rows = []
    for layer in found:
        cells = f"{layer.name}({layer.kind})", ", ".join(map(_text, layer.shapes)), _count(layer)
        before = layer.before or [""]
        rows += [(*(cells if i == 0 else ("",) * 3), name) for i, name in enumerate(before)]
    widths = [max(map(len, column)) for column in zip(_COLUMNS, *rows)]
    full = sum(widths) + 2 * (len(widths) - 1)

    def line(cells):
        return "  ".join(f"{c:>{w}}" if i == 2 else f"{c:{w}}" for i, (c, w) in enumerate(zip(cells, widths))).rstrip()

    params, open_ = sum(x.params or 0 for x in found), sum(x.params is None for x in found)
    states = sum(x.states or 0 for x in found)
    lines = ["-" * full, line(_COLUMNS), "=" * full, *map(line, rows), "=" * full, f"Total params: {params + states:,}"]
    lines += [f"  learnt: {params:,}", f"  auxiliary states: {states:,}"]
    if open_:
        lines.append(f"  not counted: {open_} layer(s) marked ?, whose shapes are unknown; --shape tells them")
    return [*lines, "-" * full]


def _count(layer):
    unknown = layer.params is None or layer.states is None
    return "?" if unknown else f"{layer.params + layer.states:,}"


def main(args):
    """Print the table."""
    symbol, shapes = sym.load(args.model), {}
    if args.params is not None:
        arrays = {**(found := load_params(args.params))[0], **found[1]}
        shapes = {name: tuple(arrays[name].shape) for name in symbol.list_inputs() if name in arrays}
        if not shapes:
            raise error(ValueError, f"--params: {args.params} holds none of the parameters of {args.model}; it holds "
                                    f"{', '.join(list(arrays)[:6]) or 'nothing'} …")  # fmt: skip
    print("\n".join(table(layers(symbol, {**shapes, **dict(args.shape)}))))
    return 0
