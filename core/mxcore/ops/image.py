"""Images, as ``mx.nd.image`` has them: tensors, sizes, flips, colours; (height, width, channels) unless said otherwise.

Single random choices (a factor, a flip) are drawn on the host from the call's key, so they are equal on every device
and wait for none.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core.op import Op, op
from ..parameters import Bool, Float, Floats, Int, Shape
from ..philox import Rng
from . import colours, opencv, resampling
from .dense import wide
from .rules import gradient_of, size_of

__all__ = ["AUGMENTERS", "chance", "resizable", "resize_dtypes", "resized"]

_F32 = np.dtype("float32")


class _Host:
    """The least of a device that random numbers need."""

    xp, dtypes = np, None

    @staticmethod
    def from_host(a: Any, index: int) -> Any:
        return a


def chance(k: Any) -> Rng:
    """The random numbers of a call, on the host."""
    return Rng(_Host, k.key, 0)  # type: ignore[arg-type]


def _one_or_many(what: str, shape: tuple[int, ...], axes: str = "height, width, channels") -> None:
    if len(shape) not in (3, 4):
        raise ValueError(f"{what} must be ({axes}) or (N, {axes}), got {shape}")


def _image_or_images(p: Any, ins: Any) -> Any:
    _one_or_many("data", ins[0])
    return [ins[0]]


# -- tensors --------------------------------------------------------------------------------------------------------


@op(
    "_image_to_tensor",
    inputs="data",
    labels="inputs",
    grad=lambda F, dy, like_data: F._backward_image_to_tensor(dy, like_data),
)
def to_tensor(k, p, data):
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
def _(p, ins):
    _one_or_many("data", ins[0])
    return [(*ins[0][:-3], ins[0][-1], *ins[0][-3:-1])]


to_tensor.dtype(lambda p, ins, outs: (ins, [_F32]))


@op("_backward_image_to_tensor", inputs="dy like~", grad=lambda F, dys: (F._image_to_tensor(dys[0]), None))
def backward_to_tensor(k, p, dy_, like):
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
def normalize(k, p, data):
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
def _(p, ins):
    _one_or_many("data", ins[0], "channels, height, width")
    channels = ins[0][-3]
    if channels not in (1, 3):
        raise ValueError(f"data {ins[0]} must have 1 or 3 channels, as its axis before height and width")
    _channels("mean", p.mean, channels, 0.0)
    if 0 in _channels("std", p.std, channels, 1.0):
        raise ValueError(f"std must not hold 0, got {p.std}")
    return [ins[0]]


# -- windows and sizes ----------------------------------------------------------------------------------------------

_WINDOW = {n: Int() for n in ("x", "y", "width", "height")}


def _window(p: Any) -> Any:
    return (..., slice(p.y, p.y + p.height), slice(p.x, p.x + p.width), slice(None))


@op(
    "_image_crop",
    inputs="data",
    params=_WINDOW,
    grad=lambda F, p, dy, like_data: F._backward_image_crop(
        dy, like_data, x=p.x, y=p.y, width=p.width, height=p.height
    ),
)
def crop(k, p, data):
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
    return data[_window(p)].copy()


@crop.shape
def _(p, ins):
    _one_or_many("data", ins[0])
    *lead, h, w, c = ins[0]
    if p.x < 0 or p.y < 0 or p.width < 1 or p.height < 1 or p.x + p.width > w or p.y + p.height > h:
        raise ValueError(f"a window of {p.width}x{p.height} at ({p.x}, {p.y}) is not inside an image of {w}x{h}")
    return [(*lead, p.height, p.width, c)]


@op(
    "_backward_image_crop",
    inputs="dy like~",
    params=_WINDOW,
    grad=lambda F, p, dys: (F._image_crop(dys[0], x=p.x, y=p.y, width=p.width, height=p.height), None),
)
def backward_crop(k, p, dy_, like):
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
    out[_window(p)] = dy_
    return out


backward_crop.shape(gradient_of(lambda p, ins: crop.shape_rule(p, ins)[0]))


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

    def rule(p: Any, ins: Any, outs: Any) -> Any:
        t = ins[0] if ins[0] is not None else outs[0]
        if t is not None and t.kind != "f" and t.name not in ("uint8", "int16", "uint16"):
            raise TypeError(f"{name} must be uint8, int16, uint16 or floats to be resized, got {t.name}; cast it")
        return [t], [t]

    return rule


_RESIZE = {"size": Shape(()), "keep_ratio": Bool(False), "interp": Int(1, ge=0, le=4)}


@op(
    "_image_resize",
    inputs="data",
    params=_RESIZE,
    grad=lambda F, p, dy, like_data: F._backward_image_resize(
        dy, like_data, size=p.size, keep_ratio=p.keep_ratio, interp=p.interp
    ),
)
def resize(k, p, data):
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
def _(p, ins):
    _one_or_many("data", ins[0])
    *lead, h, w, c = ins[0]
    if not h or not w:
        raise ValueError(f"data {ins[0]} has no pixels")
    return [(*lead, *resampling.new_size(p.size, p.keep_ratio, h, w), c)]


resize.dtype(resizable("data"))
resize.cost(lambda p, ins, outs: 4 * size_of(outs[0]))


@op(
    "_backward_image_resize",
    inputs="dy like~",
    params=_RESIZE,
    grad=lambda F, p, dys: (F._image_resize(dys[0], size=p.size, keep_ratio=p.keep_ratio, interp=p.interp), None),
)
def backward_resize(k, p, dy_, like):
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


# -- flips ----------------------------------------------------------------------------------------------------------


def _mirrored(xp: Any, data: Any, axis: int) -> Any:
    if (
        isinstance(data, np.ndarray)
        and data.ndim == 3
        and data.size
        and data.dtype.name in ("uint8", "float32", "float64")
    ):
        return opencv.flip(data, data.ndim + axis)
    return xp.flip(data, axis).copy()


def _flip(name: str, axis: int, doc: str) -> Op:
    o = Op(
        f"_image_{name}",
        lambda k, p, data: _mirrored(k.xp, data, axis),
        inputs="data",
        grad=lambda F, dy: getattr(F, f"_image_{name}")(dy),
        doc=f"{doc}\n\nParameters\n----------\ndata : array, (height, width, channels) or (N, height, width, "
        "channels)\n\nNotes\n-----\n"
        f"Behaviour matched: MXNet 1.9.1 ``image.{name}``, except that the gradient is flipped too, and that MXNet "
        "leaves\nthe middle of an "
        f"odd length uninitialised.",
    )
    o.shape(_image_or_images)
    o.module = __name__
    return o


@op(
    "_image_flip_if",
    inputs="data chosen",
    axis=Int(),
    grad=lambda F, p, dy, chosen: (F._image_flip_if(dy, chosen, axis=p.axis), None),
)
def flip_if(k, p, data, chosen):
    """An array flipped along an axis, or a copy of it: the gradient of random flips.

    Parameters
    ----------
    data : array
    chosen : array of one number
        Not 0 to flip.
    axis : int
    """
    return k.xp.where(chosen.reshape((1,) * data.ndim) != 0, k.xp.flip(data, p.axis), data)


flip_if.shape(lambda p, ins: [ins[0]])
flip_if.dtype(lambda p, ins, outs: (ins, [ins[0] or outs[0]]))


def _random_flip(name: str, axis: int, doc: str) -> Op:
    def body(k: Any, p: Any, data: Any) -> Any:
        chosen = float(chance(k).uniform((1,))[0]) < 0.5
        return _mirrored(k.xp, data, axis) if chosen else data.copy(), k.xp.full((1,), chosen, np.float32)

    o = Op(
        f"_image_random_{name}",
        body,
        inputs="data",
        outputs="output chosen",
        visible=1,
        random=True,
        grad=lambda F, dy, out_chosen: F._image_flip_if(dy, out_chosen, axis=axis),
        doc=f"{doc}, every other time by chance.\n\nParameters\n----------\ndata : array, (height, width, "
        "channels)\n\nNotes\n-----\n"
        f"Behaviour matched: MXNet 1.9.1 ``image.random_{name}``, except that the gradient is flipped as well.",
    )

    def shape(p: Any, ins: Any) -> Any:
        _single(ins[0])
        return [ins[0], (1,)]

    o.shape(shape)
    o.dtype(lambda p, ins, outs: ([ins[0] or outs[0]], [ins[0] or outs[0], _F32]))
    o.module = __name__
    return o


def _single(shape: tuple[int, ...]) -> None:
    if len(shape) != 3:
        raise ValueError(f"data must be one image (height, width, channels), got {shape}")


# -- colours --------------------------------------------------------------------------------------------------------

_STRAIGHT = "The gradient passes unchanged, as in MXNet."


def _coloured(p: Any, ins: Any) -> Any:
    _single(ins[0])
    if ins[0][2] not in (1, 3):
        raise ValueError(f"data {ins[0]} must have 1 or 3 channels")
    return [ins[0]]


def _colour(name: str, body: Callable[..., Any], doc: str, random: bool = True, **params: Any) -> Op:
    """An operator that changes the colours of one image."""
    o = Op(name, body, inputs="data", params=params, random=random, grad=lambda F, dy: dy, doc=doc)
    o.shape(_coloured)
    o.cost(lambda p, ins, outs: 4 * size_of(ins[0]))
    o.module = __name__
    return o


def _factor(name: str, change: Callable[..., Any], what: str, note: str = "", shift: float = 0.0) -> Op:
    """A change by a random factor between `min_factor` and `max_factor`."""

    def body(k: Any, p: Any, data: Any) -> Any:
        f = float(chance(k).uniform((1,), np.float64)[0])
        return change(k.xp, data, p.min_factor + (p.max_factor - p.min_factor) * f - shift)

    return _colour(
        f"_image_random_{name}",
        body,
        f"""{what}

