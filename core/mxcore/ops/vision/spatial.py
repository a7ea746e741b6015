"""Sampling images at given places: grids of places, bilinear sampling, the spatial transformer."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.infer import merge_shape
from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool, Enum, Shape
from ...typing import Array, Call
from ..common.bodies import wide
from ..common.gradients import given
from ..common.rules import floating, size_of

__all__ = [
    "GRID_PARAMS",
    "affine_grid",
    "bilinear_sampler",
    "corners",
    "half_lengths",
    "homogeneous_places",
    "pixels_at",
    "sample",
    "spatial_transformer",
]


# -- grids ----------------------------------------------------------------------------------------------------------

GRID_PARAMS = dict(transform_type=Enum("affine warp"), target_shape=Shape((0, 0)))


def _target(p: Params) -> tuple[int, int]:
    """The height and width that the caller asked for."""
    if len(p.target_shape) != 2 or min(p.target_shape) < 1:
        raise ValueError(f"target_shape must be a height and a width of at least 1, got {p.target_shape}")
    height, width = p.target_shape
    return height, width


def homogeneous_places(xp: Any, size: tuple[int, int], dtype: Any) -> Any:
    """Homogeneous coordinates of all places of an image, (3, height * width): x and y from -1 to 1, and 1."""
    h, w = size
    with np.errstate(all="ignore"):  # one row or column has no ends
        y, x = (xp.arange(n, dtype=dtype) * dtype.type(np.divide(2, n - 1)) - dtype.type(1) for n in size)
    full = xp.ones((3, h, w), dtype)
    full[0], full[1] = x.reshape(1, w), y.reshape(h, 1)
    return full.reshape(3, h * w)


def affine_grid(xp: Any, theta: Any, size: tuple[int, int]) -> Any:
    """Where each place of an image of this size is taken from, (N, 2, *size), by affine maps (N, 6)."""
    theta = wide(theta)
    return xp.matmul(theta.reshape(-1, 2, 3), homogeneous_places(xp, size, theta.dtype)).reshape(-1, 2, *size)


def half_lengths(xp: Any, shape: Any, dtype: Any) -> Any:
    """Half the lengths of an image, for x and for y."""
    return xp.asarray([(shape[3] - 1) / 2, (shape[2] - 1) / 2], dtype=dtype).reshape(1, 2, 1, 1)


@op(
    "GridGenerator",
    inputs="data",
    labels="inputs gradients outputs",
    mxnet_outputs=2,
    **GRID_PARAMS,
    grad=lambda F, p, dy: F._backward_GridGenerator(dy, **given(p, GRID_PARAMS)),
)
def grid_generator(k: Call, p: Params, data: Array) -> Array:
    """Places to sample an image at, from affine maps or from flows; (-1, -1) is its first and (1, 1) its last place.

    Parameters
    ----------
    data : array
        For ``affine`` one matrix of two rows and three columns per image, shape (N, 6); for ``warp`` a flow in places,
        shape (N, 2, H, W), its channels x and y.
    transform_type : {'affine', 'warp'}
    target_shape : (int, int)
        Height and width of the grid of ``affine``.

    Returns
    -------
    array
        Shape (N, 2, H, W), its channels x and y: what `BilinearSampler` takes.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``GridGenerator``. Source: Jaderberg et al., "Spatial transformer networks", 2015.
    """
    xp = k.xp
    if p.transform_type == "affine":
        return affine_grid(xp, data, _target(p))
    x = wide(data)
    n, _, h, w = x.shape
    here = xp.empty((1, 2, h, w), x.dtype)
    here[0, 0], here[0, 1] = xp.arange(w, dtype=x.dtype).reshape(1, w), xp.arange(h, dtype=x.dtype).reshape(h, 1)
    with np.errstate(all="ignore"):  # an image of one row or column has no ends
        return (x + here) / half_lengths(xp, x.shape, x.dtype) - x.dtype.type(1)


@grid_generator.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    if p.transform_type == "warp":
        flow = merge_shape(merge_shape(ins[0], outs[0]), (-1, 2, -1, -1))
        return [flow], [flow]
    out = merge_shape(outs[0], (-1, 2, *_target(p)))
    theta = merge_shape(ins[0], (out[0], 6))
    return [theta], [(theta[0], *out[1:])]


# -- sampling -------------------------------------------------------------------------------------------------------


def _axis(xp: Any, place: Any, n: int) -> tuple[Any, Any, Any]:
    """Along one axis of `n`: the place before, and the share of it and of the one after."""
    real = place.dtype.type
    at = (place + real(1)) * real((n - 1) / 2)
    low = xp.floor(at)
    after = at - low
    return low, 1 - after, after


def corners(xp: Any, grid: Any, h: int, w: int) -> list[tuple[Any, Any, Any, Any, Any, Any]]:
    """The four neighbours of each place of a grid (N, 2, *size).

    For each: its index in the flattened image, whether it is inside, its shares in y and in x, and the derivatives of
    both by the place in the image; all of shape (N, 1, places).
    """
    n, places = grid.shape[0], size_of(grid.shape[2:])
    x0, xa, xb = _axis(xp, grid[:, 0].reshape(n, 1, places), w)
    y0, ya, yb = _axis(xp, grid[:, 1].reshape(n, 1, places), h)
    found = []
    for y, sy, dy in ((y0, ya, -1), (y0 + 1, yb, 1)):
        for x, sx, dx in ((x0, xa, -1), (x0 + 1, xb, 1)):
            inside = (y >= 0) & (y < h) & (x >= 0) & (x < w)
            index = (
                xp.where(inside, y * w + x, 0).astype(np.int64)
                if h * w < 1 << 24
                else xp.where(inside, y, 0).astype(np.int64) * w + xp.where(inside, x, 0).astype(np.int64)
            )
            found.append((index, inside, sy, sx, dy, dx))
    return found


def pixels_at(xp: Any, flat: Any, index: Any, inside: Any) -> Any:
    """What the images (N, C, H*W) hold at an index; zero outside."""
    taken = xp.take_along_axis(flat, xp.broadcast_to(index, (*flat.shape[:2], index.shape[2])), 2)
    return xp.where(inside, taken, flat.dtype.type(0))


def sample(xp: Any, data: Any, grid: Any) -> Any:
    """Values of images (N, C, H, W) between their places, at a grid (N, 2, *size): (N, C, *size)."""
    n, c, h, w = data.shape
    x, grid = wide(data).reshape(n, c, h * w), wide(grid)
    size = tuple(grid.shape[2:])
    total = xp.zeros((n, c, size_of(size)), x.dtype)
    if total.size and h * w:
        with np.errstate(all="ignore"):  # places may be infinite or NaN
            for index, inside, sy, sx, _, _ in corners(xp, grid, h, w):
                total += pixels_at(xp, x, index, inside) * (sy * sx)
    return total.reshape(n, c, *size)


_SAMPLER = dict(cudnn_off=Bool(None))


@op(
    "BilinearSampler",
    inputs="data grid",
    labels="gradients outputs",
    mxnet_outputs=2,
    **_SAMPLER,
    grad=lambda F, p, dy, data, grid, needs: F._backward_BilinearSampler(dy, data, grid, wanted=tuple(needs)),
)
def bilinear_sampler(k: Call, p: Params, data: Array, grid: Array) -> Array:
    """Sample images at places between theirs, by bilinear interpolation; outside they are zero.

    Parameters
    ----------
    data : array
        Images, shape (N, C, H, W).
    grid : array
        Places, shape (N, 2, h, w), its channels x and y: (-1, -1) is the first and (1, 1) the last place of an image.
    cudnn_off : bool, optional
        A hint of MXNet's own backend; no effect.

    Returns
    -------
    array
        Shape (N, C, h, w).

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``BilinearSampler``. Source: Jaderberg et al., "Spatial transformer networks", 2015.
    """
    return sample(k.xp, data, grid)


@bilinear_sampler.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    data, grid, out = (merge_shape(s, (-1, m, -1, -1)) for s, m in zip((*ins, *outs), (-1, 2, -1)))
    n = merge_shape(merge_shape(data[:1], grid[:1]), out[:1])
    channels, size = merge_shape(data[1:2], out[1:2]), merge_shape(grid[2:], out[2:])
    return [(*n, *channels, *data[2:]), (*n, 2, *size)], [(*n, *channels, *size)]


_TRANSFORMER = dict(
    target_shape=Shape((0, 0)), transform_type=Enum("affine"), sampler_type=Enum("bilinear"), cudnn_off=Bool(None)
)


@op("SpatialTransformer", inputs="data loc", labels="gradients outputs", mxnet_outputs=3, **_TRANSFORMER)
def spatial_transformer(k: Call, p: Params, data: Array, loc: Array) -> Array:
    """Move, turn and scale images: `BilinearSampler` at the places that `GridGenerator` makes of affine maps.

    Parameters
    ----------
    data : array
        Images, shape (N, C, H, W).
    loc : array
        One matrix of two rows and three columns per image, shape (N, 6): from places of the output to those of the
        image.
    target_shape : (int, int)
        Height and width of the output.
    transform_type : {'affine'}
    sampler_type : {'bilinear'}
    cudnn_off : bool, optional
        A hint of MXNet's own backend; no effect.

    Returns
    -------
    array
        Shape (N, C, \\*target_shape).

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``SpatialTransformer``. Source: Jaderberg et al., "Spatial transformer networks",
    2015.
    """
    return sample(k.xp, data, affine_grid(k.xp, loc, _target(p)))


@spatial_transformer.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    data, loc, out = (
        merge_shape(ins[0], (-1,) * 4),
        merge_shape(ins[1], (-1, 6)),
        merge_shape(outs[0], (-1, -1, *_target(p))),
    )
    n = merge_shape(merge_shape(data[:1], loc[:1]), out[:1])
    channels = merge_shape(data[1:2], out[1:2])
    return [(*n, *channels, *data[2:]), (*n, 6)], [(*n, *channels, *out[2:])]


for _op in (grid_generator, bilinear_sampler, spatial_transformer):
    _op.dtype(floating())
for _op in (bilinear_sampler, spatial_transformer):
    _op.cost(lambda p, ins, outs: 16 * size_of(outs[0]))
