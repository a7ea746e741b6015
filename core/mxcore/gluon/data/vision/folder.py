"""Images in folders, one folder a class."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

from .... import ndarray as nd
from ...._io_files import checked, local_path, names_in, regular
from ....base import error
from ....urls import is_folder
from ..dataset import Dataset
from .images import read

__all__ = ["ImageFolderDataset"]


class ImageFolderDataset(Dataset):
    """Images in folders, one folder a class: ``root/car/0001.jpg``, ``root/bus/0001.jpg``.

    A sample is an image, NDArray ``(height, width, channels)`` of uint8, and its label, the number of the
    folder in alphabetical order.

    Parameters
    ----------
    root : str
    flag : {1, 0}, default 1
        Colour or grey.
    transform : callable, optional
        Gets image and label, returns the sample.

    Attributes
    ----------
    synsets : list of str
        Names of the classes.
    items : list of (str, int)
        Path and label of every image.

    Raises
    ------
    MXNetError (FileNotFoundError)
        If there is no such folder.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gluon.data.vision.ImageFolderDataset``.
    """

    _endings = (".jpg", ".jpeg", ".png")

    def __init__(self, root: str, flag: int = 1, transform: Callable[..., Any] | None = None) -> None:
        self._root = local_path(checked(root, "ImageFolderDataset: root"))
        self._flag = flag
        self._transform = transform
        if not is_folder(self._root):
            raise error(FileNotFoundError, f"ImageFolderDataset: {self._root} is no folder")
        self.synsets: list[str] = []
        self.items = []
        for folder in names_in(self._root):
            path = os.path.join(self._root, folder)
            if not is_folder(path):
                warnings.warn(f"Ignoring {path}, which is not a directory.", UserWarning, stacklevel=3)
                continue
            label = len(self.synsets)
            self.synsets.append(folder)
            for name in names_in(path):
                ending = os.path.splitext(name)[1]
                filename = os.path.join(path, name)
                if ending.lower() not in self._endings:
                    warnings.warn(
                        f"Ignoring {filename} of type {ending}. Only support {', '.join(self._endings)}",
                        UserWarning,
                        stacklevel=3,
                    )
                    continue
                self.items.append((filename, label))

    def __getitem__(self, idx: Any) -> Any:
        path, label = self.items[idx]
        image = nd.array(read(regular(path), self._flag), dtype="uint8")
        return (image, label) if self._transform is None else self._transform(image, label)

    def __len__(self) -> int:
        return len(self.items)
