"""Loaders of images from record files and lists, with the augmentation that most trainings take."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..... import ndarray as nd
from ....._io_files import checked, regular
from .....base import error
from .....image.source import listed, objects, read_list
from ....block import Block, HybridBlock
from ....data import DataLoader, Dataset, Sampler
from ....data.batching import default_batchify_fn
from ....data.vision import ImageRecordDataset
from ....data.vision import transforms as image_transforms
from ....data.vision.images import read
from ....nn import HybridSequential, Sequential
from .transforms import bbox

__all__ = [
    "BboxLabelTransform",
    "ImageBboxDataLoader",
    "ImageDataLoader",
    "create_bbox_augment",
    "create_image_augment",
]

#: ImageNet's, of pixels between 0 and 1.
_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
#: Share of red, green and blue in the luminance.
_GREY = np.array([[0.299], [0.587], [0.114]], "float32")
_DTYPES = ("int32", "float32", "int64", "float64")


class _RandomCrop(Block):
    """Cut a window of a size at a place taken by chance; a smaller image is enlarged first."""

    def __init__(self, size: tuple[int, int], interpolation: int) -> None:
        super().__init__()
        self._size = size
        self._fit = image_transforms.CenterCrop(size, interpolation)

    def forward(self, x: Any) -> Any:
        (width, height), (h, w) = self._size, x.shape[:2]
        if w < width or h < height:
            return self._fit(x)
        return nd.image.crop(x, random.randint(0, w - width), random.randint(0, h - height), width, height)


class _RandomGray(Block):
    """Make an image grey by chance; it keeps its three channels."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self._p = p

    def forward(self, x: Any) -> Any:
        if random.random() >= self._p:
            return x
        return nd.broadcast_to(nd.dot(x, nd.array(_GREY, ctx=x.context)), x.shape)


class _OfImage(Block):
    """A transform of images that leaves boxes as they are."""

    def __init__(self, transform: Block) -> None:
        super().__init__()
        self.transform = transform

    def forward(self, img: Any, boxes: Any) -> Any:
        return self.transform(img), boxes


class _InOrder(Sequential):
    """Transforms of image and boxes, one after the other."""

    def forward(self, img: Any, boxes: Any) -> Any:
        for transform in self._children.values():
            img, boxes = transform(img, boxes)
        return img, boxes


def _colours(
    function: str,
    brightness: float,
    contrast: float,
    saturation: float,
    hue: float,
    pca_noise: float,
    rand_gray: float,
    mean: Any,
    std: Any,
    dtype: Any,
) -> Iterator[Any]:
    """From pixels to a tensor."""
    yield image_transforms.Cast()
    if brightness or contrast or saturation or hue:
        yield image_transforms.RandomColorJitter(brightness, contrast, saturation, hue)
    if pca_noise > 0:
        yield image_transforms.RandomLighting(pca_noise)
    if rand_gray > 0:
        yield _RandomGray(rand_gray)
    yield image_transforms.ToTensor()
    given = []
    for name, value, usual, none in (("mean", mean, _MEAN, 0.0), ("std", std, _STD, 1.0)):
        if value is not None and value is not True and not (isinstance(value, (tuple, list)) and len(value) in (1, 3)):
            raise error(AssertionError, f"{function}: {name} must be True or 1 or 3 numbers, got {value!r}")
        given.append(usual if value is True else none if value is None else tuple(value))
    if mean is not None or std is not None:
        yield image_transforms.Normalize(*given)
    yield image_transforms.Cast(dtype)


