"""Images that travel with their channels last: a graph pass for devices that compute convolutions so.

Such arrays are ordinary ones. What is computed element by element takes them as they are, other layers by a parameter,
and where an operator knows no layout, or a user looks, they are transposed. A device says how it computes what begins
with them, as a rule convolutions and their gradients, and what it knows better than these rules.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from ._core import tables
from ._core.graph import Graph, Node
from ._core.infer import known
from ._core.params import Params
from .layouts import channels_first
from .parameters import Bool, DType, Enum, Float, given_params

__all__ = ["CONVOLUTIONS", "LAYOUTS", "Asked", "Layer", "changed", "channels_last", "convolution", "pooling", "same"]

Entry = tuple[Node, int]
Shape = tuple[int, ...]
Outputs = Sequence["Entry | None"]
#: Dimensions of images -> the layout with the channels last, as `Pooling` calls it.
LAYOUTS = {3: "NWC", 4: "NHWC", 5: "NDHWC"}


class Asked(NamedTuple):
    """What a rule is asked for: a node whose images may have their channels last.

    Attributes
    ----------
    node : Node
        With channels first.
    shapes : sequence of tuple of int
        Of its inputs, as they are in the graph.
    out : tuple of int
        Of its first output.
    read : sequence of bool
        Which outputs somebody reads.
    """

    node: Node
    shapes: Sequence[Shape]
    out: Shape
    read: Sequence[bool]


class Layer(NamedTuple):
    """How a node is computed with channels last.

    Attributes
    ----------
    make : callable
        ``inputs -> outputs``, entries of the new graph; those of outputs that nobody reads may be None.
    ins, outs : collection of int
        Which inputs and outputs are images.
    spared : int
        Elements that need not be reordered so.
    """

    make: Callable[[Sequence[Entry]], Outputs]
    ins: Collection[int]
    outs: Collection[int] = (0,)
    spared: int = 0


Rule = Callable[[Asked], "Layer | None"]


def channels_last(
    graph: Graph,
    starts: Mapping[str, Rule],
    devices: Collection[str],
    rules: Mapping[str, Rule] | None = None,
    dtypes: Collection[str] = ("float32",),
    dear: float = 3,
    trains: bool | None = True,
) -> Graph:
    """The graph of a program in which images have their channels last where that pays.

    Parameters
    ----------
    graph : Graph
        Of a late pass. One that runs in several places, with states, or with nodes that write to images stays as it is.
    starts : mapping of str to callable
        What is computed so wherever it is met, by the names of operators: ``Asked -> Layer``, or None where a node
        stays as it is. What follows takes images as they come.
    devices : collection of str
        Types of devices that it is for.
    rules : mapping of str to callable, optional
        In place of those that are here, or beside them.
    dtypes : collection of str
        Of images.
    dear : float
        To transpose an element takes as long as so many are not reordered: a graph in which it does not pay stays.
    trains : bool or None
        Whether it is for programs that train, or that infer; both if None.

    Returns
    -------
    Graph

    Examples
    --------
    A device whose kernels take ``layout="NHWC"``:

    >>> from mxcore.channels_last import CONVOLUTIONS, channels_last
    >>> from mxcore.plugin import GraphPass, hookimpl
    >>> def nhwc(graph):
    ...     return channels_last(graph, CONVOLUTIONS, devices=["my_device"])
    >>> @hookimpl
    ... def mxcore_graph_passes():
    ...     return [GraphPass("my_nhwc", 0, nhwc, late=True, operators=[*CONVOLUTIONS])]
    """
    info = graph.info
    if (
        trains is not None
        and info["is_train"] != trains
        or info["ctx"].device_type not in devices
        or any(ctx is not info["ctx"] for ctx in info.get("contexts", {}).values())
        or any(n.forward is not None or _writes(graph, n) for n in graph.nodes)
    ):
        return graph
    new = _Turned(graph, starts, {**_RULES, **(rules or {})}, dtypes)
    return new.graph if _worth(dear * new.turned, new.spared) else graph


def _worth(turned: float, spared: int) -> bool:
    return turned < spared


def _writes(graph: Graph, n: Node) -> bool:
    """Whether a node writes to an image, of which there may be two."""
    written = [] if n.op is None else [n.inputs[i] for i in n.params._sig.mutates]
    return any(len(graph.shapes.get(e) or ()) in LAYOUTS for e in written)


# -- what rules are made of -------------------------------------------------------------------------------------------
def changed(n: Node, **values: Any) -> Params:
    """The parameters of a node, some of which get other values."""
    p: Params = n.op.parse({**given_params(n.params), **values})
    return p


def same(n: Node, p: Params) -> Callable[[Sequence[Entry]], Outputs]:
    """The same operator, with these parameters: a layer's `make`."""

    def make(inputs: Sequence[Entry]) -> Outputs:
        node = Node(n.op, p, inputs, n.name, n.attrs)
        return [(node, i) for i in range(node.n_out)]

    return make


