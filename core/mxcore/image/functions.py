"""Reading, resizing and cutting images."""

from __future__ import annotations

import math
import os
import random
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import ndarray as nd
from .._core.errors import suggest
from ..base import asserted, error, plain
from ..ndarray import NDArray
from ..urls import text_of

__all__ = [
    "center_crop",
    "color_normalize",
    "copyMakeBorder",
    "fixed_crop",
    "imdecode",
    "imread",
    "imresize",
    "interpolation",
    "random_crop",
    "random_size_crop",
    "resize_short",
    "scale_down",
    "size_of",
]

#: How often a random window is tried before the middle is taken.
_ATTEMPTS = 10


def size_of(src: NDArray, function: str, empty: bool = True) -> tuple[int, int]:
    """Height and width of an image; an error that names the function if it is none, or has no pixel and must have."""
    shape = getattr(src, "shape", None)
    if shape is None or len(shape) != 3:
        raise error(
            ValueError,
            f"{function}: src must be an image (height, width, channels), got "
            f"{type(src).__name__ if shape is None else shape}",
        )
    if not empty and 0 in shape:
        raise error(ValueError, f"{function}: src has no pixels, its shape is {shape}")
    return shape[0], shape[1]


def interpolation(interp: int, sizes: Sequence[int] = ()) -> int:
    """The number of one of OpenCV's methods.

    Parameters
    ----------
    interp : int
        0 nearest, 1 bilinear, 2 cubic, 3 area, 4 Lanczos; 9 cubic to grow, area to shrink, bilinear else; 10 any of the
        first five by chance.
    sizes : (int, int, int, int), optional
        Height and width before, and after; cubic is taken for 9 without them.

    Raises
    ------
    MXNetError
        (also ValueError) for other numbers.
    """
    if interp == 9:
        changes = list(zip(sizes[:2], sizes[2:]))
        if all(n > o for o, n in changes):
            return 2
        return 3 if all(n < o for o, n in changes) else 1
    if interp == 10:
        return random.randint(0, 4)
    if interp not in range(5):
        raise error(ValueError, f"interp must be 0 to 4, 9 or 10, got {interp!r}")
    return int(interp)


def imread(filename: str, *args: Any, **kwargs: Any) -> NDArray:
    """Read an image file.

    Parameters
    ----------
    filename : str or os.PathLike
        A path, or a URL that fsspec knows.
    flag : {1, 0}, optional
        Colour, or grey.
    to_rgb : bool, optional
        Colours in the order red, green, blue (the default), or blue, green, red.
    out : NDArray, optional
        Where to write.

    Returns
    -------
    NDArray of uint8
        ``(height, width, channels)``.

    Raises
    ------
    MXNetError
        (also ValueError) if OpenCV cannot decode it; (also an OSError) if it cannot be read.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.image.imread``.

    Examples
    --------
    >>> import cv2, numpy, mxcore as mx
    >>> cv2.imwrite("/tmp/mxcore-doc.png", numpy.full((4, 6, 3), 7, "uint8"))
    True
    >>> mx.image.imread("/tmp/mxcore-doc.png").shape, mx.image.imread("/tmp/mxcore-doc.png", flag=0).shape
    ((4, 6, 3), (4, 6, 1))
    """
    return nd._internal._cvimread(
        text_of(filename, "imread: filename") if isinstance(filename, os.PathLike) else filename, *args, **kwargs
    )


def imdecode(buf: Any, *args: Any, **kwargs: Any) -> NDArray:
    """Decode an image file's bytes.

    Parameters
    ----------
    buf : bytes, bytearray, numpy.ndarray or NDArray of uint8
    flag : {1, 0}, optional
        Colour, or grey.
    to_rgb : bool, optional
        Colours in the order red, green, blue (the default), or blue, green, red.
    out : NDArray, optional
        Where to write.

    Returns
    -------
    NDArray of uint8
        ``(height, width, channels)``.

    Raises
    ------
    MXNetError
        (also ValueError) if OpenCV cannot decode it.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.image.imdecode``.

    Examples
    --------
    >>> import cv2, numpy, mxcore as mx
    >>> mx.image.imdecode(cv2.imencode(".png", numpy.full((4, 6, 3), 7, "uint8"))[1].tobytes()).shape
    (4, 6, 3)
    """
    if not isinstance(buf, nd.NDArray):
        if not isinstance(buf, (bytes, bytearray, memoryview, np.ndarray)):
            raise error(
                ValueError,
                "imdecode: buf must be the bytes of an image file "
                f"(bytes, bytearray or a uint8 array), got {type(buf).__name__}",
            )
        host = buf if isinstance(buf, np.ndarray) else np.frombuffer(buf, np.uint8)
        buf = nd.array(host, dtype=host.dtype)
    image: NDArray = nd._internal._cvimdecode(buf, *args, **kwargs)
    return image


