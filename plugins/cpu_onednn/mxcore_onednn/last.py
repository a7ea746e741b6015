"""Convolutions over arrays with channels last, as operators of their own: their weights are those of channels first.

With windows of one place they are products of matrices as they lie, where those are no slower. What
another plugin's kernels for channels last compute faster is left to them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from mxcore.plugin import Call, Op, Params, compute, compute_without, find_op

from .calls import graph_operator, keeping, kept, run, shaped
from .convolution import Geometry, backward_plan, forward_plan
from .library import library
from .others import kernel_last, turned
from .products import Times
from .rules import left, multiplied, travels
from .standing import Standing

__all__ = ["BACKWARD", "FORWARD", "backward", "forward"]

#: The names of the operators.
FORWARD, BACKWARD = "_onednn_convolution", "_backward_onednn_convolution"

Shape = tuple[int, ...]


def forward(g: Geometry, biased: bool, p: Params) -> Op | None:
    """The operator of data (n, *size, c), a weight, and a bias if there is one; None if it is left to others.

    Parameters
    ----------
    g : Geometry
    biased : bool
    p : Params
        Of `Convolution`.
    """
    lib = library()
    if lib is None or not travels(lib.isa, "forward", g):
        return None

    plan = partial(forward_plan, g, biased)

    def body(k: Call, _: Params, *ins: Any) -> Any:
        return _last(compute("Convolution", k, p, *_first(ins, 1))[0])

    def bind(k: Call, _: Params, ins: Sequence[Any], outs: Sequence[Any]) -> Callable[[], None]:
        if multiplied(lib.isa, "forward", g):
            return partial(_product, g, ins, outs, Times(k, _matrices(g)[0], g.weight[:2], (False, True), g.dtype))
        others = kernel_last("Convolution", k, p, ins) if left(lib.isa, "forward", g) else None
        if others is not None:
            return lambda: others([outs[0]], *ins)

        def other() -> None:
            k.device.copy(body(k, p, *ins), outs[0])

        standing = Standing(plan, g.work) if k.keep is None else None

        def call() -> None:
            if standing is None or not standing.run((*ins, outs[0])):
                made = plan()
                run("Convolution", made, ins, outs, other, kept(k, made))

        return call

    if plan() is None:
        return None
    ins = [g.src, g.weight, *([g.dst[1:2]] if biased else [])]
    return _operator(FORWARD, "Convolution", p, keeping(body), bind, "data weight bias", ins, [g.dst], (1, 1))


def backward(g: Geometry, wanted: tuple[bool, bool, bool], p: Params) -> Op | None:
    """The operator of the gradient of the result, data and weight; its outputs are the wanted gradients alone."""
    lib = library()
    if lib is None or wanted[2] and not wanted[1]:
        return None
    data, weight = (want and travels(lib.isa, piece, g) for piece, want in zip(("data", "weight"), wanted))
    ours = data, weight, weight and wanted[2]
    if not any(ours):
        return None

    def body(k: Call, _: Params, *ins: Any) -> Any:
        found = compute("_backward_Convolution", k, p, *_first(ins, 2))
        found = [_last(a) if i == 0 else a for i, a in enumerate(found)]
        found = [a for a, want in zip(found, wanted) if want]
        return tuple(found) if len(found) > 1 else found[0]

    def others(k: Call, which: Sequence[bool], ins: Sequence[Any], places: Sequence[Any]) -> None:
        """These gradients by the best kernel for channels first."""
        image = None if places[0] is None or not which[0] else np.empty(g.src, places[0].dtype)
        outs = [image, *(o if want else None for o, want in zip(places[1:], which[1:]))]
        compute_without("cpu_onednn", "_backward_Convolution", k, p, outs[: 2 if p.no_bias else 3], *_first(ins, 2))
        if image is not None:
            k.device.copy(_last(image), places[0])

    def bind(k: Call, _: Params, ins: Sequence[Any], outs: Sequence[Any]) -> Callable[[], None]:
        rest = tuple(want and not mine for want, mine in zip(wanted, ours))
        pieces = data and left(lib.isa, "data", g), weight and left(lib.isa, "weight", g)
        better = kernel_last("_backward_Convolution", k, p, ins) if any(pieces) else None
        lent = (False, False, False) if better is None else (*pieces, pieces[1] and ours[2])
        own = ours[0] and not lent[0], ours[1] and not lent[1], ours[2] and not lent[2]
        plan = partial(backward_plan, g, own)
        standing, times = Standing(plan, g.work), None
        if any(multiplied(lib.isa, piece, g) for piece, mine in zip(("data", "weight"), own) if mine):
            read, written = _matrices(g)
            times = (
                Times(k, written, g.weight[:2], (False, False), g.dtype),
                Times(k, written, read, (True, False), g.dtype),
            )

        def call() -> None:
            given = iter(outs)  # looked up at every call: others may take their places
            places = [next(given) if want else None for want in wanted]
            if better is not None:
                better([o if theirs else None for o, theirs in zip(places, lent)], *ins)
            mine = [o for o, its in zip(places, own) if its]
            if times is not None:
                _products(g, ins, [o if its else None for o, its in zip(places, own)], *times)
            elif mine and not standing.run((*ins, *mine)):
                run("_backward_Convolution", plan(), ins, mine, lambda: others(k, own, ins, places))
            if any(rest):
                others(k, rest, ins, places)

        return call

    if backward_plan(g, ours) is None:
        return None
    ins = [g.dst, g.src, g.weight]
    outs = [shape for shape, want in zip((g.src, g.weight, g.dst[1:2]), wanted) if want]
    return _operator(BACKWARD, "_backward_Convolution", p, body, bind, "dy data weight", ins, outs, (2, int(wanted[0])))


def _first(arrays: Sequence[Any], images: int) -> list[Any]:
    return [np.ascontiguousarray(np.moveaxis(a, -1, 1)) if i < images else a for i, a in enumerate(arrays)]


def _last(a: Any) -> Any:
    return np.ascontiguousarray(np.moveaxis(a, 1, -1))


# -- products ----------------------------------------------------------------------------------------------------------
def _read(g: Geometry) -> tuple[slice, ...]:
    """The places of images that are read."""
    return slice(None), *(slice(None, None, s) for s in g.stride)


def _matrices(g: Geometry) -> tuple[tuple[int, int], tuple[int, int]]:
    """Shapes of the places that are read and of those that are written, one in each row."""
    lines = g.dst[0] * prod(g.dst[2:])
    return (lines, g.src[1]), (lines, g.dst[1])


def _rows(g: Geometry, data: Any) -> Any:
    """The places of the data that are read, one in each row."""
    return data[_read(g)].reshape(-1, g.src[1])


def _product(g: Geometry, ins: Sequence[Any], outs: Sequence[Any], times: Times) -> None:
    data, weight, *bias = ins
    with shaped(outs[0], (-1, g.dst[1])) as rows:
        times(_rows(g, data), weight.reshape(g.weight[:2]), rows)
        if bias:
            rows += bias[0]


def _products(g: Geometry, ins: Sequence[Any], places: Sequence[Any], to_data: Times, to_weight: Times) -> None:
    """The gradients that have a place."""
    dy, data, weight = ins
    given = dy.reshape(-1, g.dst[1])
    if places[0] is not None:
        _spread(g, given, weight.reshape(g.weight[:2]), places[0], to_data)
    if places[1] is not None:
        with shaped(places[1], g.weight[:2]) as place:
            to_weight(given, _rows(g, data), place)
    if places[2] is not None:
        np.sum(given, 0, out=places[2])


def _spread(g: Geometry, given: Any, weight: Any, out: Any, times: Times) -> None:
    """The gradient of the data: of places that are not read it is 0."""
    if all(s == 1 for s in g.stride):
        with shaped(out, (-1, g.src[1])) as rows:
            times(given, weight, rows)
        return
    found = np.empty((len(given), g.src[1]), given.dtype)
    times(given, weight, found)
    out[...] = 0
    out[_read(g)] = found.reshape(g.dst[0], *g.dst[2:], -1)


# -- operators ---------------------------------------------------------------------------------------------------------
def _operator(
    name: str,
    like: str,
    p: Params,
    body: Callable[..., Any],
    bind: Callable[..., Callable[[], None]],
    inputs: str,
    ins: Sequence[Shape],
    outs: Sequence[Shape],
    images: tuple[int, int],
) -> Op:
    """An operator that computes what another one does; so many of its inputs and of its results are images."""
    taken, given = ([turned(s) if i < n else s for i, s in enumerate(side)] for side, n in zip((ins, outs), images))
    flops = float(find_op(like).facet("flops", p, ins, outs, default=0))
    doc = f"`{like}` over arrays with channels last, by oneDNN."
    consists = [f"{like}, channels last"]
    op = graph_operator(name, body, bind, inputs.split()[: len(ins)], (taken, given), flops, doc, consists)
    work = flops + sum(map(prod, outs))
    op.cost(lambda p, ins, outs: work)
    return op
