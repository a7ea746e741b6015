"""Iterators over record files of labelled images: `ImageRecordIter` and its kin."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np

from mxcore.base import error

from .augment import Augmenter
from .codec import Array, Image
from .header import IRHeader
from .normalize import Normalizer
from .params import AUGMENT, BATCH, LABEL, NORMALIZE, SOURCE, documented
from .record_iter import RecordIter, log

__all__ = [
    "ImageRecordInt8Iter",
    "ImageRecordIter",
    "ImageRecordIter_v1",
    "ImageRecordUInt8Iter",
    "ImageRecordUInt8Iter_v1",
]


def mean_image(it: RecordIter) -> Array | None:
    """Return the mean image that an iterator's parameters ask for, made and stored if it does not exist.

    Parameters
    ----------
    it : RecordIter
        Its `normalize` is used for other things meanwhile.

    Returns
    -------
    numpy.ndarray or None
        Shape `data_shape`, float32.
    """
    path = it.params.mean_img
    if not path:
        return None
    from mxcore import ndarray as nd

    try:
        stored = nd.load(path)
    except FileNotFoundError:
        log.info("%s: computing the mean image %s", type(it).__name__, path)
        mean = _compute_mean(it)
        nd.save(path, {"mean_img": nd.array(mean)})
        return mean
    arrays = list(stored.values() if isinstance(stored, dict) else stored)
    if len(arrays) != 1:
        raise error(ValueError, f"mean_img {path!r} holds {len(arrays)} arrays instead of one")
    image: Array = arrays[0].asnumpy()
    return image


def _compute_mean(it: RecordIter) -> Array:
    """Mean over one epoch of augmented images."""
    shape, dtype = it.params.data_shape, it.dtype
    it.normalize, it.dtype = Normalizer(SimpleNamespace(data_shape=shape), "float32"), np.dtype("float32")
    total, count = np.zeros(shape), 0
    try:
        while True:
            (images,), _, pad, _ = it.next_arrays()
            total += images[: len(images) - pad].sum(0, dtype=np.float64)
            count += len(images) - pad
    except StopIteration:
        it._begin()
    finally:
        it.dtype = dtype
    return (total / max(count, 1)).astype(np.float32)


@documented([SOURCE, BATCH, LABEL, AUGMENT, NORMALIZE])
class ImageRecordIter(RecordIter):
    """Iterate over the images of record files, decoded and augmented in threads.

    All parameters are given by name. The batches depend on the parameters only, not on the number of threads.

    Parameters
    ----------
    {parameters}

    Raises
    ------
    MXNetError
        (also TypeError, ValueError, OSError) if a parameter is wrong or a file cannot be read. What goes
        wrong with a record is raised by `next`, with the record's number, key, file and offset.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``io.ImageRecordIter``, up to the random numbers. It differs in that
    `shuffle` reaches over the whole file, that parts are even without an index too, that `pad` is told with
    ``round_batch=False`` too, and that unknown parameters warn.

    Examples
    --------
    >>> from mxcore_io_rec import digits_files
    >>> it = ImageRecordIter(**digits_files("test"), data_shape=(1, 28, 28), batch_size=90)
    >>> images, labels, pad, index = it.next_arrays()
    >>> images[0].shape, labels[0].shape
    ((90, 1, 28, 28), (90,))
    """

    tables = (SOURCE, BATCH, LABEL, AUGMENT, NORMALIZE)

    def __init__(self, **parameters: Any) -> None:
        super().__init__(**parameters)
        self.augment = Augmenter(self.params, type(self).__name__)
        self.normalize = Normalizer(self.params, self.dtype, mean_image(self))
        self.chance = self.augment.random or self.normalize.random
        self.describe()

    def label_shape(self) -> tuple[int, ...]:
        width = self.params.label_width
        return () if width == 1 else (width,)

    def label(self, header: IRHeader) -> Array:
        label, width = np.atleast_1d(header.label), self.params.label_width
        if label.size != width:
            raise error(ValueError, f"the record has {label.size} labels, but label_width is {width}")
        return label

    def image(self, image: Image, label: Array, rng: Random, out_image: Array, out_label: Array) -> None:
        out_label[...] = label
        self.normalize(self.augment(image, rng), rng, out_image)


class ImageRecordIter_v1(ImageRecordIter):
    """The same as `ImageRecordIter`, under the name of MXNet's older implementation.

    Examples
    --------
    >>> issubclass(ImageRecordIter_v1, ImageRecordIter)
    True
    """


class ImageRecordUInt8Iter(ImageRecordIter):
    """`ImageRecordIter` with ``dtype='uint8'``: the pixels as they are, without mean and scale.

    Examples
    --------
    >>> ImageRecordUInt8Iter.default_dtype
    'uint8'
    """

    default_dtype = "uint8"


class ImageRecordUInt8Iter_v1(ImageRecordUInt8Iter):
    """The same as `ImageRecordUInt8Iter`.

    Examples
    --------
    >>> ImageRecordUInt8Iter_v1.default_dtype
    'uint8'
    """


class ImageRecordInt8Iter(ImageRecordIter):
    """`ImageRecordIter` with ``dtype='int8'``: the pixels less the rounded mean.

    Examples
    --------
    >>> ImageRecordInt8Iter.default_dtype
    'int8'
    """

    default_dtype = "int8"