def imresize(src: NDArray, w: int, h: int, *args: Any, **kwargs: Any) -> NDArray:
    """Resize an image.

    Parameters
    ----------
    src : NDArray
        ``(height, width, channels)``.
    w, h : int
        The new width and height.
    interp : int, optional
        0 nearest, 1 bilinear (the default), 2 cubic, 3 area, 4 Lanczos.
    out : NDArray, optional
        Where to write.

    Returns
    -------
    NDArray

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.image.imresize``.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.image.imresize(mx.nd.zeros((4, 6, 3)), 3, 2).shape
    (2, 3, 3)
    """
    image: NDArray = nd._internal._cvimresize(src, w, h, *args, **kwargs)
    return image


def copyMakeBorder(src: Any = None, *args: Any, **kwargs: Any) -> NDArray:
    """Add a border to an image; see ``mx.nd._internal._cvcopyMakeBorder``.

    Parameters
    ----------
    src : NDArray
        ``(height, width, channels)``.
    top, bot, left, right : int
        Widths of the margins.
    type : int, optional
        0 constant, 1 the nearest pixel, 2 mirrored, 3 repeated, 4 mirrored without its edge.
    value : float, optional
        Fill of a constant border.
    values : tuple of float, optional
        The same, a number for each channel.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.image.copyMakeBorder(mx.nd.zeros((4, 6, 3)), 1, 2, 3, 4).shape
    (7, 13, 3)
    """
    image: NDArray = nd._internal._cvcopyMakeBorder(src, *args, **kwargs)
    return image


def scale_down(src_size: tuple[int, int], size: Any) -> tuple[int, int]:
    """The largest size of the same proportions that fits into an image; one place at least.

    Parameters
    ----------
    src_size : (int, int)
        (width, height) of the image.
    size : (int, int)
        (width, height) that is wanted.

    Returns
    -------
    (int, int)

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.image.scale_down((640, 480), (720, 120))
    (640, 106)
    """
    (w, h), (most_w, most_h) = plain(tuple(size)), plain(tuple(src_size))
    if h > most_h:
        w, h = w * most_h / h, most_h
    if w > most_w:
        w, h = most_w, h * most_w / w
    return max(int(w), 1), max(int(h), 1)


