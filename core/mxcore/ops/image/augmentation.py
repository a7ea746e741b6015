"""Changes of images that training makes by chance: flips and colours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._core.op import Op, op
from ..._core.params import Params
from ...parameters import Float, Floats, Int
from ...philox import Rng
from ...typing import Array, Call
from ..common.rules import size_of
from . import colours, opencv
from .operators import check_one_or_many

__all__ = ["AUGMENTERS", "NO_JITTER", "chance"]


_F32 = np.dtype("float32")


class _Host:
    """The least of a device that random numbers need."""

    xp, dtypes = np, None

    @staticmethod
    def from_host(a: Any, index: int) -> Any:
        return a


def chance(k: Call) -> Rng:
    """The random numbers of a call, on the host."""
    return Rng(_Host, k.key, 0)  # type: ignore[arg-type]


def _image_or_images(p: Params, ins: Any) -> Any:
    check_one_or_many("data", ins[0])
    return [ins[0]]


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
    return o


@op(
    "_image_flip_if",
    inputs="data chosen",
    axis=Int(),
    grad=lambda F, p, dy, chosen: (F._image_flip_if(dy, chosen, axis=p.axis), None),
)
def flip_if(k: Call, p: Params, data: Array, chosen: Array) -> Array:
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
    def body(k: Call, p: Params, data: Any) -> Any:
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

    def shape(p: Params, ins: Any) -> Any:
        _single(ins[0])
        return [ins[0], (1,)]

    o.shape(shape)
    o.dtype(lambda p, ins, outs: ([ins[0] or outs[0]], [ins[0] or outs[0], _F32]))
    return o


def _single(shape: tuple[int, ...]) -> None:
    if len(shape) != 3:
        raise ValueError(f"data must be one image (height, width, channels), got {shape}")


# -- colours --------------------------------------------------------------------------------------------------------

_STRAIGHT = "The gradient passes unchanged, as in MXNet."


def _coloured(p: Params, ins: Any) -> Any:
    _single(ins[0])
    if ins[0][2] not in (1, 3):
        raise ValueError(f"data {ins[0]} must have 1 or 3 channels")
    return [ins[0]]


def _colour(name: str, body: Callable[..., Any], doc: str, random: bool = True, **params: Any) -> Op:
    """An operator that changes the colours of one image."""
    o = Op(name, body, inputs="data", params=params, random=random, grad=lambda F, dy: dy, doc=doc)
    o.shape(_coloured)
    o.cost(lambda p, ins, outs: 4 * size_of(ins[0]))
    return o


def _factor(name: str, change: Callable[..., Any], what: str, note: str = "", shift: float = 0.0) -> Op:
    """A change by a random factor between `min_factor` and `max_factor`."""

    def body(k: Call, p: Params, data: Any) -> Any:
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


def _adjust(k: Call, p: Params, data: Any) -> Any:
    if len(p.alpha) != 3:
        raise ValueError(f"alpha must be three numbers, one for each principal component, got {p.alpha}")
    return colours.lighting(k.xp, data, p.alpha)


def _random_lighting(k: Call, p: Params, data: Any) -> Any:
    return colours.lighting(k.xp, data, p.alpha_std * chance(k).normal((3,), np.float64))


_JITTERS = (
    ("brightness", colours.brightness, 1.0),
    ("contrast", colours.contrast, 1.0),
    ("saturation", colours.saturation, 1.0),
    ("hue", colours.hue, 0.0),
)


def _jitter(k: Call, p: Params, data: Any) -> Any:
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


NO_JITTER = {"brightness": 0.0, "contrast": 0.0, "saturation": 0.0, "hue": 0.0}


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
    The factors are drawn evenly between 1 - x and 1 + x, the turn of the hue between -x and x; 0 leaves that change
    out.

Notes
-----
Behaviour matched: MXNet 1.9.1 ``image.random_color_jitter``. {_STRAIGHT}
""",
        **{n: Float(ge=0) for n in NO_JITTER},  # type: ignore[arg-type]
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
Behaviour matched: MXNet 1.9.1 ``image.adjust_lighting``. Source: Krizhevsky, Sutskever and Hinton, "ImageNet
classification with deep convolutional neural networks", 2012.
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
