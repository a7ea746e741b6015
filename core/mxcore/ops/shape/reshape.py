"""The same elements in another shape, and shapes as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.infer import known, merge_shape
from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool, Int, Shape
from ...typing import Array, Call
from ..common.rules import axes_of, axis_of, size_of
from .reshape_codes import resolve_shape

__all__ = ["reshape_like"]


_INT64, _F32 = np.dtype("int64"), np.dtype("float32")


@op("shape_array", inputs="data~", grad=None)
def shape_array(k: Call, p: Params, data: Array) -> Array:
    """The shape, as an array of int64.

    Parameters
    ----------
    data : array
        Only its shape is used.
    """
    return k.xp.asarray(data.shape, dtype=np.int64)


shape_array.shape(lambda p, ins: [(len(ins[0]),)])
shape_array.dtype(lambda p, ins, outs: (ins, [_INT64]))


@op("size_array", inputs="data~", grad=None)
def size_array(k: Call, p: Params, data: Array) -> Array:
    """The number of elements, as an array of int64.

    Parameters
    ----------
    data : array
        Only its shape is used.
    """
    return k.xp.full((1,), size_of(data.shape), np.int64)


size_array.shape(lambda p, ins, outs: (ins, [(1,)]))
size_array.dtype(lambda p, ins, outs: (ins, [_INT64]))


def _target(p: Params) -> tuple[tuple[int, ...], bool]:
    """The codes of a Reshape: `shape`, or MXNet 0.x's `target_shape` (0 infers, `keep_highest` copies the first)."""
    if p.shape or not p.target_shape:
        return p.shape, p.reverse
    codes = tuple(-1 if d == 0 else d for d in p.target_shape)
    return ((0, *codes[1:]) if p.keep_highest else codes), False


@op(
    "Reshape",
    "reshape",
    inputs="data",
    role="other shape",
    expr="data",
    identity=True,
    shape=Shape(()),
    reverse=Bool(False),
    target_shape=Shape((), optional=True),
    keep_highest=Bool(False),
    view=True,
    grad=lambda F, dy, like_data: F.reshape_like(dy, like_data),
)
def reshape(k: Call, p: Params, data: Array) -> Array:
    """Give the elements another shape.

    Parameters
    ----------
    data : array
    shape : tuple of int
        Lengths, or codes: 0 copies a dimension, -1 is inferred, -2 copies all that remain, -3 merges two, -4 splits
        one.
    reverse : bool
        Read the codes from right to left; the two lengths of a -4 then stand before it.
    target_shape, keep_highest
        The spelling of MXNet 0.x.
    """
    return data.reshape(resolve_shape(data.shape, *_target(p)))


