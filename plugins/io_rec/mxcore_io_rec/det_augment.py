"""Augmentation of images with objects in boxes."""

from __future__ import annotations

import math
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np

from mxcore.base import error

from .augment import between, interpolation, resize, resize_short, shift_hls, whole
from .codec import Array, Image, opencv

__all__ = ["DetAugmenter", "Objects"]

_SAMPLER = ("crop_scales", "crop_aspect_ratios", "crop_overlaps", "crop_sample_coverages", "crop_object_coverages")


class Objects:
    """The label of an image with objects: a header, then a row for each object.

    Parameters
    ----------
    label : numpy.ndarray
        ``[A, B, …]``: A numbers of header, these two included, then rows of B numbers: class, left, top,
        right and bottom as shares of width and height, and whatever else.

    Raises
    ------
    MXNetError
        (also ValueError) if the numbers do not fit together.

    Notes
    -----
    Behaviour matched: the detection labels of MXNet 1.9.1.

    Examples
    --------
    >>> objects = Objects(np.array([2, 5, 1, 0.1, 0.2, 0.5, 0.6], "float32"))
    >>> objects.rows.shape
    (1, 5)
    """

    def __init__(self, label: Array) -> None:
        label = np.atleast_1d(label)
        head, width = map(int, label[:2]) if label.size > 1 and np.isfinite(label[:2]).all() else (0, 0)
        if head < 2 or width < 5 or (label.size - head) % width or label.size < head:
            raise error(
                ValueError,
                "a detection label must be [A, B, A - 2 numbers, rows of B >= 5 numbers], "
                f"got {label.size} numbers that start with {label[:4].tolist()}",
            )
        self.head = label[:head]
        self.rows: Array = label[head:].reshape(-1, width).copy()

    @property
    def boxes(self) -> Array:
        """Left, top, right, bottom of the objects, a view of shape (objects, 4)."""
        return self.rows[:, 1:5]

    def flat(self) -> Array:
        """Return the label as one array."""
        return np.concatenate([self.head, self.rows.ravel()])


class DetAugmenter:
    """Bring images with objects to one size, with the random changes that the parameters ask for.

    Parameters
    ----------
    p : namespace
        The parameters of `params.DET_AUGMENT`, and `data_shape`.
    owner : str
        Name for messages.

    Raises
    ------
    MXNetError
        (also ValueError) if parameters do not fit together.

    Notes
    -----
    Behaviour matched: the default detection augmenter of MXNet 1.9.1. Called with an image, `Objects` and a
    `random.Random`, it returns an image; with ``resize_mode`` fit or shrink it may be smaller than
    `data_shape`. The crops are the batch sampler of Liu et al., SSD (2016).

    Examples
    --------
    >>> import random
    >>> from mxcore_io_rec.params import DET_AUGMENT, parse
    >>> p = parse("example", [DET_AUGMENT], {"rand_mirror_prob": 1})
    >>> p.data_shape = (3, 32, 32)
    >>> objects = Objects(np.array([2, 5, 1, 0.1, 0.2, 0.5, 0.6]))
    >>> DetAugmenter(p)(np.zeros((60, 80, 3), "uint8"), objects, random.Random(0)).shape
    (32, 32, 3)
    >>> objects.boxes.round(3).tolist()
    [[0.5, 0.2, 0.9, 0.6]]
    """

    def __init__(self, p: SimpleNamespace, owner: str = "ImageDetRecordIter") -> None:
        self.p = p
        _, self.height, self.width = p.data_shape
        if p.aug_seq not in ("", "det_aug_default"):
            raise error(ValueError, f"{owner}: aug_seq must be det_aug_default, got {p.aug_seq!r}")
        if p.inter_method not in (9, 10):
            interpolation(p.inter_method, None, (1, 1), (1, 1))
        if p.max_pad_scale < 1:
            raise error(ValueError, f"{owner}: max_pad_scale must be at least 1, got {p.max_pad_scale}")
        self.samplers = [_Sampler(p, i, owner) for i in range(p.num_crop_sampler)]

    def __call__(self, image: Image, objects: Objects, rng: Random) -> Image:
        """Return the augmented image; change `objects` alike."""
        p = self.p
        if p.resize != -1:
            image = resize_short(image, p.resize, p.inter_method, rng)
        image = self._colour(image, rng)
        if p.rand_mirror_prob and rng.random() < p.rand_mirror_prob:
            image = opencv().flip(image, 1)
            boxes = objects.boxes
            boxes[:, [0, 2]] = 1 - boxes[:, [2, 0]]
        if p.rand_pad_prob and rng.random() < p.rand_pad_prob:
            image = self._pad(image, objects, rng)
        if p.rand_crop_prob and rng.random() < p.rand_crop_prob:
            image = self._crop(image, objects, rng)
        height, width = self.height, self.width
        if p.resize_mode != "force":
            ratio = min(height / image.shape[0], width / image.shape[1])
            if p.resize_mode == "shrink":
                ratio = min(ratio, 1.0)
            height, width = (max(1, int(n * ratio + 1e-6)) for n in image.shape[:2])
        return resize(image, height, width, p.inter_method, rng)

    def _colour(self, image: Image, rng: Random) -> Image:
        p = self.p

        def shift(prob: float, most: int) -> int:
            return whole(rng, -most, most) if prob and rng.random() < prob else 0

        shifts = [
            shift(p.random_hue_prob, p.max_random_hue),
            shift(p.random_illumination_prob, p.max_random_illumination),
            shift(p.random_saturation_prob, p.max_random_saturation),
        ]
        if any(shifts) and image.ndim == 3 and image.shape[2] == 3:
            image = shift_hls(image, *shifts)
        if p.random_contrast_prob and rng.random() < p.random_contrast_prob:
            factor = 1 + between(rng, -p.max_random_contrast, p.max_random_contrast)
            image = opencv().convertScaleAbs(image, alpha=factor)
        return image

    def _pad(self, image: Image, objects: Objects, rng: Random) -> Image:
        """Put the image at a random place of a larger canvas."""
        scale = between(rng, 1, self.p.max_pad_scale)
        height, width = image.shape[:2]
        free_y, free_x = int(height * scale) - height, int(width * scale) - width
        y, x = whole(rng, 0, free_y), whole(rng, 0, free_x)
        canvas = np.full((height + free_y, width + free_x, *image.shape[2:]), self.p.fill_value, np.uint8)
        canvas[y : y + height, x : x + width] = image
        boxes = objects.boxes
        boxes *= np.tile((width, height), 2)
        boxes += np.tile((x, y), 2)
        boxes /= np.tile((width + free_x, height + free_y), 2)
        return canvas

    def _crop(self, image: Image, objects: Objects, rng: Random) -> Image:
        """Cut out the first crop that a sampler finds and that leaves an object; else nothing."""
        height, width = image.shape[:2]
        samplers = list(self.samplers)
        for i in range(len(samplers) - 1, 0, -1):
            j = whole(rng, 0, i)
            samplers[i], samplers[j] = samplers[j], samplers[i]
        for sampler in samplers:
            for _ in range(sampler.trials):
                x, y, across, down = sampler.draw(rng, width / height)
                left, top = int(x * width), int(y * height)
                right = max(left + 1, min(width, round((x + across) * width)))
                bottom = max(top + 1, min(height, round((y + down) * height)))
                part = np.array([left / width, top / height, right / width, bottom / height])
                if sampler.accepts(part, objects.boxes) and self._emit(objects, part):
                    return image[top:bottom, left:right]
        return image

    def _emit(self, objects: Objects, part: Array) -> bool:
        """Keep the objects that a crop keeps, in its coordinates; if there are none, change nothing."""
        boxes = objects.boxes
        if len(boxes):
            if self.p.crop_emit_mode == "center":
                centre = (boxes[:, :2] + boxes[:, 2:]) / 2
                kept = ((centre >= part[:2]) & (centre <= part[2:])).all(1)
            else:
                kept = _shared(part, boxes) > self.p.emit_overlap_thresh * np.maximum(_area(boxes), 1e-12)
            if not kept.any():
                return False
            objects.rows = objects.rows[kept]
            boxes = objects.boxes
            boxes -= np.tile(part[:2], 2)
            boxes /= np.tile(part[2:] - part[:2], 2)
            np.clip(boxes, 0, 1, out=boxes)
        return True