Parameters
----------
data : array, (height, width, channels)
    1 or 3 channels, values from 0 to 255; integers saturate.
min_factor, max_factor : float
    The factor is drawn evenly between them.

Notes
-----
Behaviour matched: MXNet 1.9.1 ``image.random_{name}``{note}. {_STRAIGHT}
""",
        min_factor=Float(ge=0),
        max_factor=Float(ge=0),
    )


def _adjust(k: Any, p: Any, data: Any) -> Any:
    if len(p.alpha) != 3:
        raise ValueError(f"alpha must be three numbers, one for each principal component, got {p.alpha}")
    return colours.lighting(k.xp, data, p.alpha)


def _random_lighting(k: Any, p: Any, data: Any) -> Any:
    return colours.lighting(k.xp, data, p.alpha_std * chance(k).normal((3,), np.float64))


_JITTERS = (
    ("brightness", colours.brightness, 1.0),
    ("contrast", colours.contrast, 1.0),
    ("saturation", colours.saturation, 1.0),
    ("hue", colours.hue, 0.0),
)


def _jitter(k: Any, p: Any, data: Any) -> Any:
    u = chance(k).uniform((2, 4), np.float64)
    changes = [
        (when, change, around + getattr(p, name) * (2 * f - 1))
        for (name, change, around), when, f in zip(_JITTERS, u[0], u[1])
        if getattr(p, name) > 0
    ]
    image = data
    for _, change, factor in sorted(changes, key=lambda c: c[0]):
        image = change(k.xp, image, factor)
    return data.copy() if image is data else image


_NONE = {"brightness": 0.0, "contrast": 0.0, "saturation": 0.0, "hue": 0.0}


AUGMENTERS = [
    _flip("flip_left_right", -2, "Mirror an image left to right."),
    _flip("flip_top_bottom", -3, "Mirror an image top to bottom."),
    _random_flip("flip_left_right", -2, "Mirror an image left to right"),
    _random_flip("flip_top_bottom", -3, "Mirror an image top to bottom"),
    _factor("brightness", colours.brightness, "Make an image brighter or darker: its colours times a random factor."),
    _factor(
        "contrast",
        colours.contrast,
        "Change the contrast: differences from the image's mean grey times a random factor.",
    ),
    _factor(
        "saturation",
        colours.saturation,
        "Make colours stronger or paler: differences from a pixel's grey times a random factor.",
        ", except that a pixel's grey is its luminance, not 0.114 times its blue",
    ),
    _factor(
        "hue",
        colours.hue,
        "Turn the colours about the colour wheel, by the part of a random factor beyond 1 in whole turns.",
        shift=1.0,
    ),
    _colour(
        "_image_random_color_jitter",
        _jitter,
        f"""Change brightness, contrast, saturation and hue at random, in random order.

