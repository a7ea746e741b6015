"""TensorBoard's event files: scalars, written without TensorFlow.

A file is a row of records: length, its checksum, the message, its checksum; a message is an ``Event`` of protocol
buffers, of which four fields are needed here.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from typing import Any

from .._interrupts import let_through
from .._io_files import checked, explained, make_folder, open_write
from .._json import encode
from .._locks import fork_safe_lock
from ..base import error
from ..urls import child, is_url

__all__ = ["EventWriter", "checksum"]

_serial = iter(range(1 << 62))


def _table() -> list[int]:
    rows = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        rows.append(n)
    return rows


_CRC = _table()


def checksum(data: bytes) -> int:
    """The masked CRC-32C of the record format.

    >>> hex(checksum(b"123456789"))
    '0xc78ab0e5'
    """
    crc = 0xFFFFFFFF
    for b in data:
        crc = crc >> 8 ^ _CRC[(crc ^ b) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _varint(n: int) -> bytes:
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def _field(number: int, data: bytes) -> bytes:
    """A field that holds bytes, a text or a message."""
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _event(step: int | None = None, version: str | None = None, summary: bytes | None = None) -> bytes:
    out = b"\x09" + struct.pack("<d", time.time())
    if step is not None:
        out += b"\x10" + _varint(step)
    if version is not None:
        out += _field(3, version.encode())
    if summary is not None:
        out += _field(5, summary)
    return out


class EventWriter:
    """Write scalars for TensorBoard.

    Parameters
    ----------
    logdir : str
        Folder (made if need be) or URL that ``tensorboard --logdir`` is given.

    Raises
    ------
    MXNetError
        (also OSError) if the folder or the file cannot be made.

    Examples
    --------
    >>> with EventWriter("memory://doc/runs") as writer:
    ...     writer.add_scalar("loss", 0.5, 1)
    """

    def __init__(self, logdir: str) -> None:
        self.logdir = checked(logdir, "the folder for TensorBoard")
        make_folder(self.logdir)
        name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}.{next(_serial)}"
        self.path = child(self.logdir, name)
        self._lock = fork_safe_lock()
        self._file = open_write(self.path, buffered=False)  # a buffer would keep the rest of what failed
        self._write(_event(version="brain.Event:2"))

    def _write(self, event: bytes) -> None:
        length = struct.pack("<Q", len(event))
        record = length + struct.pack("<I", checksum(length)) + event + struct.pack("<I", checksum(event))
        with self._lock, explained(self.path, "write", foreign=is_url(self.path)):
            if self._file.closed:
                raise error(ValueError, f"{self.path!r} is closed; make another EventWriter")
            begin = self._file.tell()
            try:
                rest = memoryview(record)
                while rest:
                    rest = rest[self._file.write(rest) or len(rest) :]
                self._file.flush()
            except BaseException as problem:
                try:
                    self._take_back(begin)
                except Exception as e:
                    let_through(e)
                    if not isinstance(problem, Exception):
                        raise problem from None  # Ctrl-C
                    raise error(
                        OSError,
                        f"cannot write {self.path!r}: {problem}; nor can a part of the record that may be there be "
                        f"taken back ({e}), so the file may be readable up to byte {begin} only; make another "
                        "EventWriter",
                    ) from problem
                raise

    def _take_back(self, begin: int) -> None:
        """Cut the file where a record began that could not be written whole: none behind it could be read."""
        if self._file.tell() != begin:
            self._file.seek(begin)
            self._file.truncate()

    def add_scalar(self, tag: str, value: Any, step: int = 0) -> None:
        """Write a number under a name.

        Raises
        ------
        MXNetError
            (also TypeError) if it or the step is no number, (also OSError) if the disk does not take it, (also
            ValueError) if the file is closed.
        """
        try:
            step = int(step)
        except (TypeError, ValueError, OverflowError):
            raise error(TypeError, f"add_scalar: the step of {tag!r} must be a whole number, got {step!r}") from None
        try:
            number = struct.pack("<f", float(value))
        except (TypeError, ValueError):
            raise error(TypeError, f"add_scalar: {tag!r} must be a number, got {value!r}") from None
        except OverflowError:  # beyond single precision
            number = struct.pack("<f", float("inf") if value > 0 else float("-inf"))
        self._write(
            _event(step=step, summary=_field(1, _field(1, encode(str(tag), "the tag of a summary")) + b"\x15" + number))
        )

    def close(self) -> None:
        """End the file."""
        # Who writes is done by then: the number of a file that is closed may be another file's at once.
        with self._lock, explained(self.path, "write", foreign=is_url(self.path)):
            self._file.close()

    def __enter__(self) -> EventWriter:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
