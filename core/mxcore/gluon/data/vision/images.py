"""Images in NumPy: reading, resizing, colours. OpenCV is loaded when it is first needed."""

from __future__ import annotations

import functools
import multiprocessing

import numpy as np

from ....base import error

__all__ = ["brightness", "contrast", "crop", "decode", "flip", "hue", "lighting", "method_for", "read",
           "resize", "rotate", "saturation"]  # fmt: skip


@functools.cache
def _cv2():
    try:
        import cv2
    except ImportError as e:
        raise error(
            ImportError, f"images are read and resized with OpenCV, which cannot be imported: {e}. "
            "pip install opencv-python-headless",
        ) from e  # fmt: skip
    if multiprocessing.parent_process() is not None:
        # A worker does one image at a time; threads would take the other workers' cores.
        cv2.setNumThreads(0)
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
            weight = np.where((xi >= 0) & (xi < width) & (yi >= 0) & (yi < height), weight, 0).astype(
                image.dtype
            )
            out += weight * image[..., np.clip(yi, 0, height - 1), np.clip(xi, 0, width - 1)]
    return out


# -- colours: of images (height, width, channels), uint8 or float --------------------------------------------

_GREY = np.array([0.299, 0.587, 0.114], "float32")

#: Principal components of the colours of ImageNet times the roots of their variances (Krizhevsky et al.,
#: 2012).
_COMPONENTS = np.array([
    [55.46 * -0.5675, 4.794 * 0.7192, 1.148 * 0.4009],
    [55.46 * -0.5808, 4.794 * -0.0045, 1.148 * -0.8140],
    [55.46 * -0.5836, 4.794 * -0.6948, 1.148 * 0.4203],
], "float32")  # fmt: skip


def _as(values, dtype):
    """Values in a dtype; integers saturate, and are cut off as MXNet does."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        values = np.clip(values, limits.min, limits.max)
    return values.astype(dtype)


def _scaled(image, factor, offset):
    """``image * factor + offset``, with a table where there are only 256 values.

    Parameters
    ----------
    image : numpy.ndarray
    factor : float
    offset : float or numpy.ndarray
        One number, or one a channel.
    """
    factor, offset = np.float32(factor), np.asarray(offset, "float32")
    if image.dtype != np.uint8:
        return _as(image.astype("float32") * factor + offset, image.dtype)
    table = _as(np.arange(256, dtype="float32")[:, None] * factor + offset.reshape(1, -1), image.dtype)
    return _cv2().LUT(image, table.reshape(1, 256, -1)).reshape(image.shape)


def brightness(image, factor):
    """All colours times a factor."""
    return _scaled(image, factor, 0)


def contrast(image, factor):
    """Differences from the mean grey of the image times a factor."""
    means = _cv2().mean(image)
    grey = np.dot(means[:3], _GREY) if image.shape[-1] >= 3 else means[0]
    return _scaled(image, factor, (1 - factor) * grey)


def flip(image, axis):
    """Mirror an image along its height (0) or width (1)."""
    return _cv2().flip(image, axis).reshape(image.shape)


def saturation(image, factor):
    """Differences from the grey of every pixel times a factor; a grey image stays as it is."""
    if image.shape[-1] < 3:
        return image
    values = image.astype("float32")
    grey = _cv2().cvtColor(np.ascontiguousarray(values[..., :3]), _cv2().COLOR_RGB2GRAY)
    return _as(values * np.float32(factor) + np.float32(1 - factor) * grey[..., None], image.dtype)


def hue(image, turn):
    """Colours turned about the colour wheel; a grey image stays as it is.

    Parameters
    ----------
    image : numpy.ndarray
    turn : float
        In whole turns.
    """
    if image.shape[-1] < 3:
        return image
    cv2, out = _cv2(), image.astype("float32")
    hls = cv2.cvtColor(np.ascontiguousarray(out[..., :3]) / 255, cv2.COLOR_RGB2HLS)
    hls[..., 0] = (hls[..., 0] + 360 * turn) % 360
    out[..., :3] = cv2.cvtColor(hls, cv2.COLOR_HLS2RGB) * 255
    return _as(out, image.dtype)


def lighting(image, alpha):
    """Colours moved along the principal components of ImageNet's colours; grey images stay."""
    if image.shape[-1] != 3:
        return image
    return _scaled(image, 1, _COMPONENTS @ np.asarray(alpha, "float32"))


def crop(image, x, y, width, height):
    """A window of images ``(..., height, width, channels)``; it must lie inside."""
    h, w = image.shape[-3:-1]
    if x < 0 or y < 0 or width < 1 or height < 1 or x + width > w or y + height > h:
        raise error(
            ValueError, f"a window of {width}x{height} at ({x}, {y}) is not inside an image of {w}x{h}"
        )
    return image[..., y : y + height, x : x + width, :]
