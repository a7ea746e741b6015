"""Functions of old that are no operators: they read files, or write into arrays they are given."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .. import _io_files
from .._core import tables
from .._core.errors import suggest
from .._core.params import Parser
from ..base import error
from ..context import cpu
from ..ops.image import opencv
from ..parameters import Float, Int
from ..urls import text_of
from .checks import arrays
from .creation import array
from .ndarray import NDArray

__all__ = ["imdecode", "_cvimread", "_imdecode", "_onehot_encode", "_set_value"]


#: What they read their numbers with.
_FLAG = Parser("_cvimread", {"flag": Int(1, ge=0)})
_SOURCE = Parser("_set_value", {"src": Float(0.0)})
_DECODE = Parser("_imdecode", {n: Int(ge=0) for n in ("index", "x0", "y0", "x1", "y1", "c", "size")})


def imdecode(
    str_img: bytes,
    clip_rect: tuple[int, int, int, int] = (0, 0, 0, 0),
    out: NDArray | None = None,
    index: int = 0,
    channels: int = 3,
    mean: NDArray | None = None,
) -> NDArray:
    """Decode an image to (channels, height, width); newer programs use ``mx.image.imdecode``.

    Parameters
    ----------
    str_img : bytes
        The image file.
    clip_rect : (int, int, int, int)
        Left, top, right and bottom of the part to keep; all of it if right and bottom are not beyond left and top.
    out : NDArray, optional
        Where to write: (channels, height, width), or a batch of them.
    index : int
        Which item of the batch.
    channels : {3, 1}
        Colours (red, green, blue), or grey.
    mean : NDArray, optional
        Subtracted from the image: of its shape after the cut.

    Returns
    -------
    NDArray of float32
        The image, or `out`.

    Notes
    -----
    MXNet 1.9.1 has this function in its documentation, but it fails there without `mean` and decodes nothing with it.

    Examples
    --------
    >>> import cv2, numpy, mxcore as mx
    >>> file = cv2.imencode(".png", numpy.full((2, 3, 3), 7, "uint8"))[1].tobytes()
    >>> mx.nd.imdecode(file, clip_rect=(1, 0, 3, 1)).asnumpy()[0].tolist()
    [[7.0, 7.0]]
    """
    if channels not in (1, 3):
        raise error(ValueError, f"imdecode: channels must be 1 or 3, got {channels!r}")
    if not isinstance(str_img, (bytes, bytearray, memoryview)):
        raise error(TypeError, f"imdecode: str_img must be the bytes of an image file, got {type(str_img).__name__}")
    image = opencv.decode(bytes(str_img), 1 if channels == 3 else 0, "imdecode: str_img")
    x0, y0, x1, y1 = clip_rect
    if x1 > x0 and y1 > y0:
        h, w = image.shape[:2]
        if x0 < 0 or y0 < 0 or x1 > w or y1 > h:
            raise error(ValueError, f"imdecode: clip_rect {tuple(clip_rect)} is not inside an image of {w}x{h}")
        image = image[y0:y1, x0:x1]
    values = np.ascontiguousarray(np.moveaxis(image, -1, 0)).astype(np.float32)
    if mean is not None:
        shift = mean.asnumpy()
        if shift.shape not in (values.shape, (1, *values.shape)):
            raise error(ValueError, f"imdecode: mean {shift.shape} must have the shape of the image, {values.shape}")
        values -= shift.reshape(values.shape)
    if out is None:
        return array(values, dtype="float32")
    batch = len(out.shape) == 4
    if out.shape[-3:] != values.shape or len(out.shape) not in (3, 4) or (batch and not 0 <= index < out.shape[0]):
        raise error(
            ValueError,
            f"imdecode: an image {values.shape} does not fit into out {out.shape}" + (f" at {index}" if batch else ""),
        )
    out[index if batch else slice(None)] = array(values, ctx=out.context, dtype=out.dtype)
    return out


def _imdecode(
    mean: NDArray | None = None,
    index: int = 0,
    x0: int = 0,
    y0: int = 0,
    x1: int = 0,
    y1: int = 0,
    c: int = 3,
    size: int = 0,
    str_img: bytes = b"",
    out: NDArray | None = None,
    **kwargs: Any,
) -> NDArray:
    """`imdecode` by its old names: `c` channels, the first `size` bytes of `str_img` (all if 0)."""
    p: Any = _DECODE({"index": index, "x0": x0, "y0": y0, "x1": x1, "y1": y1, "c": c, "size": size})
    if mean is not None:
        arrays("_imdecode", mean=mean)
    return imdecode(
        str_img[: p.size] if p.size else str_img,
        (p.x0, p.y0, p.x1, p.y1),
        out,
        p.index,
        p.c,
        mean if mean is not None and mean.size and mean.shape != (0,) else None,
    )


def _cvimread(filename: str, flag: int = 1, to_rgb: bool = True, out: NDArray | None = None, **kwargs: Any) -> NDArray:
    """Read an image file: uint8 (height, width, channels).

    Parameters
    ----------
    filename : str
        A path, or a URL that fsspec knows.
    flag : {1, 0}
        Colour, or grey.
    to_rgb : bool
        Colours in the order red, green, blue; else blue first.
    """
    for unknown in kwargs.keys() - {"name"}:
        raise error(
            TypeError,
            "operator _cvimread: no parameter is named "
            f"{unknown!r}{suggest(unknown, ['filename', 'flag', 'to_rgb', 'out'])}",
        )
    flag = int(_FLAG({"flag": flag}).flag)
    if not isinstance(filename, (str, os.PathLike)):
        raise error(
            TypeError, f"operator _cvimread: parameter 'filename' must be a path, got {type(filename).__name__}"
        )
    name = text_of(filename, "operator _cvimread: parameter 'filename'")
    data = _io_files.read_whole(name, endless=_io_files.LARGEST_PICTURE)
    image = opencv.decode(data, flag, name, bool(to_rgb))
    result = array(image, ctx=cpu(), dtype="uint8")
    if out is None:
        return result
    if out.shape != result.shape:
        raise error(ValueError, f"operator _cvimread: {name} is an image {result.shape}, out has shape {out.shape}")
    out[:] = result
    return out


def _set_value(src: float = 0.0, out: NDArray | None = None, **kwargs: Any) -> NDArray:
    """Fill `out` with a number."""
    if out is None:
        raise error(TypeError, "operator _set_value needs out=, the array to fill")
    arrays("_set_value", out=out)
    out[:] = _SOURCE({"src": src}).src
    return out


def _onehot_encode(lhs: NDArray, rhs: NDArray, out: NDArray | None = None, **kwargs: Any) -> NDArray:
    """Write one-hot rows of the indices `lhs` into `rhs`, and return it."""
    target = rhs if out is None else out
    arrays("_onehot_encode", lhs=lhs, rhs=target)
    if len(target.shape) != 2 or lhs.shape != target.shape[:1]:
        raise error(
            ValueError,
            "operator _onehot_encode: indices (n,) and rows "
            f"(n, classes) are needed, got {lhs.shape} and {target.shape}",
        )
    tables.ops.get("one_hot")(lhs, depth=target.shape[1], dtype=target.dtype, out=target)
    return target
