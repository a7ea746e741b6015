"""The graph pass that lets images travel with their channels last: programs that train compute convolutions so.

The library computes convolutions and their gradients over arrays with the channels of a place side by side as well as
in its own layouts: nothing is reordered before and behind each of them. Such arrays are ordinary ones. What is computed
element by element takes them as they are, other layers by a parameter, and where an operator knows no layout, or a user
looks, they are transposed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

from mxcore.layouts import channels_first
from mxcore.plugin import Graph, Node, Params, find_op, given_params

from . import CONVOLUTIONS, DEVICES
from .calls import MOST, floats
from .convolution import Geometry
from .last import backward, forward
from .library import library
from .rules import pays, travels
from .windows import pools_last

__all__ = ["channels_last"]

Entry = tuple[Node, int]
Shape = tuple[int, ...]
#: To transpose an element takes as long as the library takes to reorder so many, of which some come for nothing.
_DEAR = 3
_LAYOUTS = {3: "NWC", 4: "NHWC", 5: "NDHWC"}


def channels_last(graph: Graph) -> Graph:
    """The graph of a program with convolutions over arrays whose channels are last.

    Parameters
    ----------
    graph : Graph
        Of a late pass. One that infers, in several places, with states, or with nodes that write to images stays as it
        is; so does one in which too much is transposed beside what the library has to reorder without.
    """
    info = graph.info
    if (
        not info["is_train"]
        or info["ctx"].device_type not in DEVICES
        or any(ctx is not info["ctx"] for ctx in info.get("contexts", {}).values())
        or any(n.forward is not None or _writes(graph, n) for n in graph.nodes)
        or library() is None
    ):
        return graph
    new = _Turned(graph)
    return new.graph if _worth(new.turned, new.spared) else graph


def _worth(turned: int, spared: int) -> bool:
    """Whether it pays to transpose so many elements where so many are not reordered."""
    return _DEAR * turned < spared


def _writes(graph: Graph, n: Node) -> bool:
    """Whether a node writes to an image, of which there may be two."""
    written = [] if n.op is None else [n.inputs[i] for i in n.params._sig.mutates]
    return any(len(graph.shapes.get(e) or ()) in _LAYOUTS for e in written)


# -- which layers ----------------------------------------------------------------------------------------------------
class _Layer(NamedTuple):
    """How a node computes with channels last.

    Attributes
    ----------
    make : callable
        ``inputs -> (node, its outputs)``, of which one that nobody reads may be None.
    ins, outs : collection of int
        Which inputs and outputs are images.
    spared : int
        Elements that are not reordered.
    """

    make: Callable[[Sequence[Entry]], tuple[Node, Sequence[Entry | None]]]
    ins: Sequence[int]
    outs: Sequence[int] = (0,)
    spared: int = 0


def _changed(n: Node, **values: Any) -> Params:
    """The parameters of a node, some of which get other values."""
    p: Params = n.op.parse({**given_params(n.params), **values})
    return p


def _same(n: Node, p: Params) -> Callable[[Sequence[Entry]], tuple[Node, Sequence[Entry | None]]]:
    """The same operator, with these parameters."""

    def make(inputs: Sequence[Entry]) -> tuple[Node, Sequence[Entry | None]]:
        node = Node(n.op, p, inputs, n.name, n.attrs)
        return node, [(node, i) for i in range(node.n_out)]

    return make


def _norm(ins: Sequence[int]) -> Callable[..., _Layer | None]:
    def layer(n: Node, shapes: Sequence[Shape], out: Shape) -> _Layer | None:
        rank = len(out)
        return _Layer(_same(n, _changed(n, axis=rank - 1)), ins) if n.params.axis in (1, 1 - rank) else None

    return layer


def _pool(n: Node, shapes: Sequence[Shape], out: Shape) -> _Layer | None:
    data = shapes[0] if len(shapes) == 1 else shapes[1]
    p = _changed(n, layout=_LAYOUTS[len(data)])
    if not (channels_first(n.params) and pools_last(p, data, len(shapes) > 1)):
        return None
    return _Layer(_same(n, p), range(len(shapes)))


def _along(name: str) -> Callable[..., _Layer | None]:
    """Of what joins or parts images along an axis, by the name of the parameter."""

    def layer(n: Node, shapes: Sequence[Shape], out: Shape) -> _Layer | None:
        rank = len(shapes[0])
        if getattr(n.params, name) not in (1, 1 - rank) or getattr(n.params, "squeeze_axis", False):
            return None
        return _Layer(_same(n, _changed(n, **{name: rank - 1})), range(len(shapes)), range(n.n_out))

    return layer


def _slope(images: int) -> Callable[..., _Layer | None]:
    """Of what has a number for each channel, the second axis: each place is a row of its own."""

    def layer(n: Node, shapes: Sequence[Shape], out: Shape) -> _Layer | None:
        if n.op.name == "LeakyReLU" and n.params.act_type != "prelu":
            return _elementwise(n, shapes, out)
        channels, last = out[1], (out[0], *out[2:], out[1])

        def make(inputs: Sequence[Entry]) -> tuple[Node, Sequence[Entry | None]]:
            rows = [_reshaped(n, e, (-1, channels)) if i < images else e for i, e in enumerate(inputs)]
            node = Node(n.op, n.params, rows, n.name, n.attrs)
            return node, [_reshaped(n, (node, 0), last), *((node, i) for i in range(1, n.n_out))]

        return _Layer(make, range(images))

    return layer


def _reshaped(n: Node, e: Entry, shape: Shape) -> Entry:
    op = find_op("Reshape")
    return Node(op, op.parse({"shape": shape}), [e], f"{n.name}_rows"), 0


_LAYERS: dict[str, Callable[[Node, Sequence[Shape], Shape], _Layer | None]] = {
    "BatchNorm": _norm((0,)),
    "_backward_BatchNorm": _norm((0, 1)),
    "_contrib_BatchNormWithReLU": _norm((0,)),
    "_backward_contrib_BatchNormWithReLU": _norm((0, 1, 2)),
    "Pooling": _pool,
    "_backward_Pooling": _pool,
    "Concat": _along("dim"),
    "_split_like": _along("dim"),
    "SliceChannel": _along("axis"),
    "slice_axis": _along("axis"),
    "_slice_axis_spread": _along("axis"),
    "LeakyReLU": _slope(1),
    "_backward_prelu": _slope(2),
}


def _elementwise(n: Node, shapes: Sequence[Shape], out: Shape) -> _Layer | None:
    """Of what is computed for each element from those of its place; an input may be repeated along some axes."""
    op, p = n.op, n.params
    if op.body is None or op.stateful or p._sig.random or p._sig.mutates or p._sig.aux or p._sig.n_out != 1:
        return None
    if op.facet("expr", p) is None or "reduces" in op.facets or not shapes:
        return None
    if any(shape != out for shape in shapes) and (
        "aligned" in op.facets
        or "numbers" in op.facets
        or any(len(shape) != len(out) or any(d not in (1, t) for d, t in zip(shape, out)) for shape in shapes)
    ):
        return None
    return _Layer(_same(n, p), range(len(shapes)))


def _convolution(graph: Graph, n: Node, read: set[Entry]) -> _Layer | None:
    p = n.params
    outs: list[int | None]
    if not channels_first(p):
        return None
    shapes = [graph.shapes[e] for e in n.inputs]
    differentiates = n.op.name != "Convolution"
    data, weight = shapes[1:3] if differentiates else shapes[:2]
    g = Geometry.of(p, data, weight, p.num_group)._replace(last=True)
    if max(prod(g.src), prod(g.dst)) > MOST:
        return None
    if not differentiates:
        op, outs, ins = forward(g, len(shapes) > 2, p), [0], [0]
        spared = _spared(g, ["forward"])
    else:
        wanted = [(n, i) in read for i in range(n.n_out)] + [False] * (3 - n.n_out)
        op = backward(g, (wanted[0], wanted[1], wanted[2]), p)
        places = iter(range(3))
        outs, ins = [next(places) if want else None for want in wanted[: n.n_out]], [0, 1]
        spared = _spared(g, [piece for piece, want in zip(("data", "weight"), wanted) if want])
    if op is None:
        return None

    def make(inputs: Sequence[Entry]) -> tuple[Node, Sequence[Entry | None]]:
        node = Node(op, op.parse({}), inputs, n.name, n.attrs)
        return node, [None if i is None else (node, i) for i in outs]

    return _Layer(make, ins, (0,), spared)


def _spared(g: Geometry, pieces: Sequence[str]) -> int:
    """Elements of images that the library would reorder, less those that are transposed for who has better code."""
    isa, images = library().isa, prod(g.src) + prod(g.dst)  # type: ignore[union-attr]
    found = sum(images for piece in pieces if travels(isa, piece, g) and pays(isa, piece, g._replace(last=False)))
    return found - _DEAR * sum(images for piece in pieces if not travels(isa, piece, g))


# -- the walk --------------------------------------------------------------------------------------------------------
class _Turned:
    """A graph as it becomes.

    Attributes
    ----------
    turned : int
        Elements that are transposed in it.
    spared : int
        Elements that the library need not reorder.
    """

    def __init__(self, graph: Graph) -> None:
        self.old, self.turned, self.spared = graph, 0, 0
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
            _, outs = layer.make(inputs)
            for i, e in enumerate(outs):
                if e is not None:
                    (self.last if i in layer.outs else self.plain)[n, i] = e
            self.spared += layer.spared
        self.graph = Graph([self._plain(e) for e in graph.heads])

    def _layer(self, n: Node) -> _Layer | None:
        """How a node computes with channels last, if it can and shall: some image comes so, or it is a convolution."""
        graph = self.old
        convolves = n.op.name in CONVOLUTIONS
        if not convolves and not any(e in self.last for e in n.inputs):
            return None
        if not floats(graph, [*n.inputs, (n, 0)]):
            return None
        shapes = [graph.shapes[e] for e in n.inputs]
        out = graph.shapes[n, 0]
        if len(out) not in _LAYOUTS or not all(map(prod, shapes)) or not prod(out):
            return None
        if convolves:
            return _convolution(graph, n, self.read)
        return _LAYERS.get(n.op.name, _elementwise)(n, shapes, out)

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
            return _reshaped(e[0], source, shape)
        self.turned += prod(shape)
        op = find_op("transpose")
        return Node(op, op.parse({"axes": axes}), [source], f"{e[0].name}_channels"), 0
