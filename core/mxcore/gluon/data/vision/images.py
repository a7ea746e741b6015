"""Images in NumPy: reading, resizing, colours. OpenCV is loaded when it is first needed."""
from __future__ import annotations

import functools

import numpy as np

from ....base import error

__all__ = ["decode", "read", "resize", "rotate"]


@functools.lru_cache(maxsize=None)
def _cv2():
    try:
        import cv2
    except ImportError as e:
        raise error(
            ImportError, f"images are read and resized with OpenCV, which cannot be imported: {e}. "
            "pip install opencv-python-headless",
        ) from e  # fmt: skip
    return cv2


def decode(data, flag=1, name="image"):
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
    cv2 = _cv2()
    kinds = {1: cv2.IMREAD_COLOR, 0: cv2.IMREAD_GRAYSCALE, -1: cv2.IMREAD_UNCHANGED}
    raw = np.frombuffer(data, np.uint8)
    image = cv2.imdecode(raw, kinds[flag]) if raw.size else None
    if image is None:
        raise error(ValueError, f"{name} ({raw.size} bytes) is no image that OpenCV can decode")
    if image.ndim == 2:
        return image[:, :, None]
    codes = {3: cv2.COLOR_BGR2RGB, 4: cv2.COLOR_BGRA2RGBA}
    return cv2.cvtColor(image, codes[image.shape[2]]) if image.shape[2] in codes else image


def read(path, flag=1):
    """Decode an image file; see `decode`."""
    with open(path, "rb") as f:
        return decode(f.read(), flag, path)


def _methods(cv2):
    return (cv2.INTER_NEAREST, cv2.INTER_LINEAR, cv2.INTER_CUBIC, cv2.INTER_AREA, cv2.INTER_LANCZOS4)


def method_for(interpolation, old, new):
    """Number of an interpolation method: 9 and 10 choose one by whether the image grows or shrinks.

    Parameters
    ----------
    interpolation : int
        0 nearest, 1 bilinear, 2 cubic, 3 area, 4 Lanczos, 9 cubic to grow and area to shrink, 10 any of the first five
        by chance.
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


def resize(image, width, height, interpolation=1):
    """Resize an image ``(height, width, channels)``; see `method_for`."""
    cv2 = _cv2()
    method = _methods(cv2)[method_for(interpolation, image.shape[:2], (height, width))]
    # OpenCV drops an axis of size 1.
    return cv2.resize(image, (width, height), interpolation=method).reshape(height, width, image.shape[2])


def rotate(image, degrees, zoom_in=False, zoom_out=False):
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
    # Half extents of the output plane, as seen from the input: MXNet's grid runs over [-1, 1] in both axes.
    if zoom_in or zoom_out:
        h, w = (height - 1) / 2, (width - 1) / 2
        needed = max(abs(cos) + abs(sin) * h / max(w, 1e-9), abs(cos) + abs(sin) * w / max(h, 1e-9))
        scale = needed if zoom_out else 1 / needed
    else:
        scale = 1.0
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
