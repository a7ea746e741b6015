"""`MNISTIter`: batches of the MNIST files."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._io_files import checked
from ..base import error
from ..urls import PathLike
from ._idx import read_idx
from .data_desc import DataDesc
from .mx_data_iter import Arrays, MXDataIter

__all__ = ["MNISTIter"]


class MNISTIter(MXDataIter):
    """Iterate over the MNIST data set, or any other in its format.

    Parameters
    ----------
    image, label : str or os.PathLike
        The files, as they are or gzipped; paths or fsspec URLs.
    batch_size : int
        Examples per batch; a last batch that is not full is left out.
    shuffle : bool
        Put the examples into an order drawn once, from `seed`.
    flat : bool
        Give images as vectors instead of (1, height, width).
    seed : int
        Decides the order.
    silent : bool
        Taken for MXNet's sake; nothing is printed.
    num_parts, part_index : int
        Read only this of so many equal parts.
    data_name, label_name : str
        Names of the arrays.
    prefetch_buffer, ctx : optional
        Taken for MXNet's sake; the images lie in memory.
    dtype : {'float32'}, optional
        Type of the images; nothing else is offered, as in MXNet.
    **unknown
        Other parameters are left out, with one warning.

    Raises
    ------
    MXNetError
        (also OSError) if a file cannot be read, (also ValueError) if it is damaged or holds more than
        ``MXCORE_MAX_UNPACKED_BYTES`` (see `mxcore.limits`).

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``io.MNISTIter``: pixels are divided by 256. The shuffled order is another.

    Examples
    --------
    >>> import mxcore as mx
    >>> it = mx.io.MNISTIter(image="train-images-idx3-ubyte",
    ...                      label="train-labels-idx1-ubyte", batch_size=100)  # doctest: +SKIP
    """

    def __init__(
        self,
        *,
        image: PathLike = "./train-images-idx3-ubyte",
        label: PathLike = "./train-labels-idx1-ubyte",
        batch_size: int = 128,
        shuffle: bool = True,
        flat: bool = False,
        seed: int = 0,
        silent: bool = False,
        num_parts: int = 1,
        part_index: int = 0,
        data_name: str = "data",
        label_name: str = "softmax_label",
        prefetch_buffer: int = 4,
        ctx: Any = "cpu",
        dtype: Any = None,
        **unknown: Any,
    ) -> None:
        p = self.parameters(
            batch_size=batch_size,
            shuffle=shuffle,
            flat=flat,
            seed=seed,
            silent=silent,
            num_parts=num_parts,
            part_index=part_index,
            prefetch_buffer=prefetch_buffer,
            ctx=ctx,
        )
        batch_size, num_parts, part_index = p.batch_size, p.num_parts, p.part_index
        super().__init__(batch_size, data_name, label_name)
        self.leave_out(unknown)
        if dtype not in (None, "None", "float32", np.float32, np.dtype("float32")):
            raise error(TypeError, f"MNISTIter: dtype must be float32, got {dtype!r}")
        image, label = checked(image, "MNISTIter: image"), checked(label, "MNISTIter: label")
        images, labels = read_idx(image, 3, "MNISTIter"), read_idx(label, 1, "MNISTIter")
        if len(images) != len(labels):
            raise error(
                ValueError, f"MNISTIter: {image!r} has {len(images)} images, but {label!r} has {len(labels)} labels"
            )
        part = slice(len(images) * part_index // num_parts, len(images) * (part_index + 1) // num_parts)
        self._rows = np.arange(len(images))[part]
        if p.shuffle:
            self._rows = np.random.RandomState(p.seed & 0xFFFFFFFF).permutation(self._rows)
        self._images = images.reshape(len(images), math.prod(images.shape[1:])) if p.flat else images[:, None]
        self._labels = labels
        self._at = 0
        self.provide_data = [DataDesc(data_name, (batch_size, *self._images.shape[1:]))]
        self.provide_label = [DataDesc(label_name, (batch_size,))]

    def reset(self) -> None:
        super().reset()
        self._at = 0

    def next_arrays(self) -> Arrays:
        rows = self._rows[self._at : self._at + self.batch_size]
        if len(rows) < self.batch_size:
            raise StopIteration
        self._at += self.batch_size
        images = self._images[rows].astype(np.float32)
        images /= 256
        return [images], [self._labels[rows].astype(np.float32)], 0, rows.astype(np.uint64)
