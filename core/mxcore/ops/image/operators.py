"""Images, as ``mx.nd.image`` has them: tensors, sizes; (height, width, channels) unless said otherwise."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool, Floats, Int, Shape
from ...typing import Array, Call
from ..common.bodies import wide
from ..common.rules import size_of
from . import colours, opencv, resampling

__all__ = [
    "CROP_PARAMS",
    "RESIZE_PARAMS",
    "check_one_or_many",
    "crop",
    "crop_index",
    "resizable",
    "resize",
    "resize_dtypes",
    "resized",
    "to_tensor",
]


_F32 = np.dtype("float32")


def check_one_or_many(what: str, shape: tuple[int, ...], axes: str = "height, width, channels") -> None:
    """Raise ValueError unless a shape is that of one image or of a batch."""
    if len(shape) not in (3, 4):
        raise ValueError(f"{what} must be ({axes}) or (N, {axes}), got {shape}")


# -- tensors --------------------------------------------------------------------------------------------------------


@op(
    "_image_to_tensor",
    inputs="data",
    labels="inputs",
    grad=lambda F, dy, like_data: F._backward_image_to_tensor(dy, like_data),
)
def to_tensor(k: Call, p: Params, data: Array) -> Array:
    """An image of values from 0 to 255 as a float32 tensor of values from 0 to 1, channels first.

    Parameters
    ----------
    data : array, (height, width, channels) or (N, height, width, channels)

    Returns
    -------
    array of float32, (channels, height, width) or (N, channels, height, width)

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``image.to_tensor``, which has no gradient for batches.
    """
    xp = k.xp
    out = xp.empty((*data.shape[:-3], data.shape[-1], *data.shape[-3:-1]), np.float32)
    out[...] = xp.moveaxis(data, -1, -3)
    out *= np.float32(1 / 255)
    return out


@to_tensor.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    check_one_or_many("data", ins[0])
    return [(*ins[0][:-3], ins[0][-1], *ins[0][-3:-1])]


to_tensor.dtype(lambda p, ins, outs: (ins, [_F32]))


def _channels(name: str, values: tuple[float, ...], channels: int, default: float) -> tuple[float, ...]:
    """One number for all channels, or one for each."""
    if len(values) not in (1, channels):
        if values != (default,) * 4:  # the default of the parameter fits any image
            raise ValueError(f"{name} must be one number or {channels}, one a channel, got {values}")
        return values[:1]
    return values


@functools.lru_cache(256)
def _moments(mean: tuple[float, ...], std: tuple[float, ...], channels: int, dtype: Any) -> tuple[Any, Any]:
    """Mean and standard deviation as arrays that broadcast with (channels, height, width)."""
    m, s = _channels("mean", mean, channels, 0.0), _channels("std", std, channels, 1.0)
    return np.asarray(m, dtype).reshape(-1, 1, 1), np.asarray(s, dtype).reshape(-1, 1, 1)


@op(
    "_image_normalize",
    inputs="data",
    labels="inputs",
    mean=Floats((0.0,) * 4),
    std=Floats((1.0,) * 4),
    grad=lambda F, p, dy: F._image_normalize(dy, mean=(0.0,), std=p.std),
)
def normalize(k: Call, p: Params, data: Array) -> Array:
    """``(data - mean) / std``, a mean and a standard deviation for each channel.

    Parameters
    ----------
    data : array, (channels, height, width) or (N, channels, height, width)
        1 or 3 channels; the result has its dtype.
    mean, std : float or tuple of float
        One for all, or one for each channel.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``image.normalize``, except that the defaults work.
    """
    x = wide(data) if data.dtype.kind == "f" else data.astype(np.float32)
    mean, std = map(k.xp.asarray, _moments(p.mean, p.std, x.shape[-3], x.dtype))
    x = x - mean
    x /= std
    return x


@normalize.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    check_one_or_many("data", ins[0], "channels, height, width")
    channels = ins[0][-3]
    if channels not in (1, 3):
        raise ValueError(f"data {ins[0]} must have 1 or 3 channels, as its axis before height and width")
    _channels("mean", p.mean, channels, 0.0)
    if 0 in _channels("std", p.std, channels, 1.0):
        raise ValueError(f"std must not hold 0, got {p.std}")
    return [ins[0]]


# -- windows and sizes ----------------------------------------------------------------------------------------------

CROP_PARAMS = {n: Int() for n in ("x", "y", "width", "height")}


def crop_index(p: Params) -> Any:
    """The NumPy index of the part that a crop keeps."""
    return (..., slice(p.y, p.y + p.height), slice(p.x, p.x + p.width), slice(None))


@op(
    "_image_crop",
    inputs="data",
    params=CROP_PARAMS,
    grad=lambda F, p, dy, like_data: F._backward_image_crop(
        dy, like_data, x=p.x, y=p.y, width=p.width, height=p.height
    ),
)
def crop(k: Call, p: Params, data: Array) -> Array:
    """Cut a window out of an image or a batch of images.

    Parameters
    ----------
    data : array, (height, width, channels) or (N, height, width, channels)
    x, y : int
        The window's left and upper edge.
    width, height : int
        Its size.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``image.crop``, which reads beside the image if `x` or `y` is negative.
    """
    return data[crop_index(p)].copy()


@crop.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    check_one_or_many("data", ins[0])
    *lead, h, w, c = ins[0]
    if p.x < 0 or p.y < 0 or p.width < 1 or p.height < 1 or p.x + p.width > w or p.y + p.height > h:
        raise ValueError(f"a window of {p.width}x{p.height} at ({p.x}, {p.y}) is not inside an image of {w}x{h}")
    return [(*lead, p.height, p.width, c)]


def resized(xp: Any, data: Any, new: tuple[int, int], method: int) -> Any:
    """Images (..., height, width, channels) of a new height and width: by OpenCV where it can, else by products."""
    if isinstance(data, np.ndarray) and data.dtype != np.float16:
        if data.ndim == 3:
            return opencv.resize(data, new[1], new[0], method)
        return (
            np.stack([opencv.resize(one, new[1], new[0], method) for one in data])
            if len(data)
            else np.zeros((0, *new, data.shape[3]), data.dtype)
        )
    x = wide(data) if data.dtype.kind == "f" else data.astype(np.float32)
    out = resampling.apply(xp, *resampling.matrices(xp, data.shape[-3:-1], new, method, x.dtype), x)
    return colours.as_image(xp, out if data.dtype.kind == "f" else xp.floor(out + 0.5), data.dtype)


def resize_dtypes(method: int) -> str:
    """The dtypes of samples: OpenCV has its weights in single precision only."""
    return "float32" if method else "float32 float64"


def resizable(name: str) -> Callable[..., Any]:
    """A dtype rule: what OpenCV can resize."""

    def rule(p: Params, ins: Any, outs: Any) -> Any:
        t = ins[0] if ins[0] is not None else outs[0]
        if t is not None and t.kind != "f" and t.name not in ("uint8", "int16", "uint16"):
            raise TypeError(f"{name} must be uint8, int16, uint16 or floats to be resized, got {t.name}; cast it")
        return [t], [t]

    return rule


RESIZE_PARAMS = {"size": Shape(()), "keep_ratio": Bool(False), "interp": Int(1, ge=0, le=4)}


@op(
    "_image_resize",
    inputs="data",
    params=RESIZE_PARAMS,
    grad=lambda F, p, dy, like_data: F._backward_image_resize(
        dy, like_data, size=p.size, keep_ratio=p.keep_ratio, interp=p.interp
    ),
)
def resize(k: Call, p: Params, data: Array) -> Array:
    """Resize an image or a batch of images.

    Parameters
    ----------
    data : array, (height, width, channels) or (N, height, width, channels)
        uint8, int16, uint16 or floats.
    size : int or (int, int)
        Width and height; one number stands for both.
    keep_ratio : bool
        With one number: make the shorter edge that long and keep the proportions.
    interp : int
        0 nearest, 1 bilinear, 2 cubic, 3 area, 4 Lanczos.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``image.resize``, by OpenCV on the CPU. It has no gradient in MXNet.
    """
    return resized(k.xp, data, resampling.new_size(p.size, p.keep_ratio, *data.shape[-3:-1]), p.interp)


@resize.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    check_one_or_many("data", ins[0])
    *lead, h, w, c = ins[0]
    if not h or not w:
        raise ValueError(f"data {ins[0]} has no pixels")
    return [(*lead, *resampling.new_size(p.size, p.keep_ratio, h, w), c)]


resize.dtype(resizable("data"))
resize.cost(lambda p, ins, outs: 4 * size_of(outs[0]))
