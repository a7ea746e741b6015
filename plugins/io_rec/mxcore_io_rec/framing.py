"""The RecordIO format: payloads between magic words.

::

    file   := record *
    record := part(0) | part(1) part(2) * part(3)
    part   := u32 0xCED7230A | u32 kind << 29 | length | payload | zeros up to a multiple of 4

all little-endian. A payload that holds the magic word at a multiple of 4 is cut there into parts, and the
word itself is left out; the reader puts it back. So inside a sound file the magic word stands, at multiples
of 4, nowhere but at the start of a part, which makes it possible to find the next record after damage.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mxcore.base import error

if TYPE_CHECKING:
    from .codec import Buffer
    from .source import Source

__all__ = [
    "MAGIC",
    "MAX_LENGTH",
    "Damage",
    "Window",
    "find_record",
    "frame",
    "read_record",
    "skip_record",
    "starts_record",
    "whole_length",
]

MAGIC = 0xCED7230A
MAX_LENGTH = (1 << 29) - 1
WHOLE, FIRST, MIDDLE, LAST = range(4)

_WORD = struct.pack("<I", MAGIC)
_HEAD = struct.Struct("<II")
_LOOK = 1 << 20  # bytes to look through at a time for the next record
_PADDING = (b"", b"\0\0\0", b"\0\0", b"\0")


class Damage(Exception):
    """A place in a file where a record should be and is not.

    Parameters
    ----------
    offset : int
        Where the record starts, in bytes.
    what : str
        What is wrong with it.
    behind : int, optional
        From where to look for the next record. Parts whose headers were sound lie before it: looking through
        them again for every record that seems to start there would take quadratic time.
    """

    def __init__(self, offset: int, what: str, behind: int | None = None) -> None:
        super().__init__(offset, what)
        self.offset, self.what = offset, what
        self.behind = offset + 4 if behind is None else behind


def _cuts(payload: bytes) -> Iterator[int]:
    """Positions of the magic word at multiples of 4."""
    found = payload.find(_WORD)
    while found >= 0:
        if found % 4 == 0:
            yield found
            found = payload.find(_WORD, found + 4)
        else:
            found = payload.find(_WORD, found + 1)


def frame(payload: Buffer) -> bytes:
    """Return the bytes of one record.

    Parameters
    ----------
    payload : bytes-like
        At most 2**29 - 1 bytes.

    Returns
    -------
    bytes

    Raises
    ------
    MXNetError
        (also ValueError) if the payload is too long, (also TypeError) if it is no bytes.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``MXRecordIO.write``, byte for byte.

    Examples
    --------
    >>> frame(b"abcde").hex()
    '0a23d7ce050000006162636465000000'
    """
    if not isinstance(payload, bytes):
        try:
            payload = bytes(memoryview(payload))
        except TypeError:
            found = type(payload).__name__
            raise error(TypeError, f"a record holds bytes, not {found}; encode it first") from None
    n = len(payload)
    if n > MAX_LENGTH:
        raise error(ValueError, f"a record holds at most {MAX_LENGTH} bytes, not {n}; use several records")
    pieces: list[bytes] = []
    start = 0
    for cut in _cuts(payload):
        pieces += _head(MIDDLE if start else FIRST, cut - start), payload[start:cut]
        start = cut + 4
    pieces += _head(LAST if start else WHOLE, n - start), payload[start:], _PADDING[n % 4]
    return b"".join(pieces)


def _head(kind: int, length: int) -> bytes:
    return _HEAD.pack(MAGIC, kind << 29 | length)


class Window:
    """A source seen through the last block that was read from it.

    Parameters
    ----------
    source : LocalFile or RemoteFile
        Where the bytes are.
    block : int, optional
        Bytes to read at a time; the source's own choice by default.

    Notes
    -----
    Called with a position and a length it returns the bytes there, fewer only where the source ends. It
    belongs to one thread at a time. However its methods are called with rising positions, what they read is
    a few times the length of the source at most, and a few bytes for each call.
    """

    __slots__ = ("_block", "_data", "_short", "_source", "_start")

    def __init__(self, source: Source, block: int | None = None) -> None:
        self._source = source
        self._block = block or source.block
        self._start, self._data, self._short = 0, b"", False

    def __call__(self, position: int, n: int) -> bytes:
        """Return the `n` bytes at `position`."""
        at = position - self._start
        if at >= 0 and at + n <= len(self._data):
            return self._data[at : at + n]
        if n >= self._block:
            return self._source.read(position, n)
        self._load(position, self._block)
        return self._data[:n]

    def _load(self, position: int, block: int) -> None:
        self._start, self._data = position, self._source.read(position, block)
        self._short = len(self._data) < block

    def _at_end(self) -> bool:
        """Whether the block reaches to the end of the source, as it is now."""
        return self._short and self._start + len(self._data) >= self._source.size()

    def peek(self, position: int, since: int) -> bytes:
        """Return the 8 bytes at `position`, which are to be judged before what lies from `since` on is read."""
        at = position - self._start
        if at >= 0 and (at + 8 <= len(self._data) or self._at_end()):
            return self._data[at : at + 8]
        if position + 8 - since > self._block // 2:
            return self._source.read(position, 8)
        self._load(since, self._block)
        return self._data[position - since : position - since + 8]

    def find(self, word: bytes, position: int) -> int | None:
        """Return where `word` stands next, with 8 bytes there at least, or None."""
        while True:
            at = position - self._start
            if 0 <= at <= len(self._data):
                found = self._data.find(word, at)
                if 0 <= found <= len(self._data) - 8:
                    return self._start + found
                if self._at_end():
                    return None
                position = self._start + (found if found >= 0 else max(at, len(self._data) - len(word) + 1))
            self._load(position, max(self._block, _LOOK))
            if len(self._data) < 8:
                return None

    def size(self) -> int:
        """Length of the source in bytes."""
        return self._source.size()


def _judged(head: bytes, at: int, first: bool) -> tuple[int, int]:
    """Kind and length of the part whose header stands at `at`, checked."""
    if len(head) < 8:
        raise Damage(at, "the file ends inside a record's header")
    magic, word = _HEAD.unpack(head)
    kind = word >> 29
    if magic != MAGIC:
        raise Damage(at, f"found {magic:#010x} where the magic word {MAGIC:#010x} of a record should be")
    if kind > LAST or (kind in (WHOLE, FIRST)) != first:
        expected = "a record starts" if first else "a record goes on"
        raise Damage(at, f"found a part of kind {kind} where {expected}")
    return kind, word & MAX_LENGTH


def _goes_on(fetch: Window, head: bytes, at: int, since: int) -> bool:
    """Whether the file ends at `at`, or a part starts there whose magic word is damaged."""
    word = head[:4]
    if not word:
        return True
    if len(head) < 8:
        return _WORD.startswith(word)  # the file is cut here: the damage is the next record's
    if sum(a == b for a, b in zip(word, _WORD)) < 2:
        return False  # too little of a magic word to call it a damaged one
    after = at + 8 + ((_HEAD.unpack(head)[1] & MAX_LENGTH) + 3 & ~3)
    beyond = fetch.peek(after, since)
    return beyond[:4] == _WORD or (not beyond and len(fetch.peek(after - 1, since)) == 1)


def _parts(fetch: Window, offset: int) -> tuple[list[tuple[int, int]], int] | None:
    """Positions and lengths of the payloads of the record at `offset`, and where it ends, by the headers alone.

    None where the file ends.
    """
    head = fetch(offset, 8)
    if not head:
        return None
    at = offset
    parts: list[tuple[int, int]] = []
    while True:
        try:
            kind, n = _judged(head, at, not parts)
        except Damage as damage:
            if not parts:
                raise
            # What stands in the place of a part may be the start of a sound record: this one is the damaged one.
            raise Damage(offset, f"at {at} {damage.what}", parts[-1][0] - 4) from None
        parts.append((at + 8, n))
        after = at + 8 + (n + 3 & ~3)
        head = fetch.peek(after, at)
        if head[:4] != _WORD:
            if not head and n and not fetch.peek(at + 7 + n, at):
                there = max(fetch.size() - at - 8, 0)
                what = f"{n} bytes should follow its header, but the file ends after {there}"
                raise Damage(offset, what, at + 4)
            if not _goes_on(fetch, head, after, at):
                raise Damage(offset, f"no record follows where this one should end, at {after}", at + 4)
        elif kind in (WHOLE, LAST) and head[7:] and head[7] >> 5 in (MIDDLE, LAST):
            # A wrong length that ends in the midst of a later record.
            raise Damage(offset, f"a record goes on where this one should end, at {after}", at + 4)
        at = after
        if kind in (WHOLE, LAST):
            return parts, at


def read_record(fetch: Window, offset: int) -> tuple[bytes | None, int]:
    """Read the record that starts at `offset`.

    Parameters
    ----------
    fetch : Window
        Gives the bytes of the file.
    offset : int
        Where the record starts, in bytes.

    Returns
    -------
    (bytes or None, int)
        The payload, and where the next record starts; None where the file ends.

    Raises
    ------
    Damage
        If there is no sound record at `offset`. A wrong length is noticed, too, as another record or the end
        of the file must follow, and before anything of that length is read.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``MXRecordIO.read``.

    Examples
    --------
    >>> from mxcore_io_rec.source import open_source
    >>> import fsspec
    >>> with fsspec.open("memory://doc/read", "wb") as f:
    ...     _ = f.write(frame(b"abc") + frame(b"de"))
    >>> read_record(Window(open_source("memory://doc/read")), 12)
    (b'de', 24)
    """
    found = _parts(fetch, offset)
    if found is None:
        return None, offset
    parts, end = found
    if len(parts) == 1:
        payload, length = fetch(*parts[0]), parts[0][1]
    else:
        payload, length = _WORD.join([fetch(at, n) for at, n in parts]), sum(n + 4 for _, n in parts) - 4
    if len(payload) < length:
        raise Damage(offset, "the file became shorter while it was read")
    return payload, end


def skip_record(fetch: Window, offset: int) -> int | None:
    """Return where the record after the one at `offset` starts, reading headers only.

    Parameters
    ----------
    fetch : Window
        As in `read_record`.
    offset : int
        Where the record starts.

    Returns
    -------
    int or None
        None where the file ends.

    Raises
    ------
    Damage
        As in `read_record`.
    """
    found = _parts(fetch, offset)
    return None if found is None else found[1]


def starts_record(head: bytes) -> bool:
    """Whether a record may start with these 8 bytes."""
    return len(head) == 8 and head[:4] == _WORD and head[7] >> 5 in (WHOLE, FIRST)


def whole_length(head: bytes) -> int | None:
    """Length of the payload of a record in one part, from its first bytes; None if it is none."""
    if len(head) < 8:
        return None
    magic, word = _HEAD.unpack_from(head)
    return word if magic == MAGIC and word >> 29 == WHOLE else None


def find_record(fetch: Window, position: int) -> int | None:
    """Find where the next record starts, at or after `position`.

    Parameters
    ----------
    fetch : Window
        As in `read_record`.
    position : int
        Where to start.

    Returns
    -------
    int or None
        None if the file holds no more.
    """
    while (start := fetch.find(_WORD, position)) is not None:
        position = start + 4
        if not starts_record(fetch.peek(start, start)):
            continue
        if start % 4 == 0:
            return start
        # Bytes lost from the file shift what follows off the multiples of 4. There payloads may hold the
        # magic word, so only a record that leads to another one counts.
        try:
            _parts(fetch, start)
            return start
        except Damage as damage:
            position = damage.behind
    return None
