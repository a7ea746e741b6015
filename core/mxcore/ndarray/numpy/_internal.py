"""Operators of ``mx.np`` over arrays, by their own names."""

from __future__ import annotations

from typing import Any

from ...np_functions.internal import internal
from ..legacy import _cvimread
from .face import arrays
from .multiarray import ndarray

__all__ = ["cvimread"]

_find, _names = internal(__name__, arrays)


def cvimread(filename: str, flag: int = 1, to_rgb: bool = True, out: ndarray | None = None, **kwargs: Any) -> ndarray:
    """Read an image file: uint8 (height, width, channels).

    Parameters
    ----------
    filename : str
        A path, or a URL that fsspec knows.
    flag : {1, 0}
        Colour, or grey.
    to_rgb : bool
        Colours in the order red, green, blue; else blue first.
    out : ndarray, optional
        Where it goes.

    Raises
    ------
    MXNetError
        (also ValueError) for what is no image, or an `out` of another shape; (also an OSError) for a file that cannot
        be read.
    """
    found: Any = _cvimread(filename, flag, to_rgb, None if out is None else out.as_nd_ndarray(), **kwargs)
    if out is not None:
        return out
    made: ndarray = found.as_np_ndarray()
    return made


def __getattr__(name: str) -> Any:
    return _find(name)


def __dir__() -> list[str]:
    return sorted({*_names(), "cvimread"})