def create_image_augment(
    data_shape: tuple[int, int, int],
    resize: int = 0,
    rand_crop: bool = False,
    rand_resize: bool = False,
    rand_mirror: bool = False,
    mean: Any = None,
    std: Any = None,
    brightness: float = 0,
    contrast: float = 0,
    saturation: float = 0,
    hue: float = 0,
    pca_noise: float = 0,
    rand_gray: float = 0,
    inter_method: int = 2,
    dtype: Any = "float32",
) -> Block:
    """The transforms that classification usually takes, in their usual order, as one block.

    Parameters
    ----------
    data_shape : (int, int, int)
        (3, height, width) of the tensors that come out.
    resize : int, default 0
        Length that the shorter side gets first; 0 for none.
    rand_crop : bool, default False
        The window is taken by chance, else from the middle.
    rand_resize : bool, default False
        Its size, too; needs `rand_crop`.
    rand_mirror : bool, default False
        Mirror one half of the images.
    mean, std : True or tuple of float, optional
        Subtracted from pixels between 0 and 1, and divided by; ImageNet's for True.
    brightness, contrast, saturation, hue : float, default 0
        As for `gluon.data.vision.transforms.RandomColorJitter`.
    pca_noise : float, default 0
        As for `gluon.data.vision.transforms.RandomLighting`.
    rand_gray : float, default 0
        Share of images that turn grey.
    inter_method : int, default 2
        Interpolation: 0 nearest, 1 bilinear, 2 cubic, 3 area, 4 Lanczos, 9 by whether the image grows or shrinks, 10 by
        chance.
    dtype : str, default 'float32'

    Returns
    -------
    Block
        Takes an image ``(height, width, 3)`` of uint8.

    Notes
    -----
    MXNet 1.9.1 does not have it yet; the arguments are those of MXNet 2.

    Examples
    --------
    >>> import mxcore as mx
    >>> from mxcore.gluon.contrib.data.vision import create_image_augment
    >>> augment = create_image_augment((3, 20, 30), resize=32, rand_crop=True, rand_mirror=True, mean=True, std=True)
    >>> augment(mx.nd.zeros((40, 60, 3), dtype="uint8")).shape
    (3, 20, 30)
    """
    size = _size_of(data_shape, "create_image_augment")
    found: list[Block] = [image_transforms.Resize(resize, True, inter_method)] if resize > 0 else []
    if rand_resize and not rand_crop:
        raise error(AssertionError, "create_image_augment: rand_resize needs rand_crop=True")
    if rand_resize:
        found.append(image_transforms.RandomResizedCrop(size, interpolation=inter_method))
    else:
        found.append((_RandomCrop if rand_crop else image_transforms.CenterCrop)(size, inter_method))
    if rand_mirror:
        found.append(image_transforms.RandomFlipLeftRight())
    found.extend(
        _colours("create_image_augment", brightness, contrast, saturation, hue, pca_noise, rand_gray, mean, std, dtype)
    )
    return image_transforms.Compose(found)


def create_bbox_augment(
    data_shape: tuple[int, int, int],
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
    max_aspect_ratio: float = 2,
    area_range: tuple[float, float] = (0.3, 3.0),
    max_attempts: int = 50,
    pad_val: float | tuple[float, ...] = (127, 127, 127),
    dtype: Any = "float32",
) -> Block:
    """The transforms that detection usually takes, in their usual order, as one block.

    Parameters
    ----------
    data_shape : (int, int, int)
        (3, height, width) of the tensors that come out.
    rand_crop : float, default 0
        How often to cut a window; see `ImageBboxRandomCropWithConstraints`.
    rand_pad : float, default 0
        How often to put the image into a larger one; see `ImageBboxRandomExpand`.
    rand_mirror : bool, default False
        Mirror one half of the images.
    max_aspect_ratio : float, default 2
        Of the window.
    area_range : (float, float), default (0.3, 3.0)
        Least scale of the window, and the most that a padded image grows by.
    max_attempts : int, default 50
        Windows that are tried.
    pad_val : float or tuple of float, default (127, 127, 127)
        Fill of what is around a padded image.
    rand_gray, mean, std, brightness, contrast, saturation, pca_noise, hue, inter_method, dtype
        As for `create_image_augment`.

    Returns
    -------
    Block
        Takes an image ``(height, width, 3)`` of uint8 and boxes ``(N, 4 or more)`` in pixels.

    Notes
    -----
    MXNet 1.9.1 does not have it yet; the arguments are those of MXNet 2.

    Examples
    --------
    >>> import mxcore as mx
    >>> from mxcore.gluon.contrib.data.vision import create_bbox_augment
    >>> augment = create_bbox_augment((3, 20, 30), rand_mirror=True)
    >>> image, boxes = augment(mx.nd.zeros((40, 60, 3), dtype="uint8"), mx.nd.array([[0, 10, 60, 30, 5]]))
    >>> image.shape, boxes.asnumpy().tolist()
    ((3, 20, 30), [[0.0, 5.0, 30.0, 15.0, 5.0]])
    """
    width, height = _size_of(data_shape, "create_bbox_augment")
    out = _InOrder()
    if rand_crop > 0:
        out.add(
            bbox.ImageBboxRandomCropWithConstraints(rand_crop, area_range[0], 1.0, max_aspect_ratio, None, max_attempts)
        )
    if rand_mirror:
        out.add(bbox.ImageBboxRandomFlipLeftRight(0.5))
    if rand_pad > 0:
        out.add(bbox.ImageBboxRandomExpand(rand_pad, area_range[1], pad_val))
    out.add(bbox.ImageBboxResize(width, height, inter_method))
    colours = _colours(
        "create_bbox_augment", brightness, contrast, saturation, hue, pca_noise, rand_gray, mean, std, dtype
    )
    out.add(_OfImage(image_transforms.Compose(colours)))
    return out


