"""Transforms of an image together with the boxes of its objects.

They take an image ``(height, width, channels)`` and boxes ``(N, 4 or more)``: left, top, right and bottom in pixels,
then whatever else, which stays. Chance is Python's ``random``.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from numbers import Number
from typing import Any

import numpy as np

from ....... import ndarray as nd
from .......base import error
from ......block import Block
from ......data.vision.transforms import Resize
from .utils import (
    _check_bbox_shape,
    bbox_crop,
    bbox_flip,
    bbox_random_crop_with_constraints,
    bbox_resize,
    bbox_translate,
)

__all__ = [
    "ImageBboxCrop",
    "ImageBboxRandomCropWithConstraints",
    "ImageBboxRandomExpand",
    "ImageBboxRandomFlipLeftRight",
    "ImageBboxResize",
]


class _OfImageAndBoxes(Block):
    """A transform of image and boxes, `p` of the time."""

    def __init__(self, p: float = 1.0) -> None:
        super().__init__()
        self.p = p

    def forward(self, img: Any, bbox: Any) -> Any:
        if len(img.shape) != 3:
            raise error(
                NotImplementedError,
                f"{type(self).__name__} takes an image "
                f"(height, width, channels), got an array of shape {tuple(img.shape)}",
            )
        _check_bbox_shape(bbox)
        if self.p < 1 and random.random() >= self.p:
            return img, bbox
        image, boxes = self._changed(img, bbox.asnumpy() if isinstance(bbox, nd.NDArray) else np.asarray(bbox))
        return image, nd.array(boxes, dtype="float32")

    def _changed(self, img: nd.NDArray, boxes: np.ndarray[Any, Any]) -> tuple[nd.NDArray, np.ndarray[Any, Any]]:
        """A new image, and new boxes as a NumPy array."""
        raise NotImplementedError


class ImageBboxRandomFlipLeftRight(_OfImageAndBoxes):
    """Mirror image and boxes left to right, by chance.

    Parameters
    ----------
    p : float, default 0.5
        How often.

    Examples
    --------
    >>> import mxcore as mx
    >>> from mxcore.gluon.contrib.data.vision.transforms import bbox
    >>> image, boxes = bbox.ImageBboxRandomFlipLeftRight(p=1)(mx.nd.zeros((4, 10, 3)), mx.nd.array([[0, 0, 3, 4, 7]]))
    >>> boxes.asnumpy().tolist()
    [[7.0, 0.0, 10.0, 4.0, 7.0]]
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p)

    def _changed(self, img: nd.NDArray, boxes: np.ndarray[Any, Any]) -> tuple[nd.NDArray, np.ndarray[Any, Any]]:
        return nd.image.flip_left_right(img), bbox_flip(boxes, img.shape[1::-1], flip_x=True)


class ImageBboxCrop(_OfImageAndBoxes):
    """Cut a window out of image and boxes; an image that is smaller stays as it is.

    Parameters
    ----------
    crop : (left, top, width, height)
    allow_outside_center : bool, default False
        Keep boxes whose centre lies outside the window, too.

    Examples
    --------
    >>> import mxcore as mx
    >>> from mxcore.gluon.contrib.data.vision.transforms import bbox
    >>> boxes = mx.nd.array([[0, 0, 4, 4], [8, 0, 9, 1]])
    >>> image, boxes = bbox.ImageBboxCrop((1, 1, 6, 3))(mx.nd.zeros((4, 10, 3)), boxes)
    >>> image.shape, boxes.asnumpy().tolist()
    ((3, 6, 3), [[0.0, 0.0, 3.0, 3.0]])
    """

    def __init__(self, crop: Sequence[int], allow_outside_center: bool = False) -> None:
        super().__init__()
        if len(crop) != 4 or min(crop[:2]) < 0 or min(crop[2:]) <= 0:
            raise error(
                AssertionError, f"ImageBboxCrop: crop must be (left, top, width, height) from 0 on, got {tuple(crop)}"
            )
        self._window = tuple(crop)
        self._allow_outside_center = allow_outside_center

    def _changed(self, img: nd.NDArray, boxes: np.ndarray[Any, Any]) -> tuple[nd.NDArray, np.ndarray[Any, Any]]:
        left, top, width, height = self._window
        if left + width > img.shape[1] or top + height > img.shape[0]:
            return img, boxes
        return nd.image.crop(img, *self._window), bbox_crop(boxes, self._window, self._allow_outside_center)


