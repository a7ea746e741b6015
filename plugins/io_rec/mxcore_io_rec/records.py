"""The records of one or more files by number: what the image iterators read from."""

from __future__ import annotations

import bisect
import contextlib
import io
import os
from array import array
from typing import Any

import numpy as np

from mxcore.base import error
from mxcore.drafts import atomic_writer, settle
from mxcore.plugin import fork_safe_lock, suppress
from mxcore.urls import with_ending

from .codec import Array
from .framing import Damage, Window, find_record, read_record, skip_record, whole_length
from .recordio import check_index, check_policy, damaged, parse_index, report
from .source import Uri, list_files, open_pair, open_source, resolve

__all__ = ["RecordFile", "Records", "make_index"]


def _sorted_index(text: bytes, idx_path: Uri) -> tuple[Array, Array]:
    """Keys and offsets of the text of an index as arrays, in the order of the file that it is for."""
    if not text.strip():
        raise error(ValueError, f"the index {os.fspath(idx_path)!r} is empty")
    try:  # numbers as keys: many times faster, and millions of them fit in memory
        if not text.isascii():
            raise ValueError("a key is no number")
        table = np.loadtxt(io.BytesIO(text), np.int64, delimiter="\t", ndmin=2, comments=None)
        keys, offsets = table.T
        if offsets.min() < 0:
            raise ValueError("an offset is negative")
    except (ValueError, IndexError):
        entries = parse_index(text, idx_path, str)  # which also says what is wrong, and in which line
        keys = np.array([key for key, _ in entries], object)
        offsets = np.array([offset for _, offset in entries], np.int64)
    order = np.argsort(offsets, kind="stable")
    return keys[order], offsets[order]


class RecordFile:
    """The records of one file by number, found through an index or by reading their headers.

    Parameters
    ----------
    uri : str
        The record file, a local path or an fsspec URL.
    idx_path : str, optional
        Its index. Without one, an index that lies beside the file is used if it reaches from the first
        record to the end of the last; else the headers are read, as far as they are needed.
    on_error : {'raise', 'warn', 'skip'}
        What to do about damage met while reading headers.
    neighbour : bool
        Whether to look for an index beside the file.

    Examples
    --------
    >>> from mxcore_io_rec.recordio import MXRecordIO
    >>> with MXRecordIO("memory://doc/r.rec", "w") as record:
    ...     for i in range(3):
    ...         record.write(b"record %d" % i)
    >>> records = RecordFile("memory://doc/r.rec")
    >>> records.known(10), records.read(1)
    (3, b'record 1')
    """

    def __init__(self, uri: str, idx_path: Uri | None = None, on_error: str = "raise", neighbour: bool = True) -> None:
        self.uri = uri
        self.on_error = check_policy(on_error)
        self.skipped = 0
        self._lock = fork_safe_lock()
        self._keys: Array | None = None
        self._offsets: Any = array("q")  # or, of an index, a NumPy array
        self._next: int | None = 0  # offset of the next record to find; None when all are found
        text = None
        beside = with_ending(uri, ".idx")
        if idx_path:
            self._source, text = open_pair(uri, idx_path)
        elif neighbour:
            with suppress(OSError):
                self._source, text = open_pair(uri, beside)
        if text is None:
            self._source = open_source(uri)
        self._size = self._source.size()
        self._begin()
        if text is not None and idx_path:
            self._take(text, idx_path)
        elif text is not None:
            self._take_neighbour(text, beside)

    def _take(self, text: bytes, idx_path: Uri) -> None:
        """Use the index that was given."""
        self._keys, self._offsets = _sorted_index(text, idx_path)
        check_index(self._source, np.unique(self._offsets), self.uri, idx_path, self.on_error)
        self._next = None

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._scan = Window(self._source, 4096 if self._source.block <= 1 << 20 else None)

    def _take_neighbour(self, text: bytes, idx_path: Uri) -> None:
        """Use the index beside the file, if it belongs to the file as it is now."""
        try:
            keys, offsets = _sorted_index(text, idx_path)
            if offsets[0] == 0 and skip_record(self._scan, int(offsets[-1])) == self._size:
                self._keys, self._offsets, self._next = keys, offsets, None
        except (ValueError, Damage):
            pass  # it is another file's

    def known(self, upto: int) -> int:
        """Return how many records are known, having looked for `upto` of them."""
        if self._next is not None and len(self._offsets) < upto:
            with self._lock:
                if self._pid != os.getpid():  # another thread of the parent may have been moving the window
                    self._begin()
                while self._next is not None and len(self._offsets) < upto:
                    self._find(self._next)
        return len(self._offsets)

    def _find(self, at: int) -> None:
        try:
            after = skip_record(self._scan, at)
        except Damage as damage:
            self._next = find_record(self._scan, damage.behind)
            self.skipped += 1
            report(self.on_error, self.uri, f"record {len(self._offsets)}", damage)
        else:
            if after is not None and (not self._offsets or self._offsets[-1] != at):  # a fork comes between any two
                self._offsets.append(at)
            self._next = after

    def where(self, i: int) -> str:
        """Describe record `i` for an error: its number and key, file and offset."""
        return f"{self._which(i)} of {self.uri!r} at offset {self._offsets[i]}"

    def _which(self, i: int) -> str:
        return f"record {i}" if self._keys is None else f"record {i} (key {self._keys[i]})"

    def offset(self, i: int) -> int:
        """Return where record `i` starts, in bytes."""
        return int(self._offsets[i])

    def room(self, i: int) -> int:
        """Return how many bytes lie between the start of record `i` and that of the next known one."""
        end = self.offset(i + 1) if i + 1 < len(self._offsets) else self._next or self._size
        return max(end - self.offset(i), 0)

    def read(self, i: int, most: int | None = None) -> bytes:
        """Return what record `i` holds. Any thread may call it.

        Parameters
        ----------
        i : int
            Number of the record, less than what `known` returned.
        most : int, optional
            Only so many bytes from its beginning; the rest is then not read, as a rule.

        Returns
        -------
        bytes

        Raises
        ------
        MXNetError
            (also ValueError) if it is damaged.
        """
        offset = int(self._offsets[i])
        if most is not None:
            length = whole_length(head := self._source.read(offset, 8 + most))
            if length is not None and len(head) >= 8 + min(most, length):
                return head[8 : 8 + min(most, length)]
        try:
            payload, _ = read_record(Window(self._source, min(self.room(i) + 4, 1 << 18)), offset)
            if payload is None:
                raise Damage(offset, f"the file ends before it, at {self._size}; is the index another file's?")
        except Damage as damage:
            raise damaged(self.uri, self._which(i), damage) from None
        return payload if most is None else payload[:most]

    def close(self) -> None:
        """Close the file."""
        self._source.close()


