"""Images as columns of patches and back: im2col, col2im."""

from __future__ import annotations

from typing import Any

from ..._core.op import op
from ..._core.params import Params
from ...parameters import Shape
from ...typing import Array, Call
from ..common.rules import size_of
from .windows import Geometry, geometry, padded, windows

__all__: list[str] = []


WINDOW_PARAMS = {"kernel": Shape(), "stride": Shape(()), "dilate": Shape(()), "pad": Shape(())}


def _patch_geometry(p: Params) -> Geometry:
    return geometry(p.kernel, p.stride, p.dilate, p.pad)


def window_arguments(p: Params) -> dict[str, Any]:
    """The parameters of the windows, to hand on."""
    return {n: getattr(p, n) for n in WINDOW_PARAMS}


def column_shape(p: Params, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of the columns of data: (batch, channels * kernel, windows)."""
    if len(shape) != len(p.kernel) + 2:
        raise ValueError(
            f"data {shape} must have {len(p.kernel)} dimensions after batch and channel, as kernel {p.kernel}"
        )
    return shape[0], shape[1] * size_of(p.kernel), size_of(_patch_geometry(p).out(shape[2:]))


@op(
    "im2col",
    inputs="data",
    labels="inputs outputs",
    **WINDOW_PARAMS,
    grad=lambda F, p, dy, like_data: F._col2im_like(dy, like_data, **window_arguments(p)),
)
def im2col(k: Call, p: Params, data: Array) -> Array:
    """The patches that a convolution sees, as columns.

    Parameters
    ----------
    data : array, (batch, channel, height, width)
    kernel, stride, dilate, pad : tuple of int
        How the patches lie.

    Returns
    -------
    array, (batch, channel * elements of the kernel, patches)
    """
    xp, g = k.xp, _patch_geometry(p)
    out = g.out(data.shape[2:])
    x = padded(xp, data, g.pad, g.pad)
    cols = xp.empty((*data.shape[:2], *g.kernel, *out), data.dtype)
    for at, see in windows(g, out):
        cols[(slice(None),) * 2 + at] = x[(slice(None),) * 2 + see]
    return cols.reshape(column_shape(p, data.shape))


im2col.shape(lambda p, ins: [column_shape(p, ins[0])])


def images_from_columns(xp: Any, p: Params, cols: Any, shape: tuple[int, ...]) -> Any:
    """Add columns up at the places they were taken from."""
    g = _patch_geometry(p)
    out = g.out(shape[2:])
    cols = cols.reshape(*shape[:2], *g.kernel, *out)
    full = xp.zeros((*shape[:2], *(n + 2 * w for n, w in zip(shape[2:], g.pad))), cols.dtype)
    for at, see in windows(g, out):
        full[(slice(None),) * 2 + see] += cols[(slice(None),) * 2 + at]
    return full[(slice(None),) * 2 + tuple(slice(w, w + n) for w, n in zip(g.pad, shape[2:]))].copy()


def _image_shape(p: Params, cols: tuple[int, ...]) -> tuple[int, ...]:
    if len(p.output_size) != len(p.kernel):
        raise ValueError(f"output_size {p.output_size} must have as many dimensions as kernel {p.kernel}")
    if len(cols) != 3 or cols[1] % size_of(p.kernel):
        raise ValueError(
            f"data {cols} must have three dimensions, "
            f"the second a multiple of the kernel's {size_of(p.kernel)} elements"
        )
    shape = (cols[0], cols[1] // size_of(p.kernel), *p.output_size)
    if column_shape(p, shape) != cols:
        raise ValueError(f"data {cols} does not hold the patches of images {shape}, which are {column_shape(p, shape)}")
    return shape


@op(
    "col2im",
    inputs="data",
    labels="inputs outputs",
    output_size=Shape(),
    **WINDOW_PARAMS,
    grad=lambda F, p, dy: F.im2col(dy, **window_arguments(p)),
)
def col2im(k: Call, p: Params, data: Array) -> Array:
    """Add columns of patches up to images.

    Parameters
    ----------
    data : array, (batch, channel * elements of the kernel, patches)
    output_size : (int, int)
        Height and width of the images.
    kernel, stride, dilate, pad : tuple of int
        How the patches lie.
    """
    return images_from_columns(k.xp, p, data, _image_shape(p, data.shape))


col2im.shape(lambda p, ins: [_image_shape(p, ins[0])])
