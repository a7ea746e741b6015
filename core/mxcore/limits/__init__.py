"""How much a file may ask for: a few hundred bytes must not take the memory of the machine.

Each limit is a variable of the environment, read when it is needed. It bounds what is made *of* a file, such as the
pixels that a small picture unfolds to; what merely is as large as the file has no limit.

>>> limit("MXCORE_MAX_IMAGE_PIXELS")
134217728
"""

from __future__ import annotations

import os
import zipfile
from typing import Any

from ..base import error
from .pictures import chunks, jpeg_scans, picture_size, tiff_strips, unbounded

__all__ = [
    "DEFAULTS",
    "Searched",
    "check_member",
    "check_packing",
    "check_picture",
    "check_unpacked",
    "copy_unpacked",
    "limit",
    "picture_size",
    "read_up_to",
    "whole_number",
]

#: Variable -> the limit without it: pixels of a picture, and bytes that a compressed file unfolds to.
DEFAULTS = {"MXCORE_MAX_IMAGE_PIXELS": 1 << 27, "MXCORE_MAX_UNPACKED_BYTES": 1 << 31}

_PIECE = 1 << 22
#: Scans of a JPEG file: each takes a dozen bytes, and as long as the whole picture. Progressive ones have about ten.
_MOST_SCANS = 500
#: … times pixels: a minute or so.
_MOST_SCANNED = 1 << 32
#: Bytes that the strips of a TIFF file tell of, at most, or as many times those of the file.
_MOST_STRIPS, _MOST_SHARED = 1 << 28, 16
#: Texts of a PNG file, each of which unfolds to 8 MB at most; cameras and editors write some five.
_MOST_PACKED = 64
#: Which formats of pictures are decoded though no limit holds for them, by their endings.
_TRUSTED = "MXCORE_TRUSTED_IMAGE_FORMATS"


def limit(variable: str) -> int:
    """The limit that a variable of the environment gives, or its default.

    Parameters
    ----------
    variable : str
        One of `DEFAULTS`.

    Raises
    ------
    MXNetError
        (also ValueError) if the variable holds no whole number above 0.
    """
    return whole_number(variable, DEFAULTS[variable])


def whole_number(variable: str, default: int, least: int = 1) -> int:
    """The whole number in a variable of the environment, or `default` without it.

    Parameters
    ----------
    variable : str
    default : int
    least : int
        What it must be at least.

    Raises
    ------
    MXNetError
        (also ValueError) if it holds anything else.

    Examples
    --------
    >>> whole_number("A_VARIABLE_THAT_IS_NOT_SET", 4)
    4
    """
    text = os.environ.get(variable)
    if text is None:
        return default
    try:
        if (value := int(text)) < least:
            raise ValueError(f"it is below {least}")
    except ValueError:
        raise error(ValueError, f"{variable} must be a whole number above {least - 1}, got {text[:40]!r}") from None
    return value


def check_picture(data: Any, name: str = "image") -> None:
    """Refuse a picture with more pixels than ``MXCORE_MAX_IMAGE_PIXELS``, by its header, before it is decoded.

    JPEG 2000 and AVIF, for which that is no limit, are refused unless ``MXCORE_TRUSTED_IMAGE_FORMATS`` names them.

    Parameters
    ----------
    data : bytes-like
        The file of the picture.
    name : str
        For messages.

    Raises
    ------
    MXNetError
        (also ValueError) if it has too many, or is in a known format and its header does not tell how many, or if it is
        a JPEG file of more scans than any encoder makes, a TIFF file whose strips lie upon each other, or a PNG file of
        many packed texts, or with a chunk that ends behind it.

    Examples
    --------
    >>> check_picture(b"P5 3 2 255 ......")
    """
    data = data if isinstance(data, bytes) else bytes(data)
    if (kind := unbounded(data)) and kind not in os.environ.get(_TRUSTED, "").lower().replace(",", " ").split():
        raise error(
            ValueError,
            f"{name} of {len(data)} bytes is in the format '{kind}', which MXNet does not decode, and whose pictures "
            f"of any size may take any memory and time; if you know where they come from, set {_TRUSTED}={kind}, or "
            "else convert them to JPEG or PNG",
        )
    size = picture_size(data)
    most = limit("MXCORE_MAX_IMAGE_PIXELS")
    if size == (0, 0):
        raise error(
            ValueError,
            f"{name} of {len(data)} bytes begins like a picture "
            f"({bytes(data[:4]).hex(' ')}), but has no header that tells its width and height; it is damaged",
        )
    if size is not None and size[0] * size[1] > most:
        raise error(
            ValueError,
            f"{name} of {len(data)} bytes is a picture of {size[0]} x {size[1]} pixels, more than the {most} that are "
            "decoded; set MXCORE_MAX_IMAGE_PIXELS to allow it",
        )
    if (
        data[:2] == b"\xff\xd8"
        and (scans := jpeg_scans(data)) > 1
        and (scans > _MOST_SCANS or size is not None and scans * size[0] * size[1] > _MOST_SCANNED)
    ):
        raise error(
            ValueError,
            f"{name} of {len(data)} bytes is a picture in {scans} scans, "
            f"more than the {_MOST_SCANS}, or {_MOST_SCANNED} pixels in all, that are decoded; encode it anew",
        )
    if data[:2] in (b"II", b"MM") and size is not None:
        strips = tiff_strips(data)
        if strips > max(_MOST_STRIPS, _MOST_SHARED * len(data)):
            raise error(
                ValueError,
                f"{name} of {len(data)} bytes is a TIFF picture whose strips or tiles are {strips} bytes in all: they "
                "lie upon each other; it is damaged, or save it anew",
            )
    packed = 0
    for kind, at, n in chunks(data) if data[:4] == b"\x89PNG" else ():
        if n > len(data) - at - 8:
            raise error(
                ValueError,
                f"{name} of {len(data)} bytes is a PNG file whose chunk {kind} at offset {at} has {n} bytes, "
                f"but {len(data) - at - 8} are left; it is cut or damaged",
            )
        packed += kind in ("zTXt", "iTXt")
        if packed > _MOST_PACKED:
            raise error(
                ValueError,
                f"{name} of {len(data)} bytes is a PNG file with more than {_MOST_PACKED} packed texts, which decoders "
                "unpack; save it without them",
            )