@reshape.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    codes, reverse = _target(p)
    (src,), (dst,) = ins, outs
    if src is not None:
        dst = merge_shape(dst, resolve_shape(src, codes, reverse))
    elif not any(c <= 0 for c in codes):
        dst = tuple(codes)
    if src is not None and dst is not None and src.count(-1) == 1 and known(dst):
        rest = size_of(d for d in src if d != -1)
        if rest and size_of(dst) % rest == 0:
            src = tuple(size_of(dst) // rest if d == -1 else d for d in src)
    return [src], [dst]


@op(
    "reshape_like",
    inputs="lhs rhs~",
    lhs_begin=Int(None),
    lhs_end=Int(None),
    rhs_begin=Int(None),
    rhs_end=Int(None),
    view=True,
    expr="lhs",
    identity=True,
    grad=lambda F, dy, like_lhs: (F.reshape_like(dy, like_lhs), None),
)
def reshape_like(k: Call, p: Params, lhs: Array, rhs: Array) -> Array:
    """Reshape `lhs` to the shape of `rhs`, or a range of its dimensions to a range of those of `rhs`.

    Parameters
    ----------
    lhs : array
    rhs : array
        Only its shape is used.
    lhs_begin, lhs_end, rhs_begin, rhs_end : int, optional
        The ranges of dimensions.
    """
    return lhs.reshape(_like_shape(p, tuple(lhs.shape), tuple(rhs.shape)))


def _like_shape(p: Params, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    (ab, ae), (bb, be) = _dimensions(p, "lhs", len(a)), _dimensions(p, "rhs", len(b))
    out = a[:ab] + b[bb:be] + a[ae:]
    if size_of(out) != size_of(a):
        raise ValueError(f"{a} cannot be reshaped to {out}")
    return out


def _dimensions(p: Params, side: str, ndim: int) -> tuple[int, int]:
    """The range of dimensions that `<side>_begin` and `<side>_end` give."""
    found = []
    for name, default in (("begin", 0), ("end", ndim)):
        d = getattr(p, f"{side}_{name}")
        if d is not None and not -ndim <= d <= ndim:
            raise ValueError(f"{side}_{name}={d} is out of range for the {ndim} dimensions of {side}")
        found.append(default if d is None else d + ndim if d < 0 else d)
    if found[0] > found[1]:
        raise ValueError(f"{side}_begin={found[0]} lies behind {side}_end={found[1]}")
    return found[0], found[1]


@reshape_like.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    a, b = ins
    return ins, [_like_shape(p, a, b) if known(a) and known(b) else None]


reshape_like.dtype(lambda p, ins, outs: ([ins[0] or outs[0], ins[1]], [ins[0] or outs[0]]))


@op(
    "Flatten",
    "flatten",
    inputs="data",
    view=True,
    expr="data",
    identity=True,
    grad=lambda F, dy, like_data: F.reshape_like(dy, like_data),
)
def flatten(k: Call, p: Params, data: Array) -> Array:
    """Collapse all dimensions but the first.

    Parameters
    ----------
    data : array
    """
    return data.reshape(data.shape[0], size_of(data.shape[1:]))


flatten.shape(lambda p, ins: [(ins[0][0], size_of(ins[0][1:]))])


@op(
    "expand_dims",
    inputs="data",
    axis=Int(),
    view=True,
    expr="data",
    grad=lambda F, dy, like_data: F.reshape_like(dy, like_data),
)
def expand_dims(k: Call, p: Params, data: Array) -> Array:
    """Insert a dimension of length 1.

    Parameters
    ----------
    data : array
    axis : int
        Where, in the result.
    """
    axis = axis_of(p.axis, data.ndim + 1, " of the result")
    return data.reshape(data.shape[:axis] + (1,) + data.shape[axis:])


@expand_dims.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    if ins[0] is not None:
        axis = axis_of(p.axis, len(ins[0]) + 1, " of the result")
        return ins, [ins[0][:axis] + (1,) + ins[0][axis:]]
    if outs[0] is not None:
        axis = axis_of(p.axis, len(outs[0]))
        return [outs[0][:axis] + outs[0][axis + 1 :]], outs
    return ins, outs


def _squeezed(p: Params, shape: tuple[int, ...]) -> tuple[int, ...]:
    if p.axis is None:
        out = tuple(d for d in shape if d != 1)
    else:
        axes = axes_of(p.axis, len(shape)) if p.axis else ()
        for a in axes:
            if shape[a] not in (1, -1):
                raise ValueError(f"axis {a} has length {shape[a]}; only axes of length 1 can be removed")
        out = tuple(d for i, d in enumerate(shape) if i not in axes)
    return out or (1,)


@op(
    "squeeze",
    inputs="data",
    labels="inputs",
    axis=Shape(None),
    view=True,
    expr="data",
    grad=lambda F, dy, like_data: F.reshape_like(dy, like_data),
)
def squeeze(k: Call, p: Params, data: Array) -> Array:
    """Remove dimensions of length 1.

    Parameters
    ----------
    data : array
    axis : int or tuple of int, optional
        Which; all of length 1 unless told, none if ().
    """
    return data.reshape(_squeezed(p, data.shape))


squeeze.shape(lambda p, ins: [_squeezed(p, ins[0])])
