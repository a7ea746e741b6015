"""The operators of ``mx.np`` that choose and replace elements by conditions, and tell whether arrays share memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.op import op
from ..._core.params import Params
from ...elementwise import broadcast_shapes, wrapped
from ...parameters import Float, Int
from ...typing import Array, Call
from ..common.bodies import sum_over
from ..common.rules import first_dtype
from ..elementwise.numpy_operators import common_dtype

__all__: list[str] = []

_F32 = np.dtype("float32")


def _broadcast(*shapes: Any) -> Any:
    found = shapes[0]
    for s in shapes[1:]:
        found = broadcast_shapes(found, s)
    return found


@op(
    "_npi_where",
    inputs="condition x y",
    expr="x if condition != 0 else y",
    labels="-condition",
    grad=lambda F, dy, condition, like_x, like_y: (
        None,
        F._sum_like(F._cast_like(F._npi_where_rscalar(condition, dy, scalar=0.0), like_x), like_x),
        F._sum_like(F._cast_like(F._npi_where_lscalar(condition, dy, scalar=0.0), like_y), like_y),
    ),
)
def where(k: Call, p: Params, condition: Array, x: Array, y: Array) -> Array:
    """Elements of `x` where `condition` is not zero, of `y` elsewhere; all three are broadcast.

    Parameters
    ----------
    condition : array
    x, y : array
        Their dtypes may differ.
    """
    t = common_dtype(x.dtype, y.dtype)
    return k.xp.where(condition != 0, x.astype(t, copy=False), y.astype(t, copy=False))


where.shape(lambda p, ins, outs: (ins, [_broadcast(*ins)]))


@where.dtype
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    c, x, y = ins
    if x is not None and y is not None:
        return ins, [common_dtype(x, y)]
    t = x or y or outs[0]
    return [c, t, t], [t]


def _where_number(name: str, left: bool) -> Any:
    """`left`: whether the number stands for `x`."""
    other, side = ("y", "x") if left else ("x", "y")

    @op(
        name,
        inputs="condition x" if left else "condition y",  # what MXNet calls the array, whichever it stands for
        scalar=Float(0.0),
        grad=(
            (
                lambda F, dy, condition, like_x: (
                    None,
                    F._sum_like(F._npi_where_lscalar(condition, dy, scalar=0.0), like_x),
                )
            )
            if left
            else (
                lambda F, dy, condition, like_y: (
                    None,
                    F._sum_like(F._npi_where_rscalar(condition, dy, scalar=0.0), like_y),
                )
            )
        ),
        doc=f"""Elements of an array where `condition` is{"" if left else " not"} zero, a number elsewhere.

    Parameters
    ----------
    condition : array
    {"x" if left else "y"} : array
        What `{other}` is in ``where``; it is broadcast with the condition.
    scalar : float
        What `{side}` is in ``where``, cast to the dtype of the array.
    """,
    )
    def body(k: Call, p: Params, condition: Array, a: Array) -> Array:
        c = condition != 0
        number = _as(p.scalar, a.dtype)
        return k.xp.where(c, number, a) if left else k.xp.where(c, a, number)

    body.shape(lambda p, ins, outs: (ins, [_broadcast(*ins)]))
    body.dtype(lambda p, ins, outs: ([ins[0], ins[1] or outs[0]], [ins[1] or outs[0]]))
    return body


def _as(value: float, dtype: Any) -> Any:
    """A number in a dtype, as a scalar of NumPy's."""
    if dtype.kind in "iu":
        return wrapped(value, dtype)
    with np.errstate(over="ignore"):
        return np.asarray(value).astype(dtype)[()]


WHERE_NUMBERS = [_where_number("_npi_where_lscalar", True), _where_number("_npi_where_rscalar", False)]


@op("_npi_where_scalar2", inputs="condition", x=Float(0.0), y=Float(0.0), grad=None)
def where_numbers(k: Call, p: Params, condition: Array) -> Array:
    """One number where `condition` is not zero, another one elsewhere, as float32.

    Parameters
    ----------
    condition : array
    x, y : float
    """
    return k.xp.where(condition != 0, _as(p.x, _F32), _as(p.y, _F32))


