"""Tar archives of strangers, read by `tarfile` as far as their headers are sound and small."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from typing import IO, Any

from ..base import error
from . import Searched

__all__ = ["Tar"]

#: What a file of an archive, or of a stream, tells in headers at most: names, attributes, and where it has holes.
_LONGEST_HEADER = 1 << 20
#: Of an extended (pax) header of the whole archive, which `tarfile` copies for every file.
_LONGEST_GLOBAL = 1 << 12
#: How much memory the headers of a file take, as a multiple of their bytes; of a pax header; and of a hole.
_PER_BYTE, _PER_PAX_BYTE, _PER_HOLE = 3, 32, 64

_PAX = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)
_NAMES = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
_RECORD, _DIGITS = re.compile(rb"(\d{1,7}) ([^=\n]{1,1024})="), re.compile(rb"\d+")
#: The longest number in a pax header, as long as names are: `tarfile` seeks patterns in it that begin with one, from
#: each of its digits on.
_LONGEST_NUMBER = 255


class _Headers(Searched):
    """The file of an archive as `tarfile` reads it."""

    #: What one file tells in headers so far, and whether what is read next is a pax header.
    told, pax = 0, False

    def read(self, n: int = -1) -> bytes:
        at = self.tell()
        self.told += n
        if not 0 <= self.told <= _LONGEST_HEADER:
            raise self.wrong(f"headers of more than {_LONGEST_HEADER} bytes", at)
        self.charge(n * (_PER_PAX_BYTE if self.pax else _PER_BYTE))
        found = super().read(n)
        if self.pax and not _sound(found):
            raise self.wrong("an extended (pax) header whose records do not have the lengths that they tell", at)
        if self.pax and max(map(len, _DIGITS.findall(found)), default=0) > _LONGEST_NUMBER:
            raise self.wrong(f"an extended (pax) header with more than {_LONGEST_NUMBER} digits in a row", at)
        self.pax = False
        return found

    def wrong(self, what: str, at: int) -> Exception:
        return error(ValueError, f"{self.name} is damaged: the tar archive has {what} at byte {at}")


def _sound(data: bytes) -> bool:
    """Whether a pax header is a row of records, which takes `tarfile` time and memory beyond measure if it is none."""
    at = 0
    while found := _RECORD.match(data, at):
        at += int(found[1])
        if at < found.end() + 1 or data[at - 1 : at] != b"\n":
            return False
    return not data[at:].strip(b"\0")


class _Entry(tarfile.TarInfo):
    """A header that is looked at before what follows it is read."""

    def _proc_member(self, tar: Any) -> Any:
        if self.size < 0:
            raise tar.fileobj.wrong("a file of a size below 0", self.offset)
        if self.type == tarfile.XGLTYPE and self.size > _LONGEST_GLOBAL:
            raise tar.fileobj.wrong(f"an extended (pax) header of all files of {self.size} bytes", self.offset)
        tar.fileobj.pax = self.type in _PAX
        return super()._proc_member(tar)  # type: ignore[misc]  # meant to be overridden, says the module


class Tar(tarfile.TarFile):
    """A tar archive without its compression, whose files are found by ``iter``, in turn.

    Parameters
    ----------
    file : file object
        Seekable.
    name : str
        For messages.
    packed : bool
        Whether the archive unfolds as it is read: it is searched up to ``MXCORE_MAX_UNPACKED_BYTES``.

    Raises
    ------
    MXNetError
        (also ValueError), here or while the files are found, if it is beyond that, or if headers are damaged or larger
        than those of files are.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO(tarfile.TarInfo("a.txt").tobuf() + bytes(1024))
    >>> [found.name for found in Tar(file, "a.tar", packed=False)]
    ['a.txt']
    """

    tarinfo = _Entry

    def __init__(self, file: IO[bytes], name: str, packed: bool) -> None:
        self._source, self._headers = file, _Headers(file, name, packed)
        super().__init__(fileobj=self._headers)  # type: ignore[arg-type]  # as much of a file as it needs

    def next(self) -> tarfile.TarInfo | None:
        """The next file; none is kept."""
        if getattr(self, "firstmember", None) is not None:  # of `__init__`
            return super().next()
        headers, before = self._headers, self.offset
        self.fileobj, headers.told = headers, 0  # type: ignore[assignment]
        try:
            found = super().next()
        finally:
            self.fileobj = self._source  # what is taken out has other limits  # type: ignore[assignment]
        if found is None:
            return None
        if found.size < 0 or self.offset <= before:
            raise headers.wrong("a file of a size below 0", found.offset)
        if len(self.pax_headers) > _LONGEST_GLOBAL >> 6:
            raise headers.wrong("too many extended (pax) headers of all files", found.offset)
        holes: Any = found.sparse or ()
        headers.charge(_PER_HOLE * len(holes))
        found.pax_headers = {}
        self.members: list[tarfile.TarInfo] = []
        return found

    def __iter__(self) -> Iterator[tarfile.TarInfo]:
        return iter(self.next, None)
