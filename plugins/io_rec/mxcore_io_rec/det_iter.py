"""`ImageDetRecordIter`: images with objects in boxes."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from mxcore.base import error

from .codec import Array, Image
from .det_augment import DetAugmenter, Objects
from .header import HEADER_SIZE, IRHeader, unpack
from .image_iter import mean_image
from .normalize import Normalizer
from .params import BATCH, DET_AUGMENT, DET_LABEL, SOURCE, documented
from .record_iter import RecordIter

__all__ = ["ImageDetRecordIter"]

_FRONT = 4  # channels, height, width and length of the label stand before it


@documented([SOURCE, BATCH, DET_LABEL, DET_AUGMENT])
class ImageDetRecordIter(RecordIter):
    """Iterate over images with objects in boxes, decoded and augmented in threads.

    All parameters are given by name. A row of the label array holds the channels, height and width of the
    image, the length of its label, the label as `Objects` has it, and `label_pad_value` to the end.

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
    Behaviour matched: MXNet 1.9.1 ``io.ImageDetRecordIter``, up to the random numbers; see
    `ImageRecordIter` for what differs.

    Examples
    --------
    >>> import numpy as np
    >>> from mxcore_io_rec.recordio import IRHeader, MXRecordIO, pack_img
    >>> with MXRecordIO("memory://doc/det.rec", "w") as record:
    ...     label = [2, 5, 1, 0.1, 0.2, 0.5, 0.6]
    ...     record.write(pack_img(IRHeader(0, label, 0, 0), np.zeros((40, 50, 3), "uint8")))
    >>> it = ImageDetRecordIter(path_imgrec="memory://doc/det.rec", data_shape=(3, 32, 32), batch_size=1)
    >>> it.next_arrays()[1][0].shape
    (1, 11)
    """

    tables = (SOURCE, BATCH, DET_LABEL, DET_AUGMENT)

    def __init__(self, **parameters: Any) -> None:
        super().__init__(**parameters)
        p, name = self.params, type(self).__name__
        self.augment = DetAugmenter(p, name)
        if p.mean_img and p.resize_mode != "force":
            raise error(ValueError, f"{name}: mean_img needs resize_mode='force', got {p.resize_mode!r}")
        self._pad_width = p.label_pad_width if p.label_pad_width > 0 else self._longest()
        self.normalize = Normalizer(p, self.dtype, mean_image(self))
        self.describe()

    def _longest(self) -> int:
        """Length of the longest label."""
        if self.listed is not None:
            return max((len(label) for label in self.listed.values()), default=0)
        longest = 1
        for i in range(len(self.records)):
            try:
                labels = int.from_bytes(self.records.read(i, HEADER_SIZE)[:4], "little")
                if 4 * labels > self.records.room(i) - HEADER_SIZE:  # so many do not fit, unless they are there
                    labels = np.size(unpack(self.records.read(i))[0].label)
                longest = max(longest, labels)
            except ValueError as e:
                if self.params.on_error == "raise":
                    raise self._explained(e, i) from e
        return longest

    def label_shape(self) -> tuple[int, ...]:
        return (_FRONT + self._pad_width,)

    def label(self, header: IRHeader) -> Array:
        label = np.atleast_1d(header.label)
        width = self.params.label_width
        if width > 0 and label.size != width:
            raise error(ValueError, f"the record has {label.size} labels, but label_width is {width}")
        return label

    def image(self, image: Image, label: Array, rng: Random, out_image: Array, out_label: Array) -> None:
        objects = Objects(label)
        image = self.augment(image, objects, rng)
        label = objects.flat()
        if label.size > self._pad_width:
            raise error(ValueError, f"the record has {label.size} labels, but label_pad_width is {self._pad_width}")
        height, width = image.shape[:2]
        channels = self.params.data_shape[0]
        out_label[...] = self.params.label_pad_value
        out_label[0, :_FRONT] = channels, height, width, label.size
        out_label[0, _FRONT : _FRONT + label.size] = label
        if (height, width) == out_image.shape[1:]:
            self.normalize(image, rng, out_image)
        else:
            part = np.empty((channels, height, width), out_image.dtype)
            self.normalize(image, rng, part)
            out_image[...] = 0
            out_image[:, :height, :width] = part
