"""What an image record holds: a small header, labels, then the encoded image."""

from __future__ import annotations

import numbers
import struct
from collections import namedtuple

import numpy as np

from mxcore.base import error

from . import codec
from .codec import Buffer

__all__ = ["HEADER", "HEADER_SIZE", "IRHeader", "pack", "pack_img", "unpack", "unpack_img"]

# MXNet's class says HEADER of itself, and pickle looks it up by that name.
HEADER = namedtuple("HEADER", ("flag", "label", "id", "id2"))
IRHeader = HEADER
IRHeader.__doc__ = """Header of an image record: ``IRHeader(flag, label, id, id2)``.

Parameters
----------
flag : int
    How many labels are stored behind the header; 0 if `label` is one number. `pack` sets it.
label : float or array of float32
    The label or labels.
id : int
    Number of the image, 0 to 2**64 - 1.
id2 : int
    A second number, usually 0.

Notes
-----
Behaviour matched: MXNet 1.9.1 ``recordio.IRHeader``.

Examples
--------
>>> IRHeader(0, 3.0, 7, 0).label
3.0
"""

_FORMAT = struct.Struct("<IfQQ")
HEADER_SIZE = _FORMAT.size


def pack(header: IRHeader, s: Buffer) -> bytes:
    """Put a header before the bytes of an image.

    Parameters
    ----------
    header : IRHeader
        Header; its label is a number, or an array-like of numbers, which is stored as float32.
    s : bytes
        The encoded image.

    Returns
    -------
    bytes

    Raises
    ------
    MXNetError
        (also ValueError or TypeError) if a field does not fit.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``recordio.pack``.

    Examples
    --------
    >>> len(pack(IRHeader(0, [1, 2, 3], 7, 0), b"image"))
    41
    """
    try:
        _, label, number, number2 = header
        if isinstance(label, numbers.Number):
            return b"".join((_FORMAT.pack(0, label, number, number2), s))
        with np.errstate(over="raise"):
            labels = np.asarray(label, dtype="<f4")
        return b"".join((_FORMAT.pack(labels.size, 0, number, number2), labels.tobytes(), s))
    except (struct.error, ArithmeticError, ValueError) as e:
        raise error(ValueError, f"pack: {header!r} does not fit uint32, float32, uint64, uint64: {e}") from e
    except TypeError as e:
        raise error(
            TypeError, f"pack: expected a header of four fields and bytes, got {header!r} and {type(s).__name__}: {e}"
        ) from e


def unpack(s: Buffer) -> tuple[IRHeader, Buffer]:
    """Take a record apart into header and image bytes.

    Parameters
    ----------
    s : bytes
        A record's payload.

    Returns
    -------
    (IRHeader, bytes)
        The label is a float, or a float32 array of shape (flag,).

    Raises
    ------
    MXNetError
        (also ValueError) if the payload is too short for its header and labels.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``recordio.unpack``.

    Examples
    --------
    >>> unpack(pack(IRHeader(0, 3.0, 7, 0), b"image"))
    (HEADER(flag=0, label=3.0, id=7, id2=0), b'image')
    """
    if not isinstance(s, (bytes, bytearray, memoryview)):
        raise error(TypeError, f"unpack: a record must be bytes, not {type(s).__name__}")
    if len(s) < HEADER_SIZE:
        raise error(
            ValueError,
            f"unpack: {len(s)} bytes are too few for a header of {HEADER_SIZE}; was the record made by pack()?",
        )
    flag, label, number, number2 = _FORMAT.unpack_from(s)
    if flag == 0:
        return HEADER(flag, label, number, number2), s[HEADER_SIZE:]
    image = HEADER_SIZE + 4 * flag
    if len(s) < image:
        raise error(
            ValueError,
            f"unpack: the header tells of {flag} labels, but only {len(s) - HEADER_SIZE} "
            "bytes follow it; was the record made by pack()?",
        )
    labels = np.frombuffer(s, "<f4", flag, HEADER_SIZE)
    return HEADER(flag, labels, number, number2), s[image:]


def pack_img(header: IRHeader, img: codec.Image, quality: int = 95, img_fmt: str = ".jpg") -> bytes:
    """Encode an image and put a header before it.

    Parameters
    ----------
    header : IRHeader
        As for `pack`.
    img : numpy.ndarray
        (height, width) or (height, width, channels), uint8, channels in the order blue, green, red (, alpha).
    quality : int
        1 to 100 for JPEG, compression 0 to 9 for PNG.
    img_fmt : str
        ``'.jpg'``, ``'.png'`` or another ending that OpenCV knows.

    Returns
    -------
    bytes

    Raises
    ------
    MXNetError
        (also ValueError) if the image cannot be encoded.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``recordio.pack_img``.

    Examples
    --------
    >>> len(unpack(pack_img(IRHeader(0, 1, 0, 0), np.zeros((8, 8), "uint8"), img_fmt=".png"))[1]) > 0
    True
    """
    return pack(header, codec.encode(img, img_fmt, quality))


def unpack_img(s: Buffer, iscolor: int = -1) -> tuple[IRHeader, codec.Image]:
    """Take a record apart into header and decoded image.

    Parameters
    ----------
    s : bytes
        A record's payload.
    iscolor : int
        Flag of ``cv2.imdecode``: -1 as stored, 0 grey, 1 colour.

    Returns
    -------
    (IRHeader, numpy.ndarray)
        The image has shape (height, width) or (height, width, channels), channels from blue to red.

    Raises
    ------
    MXNetError
        (also ValueError) if the image cannot be decoded.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``recordio.unpack_img``, where an unreadable image comes back as None.

    Examples
    --------
    >>> record = pack_img(IRHeader(0, 1, 0, 0), np.full((2, 2), 9, "uint8"), img_fmt=".png")
    >>> unpack_img(record)[1].tolist()
    [[9, 9], [9, 9]]
    """
    header, image = unpack(s)
    return header, codec.decode(image, iscolor)