def _size_of(data_shape: Any, function: str) -> tuple[int, int]:
    """(width, height) of a data shape."""
    if len(data_shape) != 3 or data_shape[0] != 3:
        raise error(ValueError, f"{function}: data_shape must be (3, height, width), got {tuple(data_shape)}")
    return data_shape[2], data_shape[1]


class _ImageListDataset(Dataset):
    """Images that a list file, or a list in memory, names; labels are arrays."""

    def __init__(self, root: str, source: Any, owner: str, dtype: Any) -> None:
        self._root = root
        found = listed(source, owner, dtype) if isinstance(source, list) else read_list(source, owner, dtype)
        self._items = [(name, label.asnumpy()) for label, name in found.values()]

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, idx: Any) -> Any:
        name, label = self._items[idx]
        image = nd.array(read(regular(os.path.join(self._root, name))), dtype="uint8")
        return image, label[0] if label.size == 1 else label.copy()


def _images(
    owner: str,
    path_imgrec: str | None,
    path_imglist: str | None,
    path_root: str,
    imglist: list[Any] | None,
    dtype: Any,
    num_parts: int,
    part_index: int,
) -> Dataset:
    """The data set that the arguments of a loader name."""
    if dtype not in _DTYPES:
        raise error(AssertionError, f"{owner}: dtype, of labels, must be one of {', '.join(_DTYPES)}, got {dtype!r}")
    if path_imgrec:
        found: Dataset = ImageRecordDataset(path_imgrec)
    elif path_imglist or isinstance(imglist, list):
        root = checked(path_root, f"{owner}: path_root", empty=True)
        found = _ImageListDataset(root, path_imglist or imglist, owner, dtype)
    else:
        raise error(AssertionError, f"{owner}: images come from path_imgrec, path_imglist or imglist; none was given")
    return found.shard(num_parts, part_index) if num_parts > 1 else found


def _augmenter(owner: str, aug_list: Any, sequential: type[Any]) -> Any:
    """A block of a list of blocks."""
    if isinstance(aug_list, Block):
        return aug_list
    if not isinstance(aug_list, (list, tuple)) or not all(isinstance(a, Block) for a in aug_list):
        raise error(ValueError, f"{owner}: aug_list must be a Block or a list of them, got {aug_list!r}")
    if sequential is Sequential and all(isinstance(a, HybridBlock) for a in aug_list):
        sequential = HybridSequential
    out = sequential()
    out.add(*aug_list)
    return out


