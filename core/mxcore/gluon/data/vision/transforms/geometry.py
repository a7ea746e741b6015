"""Cropping, resizing, flipping, rotating."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..... import ndarray as nd
from .....base import error, finite, plain
from .....image.functions import scale_down
from .. import images
from .base import ImageBlock, ImageHybridBlock, draw

__all__ = [
    "CenterCrop",
    "CropResize",
    "RandomFlipLeftRight",
    "RandomFlipTopBottom",
    "RandomResizedCrop",
    "RandomRotation",
    "Resize",
    "Rotate",
]


def _pair(size: int | Sequence[int]) -> tuple[int, int]:
    """(width, height) of a size given as one number or two."""
    return (int(size),) * 2 if isinstance(size, (int, np.integer)) else plain(tuple(size))


def _resize(F: Any, x: Any, size: int | Sequence[int], keep_ratio: bool, interpolation: int) -> Any:
    """`F.image.resize`; of arrays also with the interpolations that depend on the sizes, or on chance."""
    if interpolation > 4 and isinstance(x, nd.NDArray):
        height, width = x.shape[-3:-1]
        new = _pair(size)
        if keep_ratio and isinstance(size, (int, np.integer)):
            short = min(height, width)
            new = (width * size // short, height * size // short)
        interpolation = images.method_for(interpolation, (height, width), new[::-1])
    return F.image.resize(x, size, keep_ratio, interpolation)


class Resize(ImageHybridBlock):
    """Resize an image or a batch of images.

    Parameters
    ----------
    size : int or (int, int)
        Width and height; one number stands for both.
    keep_ratio : bool, default False
        With one number: make the shorter edge that long and keep the proportions.
    interpolation : int, default 1
        0 nearest, 1 bilinear, 2 cubic, 3 area, 4 Lanczos, 9 by whether the image grows or shrinks.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gluon.data.vision.transforms.Resize``, by OpenCV.

    Examples
    --------
    >>> import mxcore as mx
    >>> resize = mx.gluon.data.vision.transforms.Resize(4, keep_ratio=True)
    >>> resize(mx.nd.zeros((6, 8, 3), dtype='uint8')).shape
    (4, 5, 3)
    """

    _batches = True

    def __init__(self, size: int | Sequence[int], keep_ratio: bool = False, interpolation: int = 1) -> None:
        super().__init__()
        self._size = size
        self._keep = keep_ratio
        self._interpolation = interpolation

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return _resize(F, x, self._size, self._keep, self._interpolation)


class CropResize(ImageHybridBlock):
    """Cut a window out of an image or a batch of images, and resize it.

    Parameters
    ----------
    x, y : int
        The window's left and upper edge.
    width, height : int
    size : int or (int, int), optional
        Width and height to resize to.
    interpolation : int, default 1
        See `Resize`.
    """

    _batches = True

    def __init__(
        self,
        x: int,
        y: int,
        width: int,
        height: int,
        size: int | Sequence[int] | None = None,
        interpolation: int | None = None,
    ) -> None:
        super().__init__()
        self._window = (x, y, width, height)
        self._size = size
        self._interpolation = 1 if interpolation is None else interpolation

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        out = F.image.crop(x, *self._window)
        return _resize(F, out, self._size, False, self._interpolation) if self._size else out


def _center_crop(image: nd.NDArray, size: tuple[int, int], interpolation: int) -> nd.NDArray:
    """The middle in the proportions of `size`, as large as fits but no larger, resized if it is smaller."""
    height, width = image.shape[:2]
    cut = scale_down((width, height), size)
    middle: nd.NDArray = nd.image.crop(image, (width - cut[0]) // 2, (height - cut[1]) // 2, *cut)
    return middle if cut == size else _resize(nd, middle, size, False, interpolation)


class CenterCrop(ImageBlock):
    """Cut out the middle of an image; it is enlarged if the image is smaller.

    Parameters
    ----------
    size : int or (int, int)
        Width and height.
    interpolation : int, default 1
        See `Resize`.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.gluon.data.vision.transforms.CenterCrop((2, 3))(mx.nd.zeros((6, 8, 3), dtype='uint8')).shape
    (3, 2, 3)
    """

    def __init__(self, size: int | Sequence[int], interpolation: int = 1) -> None:
        super().__init__()
        self._size = _pair(size)
        self._interpolation = interpolation

    def forward(self, x: Any) -> Any:
        self._check_image(x)
        return _center_crop(x, self._size, self._interpolation)


class RandomResizedCrop(ImageBlock):
    """Cut out a window of random area and proportions, and resize it.

    Parameters
    ----------
    size : int or (int, int)
        Width and height to resize to.
    scale : (float, float), default (0.08, 1.0)
        Least and largest area, relative to the image.
    ratio : (float, float), default (3/4, 4/3)
        Least and largest width divided by height.
    interpolation : int, default 1
        See `Resize`.

    Notes
    -----
    The logarithm of the proportions is drawn evenly. If ten windows in a row do not fit, it is the middle of
    the image (Szegedy et al., 2015). Behaviour matched: MXNet 1.9.1
    ``gluon.data.vision.transforms.RandomResizedCrop``.
    """

    def __init__(
        self,
        size: int | Sequence[int],
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: int = 1,
    ) -> None:
        super().__init__()
        self._size = _pair(size)
        self._scale = (scale, 1.0) if isinstance(scale, float) else scale
        self._ratio = ratio
        self._interpolation = interpolation

    def forward(self, x: Any) -> Any:
        self._check_image(x)
        height, width = x.shape[:2]
        for _ in range(10):
            area = draw(*self._scale) * height * width
            ratio = math.exp(draw(math.log(self._ratio[0]), math.log(self._ratio[1])))
            w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < w <= width and 0 < h <= height:
                left, top = int(draw(0, width - w + 1)), int(draw(0, height - h + 1))
                window = nd.image.crop(x, min(left, width - w), min(top, height - h), w, h)
                return _resize(nd, window, self._size, False, self._interpolation)
        return _center_crop(x, self._size, self._interpolation)


class RandomFlipLeftRight(ImageHybridBlock):
    """Mirror an image left to right, every other time by chance."""

    def __init__(self) -> None:
        super().__init__()

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.random_flip_left_right(x)


class RandomFlipTopBottom(ImageHybridBlock):
    """Mirror an image top to bottom, every other time by chance."""

    def __init__(self) -> None:
        super().__init__()

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.random_flip_top_bottom(x)


class Rotate(ImageBlock):
    """Rotate a tensor ``(channels, height, width)``, or a batch of them, about the centre.

    Parameters
    ----------
    rotation_degrees : float
        Counter-clockwise.
    zoom_in : bool, default False
        Enlarge until no corner is empty.
    zoom_out : bool, default False
        Shrink until nothing is cut off.

    Raises
    ------
    MXNetError (TypeError)
        If the tensor is not float32; use it after `ToTensor`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gluon.data.vision.transforms.Rotate``.
    """

    def __init__(self, rotation_degrees: float, zoom_in: bool = False, zoom_out: bool = False) -> None:
        super().__init__()
        if zoom_in and zoom_out:
            raise error(ValueError, "Rotate: zoom_in and zoom_out cannot be both True")
        self._degrees = rotation_degrees
        self._zoom = (zoom_in, zoom_out)

    def forward(self, x: Any) -> Any:
        if x.dtype != np.float32:
            raise error(TypeError, "This transformation only supports float32. Consider calling it after ToTensor")
        if len(x.shape) not in (3, 4):
            raise error(
                ValueError, f"Rotate takes a tensor (channels, height, width) or a batch of them, got {x.shape}"
            )
        return nd.array(images.rotate(x.asnumpy(), self._degrees, *self._zoom), ctx=x.context)


class RandomRotation(ImageBlock):
    """Rotate a tensor ``(channels, height, width)``, or a batch of them, by a random angle.

    Parameters
    ----------
    angle_limits : (float, float)
        Least and largest angle in degrees, counter-clockwise.
    zoom_in, zoom_out : bool, default False
        As for `Rotate`.
    rotate_with_proba : float, default 1.0
        How often to rotate at all.
    """

    def __init__(
        self,
        angle_limits: tuple[float, float],
        zoom_in: bool = False,
        zoom_out: bool = False,
        rotate_with_proba: float = 1.0,
    ) -> None:
        super().__init__()
        if not isinstance(angle_limits, (tuple, list)) or len(angle_limits) != 2:
            raise error(TypeError, f"RandomRotation: angle_limits must be (least, largest), got {angle_limits!r}")
        low, high = (finite(v, "RandomRotation: an angle") for v in angle_limits)
        if low >= high:
            raise error(ValueError, f"`angle_limits` must be an ordered tuple, got {angle_limits}")
        if not 0 <= rotate_with_proba <= 1:
            raise error(ValueError, "Probability of rotating the image should be between 0 and 1")
        self._limits = (low, high)
        self._zoom = (zoom_in, zoom_out)
        self._probability = rotate_with_proba

    def forward(self, x: Any) -> Any:
        if self._probability < 1 and draw(0, 1) > self._probability:
            return x
        return Rotate(draw(*self._limits), *self._zoom)(x)
