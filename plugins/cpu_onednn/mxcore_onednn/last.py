"""Convolutions over arrays with channels last, as operators of their own: their weights are those of channels first.

With windows of one place they are products of matrices as they lie, which BLAS computes where it is no slower.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from mxcore.plugin import Call, Op, Params, compute, find_op

from . import convolution as conv
from .calls import run, shaped
from .convolution import Geometry
from .library import library
from .plan import Plan, plan_for
from .rules import multiplied

__all__ = ["BACKWARD", "FORWARD", "backward", "forward"]

#: The names of the operators. No call of them by name is possible: what they compute is in no parameter.
FORWARD, BACKWARD = "_onednn_convolution", "_backward_onednn_convolution"

Shape = tuple[int, ...]


def forward(g: Geometry, biased: bool, p: Params) -> Op | None:
    """The operator of data (n, *size, c), a weight, and a bias if there is one; None if the library does not compute it.

    Parameters
    ----------
    g : Geometry
    biased : bool
    p : Params
        Of `Convolution`.
    """

    def plan() -> Plan | None:
        return plan_for(("convolution", g, biased), lambda lib: conv.forward(lib, g, biased), g.work)

    def body(k: Call, _: Params, *ins: Any) -> Any:
        return _last(compute("Convolution", k, p, *_first(ins, 1))[0])

    ins = [g.src, g.weight, *([g.dst[1:2]] if biased else [])]
    product = partial(_product, g) if _multiplies(g) else None
    return _operator(FORWARD, "Convolution", p, body, product or plan, "data weight bias", ins, [g.dst], 1)


def backward(g: Geometry, wanted: tuple[bool, bool, bool], p: Params) -> Op | None:
    """The operator of the gradient of the result, data and weight; its outputs are the wanted gradients alone."""

    def plan() -> Plan | None:
        return plan_for(("gradient of convolution", g, wanted), lambda lib: conv.backward(lib, g, wanted), g.work)

    def body(k: Call, _: Params, *ins: Any) -> Any:
        found = compute("_backward_Convolution", k, p, *_first(ins, 2))
        found = [_last(a) if i == 0 else a for i, a in enumerate(found)]
        found = [a for a, want in zip(found, wanted) if want]
        return tuple(found) if len(found) > 1 else found[0]

    ins = [g.dst, g.src, g.weight]
    outs = [shape for shape, want in zip((g.src, g.weight, g.dst[1:2]), wanted) if want]
    product = partial(_products, g, wanted) if _multiplies(g) else None
    names = "dy data weight"
    return _operator(BACKWARD, "_backward_Convolution", p, body, product or plan, names, ins, outs, wanted[0])


def _first(arrays: Sequence[Any], images: int) -> list[Any]:
    return [np.ascontiguousarray(np.moveaxis(a, -1, 1)) if i < images else a for i, a in enumerate(arrays)]


def _last(a: Any) -> Any:
    return np.ascontiguousarray(np.moveaxis(a, 1, -1))


# -- products ----------------------------------------------------------------------------------------------------------
def _multiplies(g: Geometry) -> bool:
    lib = library()
    return lib is not None and prod(g.weight[2:]) == 1 and g.groups == 1 and not any(g.pad) and multiplied(lib.isa)


def _rows(g: Geometry, data: Any) -> Any:
    """The places of the data that are read, one in each row."""
    return data[(slice(None), *(slice(None, None, s) for s in g.stride))].reshape(-1, g.src[1])


def _product(g: Geometry, ins: Sequence[Any], outs: Sequence[Any]) -> None:
    data, weight, *bias = ins
    with shaped(outs[0], (-1, g.dst[1])) as rows:
        np.matmul(_rows(g, data), weight.reshape(g.weight[:2]).T, out=rows)
        if bias:
            rows += bias[0]


def _products(g: Geometry, wanted: tuple[bool, bool, bool], ins: Sequence[Any], outs: Sequence[Any]) -> None:
    dy, data, weight = ins
    given, places = dy.reshape(-1, g.dst[1]), iter(outs)
    if wanted[0]:
        _spread(g, given, weight.reshape(g.weight[:2]), next(places))
    if wanted[1]:
        with shaped(next(places), g.weight[:2]) as place:
            np.matmul(given.T, _rows(g, data), out=place)
    if wanted[2]:
        np.sum(given, 0, out=next(places))


def _spread(g: Geometry, given: Any, weight: Any, out: Any) -> None:
    """The gradient of the data: of places that are not read it is 0."""
    if all(s == 1 for s in g.stride):
        with shaped(out, (-1, g.src[1])) as rows:
            np.matmul(given, weight, out=rows)
        return
    out[...] = 0
    found = np.matmul(given, weight).reshape(g.dst[0], *g.dst[2:], -1)
    out[(slice(None), *(slice(None, None, s) for s in g.stride))] = found


# -- operators ---------------------------------------------------------------------------------------------------------
def _operator(
    name: str,
    like: str,
    p: Params,
    body: Callable[..., Any],
    way: Callable[..., Any],
    names: str,
    ins: Sequence[Shape],
    outs: Sequence[Shape],
    images: int,
) -> Op | None:
    """An operator that computes what another one does; so many of its results are images.

    In programs it does so `way`: a function that gives a plan, or one of inputs and outputs.
    """
    planned = not isinstance(way, partial)
    if planned and way() is None:
        return None
    op = Op(
        name,
        body,
        inputs=" ".join(names.split()[: len(ins)]),
        outputs=" ".join(f"o{i}" for i in range(len(outs))),
        grad=None,
        doc=f"`{like}` over arrays with channels last, by {'oneDNN' if planned else 'BLAS'}.",
    )
    shapes = [_turned(shape) if i < images else shape for i, shape in enumerate(outs)]
    op.shape(lambda p, ins: shapes)
    flops = float(find_op(like).facet("flops", p, ins, outs, default=0))
    work = flops + sum(map(prod, outs))
    op.cost(lambda p, ins, outs: work)
    op.attach(flops=lambda p, ins, outs: flops)

    def bind(k: Call, p: Params, ins: Sequence[Any], outs: Sequence[Any]) -> Callable[[], None]:
        def other() -> None:
            found = body(k, p, *ins)
            for out, value in zip(outs, found if isinstance(found, tuple) else [found]):
                k.device.copy(value, out)

        return (lambda: run(name, way(), ins, outs, other)) if planned else partial(way, ins, outs)

    op.bind, op.owner = bind, "cpu_onednn"  # type: ignore[attr-defined]
    return op


def _turned(shape: Shape) -> Shape:
    return (shape[0], *shape[2:], shape[1])
