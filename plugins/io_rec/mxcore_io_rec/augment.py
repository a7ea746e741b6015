"""Augmentation of images: from a decoded image of any size to one of the wanted size.

Images are uint8, (height, width) or (height, width, channels) with the channels from blue to red, as OpenCV
has them. All chance comes from the `random.Random` that a caller hands in, one for each image, so what
happens to an image does not depend on the thread that works on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from types import SimpleNamespace

import numpy as np

from mxcore.base import error

from .codec import Image, opencv

__all__ = ["Augmenter", "crop", "interpolation", "resize_short", "shift_hls"]

_GREY = np.array([0.114, 0.587, 0.299])  # of blue, green, red
# Principal components of the colours of ImageNet's images, red to blue (Krizhevsky et al., 2012).
_PCA_STD = np.array([55.46, 4.794, 1.148])
_PCA_AXES = np.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]])
_HLS_LIMITS = (180, 255, 255)


def between(rng: Random, low: float, high: float) -> float:
    """Return a random number in [low, high)."""
    return low + (high - low) * rng.random()


def whole(rng: Random, low: int, high: int) -> int:
    """Return a random whole number in [low, high]."""
    return low + int(rng.random() * (high - low + 1))


def interpolation(method: int, rng: Random | None, old: Sequence[int], new: Sequence[int]) -> int:
    """Return OpenCV's interpolation for one of MXNet's methods.

    Parameters
    ----------
    method : int
        0 nearest, 1 linear, 2 cubic, 3 area, 4 Lanczos, 9 by the sizes, 10 random.
    rng : random.Random
        For method 10.
    old, new : (int, int)
        Sizes before and after.

    Returns
    -------
    int

    Examples
    --------
    >>> interpolation(9, None, (8, 8), (4, 4))
    3
    """
    if method == 9:
        if new[0] > old[0] and new[1] > old[1]:
            return 2
        return 3 if new[0] < old[0] and new[1] < old[1] else 1
    if method == 10:
        assert rng is not None  # chance needs a generator
        return whole(rng, 0, 4)
    if method not in (0, 1, 2, 3, 4):
        raise error(ValueError, f"inter_method must be 0 to 4, 9 or 10; got {method}")
    return method


def resize(image: Image, height: int, width: int, method: int, rng: Random | None) -> Image:
    """Scale an image to a size."""
    old, new = image.shape[:2], (height, width)
    if old == new:
        return image
    resized: Image = opencv().resize(image, (width, height), interpolation=interpolation(method, rng, old, new))
    return resized


def resize_short(image: Image, size: int, method: int = 1, rng: Random | None = None) -> Image:
    """Scale an image so that its shorter edge gets a length.

    Parameters
    ----------
    image : numpy.ndarray
        (height, width) or (height, width, channels), uint8.
    size : int
        The length in pixels.
    method : int
        As in `interpolation`.
    rng : random.Random, optional
        For method 10.

    Returns
    -------
    numpy.ndarray

    Examples
    --------
    >>> resize_short(np.zeros((10, 21), "uint8"), 5).shape
    (5, 10)
    """
    height, width = image.shape[:2]
    if height < width:
        return resize(image, size, max(1, size * width // height), method, rng)
    return resize(image, max(1, size * height // width), size, method, rng)


def crop(image: Image, height: int, width: int, rng: Random | None = None) -> Image:
    """Cut out a part of an image, at a random place if there is a generator, else in the centre."""
    free_y, free_x = image.shape[0] - height, image.shape[1] - width
    y, x = (free_y // 2, free_x // 2) if rng is None else (whole(rng, 0, free_y), whole(rng, 0, free_x))
    return image[y : y + height, x : x + width]


def shift_hls(image: Image, hue: int, lightness: int, saturation: int) -> Image:
    """Add to the channels of an image in HLS space; values that leave their range stop at its ends."""
    cv2 = opencv()
    hls = cv2.cvtColor(np.ascontiguousarray(image), cv2.COLOR_BGR2HLS)
    for c, (shift, limit) in enumerate(zip((hue, lightness, saturation), _HLS_LIMITS)):
        if shift:
            hls[..., c] = np.clip(hls[..., c].astype(np.int16) + shift, 0, limit)
    shifted: Image = cv2.cvtColor(hls, cv2.COLOR_HLS2BGR)
    return shifted


class Augmenter:
    """Bring images to one size, with the random changes that the parameters ask for.

    Parameters
    ----------
    p : namespace
        The parameters of `params.AUGMENT`, and `data_shape`.
    owner : str
        Name for messages.

    Raises
    ------
    MXNetError
        (also ValueError) if parameters do not fit together, or an image is too small for them.

    Notes
    -----
    Behaviour matched: the default augmenter of MXNet 1.9.1. Called with an image and a `random.Random`, it
    returns an image of (height, width) of `data_shape`.

    Examples
    --------
    >>> import random
    >>> from mxcore_io_rec.params import AUGMENT, SOURCE, parse
    >>> p = parse("example", [AUGMENT], {"resize": 40, "rand_crop": True})
    >>> p.data_shape = (3, 32, 32)
    >>> Augmenter(p)(np.zeros((60, 80, 3), "uint8"), random.Random(0)).shape
    (32, 32, 3)
    """

    def __init__(self, p: SimpleNamespace, owner: str = "ImageRecordIter") -> None:
        self.p, self.owner = p, owner
        _, self.height, self.width = p.data_shape
        if p.aug_seq not in ("", "aug_default"):
            raise error(ValueError, f"{owner}: aug_seq must be aug_default, got {p.aug_seq!r}")
        interpolation(p.inter_method, Random(0), (1, 1), (1, 1))  # raises where it is none
        self.sized = p.max_crop_size != -1 or p.min_crop_size != -1
        if self.sized and not 0 < p.min_crop_size <= p.max_crop_size:
            raise error(
                ValueError,
                f"{owner}: min_crop_size {p.min_crop_size} and max_crop_size {p.max_crop_size} "
                "must both be given, the first at most the second",
            )
        self.aspects = _aspects(p)
        affine = (
            p.max_rotate_angle
            or p.max_shear_ratio
            or p.rotate > 0
            or not p.max_random_scale == p.min_random_scale == 1
            or (self.aspects != (1, 1) and not p.random_resized_crop)
            or p.max_img_size != 1e10
            or p.min_img_size != 0
        )
        colour = p.brightness or p.contrast or p.saturation or p.pca_noise
        steps = (
            (p.resize != -1, self._resize),
            (affine, self._affine),
            (p.pad > 0, self._pad),
            (True, self._random_resized_crop if p.random_resized_crop else self._crop),
            (p.random_h or p.random_s or p.random_l, self._hls),
            (colour, self._colour),
        )
        self.steps = [step for wanted, step in steps if wanted]
        #: Whether chance plays any part, so that a generator is needed.
        self.random = bool(
            p.rand_crop
            or p.random_resized_crop
            or colour
            or p.inter_method == 10
            or p.random_h
            or p.random_s
            or p.random_l
            or (affine and not self._fixed_affine())
            or (self.sized and p.min_crop_size < p.max_crop_size)
        )

    def _fixed_affine(self) -> bool:
        p = self.p
        return (
            (p.rotate > 0 or not p.max_rotate_angle)
            and not p.max_shear_ratio
            and p.max_random_scale == p.min_random_scale
            and self.aspects[0] == self.aspects[1]
        )

    def __call__(self, image: Image, rng: Random) -> Image:
        """Return the image after all steps."""
        for step in self.steps:
            image = step(image, rng)
        return image

    def _resize(self, image: Image, rng: Random) -> Image:
        return resize_short(image, self.p.resize, self.p.inter_method, rng)

    def _affine(self, image: Image, rng: Random) -> Image:
        p, cv2 = self.p, opencv()
        height, width = image.shape[:2]
        shear = between(rng, -p.max_shear_ratio, p.max_shear_ratio) if p.max_shear_ratio else 0.0
        angle = p.rotate
        if angle <= 0:
            angle = whole(rng, -p.max_rotate_angle, p.max_rotate_angle) if p.max_rotate_angle else 0
        low, high = p.min_random_scale, p.max_random_scale
        scale = low if low == high else between(rng, low, high)
        low, high = (1, 1) if p.random_resized_crop else self.aspects
        aspect = low if low == high else between(rng, low, high)
        across = 2 * scale / (1 + aspect)
        down = aspect * across
        cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
        new = np.clip(np.float32(scale) * np.array((width, height), np.float32), p.min_img_size, p.max_img_size)
        linear = np.array(
            [[across * cos - shear * sin * down, across * sin + shear * cos * down], [-sin * down, cos * down]]
        )
        middle = (new - linear @ (width, height)) / 2  # the centre stays the centre
        size = tuple(int(n) for n in new)
        turned: Image = cv2.warpAffine(
            image,
            np.column_stack([linear, middle]),
            size,
            borderMode=cv2.BORDER_CONSTANT,
            flags=interpolation(p.inter_method, rng, (height, width), size[::-1]),
            borderValue=[p.fill_value] * 4,
        )
        return turned

    def _pad(self, image: Image, rng: Random) -> Image:
        n, cv2 = self.p.pad, opencv()
        padded: Image = cv2.copyMakeBorder(image, n, n, n, n, cv2.BORDER_CONSTANT, value=[self.p.fill_value] * 4)
        return padded

    def _crop(self, image: Image, rng: Random) -> Image:
        p = self.p
        where = rng if p.rand_crop and not p.random_resized_crop else None
        if self.sized and not p.random_resized_crop:
            if min(image.shape[:2]) < p.max_crop_size:
                raise error(
                    ValueError,
                    f"{self.owner}: an image of {image.shape[0]} x {image.shape[1]} pixels is too "
                    f"small for max_crop_size {p.max_crop_size}",
                )
            size = p.max_crop_size
            if p.min_crop_size < size:
                size = whole(rng, p.min_crop_size, size)
            return resize(crop(image, size, size, where), self.height, self.width, p.inter_method, rng)
        height, width = image.shape[:2]
        if height < self.height:
            width = int(self.height / height * width)
            height = self.height
        if width < self.width:
            height = int(self.width / width * height)
            width = self.width
        image = resize(image, max(height, self.height), max(width, self.width), p.inter_method, rng)
        return crop(image, self.height, self.width, where)

    def _random_resized_crop(self, image: Image, rng: Random) -> Image:
        p = self.p
        height, width = image.shape[:2]
        for _ in range(10):
            area = height * width * between(rng, p.min_random_area, p.max_random_area)
            aspect = between(rng, *self.aspects)
            across, down = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
            if rng.random() < 0.5:
                across, down = down, across
            if 0 < across <= width and 0 < down <= height:
                return resize(crop(image, down, across, rng), self.height, self.width, p.inter_method, rng)
        return self._crop(image, rng)

    def _hls(self, image: Image, rng: Random) -> Image:
        shifts = [whole(rng, -v, v) for v in (self.p.random_h, self.p.random_l, self.p.random_s)]
        return shift_hls(image, *shifts) if image.ndim == 3 and image.shape[2] == 3 else image

    def _colour(self, image: Image, rng: Random) -> Image:
        """All changes of colour are linear: they are joined and carried out at once."""
        p, cv2 = self.p, opencv()
        channels = 1 if image.ndim == 2 else image.shape[2]
        colours = min(channels, 3)
        grey = _GREY if colours == 3 else np.ones(1)
        matrix, offset = np.eye(channels), np.zeros(channels)
        linear, shift = matrix[:colours, :colours], offset[:colours]
        changes = [(name, v) for name in ("brightness", "contrast", "saturation") if (v := getattr(p, name))]
        for i in range(len(changes) - 1, 0, -1):
            j = whole(rng, 0, i)
            changes[i], changes[j] = changes[j], changes[i]
        for name, v in changes:
            factor = 1 + between(rng, -v, v)
            if name == "saturation":
                if colours == 1:
                    continue
                blend = factor * np.eye(3) + (1 - factor) * grey
                linear[...], shift[...] = blend @ linear, blend @ shift
                continue
            mean = 0.0
            if name == "contrast":
                mean = float(grey @ (linear @ np.array(cv2.mean(image)[:colours]) + shift))
            linear *= factor
            shift *= factor
            shift += (1 - factor) * mean
        if p.pca_noise and colours == 3:
            noise = [rng.gauss(0, p.pca_noise) for _ in range(3)]
            shift += (_PCA_AXES @ (_PCA_STD * noise))[::-1]
        coloured: Image = cv2.transform(image, np.column_stack([matrix, offset]))
        return coloured


def _aspects(p: SimpleNamespace) -> tuple[float, float]:
    low = 1 - p.max_aspect_ratio if p.min_aspect_ratio is None else p.min_aspect_ratio
    high = 1 + p.max_aspect_ratio if p.min_aspect_ratio is None else p.max_aspect_ratio
    if not 0 < low <= high:
        raise error(ValueError, f"aspect ratios must be above 0, the smallest first; got {low} to {high}")
    return low, high
