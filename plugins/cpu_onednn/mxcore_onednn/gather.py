"""The graph pass that puts neighbouring layers together: programs that infer compute them in the library's layouts.

A region is convex: no path leaves it and comes back. It begins with a convolution, or a fully connected layer that is
normalized, and grows with the layers behind that the library computes; what it lacks code for, and what only others
compute, stays outside.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from math import prod
from typing import Any

from mxcore.plugin import Graph, Node, Op

from . import DEVICES
from .calls import MOST, floats
from .layers import ANCHORS, BEFORE, READS, build, takes
from .library import Refused, library
from .region import Failed, Layer, Region, operator

__all__ = ["gather"]

Entry = tuple[Node, int]


def gather(graph: Graph) -> Graph:
    """The graph of a program with regions in the place of their layers.

    Parameters
    ----------
    graph : Graph
        Of a late pass. One with gradients, in training mode, in several places, or with nodes that write to their
        inputs stays as it is.
    """
    info, order = graph.info, graph.nodes
    # Where a node writes to its inputs it matters who reads them before and who behind that.
    if (
        info["is_train"]
        or info["n_first"] < len(graph.heads)
        or info["ctx"].device_type not in DEVICES
        or info.get("contexts")
        or any(n.forward is not None for n in order)
        or any(n.op is not None and n.params._sig.mutates for n in order)
        or library() is None
    ):
        return graph
    fit = {id(n) for n in order if n.op is not None and _fits(graph, n)}
    fit -= _apart(graph, fit)
    if not any(n.op.name in ANCHORS for n in order if id(n) in fit):
        return graph
    while True:
        made: list[_Part] = []
        refused = False
        regions = _regions(order, fit, {id(n) for n, i in graph.heads if i})
        place = {id(n): r for r, nodes in enumerate(regions) for n in nodes}
        wanted = {e for n in order for e in n.inputs if place.get(id(n)) != place.get(id(e[0]))}.union(graph.heads)
        for nodes in regions:
            if len(nodes) < 2:
                continue
            part = _Part(graph, nodes, wanted)
            why: list[Refused] = []
            plan = part.region.plan(build, why)
            if plan is not None:
                part.op = operator(part.region, build, plan, [n.name for n in nodes])
                made.append(part)
            elif why and isinstance(why[0], Failed):
                fit.discard(id(nodes[why[0].layer]))
                refused = True
            # Else there is no memory for it now.
        if not refused:
            return _rebuilt(graph, order, made) if made else graph


def _fits(graph: Graph, n: Node) -> bool:
    """Whether a node may be in a region: by what it computes, on what, and by who reads its outputs."""
    entries = [*n.inputs, (n, 0)]
    if n.params._sig.random or not floats(graph, entries):
        return False
    shapes = [graph.shapes[e] for e in entries]
    if any(prod(shape) > MOST for shape in shapes):
        return False
    return takes(n.op.name, n.params, shapes[:-1], shapes[-1])


def _apart(graph: Graph, fit: Collection[int]) -> set[int]:
    """Nodes that have no place in a region, for want of the layer behind them that they would take in."""
    reads = Counter(e for n in graph.nodes for e in n.inputs)
    reads.update(graph.heads)
    taken = {
        n.inputs[0]
        for n in graph.nodes
        if id(n) in fit and BEFORE.get(getattr(n.inputs[0][0].op, "name", "")) == n.op.name and reads[n.inputs[0]] == 1
    }
    return {id(n) for n in graph.nodes if n.op is not None and n.op.name in BEFORE and (n, 0) not in taken}


def _regions(order: Sequence[Node], fit: set[int], hidden: set[int]) -> list[list[Node]]:
    """Convex sets of nodes, each in order.

    A region reads nothing that depends on one with a higher number, therefore no two depend on each other.
    """
    # Those of whose other outputs somebody reads one, or which are heads.
    further = hidden | {id(n) for m in order for n, i in m.inputs if i}
    place: dict[int, int] = {}
    #: Node -> the highest region that it depends on, or is in.
    above: dict[int, int] = {}
    found: list[list[Node]] = []
    for n in order:
        inputs = [m for m, _ in n.inputs]
        images = READS.get(n.op.name, len(inputs)) if n.op is not None else 0
        mine = None
        if id(n) in fit and id(n) not in further:
            near = sorted({place[id(m)] for m in inputs[:images] if id(m) in place}, reverse=True)
            for r in near:
                outside = [m for i, m in enumerate(inputs) if i >= images or place.get(id(m)) != r]
                if all(above[id(m)] < r for m in outside):
                    mine = r
                    break
            if mine is None and n.op.name in ANCHORS:
                mine = len(found)
                found.append([])
        above[id(n)] = max((above[id(m)] for m in inputs), default=-1)
        if mine is not None:
            place[id(n)] = above[id(n)] = mine
            found[mine].append(n)
    return found


class _Part:
    """The nodes of a region, and how it hangs together with the others."""

    op: Op

    def __init__(self, graph: Graph, nodes: Sequence[Node], wanted: Collection[Entry]) -> None:
        self.nodes = nodes
        inside = {id(n) for n in nodes}
        self.inputs: list[Entry] = list(dict.fromkeys(e for n in nodes for e in n.inputs if id(e[0]) not in inside))
        number: dict[Any, int] = {e: i for i, e in enumerate(self.inputs)}
        for n in nodes:
            number[n, 0] = len(number)
        self.outs: list[Entry] = [(n, 0) for n in nodes if (n, 0) in wanted]
        self.region = Region(
            [graph.shapes[e] for e in self.inputs],
            [Layer(n.op.name, n.params, tuple(number[e] for e in n.inputs)) for n in nodes],
            [graph.shapes[n, 0] for n in nodes],
            [number[e] for e in self.outs],
        )


def _rebuilt(graph: Graph, order: Sequence[Node], parts: Sequence[_Part]) -> Graph:
    """The graph with a node for each part; what is known of entries is inferred behind every late pass."""
    part_of = {id(n): part for part in parts for n in part.nodes}
    new: dict[Entry, Entry] = {}
    items: dict[int, Any] = {}  # in the order of their last nodes
    for n in order:
        item = part_of.get(id(n), n)
        items.pop(id(item), None)
        items[id(item)] = item
    for item in _sorted(items, part_of):
        if isinstance(item, _Part):
            last = item.nodes[-1]
            node = Node(item.op, item.op.parse({}), [new[e] for e in item.inputs], last.name)
            entries = item.outs
        else:
            inputs = tuple(new[e] for e in item.inputs)
            same = inputs == item.inputs
            node = item if same else Node(item.op, item.params, inputs, item.name, item.attrs)
            entries = [(item, i) for i in range(item.n_out)]
        new.update((e, (node, i)) for i, e in enumerate(entries))
    return Graph([new[e] for e in graph.heads])


def _sorted(items: dict[int, Any], part_of: dict[int, _Part]) -> Iterable[Any]:
    """Nodes and parts, each behind what it reads, else in their order."""
    number = {key: i for i, key in enumerate(items)}
    listed = [*items.values()]
    waits: list[set[int]] = []
    users: dict[int, list[int]] = defaultdict(list)
    for i, item in enumerate(listed):
        before = {number[id(part_of.get(id(m), m))] for m, _ in item.inputs}
        waits.append(before)
        for j in before:
            users[j].append(i)
    ready = [i for i, before in enumerate(waits) if not before]
    while ready:
        i = heapq.heappop(ready)
        yield listed[i]
        for j in users[i]:
            waits[j].discard(i)
            if not waits[j]:
                heapq.heappush(ready, j)