class ImageBboxRandomCropWithConstraints(_OfImageAndBoxes):
    """Cut a window that meets the boxes far enough, by chance; see `bbox_random_crop_with_constraints`.

    Parameters
    ----------
    p : float, default 0.5
        How often.
    min_scale, max_scale : float, default 0.3 and 1
        The root of the window's share of the image.
    max_aspect_ratio : float, default 2
        How much its proportions differ from the image's.
    constraints : iterable of (float or None, float or None), optional
        Least and most overlap of every box with the window.
    max_trial : int, default 50
        Windows that are tried for each.
    """

    def __init__(
        self,
        p: float = 0.5,
        min_scale: float = 0.3,
        max_scale: float = 1,
        max_aspect_ratio: float = 2,
        constraints: Iterable[tuple[float | None, float | None]] | None = None,
        max_trial: int = 50,
    ) -> None:
        super().__init__(p)
        self._args: dict[str, Any] = {
            "min_scale": min_scale,
            "max_scale": max_scale,
            "max_aspect_ratio": max_aspect_ratio,
            "constraints": constraints,
            "max_trial": max_trial,
        }

    def _changed(self, img: nd.NDArray, boxes: np.ndarray[Any, Any]) -> tuple[nd.NDArray, np.ndarray[Any, Any]]:
        size = img.shape[1], img.shape[0]
        kept, window = bbox_random_crop_with_constraints(boxes, size, **self._args)
        return (img if window == (0, 0, *size) else nd.image.crop(img, *window)), kept


class ImageBboxRandomExpand(_OfImageAndBoxes):
    """Put the image into a larger one at a place taken by chance, and move the boxes with it.

    Parameters
    ----------
    p : float, default 0.5
        How often.
    max_ratio : float, default 4
        The most that width and height grow by.
    fill : float or tuple of float, default 0
        Of what is around it: a number, or one for each channel.
    keep_ratio : bool, default True
        Width and height grow by the same ratio.

    Examples
    --------
    >>> import mxcore as mx
    >>> from mxcore.gluon.contrib.data.vision.transforms import bbox
    >>> expand = bbox.ImageBboxRandomExpand(p=1, fill=(9, 8, 7))
    >>> image, boxes = expand(mx.nd.zeros((4, 10, 3)), mx.nd.array([[0, 0, 10, 4]]))
    >>> left, top, right, bottom = map(int, boxes[0].asnumpy())
    >>> int(image[top:bottom, left:right].asnumpy().max()), right - left
    (0, 10)
    """

    def __init__(
        self, p: float = 0.5, max_ratio: float = 4, fill: float | tuple[float, ...] = 0, keep_ratio: bool = True
    ) -> None:
        super().__init__(p)
        self._max_ratio = max_ratio
        self._fill: Any = fill
        self._keep_ratio = keep_ratio

    def _changed(self, img: nd.NDArray, boxes: np.ndarray[Any, Any]) -> tuple[nd.NDArray, np.ndarray[Any, Any]]:
        if self._max_ratio <= 1:
            return img, boxes
        height, width, channels = img.shape
        fill = (self._fill,) * channels if isinstance(self._fill, Number) else tuple(self._fill)
        if len(fill) != channels:
            raise error(
                ValueError, f"ImageBboxRandomExpand: fill has {len(fill)} numbers, the image {channels} channels"
            )
        across = random.uniform(1, self._max_ratio)
        down = across if self._keep_ratio else random.uniform(1, self._max_ratio)
        canvas: np.ndarray[Any, Any] = np.empty((int(height * down), int(width * across), channels), img.dtype)
        canvas[0] = fill
        canvas[1:] = canvas[0]  # rows are copied faster than pixels
        top, left = random.randint(0, canvas.shape[0] - height), random.randint(0, canvas.shape[1] - width)
        canvas[top : top + height, left : left + width] = img.asnumpy()
        return nd.array(canvas, dtype=img.dtype, ctx=img.context), bbox_translate(boxes, left, top)


class ImageBboxResize(_OfImageAndBoxes):
    """Resize image and boxes.

    Parameters
    ----------
    width, height : int
    interp : int, default 1
        See `gluon.data.vision.transforms.Resize`; -1 and 10 take one by chance.

    Examples
    --------
    >>> import mxcore as mx
    >>> from mxcore.gluon.contrib.data.vision.transforms import bbox
    >>> image, boxes = bbox.ImageBboxResize(20, 2)(mx.nd.zeros((4, 10, 3)), mx.nd.array([[0, 1, 3, 4]]))
    >>> image.shape, boxes.asnumpy().tolist()
    ((2, 20, 3), [[0.0, 0.5, 6.0, 2.0]])
    """

    def __init__(self, width: int, height: int, interp: int = 1) -> None:
        super().__init__()
        self._size = (width, height)
        self._resize = Resize(self._size, interpolation=10 if interp == -1 else interp)

    def _changed(self, img: nd.NDArray, boxes: np.ndarray[Any, Any]) -> tuple[nd.NDArray, np.ndarray[Any, Any]]:
        return self._resize(img), bbox_resize(boxes, img.shape[1::-1], self._size)
