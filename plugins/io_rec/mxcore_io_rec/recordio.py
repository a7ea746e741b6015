"""RecordIO files, sequential and by key: MXNet's format, in pure Python.

>>> record = MXRecordIO("memory://doc/a.rec", "w")
>>> record.write(b"one")
>>> record.close()
>>> MXRecordIO("memory://doc/a.rec", "r").read()
b'one'
"""

from __future__ import annotations

import os
import threading
import warnings
import weakref

import numpy as np

from mxcore.base import MXNetWarning, error

from .framing import Damage, Window, find_record, frame, read_record
from .header import IRHeader, pack, pack_img, unpack, unpack_img
from .source import Sink, open_source, read_all

__all__ = ["IRHeader", "MXIndexedRecordIO", "MXRecordIO", "pack", "pack_img", "read_index", "unpack",
           "unpack_img"]  # fmt: skip

POLICIES = ("raise", "warn", "skip")

_OPEN = weakref.WeakSet()


def _after_fork():
    for record in list(_OPEN):
        record._settle()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def check_policy(on_error):
    """Return `on_error` if it is a policy for damaged records, else raise."""
    if on_error not in POLICIES:
        raise error(ValueError, f"on_error must be one of {', '.join(POLICIES)}; got {on_error!r}")
    return on_error


def damaged(uri, which, damage):
    """Make the error of a damaged record, which names file, record and offset, and says what helps."""
    e = error(
        ValueError,
        f"{which} of {os.fspath(uri)!r} at offset {damage.offset} is damaged: {damage.what}"
        ". Restore or remake the file, or leave damaged records out with on_error='skip'",
    )
    e.offset = damage.offset
    return e


def report(policy, problem):
    """Raise, warn or keep silent about a problem, as the policy says."""
    if policy == "raise":
        raise problem
    if policy == "warn":
        warnings.warn(f"left out: {problem}", MXNetWarning, stacklevel=3)


