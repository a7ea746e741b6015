"""Augmenters: image -> changed image, by chance or not, and the list of them that `CreateAugmenter` makes.

Chance is Python's ``random``, of `LightingAug` also ``numpy.random``, drawn in MXNet's order: equal seeds give equal
images.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .. import ndarray as nd
from ..base import asserted, finite
from ..ndarray import NDArray
from .functions import (
    center_crop,
    color_normalize,
    imresize,
    interpolation,
    random_crop,
    random_size_crop,
    resize_short,
    size_of,
)

__all__ = [
    "Augmenter",
    "BrightnessJitterAug",
    "CastAug",
    "CenterCropAug",
    "ColorJitterAug",
    "ColorNormalizeAug",
    "ContrastJitterAug",
    "CreateAugmenter",
    "ForceResizeAug",
    "HorizontalFlipAug",
    "HueJitterAug",
    "LightingAug",
    "RandomCropAug",
    "RandomGrayAug",
    "RandomOrderAug",
    "RandomSizedCropAug",
    "ResizeAug",
    "SaturationJitterAug",
    "SequentialAug",
    "Told",
    "colour_augmenters",
    "statistics",
]

#: Weights of red, green and blue in brightness (ITU-R BT.601).
_LUMA = (0.299, 0.587, 0.114)
#: From red, green and blue to YIQ, and back.
_YIQ = np.array([_LUMA, (0.596, -0.274, -0.321), (0.211, -0.523, 0.311)])
_RGB = np.array([(1.0, 0.956, 0.621), (1.0, -0.272, -0.647), (1.0, -1.107, 1.705)])
#: Rows: what a grey image has of red, green and blue, in each of its equal channels.
_GREY = np.repeat([[0.21], [0.72], [0.07]], 3, 1)
#: Principal components of the colours of ImageNet (Krizhevsky et al., 2012).
_EIGVAL = np.array([55.46, 4.794, 1.148])
_EIGVEC = np.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]])
#: Mean and standard deviation of ImageNet, which ``mean=True`` and ``std=True`` stand for.
IMAGENET_MEAN, IMAGENET_STD = np.array([123.68, 116.28, 103.53]), np.array([58.395, 57.12, 57.375])


class Told:
    """What can be told in JSON: a name and parameters. Base of augmenters of images, with objects and without."""

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = {name: _plain(value) for name, value in kwargs.items()}

    def dumps(self) -> Any:
        """Name and parameters, as JSON.

        Returns
        -------
        str
            Or, of an augmenter that holds others, a list of its name and theirs.
        """
        return json.dumps([type(self).__name__.lower(), self._kwargs])


class Augmenter(Told):
    """Base of augmenters: a callable image -> image.

    Parameters
    ----------
    **kwargs
        What `dumps` tells: numbers, texts, arrays.

    Examples
    --------
    >>> import mxcore as mx
    >>> class Invert(mx.image.Augmenter):
    ...     def __call__(self, src):
    ...         return 255 - src
    >>> Invert(much=1).dumps()
    '["invert", {"much": 1}]'
    """

    def __call__(self, src: NDArray) -> NDArray:
        raise NotImplementedError(f"{type(self).__name__} must define __call__(src), which returns the changed image")


def _plain(value: Any) -> Any:
    if isinstance(value, nd.NDArray):
        value = value.asnumpy()
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


class SequentialAug(Augmenter):
    """Several augmenters, one after the other.

    Parameters
    ----------
    ts : list of Augmenter
    """

    def __init__(self, ts: list[Augmenter]) -> None:
        super().__init__()
        self.ts = ts

    def dumps(self) -> Any:
        """The name, and a list of what the others' `dumps` give."""
        return [type(self).__name__.lower(), [t.dumps() for t in self.ts]]

    def __call__(self, src: NDArray) -> NDArray:
        for t in self.ts:
            src = t(src)
        return src


class RandomOrderAug(SequentialAug):
    """Several augmenters, in an order taken by chance.

    Parameters
    ----------
    ts : list of Augmenter
        It is shuffled at each call.
    """

    def __call__(self, src: NDArray) -> NDArray:
        random.shuffle(self.ts)
        return super().__call__(src)