where_numbers.dtype(lambda p, ins, outs: (ins, [_F32]))


def _masked(p: Params, data: tuple[int, ...], mask: tuple[int, ...]) -> None:
    part = data[p.start_axis : p.start_axis + len(mask)]
    if part != mask:
        raise ValueError(f"mask {mask} must have the shape of data {data} from axis {p.start_axis} on, {part}")


@op(
    "_npi_boolean_mask_assign_scalar",
    inputs="data mask",
    value=Float(),
    start_axis=Int(0, ge=0),
    alias="data->output",
    grad=lambda F, p, dy, mask: (F._npi_boolean_mask_assign_scalar(dy, mask, value=0.0, start_axis=p.start_axis), None),
)
def assign_number(k: Call, p: Params, data: Array, mask: Array) -> Array:
    """`data` with a number where `mask` is true.

    Parameters
    ----------
    data : array
    mask : array
        Of the shape of some dimensions of `data`.
    value : float
    start_axis : int
        The first of these dimensions.
    """
    out = data.copy()
    out[(slice(None),) * p.start_axis + (mask != 0,)] = _as(p.value, data.dtype)
    return out


@assign_number.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    _masked(p, *ins)
    return [ins[0]]


assign_number.dtype(first_dtype)


def _places(k: Call, p: Params, mask: Array) -> Any:
    """The index of the places where a mask is true: how many there are must be known where arrays go in."""
    return (slice(None),) * p.start_axis + tuple(k.xp.nonzero(mask != 0))


@op(
    "_npi_boolean_mask_assign_tensor",
    inputs="data mask value",
    start_axis=Int(0, ge=0),
    alias="data->output",
    grad=lambda F, p, dy, mask, like_value: (
        F._npi_boolean_mask_assign_scalar(dy, mask, value=0.0, start_axis=p.start_axis),
        None,
        F._backward_npi_boolean_mask_assign(dy, mask, like_value, start_axis=p.start_axis),
    ),
)
def assign_array(k: Call, p: Params, data: Array, mask: Array, value: Array) -> Array:
    """`data` with the elements of another array where `mask` is true.

    Parameters
    ----------
    data : array
    mask : array
        Of the shape of some dimensions of `data`.
    value : array
        As many as places, or what is broadcast to them.
    start_axis : int
        The first of these dimensions.
    """
    out = data.copy()
    out[_places(k, p, mask)] = value
    return out


@assign_array.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    _masked(p, *ins[:2])
    return [ins[0]]


assign_array.dtype(first_dtype)


@op(
    "_backward_npi_boolean_mask_assign",
    inputs="dy mask value~",
    start_axis=Int(0, ge=0),
    grad=lambda F, p, d_output, like_dy, mask: (
        F._npi_boolean_mask_assign_tensor(F.zeros_like(like_dy), mask, d_output, start_axis=p.start_axis),
        None,
        None,
    ),
)
def backward_assign(k: Call, p: Params, dy: Array, mask: Array, value: Array) -> Array:
    """The gradient of what was put where `mask` is true.

    Parameters
    ----------
    dy : array
    mask : array
    value : array
        Only its shape is used.
    start_axis : int
        As in `_npi_boolean_mask_assign_tensor`.
    """
    part, shape = dy[_places(k, p, mask)], tuple(value.shape)
    lead = part.ndim - len(shape)
    axes = tuple(i for i in range(part.ndim) if i < lead or shape[i - lead] == 1 != part.shape[i])
    return (sum_over(part, axes, keepdims=True) if axes else part).reshape(shape)


@backward_assign.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    _masked(p, *ins[:2])
    return [ins[2]]


backward_assign.dtype(first_dtype)


@op("_npi_share_memory", inputs="a b", grad=None)
def share_memory(k: Call, p: Params, a: Array, b: Array) -> Array:
    """Whether two arrays share memory.

    Parameters
    ----------
    a, b : array
    """
    return k.xp.full((1,), bool(k.device.shares(a, b)), np.bool_)


share_memory.shape(lambda p, ins, outs: (ins, [(1,)]))
share_memory.dtype(lambda p, ins, outs: (ins, [np.dtype("bool")]))
