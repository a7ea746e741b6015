"""Differences of neighbours, the inverse of cumulative sums; values of polynomials."""

from __future__ import annotations

from typing import Any

from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool, Float, Int
from ...typing import Array, Call, Operators
from ..common.bodies import silent, wide
from ..common.gradients import given
from ..common.rules import axis_of, cut_along, size_of
from ..elementwise.numpy_operators import common_dtype

__all__: list[str] = []


# -- along an axis -----------------------------------------------------------------------------------------------------
_DIFF: dict[str, Any] = {"n": Int(1, ge=0), "axis": Int(-1)}


def _shortened(p: Params, shape: tuple[int, ...]) -> tuple[int, ...]:
    axis = axis_of(p.axis, len(shape))
    return tuple(max(d - p.n, 0) if i == axis and d != -1 else d for i, d in enumerate(shape))


@op("_npi_diff", inputs="a", **_DIFF, grad=lambda F, p, dy, like_a: F._backward_diff(dy, like_a, **given(p, _DIFF)))
@silent
def diff(k: Call, p: Params, a: Array) -> Array:
    """Differences of each element and the one before, along an axis; of truth values, whether they differ.

    Parameters
    ----------
    a : array
    n : int
        How often.
    axis : int
    """
    axis = axis_of(p.axis, a.ndim)
    if p.n >= a.shape[axis]:  # however often that is
        return k.xp.zeros(_shortened(p, tuple(a.shape)), a.dtype)
    return k.xp.diff(a, p.n, axis) if p.n else a


diff.shape(lambda p, ins, outs: (ins, outs if ins[0] is None else [_shortened(p, ins[0])]))


@op("_backward_diff", inputs="dy like~", **_DIFF, grad=lambda F, p, dys: (F._npi_diff(dys[0], **given(p, _DIFF)), None))
@silent
def backward_diff(k: Call, p: Params, dy_: Array, like: Array) -> Array:
    """Gradient of `diff`: the differences of the gradient with nothing around it, turned about.

    Parameters
    ----------
    dy : array
    like : array
        Only its shape is used.
    n : int
    axis : int
        As in `diff`.
    """
    xp, axis = k.xp, axis_of(p.axis, like.ndim)
    if not dy_.size:
        return xp.zeros(tuple(like.shape), dy_.dtype)
    if not p.n:
        return dy_
    shape = list(dy_.shape)
    shape[axis] += 2 * p.n
    padded = xp.zeros(tuple(shape), dy_.dtype)
    padded[cut_along(dy_.ndim, axis, slice(p.n, shape[axis] - p.n))] = dy_
    found = xp.diff(padded, p.n, axis)
    return -found if p.n % 2 else found


@backward_diff.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    if ins[0] != _shortened(p, ins[1]):
        raise ValueError(f"dy {ins[0]} must have the shape {_shortened(p, ins[1])} of the differences of {ins[1]}")
    return [ins[1]]


# -- of the flattened array --------------------------------------------------------------------------------------------
_EDIFF: dict[str, Any] = {
    "to_begin_arr_given": Bool(False),
    "to_end_arr_given": Bool(False),
    "to_begin_scalar": Float(None),
    "to_end_scalar": Float(None),
}
_EDIFF_INPUTS = (
    "input1{0} input2{0}[to_begin_arr_given or to_end_arr_given] input3{0}[to_begin_arr_given and to_end_arr_given]"
)
_EDIFF_DOC = """
    input1 : array
    input2, input3 : array
        What to put in front, and behind: that of both which is an array comes first.
    to_begin_arr_given, to_end_arr_given : bool
        Which of both are arrays.
    to_begin_scalar, to_end_scalar : float, optional
        A number to put in front, and behind.
    """


def _ends(p: Params, parts: Any) -> tuple[Any, Any]:
    """What is put in front and behind: arrays or their shapes, numbers, or None."""
    left = iter(parts)
    begin = next(left) if p.to_begin_arr_given else p.to_begin_scalar
    return begin, next(left) if p.to_end_arr_given else p.to_end_scalar


def _length(part: Any) -> int:
    return 0 if part is None else size_of(part) if isinstance(part, tuple) else 1


def _again(F: Operators, p: Params, dys: Any) -> Any:
    numbers = {n: None if getattr(p, n) is None else 0.0 for n in ("to_begin_scalar", "to_end_scalar")}
    first = F._npi_ediff1d(*[g for g in dys if g is not None], **{**given(p, _EDIFF), **numbers})
    return (first, *[None] * len(dys))


@op(
    "_npi_ediff1d",
    inputs=_EDIFF_INPUTS.format(""),
    **_EDIFF,
    grad=lambda F, p, dy, like_input1, like_input2, like_input3: F._npi_backward_ediff1d(
        dy, *[x for x in (like_input1, like_input2, like_input3) if x is not None], **given(p, _EDIFF)
    ),
)
@silent
def ediff1d(k: Call, p: Params, input1: Array, *more: Array) -> Array:
    """Differences of each element and the one before, of the flattened array; what was put around them stays.

    Parameters
    ----------"""
    xp = k.xp
    parts = [
        part.reshape(-1).astype(input1.dtype) if hasattr(part, "shape") else xp.full((1,), part, input1.dtype)
        for part in _ends(p, more)
        if part is not None
    ]
    middle = xp.diff(input1.reshape(-1))
    return xp.concatenate([*parts[: _front(p)], middle, *parts[_front(p) :]]) if parts else middle


def _front(p: Params) -> int:
    return int(p.to_begin_arr_given or p.to_begin_scalar is not None)