Parameters
----------
data : array, (height, width, channels)
    1 or 3 channels, values from 0 to 255; integers saturate.
brightness, contrast, saturation, hue : float, 0 or more
    The factors are drawn evenly between 1 - x and 1 + x, the turn of the hue between -x and x; 0 leaves that change out.

Notes
-----
Behaviour matched: MXNet 1.9.1 ``image.random_color_jitter``. {_STRAIGHT}
""",
        **{n: Float(ge=0) for n in _NONE},
    ),
    _colour(
        "_image_adjust_lighting",
        _adjust,
        """Move colours along the principal components of the colours of ImageNet.

Parameters
----------
data : array, (height, width, channels)
    1 or 3 channels, values from 0 to 255; integers saturate, grey images stay as they are.
alpha : tuple of float
    Three numbers, how far along each component.

Notes
-----
Behaviour matched: MXNet 1.9.1 ``image.adjust_lighting``. Source: Krizhevsky, Sutskever and Hinton, "ImageNet classification with deep
convolutional neural networks", 2012.
""",
        random=False,
        alpha=Floats(),
    ),
    _colour(
        "_image_random_lighting",
        _random_lighting,
        """Move colours at random along the principal components of the colours of ImageNet.

Parameters
----------
data : array, (height, width, channels)
    1 or 3 channels, values from 0 to 255; integers saturate, grey images stay as they are.
alpha_std : float
    Standard deviation of the distances.

Notes
-----
Behaviour matched: MXNet 1.9.1 ``image.random_lighting``.
""",
        alpha_std=Float(0.05),
    ),
]
