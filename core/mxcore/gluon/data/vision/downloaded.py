"""Published data sets of small images: MNIST, FashionMNIST, CIFAR10, CIFAR100."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from .... import ndarray as nd
from ...._interrupts import suppress
from ...._io_files import checked, local_path, make_folder, read_whole, regular
from ....base import error
from ....io._idx import read_idx
from ..._repository import data_dir, fetch, intact, unpack
from ..dataset import Dataset

__all__ = ["CIFAR10", "CIFAR100", "MNIST", "FashionMNIST"]

#: The longest file of images, in bytes.
_LONGEST = 1 << 30


class _DownloadedDataset(Dataset):
    """Images and labels in memory, read from files in `root` that are downloaded if need be."""

    _namespace: str

    #: From `_take` on.
    _data: nd.NDArray
    _label: np.ndarray[Any, Any] | nd.NDArray

    def __init__(self, root: str, transform: Callable[..., Any] | None) -> None:
        self._transform = transform
        self._root = local_path(checked(root, f"{type(self).__name__}: root"))
        make_folder(self._root)
        self._get_data()

    def __getitem__(self, idx: Any) -> Any:
        if self._transform is not None:
            return self._transform(self._data[idx], self._label[idx])
        return self._data[idx], self._label[idx]

    def __len__(self) -> int:
        return len(self._label)

    def _fetch(self, name: str, sha1_hash: str, why: str = "") -> str:
        return fetch(f"gluon/dataset/{self._namespace}/{name}", self._root, sha1_hash, type(self).__name__ + why)

    def _take(self, images: np.ndarray[Any, Any], labels: np.ndarray[Any, Any]) -> None:
        self._data = nd.array(images, dtype=images.dtype)
        self._label = labels.astype(np.int32)

    def _get_data(self) -> None:
        raise error(NotImplementedError, f"{type(self).__name__} does not say where its data are")


class MNIST(_DownloadedDataset):
    """Handwritten digits: 60,000 images to train and 10,000 to test (LeCun et al., 1998).

    A sample is an image, NDArray ``(28, 28, 1)`` of uint8, and its label, int32.

    Parameters
    ----------
    root : str, default '~/.mxnet/datasets/mnist'
        Folder with the published files; missing ones are downloaded.
    train : bool, default True
        The part to train or the part to test.
    transform : callable, optional
        Gets image and label, returns the sample.

    Raises
    ------
    MXNetError (FileNotFoundError)
        If a file is not there and cannot be downloaded.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gluon.data.vision.MNIST``. Files that are not the published ones, by their SHA-1
    digests, are downloaded again, with a warning. Files in `root` may be unpacked ones, which are taken as they are.
    """

    _namespace = "mnist"
    _files = {
        "train-images-idx3-ubyte.gz": "6c95f4b05d2bf285e1bfb0e7960c31bd3b3f8a7d",
        "train-labels-idx1-ubyte.gz": "2a80914081dc54586dbdf242f9805a6b8d2a15fc",
        "t10k-images-idx3-ubyte.gz": "c3a25af1f52dad7f726cce8cacb138654b760d48",
        "t10k-labels-idx1-ubyte.gz": "763e7fa3757d93b0cdec073cef058b2004252c17",
    }

    def __init__(
        self, root: str | None = None, train: bool = True, transform: Callable[..., Any] | None = None
    ) -> None:
        self._train = train
        super().__init__(data_dir("datasets", self._namespace) if root is None else root, transform)

    def _get_data(self) -> None:
        images, labels = self._part("images-idx3", 3), self._part("labels-idx1", 1)
        if len(images) != len(labels):
            raise error(ValueError, f"{self._root} has {len(images)} images but {len(labels)} labels")
        self._take(images[..., None], labels)

    def _part(self, kind: str, axes: int) -> np.ndarray[Any, Any]:
        name = f"{'train' if self._train else 't10k'}-{kind}-ubyte.gz"
        unpacked = os.path.join(self._root, name[:-3])
        path = unpacked if os.path.exists(unpacked) else self._fetch(name, self._files[name])
        found: np.ndarray[Any, Any] = read_idx(path, axes, type(self).__name__)
        return found


class FashionMNIST(MNIST):
    """Clothes in the format of MNIST (Xiao et al., 2017, arXiv:1708.07747); parameters as for `MNIST`."""

    _namespace = "fashion-mnist"
    _files = {
        "train-images-idx3-ubyte.gz": "0cf37b0d40ed5169c6b3aba31069a9770ac9043d",
        "train-labels-idx1-ubyte.gz": "236021d52f1e40852b06a4c3008d8de8aef1e40b",
        "t10k-images-idx3-ubyte.gz": "626ed6a7c06dd17c0eec72fa3be1740f146a2863",
        "t10k-labels-idx1-ubyte.gz": "17f9ab60e7257a1620f4ad76bbbaf857c3920701",
    }


class CIFAR10(_DownloadedDataset):
    """Photographs of ten kinds of things: 50,000 images to train and 10,000 to test (Krizhevsky, 2009).

    A sample is an image, NDArray ``(32, 32, 3)`` of uint8, and its label, int32.

    Parameters
    ----------
    root : str, default '~/.mxnet/datasets/cifar10'
        Folder with the published archive, or with the files in it; it is downloaded if neither is there.
    train : bool, default True
        The part to train or the part to test.
    transform : callable, optional
        Gets image and label, returns the sample.

    Raises
    ------
    MXNetError (FileNotFoundError)
        If the archive is not there and cannot be downloaded.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gluon.data.vision.CIFAR10``. An archive that is not the published one, by its SHA-1
    digest, is downloaded again, with a warning; files of it that have the published length but another digest are taken
    out anew. Files of another length, such as your own in this format, are taken as they are.
    """

    _namespace = "cifar10"
    _archive = ("cifar-10-binary.tar.gz", "fab780a1e191a7eda0f345501ccd62d20f7ed891")
    #: Whether to train -> the published files with their digests.
    _parts = {
        True: {
            "data_batch_1.bin": "aadd24acce27caa71bf4b10992e9e7b2d74c2540",
            "data_batch_2.bin": "c0ba65cce70568cd57b4e03e9ac8d2a5367c1795",
            "data_batch_3.bin": "1dd00a74ab1d17a6e7d73e185b69dbf31242f295",
            "data_batch_4.bin": "aab85764eb3584312d3c7f65fd2fd016e36a258e",
            "data_batch_5.bin": "26e2849e66a845b7f1e4614ae70f4889ae604628",
        },
        False: {"test_batch.bin": "67eb016db431130d61cd03c7ad570b013799c88c"},
    }
    #: Whether to train -> how many images a published file has.
    _images = {True: 10000, False: 10000}
    _label_bytes, _label_at = 1, 0

    def __init__(
        self, root: str | None = None, train: bool = True, transform: Callable[..., Any] | None = None
    ) -> None:
        self._train = train
        super().__init__(data_dir("datasets", self._namespace) if root is None else root, transform)

    def _get_data(self) -> None:
        names = self._parts[self._train]
        for name, sha1_hash in names.items():
            path = os.path.join(self._root, name)
            if self._sound(path, sha1_hash):
                continue
            why = f", as {path} is not the published file" if os.path.exists(path) else ""
            unpack(self._fetch(*self._archive, why), {n for part in self._parts.values() for n in part}, self._root)
            break  # all are there now, out of an archive that was compared
        rows = np.concatenate([self._read(os.path.join(self._root, n)) for n in names])
        images = rows[:, self._label_bytes :].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        self._take(np.ascontiguousarray(images), rows[:, self._label_at])

    def _sound(self, path: str, sha1_hash: str) -> bool:
        """Whether a file is there: the published one, or one of another length, as users' own have."""
        with suppress(OSError):
            if os.stat(path).st_size != self._images[self._train] * (self._label_bytes + 3072):
                return True
        return intact(path, sha1_hash, "Unpacking again.")

    def _read(self, path: str) -> np.ndarray[Any, Any]:
        raw = np.frombuffer(read_whole(regular(path), most=_LONGEST, what="file of CIFAR"), np.uint8)
        row = self._label_bytes + 3072
        if raw.size == 0 or raw.size % row:
            raise error(ValueError, f"{path} is cut short: {raw.size} bytes are no multiple of {row}")
        return raw.reshape(-1, row)


class CIFAR100(CIFAR10):
    """Photographs of a hundred kinds of things in twenty groups: 50,000 to train and 10,000 to test.

    Parameters
    ----------
    root : str, default '~/.mxnet/datasets/cifar100'
    fine_label : bool, default False
        Labels are the hundred kinds instead of the twenty groups.
    train : bool, default True
    transform : callable, optional
        As for `CIFAR10`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gluon.data.vision.CIFAR100``.
    """

    _namespace = "cifar100"
    _archive = ("cifar-100-binary.tar.gz", "a0bb982c76b83111308126cc779a992fa506b90b")
    _parts = {
        True: {"train.bin": "e207cd2e05b73b1393c74c7f5e7bea451d63e08e"},
        False: {"test.bin": "8fb6623e830365ff53cf14adec797474f5478006"},
    }
    _images = {True: 50000, False: 10000}
    _label_bytes = 2

    def __init__(
        self,
        root: str | None = None,
        fine_label: bool = False,
        train: bool = True,
        transform: Callable[..., Any] | None = None,
    ) -> None:
        self._label_at = int(fine_label)
        super().__init__(root, train, transform)
