"""`RowsIter`: base of the iterators over the rows of text files, which lie in memory."""

from __future__ import annotations

import os

import numpy as np

from .._io_files import local_path, names_in, regular
from ..base import error
from ..urls import PathLike, is_folder, is_url
from .cursor import BatchCursor
from .mx_data_iter import Array, MXDataIter

__all__ = ["RowsIter", "files_of"]


def files_of(path: PathLike) -> list[PathLike]:
    """The files that a path names: itself, or those of a folder, in the order of their names."""
    if is_url(path) or not is_folder(local_path(path)):
        return [path]
    folder = local_path(path)
    return [regular(os.path.join(folder, name)) for name in names_in(folder)]


class RowsIter(MXDataIter):
    """Base of `CSVIter` and `LibSVMIter`: `_cursor` walks over the rows, counted from `_first` on."""

    _cursor: BatchCursor
    _first = 0

    def reset(self) -> None:
        super().reset()
        self._cursor.reset()

    def _next_rows(self) -> tuple[Array, int]:
        """The rows of the next batch, and how many only fill it."""
        spans, pad = self._cursor.next()
        return self._first + np.concatenate([np.arange(begin, end) for _, begin, end in spans]), pad

    def _check_labels(self, data: PathLike, rows: int, label: PathLike, labels: int) -> None:
        """Refuse files with fewer labels than rows of data."""
        if labels < rows:
            raise error(
                ValueError,
                f"{type(self).__name__}: {os.fspath(data)!r} has {rows} rows, but {os.fspath(label)!r} only {labels}",
            )
