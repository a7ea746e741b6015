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

from mxcore.base import error

__all__ = [
    "MAGIC",
    "MAX_LENGTH",
    "Damage",
    "Window",
    "find_record",
    "frame",
    "read_record",
    "skip_record",
    "whole_length",
]

MAGIC = 0xCED7230A
MAX_LENGTH = (1 << 29) - 1
WHOLE, FIRST, MIDDLE, LAST = range(4)

_WORD = struct.pack("<I", MAGIC)
_HEAD = struct.Struct("<II")
_PADDING = (b"", b"\0\0\0", b"\0\0", b"\0")


class Damage(Exception):
    """A place in a file where a record should be and is not.

    Parameters
    ----------
    offset : int
        Where the record starts, in bytes.
    what : str
        What is wrong with it.
    """

    def __init__(self, offset, what):
        super().__init__(offset, what)
        self.offset, self.what = offset, what


def _cuts(payload):
    """Positions of the magic word at multiples of 4."""
    found = payload.find(_WORD)
    while found >= 0:
        if found % 4 == 0:
            yield found
            found = payload.find(_WORD, found + 4)
        else:
            found = payload.find(_WORD, found + 1)


def frame(payload):
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
    pieces, start = [], 0
    for cut in _cuts(payload):
        pieces += _head(MIDDLE if start else FIRST, cut - start), payload[start:cut]
        start = cut + 4
    pieces += _head(LAST if start else WHOLE, n - start), payload[start:], _PADDING[n % 4]
    return b"".join(pieces)


def _head(kind, length):
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
    belongs to one thread at a time.
    """

    __slots__ = ("_block", "_data", "_source", "_start")

    def __init__(self, source, block=None):
        self._source = source
        self._block = block or source.block
        self._start, self._data = 0, b""

    def __call__(self, position, n):
        """Return the `n` bytes at `position`."""
        at = position - self._start
        if at >= 0 and at + n <= len(self._data):
            return self._data[at : at + n]
        if n >= self._block:
            return self._source.read(position, n)
        self._start, self._data = position, self._source.read(position, self._block)
        return self._data[:n]


def _part(fetch, at, first):
    """Kind and length of the part that starts at `at`, checked; None where the file ends."""
    head = fetch(at, 8)
    if len(head) < 8:
        if first and not head:
            return None
        raise Damage(at, "the file ends inside a record's header")
    magic, word = _HEAD.unpack(head)
    kind = word >> 29
    if magic != MAGIC:
        raise Damage(at, f"found {magic:#010x} where the magic word {MAGIC:#010x} of a record should be")
    if kind > LAST or (kind in (WHOLE, FIRST)) != first:
        expected = "a record starts" if first else "a record goes on"
        raise Damage(at, f"found a part of kind {kind} where {expected}")
    return kind, word & MAX_LENGTH


def _goes_on(fetch, at):
    """Whether the file ends at `at` or a part starts there, if need be one whose magic word is damaged."""
    word = fetch(at, 4)
    if word == _WORD or not word:
        return True
    head = fetch(at, 8)
    if len(head) < 8:
        return _WORD.startswith(word)  # the file is cut here: the damage is the next record's
    if sum(a == b for a, b in zip(word, _WORD)) < 2:
        return False  # too little of a magic word to call it a damaged one
    after = at + 8 + ((_HEAD.unpack(head)[1] & MAX_LENGTH) + 3 & ~3)
    beyond = fetch(after - 1, 5)
    return beyond[1:] == _WORD or len(beyond) == 1


def read_record(fetch, offset):
    """Read the record that starts at `offset`.

    Parameters
    ----------
    fetch : callable
        ``fetch(position, n)`` returns the bytes there, as `Window` does.
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
        of the file must follow.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``MXRecordIO.read``.

    Examples
    --------
    >>> data = frame(b"abc") + frame(b"de")
    >>> read_record(lambda position, n: data[position:position + n], 12)
    (b'de', 24)
    """
    at, parts = offset, []
    while True:
        try:
            part = _part(fetch, at, not parts)
        except Damage as damage:
            if not parts:
                raise
            # What stands in the place of a part may be the start of a sound record: this one is the damaged one.
            raise Damage(offset, f"at {at} {damage.what}") from None
        if part is None:
            return None, offset
        kind, n = part
        data = fetch(at + 8, n)
        if len(data) < n:
            raise _cut_short(offset, n, len(data))
        at += 8 + (n + 3 & ~3)
        parts.append(data)
        if fetch(at, 4) != _WORD and not _goes_on(fetch, at):
            raise Damage(offset, f"no record follows where this one should end, at {at}")
        if kind == WHOLE:
            return data, at
        if kind == LAST:
            return _WORD.join(parts), at


def _cut_short(offset, n, there):
    return Damage(offset, f"{n} bytes should follow its header, but the file ends after {there}")


def skip_record(fetch, offset, size):
    """Return where the record after the one at `offset` starts, reading headers only.

    Parameters
    ----------
    fetch : callable
        As in `read_record`.
    offset, size : int
        Where the record starts, and the length of the file.

    Returns
    -------
    int or None
        None where the file ends.

    Raises
    ------
    Damage
        If there is no record at `offset`, or it reaches beyond the end of the file.
    """
    at, first = offset, True
    while True:
        part = _part(fetch, at, first)
        if part is None:
            return None
        kind, n = part
        if at + 8 + n > size:
            raise _cut_short(offset, n, size - at - 8)
        at += 8 + (n + 3 & ~3)
        if kind in (WHOLE, LAST):
            return at
        first = False


def whole_length(head):
    """Length of the payload of a record in one part, from its first bytes; None if it is none."""
    if len(head) < 8:
        return None
    magic, word = _HEAD.unpack_from(head)
    return word if magic == MAGIC and word >> 29 == WHOLE else None


def find_record(fetch, position, block=1 << 20):
    """Find where the next record starts, at or after `position`.

    Parameters
    ----------
    fetch : callable
        As in `read_record`.
    position : int
        Where to start.
    block : int
        Bytes to look through at a time.

    Returns
    -------
    int or None
        None if the file holds no more.
    """
    while True:
        data = fetch(position, block)
        at = data.find(_WORD)
        while 0 <= at <= len(data) - 8:
            start = position + at
            # Bytes lost from the file shift what follows off the multiples of 4. There payloads may hold the
            # magic word, so only a record that leads to another one counts.
            if data[at + 7] >> 5 in (WHOLE, FIRST) and (start % 4 == 0 or _leads_on(fetch, start)):
                return start
            at = data.find(_WORD, at + 1)
        if len(data) < block:
            return None
        position += len(data) - 7


def _leads_on(fetch, start):
    try:
        return read_record(fetch, start)[0] is not None
    except Damage:
        return False