def _ediff_length(p: Params, shapes: Any) -> int:
    return max(size_of(shapes[0]) - 1, 0) + sum(map(_length, _ends(p, map(tuple, shapes[1:]))))


ediff1d.shape(lambda p, ins: [(_ediff_length(p, ins),)])
ediff1d.dtype(lambda p, ins, outs: ([ins[0] or outs[0], *ins[1:]], [ins[0] or outs[0]]))


@op(
    "_npi_backward_ediff1d",
    inputs="dy " + _EDIFF_INPUTS.format("~"),
    outputs="output0 output1[to_begin_arr_given or to_end_arr_given] output2[to_begin_arr_given and to_end_arr_given]",
    **_EDIFF,
    grad=lambda F, p, dys: _again(F, p, dys),
)
@silent
def backward_ediff1d(k: Call, p: Params, dy_: Array, *like: Array) -> Any:
    """Gradients of `ediff1d`, of the array and of the arrays around its differences.

    Parameters
    ----------
    dy : array"""
    xp, shapes = k.xp, [tuple(x.shape) for x in like]
    begin, end = map(_length, _ends(p, shapes[1:]))
    n = size_of(shapes[0])
    zero = xp.zeros((1,), dy_.dtype)
    if n > 1:
        own = -xp.diff(xp.concatenate([zero, dy_[begin : begin + n - 1], zero]))
    else:
        own = xp.zeros((n,), dy_.dtype)
    around = [dy_[:begin]] * p.to_begin_arr_given + [dy_[dy_.shape[0] - end :]] * p.to_end_arr_given
    return tuple(g.reshape(shape) for g, shape in zip([own, *around], shapes))


for _op in (ediff1d, backward_ediff1d):
    _op.__doc__ = _op.doc = _op.doc + _EDIFF_DOC
backward_ediff1d.shape(lambda p, ins: ins[1:])
backward_ediff1d.dtype(lambda p, ins, outs: (ins, ins[1:]))


# -- polynomials -------------------------------------------------------------------------------------------------------
def _slope(F: Operators, p: Any, x: Any, dy: Any) -> Any:
    return dy * F._npi_polyval(F._cast_like(F._polyder(p), dy), F._cast_like(x, dy))


def _horner(k: Call, c: Any, x: Any) -> Any:
    y = k.xp.zeros(x.shape, x.dtype)
    for i in range(c.shape[0]):
        y = y * x + c[i : i + 1].reshape((1,) * x.ndim)
    return y


@op(
    "_npi_polyval",
    inputs="p x",
    grad=lambda F, dy, p_, x: (
        F._cast_like(F._polyval_sums(dy, F._cast_like(x, dy), p_), p_),
        F._cast_like(_slope(F, p_, x, dy), x),
    ),
)
@silent
def polyval(k: Call, p: Params, p_: Array, x: Array) -> Array:
    """Values of a polynomial.

    Parameters
    ----------
    p : array, 1-D
        Coefficients, that of the highest power first.
    x : array
        Where, of any shape.
    """
    t = common_dtype(p_.dtype, x.dtype)
    return _horner(k, wide(p_.astype(t)), wide(x.astype(t))).reshape(x.shape)


@polyval.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    if ins[0] is not None and len(ins[0]) != 1:
        raise ValueError(f"p {ins[0]} must have one axis, of coefficients")
    one = ins[1] if ins[1] is not None else outs[0]
    return [ins[0], one], [one]


@polyval.dtype
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    if any(t is None for t in ins):
        t = next((t for t in (*ins, *outs) if t is not None), None)
        return [t, t], [t]
    return ins, [common_dtype(*ins)]


@op("_polyder", inputs="data", turned=Bool(False), grad=lambda F, p, dy: F._polyder(dy, turned=not p.turned))
def polyder(k: Call, p: Params, data: Array) -> Array:
    """Coefficients of the derivative of a polynomial, a zero in front: as many as it has itself.

    Parameters
    ----------
    data : array, 1-D
        Coefficients, that of the highest power first.
    turned : bool
        The transposed map, from gradients of the derivative's coefficients.
    """
    n = data.shape[0]
    out = k.xp.zeros((n,), data.dtype)
    powers = k.xp.arange(n - 1, 0, -1).astype(data.dtype)
    if p.turned:
        out[: max(n - 1, 0)] = data[1:] * powers
    else:
        out[1:] = data[:-1] * powers
    return out


@op(
    "_polyval_sums",
    inputs="dy x like~",
    grad=lambda F, dys, dy_, x: (
        F._npi_polyval(F._cast_like(dys[0], dy_), x),
        _slope(F, F._cast_like(dys[0], dy_), x, dy_),
        None,
    ),
)
@silent
def polyval_sums(k: Call, p: Params, dy_: Array, x: Array, like: Array) -> Array:
    """Sums of a gradient times each power of x: the gradient of the coefficients of a polynomial.

    Parameters
    ----------
    dy, x : array
        Of one shape.
    like : array, 1-D
        Coefficients: only their shape is used.
    """
    xp, n = k.xp, like.shape[0]
    g = wide(dy_).reshape(-1)
    x, out = x.reshape(-1).astype(g.dtype), xp.zeros((n,), g.dtype)
    for i in range(n - 1, -1, -1):
        out[i : i + 1] = g.sum(0, keepdims=True)
        g = g * x
    return out


@polyval_sums.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    if ins[0] != ins[1]:
        raise ValueError(f"dy {ins[0]} and x {ins[1]} must have one shape")
    return [ins[2]]


polyval_sums.dtype(lambda p, ins, outs: (ins, [ins[0]]))