def _node(op: str, source: Entry, name: str, **params: Any) -> Entry:
    found = tables.ops.get(op)
    return Node(found, found.parse(params), [source], name), 0


# -- the rules --------------------------------------------------------------------------------------------------------
def convolution(a: Asked) -> Layer | None:
    """The same convolution, or gradients of one, by its parameter `layout`; filters are transposed, which are small."""
    n, rank = a.node, len(a.out)
    differentiates = n.op.name != "Convolution"
    if rank not in (4, 5) or not channels_first(n.params):
        return None
    p, weight = changed(n, layout=LAYOUTS[rank]), 2 if differentiates else 1
    there, back = (0, *range(2, rank), 1), (0, rank - 1, *range(1, rank - 1))

    def make(inputs: Sequence[Entry]) -> Outputs:
        given = [*inputs]
        given[weight] = _node("transpose", given[weight], f"{n.name}_filters", axes=there)
        node = Node(n.op, p, given, n.name, n.attrs)
        outs = [(node, i) for i in range(node.n_out)]
        if differentiates and a.read[1]:
            outs[1] = _node("transpose", outs[1], f"{n.name}_filters_grad", axes=back)
        return outs

    images = a.shapes[: 2 if differentiates else 1]
    spared = sum(map(prod, images)) + prod(a.out)
    return Layer(make, range(len(images)), (0,), spared)


def pooling(a: Asked) -> Layer | None:
    """The same pooling, or the gradient of one, by its parameter `layout`."""
    n = a.node
    data = a.shapes[0] if len(a.shapes) == 1 else a.shapes[1]
    if not channels_first(n.params):
        return None
    return Layer(same(n, changed(n, layout=LAYOUTS[len(data)])), range(len(a.shapes)))


def _norm(*ins: int) -> Rule:
    def rule(a: Asked) -> Layer | None:
        n, rank = a.node, len(a.out)
        return Layer(same(n, changed(n, axis=rank - 1)), ins) if n.params.axis in (1, 1 - rank) else None

    return rule


def _along(name: str) -> Rule:
    """Of what joins or parts images along an axis, by the name of the parameter."""

    def rule(a: Asked) -> Layer | None:
        n, rank = a.node, len(a.shapes[0])
        if getattr(n.params, name) not in (1, 1 - rank) or getattr(n.params, "squeeze_axis", False):
            return None
        return Layer(same(n, changed(n, **{name: rank - 1})), range(len(a.shapes)), range(n.n_out))

    return rule


def _slopes(images: int) -> Rule:
    """Of what has a number for each channel, the second axis: each place is a row of its own."""

    def rule(a: Asked) -> Layer | None:
        n = a.node
        if n.op.name == "LeakyReLU" and n.params.act_type != "prelu":
            return _elementwise(a)
        channels, last = a.out[1], (a.out[0], *a.out[2:], a.out[1])

        def make(inputs: Sequence[Entry]) -> Outputs:
            rows = [
                _node("Reshape", e, f"{n.name}_rows", shape=(-1, channels)) if i < images else e
                for i, e in enumerate(inputs)
            ]
            node = Node(n.op, n.params, rows, n.name, n.attrs)
            first = _node("Reshape", (node, 0), f"{n.name}_rows", shape=last)
            return [first, *((node, i) for i in range(1, n.n_out))]

        return Layer(make, range(images))

    return rule


def _elementwise(a: Asked) -> Layer | None:
    """Of what is computed for each element from those of its place; an input may be repeated along some axes."""
    n, shapes, out = a.node, a.shapes, a.out
    op, p = n.op, n.params
    if op.body is None or op.stateful or p._sig.random or p._sig.mutates or p._sig.aux or p._sig.n_out != 1:
        return None
    if op.facet("expr", p) is None or "reduces" in op.facets or not shapes:
        return None
    if any(name != op.count and not isinstance(kind, _NO_AXES) for name, kind in op.params.items()):
        return None  # it may name an axis, or a shape
    if any(shape != out for shape in shapes) and (
        "aligned" in op.facets
        or "numbers" in op.facets
        or any(len(shape) != len(out) or any(d not in (1, t) for d, t in zip(shape, out)) for shape in shapes)
    ):
        return None
    return Layer(same(n, p), range(len(shapes)))


