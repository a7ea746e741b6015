"""Augmenters for images with objects: (image, label) -> changed image and label.

A label is a NumPy array with a row for each object: class, left, top, right and bottom as shares of width and height,
and whatever else. Chance is Python's ``random``, drawn in MXNet's order.
"""

from __future__ import annotations

import math
import numbers
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .. import ndarray as nd
from ..base import asserted, error, finite
from ..ndarray import NDArray
from .augmenters import Augmenter, ForceResizeAug, ResizeAug, Told, colour_augmenters
from .functions import copyMakeBorder, fixed_crop, size_of

__all__ = [
    "CreateDetAugmenter",
    "CreateMultiRandCropAugmenter",
    "DetAugmenter",
    "DetBorrowAug",
    "DetHorizontalFlipAug",
    "DetRandomCropAug",
    "DetRandomPadAug",
    "DetRandomSelectAug",
    "areas",
]

#: Objects and windows of fewer pixels are not looked at; margins that are narrower are not added.
_SMALLEST = 2
#: Just below one half: a size is rounded up only if it still fits.
_HALF = 0.499999


class DetAugmenter(Told):
    """Base of augmenters for images with objects: a callable (image, label) -> (image, label).

    Parameters
    ----------
    **kwargs
        What `dumps` tells: numbers, texts, arrays.
    """

    def __call__(self, src: NDArray, label: np.ndarray[Any, Any]) -> tuple[NDArray, np.ndarray[Any, Any]]:
        raise NotImplementedError(
            f"{type(self).__name__} must define __call__(src, label), which returns both, changed"
        )


class DetBorrowAug(DetAugmenter):
    """An augmenter of images that leaves every object where it is.

    Parameters
    ----------
    augmenter : Augmenter
        One that changes colours, or the size.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.image.DetBorrowAug(mx.image.CastAug()).dumps()
    ['detborrowaug', '["castaug", {"type": "float32"}]']
    """

    def __init__(self, augmenter: Augmenter) -> None:
        if not isinstance(augmenter, Augmenter):
            raise error(TypeError, f"DetBorrowAug: an Augmenter is needed, got {type(augmenter).__name__}")
        super().__init__(augmenter=augmenter.dumps())
        self.augmenter = augmenter

    def dumps(self) -> Any:
        """The name, and what the other's `dumps` gives."""
        return [type(self).__name__.lower(), self.augmenter.dumps()]

    def __call__(self, src: NDArray, label: np.ndarray[Any, Any]) -> tuple[NDArray, np.ndarray[Any, Any]]:
        return self.augmenter(src), label


class DetRandomSelectAug(DetAugmenter):
    """One of several augmenters, taken by chance, or none.

    Parameters
    ----------
    aug_list : list of DetAugmenter, or DetAugmenter
    skip_prob : float
        How probable none is; 1 if there are none.
    """

    def __init__(self, aug_list: Any, skip_prob: float = 0) -> None:
        finite(skip_prob, "DetRandomSelectAug: skip_prob")
        super().__init__(skip_prob=skip_prob)
        self.aug_list = list(aug_list) if isinstance(aug_list, (list, tuple)) else [aug_list]
        for a in self.aug_list:
            if not isinstance(a, DetAugmenter):
                raise error(
                    ValueError,
                    f"DetRandomSelectAug: aug_list must hold DetAugmenters, got {type(a).__name__}; DetBorrowAug "
                    "makes one of an Augmenter",
                )
        self.skip_prob = skip_prob if self.aug_list else 1

    def dumps(self) -> Any:
        """The name, and a list of what the others' `dumps` give."""
        return [type(self).__name__.lower(), [a.dumps() for a in self.aug_list]]

    def __call__(self, src: NDArray, label: np.ndarray[Any, Any]) -> tuple[NDArray, np.ndarray[Any, Any]]:
        if random.random() < self.skip_prob:
            return src, label
        random.shuffle(self.aug_list)
        chosen: DetAugmenter = self.aug_list[0]
        return chosen(src, label)


class DetHorizontalFlipAug(DetAugmenter):
    """Mirror image and objects left to right, with a probability; the label changes in place.

    Parameters
    ----------
    p : float
    """

    def __init__(self, p: float) -> None:
        finite(p, "DetHorizontalFlipAug: p")
        super().__init__(p=p)
        self.p = p

    def __call__(self, src: NDArray, label: np.ndarray[Any, Any]) -> tuple[NDArray, np.ndarray[Any, Any]]:
        if random.random() < self.p:
            src = nd.flip(src, axis=1)
            label[:, [1, 3]] = 1.0 - label[:, [3, 1]]
        return src, label


