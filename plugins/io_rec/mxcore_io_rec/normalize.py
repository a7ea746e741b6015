"""From augmented images to the numbers in a batch: mirroring, mean, scale and type."""

from __future__ import annotations

import threading
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np

from mxcore.base import error

from .augment import between
from .codec import Array, Image, opencv

__all__ = ["Normalizer"]

_ORDER = {1: (0,), 3: (2, 1, 0), 4: (2, 1, 0, 3)}  # channels of a batch run from red, OpenCV's from blue


class Normalizer:
    """Write images of the right size into batches.

    Parameters
    ----------
    p : namespace
        The parameters of `params.NORMALIZE`, and `data_shape`; what it lacks is at its default.
    dtype : {'float32', 'uint8', 'int8'}
        Type of the batches. uint8 takes the pixels as they are, int8 subtracts the mean, rounded.
    mean_img : numpy.ndarray, optional
        Mean image, shape `data_shape`, subtracted instead of the channels' means.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1: ``((x - mean) * contrast + illumination) * scale / std``. There are only
    256 values a pixel can have, so all of it is one look-up.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> n = Normalizer(SimpleNamespace(data_shape=(3, 1, 1), mean_r=10.0, scale=0.5), "float32")
    >>> out = np.empty((3, 1, 1), "float32")
    >>> n(np.array([[[1, 2, 30]]], "uint8"), None, out); out.ravel().tolist()
    [10.0, 1.0, 0.5]
    """

    def __init__(self, p: SimpleNamespace, dtype: Any, mean_img: Array | None = None) -> None:
        values = vars(p)
        self.dtype = np.dtype(dtype)
        self.shape = p.data_shape
        self.channels = _ORDER[p.data_shape[0]]
        letters = "rgba"[: len(self.channels)]
        self.mean = np.array([values.get(f"mean_{c}", 0) for c in letters], np.float32)
        self.std = np.array([values.get(f"std_{c}", 1) or 1 for c in letters], np.float32)
        self.scale = np.float32(values.get("scale", 1))
        self.mean_img: Array | None = None
        if mean_img is not None:
            self.mean_img = np.asarray(mean_img, np.float32)
            if self.mean_img.shape != tuple(p.data_shape):
                raise error(
                    ValueError,
                    f"the mean image has shape {self.mean_img.shape}, but data_shape is "
                    f"{tuple(p.data_shape)}; make it anew",
                )
            self.mean = np.zeros_like(self.mean)
        self.mirror = values.get("mirror", False)
        self.rand_mirror = values.get("rand_mirror", False)
        floats = self.dtype == np.float32
        self.contrast = values.get("max_random_contrast", 0) if floats else 0
        self.illumination = values.get("max_random_illumination", 0) if floats else 0
        #: Whether chance plays any part, so that a generator is needed.
        self.random = bool((self.rand_mirror and not self.mirror) or self.contrast or self.illumination)
        self.tables = self._tables(1, 0)
        #: What each thread has: memory for the channels of an image.
        self._own = threading.local()

    def _tables(self, contrast: float, illumination: float) -> Array | None:
        """A table of 256 numbers per channel; None where the pixels stay what they are."""
        pixels = np.arange(256, dtype=np.float32)
        if self.dtype == np.uint8:
            return None
        if self.dtype == np.int8:
            rounded = np.floor(self.mean + np.float32(0.5))
            table: Array = np.clip(pixels - rounded[:, None], -128, 127).astype(np.int8)
            return table
        table = (pixels - self.mean[:, None]) * np.float32(contrast) + np.float32(illumination)
        table *= self.scale
        table /= self.std[:, None]
        return None if all((t == pixels).all() for t in table) else table

    def __call__(self, image: Image, rng: Random, out: Array) -> None:
        """Write an image into `out`, which has shape `data_shape` and the batch's type."""
        cv2 = opencv()
        # A draw for each chance in turn, so that one parameter does not change what another one does.
        mirror = self.mirror or (self.rand_mirror and rng.random() < 0.5)
        tables, contrast, illumination = self.tables, 1.0, 0.0
        if self.contrast or self.illumination:
            contrast = 1 + between(rng, -self.contrast, self.contrast)
            illumination = between(rng, -self.illumination, self.illumination)
        if mirror:
            image = cv2.flip(image, 1)
        planes = image[None] if image.ndim == 2 else self._parted(image)
        if self.mean_img is not None and self.dtype != np.uint8:
            self._with_image(self.mean_img, planes, mirror, contrast, illumination, out)
            return
        if self.contrast or self.illumination:
            tables = self._tables(contrast, illumination)
        if tables is None:
            out[...] = planes
            return
        for plane, table, to in zip(planes, tables, out):
            if self.dtype == np.int8:
                np.take(table, plane, out=to, mode="clip")
            else:
                cv2.LUT(plane, table, dst=to)

    def _parted(self, image: Image) -> Array:
        """The channels of an image (height, width, channels) in a batch's order; they stay until the next in a thread.

        OpenCV takes longer to get memory for each of them than to part them.
        """
        height, width, channels = image.shape
        planes: Array | None = getattr(self._own, "planes", None)
        if planes is None or planes.shape != (channels, height, width):
            planes = self._own.planes = np.empty((channels, height, width), np.uint8)
        opencv().split(image, [planes[self.channels.index(source)] for source in range(channels)])
        return planes

    def _with_image(
        self, mean_img: Array, planes: Array, mirror: bool, contrast: float, illumination: float, out: Array
    ) -> None:
        for c, plane in enumerate(planes):
            mean = mean_img[c, :, ::-1] if mirror else mean_img[c]
            value = plane - mean
            if self.dtype == np.int8:
                out[c] = np.clip(np.rint(value), -128, 127)
                continue
            value *= np.float32(contrast)
            value += np.float32(illumination)
            value *= self.scale
            value /= self.std[c]
            out[c] = value
