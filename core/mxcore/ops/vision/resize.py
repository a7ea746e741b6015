"""Images of another size: averages over as many parts as wanted, bilinear interpolation.

Both are linear along each axis, and axes do not mix: a gradient is the product with the transposed matrices.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.infer import merge_shape
from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool, Enum, Float, Int, Shape
from ...typing import Array, Call
from ..common.bodies import silent, wide
from ..common.rules import floating, size_of

__all__ = ["RESIZE_PARAMS", "along_both_axes", "averaging_matrix", "bilinear_resize", "shares"]


def along_both_axes(xp: Any, x: Any, rows: Any, columns: Any) -> Any:
    """``rows @ x @ columns.T`` over the last two axes of (N, C, H, W)."""
    n, c, h, w = x.shape
    if not x.size:
        return xp.zeros((n, c, rows.shape[0], columns.shape[0]), x.dtype)
    x = xp.matmul(x.reshape(n * c * h, w), columns.T).reshape(n * c, h, columns.shape[0])
    return xp.matmul(rows, x).reshape(n, c, rows.shape[0], columns.shape[0])


# -- averages -------------------------------------------------------------------------------------------------------

_POOLED = dict(output_size=Shape(()))


def _parts(p: Params) -> tuple[int, int]:
    """Height and width of the output of the adaptive pooling."""
    size = p.output_size or (1,)
    if len(size) > 2 or min(size) < 1:
        raise ValueError(f"output_size must be one or two numbers of at least 1, got {p.output_size}")
    return size[0], size[-1]


def averaging_matrix(xp: Any, n: int, parts: int, dtype: Any) -> Any:
    """The matrix (parts, n) of averages over parts of about equal length, which overlap unless they come out even."""
    i = xp.arange(parts)
    start, end = (i * n // parts).reshape(-1, 1), (((i + 1) * n + parts - 1) // parts).reshape(-1, 1)
    at = xp.arange(n).reshape(1, -1)
    return ((at >= start) & (at < end)).astype(dtype) / (end - start).astype(dtype)


@op(
    "_contrib_AdaptiveAvgPooling2D",
    inputs="data",
    **_POOLED,
    grad=lambda F, p, dy, like_data: F._backward_AdaptiveAvgPooling2D(dy, like_data),
)
@silent
def adaptive_avg_pooling(k: Call, p: Params, data: Array) -> Array:
    """Average images over as many parts as wanted.

    Parameters
    ----------
    data : array
        Shape (N, C, H, W).
    output_size : int or (int, int)
        Number of parts, of both axes or of height and width; one unless told. Part i of m along n elements is from ``i
        * n // m`` to ``ceil((i + 1) * n / m)``.

    Returns
    -------
    array
        Shape (N, C, \\*output_size).

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``contrib.AdaptiveAvgPooling2D``.
    """
    xp, x = k.xp, wide(data)
    h, w = _parts(p)
    if (h, w) == (1, 1):
        return x.mean((2, 3), keepdims=True) if x.size else xp.zeros((*x.shape[:2], 1, 1), x.dtype)
    return along_both_axes(
        xp, x, averaging_matrix(xp, x.shape[2], h, x.dtype), averaging_matrix(xp, x.shape[3], w, x.dtype)
    )


@adaptive_avg_pooling.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    data, out = merge_shape(ins[0], (-1,) * 4), merge_shape(outs[0], (-1, -1, *_parts(p)))
    if 0 in data[2:]:
        raise ValueError(f"data {data} has no places to average over")
    kept = merge_shape(data[:2], out[:2])
    return [(*kept, *data[2:])], [(*kept, *out[2:])]


# -- interpolation --------------------------------------------------------------------------------------------------

_MODES = "like odd_scale size to_even_down to_even_up to_odd_down to_odd_up"
RESIZE_PARAMS = dict(
    height=Int(1, ge=1),
    width=Int(1, ge=1),
    scale_height=Float(None, ge=0),
    scale_width=Float(None, ge=0),
    mode=Enum(_MODES, "size"),
    align_corners=Bool(True),
)

#: mode -> the new length, from (length, wanted length, scale or None).
_LENGTHS: dict[str, Any] = {
    "size": lambda n, wanted, scale: wanted if scale is None else _scaled(n, scale),
    "odd_scale": lambda n, wanted, scale: _scaled(n - n % 2, scale) + n % 2,
    "to_even_down": lambda n, wanted, scale: n - n % 2,
    "to_even_up": lambda n, wanted, scale: n + n % 2,
    "to_odd_down": lambda n, wanted, scale: n - (n + 1) % 2,
    "to_odd_up": lambda n, wanted, scale: n + (n + 1) % 2,
}


def _scaled(n: int, scale: float) -> int:
    # In single precision, as in MXNet: where the product is nearly whole, it decides.
    return int(np.float32(n) * np.float32(scale))


def _resized(p: Params, shape: tuple[int, ...], like: Any) -> tuple[int, ...]:
    """Height and width of the result; -1 stays unknown."""
    if p.mode == "like":
        return (-1, -1) if like is None else tuple(like[2:])
    if (p.scale_height is None) != (p.scale_width is None) or p.mode == "odd_scale" and p.scale_height is None:
        raise ValueError(
            f"mode {p.mode} needs both scale_height and scale_width" + (", or neither" if p.mode == "size" else "")
        )
    asked = ((p.height, p.scale_height), (p.width, p.scale_width))
    length, always = _LENGTHS[p.mode], p.mode == "size" and p.scale_height is None
    found = tuple(-1 if n == -1 and not always else length(n, *q) for n, q in zip(shape[2:], asked))
    if 0 in found and 0 not in shape:
        raise ValueError(f"mode {p.mode} leaves nothing of {shape[2:]}: the result would be {found}")
    return found


def shares(xp: Any, n: int, m: int, align_corners: bool, dtype: Any) -> tuple[Any, Any, Any]:
    """How `m` places lie between `n`: the one before, the one after, and the latter's share, each of shape (m,)."""
    at = xp.arange(m, dtype=dtype)
    if align_corners:
        at = at * dtype.type((n - 1) / (m - 1) if m > 1 else 0)
    else:
        at = xp.maximum((at + dtype.type(0.5)) * dtype.type(n / max(m, 1)) - dtype.type(0.5), dtype.type(0))
    low = xp.minimum(at.astype(np.int64), max(n - 1, 0))
    return low, xp.minimum(low + 1, max(n - 1, 0)), at - low.astype(dtype)


