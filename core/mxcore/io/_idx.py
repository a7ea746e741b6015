"""Files in the IDX format, in which MNIST is published: a header with a shape, then bytes; gzipped or not."""

from __future__ import annotations

import gzip
import math
import os
import zlib
from typing import IO, Any

import numpy as np

from .._io_files import reading, regular
from ..base import MXNetError, error
from ..limits import check_unpacked, read_up_to
from ..urls import PathLike

__all__ = ["read_idx"]

#: What the lengths of an array may make together, also beside one that is 0.
_MOST = (1 << 63) - 1


def read_idx(path: PathLike, axes: int, owner: str) -> np.ndarray[Any, Any]:
    """Read an array of bytes: the header first, then as much as that tells of.

    Parameters
    ----------
    path : str or os.PathLike
        A path or an fsspec URL.
    axes : int
        How many the array has to have.
    owner : str
        Who asks, for messages.

    Returns
    -------
    numpy.ndarray of uint8

    Raises
    ------
    MXNetError
        (also OSError) if it cannot be read, (also ValueError) if it is damaged, something else, or unfolds to
        more than ``MXCORE_MAX_UNPACKED_BYTES``.

    Examples
    --------
    >>> from mxcore._io_files import write_atomic
    >>> write_atomic("memory://doc/idx", bytes((0, 0, 8, 1, 0, 0, 0, 2, 7, 9)))
    >>> read_idx("memory://doc/idx", 1, "example").tolist()
    [7, 9]
    """
    name = f"{owner}: {os.fspath(path)!r}"
    with reading(regular(path)) as f:
        packed = f.read(2) == b"\x1f\x8b"
        f.seek(0)
        if not packed:
            return _content(f, axes, name, False)
        try:
            with gzip.GzipFile(fileobj=f) as unpacked:
                return _content(unpacked, axes, name, True)
        except MXNetError:
            raise
        except (OSError, EOFError, zlib.error) as e:
            raise error(ValueError, f"{name} is a damaged gzip file: {e}; get it anew") from e


def _content(file: IO[bytes] | gzip.GzipFile, axes: int, name: str, packed: bool) -> np.ndarray[Any, Any]:
    magic, head = bytes((0, 0, 8, axes)), 4 + 4 * axes
    start = file.read(head)
    if start[:4] != magic or len(start) < head:
        raise error(
            ValueError,
            f"{name} starts with {start[:4].hex(' ') or 'nothing'}, but an IDX file of bytes with {axes} axes "
            f"starts with {magic.hex(' ')}",
        )
    shape = tuple(np.frombuffer(start, ">u4", axes, 4).tolist())
    size = math.prod(shape)
    if packed:
        check_unpacked(size, name)
    try:
        data = read_up_to(file, size)
    except MemoryError:
        raise error(MemoryError, f"{name} tells of {shape} and does not fit into memory") from None
    if len(data) < size or file.read(1):  # the end of a gzip file holds its checksum
        where = f"ends at byte {head + len(data)}" if len(data) < size else "goes on"
        raise error(
            ValueError, f"{name} {where}, but its header tells of {shape}, which ends at {head + size}; get it anew"
        )
    if math.prod(filter(None, shape)) > _MOST:
        raise error(ValueError, f"{name} tells of {shape}, which no array can be; it is damaged, get it anew")
    return np.frombuffer(data, np.uint8).reshape(shape)