def check_unpacked(n: int, name: str) -> None:
    """Refuse a compressed file that tells of more than ``MXCORE_MAX_UNPACKED_BYTES``, before it is unfolded.

    Parameters
    ----------
    n : int
        How many bytes the header of the content tells of.
    name : str
        Of the file, for messages.

    Raises
    ------
    MXNetError
        (also ValueError) if they are more.

    Examples
    --------
    >>> check_unpacked(1 << 20, "a.gz")
    """
    most = limit("MXCORE_MAX_UNPACKED_BYTES")
    if n > most:
        raise error(
            ValueError,
            f"{name} tells of {n} bytes, more than the {most} that compressed files are unfolded to; "
            "set MXCORE_MAX_UNPACKED_BYTES to allow it",
        )


def check_member(member: zipfile.ZipInfo, name: str) -> None:
    """Refuse a file in a zip archive that tells of too much, or whose packing does not let it be unfolded in pieces.

    Parameters
    ----------
    member : zipfile.ZipInfo
    name : str
        Of the archive, for messages.

    Raises
    ------
    MXNetError
        (also ValueError) if it unfolds to more than ``MXCORE_MAX_UNPACKED_BYTES``, or is neither stored nor deflated:
        what `zipfile` unfolds by another method it unfolds as far as that goes, whatever is asked for.

    Examples
    --------
    >>> check_member(zipfile.ZipInfo("a.txt"), "a.zip")
    """
    check_unpacked(member.file_size, name)
    check_packing(member.compress_type, member.filename, name, "Delete it to have it downloaded again.", " is damaged")


def check_packing(method: int, member: str, name: str, remedy: str = "Pack it anew.", flaw: str = "") -> None:
    """Refuse a method of packing that does not let a file be unfolded in pieces.

    Parameters
    ----------
    method : int
        Its number in a zip archive.
    member, name, remedy, flaw : str
        Of the file and of the archive, what to do, and what the archive is then, for messages.

    Raises
    ------
    MXNetError
        (also ValueError) if it is neither stored nor deflated.

    Examples
    --------
    >>> check_packing(zipfile.ZIP_DEFLATED, "a.txt", "a.zip")
    """
    if method not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise error(
            ValueError,
            f"{name}{flaw}: {member!r} is packed by method {method}, and only what is stored or deflated is unpacked. "
            f"{remedy}",
        )


def copy_unpacked(source: Any, out: Any, name: str) -> None:
    """Copy what a compressed file unfolds to, unless it is more than ``MXCORE_MAX_UNPACKED_BYTES``.

    Parameters
    ----------
    source, out : file object
    name : str
        Of the compressed file, for messages.

    Raises
    ------
    MXNetError
        (also ValueError) if it is more.

    Examples
    --------
    >>> import io
    >>> out = io.BytesIO()
    >>> copy_unpacked(io.BytesIO(b"abc"), out, "a.gz")
    >>> out.getvalue()
    b'abc'
    """
    total = 0
    while piece := source.read(_PIECE):
        total += len(piece)
        check_unpacked(total, name)
        out.write(piece)


def read_up_to(file: Any, n: int) -> bytes:
    """Read `n` bytes, or as many as there are; no memory is taken for those that a header merely tells of.

    Parameters
    ----------
    file : file object
    n : int

    Examples
    --------
    >>> import io
    >>> read_up_to(io.BytesIO(b"abc"), 1 << 60)
    b'abc'
    """
    data = bytearray()
    while len(data) < n and (piece := file.read(min(_PIECE, n - len(data)))):
        data += piece
    return bytes(data)


class Searched:
    """The file of an archive, which is read as far as its list of files may take memory, and as it may unfold.

    Parameters
    ----------
    file : file object
        Seekable.
    name : str
        For messages.
    packed : bool
        Whether it unfolds as it is read, also where it is merely sought through.

    Examples
    --------
    >>> import io
    >>> file = Searched(io.BytesIO(b"abc"), "a.zip", packed=True)
    >>> file.seek(1), file.read(1), file.tell()
    (1, b'b', 2)
    """

    def __init__(self, file: Any, name: str, packed: bool) -> None:
        self._file, self._packed, self._held = file, packed, 0
        self.name = name
        self.tell = file.tell

    def charge(self, n: int) -> None:
        """Count `n` bytes of memory that the list of files takes."""
        self._held += n
        check_unpacked(self._held, f"the list of files of {self.name}")

    def read(self, n: int = -1) -> bytes:
        """As of files."""
        if self._packed and n >= 0:
            check_unpacked(self.tell() + n, self.name)
        found: bytes = self._file.read(n)
        return found

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """As of files."""
        if self._packed and whence == os.SEEK_SET:
            check_unpacked(offset, self.name)
        place: int = self._file.seek(offset, whence)
        return place