class _Sized(Augmenter):
    """A size and a method of interpolation; subclasses say what is brought to it."""

    def __init__(self, size: Any, interp: int = 2) -> None:
        super().__init__(size=size, interp=interp)
        self.size, self.interp = size, interp


class ResizeAug(_Sized):
    """Bring the shorter side to a length; see `resize_short`.

    Parameters
    ----------
    size : int
    interp : int
    """

    def __call__(self, src: NDArray) -> NDArray:
        return resize_short(src, self.size, self.interp)


class ForceResizeAug(_Sized):
    """Bring the image to a size, whatever its proportions.

    Parameters
    ----------
    size : (int, int)
        (width, height).
    interp : int
        See `resize_short`.
    """

    def __call__(self, src: NDArray) -> NDArray:
        w, h = self.size
        return imresize(src, w, h, interp=interpolation(self.interp, (*size_of(src, type(self).__name__), h, w)))


class RandomCropAug(_Sized):
    """Cut a window from a place taken by chance; see `random_crop`.

    Parameters
    ----------
    size : (int, int)
        (width, height).
    interp : int
    """

    def __call__(self, src: NDArray) -> NDArray:
        return random_crop(src, self.size, self.interp)[0]


class CenterCropAug(_Sized):
    """Cut a window from the middle; see `center_crop`.

    Parameters
    ----------
    size : (int, int)
        (width, height).
    interp : int
    """

    def __call__(self, src: NDArray) -> NDArray:
        return center_crop(src, self.size, self.interp)[0]


class RandomSizedCropAug(Augmenter):
    """Cut a window of an area and proportions taken by chance; see `random_size_crop`.

    Parameters
    ----------
    size : (int, int)
        (width, height).
    area : (float, float) or float
    ratio : (float, float)
    interp : int
    min_area : float, optional
        The old name of `area`.
    """

    def __init__(self, size: Any, area: Any, ratio: tuple[float, float], interp: int = 2, **kwargs: Any) -> None:
        super().__init__(size=size, area=area, ratio=ratio, interp=interp)
        self.size, self.ratio, self.interp = size, ratio, interp
        self.area = kwargs.pop("min_area", area)
        for unknown in kwargs:
            raise asserted(TypeError, f"RandomSizedCropAug takes no argument {unknown!r}")

    def __call__(self, src: NDArray) -> NDArray:
        return random_size_crop(src, self.size, self.area, self.ratio, self.interp)[0]


class BrightnessJitterAug(Augmenter):
    """Multiply the image by a factor taken by chance, in place.

    Parameters
    ----------
    brightness : float
        The factor is within 1 ± `brightness`.
    """

    def __init__(self, brightness: float) -> None:
        finite(brightness, "BrightnessJitterAug: brightness")
        super().__init__(brightness=brightness)
        self.brightness = brightness

    def __call__(self, src: NDArray) -> NDArray:
        src *= 1.0 + random.uniform(-self.brightness, self.brightness)
        return src


class ContrastJitterAug(Augmenter):
    """Move the image towards its mean brightness or away from it, in place.

    Parameters
    ----------
    contrast : float
        The image's share is within 1 ± `contrast`.
    """

    def __init__(self, contrast: float) -> None:
        finite(contrast, "ContrastJitterAug: contrast")
        super().__init__(contrast=contrast)
        self.contrast = contrast

    def __call__(self, src: NDArray) -> NDArray:
        share = 1.0 + random.uniform(-self.contrast, self.contrast)
        grey = src * nd.array([[_LUMA]], ctx=src.context)
        grey = (3.0 * (1.0 - share) / max(grey.size, 1)) * grey.sum()
        src *= share
        src += grey
        return src


class SaturationJitterAug(Augmenter):
    """Move the image towards grey or away from it, in place.

    Parameters
    ----------
    saturation : float
        The image's share is within 1 ± `saturation`.
    """

    def __init__(self, saturation: float) -> None:
        finite(saturation, "SaturationJitterAug: saturation")
        super().__init__(saturation=saturation)
        self.saturation = saturation

    def __call__(self, src: NDArray) -> NDArray:
        share = 1.0 + random.uniform(-self.saturation, self.saturation)
        grey = (src * nd.array([[_LUMA]], ctx=src.context)).sum(axis=2, keepdims=True)
        grey *= 1.0 - share
        src *= share
        src += grey
        return src


