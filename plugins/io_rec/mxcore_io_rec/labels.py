"""Labels from list files, which replace those in the records."""

from __future__ import annotations

import os

import numpy as np

from mxcore.base import error

from .codec import Array
from .recordio import check_number
from .source import Uri, read_all

__all__ = ["read_labels"]


def read_labels(path: Uri, width: int = -1) -> dict[int, Array]:
    """Read the labels of a list file.

    Parameters
    ----------
    path : str or os.PathLike
        A path or fsspec URL. The lines hold record id, labels and image path, with tabs between.
    width : int
        How many labels to take from each line; -1: all that there are.

    Returns
    -------
    dict of int to numpy.ndarray
        float32 labels by record id.

    Raises
    ------
    MXNetError
        (also ValueError) naming file and line, if a line holds something else.

    Examples
    --------
    >>> from mxcore.drafts import atomic_writer
    >>> with atomic_writer("memory://doc/a.lst") as file:
    ...     file.write(b"7\\t1\\t2\\tcat.jpg\\n")
    >>> read_labels("memory://doc/a.lst")
    {7: array([1., 2.], dtype=float32)}
    """
    labels: dict[int, Array] = {}
    for number, line in enumerate(read_all(path).split(b"\n"), 1):
        if not line.strip():
            continue
        fields = line.split(b"\t")
        found = fields[1:-1] if width < 0 else fields[1 : 1 + width]
        try:
            if len(found) < max(width, 1):
                raise ValueError(f"{len(found)} labels instead of {max(width, 1)}")
            if (key := check_number(int(fields[0]))) in labels:
                raise ValueError(f"the id {key} stands in an earlier line, too")
            with np.errstate(over="ignore"):  # what is too large is infinite, as in MXNet
                labels[key] = np.array([float(field) for field in found], np.float32)
        except ValueError as e:
            where = f"line {number} of the list {os.fspath(path)!r} is {line[:80].decode(errors='replace')!r}"
            raise error(ValueError, f"{where}: {e}; expected id, labels, path with tabs between") from e
    return labels
