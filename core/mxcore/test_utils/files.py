"""Data sets and models: fetched from where they are published, or from local files."""

from __future__ import annotations

import bz2
import gzip
import os
import urllib.parse
import zipfile
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .._io_files import make_folder, regular
from ..base import MXNetError, error
from ..drafts import atomic_writer
from ..limits import check_member, check_unpacked, copy_unpacked

__all__ = [
    "download",
    "download_model",
    "get_bz2_data",
    "get_cifar10",
    "get_im2rec_path",
    "get_mnist",
    "get_mnist_iterator",
    "get_mnist_pkl",
    "get_mnist_ubyte",
    "get_zip_data",
]

_DATA = "data"
_PUBLISHED = "http://data.mxnet.io/mxnet/data/"
_MNIST = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
_MNIST_PKL = "http://deeplearning.net/data/mnist/mnist.pkl.gz"
_CIFAR = ("train.rec", "test.rec", "train.lst", "test.lst")


def download(
    url: str, fname: str | None = None, dirname: str | None = None, overwrite: bool = False, retries: int = 5
) -> str:
    """Fetch a file unless it is there already.

    Parameters
    ----------
    url : str
        ``http(s)://``, ``ftp://``, ``file://`` or a local path.
    fname : str, optional
        Name of the local file; by default the last part of the URL.
    dirname : str, optional
        Folder to put it in, made if need be; by default that in `fname`, or the current one.
    overwrite : bool
        Fetch it even if the file is there.
    retries : int
        How often to try; local files and answers such as "not found" are tried once.

    Returns
    -------
    str
        Path of the file.

    Raises
    ------
    MXNetError
        (also OSError) if it cannot be fetched; says where to put the file by hand.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> size = (folder / "a.txt").write_text("hello")
    >>> path = download((folder / "a.txt").as_uri(), dirname=str(folder / "copy"))
    >>> pathlib.Path(path).read_text()
    'hello'
    """
    from ..gluon import utils

    name = fname or os.path.basename(urllib.parse.urlsplit(url).path)
    if not name:
        raise error(ValueError, f"download: no file name follows from {url!r}; give fname=")
    if retries < 1:
        raise error(ValueError, f"download: retries must be 1 or more, got {retries}")
    path = name if dirname is None else os.path.join(dirname, name)
    return str(utils.download(url, path, overwrite=overwrite, retries=retries - 1))


def download_model(
    model_name: str, dst_dir: str = "./", meta_info: Mapping[str, Mapping[str, str]] | None = None
) -> tuple[Any, int]:
    """Fetch the symbol and the parameters of a model.

    Parameters
    ----------
    model_name : str
    dst_dir : str
        Folder to put them in.
    meta_info : dict of str to dict
        Of each model the URLs ``{'symbol': …, 'params': …}``. The site where MXNet's own models were published is gone,
        so that there are no defaults.

    Returns
    -------
    prefix, epoch
        What ``mx.model.load_checkpoint`` takes; (None, 0) if `meta_info` does not list the model.
    """
    found = (meta_info or {}).get(model_name)
    if found is None:
        return None, 0
    missing = [part for part in ("symbol", "params") if part not in found]
    if missing:
        raise error(AssertionError, f"download_model: meta_info[{model_name!r}] lacks {' and '.join(missing)}")
    prefix = os.path.join(dst_dir, model_name)
    for part, ending in (("symbol", "-symbol.json"), ("params", "-0000.params")):
        download(found[part], prefix + ending)
    return prefix, 0


def _fetched(url: str, path: str, what: str) -> str:
    """Path of a file that is there or can be downloaded; else an error that says what would be needed."""
    if os.path.exists(path):
        return path
    try:
        return download(url, path, retries=2)
    except OSError as e:
        raise error(
            FileNotFoundError, f"{what}: {path} is not there and cannot be downloaded. Put the file there. ({e})"
        ) from e


def get_zip_data(data_dir: str, url: str, data_origin_name: str) -> None:
    """Fetch a zip archive and unpack it beside itself.

    Parameters
    ----------
    data_dir : str
        Folder for the archive and what it holds.
    url : str
    data_origin_name : str
        Name of the archive in `data_dir`; one that is there is taken.

    Raises
    ------
    MXNetError
        (also FileNotFoundError) if it is not there and cannot be fetched; (also ValueError) if it is damaged or would
        write outside of `data_dir`.
    """
    path = os.path.join(data_dir, data_origin_name)
    _fetched(url, path, "get_zip_data")
    home = os.path.realpath(data_dir)
    try:
        with zipfile.ZipFile(regular(path)) as archive:
            check_unpacked(sum(member.file_size for member in archive.infolist()), path)
            for member in archive.infolist():
                check_member(member, path)
                target = os.path.realpath(os.path.join(home, member.filename))
                if os.path.commonpath([home, target]) != home:
                    raise error(
                        ValueError, f"get_zip_data: {path} holds {member.filename!r}, which lies outside of {data_dir}"
                    )
                make_folder(target if member.is_dir() else os.path.dirname(target))
                if not member.is_dir():
                    with archive.open(member) as source, atomic_writer(target) as out:
                        copy_unpacked(source, out, path)
    except MXNetError:  # of the disk that it is unpacked to, or of what is too large
        raise
    except Exception as e:  # damaged archives raise anything
        raise error(ValueError, f"get_zip_data: {path} is damaged: {e}. Delete it to have it downloaded again.") from e