class ImageDataLoader(DataLoader):
    """Batches of images from a record file or image files, augmented.

    Parameters
    ----------
    batch_size : int
    data_shape : (int, int, int)
        (3, height, width) of the tensors that come out.
    path_imgrec : str, optional
        A record file, with its index beside it.
    path_imglist : str, optional
        A list file: lines of key, label and file name with tabs between.
    path_root : str, default '.'
        Folder of the files that a list names.
    part_index, num_parts : int, default 0 and 1
        Which part of how many is read.
    aug_list : Block or list of Block, optional
        What is done to each image; `create_image_augment` makes it from `data_shape` and further keywords otherwise.
    imglist : list, optional
        A list in memory, of ``[label, …, file name]``.
    dtype : {'float32', 'float64', 'int32', 'int64'}, default 'float32'
        Of the labels in a list.
    shuffle, sampler, last_batch, batch_sampler, batchify_fn, num_workers, pin_memory, pin_device_id, prefetch,
    thread_pool, timeout
        As for `gluon.data.DataLoader`.
    try_nopython : bool, optional
        Without effect: MXNet's way to load without Python.
    **kwargs
        For `create_image_augment`.

    Raises
    ------
    MXNetError
        (also AssertionError or ValueError) if there is no source, or arguments do not fit.

    Notes
    -----
    MXNet 1.9.1 does not have it yet; the arguments are those of MXNet 2. It is a `DataLoader`, so an `Estimator` takes
    it.

    Examples
    --------
    >>> import cv2, numpy
    >>> from mxcore.gluon.contrib.data.vision import ImageDataLoader
    >>> for i in range(3):
    ...     _ = cv2.imwrite(f"/tmp/mxcore-doc-{i}.png", numpy.full((40, 60, 3), i, "uint8"))
    >>> names = [[float(i), f"mxcore-doc-{i}.png"] for i in range(3)]
    >>> [(x.shape, y.asnumpy().tolist()) for x, y in ImageDataLoader(2, (3, 20, 20), imglist=names, path_root="/tmp")]
    [((2, 3, 20, 20), [0.0, 1.0]), ((1, 3, 20, 20), [2.0])]
    """

    def __init__(
        self,
        batch_size: int,
        data_shape: tuple[int, int, int],
        path_imgrec: str | None = None,
        path_imglist: str | None = None,
        path_root: str = ".",
        part_index: int = 0,
        num_parts: int = 1,
        aug_list: Block | Sequence[Block] | None = None,
        imglist: list[Any] | None = None,
        dtype: Any = "float32",
        shuffle: bool = False,
        sampler: Sampler | None = None,
        last_batch: str | None = None,
        batch_sampler: Sampler | None = None,
        batchify_fn: Callable[..., Any] | None = None,
        num_workers: int = 0,
        pin_memory: bool = False,
        pin_device_id: int = 0,
        prefetch: int | None = None,
        thread_pool: bool = False,
        timeout: float = 120,
        try_nopython: bool | None = None,
        **kwargs: Any,
    ) -> None:
        owner = type(self).__name__
        images = _images(owner, path_imgrec, path_imglist, path_root, imglist, dtype, num_parts, part_index)
        if aug_list is None:
            augment = create_image_augment(data_shape, **kwargs)
        else:
            augment = _augmenter(owner, aug_list, Sequential)
        super().__init__(
            images.transform_first(augment),
            batch_size,
            shuffle,
            sampler,
            last_batch,
            batch_sampler,
            batchify_fn,
            num_workers,
            pin_memory,
            pin_device_id,
            prefetch,
            thread_pool,
            timeout,
        )


class BboxLabelTransform(Block):
    """The label of a record with objects as boxes: left, top, right, bottom, class, and whatever else.

    Parameters
    ----------
    coord_normalized : bool, default True
        Coordinates in the label are shares of width and height; they become pixels.

    Examples
    --------
    >>> import mxcore as mx
    >>> from mxcore.gluon.contrib.data.vision.dataloader import BboxLabelTransform
    >>> label = [2, 5, 7, 0.25, 0.5, 0.75, 1]  # 2 numbers of head, 5 numbers an object
    >>> BboxLabelTransform()(mx.nd.zeros((10, 20, 3)), label)[1].asnumpy().tolist()
    [[5.0, 5.0, 15.0, 10.0, 7.0]]
    """

    def __init__(self, coord_normalized: bool = True) -> None:
        super().__init__()
        self._coord_normalized = coord_normalized

    def forward(self, img: Any, label: Any) -> Any:
        rows = objects(label, "BboxLabelTransform: an image").copy()
        rows[:, :5] = rows[:, [1, 2, 3, 4, 0]]
        if self._coord_normalized:
            rows[:, :4] *= [img.shape[1], img.shape[0]] * 2
        return img, nd.array(rows, dtype="float32")


