"""The same elements in another order: axes swapped or reversed, blocks to channels and back, diagonals."""

from __future__ import annotations

from typing import Any

from ..._core.infer import merge_shape
from ..._core.op import op
from ..._core.params import Params
from ...parameters import Int, Shape
from ...typing import Array, Call
from ..common.rules import axes_of, axis_of, partly, times

__all__ = ["inverse", "permutation"]


def permutation(p: Params, n: int) -> tuple[int, ...]:
    """The order of axes that a transpose is asked for."""
    axes = tuple(axis_of(a, n) for a in p.axes) if p.axes else tuple(reversed(range(n)))
    if sorted(axes) != list(range(n)):
        raise ValueError(f"axes {p.axes} are no permutation of {n} dimensions")
    return axes


def inverse(axes: tuple[int, ...]) -> tuple[int, ...]:
    """The order of axes that undoes one."""
    return tuple(axes.index(i) for i in range(len(axes)))


@op(
    "transpose",
    inputs="data",
    axes=Shape(()),
    grad=lambda F, p, dy: F.transpose(dy, axes=inverse(tuple(a % len(p.axes) for a in p.axes))),
)
def transpose(k: Call, p: Params, data: Array) -> Array:
    """Permute the axes.

    Parameters
    ----------
    data : array
    axes : tuple of int, optional
        Reversed unless told.
    """
    return k.xp.ascontiguousarray(data.transpose(permutation(p, data.ndim)))


@transpose.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    src, dst = ins[0], outs[0]
    if src is not None:
        axes = permutation(p, len(src))
        return [src], [tuple(src[a] for a in axes)]
    if dst is not None:
        axes = inverse(permutation(p, len(dst)))
        return [tuple(dst[a] for a in axes)], [dst]
    return ins, outs


@op(
    "SwapAxis",
    "swapaxes",
    inputs="data",
    labels="inputs gradients outputs",
    dim1=Int(0),
    dim2=Int(0),
    grad=lambda F, p, dy: F.SwapAxis(dy, dim1=p.dim1, dim2=p.dim2),
)
def swapaxes(k: Call, p: Params, data: Array) -> Array:
    """Exchange two axes.

    Parameters
    ----------
    data : array
    dim1, dim2 : int
    """
    return k.xp.ascontiguousarray(k.xp.swapaxes(data, axis_of(p.dim1, data.ndim), axis_of(p.dim2, data.ndim)))


def _swapped(p: Params, shape: tuple[int, ...]) -> tuple[int, ...]:
    i, j = axis_of(p.dim1, len(shape)), axis_of(p.dim2, len(shape))
    out = list(shape)
    out[i], out[j] = out[j], out[i]
    return tuple(out)


@swapaxes.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    src, dst = ins[0], outs[0]
    return [src if dst is None else _swapped(p, dst)], [dst if src is None else _swapped(p, src)]


@op("reverse", "flip", inputs="data", labels="inputs", axis=Shape(), grad=lambda F, p, dy: F.reverse(dy, axis=p.axis))
def reverse(k: Call, p: Params, data: Array) -> Array:
    """Reverse the order along axes.

    Parameters
    ----------
    data : array
    axis : int or tuple of int
    """
    axes = axes_of(p.axis, data.ndim) if p.axis else ()
    return data[tuple(slice(None, None, -1) if i in axes else slice(None) for i in range(data.ndim))].copy()


@reverse.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    shape = merge_shape(ins[0], outs[0])
    if shape is not None:
        axes_of(p.axis, len(shape))
    return [shape], [shape]


def _blocks(p: Params, shape: tuple[int, ...]) -> tuple[int, int, int, int]:
    if len(shape) != 4:
        raise ValueError(f"the array must have 4 dimensions (batch, channel, height, width), not {len(shape)}")
    return shape


def _deep_to_wide(p: Params, shape: tuple[int, ...]) -> tuple[int, ...]:
    n, c, h, w = _blocks(p, shape)
    if c != -1 and c % p.block_size**2:
        raise ValueError(f"{c} channels are no multiple of block_size**2 = {p.block_size**2}")
    return n, c // p.block_size**2, times(p.block_size, h), times(p.block_size, w)


