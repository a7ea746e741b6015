"""Norms of vectors and matrices, as ``mx.np.linalg.norm`` has them, and their gradients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool, Float, Int, Shape
from ...typing import Array, Call, Operators
from ..common.bodies import silent, wide
from ..common.gradients import given, summed
from ..common.rules import axis_of

__all__: list[str] = []

#: Parameters as in MXNet. `flag`: -2 the root of the sum of all squares, 1 the same over axes, -1 what `ord` says of
#: vectors or matrices, 0 the largest or least singular value, 2 the sum of them.
_PARAMS = {"ord": Float(2.0), "axis": Shape(None), "keepdims": Bool(False), "flag": Int(-1)}
_ROOT_OF_SQUARES, _SPECTRAL, _NUCLEAR = (-2, 1), 0, 2


def _axes(p: Params, ndim: int) -> tuple[int, ...]:
    """The axes that vectors or matrices lie in, in order: rows first."""
    if p.flag == -2:
        return tuple(range(ndim))
    # Without axes, MXNet takes the norm of the matrices in the last two dimensions, or of the vector.
    axes = p.axis if p.axis is not None else tuple(range(-min(ndim, 2), 0))
    found = tuple([axis_of(a, ndim) for a in axes])
    if len(set(found)) != len(found):
        raise ValueError(f"axis {axes} names one axis twice")
    if p.flag not in _ROOT_OF_SQUARES:
        if len(found) not in (1, 2) or len(found) != 2 and p.flag in (_SPECTRAL, _NUCLEAR):
            raise ValueError(f"axis {axes}: a norm of vectors is taken over one axis, of matrices over two")
        if len(found) == 2 and p.flag == -1 and abs(p.ord) not in (1, 2, math.inf):
            raise ValueError(f"ord {p.ord} is no norm of matrices: 'fro', 'nuc', 1, -1, 2, -2, inf and -inf are")
    return found


def _kind(p: Params, axes: tuple[int, ...]) -> str:
    """'squares', 'power', 'most', 'count', 'sums' or 'singular': how the norm is computed."""
    if p.flag in _ROOT_OF_SQUARES:
        return "squares"
    if len(axes) == 2:
        return "singular" if p.flag in (_SPECTRAL, _NUCLEAR) or abs(p.ord) == 2 else "sums"
    return "squares" if p.ord == 2 else "count" if p.ord == 0 else "most" if math.isinf(p.ord) else "power"


def _extreme(p: Params, x: Any, axis: Any, keepdims: bool) -> Any:
    return (x.max if p.ord > 0 else x.min)(axis, keepdims=keepdims)


def _last(xp: Any, x: Any, axes: tuple[int, ...]) -> Any:
    """Matrices in the last two dimensions."""
    return xp.moveaxis(x, axes, (-2, -1))


def _computed(k: Call, p: Params, x: Any, axes: tuple[int, ...]) -> Any:
    """The norm, with dimensions of one where the axes were."""
    xp, kind = k.xp, _kind(p, axes)
    if kind == "squares":
        if not k.device.async_:  # a look at the values would stop a queue
            found = xp.sqrt(xp.square(x).sum(axes, keepdims=True))
            if ((found > 1e-16) & (found < math.inf)).all().item():
                return found
        most = xp.abs(x).max(axes, keepdims=True) if x.size else x.sum(axes, keepdims=True)
        scale = xp.where((most > 0) & (most < math.inf), most, xp.ones_like(most))  # squares must not overflow
        return xp.sqrt(xp.square(x / scale).sum(axes, keepdims=True)) * scale
    size = xp.abs(x)
    if kind == "count":
        return (x != 0).sum(axes, keepdims=True).astype(x.dtype)
    if kind == "power":
        return xp.power(xp.power(size, p.ord).sum(axes, keepdims=True), 1 / p.ord)
    if kind == "most":
        return _extreme(p, size, axes, True)
    if kind == "sums":
        rows, columns = axes if abs(p.ord) == 1 else axes[::-1]
        return _extreme(p, size.sum(rows, keepdims=True), columns, True)
    s = xp.linalg.svd(_last(xp, x, axes), full_matrices=False)[1]
    found = s.sum(-1) if p.flag == _NUCLEAR else s.max(-1) if p.ord > 0 else s.min(-1)
    return found.reshape([1 if i in axes else d for i, d in enumerate(x.shape)])


def _shape(p: Params, ins: list[Any]) -> list[Any]:
    axes = _axes(p, len(ins[0]))
    if p.keepdims:
        return [tuple([1 if i in axes else d for i, d in enumerate(ins[0])])]
    return [tuple([d for i, d in enumerate(ins[0]) if i not in axes])]


def _floats(x: Any) -> Any:
    return x.astype(np.float64) if x.dtype.kind in "iub" else wide(x)


def _norm_grad(F: Operators, p: Params, dy: Any, data: Any, y: Any) -> Any:
    if p.flag not in (_SPECTRAL, _NUCLEAR):
        return F._norm_back(dy, data, y, **given(p, _PARAMS))
    u, s, v = F._npi_svd(F._matrices_last(data, axis=p.axis))
    if p.flag == _SPECTRAL:  # equal shares where several are the largest
        there = F.broadcast_equal(s, (F.max if p.ord > 0 else F.min)(s, axis=-1, keepdims=True))
        shares = F.broadcast_div(there, F.sum(there, axis=-1, keepdims=True))
        u = F.broadcast_mul(u, F.expand_dims(shares, axis=-2))
    slopes = F._matrices_last(F._linalg_gemm2(u, v), axis=p.axis, back=True)
    return slopes * F._spread(dy, data, axis=p.axis or (-2, -1))


@op(
    "_matrices_last",
    inputs="data",
    axis=Shape(None),
    back=Bool(False),
    grad=lambda F, p, dy: F._matrices_last(dy, axis=p.axis, back=not p.back),
)
def matrices_last(k: Call, p: Params, data: Array) -> Array:
    """The axes of matrices moved to the end, or from there.

    Parameters
    ----------
    data : array
    axis : tuple of int, optional
        Two axes; the last two unless told.
    back : bool
        Move the last two axes to these places.
    """
    return data.transpose(_moved(p, data.ndim)).copy()


def _moved(p: Params, ndim: int) -> tuple[int, ...]:
    last = tuple([axis_of(a, ndim) for a in p.axis or (-2, -1)])
    order = (*(i for i in range(ndim) if i not in last), *last)
    return tuple([order.index(i) for i in range(ndim)]) if p.back else order


matrices_last.shape(lambda p, ins: [tuple([ins[0][i] for i in _moved(p, len(ins[0]))])])


@op(
    "_npi_norm",
    inputs="data",
    labels="numbers",
    mxnet_outputs=4,
    params=_PARAMS,
    grad=lambda F, p, dy, data, y: _norm_grad(F, p, dy, data, y),
)
@silent
def norm(k: Call, p: Params, data: Array) -> Array:
    """Norms of vectors or matrices.

    Parameters
    ----------
    data : array
    ord : float
        Which norm, where `flag` is -1: of vectors any number, of matrices 1, -1, 2, -2, inf or -inf.
    axis : tuple of int, optional
        The axis of the vectors, the two of the matrices; the last two, or the only one, unless told.
    keepdims : bool
        Keep these axes, with length 1.
    flag : int
        -2: the root of the sum of squares of all elements; 1: of those along the axes; -1: what `ord` says; 0: the
        largest singular value, or the least one if `ord` is negative; 2: the sum of the singular values.
    """
    x = _floats(data)
    found = _computed(k, p, x, _axes(p, x.ndim))
    return found.reshape(_shape(p, [tuple(x.shape)])[0])


norm.shape(_shape)


@norm.dtype
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    t = ins[0] if ins[0] is not None else outs[0]
    return [t], [np.dtype("float64") if t is not None and t.kind in "iub" else t]


def _slopes(xp: Any, p: Params, x: Any, y: Any, axes: tuple[int, ...]) -> Any:
    """The derivative of the norm by each element; 0 where it has none, equal shares where several are the largest."""
    kind, size = _kind(p, axes), xp.abs(x)
    none = xp.zeros_like(x)
    if kind == "count":
        return none
    if kind == "squares":
        return xp.where(y > 0, x / xp.where(y > 0, y, xp.ones_like(y)), none)
    if kind == "power":
        fine = (size > 0) & (y > 0)
        ratio = xp.where(fine, size, xp.ones_like(x)) / xp.where(y > 0, y, xp.ones_like(y))
        return xp.where(fine, xp.sign(x) * xp.power(ratio, p.ord - 1), none)
    if kind == "most":
        there = (size == y).astype(x.dtype)
        return xp.sign(x) * there / there.sum(axes, keepdims=True)
    if kind == "sums":
        rows, columns = axes if abs(p.ord) == 1 else axes[::-1]
        there = (size.sum(rows, keepdims=True) == y).astype(x.dtype)
        return xp.sign(x) * there / there.sum(columns, keepdims=True)
    u, s, v = xp.linalg.svd(_last(xp, x, axes), full_matrices=False)
    if p.flag != _NUCLEAR:
        there = (s == (s.max if p.ord > 0 else s.min)(-1, keepdims=True)).astype(s.dtype)
        u = u * (there / there.sum(-1, keepdims=True))[..., None, :]
    return xp.moveaxis(xp.matmul(u, v), (-2, -1), axes)


@op("_norm_back", inputs="dy data y", params=_PARAMS)
@silent
def norm_back(k: Call, p: Params, dy: Array, data: Array, y: Array) -> Array:
    """The gradient of `norm`.

    Parameters
    ----------
    dy : array
        Gradient of the norms.
    data : array
    y : array
        The norms.
    ord, axis, keepdims, flag
        As there.
    """
    x = _floats(data)
    axes = _axes(p, x.ndim)
    kept = [1 if i in axes else d for i, d in enumerate(x.shape)]
    # A norm in half precision was rounded: which elements are the largest is asked of the unrounded one.
    exact = y.reshape(kept) if x.dtype == y.dtype else _computed(k, p, x, axes)
    return _slopes(k.xp, p, x, exact, axes) * dy.reshape(kept).astype(x.dtype)


@norm_back.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    want = _shape(p, ins[1:])[0]
    for name, s in zip(("dy", "y"), (ins[0], ins[2])):
        if tuple(s) != want:
            raise ValueError(f"{name} {s} must have the shape of the norms, {want}")
    return [ins[1]]


norm_back.dtype(lambda p, ins, outs: (ins, [ins[1]]))


def _curvature(p: Params) -> float | None:
    """The power of which norms of vectors are curved; 0 where they are not, None for other norms."""
    if p.axis == ():  # of each number alone
        return 0.0
    if p.flag in _ROOT_OF_SQUARES:
        return None if p.flag == 1 and p.axis is None else 2.0
    if p.flag == -1 and (p.ord in (0, 1) or math.isinf(p.ord)):
        return 0.0
    if p.flag == -1 and p.axis is not None:
        return float(p.ord) if len(p.axis) == 1 else 0.0 if abs(p.ord) == 1 else None
    return None  # of vectors or matrices, nobody knows


@norm_back.grad
def _(F: Operators, p: Params, dys: Any, dy_: Any, data: Any, y_: Any) -> Any:
    power = _curvature(p)
    if power is None:
        raise NotImplementedError("the gradient of this norm has no gradient; with an axis, it has one")
    axes = None if p.flag == -2 else p.axis
    g, slopes = dys[0], F._norm_back(F.ones_like(dy_), data, y_, **given(p, _PARAMS))
    along = summed(F, g * slopes, axes, keepdims=True)
    d_dy = F.reshape_like(along, dy_)
    if not power:
        return d_dy, F.zeros_like(data), None
    inv = F._spread((y_ != 0) / (y_ + (y_ == 0)), data, axis=axes)
    bent = g
    if power != 2:
        ratio = F.abs(data) * inv
        bent = g * (ratio != 0) * (ratio + (ratio == 0)) ** (power - 2)
    outer = F.broadcast_mul(slopes, along)
    return d_dy, F._spread(dy_, data, axis=axes) * inv * (bent - outer) * (power - 1), None
