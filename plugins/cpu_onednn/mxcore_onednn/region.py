"""Neighbouring layers of a graph as one operator: one plan, inside which images stay in the library's layouts."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from math import prod
from time import perf_counter
from typing import Any, NamedTuple

from mxcore.plugin import Call, Op, Params, Piece, compute, find_op

from .calls import graph_operator, kept, run
from .library import Library, Refused
from .plan import Plan
from .plans import plan_for
from .rooms import MUCH, LargeRoom

__all__ = ["Failed", "Layer", "Region", "operator"]

#: The operator that a region is.
NAME = "_onednn_layers"

Shape = tuple[int, ...]


class Failed(Refused):
    """The library does not compute a layer.

    Attributes
    ----------
    layer : int
        Its number in the region.
    """

    def __init__(self, layer: int, why: object) -> None:
        super().__init__(str(why))
        self.layer = layer


class Layer(NamedTuple):
    """One operator of a region.

    Attributes
    ----------
    op : str
    p : Params
    reads : tuple of int
        Its inputs, by their numbers: first come the inputs of the region, then the results of its layers.
    """

    op: str
    p: Params
    reads: tuple[int, ...]

    @property
    def what(self) -> str:
        """The operator, or which of its functions."""
        return str(getattr(self.p, "act_type", self.op))

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for layers that compute the same."""
        changing = sorted(find_op(self.op).parser.dynamic)
        return self.op, self.p._key, tuple(getattr(self.p, n) for n in changing), self.reads


class _Key:
    """A long tuple that is hashed once."""

    __slots__ = ("value", "hash")

    def __init__(self, value: tuple[Any, ...]) -> None:
        self.value, self.hash = value, hash(value)

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return self is other or isinstance(other, _Key) and self.hash == other.hash and self.value == other.value


class Region:
    """Layers in their order.

    Parameters
    ----------
    inputs : sequence of shapes
    layers : sequence of Layer
        Each of one result.
    shapes : sequence of shapes
        Of their results.
    outs : sequence of int
        Numbers of the values that others read.
    """

    def __init__(
        self, inputs: Sequence[Shape], layers: Sequence[Layer], shapes: Sequence[Shape], outs: Sequence[int]
    ) -> None:
        self.inputs, self.layers, self.outs = tuple(inputs), tuple(layers), tuple(outs)
        #: Of all values.
        self.shapes = (*inputs, *shapes)

    @cached_property
    def key(self) -> _Key:
        """Equal for regions that compute the same."""
        return _Key((self.inputs, tuple(layer.key for layer in self.layers), self.outs))

    @property
    def reads(self) -> Counter[int]:
        """How often each value is read, by layers and by others."""
        return Counter([*(v for layer in self.layers for v in layer.reads), *self.outs])

    def number(self, layer: int) -> int:
        """The number of a layer's result."""
        return len(self.inputs) + layer

    def plan(self, build: Callable[[Library, Region], Plan], refused: list[Refused] | None = None) -> Plan | None:
        """The plan, made once for each number of threads; where it cannot be made, `refused` gets the reason."""
        return plan_for(("layers", self.key), lambda lib: build(lib, self), self.work, refused)

    @cached_property
    def work(self) -> float:
        """About as many multiplications as it takes, for what decides over threads."""
        return float(sum(map(prod, self.shapes)) * 16)

    def compute(self, k: Call, arrays: Sequence[Any]) -> list[Any]:
        """Layer by layer, by the best kernels; what nobody reads any more is let go."""
        values, left = dict(enumerate(arrays)), self.reads
        for i, layer in enumerate(self.layers):
            values[self.number(i)] = compute(layer.op, k, layer.p, *[values[v] for v in layer.reads])[0]
            left.subtract(layer.reads)
            for v in {*layer.reads, self.number(i)}:
                if not left[v]:
                    del values[v]
        return [values[v] for v in self.outs]


def operator(region: Region, build: Callable[[Library, Region], Plan], plan: Plan, names: Sequence[str]) -> Op:
    """The operator that computes a region: its body layer by layer, in programs by the library, as by `plan`.

    Parameters
    ----------
    region : Region
    build : callable
    plan : Plan
    names : sequence of str
        Of the nodes that the layers were.
    """

    def body(k: Call, p: Params, *arrays: Any) -> Any:
        found = region.compute(k, arrays)
        return tuple(found) if len(found) > 1 else found[0]

    body.keeps = True  # type: ignore[attr-defined]

    def bind(k: Call, p: Params, ins: Sequence[Any], outs: Sequence[Any]) -> Callable[[], None]:
        room = LargeRoom()

        def other() -> None:
            for out, value in zip(outs, region.compute(k, ins)):
                k.device.copy(value, out)

        def call() -> None:
            plan = region.plan(build)
            run(NAME, plan, ins, outs, other, kept(k, plan), room)

        return call

    flops = sum(_flops(region, i) for i in range(len(region.layers)))
    work = flops + sum(prod(region.shapes[region.number(i)]) for i in range(len(region.layers)))
    op = graph_operator(
        NAME,
        body,
        bind,
        [f"a{i}" for i in range(len(region.inputs))],
        (region.inputs, [region.shapes[v] for v in region.outs]),
        flops,
        f"{', '.join(layer.op for layer in region.layers)}: {len(region.layers)} layers at once, by oneDNN.",
        [layer.what for layer in region.layers],
    )
    op.cost(lambda p, ins, outs: work)
    # Much of it goes with the program, else it is the thread's, for all its plans.
    op.nbytes, op.scratch = (plan.scratch, 0) if plan.scratch >= MUCH else (0, plan.scratch)  # type: ignore[attr-defined]
    op.pieces = partial(pieces, region, build, names)  # type: ignore[attr-defined]
    return op


def pieces(
    region: Region, build: Callable[[Library, Region], Plan], names: Sequence[str], call: Callable[[], object]
) -> list[Piece]:
    """Run the call of a region; what is computed together in it, in its order, and how long that took.

    Where the library does not compute it there are no pieces.
    """
    plan, took = region.plan(build), [0.0]
    starts, ends = ([], 0) if plan is None else ([first for first, _, _ in plan.groups], plan.ends)
    last = perf_counter()

    def tick(step: int) -> None:
        nonlocal last
        last, before = perf_counter(), last
        place = bisect_right(starts, step) if step < ends else 0
        took[place] += last - before

    if plan is None:
        call()
        return []
    took += [0.0] * len(starts)
    plan.tick = tick
    try:
        call()
    finally:
        plan.tick = None
    return [_piece(region, names, *group[1:], seconds) for group, seconds in zip(plan.groups, took[1:])]


def _piece(region: Region, names: Sequence[str], layers: Sequence[int], owner: str, seconds: float) -> Piece:
    inside = {region.number(i) for i in layers}
    reads = [v for i in layers for v in region.layers[i].reads if v not in inside]
    size = 4 * sum(prod(region.shapes[v]) for v in (*reads, region.number(layers[-1])))
    flops = sum(_flops(region, i) for i in layers)
    what = tuple(region.layers[i].what for i in layers)
    return Piece(what, names[layers[0]], owner, seconds, flops, size, tuple(region.shapes[v] for v in reads))


def _flops(region: Region, i: int) -> float:
    """Operations of a layer's products."""
    layer = region.layers[i]
    ins, outs = [region.shapes[v] for v in layer.reads], [region.shapes[region.number(i)]]
    return float(find_op(layer.op).facet("flops", layer.p, ins, outs, default=0))
