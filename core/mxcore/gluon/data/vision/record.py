"""Images in a RecordIO file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .... import ndarray as nd
from ...._io_files import naming
from ....recordio import unpack
from ..dataset import RecordFileDataset
from .images import decode

__all__ = ["ImageRecordDataset"]


class ImageRecordDataset(RecordFileDataset):
    """The images of a RecordIO file with an index, as ``im2rec`` makes it.

    A sample is an image, NDArray ``(height, width, channels)`` of uint8, and its label: a number or an array.

    Parameters
    ----------
    filename : str
        The ``.rec`` file; the ``.idx`` file lies beside it.
    flag : {1, 0}, default 1
        Colour or grey.
    transform : callable, optional
        Gets image and label, returns the sample.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gluon.data.vision.ImageRecordDataset``.
    """

    def __init__(self, filename: str, flag: int = 1, transform: Callable[..., Any] | None = None) -> None:
        super().__init__(filename)
        self._flag = flag
        self._transform = transform

    def __getitem__(self, idx: Any) -> Any:
        where, record = f"record {idx} of {self.filename}", super().__getitem__(idx)
        with naming(where):
            header, data = unpack(record)
        image = nd.array(decode(data, self._flag, where), dtype="uint8")
        return (image, header.label) if self._transform is None else self._transform(image, header.label)