class _Sampler:
    """One of the ways to draw crops: ranges of scale, aspect and overlap."""

    crop_scales: tuple[float, float]
    crop_aspect_ratios: tuple[float, float]

    def __init__(self, p: SimpleNamespace, i: int, owner: str) -> None:
        for name in _SAMPLER:
            low, high = (_nth(p, f"{end}_{name}", i, owner) for end in ("min", "max"))
            if low > high:
                raise error(ValueError, f"{owner}: min_{name} {low} is above max_{name} {high}")
            setattr(self, name, (low, high))
        self.trials = _nth(p, "max_crop_trials", i, owner)
        low, high = self.crop_scales
        if low < 0 or not 0 < high <= 1 or self.crop_aspect_ratios[0] <= 0:
            raise error(ValueError, f"{owner}: crop scales must lie in (0, 1] and aspect ratios above 0")
        self.limits = [getattr(self, name) for name in _SAMPLER[2:]]

    def draw(self, rng: Random, image_aspect: float) -> tuple[float, float, float, float]:
        """A random crop as left, top, width, height, in shares of the image."""
        scale = max(between(rng, *self.crop_scales), 1e-3)
        aspect = between(rng, *self.crop_aspect_ratios) / image_aspect
        root = math.sqrt(min(max(aspect, scale * scale), 1 / (scale * scale)))  # neither edge above 1
        across, down = scale * root, scale / root
        return between(rng, 0, 1 - across), between(rng, 0, 1 - down), across, down

    def accepts(self, part: Array, boxes: Array) -> bool:
        """Whether the limits hold for at least one object."""
        if not len(boxes) or all(limit == (0.0, 1.0) for limit in self.limits):
            return True
        shared, area, whole_area = _shared(part, boxes), _area(boxes), _area(part[None])
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = (shared / (area + whole_area - shared), shared / whole_area, shared / area)
        fits = [(low <= share) & (share <= high) for share, (low, high) in zip(shares, self.limits)]
        return bool(np.logical_and.reduce(fits).any())


def _nth(p: SimpleNamespace, name: str, i: int, owner: str) -> Any:
    values = getattr(p, name)
    if len(values) not in (1, p.num_crop_sampler):
        raise error(
            ValueError, f"{owner}: {name} has {len(values)} values for {p.num_crop_sampler} samplers; give 1 or all"
        )
    return values[i if len(values) > 1 else 0]


def _area(boxes: Array) -> Array:
    area: Array = np.maximum(boxes[:, 2] - boxes[:, 0], 0) * np.maximum(boxes[:, 3] - boxes[:, 1], 0)
    return area


def _shared(part: Array, boxes: Array) -> Array:
    """Area of the intersections of a crop with boxes."""
    return _area(np.concatenate([np.maximum(part[:2], boxes[:, :2]), np.minimum(part[2:], boxes[:, 2:])], 1))