class HueJitterAug(Augmenter):
    """Turn the image's colours about the axis of greys.

    Parameters
    ----------
    hue : float
        The angle is within ± `hue` · 180 degrees.

    Notes
    -----
    The turn is that of YIQ's colour plane.
    """

    def __init__(self, hue: float) -> None:
        finite(hue, "HueJitterAug: hue")
        super().__init__(hue=hue)
        self.hue = hue

    def __call__(self, src: NDArray) -> NDArray:
        angle = random.uniform(-self.hue, self.hue) * math.pi
        cos, sin = math.cos(angle), math.sin(angle)
        turn = _RGB @ np.array([[1.0, 0.0, 0.0], [0.0, cos, -sin], [0.0, sin, cos]]) @ _YIQ
        turned: NDArray = nd.dot(src, nd.array(turn.T, ctx=src.context))
        return turned


class ColorJitterAug(RandomOrderAug):
    """Change brightness, contrast and saturation, in an order taken by chance.

    Parameters
    ----------
    brightness, contrast, saturation : float
        See the augmenters of these; 0 leaves one out.
    """

    def __init__(self, brightness: float, contrast: float, saturation: float) -> None:
        kinds = {BrightnessJitterAug: brightness, ContrastJitterAug: contrast, SaturationJitterAug: saturation}
        for name, much in zip(("brightness", "contrast", "saturation"), kinds.values()):
            finite(much, f"ColorJitterAug: {name}")
        super().__init__([kind(much) for kind, much in kinds.items() if much > 0])


class LightingAug(Augmenter):
    """Add a colour along the principal components of colours, in place.

    Parameters
    ----------
    alphastd : float
        Standard deviation of the share of each component.
    eigval, eigvec : numpy.ndarray
        The components' variances (3,), and the components, in columns (3, 3).

    Notes
    -----
    Krizhevsky et al., ImageNet Classification with Deep Convolutional Neural Networks (2012).
    """

    def __init__(self, alphastd: float, eigval: Any, eigvec: Any) -> None:
        finite(alphastd, "LightingAug: alphastd")
        super().__init__(alphastd=alphastd, eigval=eigval, eigvec=eigvec)
        self.alphastd, self.eigval, self.eigvec = alphastd, eigval, eigvec

    def __call__(self, src: NDArray) -> NDArray:
        shares = np.random.normal(0, self.alphastd, size=(3,))
        src += nd.array(np.dot(self.eigvec * shares, self.eigval), ctx=src.context)
        return src


class ColorNormalizeAug(Augmenter):
    """Subtract a mean and divide by a standard deviation, in place; see `color_normalize`.

    Parameters
    ----------
    mean, std : NDArray, numpy.ndarray or None
        A number for each channel.
    """

    def __init__(self, mean: Any, std: Any) -> None:
        super().__init__(mean=mean, std=std)
        self.mean, self.std = (
            None if v is None else v if isinstance(v, nd.NDArray) else nd.array(v) for v in (mean, std)
        )

    def __call__(self, src: NDArray) -> NDArray:
        here = [None if v is None else v.as_in_context(src.context) for v in (self.mean, self.std)]
        return color_normalize(src, *here)


class RandomGrayAug(Augmenter):
    """Make the image grey, with a probability.

    Parameters
    ----------
    p : float
    """

    def __init__(self, p: float) -> None:
        finite(p, "RandomGrayAug: p")
        super().__init__(p=p)
        self.p = p

    def __call__(self, src: NDArray) -> NDArray:
        return nd.dot(src, nd.array(_GREY, ctx=src.context)) if random.random() < self.p else src


class HorizontalFlipAug(Augmenter):
    """Mirror the image left to right, with a probability.

    Parameters
    ----------
    p : float
    """

    def __init__(self, p: float) -> None:
        finite(p, "HorizontalFlipAug: p")
        super().__init__(p=p)
        self.p = p

    def __call__(self, src: NDArray) -> NDArray:
        return nd.flip(src, axis=1) if random.random() < self.p else src