class _Window(DetAugmenter):
    """A window over an image, by chance: inside it (a crop) or around it (a pad); what both have in common.

    `enabled` is False where the ranges make no sense: nothing is changed then.
    """

    #: The parameters that `dumps` tells, in its order.
    _ORDER: tuple[str, ...]

    def __init__(
        self,
        aspect_ratio_range: Any,
        area_range: Any,
        max_attempts: int,
        sense: Callable[[float, float], bool],
        **kwargs: Any,
    ) -> None:
        ranges: list[Any] = [(r, r) if isinstance(r, numbers.Number) else r for r in (aspect_ratio_range, area_range)]
        kwargs.update(aspect_ratio_range=ranges[0], area_range=ranges[1], max_attempts=max_attempts)
        super().__init__(**{name: kwargs[name] for name in self._ORDER})
        self.aspect_ratio_range, self.area_range = ranges
        self.max_attempts = max_attempts
        name = type(self).__name__
        self.enabled = True
        for what, (least, most), fine in (
            ("area_range", ranges[1][:2], sense(*ranges[1][:2])),
            ("aspect_ratio_range", ranges[0][:2], ranges[0][0] > 0),
        ):
            if self.enabled and (least > most or not fine):
                warnings.warn(f"{name} does nothing: its {what} is {(least, most)}", stacklevel=3)
                self.enabled = False

    def _sizes(self, height: int, width: int) -> Iterator[tuple[float, float, float, int, int]]:
        """Areas, least and largest, then heights and proportions to try, in the order of the draws."""
        least, most = (share * height * width for share in self.area_range[:2])
        for _ in range(self.max_attempts):
            ratio = random.uniform(*self.aspect_ratio_range)
            if ratio > 0:
                yield least, most, ratio, round(math.sqrt(least / ratio)), round(math.sqrt(most / ratio))


