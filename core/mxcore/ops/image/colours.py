"""Changes of colour of images (height, width, channels), over any array namespace.

Values are computed in float32, whatever the image holds; integers saturate, and are cut off. Colours are red, green,
blue from 0 to 255; images of one channel are grey.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..common.bodies import silent
from . import opencv

__all__ = [
    "COMPONENTS",
    "GREY",
    "as_image",
    "brightness",
    "contrast",
    "contrast_offset",
    "hue",
    "lighting",
    "saturation",
    "scaled",
]


#: How much each colour adds to the grey of a pixel.
GREY = np.array([0.299, 0.587, 0.114], "float32")
#: Principal components of the colours of ImageNet times the roots of their variances (Krizhevsky et al., 2012).
COMPONENTS = np.array(
    [
        [55.46 * -0.5675, 4.794 * 0.7192, 1.148 * 0.4009],
        [55.46 * -0.5808, 4.794 * -0.0045, 1.148 * -0.8140],
        [55.46 * -0.5836, 4.794 * -0.6948, 1.148 * 0.4203],
    ],
    "float32",
)


def as_image(xp: Any, values: Any, dtype: Any) -> Any:
    """Values in a dtype; integers saturate."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        values = xp.clip(values, limits.min, limits.max)
    return values.astype(dtype)


def _floats(image: Any) -> Any:
    return image.astype(np.float32) if image.dtype.kind != "f" or image.dtype.itemsize == 2 else image


def scaled(xp: Any, image: Any, factor: float, offset: Any = None) -> Any:
    """``image * factor + offset``; the offset is a number, or an array with one for each channel."""
    if _fast(image, np.uint8):
        return opencv.look_up(image, _table(np.float32(factor), 0 if offset is None else offset))
    if offset is not None and image.shape[2] == 3 and _fast(image, np.float32):
        columns = np.broadcast_to(np.asarray(offset, "float32").reshape(-1, 1), (3, 1))
        return opencv.mix(image, np.concatenate([np.eye(3, dtype="float32") * np.float32(factor), columns], 1))
    x = _floats(image) * np.float32(factor)
    return as_image(xp, x if offset is None else x + offset, image.dtype)


def _fast(image: Any, dtype: Any) -> bool:
    """Whether OpenCV does it, and faster than NumPy."""
    return isinstance(image, np.ndarray) and image.dtype == dtype and image.size > 1024


def _table(factor: Any, offset: Any) -> np.ndarray[Any, Any]:
    """What becomes of each of the 256 values, in a column for each offset."""
    values = np.arange(256, dtype="float32")[:, None] * factor + np.asarray(offset, "float32").reshape(1, -1)
    table: np.ndarray[Any, Any] = np.clip(values, 0, 255).astype(np.uint8)
    return table


def brightness(xp: Any, image: Any, factor: float) -> Any:
    """All colours times a factor."""
    return scaled(xp, image, factor)


@silent
def contrast_offset(xp: Any, means: Any, factor: float) -> Any:
    """What `contrast` adds: from the mean of each channel."""
    grey = (
        (means * (GREY if isinstance(means, np.ndarray) else xp.asarray(GREY))).sum()
        if means.shape[0] == 3
        else means[0]
    )
    return grey * np.float32(1 - factor)


@silent
def contrast(xp: Any, image: Any, factor: float) -> Any:
    """Differences from the mean grey of the image times a factor."""
    if not image.size:
        return image.copy()
    if _fast(image, np.uint8) or _fast(image, np.float32):
        means = opencv.means(image)
    else:
        means = image.mean((0, 1), dtype=np.float64).astype(np.float32)
    return scaled(xp, image, factor, contrast_offset(xp, means, factor))


def saturation(xp: Any, image: Any, factor: float) -> Any:
    """Differences from the grey of every pixel times a factor; a grey image stays as it is."""
    if image.shape[2] != 3:
        return image.copy()
    if _fast(image, np.float32):
        return opencv.mix(image, np.eye(3, dtype="float32") * np.float32(factor) + np.float32(1 - factor) * GREY)
    x = _floats(image)
    grey = xp.matmul(x, xp.asarray(GREY * np.float32(1 - factor)).astype(x.dtype))
    return as_image(xp, x * np.float32(factor) + grey[..., None], image.dtype)


def hue(xp: Any, image: Any, turn: float) -> Any:
    """Colours turned about the colour wheel, by whole turns; lightness, saturation and grey images stay."""
    if image.shape[2] != 3:
        return image.copy()
    x = _floats(image)
    r, g, b = (xp.ascontiguousarray(x[..., c]) for c in range(3))
    high, low = xp.maximum(xp.maximum(r, g), b), xp.minimum(xp.minimum(r, g), b)
    d = high - low
    safe = xp.where(d == 0, xp.ones_like(d), d)
    # The place on the wheel, in sixths of a turn.
    at = xp.where(high == r, (g - b) / safe, xp.where(high == g, 2 + (b - r) / safe, 4 + (r - g) / safe)) + np.float32(
        turn * 6 % 6
    )
    out = xp.empty_like(x)
    for channel, shift in enumerate((5, 3, 1)):
        k = at + shift
        k -= 6 * xp.floor(k / 6)  # several times faster than the operator %
        out[..., channel] = high - d * xp.clip(xp.minimum(k, 4 - k), 0, 1)
    return as_image(xp, out, image.dtype)


def lighting(xp: Any, image: Any, alpha: Any) -> Any:
    """Colours moved along the principal components of ImageNet's, by three numbers; a grey image stays."""
    if image.shape[2] != 3:
        return image.copy()
    return scaled(xp, image, 1, xp.asarray(COMPONENTS @ np.asarray(alpha, "float32")))
