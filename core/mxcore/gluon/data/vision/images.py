"""Images in NumPy: reading, resizing, rotating. OpenCV is loaded when it is first needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._io_files import LARGEST_PICTURE, read_whole
from ....base import error
from ....ops.image import opencv

__all__ = ["crop", "decode", "method_for", "read", "resize", "rotate"]


def decode(data: bytes, flag: int = 1, name: str = "image") -> np.ndarray[Any, Any]:
    """Decode a JPEG, PNG or other image.

    Parameters
    ----------
    data : bytes
    flag : {1, 0, -1}
        Colour, grey, or what the file has.
    name : str
        For messages.

    Returns
    -------
    numpy.ndarray of uint8
        ``(height, width, channels)``, colours in the order red, green, blue.
    """
    return opencv.decode(data, flag, name)


def read(path: str, flag: int = 1) -> np.ndarray[Any, Any]:
    """Decode an image file; see `decode`."""
    return decode(read_whole(path, endless=LARGEST_PICTURE), flag, path)


def method_for(interpolation: int, old: tuple[int, int], new: tuple[int, int]) -> int:
    """Number of an interpolation method: 9 and 10 choose one by whether the image grows or shrinks.

    Parameters
    ----------
    interpolation : int
        0 nearest, 1 bilinear, 2 cubic, 3 area, 4 Lanczos, 9 cubic to grow and area to shrink, 10 any of the
        first five by chance.
    old, new : (int, int)
        (height, width) before and after.
    """
    if interpolation == 9:
        if new[0] > old[0] and new[1] > old[1]:
            return 2
        return 3 if new[0] < old[0] and new[1] < old[1] else 1
    if interpolation == 10:
        return int(np.random.randint(0, 5))
    if interpolation not in range(5):
        raise error(ValueError, f"interpolation must be 0 to 4, 9 or 10, got {interpolation!r}")
    return interpolation


def resize(image: np.ndarray[Any, Any], width: int, height: int, interpolation: int = 1) -> np.ndarray[Any, Any]:
    """Resize an image ``(height, width, channels)``; see `method_for`."""
    return opencv.resize(image, width, height, method_for(interpolation, image.shape[:2], (height, width)))


def rotate(
    image: np.ndarray[Any, Any], degrees: float, zoom_in: bool = False, zoom_out: bool = False
) -> np.ndarray[Any, Any]:
    """Rotate float images ``(..., channels, height, width)`` about their centre, bilinearly, zeros outside.

    Parameters
    ----------
    image : numpy.ndarray
    degrees : float
        Counter-clockwise.
    zoom_in, zoom_out : bool
        Enlarge until no corner is empty, or shrink until nothing is cut off.
    """
    height, width = image.shape[-2:]
    angle = np.deg2rad(degrees)
    cos, sin = np.cos(angle), np.sin(angle)
    # How much wider or higher the turned image is, relative to the frame.
    larger = max(abs(cos) + abs(sin) * height / width, abs(cos) + abs(sin) * width / height)
    scale = larger if zoom_out else 1 / larger if zoom_in else 1.0
    y, x = np.mgrid[0:height, 0:width].astype("float32")
    y, x = (y - (height - 1) / 2) * scale, (x - (width - 1) / 2) * scale
    source_x = cos * x - sin * y + (width - 1) / 2
    source_y = sin * x + cos * y + (height - 1) / 2
    x0, y0 = np.floor(source_x).astype(int), np.floor(source_y).astype(int)
    out = np.zeros_like(image)
    for dy in (0, 1):
        for dx in (0, 1):
            xi, yi = x0 + dx, y0 + dy
            weight = (1 - np.abs(source_x - xi)) * (1 - np.abs(source_y - yi))
            weight = np.where((xi >= 0) & (xi < width) & (yi >= 0) & (yi < height), weight, 0).astype(image.dtype)
            out += weight * image[..., np.clip(yi, 0, height - 1), np.clip(xi, 0, width - 1)]
    return out


def crop(image: np.ndarray[Any, Any], x: int, y: int, width: int, height: int) -> np.ndarray[Any, Any]:
    """A window of images ``(..., height, width, channels)``; it must lie inside."""
    h, w = image.shape[-3:-1]
    if x < 0 or y < 0 or width < 1 or height < 1 or x + width > w or y + height > h:
        raise error(ValueError, f"a window of {width}x{height} at ({x}, {y}) is not inside an image of {w}x{h}")
    return image[..., y : y + height, x : x + width, :]