def get_bz2_data(data_dir: str, data_name: str, url: str, data_origin_name: str) -> None:
    """Fetch a file that is compressed by bzip2 and unpack it.

    Parameters
    ----------
    data_dir : str
        Folder for both.
    data_name : str
        Name of the unpacked file; if it is there, nothing is done.
    url : str
    data_origin_name : str
        Name of the compressed file; one that is there is taken.

    Raises
    ------
    MXNetError
        (also FileNotFoundError) if it is not there and cannot be fetched; (also ValueError) if it is damaged.
    """
    target, path = (os.path.join(data_dir, n) for n in (data_name, data_origin_name))
    if not os.path.exists(target):
        _unpack(_fetched(url, path, "get_bz2_data"), target, bz2.open)


def _unpack(path: str, target: str, opener: Callable[..., Any]) -> None:
    """Unpack one file; it appears under its name only once it is complete."""
    try:
        with opener(regular(path), "rb") as source, atomic_writer(target) as out:
            copy_unpacked(source, out, path)
    except MXNetError:  # of the disk that it is unpacked to, or of what is too large
        raise
    except (OSError, EOFError, zlib.error) as e:
        raise error(ValueError, f"{path} is damaged: {e}. Delete it to have it downloaded again.") from e


def _mnist_root() -> str:
    """The folder that has files of MNIST: the current one, ``data`` in it, or the one of Gluon's data sets."""
    for folder in (os.curdir, _DATA):
        if all(
            os.path.exists(os.path.join(folder, n)) or os.path.exists(os.path.join(folder, n + ".gz")) for n in _MNIST
        ):
            return folder
    from ..gluon._repository import data_dir

    return os.path.expanduser(data_dir("datasets", "mnist"))


def get_mnist() -> dict[str, Any]:
    """The MNIST data set, 70,000 handwritten digits.

    The files are looked for in the current folder, in ``data``, and where `mxcore.gluon.data.vision.MNIST` keeps them,
    packed or unpacked; there they are downloaded to if they are nowhere.

    Returns
    -------
    dict
        ``train_data`` and ``test_data``, float32 (n, 1, 28, 28) from 0 to 1; ``train_label`` and ``test_label``, int8
        (n,).

    Raises
    ------
    MXNetError
        (also FileNotFoundError) if files are missing and cannot be downloaded.
    """
    from ..gluon.data.vision import MNIST

    found = {}
    for part, train in (("train", True), ("test", False)):
        digits = MNIST(_mnist_root(), train)
        found[part + "_data"] = digits._data.asnumpy().transpose(0, 3, 1, 2).astype(np.float32) / 255
        found[part + "_label"] = np.asarray(digits._label).astype(np.int8)
    return found


def get_mnist_ubyte() -> None:
    """Put the four files of MNIST, unpacked, into the folder ``data``; see `get_mnist` for where they come from."""
    from ..gluon.data.vision import MNIST

    root = _mnist_root()
    missing = [n for n in _MNIST if not os.path.exists(os.path.join(_DATA, n))]
    if not missing:
        return
    os.makedirs(_DATA, exist_ok=True)
    for train in (True, False):
        MNIST(root, train)  # downloads what is missing, and checks it
    for name in missing:
        plain = os.path.join(root, name)
        packed = not os.path.exists(plain)
        _unpack(plain + ".gz" if packed else plain, os.path.join(_DATA, name), gzip.open if packed else open)


def get_mnist_iterator(
    batch_size: int, input_shape: tuple[int, ...], num_parts: int = 1, part_index: int = 0
) -> tuple[Any, Any]:
    """Iterators over MNIST, to train and to validate; see `get_mnist_ubyte` for the files.

    Parameters
    ----------
    batch_size : int
    input_shape : tuple of int
        Of an example: (784,) for vectors, else (1, 28, 28).
    num_parts, part_index : int
        Read only this of so many parts.

    Returns
    -------
    tuple of MNISTIter
    """
    from ..io import MNISTIter

    get_mnist_ubyte()
    made = [
        MNISTIter(
            image=os.path.join(_DATA, images),
            label=os.path.join(_DATA, labels),
            batch_size=batch_size,
            shuffle=train,
            flat=len(input_shape) != 3,
            num_parts=num_parts,
            part_index=part_index,
        )
        for images, labels, train in ((*_MNIST[:2], True), (*_MNIST[2:], False))
    ]
    return made[0], made[1]


def get_mnist_pkl() -> None:
    """Put MNIST as a gzipped pickle, ``data/mnist.pkl.gz``, unless it is there; it can only be downloaded."""
    _fetched(_MNIST_PKL, os.path.join(_DATA, "mnist.pkl.gz"), "get_mnist_pkl")


def get_cifar10() -> None:
    """Put CIFAR10 as record files into ``data/cifar``, from ``data/cifar10.zip``, downloaded where it is missing.

    Raises
    ------
    MXNetError
        (also FileNotFoundError) if neither is there and it cannot be downloaded.
    """
    if not all(os.path.exists(os.path.join(_DATA, "cifar", n)) for n in _CIFAR):
        get_zip_data(_DATA, _PUBLISHED + "cifar10.zip", "cifar10.zip")


def get_im2rec_path(home_env: str = "MXNET_HOME") -> str:
    """The path of the program that makes record files of images.

    Parameters
    ----------
    home_env : str
        Environment variable with a folder of MXNet, whose ``tools/im2rec.py`` is taken if it is there.

    Returns
    -------
    str
        A script that takes the arguments of MXNet's im2rec.py.

    >>> os.path.basename(get_im2rec_path())
    'im2rec.py'
    """
    home = os.environ.get(home_env)
    theirs = os.path.join(home, "tools", "im2rec.py") if home else ""
    return (
        theirs if theirs and os.path.exists(theirs) else os.path.join(os.path.dirname(__file__), "tools", "im2rec.py")
    )
