"""Variances, weighted means, quantiles and counts, as ``mx.np`` has them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.infer import known
from ..._core.op import Op, op
from ..._core.params import Params
from ...parameters import Bool, DType, Enum, Float, Int, Shape
from ...typing import Array, Call, Operators
from ..common.bodies import silent, wide
from ..common.gradients import narrow, widen
from ..common.rules import axis_of, size_of, within_limits
from ..elementwise.numpy_operators import common_dtype
from .numpy_operators import kept_shape, numpy_axes, widened

__all__ = ["SPREADS"]

_F32, _F64, _INT32, _INT64 = (np.dtype(t) for t in ("float32", "float64", "int32", "int64"))


def _floating(t: Any) -> Any:
    return _F32 if t.kind in "iub" else t


def _asked_or_floating(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    if ins[0] is None:
        return [outs[0] if p.dtype is None else None], [outs[0] if p.dtype is None else p.dtype]
    return ins, [p.dtype or _floating(ins[0])]


# -- variances ---------------------------------------------------------------------------------------------------------
def _variance_grad(F: Operators, p: Params, dy: Any, a: Any) -> Any:
    if p.axis == ():  # of each number alone
        return F.zeros_like(a)
    x = widen(F, a)
    own = F._spread(F.mean(x, axis=p.axis), x, axis=p.axis)
    return narrow(F, 2 * F._spread(F._cast_like(dy, x), x, axis=p.axis, mean=True, ddof=p.ddof) * (x - own), a)


def _deviation_grad(F: Operators, p: Params, dy: Any, a: Any, y: Any) -> Any:
    # Where all are equal there is no slope to either side: zero, not NaN.
    return _variance_grad(F, p, widen(F, dy) / (2 * widen(F, y + (y == 0))), a)


def _spread_of(name: str, what: str, grad: Any, root: bool) -> Op:
    @silent
    def body(k: Call, p: Params, a: Any) -> Any:
        t, axes = p.dtype or _floating(a.dtype), numpy_axes(p.axis, a.ndim)
        x = a.astype(_F64 if t.kind in "iub" or a.dtype.kind in "iub" else widened(t))
        n = size_of(x.shape[i] for i in axes)
        left = kept_shape(x.shape, axes, p.keepdims)
        if not axes:
            y = x - x
        else:
            d = x - x.sum(axes).reshape(kept_shape(x.shape, axes, True)) / n
            y = (d * d).sum(axes)
        y = y / k.xp.asarray(max(n - p.ddof, 0), dtype=x.dtype)
        return (k.xp.sqrt(y) if root else y).reshape(left)

    made = Op(
        name,
        body,
        inputs="a",
        outputs=name.removeprefix("_npi_"),
        params={"axis": Shape(None), "dtype": DType(None), "ddof": Int(0), "keepdims": Bool(False)},
        grad=grad,
        mxnet_outputs=2,
        doc=f"""{what} over axes.

    Parameters
    ----------
    a : array
    axis : int or tuple of int, optional
        All axes unless told; () stands for none.
    dtype : dtype, optional
        Of the result, and to compute in; unless told that of `a`, float32 of whole numbers.
    ddof : int
        The sum of squares is divided by the number of elements less this one.
    keepdims : bool
        Keep reduced axes with length 1.
    """,
    )
    made.shape(
        lambda p, ins, outs: (
            ins,
            outs if ins[0] is None else [kept_shape(ins[0], numpy_axes(p.axis, len(ins[0])), p.keepdims)],
        )
    )
    made.dtype(_asked_or_floating)
    return made


SPREADS = [
    _spread_of("_npi_var", "Variance", lambda F, p, dy, a: _variance_grad(F, p, dy, a), False),
    _spread_of("_npi_std", "Standard deviation", lambda F, p, dy, a, y: _deviation_grad(F, p, dy, a, y), True),
]


# -- weighted means ----------------------------------------------------------------------------------------------------
def _weights_shape(p: Params, data: Any, weights: Any) -> tuple[int, ...]:
    """The shape in which weights lie over the data."""
    if weights == data:
        return tuple(data)
    if len(weights) != 1:
        raise ValueError(f"weights {weights} must have the shape of a {data}, or one axis")
    if p.axis is None or len(p.axis) != 1:
        raise ValueError(f"weights {weights} of one axis need the axis of a {data} that they lie along: axis=0")
    axis = axis_of(p.axis[0], len(data))
    if data[axis] != weights[0]:
        raise ValueError(f"weights {weights} must be as many as a {data} is long along axis {axis}")
    return tuple(d if i == axis else 1 for i, d in enumerate(data))


@op(
    "_weights_like",
    inputs="weights like~",
    axis=Shape(None),
    grad=lambda F, p, dy, like_weights: (F._weights_sum(dy, like_weights, axis=p.axis), None),
)
def weights_like(k: Call, p: Params, weights: Array, like: Array) -> Array:
    """Weights in the shape of the data that they are of: as they are, or repeated over all axes but one.

    Parameters
    ----------
    weights : array
        Of the shape of `like`, or 1-D along `axis`.
    like : array
        Only its shape is used.
    axis : int, optional
    """
    whole = tuple(like.shape)
    return k.xp.broadcast_to(weights.reshape(_weights_shape(p, whole, tuple(weights.shape))), whole)


@weights_like.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    _weights_shape(p, ins[1], ins[0])
    return [ins[1]]


@op(
    "_weights_sum",
    inputs="data like~",
    axis=Shape(None),
    grad=lambda F, p, dy, like_data: (F._weights_like(dy, like_data, axis=p.axis), None),
)
@silent
def weights_sum(k: Call, p: Params, data: Array, like: Array) -> Array:
    """What :func:`_weights_like` repeated, added up: its gradient.

    Parameters
    ----------
    data : array
    like : array
        Weights: only their shape is used.
    axis : int, optional
    """
    shape = _weights_shape(p, tuple(data.shape), tuple(like.shape))
    axes = tuple(i for i, d in enumerate(shape) if d != data.shape[i])
    return (data.sum(axes, widened(data.dtype)) if axes else data).reshape(tuple(like.shape))


weights_sum.shape(lambda p, ins: [ins[1]])
for _op in (weights_like, weights_sum):
    _op.dtype(lambda p, ins, outs: (ins, [ins[0]]))


def _average_grad(F: Operators, p: Params, dys: Any, a: Any, like_a: Any, weights: Any, out_output0: Any) -> Any:
    along = {"axis": p.axis}
    dy, d_total = dys[0], dys[1] if len(dys) > 1 else None
    if weights is None:
        return (F._cast_like(F._spread(dy, like_a, **along, mean=True), like_a),)
    dy = widen(F, dy)
    w = F._weights_like(F._cast_like(weights, dy), like_a, **along)
    slope = F._spread(dy / F.reshape_like(F.sum(w, **along), dy), like_a, **along)
    by_weight = slope * (F._cast_like(a, dy) - F._spread(widen(F, out_output0), like_a, **along))
    if d_total is not None:
        by_weight = by_weight + F._spread(widen(F, d_total), like_a, **along)
    return F._cast_like(slope * w, like_a), F._cast_like(F._weights_sum(by_weight, weights, **along), weights)


@op(
    "_npi_average",
    inputs="a weights[weighted]",
    outputs="output0 output1",
    visible=lambda p: 1 + p.returned,
    axis=Shape(None),
    returned=Bool(False),
    weighted=Bool(True),
    grad=lambda F, p, dys, a, like_a, weights, out_output0: _average_grad(F, p, dys, a, like_a, weights, out_output0),
)
@silent
def average(k: Call, p: Params, a: Array, weights: Array = None) -> Any:
    """Weighted mean over axes, and the sum of the weights.

    Parameters
    ----------
    a : array
    weights : array
        Of the shape of `a`, or 1-D along `axis`.
    axis : int or tuple of int, optional
        All axes unless told.
    returned : bool
        Give the sums of the weights, too, in the shape of the means.
    weighted : bool
        There are weights; else all are 1.
    """
    xp, axes = k.xp, numpy_axes(p.axis, a.ndim)
    t = _averaged(a.dtype, *(() if weights is None else (weights.dtype,)))
    t = _F64 if a.dtype.kind in "iub" else widened(t)
    left, n = kept_shape(a.shape, axes, False), size_of(a.shape[i] for i in axes)
    x = a.astype(t)
    if weights is None:
        return x.sum(axes).reshape(left) / xp.asarray(n, dtype=t), xp.full(left, n, t)
    w = weights.astype(t).reshape(_weights_shape(p, a.shape, weights.shape))
    total = xp.broadcast_to(w, a.shape).sum(axes)
    return ((x * w).sum(axes) / total).reshape(left), total.reshape(left)


def _averaged(*dtypes: Any) -> Any:
    return _floating(common_dtype(*dtypes))


@average.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    if p.axis == ():
        raise ValueError("axis=() leaves nothing to take the mean of; give an axis, or None for all")
    if len(ins) > 1:
        _weights_shape(p, *ins)
    return [kept_shape(ins[0], numpy_axes(p.axis, len(ins[0])), False)] * 2


@average.dtype
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    if any(t is None for t in ins):
        t = next((t for t in (*ins, *outs) if t is not None), None)
        ins = [t] * len(ins)
        return ins, [None if t is None else _floating(t)] * 2
    return ins, [_averaged(*ins)] * 2


# -- quantiles ---------------------------------------------------------------------------------------------------------
_QUANTILE: dict[str, Any] = {
    "axis": Shape(None),
    "interpolation": Enum("higher linear lower midpoint nearest", "linear"),
    "keepdims": Bool(False),
    "q_scalar": Float(None),
}
_QUANTILE_DOC = """
    q : array
        Percentages from 0 to 100, of any shape, if there is no `q_scalar`.
    axis : int or tuple of int, optional
        All axes unless told.
    interpolation : {'linear', 'lower', 'higher', 'nearest', 'midpoint'}
        What counts between two elements.
    keepdims : bool
        Keep reduced axes with length 1.
    q_scalar : float, optional
        One percentage.
    """


def _rows(k: Call, p: Params, a: Any) -> tuple[Any, tuple[int, ...]]:
    """The data with the axes that are reduced as the last one, and the shape of a result without that of `q`.

    Half precision as float32: NaNs of bfloat16 NumPy does not sort to the end.
    """
    axes = numpy_axes(p.axis, a.ndim)
    kept = tuple(i for i in range(a.ndim) if i not in axes)
    rows = wide(k.xp.transpose(a, (*kept, *axes))).reshape(
        size_of(a.shape[i] for i in kept), size_of(a.shape[i] for i in axes)
    )
    return rows, kept_shape(a.shape, axes, p.keepdims)


def _between(k: Call, p: Params, q: Any, n: int) -> tuple[Any, Any, Any]:
    """Between which two places of n in order each percentage lies, and how far from the first."""
    xp = k.xp
    if q is None:
        if not 0 <= p.q_scalar <= 100:
            raise ValueError(f"q is {p.q_scalar}; percentages lie between 0 and 100")
        q = xp.full((1,), p.q_scalar, _F64)
    elif not k.device.async_:  # there a look would wait for all that is queued
        within_limits("q", q, 0, 100, "percentages")
    at = q.astype(_F64).reshape(-1) / 100 * (n - 1)
    low = xp.floor(at)
    part = at - low
    kind = p.interpolation
    if kind == "midpoint":
        part = xp.where(part > 0, 0.5, 0.0)
    elif kind == "nearest":
        part = xp.rint(at) - low  # halves to the even place
    elif kind != "linear":
        part = (part > 0) * (1.0 if kind == "higher" else 0.0)
    low = xp.minimum(low, n - 1).astype(_INT64)
    return low, xp.minimum(low + 1, n - 1), part


def _mixed(xp: Any, low: Any, high: Any, part: Any) -> Any:
    """What lies between two numbers, exact at both ends, which may be infinite."""
    d = high - low
    found = xp.where(part < 0.5, low + d * part, high - d * (1 - part))
    found = xp.where(xp.isinf(d), low * (1 - part) + high * part, found)
    return xp.where((low == high) | (part == 0), low, xp.where(part == 1, high, found))


def _quantiles(k: Call, p: Params, rows: Any, order: Any, q: Any, left: tuple[int, ...], t: Any) -> Any:
    """The quantiles of rows whose elements are in order, or come in an order."""
    xp, shape = k.xp, () if q is None else tuple(q.shape)
    low, high, part = _between(k, p, q, rows.shape[1])
    part = part.astype(t)[:, None]
    picked = [
        xp.take(rows, i, 1) if order is None else xp.take_along_axis(rows, xp.take(order, i, 1), 1) for i in (low, high)
    ]
    first, second = (x.T.astype(t) for x in picked)
    return _mixed(xp, first, second, part).reshape(shape + left)


def _quantile_dtype(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    t = ins[0]
    return ins, [None if t is None else _F64 if t == _F64 else _F32]


def _quantile_shape(p: Params, a: Any, q: Any) -> tuple[int, ...]:
    axes = numpy_axes(p.axis, len(a))
    kept = kept_shape(a, axes, p.keepdims)
    if size_of(kept) and not all(a[i] for i in axes):
        raise ValueError(f"a {a} has no elements to take quantiles of")
    return (tuple(q[0]) if q else ()) + kept


@op(
    "_npi_percentile",
    inputs="a q[q_scalar is None]",
    **_QUANTILE,
    grad=lambda F, p, dy, a, q: (F._backward_percentile(dy, a, *_given(q), **_asked(p)), None)[: 1 + (q is not None)],
)
@silent
def percentile(k: Call, p: Params, a: Array, q: Array = None) -> Array:
    """Percentiles over axes: a result for each of `q`, float64 of float64 and float32 of all else; NaN if one is.

    Parameters
    ----------
    a : array"""
    xp, t = k.xp, _F64 if a.dtype == _F64 else _F32
    rows, left = _rows(k, p, a)
    if not rows.size:
        return xp.zeros((() if q is None else tuple(q.shape)) + left, t)
    rows = xp.sort(rows, 1)
    found = _quantiles(k, p, rows, None, q, left, t)
    if a.dtype.kind in "iub":
        return found
    odd = xp.isnan(rows[:, -1]).reshape(left)
    return xp.where(odd, xp.full_like(found, np.nan), found)


percentile.doc += _QUANTILE_DOC
percentile.__doc__ = percentile.doc


def _given(q: Any) -> tuple[Any, ...]:
    return () if q is None else (q,)


def _asked(p: Params) -> dict[str, Any]:
    return {n: getattr(p, n) for n in _QUANTILE}


percentile.shape(lambda p, ins: [_quantile_shape(p, ins[0], ins[1:])])
percentile.dtype(_quantile_dtype)


@op(
    "_backward_percentile",
    inputs="dy a q[q_scalar is None]",
    **_QUANTILE,
    grad=lambda F, p, dys, a, q: (F._percentile_of(dys[0], a, *_given(q), **_asked(p)), None, None)[
        : 2 + (q is not None)
    ],
)
@silent
def backward_percentile(k: Call, p: Params, dy_: Array, a: Array, q: Array = None) -> Array:
    """Gradient of percentiles: shares of each go to the two elements that it lies between.

    Parameters
    ----------
    dy : array
        Gradient of the percentiles.
    a : array"""
    xp = k.xp
    rows, left = _rows(k, p, a)
    out = xp.zeros(rows.shape, dy_.dtype)
    if rows.size:
        low, high, part = _between(k, p, q, rows.shape[1])
        order = xp.argsort(rows, 1, kind="stable")
        g, part = dy_.reshape(low.shape[0], rows.shape[0]), part.astype(dy_.dtype)[:, None]
        line = xp.arange(rows.shape[0])[:, None]
        for places, share in ((low, g * (1 - part)), (high, g * part)):
            xp.add.at(out, (line, xp.take(order, places, 1)), share.T)
    axes = numpy_axes(p.axis, a.ndim)
    turned = [*(i for i in range(a.ndim) if i not in axes), *axes]
    back = [turned.index(i) for i in range(a.ndim)]
    return xp.transpose(out.reshape(tuple(a.shape[i] for i in turned)), tuple(back))


backward_percentile.doc += _QUANTILE_DOC
backward_percentile.__doc__ = backward_percentile.doc
backward_percentile.shape(lambda p, ins: [ins[1]])
backward_percentile.dtype(lambda p, ins, outs: (ins, [ins[1]]))


@op(
    "_percentile_of",
    inputs="data a q[q_scalar is None]",
    **_QUANTILE,
    grad=lambda F, p, dy, a, q: (F._backward_percentile(dy, a, *_given(q), **_asked(p)), None, None)[
        : 2 + (q is not None)
    ],
)
@silent
def percentile_of(k: Call, p: Params, data: Array, a: Array, q: Array = None) -> Array:
    """What lies where the percentiles of another array are: the gradient of their gradient.

    Parameters
    ----------
    data : array
        Of the shape of `a`.
    a : array"""
    xp, t = k.xp, _F64 if a.dtype == _F64 else _F32
    rows, left = _rows(k, p, a)
    if not rows.size:
        return xp.zeros((() if q is None else tuple(q.shape)) + left, t)
    values, _ = _rows(k, p, data)
    return _quantiles(k, p, values, xp.argsort(rows, 1, kind="stable"), q, left, t)


percentile_of.doc += _QUANTILE_DOC
percentile_of.__doc__ = percentile_of.doc
percentile_of.shape(lambda p, ins: [_quantile_shape(p, ins[1], ins[2:])])
percentile_of.dtype(lambda p, ins, outs: (ins, _quantile_dtype(p, ins[1:], outs)[1]))


# -- counts ------------------------------------------------------------------------------------------------------------
@op(
    "_npi_bincount",
    inputs="data weights[has_weights]",
    minlength=Int(0, ge=0),
    has_weights=Bool(False),
    grad=lambda F, p, dy, data: (None, F.take(dy, data))[: 1 + p.has_weights],
)
@silent
def bincount(k: Call, p: Params, data: Array, weights: Array = None) -> Array:
    """How often each number from 0 on occurs, or the sum of its weights.

    Parameters
    ----------
    data : array, 1-D, of whole numbers from 0 on
    weights : array
        As many.
    minlength : int
        The least length of the result.
    has_weights : bool

    Notes
    -----
    Sums have the dtype of the weights; counts are int32 of int32 and else int64.
    """
    xp = k.xp
    if data.size and (least := data.min().item()) < 0:
        raise ValueError(f"data holds {least}; counted are numbers from 0 on")
    places = data.astype(_INT64)
    if weights is None:
        return xp.bincount(places, minlength=p.minlength)
    n = max(int(places.max().item()) + 1 if data.size else 0, p.minlength)
    if weights.dtype.kind not in "iub":
        out = xp.zeros((n,), _F64)
        xp.add.at(out, places, weights.astype(_F64))
        return out
    # Not every library adds int64 at places; sums of what is sorted are exact as well.
    sums = xp.cumsum(weights.astype(_INT64)[xp.argsort(places, kind="stable")])
    sums = xp.concatenate([xp.zeros((1,), _INT64), sums])
    ends = xp.cumsum(xp.bincount(places, minlength=n))
    return sums[ends] - sums[xp.concatenate([xp.zeros((1,), ends.dtype), ends])[:-1]]


@bincount.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    data = ins[0]
    if known(data) and len(data) != 1:
        raise ValueError(f"data {data} must have one axis")
    if len(ins) > 1 and known(data) and known(ins[1]) and data != ins[1]:
        raise ValueError(f"weights {ins[1]} must be as many as data {data}")
    return ins, [None]


@bincount.dtype
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    if ins[0] is not None and ins[0].kind not in "iub":
        raise TypeError(f"data is {ins[0].name}; only whole numbers can be counted: a.astype('int64')")
    if p.has_weights:
        t = ins[1]
        return ins, [t if t is None or t.kind != "b" else _INT64]
    return ins, [None if ins[0] is None else _INT32 if ins[0] == _INT32 else _INT64]
