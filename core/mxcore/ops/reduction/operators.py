"""Reductions: a table for those that differ in one function, then norm, moments, argmax and cumulative sums."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._core.infer import known, merge_shape
from ..._core.op import Op, op
from ..._core.params import Params
from ...parameters import Bool, DType, Int, Shape
from ...typing import Array, Call, Operators
from ..common.bodies import silent, sum_dtype, wide
from ..common.gradients import narrow, widen
from ..common.rules import axes_of, axis_of, reduced, size_of

__all__ = ["ARGS", "REDUCTIONS", "SQUARE_SUM_PARAMS", "extreme_grad", "prod_grad", "repeated", "some"]


_AXES = {"axis": Shape(None), "keepdims": Bool(False)}
SQUARE_SUM_PARAMS = {**_AXES, "exclude": Bool(False)}


def _over(data: Any, axes: tuple[int, ...], keepdims: bool, fn: Callable[..., Any]) -> Any:
    """``fn(data, axes)`` in MXNet's shape."""
    if len(axes) == data.ndim and not keepdims:
        return fn(data, None)
    return fn(data, axes).reshape(reduced(data.shape, axes, keepdims))


def some(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    """Refuse to choose among no elements, unless there is nothing to choose for."""
    kept = size_of(d for i, d in enumerate(shape) if i not in axes)
    if kept and not all(shape[a] for a in axes):
        raise ValueError(
            f"data {shape} has no elements along axis {', '.join(str(a) for a in axes if not shape[a])} to choose from"
        )


def _extreme_shape(p: Params, ins: list[Any]) -> list[Any]:
    some(ins[0], axes_of(p.axis, len(ins[0]), p.exclude))
    return _axes_shape(p, ins)


def _some_axes(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    """The rule of sums and their kin, which know lengths of the result as soon as the data has them."""
    return ins, outs if ins[0] is None else _axes_shape(p, ins)


def _axes_shape(p: Params, ins: list[Any]) -> list[Any]:
    return [reduced(ins[0], axes_of(p.axis, len(ins[0]), getattr(p, "exclude", False)), p.keepdims)]


def repeated(F: Operators, p: Params, g: Any, like: Any, mean: bool = False) -> Any:
    """A gradient (or result) repeated over the reduced axes."""
    if p.axis is None and not mean:  # a loss, most often: the call without parameters is the shorter one
        return F._spread(g, like)
    return F._spread(g, like, axis=p.axis, exclude=getattr(p, "exclude", False), mean=mean)


def prod_grad(F: Operators, p: Params, dy: Any, data: Any) -> Any:
    """dy times the product of the other factors, without those that are NaN.

    Of half precision all is done in float32: the product of all factors may be out of the range of halves where that of
    the others is not. The factors that are zero are taken out of the product, so nothing is divided by zero. They come
    back as `holes`: zero in value, but with a gradient, so that the second gradient is right too.
    """

    def total(x: Any, fn: Any = F.sum) -> Any:
        return repeated(F, p, fn(x, axis=p.axis, exclude=getattr(p, "exclude", False)), data)

    given, data, dy = data, widen(F, data), widen(F, dy)
    zero, gone = data == 0, data != data
    holes = F.where(zero, data, F.zeros_like(data))
    safe = F.where(zero + gone, F.ones_like(data), data)
    count, others = total(zero), total(holes) - holes
    factor = (count == 0) + (count == 1) * (zero + others) + (count == 2) * zero * others
    return narrow(F, repeated(F, p, dy, data) * (total(safe, F.prod) / safe) * factor * (1 - gone), given)


def extreme_grad(F: Operators, p: Params, dy: Any, data: Any, y: Any) -> Any:
    """All places that attain the extreme get the gradient."""
    return repeated(F, p, dy, data) * (data == repeated(F, p, y, data))


_DOC = """{}

    Parameters
    ----------
    data : array
    axis : int or tuple of int, optional
        All axes unless told.
    keepdims : bool
        Keep reduced axes with length 1.
    exclude : bool
        Reduce all axes but `axis`.
    """


def _reduced_axes(p: Params, data: Any, out: Any) -> tuple[int, ...]:
    """The axes that a chain which ends in a reduction reduces."""
    return axes_of(p.axis, len(data), getattr(p, "exclude", False))


#: What passes must know of them: how a chain ends in one, and that it gives an array back whose axes have the length 1.
_FACETS: dict[str, dict[str, Any]] = {
    **{
        name: dict(expr="data", reduces=(name, _reduced_axes), identity="elements")
        for name in ("sum", "mean", "max", "min")
    },
    "prod": dict(identity="elements"),
}


#: name, further names -> (function over xp, data, axes; gradient; first line of the documentation)
_TABLE: dict[str, tuple[Any, Any, str]] = {
    "sum sum_axis _sparse_sum": (
        lambda xp, x, a: x.sum(a, sum_dtype(x)),
        lambda F, p, dy, like_data: repeated(F, p, dy, like_data),
        "Sum over axes.",
    ),
    "mean _sparse_mean": (
        lambda xp, x, a: xp.mean(x, a, dtype=sum_dtype(x)) if x.size else x.sum(a) / 0.0,
        lambda F, p, dy, like_data: repeated(F, p, dy, like_data, mean=True),
        "Mean over axes.",
    ),
    "prod": (
        lambda xp, x, a: xp.prod(x, a, dtype=sum_dtype(x)),
        lambda F, p, dy, data: prod_grad(F, p, dy, data),
        "Product over axes.",
    ),
    "nansum": (
        lambda xp, x, a: xp.nansum(wide(x), a),  # NumPy knows no NaN of bfloat16
        lambda F, p, dy, data: repeated(F, p, dy, data) * (data == data),
        "Sum over axes, NaNs counted as 0.",
    ),
    "nanprod": (
        lambda xp, x, a: xp.nanprod(wide(x), a),
        lambda F, p, dy, data: prod_grad(F, p, dy, data),
        "Product over axes, NaNs counted as 1.",
    ),
    "max max_axis": (
        lambda xp, x, a: xp.max(x, a),
        lambda F, p, dy, data, y: extreme_grad(F, p, dy, data, y),
        "Maximum over axes.",
    ),
    "min min_axis": (
        lambda xp, x, a: xp.min(x, a),
        lambda F, p, dy, data, y: extreme_grad(F, p, dy, data, y),
        "Minimum over axes.",
    ),
}


def _reduction(names: str, fn: Any, grad: Any, doc: str) -> Op:
    @silent
    def body(k: Call, p: Params, data: Any) -> Any:
        if p.axis is None and not p.keepdims:
            return fn(k.xp, data.reshape((1, -1)), 1)  # a result of shape (1,), without a scalar on the way
        return _over(data, axes_of(p.axis, data.ndim, p.exclude), p.keepdims, lambda x, axes: fn(k.xp, x, axes))

    name, *aliases = names.split()
    new = Op(
        name,
        body,
        inputs="data",
        params={**_AXES, "exclude": Bool(False)},
        aliases=aliases,
        grad=grad,
        doc=_DOC.format(doc),
        **_FACETS.get(name, {}),
    )
    new.shape(_extreme_shape if name in ("max", "min") else _some_axes)
    return new


REDUCTIONS = [_reduction(names, *row) for names, row in _TABLE.items()]


def _norm_rule(F: Operators, p: Params, dy: Any, data: Any, y: Any) -> Any:
    if p.ord == 2:
        return F._norm_grad(dy, data, y, axis=p.axis)
    return F._spread(dy if p.out_dtype is None else F._cast_like(dy, data), data, axis=p.axis) * F.sign(data)


_HALF = np.dtype("float16")  # no square of which is out of the range of float32
#: dtype -> the norm below which what squares lose at the lower end of its range could show.
_FAINT = {np.dtype(t): float(np.finfo(t).tiny) ** 0.5 * 2.0**13 for t in ("float32", "float64")}


def _scaled_norm(xp: Any, x: Any, axes: Any) -> Any:
    """The norm of what is too large or too small to be squared."""
    top = xp.max(xp.abs(x), axes, keepdims=True)
    top = xp.where((top > 0) & (top < math.inf), top, xp.ones_like(top))
    x = x / top
    y = xp.sqrt(xp.sum(x * x, axes))
    return top.reshape(y.shape) * y


def _euclid(k: Any, x: Any, axes: Any) -> Any:
    """The root of the sum of squares, done again with scaled numbers where a square is out of range."""
    xp, faint = k.xp, _FAINT[x.dtype]
    y = xp.sqrt(xp.sum(x * x, axes))
    if not x.size:
        return y
    look = not k.device.async_
    if look and axes is None and faint <= y.item() < math.inf:
        return y
    good = (y >= faint) & (y < math.inf)
    if look and good.all().item():
        return y
    return xp.where(good, y, _scaled_norm(xp, x, axes))


@op(
    "norm",
    "_sparse_norm",
    inputs="data",
    ord=Int(2, ge=1, le=2),
    axis=Shape(None),
    out_dtype=DType(None),
    keepdims=Bool(False),
    grad=lambda F, p, dy, data, y: _norm_rule(F, p, dy, data, y),
)
@silent
def norm(k: Call, p: Params, data: Array) -> Array:
    """Norm over axes: the root of the sum of squares, or the sum of absolute values.

    Parameters
    ----------
    data : array
    ord : {1, 2}
        Which norm.
    axis : int or tuple of int, optional
        All axes unless told; several axes are taken as one vector.
    out_dtype : dtype, optional
        Of the result; that of `data` unless told.
    keepdims : bool
        Keep reduced axes with length 1.
    """
    xp = k.xp

    def fn(x: Any, axes: Any) -> Any:
        if p.ord == 1:
            return xp.sum(xp.abs(x), axes, dtype=sum_dtype(x))
        x = wide(x) if x.dtype.kind not in "iub" else x.astype(np.float64)
        if data.dtype.kind not in "iub" and data.dtype != _HALF:
            return _euclid(k, x, axes)
        return xp.sqrt(xp.sum(x * x, axes))

    return _over(data, axes_of(p.axis, data.ndim), p.keepdims, fn)


norm.shape(_axes_shape)
norm.dtype(lambda p, ins, outs: (ins, [p.out_dtype or ins[0]]))


@op(
    "_square_sum",
    inputs="data",
    **SQUARE_SUM_PARAMS,
    expr="data * data",
    reduces=("sum", _reduced_axes),
    grad=lambda F, p, dy, data: F._backward_square_sum(dy, data, axis=p.axis, keepdims=p.keepdims, exclude=p.exclude),
)
def square_sum(k: Call, p: Params, data: Array) -> Array:
    """Sum of squares over axes.

    Parameters
    ----------
    data : array
    axis : int or tuple of int, optional
        All axes unless told.
    keepdims : bool
        Keep reduced axes with length 1.
    exclude : bool
        Reduce all axes but `axis`.
    """
    return _over(
        data,
        axes_of(p.axis, data.ndim, p.exclude),
        p.keepdims,
        lambda x, axes: k.xp.sum(x * x, axes, dtype=sum_dtype(x)),
    )


square_sum.shape(_axes_shape)


@op(
    "moments",
    inputs="data",
    labels="inputs numbers",
    outputs="mean var",
    axes=Shape(None),
    keepdims=Bool(False),
    grad=lambda F, p, d_mean, d_var, data, out_mean: (
        F._spread(d_mean, data, axis=p.axes, mean=True)
        + 2 * F._spread(d_var, data, axis=p.axes, mean=True) * (data - F._spread(out_mean, data, axis=p.axes))
    ),
)
@silent
def moments(k: Call, p: Params, data: Array) -> Any:
    """Mean and variance over axes.

    Parameters
    ----------
    data : array
    axes : int or tuple of int
    keepdims : bool
        Keep reduced axes with length 1.
    """
    shape, axes = data.shape, axes_of(p.axes, data.ndim)
    x = wide(data)
    mean = x.mean(axes)
    target = reduced(shape, axes, p.keepdims)
    x = x - mean.reshape(reduced(shape, axes, True))
    return mean.reshape(target), (x * x).mean(axes).reshape(target)


@moments.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    if not p.axes:
        raise ValueError("axes must name at least one axis; name them all for the moments of all elements")
    return [reduced(ins[0], axes_of(p.axes, len(ins[0])), p.keepdims)] * 2


def _arg_shape(p: Params, ins: list[Any]) -> list[Any]:
    axes = tuple(range(len(ins[0]))) if p.axis is None else (axis_of(p.axis, len(ins[0])),)
    some(ins[0], axes)
    return [reduced(ins[0], axes, p.keepdims)]


def _arg(name: str, which: str) -> Op:
    def body(k: Call, p: Params, data: Any) -> Any:
        i = getattr(k.xp, name)(data, None if p.axis is None else axis_of(p.axis, data.ndim))
        return (
            i if p.axis is not None and not p.keepdims and data.ndim > 1 else i.reshape(_arg_shape(p, [data.shape])[0])
        )

    new = Op(
        name,
        body,
        inputs="data",
        params={"axis": Int(None), "keepdims": Bool(False)},
        grad=None,
        doc=f"""Place of the {which} along an axis, as a number of the dtype of `data`; the first of equal ones.

    Parameters
    ----------
    data : array
    axis : int, optional
        The place in the flattened array unless told.
    keepdims : bool
        Keep the axis with length 1.
    """,
    )
    new.shape(_arg_shape)
    return new


ARGS = [_arg("argmax", "maximum"), _arg("argmin", "minimum")]


@op("argmax_channel", inputs="data", grad=None)
def argmax_channel(k: Call, p: Params, data: Array) -> Array:
    """Place of the maximum along axis 1, as a number of the dtype of `data`.

    Parameters
    ----------
    data : array, at least 2-D
    """
    return k.xp.argmax(data, 1)


@argmax_channel.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    axis_of(1, len(ins[0]))
    some(ins[0], (1,))
    return [ins[0][:1] + ins[0][2:]]


def _cumsum_grad(F: Operators, p: Params, dy: Any, like: Any) -> Any:
    axis = 0 if p.axis is None else p.axis
    total = F.reverse(F.cumsum(F.reverse(dy, axis=axis), axis=axis), axis=axis)
    return F._cast_like(F.reshape_like(total, like), like)


@op(
    "_np_cumsum",
    "cumsum",
    inputs="a",
    axis=Int(None),
    dtype=DType(None),
    grad=lambda F, p, dy, like_a: _cumsum_grad(F, p, dy, like_a),
)
@silent
def cumsum(k: Call, p: Params, a: Array) -> Array:
    """Sums of the elements up to each one, along an axis.

    Parameters
    ----------
    a : array
    axis : int, optional
        The flattened array unless told.
    dtype : dtype, optional
        Of the result; that of `a` unless told, int64 for bools.
    """
    return k.xp.cumsum(
        a,
        None if p.axis is None else axis_of(p.axis, a.ndim),
        dtype=p.dtype or (np.int64 if a.dtype == np.bool_ else sum_dtype(a)),
    )


@cumsum.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    if p.axis is None:
        return ins, [(size_of(ins[0]),) if known(ins[0]) else outs[0]]
    one = merge_shape(ins[0], outs[0])
    if one is not None:
        axis_of(p.axis, len(one))
    return [one], [one]


cumsum.dtype(lambda p, ins, outs: (ins, [p.dtype or (ins[0] if ins[0] != np.bool_ else np.dtype("int64"))]))
