"""`ImageIter`: batches of augmented images from a record file or from image files."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

from .. import ndarray as nd
from .. import recordio
from .._interrupts import let_through
from .._io_files import checked, naming, read_whole, regular
from ..base import asserted, error, plain
from ..io import DataBatch, DataIter
from ..ndarray import NDArray
from ..urls import PathLike, is_url
from .augmenters import CreateAugmenter
from .functions import imdecode
from .source import listed, open_records, read_list

__all__ = ["ImageIter"]

_HANDLES = ("pad", "discard", "roll_over")
_DTYPES = ("int32", "float32", "int64", "float64")


class ImageIter(DataIter):
    """Iterate over images, augmented in Python.

    Images come from a record file (`path_imgrec`), or from files that a list names (`path_imglist`, `imglist`); with a
    record file and a list, the list's labels count.

    Parameters
    ----------
    batch_size : int
    data_shape : (int, int, int)
        (3, height, width) of the images that come out.
    label_width : int
        Numbers of a label.
    path_imgrec : str, optional
        A record file.
    path_imglist : str, optional
        A list file: lines of key, label and file name with tabs between.
    path_root : str, optional
        Folder of the files that a list names.
    path_imgidx : str, optional
        The record file's index; to shuffle and to split it.
    shuffle : bool
        Another order in each epoch.
    part_index, num_parts : int
        Which part of how many is read.
    aug_list : list of Augmenter, optional
        What is done to each image; `CreateAugmenter` makes it from `data_shape` and further keywords otherwise.
    imglist : list, optional
        A list in memory, of ``[label, …, file name]``.
    data_name, label_name : str
        Names in `provide_data` and `provide_label`.
    dtype : {"float32", "float64", "int32", "int64"}
        Of the labels in a list.
    last_batch_handle : {"pad", "discard", "roll_over"}
        A last batch that is not full begins again at the beginning, is left out, or begins the next epoch.
    **kwargs
        For `CreateAugmenter`.

    Attributes
    ----------
    seq : list or None
        Keys in the order of this epoch; None for the order of the record file.
    cur : int
        How many keys of it are read.
    auglist : list of Augmenter
    imgrec, imglist, imgidx, num_image, path_root, shuffle, label_width, data_shape

    Raises
    ------
    MXNetError
        (also ValueError) if sources, parts or shapes do not fit; (also RuntimeError) naming the image that cannot be
        decoded.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.image.ImageIter``. Subclasses override `next_sample`, `imdecode`,
    `check_valid_image`, `augmentation_transform` or `postprocess_data`. Chance is Python's ``random``.

    Examples
    --------
    >>> import cv2, numpy, mxcore as mx
    >>> for i in range(3):
    ...     _ = cv2.imwrite(f"/tmp/mxcore-doc-{i}.png", numpy.full((40, 60, 3), i, "uint8"))
    >>> names = [[float(i), f"mxcore-doc-{i}.png"] for i in range(3)]
    >>> images = mx.image.ImageIter(2, (3, 20, 20), path_root="/tmp", imglist=names)
    >>> [(b.data[0].shape, b.label[0].asnumpy().tolist(), b.pad) for b in images]
    [((2, 3, 20, 20), [0.0, 1.0], 0), ((2, 3, 20, 20), [2.0, 0.0], 1)]
    """

    def __init__(
        self,
        batch_size: Any,
        data_shape: Sequence[int],
        label_width: int = 1,
        path_imgrec: PathLike | None = None,
        path_imglist: PathLike | None = None,
        path_root: PathLike | None = None,
        path_imgidx: PathLike | None = None,
        shuffle: bool = False,
        part_index: int = 0,
        num_parts: int = 1,
        aug_list: Any = None,
        imglist: list[Any] | None = None,
        data_name: str = "data",
        label_name: str = "softmax_label",
        dtype: Any = "float32",
        last_batch_handle: str = "pad",
        **kwargs: Any,
    ) -> None:
        super().__init__()
        owner = type(self).__name__
        if not (path_imgrec or path_imglist or isinstance(imglist, list)):
            raise asserted(
                ValueError, f"{owner}: images come from path_imgrec, path_imglist or imglist; none was given"
            )
        if dtype not in _DTYPES:
            raise asserted(ValueError, f"{owner}: dtype, of labels, must be one of {', '.join(_DTYPES)}, got {dtype!r}")
        if last_batch_handle not in _HANDLES:
            raise error(
                ValueError,
                f"{owner}: last_batch_handle must be one of {', '.join(_HANDLES)}, got {last_batch_handle!r}",
            )
        if not (isinstance(batch_size, Integral) and int(batch_size) > 0):
            raise error(ValueError, f"{owner}: batch_size must be a positive whole number, got {batch_size!r}")
        self.check_data_shape(data_shape)
        self.imgrec: Any = None
        self.imgidx: list[Any] | None = None
        if path_imgrec:
            self.imgrec, self.imgidx = open_records(path_imgrec, path_imgidx, owner)
        self.imglist: Any = (
            read_list(path_imglist, owner, dtype)
            if path_imglist
            else listed(imglist, owner, dtype)
            if isinstance(imglist, list)
            else None
        )
        self.path_root = path_root if path_root is None else checked(path_root, f"{owner}: path_root", empty=True)
        self.shuffle = shuffle
        if self.imgrec is None:
            self.seq: Any = list(self.imglist or ())
        elif shuffle or num_parts > 1 or path_imgidx:
            if self.imgidx is None:
                raise asserted(
                    ValueError,
                    f"{owner}: a record file is shuffled or split by its index: "
                    "give path_imgidx (tools: mx.recordio, im2rec)",
                )
            self.seq = list(self.imgidx)
        else:
            self.seq = None
        if self.seq is not None:
            self.seq = self._part(self.seq, part_index, num_parts, owner)
        self.num_image: Any = None if self.seq is None else len(self.seq)
        batch_size, label_width = plain((batch_size, label_width))
        self.batch_size, self.data_shape, self.label_width = batch_size, plain(tuple(data_shape)), label_width
        self.provide_data: list[Any] = [(data_name, (batch_size, *self.data_shape))]
        self.provide_label: list[Any] = [(label_name, (batch_size, label_width) if label_width > 1 else (batch_size,))]
        self.last_batch_handle = last_batch_handle
        self.auglist: list[Any] = CreateAugmenter(data_shape, **kwargs) if aug_list is None else aug_list
        self.cur = self._read = 0
        #: Arrays of a batch that is begun, and how many samples it has; (None, None, 0) between batches.
        self._begun: tuple[Any, Any, int] = None, None, 0
        self.reset()

    @staticmethod
    def _part(seq: list[Any], index: int, parts: int, owner: str) -> list[Any]:
        if not 0 <= index < parts:
            raise asserted(
                ValueError, f"{owner}: part_index must be from 0 to num_parts - 1 = {parts - 1}, got {index}"
            )
        size = len(seq) // parts
        if not size:
            raise error(
                ValueError,
                f"{owner}: {len(seq)} images cannot be split into {parts} parts"
                if seq
                else f"{owner}: there is no image",
            )
        return seq[index * size : (index + 1) * size] if parts > 1 else seq

    # -- epochs

    def reset(self) -> None:
        """Begin the next epoch; with ``"roll_over"``, samples that are left over come first."""
        if self.seq is not None and self.shuffle:
            random.shuffle(self.seq)
        if self.last_batch_handle != "roll_over":
            self._begun = None, None, 0
        self._rewind()

    def hard_reset(self) -> None:
        """Begin the next epoch, without samples that are left over."""
        self._begun = None, None, 0
        self.reset()

    def _rewind(self) -> None:
        if self.imgrec is not None:
            self.imgrec.rewind()  # not reset: order and labels are those of this file, not of its successor's
        self.cur = self._read = 0
        self._over = False

    def next(self) -> DataBatch:
        """Return the next batch.

        Returns
        -------
        DataBatch

        Raises
        ------
        StopIteration
            At the end of the epoch.
        MXNetError
            (also RuntimeError) naming an image that cannot be decoded.
        """
        if self._over:
            raise StopIteration
        data, label, start = self._begun
        if data is None:
            data, label = nd.empty(self.provide_data[0][1]), self._empty_label()
        self._begun = None, None, 0
        count = self._batchify(data, label, start)
        pad = self.batch_size - count
        if pad:
            self._over = True
            if not count or self.last_batch_handle == "discard":
                raise StopIteration
            if self.last_batch_handle == "roll_over":
                self._begun = data, label, count
                raise StopIteration
            while count < self.batch_size:  # an epoch may be shorter than a batch
                self._rewind()
                count = self._batchify(data, label, count)
            self._over = True
        return DataBatch([data], [label], pad=pad)

    def _empty_label(self) -> NDArray:
        return nd.empty(self.provide_label[0][1])

    def _batchify(self, data: Any, label: Any, start: int) -> int:
        """Write samples into a batch from `start` on; returns how many it has then."""
        i = start
        while i < self.batch_size:
            try:
                numbers, raw = self.next_sample()
            except StopIteration:
                break
            self._read += 1
            image = self._decoded(raw)
            try:
                self.check_valid_image([image])
            except RuntimeError as e:
                self._skipped(e)
                continue
            try:
                i += self._place(data, label, i, image, numbers)
            except StopIteration as e:  # must not look like the end of the epoch
                raise error(RuntimeError, f"{self._where()} made an augmenter raise StopIteration") from e
        return i

    def _place(self, data: Any, label: Any, i: int, image: NDArray, numbers: Any) -> bool:
        """Augment a sample and write it to place `i`; False if it is left out."""
        self._write(data, i, self.augmentation_transform(image))
        numbers = numbers.asnumpy() if isinstance(numbers, nd.NDArray) else np.asarray(numbers, "float32")
        if numbers.size != self.label_width:
            raise error(
                ValueError, f"{self._where()} has a label of {numbers.size} numbers, label_width is {self.label_width}"
            )
        label[i] = numbers.reshape(label.shape[1:])
        return True

    def _write(self, data: Any, i: int, image: NDArray) -> None:
        """Write an augmented image to place `i` of a batch."""
        image = self.postprocess_data(image)
        if image.shape != self.data_shape:
            raise error(
                ValueError, f"{self._where()} is {image.shape} after augmentation, data_shape is {self.data_shape}"
            )
        data[i] = image

    def _skipped(self, why: object) -> None:
        """A place for subclasses and logs: an image is left out."""
        import logging

        logging.debug("%s is left out: %s", self._where(), why)

    def _unpacked(self, record: bytes, number: Any) -> Any:
        with naming(f"{type(self).__name__}: record {number} of {os.fspath(self.imgrec.uri)!r}"):
            return recordio.unpack(record)

    def _where(self) -> str:
        """The sample that was read last, for errors."""
        owner, known = type(self).__name__, self.seq is not None and self.cur
        if not self._read and not known:
            return f"{owner}: a sample"
        key = self.seq[self.cur - 1] if known else self._read - 1
        place = f"of {len(self.seq)} images" if self.seq is not None else "in the order of the file"
        name = (
            f"{self.imglist[key][1]!r}, "
            if known and self.imgrec is None
            else f"record {key} of {os.fspath(self.imgrec.uri)!r}, "
        )
        return f"{owner}: {name}the {self._read}. {place},"

    def _decoded(self, raw: bytes) -> NDArray:
        try:
            return self.imdecode(raw)
        except RuntimeError as e:  # what our errors and MXNet's are
            raise error(RuntimeError, f"{self._where()} cannot be decoded: {e}") from None

    # -- what subclasses override

    def next_sample(self) -> tuple[Any, bytes]:
        """Return label and bytes of the next image file.

        Returns
        -------
        float, numpy.ndarray or NDArray
            The label.
        bytes

        Raises
        ------
        StopIteration
            At the end of the epoch.
        """
        if self.seq is None:
            record = self.imgrec.read()
            if record is None:
                raise StopIteration
            header, image = self._unpacked(record, self._read)
            return header.label, image
        if self.cur >= self.num_image:
            raise StopIteration
        key = self.seq[self.cur]
        self.cur += 1
        if self.imgrec is None:
            label, name = self.imglist[key]
            try:
                return label, self.read_image(name)
            except OSError as e:
                let_through(e)
                kind = FileNotFoundError if isinstance(e, FileNotFoundError) else OSError
                raise error(
                    kind, f"{type(self).__name__}: {name!r}, the {self.cur}. of {len(self.seq)} images of the list: {e}"
                ) from None
        header, image = self._unpacked(self.imgrec.read_idx(key), key)
        if self.imglist is None:
            return header.label, image
        if key not in self.imglist:
            raise error(KeyError, f"{self._where()} is not in the list, which names {len(self.imglist)} images")
        return self.imglist[key][0], image

    def check_data_shape(self, data_shape: Sequence[int]) -> None:
        """Raise unless a shape is (3, height, width)."""
        if len(data_shape) != 3:
            raise error(
                ValueError,
                f"{type(self).__name__}: data_shape must be (channels, height, width), got {tuple(data_shape)}",
            )
        if data_shape[0] != 3:
            raise error(ValueError, f"{type(self).__name__}: images have 3 channels, data_shape is {tuple(data_shape)}")

    def check_valid_image(self, data: Any) -> None:
        """Raise RuntimeError if an image, the first of a list, is empty: it is left out then."""
        if len(data[0].shape) == 0 or not data[0].size:
            raise error(RuntimeError, "the image is empty")

    def imdecode(self, s: bytes) -> NDArray:
        """Decode the bytes of an image file to an NDArray ``(height, width, channels)``."""
        return imdecode(s)

    def read_image(self, fname: str) -> bytes:
        """Return the bytes of an image file in `path_root`."""
        root = self.path_root
        path = fname if root is None or is_url(fname) else os.path.join(root, fname)
        return read_whole(regular(path))

    def augmentation_transform(self, data: Any) -> Any:
        """Apply `auglist` to an image."""
        for augment in self.auglist:
            data = augment(data)
        return data

    def postprocess_data(self, datum: NDArray) -> NDArray:
        """Bring an image to (channels, height, width)."""
        image: NDArray = nd.transpose(datum, axes=(2, 0, 1))
        return image