class CastAug(Augmenter):
    """Cast the image to another dtype.

    Parameters
    ----------
    typ : str
    """

    def __init__(self, typ: str = "float32") -> None:
        super().__init__(type=typ)
        self.typ = typ

    def __call__(self, src: NDArray) -> NDArray:
        return src.astype(self.typ)


def statistics(value: Any, usual: Any, name: str, function: str) -> Any:
    """Means or standard deviations as given, for True the `usual` ones."""
    if value is True:
        return usual
    if value is not None and (not isinstance(value, (np.ndarray, nd.NDArray)) or value.shape[:1] not in ((1,), (3,))):
        raise asserted(
            TypeError,
            f"{function}: {name} must be True or an array of 1 or 3 numbers, got {getattr(value, 'shape', value)!r}",
        )
    return value


def colour_augmenters(
    function: str,
    brightness: float,
    contrast: float,
    saturation: float,
    hue: float,
    pca_noise: float,
    rand_gray: float,
    mean: Any,
    std: Any,
) -> Iterator[Augmenter]:
    """What images and images with objects have in common: from the cast to float32 to the normalization."""
    told = {"brightness": brightness, "contrast": contrast, "saturation": saturation, "hue": hue}
    for name, much in {**told, "pca_noise": pca_noise, "rand_gray": rand_gray}.items():
        finite(much, f"{function}: {name}")
    yield CastAug()
    if brightness or contrast or saturation:
        yield ColorJitterAug(brightness, contrast, saturation)
    if hue:
        yield HueJitterAug(hue)
    if pca_noise > 0:
        yield LightingAug(pca_noise, _EIGVAL, _EIGVEC)
    if rand_gray > 0:
        yield RandomGrayAug(rand_gray)
    mean, std = statistics(mean, IMAGENET_MEAN, "mean", function), statistics(std, IMAGENET_STD, "std", function)
    if mean is not None or std is not None:
        yield ColorNormalizeAug(mean, std)


def CreateAugmenter(
    data_shape: Sequence[int],
    resize: int = 0,
    rand_crop: bool = False,
    rand_resize: bool = False,
    rand_mirror: bool = False,
    mean: Any = None,
    std: Any = None,
    brightness: float = 0,
    contrast: float = 0,
    saturation: float = 0,
    hue: float = 0,
    pca_noise: float = 0,
    rand_gray: float = 0,
    inter_method: int = 2,
) -> list[Augmenter]:
    """The augmenters that classification usually takes, in their usual order.

    Parameters
    ----------
    data_shape : (int, int, int)
        (channels, height, width) of the images that come out.
    resize : int
        Length that the shorter side gets first; 0 for none.
    rand_crop : bool
        The window is taken by chance, else from the middle.
    rand_resize : bool
        Its size, too; needs `rand_crop`.
    rand_mirror : bool
        Mirror one half of the images.
    mean, std : True, numpy.ndarray or NDArray, optional
        Subtracted, and divided by; ImageNet's for True.
    brightness, contrast, saturation, hue : float
        See the augmenters of these; 0 for none.
    pca_noise : float
        Standard deviation for `LightingAug`; 0 for none.
    rand_gray : float
        Share of images that turn grey.
    inter_method : int
        See `resize_short`.

    Returns
    -------
    list of Augmenter

    Examples
    --------
    >>> import mxcore as mx
    >>> [a.dumps() for a in mx.image.CreateAugmenter((3, 20, 20), rand_mirror=True)][1:]
    ['["horizontalflipaug", {"p": 0.5}]', '["castaug", {"type": "float32"}]']
    """
    size = data_shape[2], data_shape[1]
    found: list[Augmenter] = [ResizeAug(resize, inter_method)] if resize > 0 else []
    if rand_resize:
        if not rand_crop:
            raise asserted(ValueError, "CreateAugmenter: rand_resize needs rand_crop=True")
        found.append(RandomSizedCropAug(size, 0.08, (3.0 / 4.0, 4.0 / 3.0), inter_method))
    else:
        found.append((RandomCropAug if rand_crop else CenterCropAug)(size, inter_method))
    if rand_mirror:
        found.append(HorizontalFlipAug(0.5))
    found.extend(
        colour_augmenters("CreateAugmenter", brightness, contrast, saturation, hue, pca_noise, rand_gray, mean, std)
    )
    return found
