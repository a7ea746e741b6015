"""Images from bytes and back, with OpenCV, which is imported when the first image comes."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from mxcore.base import error
from mxcore.limits import check_picture
from mxcore.plugin import load_module

__all__ = ["decode", "encode", "opencv"]

Array: TypeAlias = np.ndarray[Any, Any]
#: (height, width) or (height, width, channels), uint8 as a rule, channels from blue to red.
Image: TypeAlias = Array
Buffer: TypeAlias = bytes | bytearray | memoryview

COLOR, GREY, AS_STORED = 1, 0, -1  # of cv2.imdecode

# Ending -> name of OpenCV's quality parameter, and the values it takes.
_QUALITY = {
    ".jpg": ("IMWRITE_JPEG_QUALITY", 0, 100),
    ".jpeg": ("IMWRITE_JPEG_QUALITY", 0, 100),
    ".png": ("IMWRITE_PNG_COMPRESSION", 0, 9),
    ".webp": ("IMWRITE_WEBP_QUALITY", 1, 100),
}


@functools.cache
def opencv() -> ModuleType:
    """Import OpenCV.

    Returns
    -------
    module
        ``cv2``.

    Raises
    ------
    MXNetError
        (also ImportError) that says how to install it.

    Examples
    --------
    >>> opencv().__name__
    'cv2'
    """
    try:
        cv2: ModuleType = load_module("cv2")
    except ImportError as e:
        raise error(
            ImportError, f"images need OpenCV, which cannot be imported ({e}): pip install opencv-python-headless"
        ) from e
    return cv2


def decode(data: Buffer, flag: int = AS_STORED) -> Image:
    """Decode an image.

    Parameters
    ----------
    data : bytes-like
        The encoded image: JPEG, PNG, WebP or whatever else OpenCV reads.
    flag : int
        Flag of ``cv2.imdecode``: -1 as stored, 0 grey, 1 colour.

    Returns
    -------
    numpy.ndarray
        (height, width) or (height, width, channels), channels in the order blue, green, red (, alpha).

    Raises
    ------
    MXNetError
        (also ValueError) if it is no image, or has more pixels than ``MXCORE_MAX_IMAGE_PIXELS`` (see
        `mxcore.limits`), which its header tells before anything is decoded.

    Examples
    --------
    >>> decode(encode(np.zeros((4, 5, 3), "uint8"), ".png")).shape
    (4, 5, 3)
    """
    cv2 = opencv()
    buffer = np.frombuffer(data, np.uint8)
    check_picture(data, "the image")
    try:
        image: Image | None = cv2.imdecode(buffer, flag) if buffer.size else None
    except cv2.error as e:
        raise error(ValueError, f"OpenCV cannot decode the image of {buffer.size} bytes: {e}") from e
    if image is None:
        start = bytes(buffer[:4]).hex(" ")
        raise error(ValueError, f"OpenCV cannot decode the image of {buffer.size} bytes (first: {start})")
    # OpenCV's decoder of PFM takes no notice of what the flag asks for: 1 or 256 colour, 4 or 8 what the file has.
    if flag > 0 and flag & 257 and image.ndim == 2:
        image = cv2.cvtColor(image, cv2.COLOR_GRAY2BGR)
    elif flag >= 0 and not flag & 269 and image.ndim == 3:
        image = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
    return image


def encode(image: Image, ending: str = ".jpg", quality: int = 95) -> bytes:
    """Encode an image.

    Parameters
    ----------
    image : numpy.ndarray
        (height, width) or (height, width, channels), uint8, channels in the order blue, green, red (, alpha).
    ending : str
        Format, as the ending of a file name.
    quality : int
        Quality of JPEG and WebP (1 to 100) or compression of PNG (0 to 9); brought into that range.

    Returns
    -------
    bytes

    Raises
    ------
    MXNetError
        (also ValueError) if the format is unknown or cannot hold the image.

    Examples
    --------
    >>> encode(np.zeros((4, 5), "uint8"), ".png")[1:4]
    b'PNG'
    """
    cv2 = opencv()
    if not isinstance(ending, str):
        raise error(TypeError, f"the format of an image is an ending like '.png', got {type(ending).__name__}")
    name, low, high = _QUALITY.get(ending.lower(), (None, 0, 0))
    try:
        parameters = [getattr(cv2, name), min(max(int(quality), low), high)] if name else []
    except (TypeError, ValueError) as e:
        raise error(type(e), f"the quality of an image is a whole number, got {quality!r}") from None
    try:
        done, buffer = cv2.imencode(ending, np.asarray(image), parameters)
    except (cv2.error, TypeError) as e:
        done, reason = False, f": {e}"
    else:
        reason = ""
    if not done:
        found = f"{getattr(image, 'shape', '')} {getattr(image, 'dtype', type(image).__name__)}"
        raise error(ValueError, f"OpenCV cannot encode an image {found} as {ending!r}{reason}")
    data: bytes = buffer.tobytes()
    return data