class MXRecordIO:
    """A RecordIO file that is written or read from its beginning.

    Parameters
    ----------
    uri : str or os.PathLike
        A local path or an fsspec URL (``s3://``, ``hdfs://``, ``memory://`` …).
    flag : {'r', 'w'}
        Read, or write anew.
    on_error : {'raise', 'warn', 'skip'}
        What to do about damaged records while reading: raise an error, or leave them out, with a warning each
        or silently. `skipped` counts them; the next record is found by its magic word.

    Raises
    ------
    MXNetError
        (also OSError) if the file cannot be opened or written, (also ValueError) if a record is damaged.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``recordio.MXRecordIO``. Beyond it, threads may share an object, each
    record going to one of them; a forked child goes on reading where its parent stood (but may not write);
    and the object is an iterator and a context manager.

    Examples
    --------
    >>> with MXRecordIO("memory://doc/b.rec", "w") as record:
    ...     record.write(b"one")
    ...     record.write(b"two")
    >>> list(MXRecordIO("memory://doc/b.rec", "r"))
    [b'one', b'two']
    """

    def __init__(self, uri, flag, on_error="raise"):
        self.uri = uri
        self.flag = flag
        self.on_error = check_policy(on_error)
        self.is_open = False
        self.skipped = 0
        self.open()

    def open(self):
        """Open the file, at its beginning."""
        if self.flag not in ("r", "w"):
            raise error(ValueError, f"flag must be 'r' or 'w', not {self.flag!r}")
        self.writable = self.flag == "w"
        self._lock = threading.Lock()
        if self.writable:
            self._sink = Sink(self.uri)
        else:
            self._source = open_source(self.uri)
            self._rewind()
        self.pid = os.getpid()
        self.is_open = True
        _OPEN.add(self)

    def _rewind(self):
        self._window = Window(self._source)
        self._at = 0
        self._number = 0  # of the next record; None where that is not known

    def close(self):
        """Close the file. A written file is complete only then."""
        if not self.is_open:
            return
        self.is_open = False
        if not self.writable:
            self._source.close()
        elif self.pid == os.getpid():  # what a child has inherited in its buffer is its parent's to write
            self._sink.close()

    def reset(self):
        """Go back to the first record; a file being written is emptied."""
        self.close()
        self.open()

    def _ready(self, writable):
        """Check that the call fits the state of the object."""
        if not self.is_open:
            raise error(ValueError, f"{os.fspath(self.uri)!r} is closed; open() or reset() it first")
        if writable != self.writable:
            done, wanted = ("writing", "reading") if self.writable else ("reading", "writing")
            raise error(ValueError, f"{os.fspath(self.uri)!r} is open for {done}, not for {wanted}")
        if writable and self.pid != os.getpid():
            raise error(
                RuntimeError,
                f"{os.fspath(self.uri)!r} is being written by process {self.pid}; a forked child must "
                "write a file of its own",
            )

    def _settle(self):
        """Settle in after a fork: another thread of the parent may have held the lock or moved the window."""
        self._lock = threading.Lock()
        if self.is_open and not self.writable:
            self._window = Window(self._source)

    def write(self, buf):
        """Append a record.

        Parameters
        ----------
        buf : bytes-like
            What the record holds.

        Raises
        ------
        MXNetError
            (also TypeError) if `buf` is no bytes, (also OSError) if the disk does not take them.
        """
        self._ready(writable=True)
        framed = frame(buf)
        with self._lock:
            self._sink.write(framed)

    def read(self):
        """Return the next record.

        Returns
        -------
        bytes or None
            None at the end of the file.

        Raises
        ------
        MXNetError
            (also ValueError) if the record is damaged and `on_error` is ``'raise'``. The following call goes
            on behind the damage.
        """
        self._ready(writable=False)
        with self._lock:
            while True:
                try:
                    payload, after = read_record(self._window, self._at)
                except Damage as damage:
                    self._pass_over(damage)
                else:
                    self._at = after
                    if payload is not None and self._number is not None:
                        self._number += 1
                    return payload

    def _pass_over(self, damage):
        """Stand before the next record behind the damage, count it, and do what the policy says."""
        which = "a record" if self._number is None else f"record {self._number}"
        after = find_record(self._window, damage.offset + 4)
        self._at = self._source.size() if after is None else after
        if self._number is not None:
            self._number += 1
        self.skipped += 1
        report(self.on_error, damaged(self.uri, which, damage))

    def __iter__(self):
        return self

    def __next__(self):
        payload = self.read()
        if payload is None:
            raise StopIteration
        return payload

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def __del__(self):
        if getattr(self, "is_open", False):
            self.close()

    def __getstate__(self):
        """A copy in another process opens the file anew, at its beginning."""
        if self.writable:
            raise error(TypeError, f"{os.fspath(self.uri)!r} is open for writing and cannot be pickled")
        return {k: v for k, v in self.__dict__.items() if k not in ("_lock", "_source", "_window", "_after")}

    def __setstate__(self, state):
        self.__dict__.update(state)
        if self.is_open:
            self.is_open = False
            self.open()

    def __repr__(self):
        state = "closed" if not self.is_open else "writing" if self.writable else "reading"
        return f"<{type(self).__name__} {os.fspath(self.uri)!r}, {state}>"


def read_index(idx_path, key_type=int):
    """Read an index file.

    Parameters
    ----------
    idx_path : str or os.PathLike
        A local path or an fsspec URL of a file with lines ``key<TAB>offset``.
    key_type : callable
        Makes keys of their text.

    Returns
    -------
    list of (key, int)
        Keys and offsets, in the order of the file.

    Raises
    ------
    MXNetError
        (also ValueError) naming file and line, if a line is no such pair.

    Examples
    --------
    >>> sink = Sink("memory://doc/c.idx")
    >>> sink.write(b"7\\t0\\n"); sink.close()
    >>> read_index("memory://doc/c.idx")
    [(7, 0)]
    """
    entries = []
    for number, line in enumerate(read_all(idx_path).decode("utf-8", "replace").split("\n"), 1):
        if not line.strip():
            continue
        key, tab, offset = line.partition("\t")
        try:
            if not tab or int(offset) < 0:
                raise ValueError("expected a key, a tab and an offset")
            entries.append((key_type(key), int(offset)))
        except (TypeError, ValueError) as e:
            where = f"line {number} of the index {os.fspath(idx_path)!r} is {line[:80]!r}"
            raise error(ValueError, f"{where}: {e}; mxcore_io_rec.make_index remakes an index") from e
    return entries


