"""Copies and casts: the same values in another array, dtype or range, or cut off from the gradient."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._core.infer import merge_shape
from ..._core.op import op
from ..._core.params import Params
from ...elementwise import unary
from ...parameters import Bool, DType, Float, Int
from ...typing import Array, Call

__all__ = ["block_grad", "clip", "copy", "make_loss"]


copy = unary(
    "_copy",
    lambda xp, x: x.copy(),
    grad=lambda F, dy: dy,
    expr="x",
    identity=True,
    aliases=("identity",),
    role="new array",
    doc="A copy.",
)
block_grad = unary(
    "BlockGrad",
    lambda xp, x: x.copy(),
    grad=None,
    expr="x",
    identity=True,
    aliases=("stop_gradient",),
    doc="The same values, no gradient.",
)


@op(
    "make_loss",
    inputs="data",
    outputs="loss",
    alias="data->loss",
    expr="data",
    identity=True,
    labels="outputs",
    grad=lambda F, like_data: F.ones_like(like_data),
)
def make_loss(k: Call, p: Params, data: Array) -> Any:
    """Mark `data` as a loss: its gradient is one, whatever comes in.

    Parameters
    ----------
    data : array
        Any shape.
    """
    return data.copy()


@op(
    "Cast",
    "cast",
    inputs="data",
    dtype=DType(),
    role="other dtype",
    expr="data",
    identity=True,
    grad=lambda F, dy, like_data: F._cast_like(dy, like_data),
)
def cast(k: Call, p: Params, data: Array) -> Array:
    """Convert to another dtype; fractions are cut off.

    Parameters
    ----------
    data : array
    dtype : dtype
    """
    return data.astype(p.dtype)


cast.dtype(lambda p, ins, outs: (ins, [p.dtype]))


@op(
    "_cast_like",
    inputs="data like~",
    expr="data",
    identity=True,
    grad=lambda F, dy, like_data: (F._cast_like(dy, like_data), None),
)
def cast_like(k: Call, p: Params, data: Array, like: Array) -> Array:
    """Convert `data` to the dtype of `like`.

    Parameters
    ----------
    data : array
    like : array
        Only its dtype is used.
    """
    return data.astype(like.dtype)


cast_like.shape(lambda p, ins, outs: ([ins[0] or outs[0], ins[1]], [ins[0] or outs[0]]))
cast_like.dtype(lambda p, ins, outs: ([ins[0], ins[1]], [ins[1]]))


@op(
    "clip",
    inputs="data",
    a_min=Float(),
    a_max=Float(),
    expr="minimum(maximum(data, a_min), a_max)",
    grad=lambda F, p, dy, data: dy * ((data < p.a_min) + (data > p.a_max) == 0),
)
def clip(k: Call, p: Params, data: Array) -> Array:
    """Limit values to [a_min, a_max].

    Parameters
    ----------
    data : array
    a_min, a_max : float
    """
    if data.dtype.kind not in "iub":
        return k.xp.clip(data, data.dtype.type(p.a_min), data.dtype.type(p.a_max))
    return k.xp.clip(data, *[_whole(v, data.dtype) for v in (p.a_min, p.a_max)])


def _whole(bound: float, dtype: Any) -> int:
    """A bound for whole numbers."""
    if math.isfinite(bound):
        return int(bound)
    limits = np.iinfo(dtype) if dtype.kind != "b" else np.iinfo("uint8")
    return int(limits.max if bound > 0 else limits.min)


@clip.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    for name in ("a_min", "a_max"):
        if math.isnan(getattr(p, name)):
            raise ValueError(f"{name} must be a number, got nan; use -inf and inf for no bound")
    if p.a_min > p.a_max:
        raise ValueError(f"a_min must not be above a_max, got {p.a_min} and {p.a_max}")
    shape = merge_shape(ins[0], outs[0])
    return [shape], [shape]


def _is_float(t: Any) -> bool:
    """Whether mixed precision knows a dtype; it leaves float64 alone, as MXNet does."""
    return t.name in ("float32", "float16", "bfloat16")


def _cast(x: Any, dtype: Any) -> Any:
    return x.astype(dtype) if x.dtype != dtype else x.copy()


@op(
    "amp_cast",
    inputs="data",
    dtype=DType(),
    expr="data",
    identity=True,
    precision_cast=True,
    grad=lambda F, dy, like_data: F._cast_like(dy, like_data),
)
def amp_cast(k: Call, p: Params, data: Array) -> Array:
    """Convert float32, float16 or bfloat16 to another dtype; arrays of other dtypes stay as they are.

    Parameters
    ----------
    data : array
    dtype : dtype
    """
    return _cast(data, p.dtype) if _is_float(data.dtype) else data.copy()


@amp_cast.dtype
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    return ins, [None if ins[0] is None else p.dtype if _is_float(ins[0]) else ins[0]]


@op(
    "amp_multicast",
    inputs="data*",
    count="num_outputs",
    arg_names=lambda p: [f"data_{i}" for i in range(p.num_outputs)],
    params={"num_outputs": Int(ge=1, le=1 << 16)},
    cast_narrow=Bool(False),
    outputs=lambda p: ["output"] if p.num_outputs == 1 else [f"output{i}" for i in range(p.num_outputs)],
    precision_cast=True,
    grad=lambda F, dys, like_data: [[F._cast_like(g, x) for g, x in zip(dys, like_data)]],
)
def amp_multicast(k: Call, p: Params, *data: Array) -> Any:
    """Convert float32, float16 and bfloat16 arrays to the widest or narrowest dtype among them; others stay.

    Parameters
    ----------
    data : arrays
    num_outputs : int
        How many; counted for you.
    cast_narrow : bool
        The narrowest.
    """
    to = _common(p, [x.dtype for x in data])
    return [_cast(x, to) if _is_float(x.dtype) else x.copy() for x in data]


def _common(p: Params, dtypes: list[Any]) -> Any:
    found = sorted({t for t in dtypes if t is not None and _is_float(t)}, key=lambda t: t.itemsize)
    return None if not found else found[0] if p.cast_narrow else found[-1]


@amp_multicast.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    shapes = [merge_shape(a, b) for a, b in zip(ins, outs)]
    return shapes, shapes


@amp_multicast.dtype
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    to = None if any(t is None for t in ins) else _common(p, ins)
    return ins, [to if t is not None and _is_float(t) else t for t in ins]


@op(
    "_identity_with_attr_like_rhs",
    inputs="lhs rhs~",
    expr="lhs",
    identity=True,
    grad=lambda dy: (dy, None),
    alias="lhs->output",
)
def identity_like(k: Call, p: Params, lhs: Array, rhs: Array) -> Array:
    """A copy of `lhs`; a graph learns its shape and dtype from `rhs`.

    Parameters
    ----------
    lhs : array
    rhs : array
        Only its shape and dtype are used.
    """
    return lhs.copy()
