"""Gradients of the operators of :mod:`mxcore.ops.image`."""

from __future__ import annotations

import numpy as np

from ..._core.op import op
from ..._core.params import Params
from ...typing import Array, Call
from ..common.bodies import wide
from ..common.rules import gradient_of
from . import resampling
from .operators import CROP_PARAMS, RESIZE_PARAMS, crop, crop_index, resize, to_tensor

__all__: list[str] = []


@op("_backward_image_to_tensor", inputs="dy like~", grad=lambda F, dys: (F._image_to_tensor(dys[0]), None))
def backward_to_tensor(k: Call, p: Params, dy_: Array, like: Array) -> Array:
    """The gradient of `to_tensor`.

    Parameters
    ----------
    dy : array, (..., channels, height, width)
    like : array
        The image; only shape and dtype are used.
    """
    return k.xp.moveaxis(dy_, -3, -1) * np.float32(1 / 255)


backward_to_tensor.shape(gradient_of(lambda p, ins: to_tensor.shape_rule(p, ins)[0]))
backward_to_tensor.dtype(lambda p, ins, outs: (ins, [ins[1] or outs[0]]))


@op(
    "_backward_image_crop",
    inputs="dy like~",
    params=CROP_PARAMS,
    grad=lambda F, p, dys: (F._image_crop(dys[0], x=p.x, y=p.y, width=p.width, height=p.height), None),
)
def backward_crop(k: Call, p: Params, dy_: Array, like: Array) -> Array:
    """The gradient of `crop`: zero around the window.

    Parameters
    ----------
    dy : array
        Gradient of the window.
    like : array
        The image; only its shape is used.
    x, y, width, height : int
        As in `crop`.
    """
    out = k.xp.zeros(like.shape, dy_.dtype)
    out[crop_index(p)] = dy_
    return out


backward_crop.shape(gradient_of(lambda p, ins: crop.shape_rule(p, ins)[0]))


@op(
    "_backward_image_resize",
    inputs="dy like~",
    params=RESIZE_PARAMS,
    grad=lambda F, p, dys: (F._image_resize(dys[0], size=p.size, keep_ratio=p.keep_ratio, interp=p.interp), None),
)
def backward_resize(k: Call, p: Params, dy_: Array, like: Array) -> Array:
    """The gradient of `resize`.

    Parameters
    ----------
    dy : array
        Gradient of the resized images.
    like : array
        The images; only their shape is used.
    size, keep_ratio, interp
        As in `resize`.
    """
    xp, old = k.xp, tuple(like.shape[-3:-1])
    new = resampling.new_size(p.size, p.keep_ratio, *old)
    x = wide(dy_)
    y, w = resampling.matrices(xp, old, new, p.interp, x.dtype)
    return resampling.apply(xp, y.T, w.T, x)


backward_resize.shape(gradient_of(lambda p, ins: resize.shape_rule(p, ins)[0]))