class MXIndexedRecordIO(MXRecordIO):
    """A RecordIO file with an index, read by key.

    Parameters
    ----------
    idx_path : str or os.PathLike
        The index, a local path or an fsspec URL: lines of key, tab, offset.
    uri : str or os.PathLike
        The record file, a local path or an fsspec URL.
    flag : {'r', 'w'}
        Read, or write both files anew.
    key_type : callable
        Type of the keys.
    on_error : {'raise', 'warn', 'skip'}
        As in `MXRecordIO`; `read_idx` returns None for a damaged record that is left out.

    Raises
    ------
    MXNetError
        (also OSError, ValueError) if a file cannot be opened or the index is not one.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``recordio.MXIndexedRecordIO``. Beyond it, `read_idx` may be called from
    any number of threads and forked processes at once.

    Examples
    --------
    >>> with MXIndexedRecordIO("memory://doc/d.idx", "memory://doc/d.rec", "w") as record:
    ...     for i in range(3):
    ...         record.write_idx(i, b"record %d" % i)
    >>> MXIndexedRecordIO("memory://doc/d.idx", "memory://doc/d.rec", "r").read_idx(1)
    b'record 1'
    """

    def __init__(self, idx_path, uri, flag, key_type=int, on_error="raise"):
        self.idx_path = idx_path
        self.idx = {}
        self.keys = []
        self.key_type = key_type
        self.fidx = None
        super().__init__(uri, flag, on_error)

    def open(self):
        super().open()
        try:
            if self.writable:
                self.idx, self.keys = {}, []
                self.fidx = Sink(self.idx_path)
            else:
                entries = read_index(self.idx_path, self.key_type)
                self.idx, self.keys = dict(entries), [key for key, _ in entries]
                self._after = None
        except BaseException:
            super().close()
            raise

    def close(self):
        try:
            if self.is_open and self.fidx is not None and self.pid == os.getpid():
                self.fidx.close()
        finally:
            self.fidx = None
            super().close()

    def __getstate__(self):
        return super().__getstate__() | {"fidx": None}

    def _offset(self, key):
        try:
            return self.idx[self.key_type(key)]
        except (KeyError, TypeError, ValueError):
            such = f", such as {self.keys[0]!r}" if self.keys else ""
            raise error(
                KeyError,
                f"the index {os.fspath(self.idx_path)!r} has no key {key!r} among its {len(self.idx)}{such}",
            ) from None

    def seek(self, idx):
        """Stand before the record of a key; `read` then goes on from there.

        Parameters
        ----------
        idx : key_type
            The key.
        """
        self._ready(writable=False)
        with self._lock:
            self._at, self._number = self._offset(idx), None

    def tell(self):
        """Return the offset of the record that is written or read next, in bytes."""
        self._ready(self.writable)
        return self._sink.position if self.writable else self._at

    def read_idx(self, idx):
        """Return the record of a key.

        Parameters
        ----------
        idx : key_type
            The key.

        Returns
        -------
        bytes or None
            None only if the record is damaged and `on_error` says to leave it out.

        Raises
        ------
        MXNetError
            (also KeyError) for an unknown key, (also ValueError) if the record is damaged.
        """
        self._ready(writable=False)
        offset = self._offset(idx)
        try:
            payload, after = read_record(Window(self._source, self._reach(offset)), offset)
            if payload is None:
                raise Damage(
                    offset,
                    f"the file ends before it, at {self._source.size()}; index and file may not belong together",
                )
        except Damage as damage:
            with self._lock:
                self.skipped += 1
            report(self.on_error, damaged(self.uri, f"the record of key {idx!r}", damage))
            return None
        self._at, self._number = after, None
        return payload

    def _reach(self, offset):
        """How many bytes to read for the record at `offset`: up to the next one's magic word."""
        if self._after is None:
            self._after = np.unique(np.fromiter(self.idx.values(), np.int64, len(self.idx)))
        i = int(np.searchsorted(self._after, offset, "right"))
        end = int(self._after[i]) if i < len(self._after) else self._source.size()
        return min(max(end - offset, 4) + 4, 1 << 18)

    def write_idx(self, idx, buf):
        """Append a record under a key.

        Parameters
        ----------
        idx : key_type
            The key.
        buf : bytes-like
            What the record holds.
        """
        self._ready(writable=True)
        key, framed = self.key_type(idx), frame(buf)
        if isinstance(key, str) and any(c in key for c in "\t\r\n"):
            raise error(ValueError, f"the key {key!r} holds a tab or a line break, which an index cannot")
        with self._lock:
            offset = self._sink.position
            self._sink.write(framed)
            self.fidx.write(f"{key}\t{offset}\n".encode())
            self.idx[key] = offset
            self.keys.append(key)
