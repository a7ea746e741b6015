"""Products of matrices, one or many, and fully connected layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from mxcore.plugin import Call, Params, Spec, compute_without, find_op

from .calls import PRIORITY, alike, binding, keeping, kept, kernels, otherwise, run, shaped
from .descs import BIAS, DST, SRC, WEIGHTS, Desc
from .library import Library, library
from .plan import Plan
from .plans import plan_for
from .rules import multiplies, worth
from .standing import Standing

__all__ = ["Times", "product"]

Shape = tuple[int, ...]


def product(
    lib: Library,
    lhs: Shape,
    rhs: Shape,
    turned: tuple[bool, bool],
    dtype: str = "float32",
    biased: bool = False,
    kept: bool = False,
) -> Plan:
    """Of two arrays of one rank, the last two axes of either `turned`, and a bias for the columns, to their products.

    Where the second one is `kept` it gets the layout that the library likes best, else it stays as it is.
    """
    first = range(len(lhs) - 2)
    other_way = (*first, len(lhs) - 1, len(lhs) - 2)
    a, b = (Desc.dense(lib, s, dtype, other_way if t else None) for s, t in zip((lhs, rhs), turned))
    out = _result(lhs, rhs, turned)
    bias = [Desc.dense(lib, out[-1:], dtype)] if biased else []
    plan = Plan(lib, [a, b, *bias, Desc.dense(lib, out, dtype)], (1,) if kept else ())
    liked = Desc.any(lib, [rhs[i] for i in other_way] if turned[1] else rhs, dtype) if kept else b
    row = Desc.dense(lib, (*[1] * (len(out) - 1), out[-1]), dtype) if biased else None
    made = lib.new(
        "matmul_primitive_desc_create",
        *(lib.engine, a.handle, liked.handle, row and row.handle, plan.arrays[-1].desc.handle, lib.attr),
    )
    plan.add(made, {SRC: 0, WEIGHTS: 1, **({BIAS: 2} if biased else {}), DST: len(plan.arrays) - 1})
    return plan.done()


def _result(lhs: Shape, rhs: Shape, turned: tuple[bool, bool]) -> Shape:
    return *lhs[:-2], lhs[-1 if turned[0] else -2], rhs[-2 if turned[1] else -1]


def _plan(
    lhs: Shape, rhs: Shape, turned: tuple[bool, bool], dtype: str = "float32", biased: bool = False, kept: bool = False
) -> Plan | None:
    key = lhs, rhs, turned, dtype, biased, kept
    return plan_for(("products", *key), lambda lib: product(lib, *key), prod(lhs) * _result(lhs, rhs, turned)[-1])


def _pays(dtype: str, lhs: Shape, rhs: Shape, turned: tuple[bool, bool]) -> bool:
    lib, (rows, columns) = library(), _result(lhs, rhs, turned)
    inner = lhs[-2 if turned[0] else -1]
    return lib is not None and multiplies(lib.isa, dtype, rows, columns, inner)


#: Sums of fewer products.
_SHORT = 100


class Times:
    """A product of two matrices for a step of a program, by the threads that compute all else.

    NumPy's has threads of its own, which spin for some 30 ms behind each and keep the cores from those.

    Parameters
    ----------
    k : Call
    lhs, rhs : tuple of int
        Shapes.
    turned : pair of bool
        Which of them are transposed.
    dtype : str
    """

    def __init__(self, k: Call, lhs: Shape, rhs: Shape, turned: tuple[bool, bool], dtype: str) -> None:
        #: The library is slow at transposing the first one, which is small where the sums are short.
        self._first = turned[0] and lhs[0] < _SHORT
        if self._first:
            lhs, turned = lhs[::-1], (False, turned[1])
        self._k, self._p = k, find_op("dot").parse({"transpose_a": turned[0], "transpose_b": turned[1]})
        self._standing = None
        if _pays(dtype, lhs, rhs, turned):
            self._standing = Standing(partial(_plan, lhs, rhs, turned, dtype), prod(lhs) * _result(lhs, rhs, turned)[1])

    def __call__(self, lhs: Any, rhs: Any, out: Any) -> None:
        """Write the product."""
        if self._first:
            lhs = np.ascontiguousarray(lhs.T)
        if self._standing is None or not self._standing.run((lhs, rhs, out)):
            compute_without("cpu_onednn", "dot", self._k, self._p, [out], lhs, rhs)


# -- many of them ---------------------------------------------------------------------------------------------------
def _many(p: Params, lhs: Spec, rhs: Spec) -> bool:
    dtype, lib, turned = alike(lhs, rhs), library(), (p.transpose_a, p.transpose_b)
    if lib is None or not dtype or not lhs.ndim == rhs.ndim == 3 or lhs.shape[0] < 2:
        return False
    work = prod(lhs.shape[1:]) * _result(lhs.shape, rhs.shape, turned)[-1]
    return worth(lib.isa, dtype, lhs.shape[0], work) and _plan(lhs.shape, rhs.shape, turned, dtype) is not None


@kernels.kernel("batch_dot", when=_many, priority=PRIORITY, out=True)
def _batch_dot(k: Call, p: Params, outs: Sequence[Any], lhs: Any, rhs: Any) -> None:
    plan = _plan(lhs.shape, rhs.shape, (p.transpose_a, p.transpose_b), lhs.dtype.name)
    run("batch_dot", plan, [lhs, rhs], outs[:1], otherwise("batch_dot", k, p, outs, lhs, rhs))


# -- one ------------------------------------------------------------------------------------------------------------
def _multiplies(p: Params, lhs: Spec, rhs: Spec) -> bool:
    dtype, turned = alike(lhs, rhs), (p.transpose_a, p.transpose_b)
    if not dtype or not lhs.ndim == rhs.ndim == 2:
        return False
    return _pays(dtype, lhs.shape, rhs.shape, turned) and _plan(lhs.shape, rhs.shape, turned, dtype) is not None


@kernels.kernel("dot", when=_multiplies, priority=PRIORITY, out=True)
def _dot(k: Call, p: Params, outs: Sequence[Any], lhs: Any, rhs: Any) -> None:
    plan = _plan(lhs.shape, rhs.shape, (p.transpose_a, p.transpose_b), lhs.dtype.name)
    run("dot", plan, [lhs, rhs], outs[:1], otherwise("dot", k, p, outs, lhs, rhs))


# -- fully connected layers: data (rows, inputs), weight (outputs, inputs) -------------------------------------------
_FORWARD, _TO_DATA, _TO_WEIGHT = (False, True), (False, False), (True, False)


def _rows(data: Any, weight: Any) -> Shape:
    return prod(data.shape) // weight.shape[1], weight.shape[1]


def _connects(p: Params, data: Spec, weight: Spec, *bias: Spec) -> bool:
    dtype = alike(data, weight, *bias)
    if not dtype:
        return False
    rows = _rows(data, weight)
    if not _pays(dtype, rows, weight.shape, _FORWARD):
        return False
    return _plan(rows, weight.shape, _FORWARD, dtype, bool(bias)) is not None


def _connecting(k: Call, p: Params, ins: Sequence[Any], outs: Sequence[Any]) -> Callable[[], None]:
    """A step of a program, whose weights may stay as they are."""
    data, weight, *bias = ins
    rows, shape, how = _rows(data, weight), weight.shape, (data.dtype.name, bool(bias))
    plain, liked = (
        Standing(partial(_plan, rows, shape, _FORWARD, *how, kept), prod(rows) * shape[0]) for kept in (False, True)
    )

    def call() -> None:
        arrays = *ins, outs[0]
        steady = k.keep is not None and k.keep.stamp(1) is not None  # as in `_fully_connected`, for the same bits
        if not (liked.run(arrays, k) if steady else plain.run(arrays)):
            _fully_connected(k, p, [*outs], *ins)

    return call


@kernels.kernel("FullyConnected", when=_connects, priority=PRIORITY, out=True)
@binding(_connecting)
@keeping
def _fully_connected(k: Call, p: Params, outs: Sequence[Any], *ins: Any) -> None:
    data, weight, *bias = ins
    rows, how = _rows(data, weight), (data.dtype.name, bool(bias))
    plan, held = _plan(rows, weight.shape, _FORWARD, *how), None
    if k.keep is not None and k.keep.stamp(1) is not None:  # from the first call on, so that all have the same bits
        liked = _plan(rows, weight.shape, _FORWARD, *how, True)
        held = kept(k, liked)
        plan = liked or plan
    other = otherwise("FullyConnected", k, p, outs, *ins)
    _into(outs[0], (rows[0], weight.shape[0]), "FullyConnected", plan, [data.reshape(rows), weight, *bias], other, held)


def _into(out: Any, shape: Shape, name: str, plan: Plan | None, ins: Sequence[Any], other: Any, held: Any) -> None:
    """Run a plan into an output of another shape."""
    with shaped(out, shape) as place:

        def instead() -> None:
            other()
            place[...] = out.reshape(shape)  # no copy where the place is the output

        run(name, plan, ins, [place], instead, held)


def _differentiates(p: Params, dy: Spec, data: Spec, weight: Spec) -> bool:
    dtype = alike(dy, data, weight)
    if not dtype:
        return False
    rows = _rows(data, weight)
    out = rows[0], weight.shape[0]
    return _pays(dtype, out, weight.shape, _TO_DATA) and _pays(dtype, out, rows, _TO_WEIGHT)


#: Of more rows the gradient of a bias is summed up more carefully.
_FEW = 4096


def _added_up(dy: Any, out: Any) -> None:
    """The gradient of a bias, of bfloat16, whose body would compute the other gradients as well."""
    parts = [np.add.reduce(dy[i : i + _FEW], axis=0, dtype=np.float32) for i in range(0, len(dy), _FEW)]
    out[...] = np.add.reduce(parts, axis=0)


def _differentiating(k: Call, p: Params, ins: Sequence[Any], outs: Sequence[Any]) -> Callable[[], None]:
    dy, data, weight = ins
    dtype, rows, shape = data.dtype.name, _rows(data, weight), weight.shape
    out = rows[0], shape[0]
    work = prod(rows) * shape[0]
    to_data = Standing(lambda: _plan(out, shape, _TO_DATA, dtype), work)
    to_weight = Standing(lambda: _plan(out, rows, _TO_WEIGHT, dtype), work)
    summed = dtype == "float32" and rows[0] <= _FEW  # else `_backward` does it

    def call() -> None:
        dy, data, weight = ins
        left: list[Any] = [*outs]
        if left[0] is not None and to_data.run((dy, weight, left[0])):
            left[0] = None
        if left[1] is not None and to_weight.run((dy, data, left[1])):
            left[1] = None
        if summed and len(left) > 2 and left[2] is not None:
            np.add.reduce(dy.reshape(out), axis=0, out=left[2])
            left[2] = None
        if any(o is not None for o in left):
            _backward(k, p, left, *ins)

    return call


@kernels.kernel("_backward_FullyConnected", when=_differentiates, priority=PRIORITY, out=True)
@binding(_differentiating)
def _backward(k: Call, p: Params, outs: Sequence[Any], dy: Any, data: Any, weight: Any) -> None:
    name, dtype, rows = "_backward_FullyConnected", data.dtype.name, _rows(data, weight)
    out = rows[0], weight.shape[0]
    places = [*outs, None][:3]
    dy_rows = dy.reshape(out)
    for i, (lhs, rhs, turned) in enumerate(((dy_rows, weight, _TO_DATA), (dy_rows, data.reshape(rows), _TO_WEIGHT))):
        if places[i] is not None:
            left = [o if j == i else None for j, o in enumerate(outs)]
            plan = _plan(lhs.shape, rhs.shape, turned, dtype)
            shape = _result(lhs.shape, rhs.shape, turned)
            _into(places[i], shape, name, plan, [lhs, rhs], otherwise(name, k, p, left, dy, data, weight), None)
    if places[2] is not None and dtype == "bfloat16":
        _added_up(dy_rows, places[2])
    elif places[2] is not None:
        otherwise(name, k, p, [None, None, places[2]], dy, data, weight)()
