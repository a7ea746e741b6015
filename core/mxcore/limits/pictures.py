"""The size of a picture, read from its header: every format that OpenCV decodes, none of the pixels.

Each reader takes the bytes of a file and returns (width, height), or raises where they end or make no sense. They find
the size where OpenCV's decoders find it, with their idea of comments and blanks; where a file gives several, the
largest counts.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Iterator

__all__ = ["chunks", "jpeg_scans", "picture_size", "tiff_strips", "unbounded"]

Size = tuple[int, int]


def _at(layout: str, offset: int) -> Callable[[bytes], Size]:
    """A reader of formats whose width and height stand at a fixed place."""
    return lambda data: struct.unpack_from(layout, data, offset)


def _segments(data: bytes) -> Iterator[tuple[int, int]]:
    """Marker and place of what follows it, of the segments of a JPEG file in turn; entropy-coded data are passed."""
    at = 2
    while True:
        at = data.index(b"\xff", at) + 1
        while data[at] == 0xFF:
            at += 1
        marker = data[at]
        at += 1
        yield marker, at
        if not (0xD0 <= marker <= 0xD8 or marker <= 0x01):  # those have no length
            at += struct.unpack_from(">H", data, at)[0]


def _is_frame(marker: int) -> bool:
    return 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC)


def _jpeg(data: bytes) -> Size:
    for marker, at in _segments(data):
        if _is_frame(marker):
            height, width = struct.unpack_from(">HH", data, at + 3)
            return width, height
    raise ValueError


def jpeg_scans(data: bytes) -> int:
    """How many scans of a JPEG file, whose header tells its size, a decoder goes through, at most.

    It stops behind the first if that has all components, and what follows does not refine it.

    Parameters
    ----------
    data : bytes

    Examples
    --------
    >>> jpeg_scans(b"\\xff\\xd8\\xff\\xc0\\0\\x0b\\x08\\0\\1\\0\\1\\1\\1\\x11\\0\\xff\\xda\\0\\x08\\1")
    1
    """
    frame, components = 0, 0
    try:
        for marker, at in _segments(data):
            if _is_frame(marker):
                frame, components = marker, data[at + 7]
            elif marker == _SCAN:
                if frame in _SEQUENTIAL and data[at + 2] == components:
                    return 1
                break
    except (struct.error, ValueError, IndexError):
        pass  # it ends before
    return data.count(b"\xff\xda")


def _bmp(data: bytes) -> Size:
    old = struct.unpack_from("<I", data, 14)[0] == 12
    width, height = struct.unpack_from("<HH" if old else "<ii", data, 18)
    return abs(width), abs(height)


def _gif(data: bytes) -> Size:
    """The screen, or the first picture if that is larger."""
    width, height, flags = struct.unpack_from("<HHB", data, 6)
    at = 13 + (3 << (flags & 7) + 1 if flags & 0x80 else 0)
    while data[at : at + 1] == b"!":  # extensions: a kind, then blocks until an empty one
        at += 2
        while data[at]:
            at += 1 + data[at]
        at += 1
    if data[at : at + 1] == b",":
        left, top, own_width, own_height = struct.unpack_from("<HHHH", data, at + 1)
        return max(width, left + own_width), max(height, top + own_height)
    return width, height


def _webp(data: bytes) -> Size:
    kind = data[12:16]
    if kind == b"VP8X":
        width, height = struct.unpack("<I", data[24:27] + b"\0")[0], struct.unpack("<I", data[27:30] + b"\0")[0]
        return width + 1, height + 1
    if kind == b"VP8L":
        bits = struct.unpack_from("<I", data, 21)[0]
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    width, height = struct.unpack_from("<HH", data, 26)
    return width & 0x3FFF, height & 0x3FFF


#: Markers: the start of a scan; of frames whose scans do not refine each other.
_SCAN, _SEQUENTIAL = 0xDA, (0xC0, 0xC1, 0xC9)
_TIFF_TYPES = {1: "B", 3: "H", 4: "I", 6: "b", 8: "h", 9: "i", 16: "Q", 17: "q"}
_WIDTH, _HEIGHT, _TILE_WIDTH, _TILE_HEIGHT = 256, 257, 322, 323
#: Where the strips or tiles of a page begin, and of how many bytes they are.
_PARTS, _COUNTS = (273, 324), (279, 325)


def _fields(data: bytes) -> Iterator[tuple[int, str, int, int]]:
    """Tag, layout of a value, number of values and place of the first, of the fields of a TIFF file's first page."""
    order = "<" if data[:2] == b"II" else ">"
    big = data[2:4] in (b"+\0", b"\0+")
    at, count, head, entry, field, inline = (8, "Q", 8, 20, "Q", 8) if big else (4, "H", 2, 12, "I", 4)
    page = struct.unpack_from(order + field, data, at)[0]
    entries = min(struct.unpack_from(order + count, data, page)[0], len(data) // entry)
    for place in range(page + head, page + head + entries * entry, entry):
        tag, kind, n = struct.unpack_from(order + "HH" + field, data, place)
        if kind in _TIFF_TYPES:
            layout, value = order + _TIFF_TYPES[kind], place + entry - inline
            if n * struct.calcsize(layout) > inline:  # they stand elsewhere
                value = struct.unpack_from(order + field, data, value)[0]
            yield tag, layout, n, value


def _tiff(data: bytes) -> Size:
    """The first page, which is the one that is decoded, or its tiles if they are larger."""
    tags: dict[int, int] = {}
    for tag, layout, _, place in _fields(data):
        if tag in (_WIDTH, _HEIGHT, _TILE_WIDTH, _TILE_HEIGHT):
            tags[tag] = max(tags.get(tag, 0), struct.unpack_from(layout, data, place)[0])
    return max(tags.get(_WIDTH, 0), tags.get(_TILE_WIDTH, 0)), max(tags.get(_HEIGHT, 0), tags.get(_TILE_HEIGHT, 0))


def tiff_strips(data: bytes) -> int:
    """How many bytes of a TIFF file a decoder goes through: strips and tiles may all lie at one place.

    Parameters
    ----------
    data : bytes

    Examples
    --------
    >>> import struct
    >>> page = struct.pack("<HHHIIHHII", 2, 273, 4, 1, 8, 279, 4, 1, 20)
    >>> tiff_strips(b"II*\\0" + struct.pack("<I", 8) + page + bytes(4))
    20
    """
    import numpy as np

    parts, total = 0, None
    try:
        for tag, layout, n, place in _fields(data):
            if tag in _PARTS:
                parts = max(parts, n)
            elif tag in _COUNTS and 0 <= place <= len(data) - n * struct.calcsize(layout):
                counts = np.frombuffer(data, layout, n, place).astype(np.uint64)
                total = max(total or 0, int(np.minimum(counts, len(data)).sum()))
    except (struct.error, ValueError):
        pass  # it ends before
    # Where it does not tell, decoders take each to reach to the end.
    return parts * len(data) if total is None else total


_GAP = re.compile(rb"\s+|#[^\r\n]*[\r\n]")
_NUMBER = re.compile(rb"(\d+)(?=\D)")
_PAM_LINE = re.compile(rb"\s*(?:#[^\r\n]*|(\S+)(?:[^\S\r\n]+(\d+))?[^\r\n]*)")
_RADIANCE = re.compile(rb"-Y\s*\+?(\d+)\s*\+X\s*\+?(\d+)")


def _netpbm(data: bytes) -> Size:
    """PBM, PGM, PPM and PFM: numbers in a text with comments."""
    at, sizes = 2, []
    for _ in range(2):
        while gap := _GAP.match(data, at):  # not one pattern for all: it would keep a place to return to for each
            at = gap.end()
        number = _NUMBER.match(data, at)
        if number is None:
            return 0, 0
        sizes.append(int(number[1]))
        at = number.end() + 1
    return sizes[0], sizes[1]


def _pam(data: bytes) -> Size:
    """Lines of a name and a value, up to one of ENDHDR."""
    sizes = {b"WIDTH": 0, b"HEIGHT": 0}
    at = 2
    while (line := _PAM_LINE.match(data, at)) and line[1] != b"ENDHDR":
        if line[1] in sizes and line[2]:
            sizes[line[1]] = max(sizes[line[1]], int(line[2]))
        at = line.end()
    return sizes[b"WIDTH"], sizes[b"HEIGHT"]


def _radiance(data: bytes) -> Size:
    """A line of two numbers, after others that may look like it."""
    return _largest((int(found[2]), int(found[1])) for found in _RADIANCE.finditer(data))


def _largest(sizes: Iterable[Size]) -> Size:
    return max(sizes, key=lambda size: size[0] * size[1], default=(0, 0))


def _boxes(data: bytes, at: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """Kind, beginning and end of the boxes of a JP2 or AVIF file."""
    while at + 8 <= end:
        n, kind = struct.unpack_from(">I4s", data, at)
        head = 8
        if n == 1:
            n, head = struct.unpack_from(">Q", data, at + 8)[0], 16
        stop = end if n == 0 else at + n
        yield kind, at + head, min(stop, end)
        at = max(stop, at + head)


def _codestream(data: bytes, at: int = 0) -> Size:
    """JPEG 2000: the reference grid."""
    return struct.unpack_from(">II", data, at + 8)


def _jp2(data: bytes) -> Size:
    return _largest(_codestream(data, at) for kind, at, _ in _boxes(data, 0, len(data)) if kind == b"jp2c")


#: Boxes that hold the size of an AVIF file -> how much stands in them before the boxes inside.
_NESTED = {b"meta": 4, b"iprp": 0, b"ipco": 0}


def _avif(data: bytes) -> Size:
    return _largest(_properties(data, 0, len(data), tuple(_NESTED)))


def _properties(data: bytes, at: int, end: int, below: tuple[bytes, ...]) -> Iterator[Size]:
    for kind, begin, stop in _boxes(data, at, end):
        if below and kind == below[0]:
            yield from _properties(data, begin + _NESTED[kind], stop, below[1:])
        elif not below and kind == b"ispe":
            yield struct.unpack_from(">II", data, begin + 4)


def _openexr(data: bytes) -> Size:
    at = data.index(b"dataWindow\0box2i\0") + 21
    left, top, right, bottom = struct.unpack_from("<iiii", data, at)
    return right - left + 1, bottom - top + 1


#: What a file starts with (a pattern) -> who reads its size.
_FORMATS: tuple[tuple[bytes, Callable[[bytes], Size]], ...] = (
    (rb"\xff\xd8", _jpeg),
    (rb"\x89PNG", _at(">II", 16)),
    (rb"BM", _bmp),
    (rb"GIF8", _gif),
    (rb"RIFF....WEBP", _webp),
    (rb"...\x9d\x01\x2a", lambda data: _webp(bytes(20) + data)),  # WebP without its container, both kinds
    (rb"/...[\0-\x1f]", lambda data: _webp(bytes(12) + b"VP8L" + bytes(4) + data)),
    (rb"II[*+]\0|MM\0[*+]", _tiff),
    (rb"P[1-6fF]", _netpbm),
    (rb"P7", _pam),
    (rb"#\?R", _radiance),
    (rb"\x59\xa6\x6a\x95", _at(">II", 4)),  # Sun raster
    (rb"\xff\x4f\xff\x51", _codestream),
    (rb"....jP  ", _jp2),
    (rb"....ftyp", _avif),
    (rb"\x76\x2f\x31\x01", _openexr),
)
_TABLE = tuple((re.compile(pattern, re.S), reader) for pattern, reader in _FORMATS)
#: Formats whose size says little about what decoding takes -> what they are called.
#: JPEG 2000: there are tables for each tile, component, precinct and block, and steps for each layer of each precinct,
#: of which 96 bytes name as many as they like. AVIF: the size that the file tells of need not be that of the frame,
#: which is decoded before it is made to fit.
_UNBOUNDED: dict[Callable[[bytes], Size], str] = {_codestream: "jp2", _jp2: "jp2", _avif: "avif"}


def _readers(data: bytes) -> Iterator[Callable[[bytes], Size]]:
    """Readers of the formats that a file may be in, by what it starts with."""
    return (reader for pattern, reader in _TABLE if pattern.match(data))


def unbounded(data: bytes) -> str | None:
    """The format of a picture that may take any time and memory to decode, whatever its size, else None.

    Parameters
    ----------
    data : bytes-like

    Returns
    -------
    str or None
        ``"jp2"`` or ``"avif"``.

    Examples
    --------
    >>> unbounded(b"\\xff\\x4f\\xff\\x51...."), unbounded(b"P5 3 2 255 ......")
    ('jp2', None)
    """
    return next((_UNBOUNDED[reader] for reader in _readers(data) if reader in _UNBOUNDED), None)


def chunks(data: bytes) -> Iterator[tuple[str, int, int]]:
    """Kind, offset and length of each chunk of a PNG file, up to the first that ends behind the file.

    Decoders take the memory for a chunk, up to 4 GiB, before they read it.

    Parameters
    ----------
    data : bytes

    Examples
    --------
    >>> [*chunks(b"\\x89PNG\\r\\n\\x1a\\n" + b"\\0\\0\\0\\0tEXt...." + b"\\x7f\\0\\0\\0IDAT" + b"...")]
    [('tEXt', 8, 0), ('IDAT', 20, 2130706432)]
    """
    at, kind, n = 8, b"", 0
    while at + 8 <= len(data) and kind != b"IEND":
        n, kind = struct.unpack_from(">I4s", data, at)
        yield ascii(kind.decode("latin-1"))[1:-1], at, n
        at += n + 12


def picture_size(data: bytes) -> Size | None:
    """Width and height of a picture, read from its header.

    Parameters
    ----------
    data : bytes-like
        The file.

    Returns
    -------
    (int, int) or None
        None if it is in no known format; (0, 0) if it is, but its header tells no size, or ends before.

    Examples
    --------
    >>> picture_size(b"P5 3 2 255 ......")
    (3, 2)
    """
    for reader in _readers(data):
        try:
            width, height = reader(data)
        except (struct.error, ValueError, IndexError):
            return 0, 0
        return (width, height) if width > 0 and height > 0 else (0, 0)
    return None