def areas(boxes: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The areas of boxes (…, 4), 0 where right is left of left."""
    with np.errstate(invalid="ignore", over="ignore"):  # an endless box of no height has no area either
        width, height = (np.maximum(0, boxes[:, i + 2] - boxes[:, i]) for i in (0, 1))
        found: np.ndarray[Any, Any] = width * height
        return found


class DetRandomCropAug(_Window):
    """Cut a window that holds enough of the objects in it.

    Parameters
    ----------
    min_object_covered : float
        Of every object that the window meets, a larger share must lie inside.
    aspect_ratio_range : (float, float) or float
        The window's width divided by its height.
    area_range : (float, float) or float
        Its share of the image.
    min_eject_coverage : float
        Objects of which no larger share lies inside are dropped.
    max_attempts : int
        Without a window after so many, the image stays as it is.

    Notes
    -----
    Liu et al., SSD: Single Shot MultiBox Detector (2016). Behaviour matched: MXNet 1.9.1, whose draws come in the same
    order.

    Examples
    --------
    >>> import numpy as np, mxcore as mx
    >>> cut = mx.image.DetRandomCropAug(area_range=(0.5, 1.0))
    >>> image, label = cut(mx.nd.zeros((40, 60, 3)), np.array([[0, 0.1, 0.2, 0.9, 0.8]]))
    >>> label.shape
    (1, 5)
    """

    _ORDER = ("min_object_covered", "aspect_ratio_range", "area_range", "min_eject_coverage", "max_attempts")

    def __init__(
        self,
        min_object_covered: Any = 0.1,
        aspect_ratio_range: Any = (0.75, 1.33),
        area_range: Any = (0.05, 1.0),
        min_eject_coverage: Any = 0.3,
        max_attempts: int = 50,
    ) -> None:
        super().__init__(
            aspect_ratio_range,
            area_range,
            max_attempts,
            lambda least, most: most > 0,
            min_object_covered=min_object_covered,
            min_eject_coverage=min_eject_coverage,
        )
        self.min_object_covered, self.min_eject_coverage = min_object_covered, min_eject_coverage

    def __call__(self, src: NDArray, label: np.ndarray[Any, Any]) -> tuple[NDArray, np.ndarray[Any, Any]]:
        height, width = size_of(src, "DetRandomCropAug")
        if self.enabled and height and width:
            for window in self._windows(height, width):
                kept = self._kept(label, window, height, width)
                if kept is not None:
                    return fixed_crop(src, *window), kept
        return src, label

    def _windows(self, height: int, width: int) -> Iterator[tuple[int, int, int, int]]:
        for least, most, ratio, h, highest in self._sizes(height, width):
            if round(highest * ratio) > width:
                highest = int((width + _HALF) / ratio)
            highest = min(highest, height)
            h = random.randint(h, highest) if h < highest else highest
            if round(h * ratio) * h < least:
                h += 1
            if round(h * ratio) * h > most:
                h -= 1
            w = round(h * ratio)
            if least <= w * h <= most and 0 <= h <= height and 0 <= w <= width:
                top = random.randint(0, max(0, height - h))
                yield random.randint(0, max(0, width - w)), top, w, h

    def _kept(
        self, label: np.ndarray[Any, Any], window: tuple[int, int, int, int], height: int, width: int
    ) -> np.ndarray[Any, Any] | None:
        """The objects of a window, as its shares; None if it holds too little of one, or nothing."""
        left, top, w, h = window
        if w * h < _SMALLEST:
            return None
        frame = np.array([left / width, top / height, (left + w) / width, (top + h) / height], label.dtype)
        boxes = label[:, 1:5]
        size = areas(boxes)
        seen = size * width * height > _SMALLEST
        inside = areas(np.concatenate([np.maximum(boxes[:, :2], frame[:2]), np.minimum(boxes[:, 2:], frame[2:])], 1))
        shares = inside[seen] / size[seen]
        shares = shares[shares > 0]
        if not shares.size or shares.min() <= self.min_object_covered:
            return None
        out = label.copy()
        out[:, 1:5] = np.clip(
            (boxes - np.tile(frame[:2], 2)) / np.array([w / width, h / height] * 2, label.dtype), 0, 1
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            share = areas(out[:, 1:5]) * (w / width) * (h / height) / size
        out = out[(areas(out[:, 1:5]) > 0) & (share > self.min_eject_coverage)]
        return out if len(out) else None


class DetRandomPadAug(_Window):
    """Put the image into a larger one, at a place taken by chance.

    Parameters
    ----------
    aspect_ratio_range : (float, float) or float
        The larger image's width divided by its height.
    area_range : (float, float) or float
        Its area divided by the image's.
    max_attempts : int
        Without one that fits after so many, the image stays as it is.
    pad_val : tuple of float, or float
        Fill, a number for each channel.

    Notes
    -----
    Liu et al., SSD: Single Shot MultiBox Detector (2016). Behaviour matched: MXNet 1.9.1, whose draws come in the same
    order.
    """

    _ORDER = ("aspect_ratio_range", "area_range", "max_attempts", "pad_val")

    def __init__(
        self,
        aspect_ratio_range: Any = (0.75, 1.33),
        area_range: Any = (1.0, 3.0),
        max_attempts: int = 50,
        pad_val: Any = (128, 128, 128),
    ) -> None:
        values = (pad_val,) if isinstance(pad_val, numbers.Number) else pad_val
        if not isinstance(values, (list, tuple)) or not all(isinstance(v, numbers.Number) for v in values):
            raise asserted(
                TypeError, f"DetRandomPadAug: pad_val must be a number or a tuple of numbers, got {pad_val!r}"
            )
        super().__init__(aspect_ratio_range, area_range, max_attempts, lambda least, most: most > 1, pad_val=pad_val)
        self.pad_val = pad_val

    def __call__(self, src: NDArray, label: np.ndarray[Any, Any]) -> tuple[NDArray, np.ndarray[Any, Any]]:
        height, width = size_of(src, "DetRandomPadAug")
        if self.enabled and height and width:
            for left, top, w, h in self._frames(height, width):
                fill = self.pad_val if isinstance(self.pad_val, (list, tuple)) else (self.pad_val,) * src.shape[2]
                image = copyMakeBorder(src, top, h - top - height, left, w - left - width, values=tuple(fill))
                out = label.copy()
                out[:, [1, 3]] = (out[:, [1, 3]] * width + left) / w
                out[:, [2, 4]] = (out[:, [2, 4]] * height + top) / h
                return image, out
        return src, label

    def _frames(self, height: int, width: int) -> Iterator[tuple[int, int, int, int]]:
        for _, _, ratio, h, highest in self._sizes(height, width):
            if round(h * ratio) < width:
                h = int((width + _HALF) / ratio)
            h = min(max(h, height), highest)
            if h < highest:
                h = random.randint(h, highest)
            w = round(h * ratio)
            if h - height >= _SMALLEST and w - width >= _SMALLEST:
                top = random.randint(0, h - height)
                yield random.randint(0, w - width), top, w, h


def CreateMultiRandCropAugmenter(
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Any = (0.75, 1.33),
    area_range: Any = (0.05, 1.0),
    min_eject_coverage: Any = 0.3,
    max_attempts: int = 50,
    skip_prob: float = 0,
) -> DetRandomSelectAug:
    """One of several `DetRandomCropAug`, taken by chance.

    Parameters
    ----------
    min_object_covered, aspect_ratio_range, area_range, min_eject_coverage, max_attempts
        As `DetRandomCropAug` has them, or a list with one for each.
    skip_prob : float
        How probable no crop is.

    Returns
    -------
    DetRandomSelectAug

    Raises
    ------
    MXNetError
        (also ValueError) if lists have different lengths.

    Examples
    --------
    >>> import mxcore as mx
    >>> len(mx.image.CreateMultiRandCropAugmenter([0.1, 0.5, 0.9]).aug_list)
    3
    """
    given = {
        "min_object_covered": min_object_covered,
        "aspect_ratio_range": aspect_ratio_range,
        "area_range": area_range,
        "min_eject_coverage": min_eject_coverage,
        "max_attempts": max_attempts,
    }
    lists = {name: value if isinstance(value, list) else [value] for name, value in given.items()}
    most = max(map(len, lists.values()))
    for name, values in lists.items():
        if len(values) not in (1, most):
            raise asserted(
                ValueError,
                f"CreateMultiRandCropAugmenter: {name} has {len(values)} values where another argument has {most}; "
                "lists must have one length, or one value",
            )
    crops = [DetRandomCropAug(**{name: values[i % len(values)] for name, values in lists.items()}) for i in range(most)]
    return DetRandomSelectAug(crops, skip_prob)


def CreateDetAugmenter(
    data_shape: Sequence[int],
    resize: int = 0,
    rand_crop: float = 0,
    rand_pad: float = 0,
    rand_gray: float = 0,
    rand_mirror: bool = False,
    mean: Any = None,
    std: Any = None,
    brightness: float = 0,
    contrast: float = 0,
    saturation: float = 0,
    pca_noise: float = 0,
    hue: float = 0,
    inter_method: int = 2,
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Any = (0.75, 1.33),
    area_range: Any = (0.05, 3.0),
    min_eject_coverage: Any = 0.3,
    max_attempts: int = 50,
    pad_val: Any = (127, 127, 127),
) -> list[DetAugmenter]:
    """The augmenters that detection usually takes, in their usual order.

    Parameters
    ----------
    data_shape : (int, int, int)
        (channels, height, width) of the images that come out.
    resize : int
        Length that the shorter side gets first; 0 for none.
    rand_crop, rand_pad : float
        How probable `DetRandomCropAug` and `DetRandomPadAug` are.
    rand_gray : float
        Share of images that turn grey.
    rand_mirror : bool
        Mirror one half of the images.
    mean, std : True, numpy.ndarray or NDArray, optional
        Subtracted, and divided by; ImageNet's for True.
    brightness, contrast, saturation, hue, pca_noise : float
        See `CreateAugmenter`.
    inter_method : int
        See `resize_short`.
    min_object_covered, aspect_ratio_range, min_eject_coverage, max_attempts
        See `CreateMultiRandCropAugmenter`.
    area_range : (float, float)
        Of crops; its upper end also of pads.
    pad_val : tuple of float
        Fill of pads.

    Returns
    -------
    list of DetAugmenter

    Examples
    --------
    >>> import mxcore as mx
    >>> [type(a).__name__ for a in mx.image.CreateDetAugmenter((3, 300, 300), rand_crop=0.5, rand_mirror=True)]
    ['DetRandomSelectAug', 'DetHorizontalFlipAug', 'DetBorrowAug', 'DetBorrowAug']
    """
    found: list[DetAugmenter] = [DetBorrowAug(ResizeAug(resize, inter_method))] if resize > 0 else []
    if rand_crop > 0:
        found.append(
            CreateMultiRandCropAugmenter(
                min_object_covered, aspect_ratio_range, area_range, min_eject_coverage, max_attempts, 1 - rand_crop
            )
        )
    if rand_mirror:
        found.append(DetHorizontalFlipAug(0.5))
    if rand_pad > 0:
        most = area_range if isinstance(area_range, numbers.Number) else area_range[1]
        found.append(
            DetRandomSelectAug([DetRandomPadAug(aspect_ratio_range, (1.0, most), max_attempts, pad_val)], 1 - rand_pad)
        )
    found.append(DetBorrowAug(ForceResizeAug((data_shape[2], data_shape[1]), inter_method)))
    colours = colour_augmenters(
        "CreateDetAugmenter", brightness, contrast, saturation, hue, pca_noise, rand_gray, mean, std
    )
    found.extend(map(DetBorrowAug, colours))
    return found
