"""What OpenCV does for images: reading, resizing, and what it does fastest. It is imported when it is first needed.

Plain functions over NumPy arrays (height, width, channels), the one place for operators, kernels and the image
transforms.
"""

from __future__ import annotations

import functools
import multiprocessing
from typing import Any

import numpy as np

from ... import _importing
from ...base import error
from ...limits import check_picture

__all__ = ["decode", "flip", "look_up", "means", "mix", "opencv", "resize"]


@functools.cache
def opencv() -> Any:
    """The module ``cv2``; an error that says how to install it if it cannot be imported."""
    try:
        cv2 = _importing.load("cv2")
    except ImportError as e:
        raise error(
            ImportError,
            "images are read and resized with OpenCV, which cannot be imported: "
            f"{e}. pip install opencv-python-headless",
        ) from e
    if multiprocessing.parent_process() is not None:
        # A worker does one image at a time; threads would take the other workers' cores.
        cv2.setNumThreads(0)
    return cv2


def decode(data: Any, flag: int = 1, name: str = "image", rgb: bool = True) -> np.ndarray[Any, Any]:
    """Decode a JPEG, PNG or other image.

    Parameters
    ----------
    data : bytes or numpy.ndarray of uint8
    flag : int
        1 colour, 0 grey, -1 what the file has; others are OpenCV's.
    name : str
        For messages.
    rgb : bool
        Colours in the order red, green, blue; else as OpenCV has them, blue first.

    Returns
    -------
    numpy.ndarray of uint8
        ``(height, width, channels)``.

    Raises
    ------
    MXNetError
        (also ValueError) if it is no image, or has more than ``MXCORE_MAX_IMAGE_PIXELS`` pixels (see `mxcore.limits`).
    """
    cv2 = opencv()
    raw = np.frombuffer(data, np.uint8) if not isinstance(data, np.ndarray) else np.ascontiguousarray(data).reshape(-1)
    check_picture(data if isinstance(data, bytes) else raw, name)
    try:
        image: np.ndarray[Any, Any] | None = cv2.imdecode(raw, flag) if raw.size else None
    except cv2.error as e:
        raise error(ValueError, f"{name} ({raw.size} bytes): OpenCV refuses it: {e}") from e
    if image is None:
        start = f"; it begins with {bytes(raw[:8]).hex(' ')}" if raw.size else ""
        raise error(ValueError, f"{name} ({raw.size} bytes) is no image that OpenCV can decode{start}")
    # OpenCV's decoder of PFM takes no notice of what the flag asks for: 1 or 256 colour, 4 or 8 what the file has.
    if flag > 0 and flag & 257 and image.ndim == 2:
        image = cv2.cvtColor(image, cv2.COLOR_GRAY2BGR)
    elif flag >= 0 and not flag & 269 and image.ndim == 3:
        image = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
    if image.ndim == 2:
        return image[:, :, None]
    codes = {3: cv2.COLOR_BGR2RGB, 4: cv2.COLOR_BGRA2RGBA}
    return cv2.cvtColor(image, codes[image.shape[2]]) if rgb and image.shape[2] in codes else image


#: Names of OpenCV's methods by MXNet's numbers.
_METHODS = ("INTER_NEAREST", "INTER_LINEAR", "INTER_CUBIC", "INTER_AREA", "INTER_LANCZOS4")


def resize(image: np.ndarray[Any, Any], width: int, height: int, method: int = 1) -> np.ndarray[Any, Any]:
    """Resize an image (height, width, channels): method 0 nearest, 1 bilinear, 2 cubic, 3 area, 4 Lanczos."""
    cv2 = opencv()
    if (height, width) == image.shape[:2]:
        return np.array(image, order="C")
    try:
        # OpenCV drops an axis of size 1.
        out: np.ndarray[Any, Any] = cv2.resize(
            np.ascontiguousarray(image), (width, height), interpolation=getattr(cv2, _METHODS[method])
        )
    except cv2.error as e:
        raise error(
            ValueError, f"OpenCV cannot resize an image {image.shape} of {image.dtype} to ({height}, {width}): {e}"
        ) from e
    return out.reshape(height, width, image.shape[2])


def flip(image: np.ndarray[Any, Any], axis: int) -> np.ndarray[Any, Any]:
    """Mirror an image along its height (0) or width (1)."""
    flipped: np.ndarray[Any, Any] = opencv().flip(np.ascontiguousarray(image), axis)
    return np.reshape(flipped, image.shape)


def look_up(image: np.ndarray[Any, Any], table: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The values of a table at the pixels of a uint8 image: (256, 1), or (256, channels) with a column for each."""
    found: np.ndarray[Any, Any] = opencv().LUT(np.ascontiguousarray(image), table.reshape(1, 256, -1))
    return np.reshape(found, image.shape)


def means(image: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The mean of each channel, in float32."""
    return np.array(opencv().mean(np.ascontiguousarray(image))[: image.shape[2]], "float32")


def mix(image: np.ndarray[Any, Any], matrix: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Colours of a float image times a matrix (3, 3); with a fourth column that is added (3, 4)."""
    mixed: np.ndarray[Any, Any] = opencv().transform(np.ascontiguousarray(image), matrix)
    return mixed