def resize_short(src: NDArray, size: Any, interp: int = 2) -> NDArray:
    """Resize an image so that its shorter side has a length.

    Parameters
    ----------
    src : NDArray
        ``(height, width, channels)``.
    size : int
        Of the shorter side.
    interp : int
        0 nearest, 1 bilinear, 2 cubic, 3 area, 4 Lanczos, 9 by whether it grows or shrinks, 10 by chance.

    Returns
    -------
    NDArray

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.image.resize_short(mx.nd.zeros((40, 60, 3)), 20).shape
    (20, 30, 3)
    """
    (h, w), size = size_of(src, "resize_short", empty=False), plain(size)
    new = (size * h // w, size) if h > w else (size, size * w // h)
    return imresize(src, new[1], new[0], interp=interpolation(interp, (h, w, *new)))


def fixed_crop(src: NDArray, x0: int, y0: int, w: int, h: int, size: Any = None, interp: int = 2) -> NDArray:
    """Cut a window out of an image, and bring it to a size.

    Parameters
    ----------
    src : NDArray
        ``(height, width, channels)``.
    x0, y0 : int
        The window's left and upper edge.
    w, h : int
        Its width and height; what lies beyond the image's right or lower edge is left out.
    size : (int, int), optional
        (width, height) to resize it to.
    interp : int
        See `resize_short`.

    Returns
    -------
    NDArray

    Raises
    ------
    MXNetError
        (also ValueError) if nothing of the image lies in the window.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.image.fixed_crop(mx.nd.zeros((40, 60, 3)), 5, 6, 20, 10, (30, 30)).shape
    (30, 30, 3)
    """
    height, width = size_of(src, "fixed_crop")
    out = src[y0 : y0 + h, x0 : x0 + w]
    if not out.size:
        raise error(
            ValueError,
            f"fixed_crop: nothing of the image, {width} x {height}, lies in the window from {x0}, {y0} of {w} x {h}",
        )
    if size is not None and (w, h) != tuple(size):
        out = imresize(out, *size, interp=interpolation(interp, (h, w, size[1], size[0])))
    return out


def random_crop(src: NDArray, size: Any, interp: int = 2) -> tuple[NDArray, tuple[int, int, int, int]]:
    """Cut a window of a size, or of its proportions if the image is too small, out of a place taken by chance.

    Parameters
    ----------
    src : NDArray
        ``(height, width, channels)``.
    size : (int, int)
        (width, height) of the result.
    interp : int
        See `resize_short`.

    Returns
    -------
    NDArray
        The window, of that size.
    (int, int, int, int)
        Its left, top, width and height in the image.

    Notes
    -----
    Chance is Python's ``random``, as in MXNet: seed that.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.image.random_crop(mx.nd.zeros((40, 60, 3)), (20, 10))[0].shape
    (10, 20, 3)
    """
    h, w = size_of(src, "random_crop")
    new_w, new_h = scale_down((w, h), size)
    place = random.randint(0, w - new_w), random.randint(0, h - new_h), new_w, new_h
    return fixed_crop(src, *place, size, interp), place


def center_crop(src: NDArray, size: Any, interp: int = 2) -> tuple[NDArray, tuple[int, int, int, int]]:
    """Cut a window of a size, or of its proportions if the image is too small, out of the middle.

    Parameters
    ----------
    src : NDArray
        ``(height, width, channels)``.
    size : (int, int)
        (width, height) of the result.
    interp : int
        See `resize_short`.

    Returns
    -------
    NDArray
        The window, of that size.
    (int, int, int, int)
        Its left, top, width and height in the image.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.image.center_crop(mx.nd.zeros((40, 60, 3)), (21, 10))[1]
    (19, 15, 21, 10)
    """
    h, w = size_of(src, "center_crop")
    new_w, new_h = scale_down((w, h), size)
    place = (w - new_w) // 2, (h - new_h) // 2, new_w, new_h
    return fixed_crop(src, *place, size, interp), place


def color_normalize(src: NDArray, mean: Any, std: Any = None) -> NDArray:
    """Subtract a mean from an image and divide it by a standard deviation, in place.

    Parameters
    ----------
    src : NDArray or numpy.ndarray of float
        ``(height, width, channels)``.
    mean, std : NDArray or float, optional
        A number for each channel.

    Returns
    -------
    NDArray
        `src` itself.

    Examples
    --------
    >>> import mxcore as mx
    >>> mean, std = mx.nd.array([1, 2, 3]), mx.nd.array([1, 1, 2])
    >>> mx.image.color_normalize(mx.nd.ones((1, 2, 3)), mean, std).asnumpy()[0, 0].tolist()
    [0.0, -1.0, -1.0]
    """
    if mean is not None:
        src -= mean
    if std is not None:
        src /= std
    return src


def random_size_crop(
    src: NDArray, size: Any, area: Any, ratio: tuple[float, float], interp: int = 2, **kwargs: Any
) -> tuple[NDArray, tuple[int, int, int, int]]:
    """Cut a window of an area and proportions taken by chance, and bring it to a size.

    Parameters
    ----------
    src : NDArray
        ``(height, width, channels)``.
    size : (int, int)
        (width, height) of the result.
    area : (float, float) or float
        The window's least and largest share of the image's area; the least, if it is one number.
    ratio : (float, float)
        The least and the largest width divided by height.
    interp : int
        See `resize_short`.
    min_area : float, optional
        The old name of `area`.

    Returns
    -------
    NDArray
        The window, of that size; if none that fits was met in ten attempts, that of `center_crop`.
    (int, int, int, int)
        Its left, top, width and height in the image.

    Notes
    -----
    Szegedy et al., Going Deeper with Convolutions (2015). Chance is Python's ``random``, as in MXNet.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.image.random_size_crop(mx.nd.zeros((40, 60, 3)), (20, 10), 0.3, (0.75, 1.25))[0].shape
    (10, 20, 3)
    """
    h, w = size_of(src, "random_size_crop")
    if "min_area" in kwargs:
        warnings.warn("random_size_crop: min_area is the old name of area", DeprecationWarning, stacklevel=2)
        area = kwargs.pop("min_area")
    for unknown in kwargs:
        raise asserted(
            TypeError,
            "random_size_crop takes no argument "
            f"{unknown!r}{suggest(unknown, ['src', 'size', 'area', 'ratio', 'interp'])}",
        )
    least, most = area if isinstance(area, (tuple, list)) else (area, 1.0)
    if not (least >= 0 and most >= 0 and min(ratio) > 0):
        raise error(ValueError, f"random_size_crop: area {area} must be 0 or more, and ratio {ratio} above 0")
    for _ in range(_ATTEMPTS):
        pixels = random.uniform(least, most) * h * w
        wide = math.exp(random.uniform(math.log(ratio[0]), math.log(ratio[1])))
        new_w, new_h = round(math.sqrt(pixels * wide)), round(math.sqrt(pixels / wide))
        if 0 < new_w <= w and 0 < new_h <= h:
            place = random.randint(0, w - new_w), random.randint(0, h - new_h), new_w, new_h
            return fixed_crop(src, *place, size, interp), place
    return center_crop(src, size, interp)
