"""The graph pass that lets images travel with their channels last: programs that train compute convolutions so.

The library computes convolutions and their gradients over arrays with the channels of a place side by side as well as
in its own layouts: nothing is reordered before and behind each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mxcore.channels_last import LAYOUTS, Asked, Layer, changed, pooling
from mxcore.channels_last import channels_last as turned
from mxcore.layouts import channels_first
from mxcore.plugin import Graph, Node

from . import CONVOLUTIONS, DEVICES
from .calls import MOST
from .convolution import Geometry
from .last import backward, forward
from .library import library
from .rules import pays, travels
from .windows import pools_last

__all__ = ["channels_last"]

Entry = tuple[Node, int]
#: To transpose an element takes as long as the library takes to reorder so many, of which some come for nothing.
_DEAR = 3


def channels_last(graph: Graph) -> Graph:
    """The graph of a program with convolutions over arrays whose channels are last.

    Parameters
    ----------
    graph : Graph
        Of a late pass. One that infers stays as it is; so does one in which too much is transposed beside what the
        library has to reorder without.
    """
    if library() is None:
        return graph
    starts = dict.fromkeys(CONVOLUTIONS, _convolution)
    return turned(graph, starts, DEVICES, dict.fromkeys(("Pooling", "_backward_Pooling"), _pool), dear=_DEAR)


def _pool(a: Asked) -> Layer | None:
    n, gradient = a.node, len(a.shapes) > 1
    data = a.shapes[1] if gradient else a.shapes[0]
    return pooling(a) if pools_last(changed(n, layout=LAYOUTS[len(data)]), data, gradient) else None


def _convolution(a: Asked) -> Layer | None:
    n, p = a.node, a.node.params
    outs: list[int | None]
    if not channels_first(p):
        return None
    differentiates = n.op.name != "Convolution"
    data, weight = a.shapes[1:3] if differentiates else a.shapes[:2]
    g = Geometry.of(p, data, weight, p.num_group)._replace(last=True)
    if max(prod(g.src), prod(g.dst)) > MOST:
        return None
    if not differentiates:
        op, outs, ins = forward(g, len(a.shapes) > 2, p), [0], [0]
        spared = _spared(g, ["forward"])
    else:
        wanted = [*a.read, *[False] * (3 - n.n_out)]
        op = backward(g, (wanted[0], wanted[1], wanted[2]), p)
        places = iter(range(3))
        outs, ins = [next(places) if want else None for want in wanted[: n.n_out]], [0, 1]
        spared = _spared(g, [piece for piece, want in zip(("data", "weight"), wanted) if want])
    if op is None:
        return None

    def make(inputs: Sequence[Entry]) -> Sequence[Entry | None]:
        node = Node(op, op.parse({}), inputs, n.name, n.attrs)
        return [None if i is None else (node, i) for i in outs]

    return Layer(make, ins, (0,), spared)


def _spared(g: Geometry, pieces: Sequence[str]) -> int:
    """Elements of images that the library would reorder, less those that are transposed for who has better code."""
    isa, images = library().isa, prod(g.src) + prod(g.dst)  # type: ignore[union-attr]
    found = sum(images for piece in pieces if travels(isa, piece, g) and pays(isa, piece, g._replace(last=False)))
    return found - _DEAR * sum(images for piece in pieces if not travels(isa, piece, g))