def _stretched(xp: Any, x: Any, size: Any, align_corners: bool) -> Any:
    """Bilinear interpolation of (N, C, H, W) to another height and width."""
    if tuple(x.shape[2:]) == tuple(size):
        return x.copy()
    for axis, m in ((2, size[0]), (3, size[1])):
        low, high, share = shares(xp, x.shape[axis], m, align_corners, x.dtype)
        if axis == 2:
            share = share.reshape(-1, 1)
        x = xp.take(x, low, axis) * (1 - share) + xp.take(x, high, axis) * share
    return x


@op("_contrib_BilinearResize2D", inputs="data like~[mode=='like']", labels="inputs", **RESIZE_PARAMS)
def bilinear_resize(k: Call, p: Params, data: Array, like: Array = None) -> Array:
    """Resize images by bilinear interpolation.

    Parameters
    ----------
    data : array
        Shape (N, C, H, W).
    like : array
        In mode ``like``, an array of the wanted height and width; only its shape is used.
    height, width : int
        Size of the result, in mode ``size`` without scales.
    scale_height, scale_width : float, optional
        Factors, in the modes ``size`` and ``odd_scale``; both or neither.
    mode : {'size', 'like', 'odd_scale', 'to_even_down', 'to_even_up', 'to_odd_down', 'to_odd_up'}
        How the new lengths follow; ``odd_scale`` scales the even part of a length and keeps it odd or even-based as it
        was, the others give the nearest even or odd length below or above.
    align_corners : bool
        The first and the last places of both sizes coincide; else the outer edges of the images do.

    Returns
    -------
    array
        Shape (N, C, new height, new width).

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``contrib.BilinearResize2D``.
    """
    x = wide(data)
    return _stretched(k.xp, x, _resized(p, x.shape, None if like is None else like.shape), p.align_corners)


@bilinear_resize.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    data, out = merge_shape(ins[0], (-1,) * 4), merge_shape(outs[0], (-1,) * 4)
    like = [merge_shape(s, (-1,) * 4) for s in ins[1:]]
    kept = merge_shape(data[:2], out[:2])
    size = merge_shape(_resized(p, data, like[0] if like else None), out[2:])
    if 0 in data[2:]:
        raise ValueError(f"data {data} has no places to interpolate between")
    return [(*kept, *data[2:]), *[(*s[:2], *size) for s in like]], [(*kept, *size)]


adaptive_avg_pooling.dtype(floating())


@bilinear_resize.dtype
@floating
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    t = ins[0] or outs[0]
    return [t, *(like or t for like in ins[1:])], [t]


for _op in (adaptive_avg_pooling, bilinear_resize):
    _op.cost(lambda p, ins, outs: 6 * (size_of(ins[0]) + size_of(outs[0])))