class Records:
    """The records of several files, one behind the other.

    Parameters
    ----------
    uris : str
        A file, a folder of ``.rec`` files, or several with ``;`` between; local paths or fsspec URLs.
    idx_path : str, optional
        Index of the one file.
    on_error : {'raise', 'warn', 'skip'}
        As in `RecordFile`.

    Raises
    ------
    MXNetError
        (also OSError) if a file cannot be opened, (also ValueError) if an index is given for several.

    Examples
    --------
    >>> from mxcore_io_rec.recordio import MXRecordIO
    >>> for name in "ab":
    ...     with MXRecordIO(f"memory://doc/{name}.rec", "w") as record:
    ...         record.write(name.encode())
    >>> Records("memory://doc/a.rec;memory://doc/b.rec").read(1)
    b'b'
    """

    def __init__(self, uris: str, idx_path: Uri | None = None, on_error: str = "raise") -> None:
        names = list_files(uris, ".rec")
        if idx_path and len(names) > 1:
            raise error(
                ValueError,
                f"one index {idx_path!r} is given for the {len(names)} files of {uris!r}; "
                "leave it out: an index beside its file is found by itself",
            )
        self.files = [RecordFile(name, idx_path, on_error) for name in names]
        self._starts = [0]  # number of the first record of each file, as far as they are known

    def known(self, upto: int) -> int:
        """Return how many records are known, having looked for `upto` of them."""
        while True:
            i = len(self._starts) - 1
            have = self.files[i].known(upto - self._starts[i])
            if self._starts[i] + have >= upto or i + 1 == len(self.files):
                return self._starts[i] + have
            self._starts.append(self._starts[i] + have)

    def __len__(self) -> int:
        return self.known(1 << 62)

    def _place(self, i: int) -> tuple[RecordFile, int]:
        if i >= self._starts[-1]:
            self.known(i + 1)
        f = bisect.bisect_right(self._starts, i) - 1
        return self.files[f], i - self._starts[f]

    def read(self, i: int, most: int | None = None) -> bytes:
        """Return what record `i` holds; see `RecordFile.read`."""
        file, j = self._place(i)
        return file.read(j, most)

    def where(self, i: int) -> str:
        """Describe record `i` for an error."""
        file, j = self._place(i)
        return file.where(j)

    def room(self, i: int) -> int:
        """Return how many bytes record `i` takes at most."""
        file, j = self._place(i)
        return file.room(j)

    @property
    def skipped(self) -> int:
        """How many damaged places were passed over while looking for records."""
        return sum(file.skipped for file in self.files)

    def close(self) -> None:
        """Close the files."""
        for file in self.files:
            file.close()


def make_index(uri: Uri, idx_path: Uri, on_error: str = "raise") -> int:
    """Make the index of a record file.

    Parameters
    ----------
    uri : str or os.PathLike
        The record file, a local path or an fsspec URL.
    idx_path : str or os.PathLike
        The index to write. Its keys are the numbers of the records, from 0.
    on_error : {'raise', 'warn', 'skip'}
        What to do about damaged records.

    Returns
    -------
    int
        How many records there are.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``tools/rec2idx.py``.

    Examples
    --------
    >>> from mxcore_io_rec.recordio import MXRecordIO, read_index
    >>> with MXRecordIO("memory://doc/i.rec", "w") as record:
    ...     record.write(b"0123")
    ...     record.write(b"4567")
    >>> make_index("memory://doc/i.rec", "memory://doc/i.idx")
    2
    >>> read_index("memory://doc/i.idx")
    [(0, 0), (1, 12)]
    """
    name, path = resolve(uri)[0], resolve(idx_path)[0]
    with contextlib.closing(RecordFile(name, on_error=on_error, neighbour=False)) as records:
        count = records.known(1 << 62)
        settle(path, name)  # what is left of a killed writer is not to outlive the new index
        with atomic_writer(path) as index:
            index.write(b"".join(b"%d\t%d\n" % (i, records.offset(i)) for i in range(count)))
    return count