def _wide_to_deep(p: Params, shape: tuple[int, ...]) -> tuple[int, ...]:
    n, c, h, w = _blocks(p, shape)
    if any(d != -1 and d % p.block_size for d in (h, w)):
        raise ValueError(f"height and width of {shape} must be multiples of block_size = {p.block_size}")
    return n, times(p.block_size**2, c), h // p.block_size, w // p.block_size


@op(
    "depth_to_space",
    inputs="data",
    labels="inputs",
    block_size=Int(ge=1),
    grad=lambda F, p, dy: F.space_to_depth(dy, block_size=p.block_size),
)
def depth_to_space(k: Call, p: Params, data: Array) -> Array:
    """Lay channels out as blocks of pixels.

    Parameters
    ----------
    data : array, (batch, block_size**2 * channel, height, width)
    block_size : int
        Edge of the blocks.
    """
    n, c, h, w = data.shape
    b = p.block_size
    blocks = data.reshape(n, b, b, c // (b * b), h, w).transpose(0, 3, 4, 1, 5, 2)
    return blocks.reshape(_deep_to_wide(p, data.shape))


depth_to_space.shape(partly(_deep_to_wide))


@op(
    "space_to_depth",
    inputs="data",
    labels="inputs",
    block_size=Int(ge=1),
    grad=lambda F, p, dy: F.depth_to_space(dy, block_size=p.block_size),
)
def space_to_depth(k: Call, p: Params, data: Array) -> Array:
    """Lay blocks of pixels out as channels.

    Parameters
    ----------
    data : array, (batch, channel, block_size * height, block_size * width)
    block_size : int
        Edge of the blocks.
    """
    n, c, h, w = data.shape
    b = p.block_size
    blocks = data.reshape(n, c, h // b, b, w // b, b).transpose(0, 3, 5, 1, 2, 4)
    return blocks.reshape(_wide_to_deep(p, data.shape))


space_to_depth.shape(partly(_wide_to_deep))


def diagonal_axes(p: Params, ndim: int) -> tuple[int, int]:
    """The two axes of the matrices, counted from the front, which must differ."""
    i, j = axis_of(p.axis1, ndim), axis_of(p.axis2, ndim)
    if i == j:
        raise ValueError(f"axis1 and axis2 must differ, both are {i}")
    return i, j


def diagonal_shape(p: Params, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of the diagonals, or of the matrix with this diagonal."""
    if len(shape) == 1:
        return (shape[0] + abs(p.k),) * 2
    i, j = diagonal_axes(p, len(shape))
    n = min(shape[i], shape[j] - p.k) if p.k >= 0 else min(shape[i] + p.k, shape[j])
    if n < 0:
        raise ValueError(f"a matrix of shape {(shape[i], shape[j])} has no diagonal k={p.k}")
    return (*(d for a, d in enumerate(shape) if a not in (i, j)), n)


DIAG_PARAMS = {"k": Int(0), "axis1": Int(0), "axis2": Int(1)}


@op(
    "diag",
    inputs="data",
    labels="inputs",
    **DIAG_PARAMS,
    grad=lambda F, p, dy, like_data: F._diag_spread(dy, like_data, k=p.k, axis1=p.axis1, axis2=p.axis2),
)
def diag(k: Call, p: Params, data: Array) -> Array:
    """A diagonal of the matrices that two axes make; of a 1-D array, the matrix with it on the diagonal.

    Parameters
    ----------
    data : array
    k : int
        Which diagonal: above the main one if positive, below if negative.
    axis1, axis2 : int
        The axes of the rows and columns.
    """
    if data.ndim == 1:
        return k.xp.diag(data, p.k)
    return k.xp.diagonal(data, p.k, *diagonal_axes(p, data.ndim)).copy()


diag.shape(lambda p, ins: [diagonal_shape(p, ins[0])])