class ImageBboxDataLoader(DataLoader):
    """Batches of images and boxes of their objects, from a record file or image files, augmented.

    A batch is images and an array ``(images, objects, 5 or more)``: left, top, right and bottom in pixels, class, and
    whatever else a label has; images of fewer objects get rows of -1.

    Parameters
    ----------
    batch_size : int
    data_shape : (int, int, int)
        (3, height, width) of the tensors that come out.
    path_imgrec, path_imglist, path_root, part_index, num_parts, imglist, dtype
        As for `ImageDataLoader`. Labels are those of `mx.image.ImageDetIter`.
    aug_list : Block or list of Block, optional
        What is done to each image and its boxes; `create_bbox_augment` makes it from `data_shape` and further keywords
        otherwise.
    coord_normalized : bool, default True
        Coordinates in labels are shares of width and height.
    shuffle, sampler, last_batch, batch_sampler, batchify_fn, num_workers, pin_memory, pin_device_id, prefetch,
    thread_pool, timeout
        As for `gluon.data.DataLoader`.
    try_nopython : bool, optional
        Without effect: MXNet's way to load without Python.
    **kwargs
        For `create_bbox_augment`.

    Raises
    ------
    MXNetError
        (also AssertionError or ValueError) if there is no source, or arguments do not fit. (also RuntimeError) while
        iterating, if a label is none of objects.

    Notes
    -----
    MXNet 1.9.1 does not have it yet; the arguments are those of MXNet 2.

    Examples
    --------
    >>> import cv2, numpy
    >>> from mxcore.gluon.contrib.data.vision import ImageBboxDataLoader
    >>> _ = cv2.imwrite("/tmp/mxcore-doc-0.png", numpy.zeros((40, 60, 3), "uint8"))
    >>> one, two = [7, 0, 0.25, 0.5, 1], [8, 0, 0, 1, 1, 9, 0.5, 0, 1, 1]
    >>> names = [[2, 5, *one, "mxcore-doc-0.png"], [2, 5, *two, "mxcore-doc-0.png"]]
    >>> for x, y in ImageBboxDataLoader(2, (3, 20, 20), imglist=names, path_root="/tmp"):
    ...     print(x.shape, y.asnumpy().astype(int).tolist())
    (2, 3, 20, 20) [[[0, 5, 10, 20, 7], [-1, -1, -1, -1, -1]], [[0, 0, 20, 20, 8], [10, 0, 20, 20, 9]]]
    """

    def __init__(
        self,
        batch_size: int,
        data_shape: tuple[int, int, int],
        path_imgrec: str | None = None,
        path_imglist: str | None = None,
        path_root: str = ".",
        part_index: int = 0,
        num_parts: int = 1,
        aug_list: Block | Sequence[Block] | None = None,
        imglist: list[Any] | None = None,
        coord_normalized: bool = True,
        dtype: Any = "float32",
        shuffle: bool = False,
        sampler: Sampler | None = None,
        last_batch: str | None = None,
        batch_sampler: Sampler | None = None,
        batchify_fn: Callable[..., Any] | None = None,
        num_workers: int = 0,
        pin_memory: bool = False,
        pin_device_id: int = 0,
        prefetch: int | None = None,
        thread_pool: bool = False,
        timeout: float = 120,
        try_nopython: bool | None = None,
        **kwargs: Any,
    ) -> None:
        owner = type(self).__name__
        images = _images(owner, path_imgrec, path_imglist, path_root, imglist, dtype, num_parts, part_index)
        if aug_list is None:
            augment = create_bbox_augment(data_shape, **kwargs)
        else:
            augment = _augmenter(owner, aug_list, _InOrder)
        steps = _InOrder()
        steps.add(BboxLabelTransform(coord_normalized), augment)
        super().__init__(
            images.transform(steps),
            batch_size,
            shuffle,
            sampler,
            last_batch,
            batch_sampler,
            _padded if batchify_fn is None else batchify_fn,
            num_workers,
            pin_memory,
            pin_device_id,
            prefetch,
            thread_pool,
            timeout,
        )


def _padded(samples: Sequence[tuple[Any, Any]]) -> list[Any]:
    """A batch of images, and of boxes with rows of -1 behind them."""
    images = [image for image, _ in samples]
    boxes = [b.asnumpy() for _, b in samples]
    out = np.full((len(boxes), max(map(len, boxes)), max(b.shape[1] for b in boxes)), -1, "float32")
    for row, found in zip(out, boxes):
        row[: len(found), : found.shape[1]] = found
    return [default_batchify_fn(images), nd.array(out)]
