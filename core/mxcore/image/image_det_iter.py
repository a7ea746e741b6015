"""`ImageDetIter`: batches of augmented images with objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .. import ndarray as nd
from ..base import asserted, error
from ..ndarray import NDArray
from ..ops.image.opencv import opencv
from ..urls import PathLike
from .augmenters import IMAGENET_MEAN, IMAGENET_STD
from .det_augmenters import CreateDetAugmenter, areas
from .image_iter import ImageIter
from .source import objects

__all__ = ["ImageDetIter"]

#: A batch of labels has so many numbers, or so many times what all labels have together, most of them padding: two
#: labels of a small file, one of many objects, one of a long one, would fill the memory.
_LEAST, _PADDED = 1 << 24, 100


class ImageDetIter(ImageIter):
    """Iterate over images with objects, augmented in Python.

    A label is ``[A, B, …]``: A numbers of header, these two included, then rows of B numbers for each object: class,
    left, top, right and bottom as shares of width and height, and whatever else. In a batch it is (batch, objects, B),
    with rows of -1 behind the last object.

    Parameters
    ----------
    batch_size : int
    data_shape : (int, int, int)
        (3, height, width) of the images that come out.
    path_imgrec, path_imglist, path_root, path_imgidx, shuffle, part_index, num_parts, imglist, data_name, label_name,
    last_batch_handle
        See `ImageIter`.
    aug_list : list of DetAugmenter, optional
        `CreateDetAugmenter` makes it from `data_shape` and further keywords otherwise.
    **kwargs
        For `CreateDetAugmenter`.

    Attributes
    ----------
    label_shape : (int, int)
        (objects, numbers of an object): the most of all labels, which are looked through at the start.

    Raises
    ------
    MXNetError
        (also RuntimeError) naming the image whose label is no such list.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.image.ImageDetIter``. Images whose objects are all lost or empty are left out.

    Examples
    --------
    >>> import cv2, numpy, mxcore as mx
    >>> _ = cv2.imwrite("/tmp/mxcore-doc.png", numpy.full((40, 60, 3), 7, "uint8"))
    >>> entry = [[2, 5, 1, 0.1, 0.2, 0.5, 0.6], "mxcore-doc.png"]
    >>> objects = mx.image.ImageDetIter(1, (3, 20, 20), path_root="/tmp", imglist=[entry])
    >>> objects.next().label[0].shape
    (1, 1, 5)
    """

    def __init__(
        self,
        batch_size: int,
        data_shape: Sequence[int],
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
        label_name: str = "label",
        last_batch_handle: str = "pad",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            batch_size,
            data_shape,
            path_imgrec=path_imgrec,
            path_imglist=path_imglist,
            path_root=path_root,
            path_imgidx=path_imgidx,
            shuffle=shuffle,
            part_index=part_index,
            num_parts=num_parts,
            aug_list=[],
            imglist=imglist,
            data_name=data_name,
            label_name=label_name,
            last_batch_handle=last_batch_handle,
        )
        self.auglist = CreateDetAugmenter(data_shape, **kwargs) if aug_list is None else aug_list
        self.label_shape = self._estimate_label_shape()
        self.provide_label = [(label_name, (batch_size, *self.label_shape))]

    # -- labels

    def _estimate_label_shape(self) -> tuple[int, int]:
        """The most objects and numbers of all labels."""
        most, width, read = 0, 5, 0
        self.hard_reset()
        try:
            while True:
                label, _ = self.next_sample()
                self._read += 1
                objects, numbers = self._parse_label(label).shape
                most, width = max(most, objects), max(width, numbers)
                read += objects * numbers
        except StopIteration:
            self.hard_reset()
        if self.batch_size * most * width > max(_PADDED * read, _LEAST):
            raise error(
                ValueError,
                f"{type(self).__name__}: labels have up to {most} objects, and objects up to {width} numbers: a batch "
                f"of {self.batch_size} labels would have {self.batch_size * most * width} numbers for the {read} "
                "that there are; give objects of one length to all, or split the images",
            )
        return most, width

    def _parse_label(self, label: Any) -> np.ndarray[Any, Any]:
        """The rows of a label whose boxes are not empty."""
        rows = objects(label, self._where())
        rows = rows[areas(rows[:, 1:5]) > 0]
        if not len(rows):
            raise error(RuntimeError, f"{self._where()} has no object whose box is not empty")
        return rows

    def check_label_shape(self, label_shape: Any) -> None:
        """Raise unless labels can have a shape (objects, numbers of each): no fewer objects, as many numbers."""
        owner = type(self).__name__
        if len(label_shape) != 2:
            raise error(
                ValueError, f"{owner}: label_shape must be (objects, numbers of an object), got {tuple(label_shape)}"
            )
        if label_shape[0] < self.label_shape[0]:
            raise error(
                ValueError, f"{owner}: {self.label_shape[0]} objects do not fit into a label of {label_shape[0]}"
            )
        if label_shape[1] != self.provide_label[0][1][2]:
            raise error(
                ValueError,
                f"{owner}: an object has {self.provide_label[0][1][2]} numbers, label_shape says {label_shape[1]}",
            )

    def reshape(self, data_shape: Sequence[int] | None = None, label_shape: Any = None) -> None:
        """Take another shape of images or labels from now on.

        Parameters
        ----------
        data_shape : (int, int, int), optional
            The augmenters stay as they are: they must give this size.
        label_shape : (int, int), optional
            (objects, numbers of an object): not fewer objects than now.
        """
        if data_shape is not None:
            self.check_data_shape(data_shape)
            self.data_shape = tuple(data_shape)
            self.provide_data = [(self.provide_data[0][0], (self.batch_size, *self.data_shape))]
        if label_shape is not None:
            self.check_label_shape(label_shape)
            self.label_shape = tuple(label_shape)
            self.provide_label = [(self.provide_label[0][0], (self.batch_size, *self.label_shape))]

    def sync_label_shape(self, it: ImageDetIter, verbose: bool = False) -> Any:
        """Give this iterator and another one the larger label of both, as for training and validation.

        Parameters
        ----------
        it : ImageDetIter
        verbose : bool
            Log it.

        Returns
        -------
        ImageDetIter
            The other one.
        """
        if not isinstance(it, ImageDetIter):
            raise asserted(TypeError, f"sync_label_shape: an ImageDetIter is needed, got {type(it).__name__}")
        if self.label_shape[1] != it.label_shape[1]:
            raise asserted(
                ValueError,
                f"sync_label_shape: objects have {self.label_shape[1]} numbers here and {it.label_shape[1]} there",
            )
        shape = max(self.label_shape[0], it.label_shape[0]), self.label_shape[1]
        for one in (self, it):
            if shape > one.label_shape:
                if verbose:
                    import logging

                    logging.info("label_shape: %s instead of %s", shape, one.label_shape)
                one.reshape(None, shape)
        return it

    # -- samples

    def _empty_label(self) -> NDArray:
        return nd.full(self.provide_label[0][1], -1.0)

    def _place(self, data: Any, label: Any, i: int, image: NDArray, numbers: Any) -> bool:
        image, rows = self.augmentation_transform(image, self._parse_label(numbers))
        rows = rows[areas(rows[:, 1:5]) > 0]
        if not (rows[:, 0] >= 0).any():  # classes below 0 stand for no object
            self._skipped("no object is left")
            return False
        most, width = self.label_shape
        if len(rows) > most or rows.shape[1] > width:
            raise error(
                ValueError,
                f"{self._where()} has objects {rows.shape} after augmentation, label_shape is {self.label_shape}",
            )
        self._write(data, i, image)
        full = np.full((most, width), -1, "float32")
        full[: len(rows), : rows.shape[1]] = rows
        label[i] = full
        return True

    def augmentation_transform(self, data: Any, label: Any) -> Any:  # type: ignore[override]  # as in MXNet
        """Apply `auglist` to an image and its label."""
        for augment in self.auglist:
            data, label = augment(data, label)
        return data, label

    # -- looking at them

    def draw_next(
        self,
        color: Any = None,
        thickness: int = 2,
        mean: Any = None,
        std: Any = None,
        clip: bool = True,
        waitKey: int | None = None,
        window_name: str = "draw_next",
        id2labels: Any = None,
    ) -> Iterator[Any]:
        """Yield augmented images with their boxes drawn in.

        Parameters
        ----------
        color : (int, int, int), optional
            Of the boxes; one by chance for each without it.
        thickness : int
            Of the lines, in pixels.
        mean, std : True or numpy.ndarray, optional
            What was subtracted, and divided by: it is undone; ImageNet's for True.
        clip : bool
            Limit pixels to 0 to 255.
        waitKey : int, optional
            Show each image in a window for so many milliseconds, 0 until a key is pressed; needs an OpenCV with
            windows.
        window_name : str
        id2labels : dict of int to str, optional
            Names of classes, to be written above the boxes.

        Yields
        ------
        numpy.ndarray of uint8
            ``(height, width, 3)``.
        """
        cv2 = opencv()
        if color is not None and (not isinstance(color, (list, tuple)) or len(color) != 3):
            raise error(ValueError, f"draw_next: color must be three numbers, got {color!r}")
        mean, std = (usual if given is True else given for given, usual in ((mean, IMAGENET_MEAN), (std, IMAGENET_STD)))
        while True:
            try:
                numbers, raw = self.next_sample()
            except StopIteration:
                return
            self._read += 1
            image, rows = self.augmentation_transform(self._decoded(raw), self._parse_label(numbers))
            pixels = image.asnumpy().astype("float32")
            pixels = pixels * (1.0 if std is None else np.asarray(std)) + (0.0 if mean is None else np.asarray(mean))
            pixels = np.ascontiguousarray((np.clip(pixels, 0, 255) if clip else pixels).astype("uint8"))
            height, width = pixels.shape[:2]
            for row in rows:
                if row[0] < 0:
                    continue
                left, top, right, bottom = (
                    int(share * size) for share, size in zip(row[1:5], (width, height, width, height))
                )
                shade = tuple(map(int, np.random.randint(0, 256, 3))) if color is None else tuple(color)
                cv2.rectangle(pixels, (left, top), (right, bottom), shade, thickness)
                if id2labels is not None and int(row[0]) in id2labels:
                    cv2.putText(
                        pixels,
                        str(id2labels[int(row[0])]),
                        (left + 5, top + 20),
                        cv2.FONT_HERSHEY_SIMPLEX,
                        0.5,
                        shade,
                        1,
                    )
            if waitKey is not None:
                cv2.imshow(window_name, pixels[:, :, ::-1])
                cv2.waitKey(waitKey)
            yield pixels