#: Parameters that are neither axes nor shapes.
_NO_AXES = (Float, Bool, DType, Enum)
#: Operators that begin, for devices whose kernels take `layout`.
CONVOLUTIONS: dict[str, Rule] = {"Convolution": convolution, "_backward_Convolution": convolution}
_RULES: dict[str, Rule] = {
    "BatchNorm": _norm(0),
    "_backward_BatchNorm": _norm(0, 1),
    "_contrib_BatchNormWithReLU": _norm(0),
    "_backward_contrib_BatchNormWithReLU": _norm(0, 1, 2),
    "Pooling": pooling,
    "_backward_Pooling": pooling,
    "Concat": _along("dim"),
    "_split_like": _along("dim"),
    "SliceChannel": _along("axis"),
    "slice_axis": _along("axis"),
    "_slice_axis_spread": _along("axis"),
    "LeakyReLU": _slopes(1),
    "_backward_prelu": _slopes(2),
}


# -- the walk ---------------------------------------------------------------------------------------------------------
class _Turned:
    """A graph as it becomes.

    Attributes
    ----------
    turned : int
        Elements that are transposed in it.
    spared : int
        Elements that need not be reordered.
    """

    def __init__(self, graph: Graph, starts: Mapping[str, Rule], rules: Mapping[str, Rule], dtypes: Any) -> None:
        self.old, self.turned, self.spared = graph, 0, 0
        self.starts, self.rules, self.dtypes = starts, rules, frozenset(dtypes)
        #: Entries of the old graph -> those of the new one, with the channels where they were, and last.
        self.plain: dict[Entry, Entry] = {}
        self.last: dict[Entry, Entry] = {}
        self.read = {e for n in graph.nodes for e in n.inputs}.union(graph.heads)
        #: What the outputs need; the rest is of gradients, which see what is written to variables meanwhile.
        self.outputs = {id(n) for n in Graph(graph.heads[: graph.info["n_first"]]).nodes}
        self.fresh: dict[Entry, Entry] = {}
        for n in graph.nodes:
            layer = None if n.op is None else self._layer(n)
            if layer is None:
                inputs = [self._plain(e) for e in n.inputs]
                same = n.op is None or tuple(inputs) == n.inputs
                node = n if same else Node(n.op, n.params, inputs, n.name, n.attrs)
                self.plain.update(((n, i), (node, i)) for i in range(n.n_out))
                continue
            later = id(n) not in self.outputs
            inputs = [self._last(e, later) if i in layer.ins else self._plain(e) for i, e in enumerate(n.inputs)]
            for i, e in enumerate(layer.make(inputs)):
                if e is not None:
                    (self.last if i in layer.outs else self.plain)[n, i] = e
            self.spared += layer.spared
        self.graph = Graph([self._plain(e) for e in graph.heads])

    def _layer(self, n: Node) -> Layer | None:
        """How a node computes with channels last, if it can and shall: some image comes so, or it begins."""
        graph = self.old
        rule = self.starts.get(n.op.name)
        if rule is None and not any(e in self.last for e in n.inputs):
            return None
        if not all(map(self._fits, [*n.inputs, (n, 0)])):
            return None
        shapes, out = [graph.shapes[e] for e in n.inputs], graph.shapes[n, 0]
        if len(out) not in LAYOUTS or not all(map(prod, shapes)) or not prod(out):
            return None
        asked = Asked(n, shapes, out, [(n, i) in self.read for i in range(n.n_out)])
        return (rule or self.rules.get(n.op.name, _elementwise))(asked)

    def _fits(self, e: Entry) -> bool:
        graph = self.old
        return (
            known(graph.shapes.get(e))
            and graph.stypes.get(e, "default") == "default"
            and (dtype := graph.dtypes.get(e)) is not None
            and dtype.name in self.dtypes
        )

    def _plain(self, e: Entry) -> Entry:
        if e not in self.plain:
            rank = len(self.old.shapes[e])
            self.plain[e] = self._moved(e, self.last[e], (0, rank - 1, *range(1, rank - 1)), self.old.shapes[e])
        return self.plain[e]

    def _last(self, e: Entry, later: bool) -> Entry:
        found = self.fresh if later and e[0].op is None else self.last
        if e not in found:
            n, c, *size = self.old.shapes[e]
            found[e] = self._moved(e, self.plain[e], (0, *range(2, len(size) + 2), 1), (n, *size, c))
        return found[e]

    def _moved(self, e: Entry, source: Entry, axes: Shape, shape: Shape) -> Entry:
        """An array with its axes in another order; of one channel, or one place, its elements stay where they are."""
        _, c, *size = self.old.shapes[e]
        if c == 1 or prod(size) == 1:
            return _node("Reshape", source, f"{e[0].name}_rows", shape=shape)
        self.turned += prod(shape)
        return _node("transpose", source, f"{e[0].name}_channels", axes=axes)
