"""RecordIO files, sequential and by key: MXNet's format, in pure Python.

>>> record = MXRecordIO("memory://doc/a.rec", "w")
>>> record.write(b"one")
>>> record.close()
>>> MXRecordIO("memory://doc/a.rec", "r").read()
b'one'
"""

from __future__ import annotations

import itertools
import os
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from multiprocessing.util import Finalize
from typing import Any, TypeVar

import numpy as np

from mxcore.base import MXNetWarning, asserted, error
from mxcore.drafts import Draft, commit, settle
from mxcore.plugin import fork_safe_lock

from .codec import Array, Buffer
from .framing import Damage, Window, find_record, frame, read_record, starts_record
from .header import IRHeader, pack, pack_img, unpack, unpack_img
from .source import Source, Uri, open_pair, open_source, read_all, resolve

__all__ = ["IRHeader", "MXIndexedRecordIO", "MXRecordIO", "pack", "pack_img", "read_index", "unpack", "unpack_img"]

POLICIES = ("raise", "warn", "skip")
_LOOKS = 5  # offsets that are looked at to tell another file's index
_PATIENCE = 10.0  # seconds that the end of the process waits for a thread that is in the middle of a record

Opened = TypeVar("Opened", bound="MXRecordIO")

_OPEN: weakref.WeakSet[MXRecordIO] = weakref.WeakSet()
_UNPICKLED = ("_drafts", "_sink", "_source", "_unclosed", "_window", "_written")


def _after_fork() -> None:
    for record in list(_OPEN):
        record._settle()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def check_policy(on_error: str) -> str:
    """Return `on_error` if it is a policy for damaged records, else raise."""
    if on_error not in POLICIES:
        raise error(ValueError, f"on_error must be one of {', '.join(POLICIES)}; got {on_error!r}")
    return on_error


def damaged(uri: Uri, which: str, damage: Damage) -> Exception:
    """Make the error of a damaged record, which names file, record and offset, and says what helps."""
    e = error(
        ValueError,
        f"{which} of {os.fspath(uri)!r} at offset {damage.offset} is damaged: {damage.what}"
        ". Restore or remake the file, or leave damaged records out with on_error='skip'",
    )
    e.offset = damage.offset  # type: ignore[attr-defined]  # for who catches it
    return e


def report(policy: str, uri: Uri, which: str, damage: Damage) -> None:
    """Raise, warn or keep silent about a damaged record, as the policy says."""
    if policy == "raise":
        raise damaged(uri, which, damage)
    if policy == "warn":
        warnings.warn(f"left out: {damaged(uri, which, damage)}", MXNetWarning, stacklevel=3)


def _discard(*drafts: Draft) -> None:
    for draft in drafts:
        draft.discard()


class _Unclosed:
    """What is written and not closed yet: drafts that belong together, in the order in which writers began."""

    def __init__(self, drafts: list[Draft], lock: Any) -> None:
        self.drafts, self.lock = drafts, lock
        self._serial = next(_serials)
        #: Whether the writer has got as far as its first record, and another one that began later has put its files
        #: into the places of these.
        self.begun = self.overtaken = False
        _unclosed.add(self)

    def overtake(self) -> None:
        """Let older ones of these names not come behind it: nobody has closed them, and nobody may ever."""
        names = self._names()
        for other in list(_unclosed):
            if other._serial < self._serial and not names.isdisjoint(other._names()):
                other.overtaken = True

    def _names(self) -> set[str]:
        return {os.path.abspath(draft.name) for draft in self.drafts}


_serials = itertools.count()
_unclosed: weakref.WeakSet[_Unclosed] = weakref.WeakSet()


def _complete(record: weakref.ref[MXRecordIO], written: _Unclosed) -> None:
    """Complete what was written and never closed, unless the disk did not take it, which was told then.

    Nor is that completed which has not begun, for an interrupt came while it was opened, or which is older than what
    has been put into its place since: what holds it, such as a traceback, may be collected at any time.
    """
    drafts, lock = written.drafts, written.lock
    if (open_still := record()) is not None:  # the process ends
        open_still.is_open = False  # first: a daemon thread that writes on and on would hardly let go of the lock
    if not lock.acquire(timeout=_PATIENCE):
        said = f"a thread writes to {drafts[0].name!r} and comes to no end, so it is left as if the process was killed"
        warnings.warn(said, MXNetWarning, stacklevel=2)
        return
    try:
        if not written.begun or written.overtaken or any(draft.failed for draft in drafts):
            _discard(*drafts)
        else:
            written.overtake()
            commit(*drafts)
    finally:
        lock.release()


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

    What is written is a draft beside the file, and takes its place, whole, by `close`, or when the object is
    collected or the process ends without it. Until then readers see the old file, and so they do for good if
    the process is killed, the disk does not take everything, or a ``with`` block ends by an exception. Who closes waits
    for threads that are in the middle of a record; those that come later get an error.

    A reader, and a forked child of it, reads the file that it opened to its end, whatever takes its name meanwhile; a
    pickle of it (as spawned workers get) opens the same file again, or none. A file that is written over while it is
    read, other than by what is appended, and another file in the place of a pickle's, are an error (also an OSError),
    under every `on_error`. Of an object in a store, which is read by its name, nothing is left once it is replaced; a
    store that takes more than two milliseconds to answer is asked once a second whether it was.

    Examples
    --------
    >>> with MXRecordIO("memory://doc/b.rec", "w") as record:
    ...     record.write(b"one")
    ...     record.write(b"two")
    >>> list(MXRecordIO("memory://doc/b.rec", "r"))
    [b'one', b'two']
    """

    def __init__(self, uri: Uri, flag: str, on_error: str = "raise") -> None:
        self.uri = uri
        self.flag = flag
        self.on_error = check_policy(on_error)
        self.is_open = self.writable = False
        self.skipped = 0
        self._lock = fork_safe_lock()  # which a signal handler may take again, to close what its thread writes
        self.open()

    def open(self) -> None:
        """Open the file, at its beginning; what is still being written to it is completed before."""
        if self.flag not in ("r", "w"):
            raise error(ValueError, f"flag must be 'r' or 'w', not {self.flag!r}")
        with self._lock:
            if self.is_open and self.writable:
                self.close()
            self.is_open, self.writable = False, self.flag == "w"
            if self.writable:
                self._write_anew()
            else:
                self._find_source()  # and not close the other one, which a thread may be reading by a key
            self._begin()

    def _begin(self) -> None:
        """Stand before the first record, with the file open."""
        if not self.writable:
            self._rewind()
        self.pid = os.getpid()
        self.is_open = True
        _OPEN.add(self)
        if self.writable:
            self._written.begun = True

    def _write_anew(self) -> None:
        self._sink = Draft(resolve(self.uri)[0])
        self._drafts = [self._sink]
        # Not __del__: this also runs when the process ends, as one of multiprocessing's too, and never in a child
        # that inherited the object.
        self._written = _Unclosed(self._drafts, self._lock)
        self._unclosed = Finalize(self, _complete, (weakref.ref(self), self._written), exitpriority=0)

    def _find_source(self) -> None:
        self._source = open_source(self.uri)

    def _rewind(self) -> None:
        self._window = Window(self._source)
        self._at = 0
        self._number: int | None = 0  # of the next record; None where that is not known

    def close(self) -> None:
        """Close the file. What was written takes its place only now, whole."""
        self._end(commit)

    def discard(self) -> None:
        """Close the file and forget what was written: the old file stays as it was."""
        self._end(_discard)
        self.close()

    def _end(self, end: Callable[..., None]) -> None:
        """Take no more, and end what is written, once whoever is in the middle of a record has written it."""
        was_open, self.is_open = self.is_open, False  # first, as in _complete
        with self._lock:
            if not was_open:
                return
            if not self.writable:
                self._source.close()
            elif self.pid == os.getpid():  # what a child has inherited is its parent's to write
                self._unclosed.cancel()
                if end is commit:
                    self._written.overtake()
                end(*self._drafts)

    def reset(self) -> None:
        """Go back to the first record; a file that is written is completed, and then written anew."""
        self.open()

    def rewind(self) -> None:
        """Go back to the first record of the file that is open, where `reset` opens what has its name by now."""
        with self._lock:
            self._ready(writable=False)
            self._rewind()

    def _ready(self, writable: bool) -> None:
        """Check that the call fits the state of the object; who holds the lock finds it so until he gives it back."""
        if not self.is_open:
            raise error(ValueError, f"{os.fspath(self.uri)!r} is closed; open() or reset() it first")
        if writable != self.writable:
            done, wanted = ("writing", "reading") if self.writable else ("reading", "writing")
            raise asserted(ValueError, f"{os.fspath(self.uri)!r} is open for {done}, not for {wanted}")
        if writable and self.pid != os.getpid():
            raise error(
                RuntimeError,
                f"{os.fspath(self.uri)!r} is being written by process {self.pid}; "
                "a forked child must write a file of its own",
            )

    def _settle(self) -> None:
        """Settle in after a fork: another thread of the parent may have been moving the window."""
        if self.is_open and not self.writable:
            self._window = Window(self._source)

    def write(self, buf: Buffer) -> None:
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
        framed = frame(buf)
        with self._lock:
            self._ready(writable=True)
            self._sink.write(framed)

    def read(self) -> bytes | None:
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
        with self._lock:
            self._ready(writable=False)
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

    def _pass_over(self, damage: Damage) -> None:
        """Stand before the next record behind the damage, count it, and do what the policy says."""
        which = "a record" if self._number is None else f"record {self._number}"
        after = find_record(self._window, damage.behind)
        if after is None:
            # Another process may have cut the file: never back, nor on in what the window still holds of it.
            after = max(self._source.size(), damage.behind)
            self._window = Window(self._source)
        self._at = after
        if self._number is not None:
            self._number += 1
        self.skipped += 1
        report(self.on_error, self.uri, which, damage)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        payload = self.read()
        if payload is None:
            raise StopIteration
        return payload

    def __enter__(self: Opened) -> Opened:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def __getstate__(self) -> dict[str, Any]:
        """A copy in another process opens the file anew, at its beginning, if it is the same file still."""
        if self.writable:
            raise error(TypeError, f"{os.fspath(self.uri)!r} is open for writing and cannot be pickled")
        kept = {k: v for k, v in self.__dict__.items() if k not in _UNPICKLED}
        return kept | {"mark": self._source.mark} if self.is_open else kept

    def __setstate__(self, state: dict[str, Any]) -> None:
        mark = state.pop("mark", None)
        self.__dict__.update(state)
        if self.is_open:
            self.is_open = False
            self._source = open_source(self.uri)
            try:
                self._source.expect(mark)
            except BaseException:
                self._source.close()
                raise
            self._begin()

    def __repr__(self) -> str:
        state = "closed" if not self.is_open else "writing" if self.writable else "reading"
        return f"<{type(self).__name__} {os.fspath(self.uri)!r}, {state}>"


def read_index(idx_path: Uri, key_type: Callable[[Any], Any] = int) -> list[tuple[Any, int]]:
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
    >>> index = Draft("memory://doc/c.idx")
    >>> index.write(b"7\\t0\\n"); index.commit()
    >>> read_index("memory://doc/c.idx")
    [(7, 0)]
    """
    return parse_index(read_all(idx_path), idx_path, key_type)


def parse_index(text: bytes, idx_path: Uri, key_type: Callable[[Any], Any] = int) -> list[tuple[Any, int]]:
    """Read the text of an index file, which `idx_path` names in errors; see `read_index`."""
    entries = []
    for number, line in enumerate(text.split(b"\n"), 1):
        if not line.strip():
            continue
        key, tab, offset = line.partition(b"\t")
        try:
            if not tab or not 0 <= (at := int(offset)) < 1 << 62:
                raise ValueError("expected a key, a tab and an offset, at least 0 and less than 2**62")
            entries.append((check_number(key_type(key.decode())), at))
        except (TypeError, ValueError, OverflowError) as e:
            where = f"line {number} of the index {os.fspath(idx_path)!r} is {line[:80].decode(errors='replace')!r}"
            raise error(ValueError, f"{where}: {e}; mxcore_io_rec.make_index remakes an index") from e
    return entries


def check_number(key: Any) -> Any:
    """Return a key; whole numbers beyond 64 bits could share one hash, and take quadratic time to look for."""
    if isinstance(key, int) and key.bit_length() > 64:
        raise ValueError("the number has more than 64 bits")
    return key


def check_index(source: Source, offsets: Array, uri: Uri, idx_path: Uri, policy: str) -> None:
    """Look whether an index is that of its record file, at a few of the offsets, which are sorted.

    One that is wrong may stand for a damaged record; most of them wrong mean an index of another file.
    """
    rest = len(offsets) - (len(offsets) > 1)  # 0, the first, is in every index
    if policy == "skip" or not rest:
        return
    looked = sorted({int(offsets[-1 - rest * i // _LOOKS]) for i in range(_LOOKS)})
    wrong = [offset for offset in looked if not starts_record(source.read(offset, 8))]
    if 2 * len(wrong) > len(looked):
        problem = error(
            ValueError,
            f"{os.fspath(uri)!r} and {os.fspath(idx_path)!r}: index and file may not belong together, "
            f"since {len(wrong)} of {len(looked)} records that were looked for are not there "
            f"(the first at {wrong[0]}; the file ends at {source.size()}). Take the index that was made "
            "with the file, remake it with mxcore_io_rec.make_index, or read what is there with on_error='skip'",
        )
        if policy == "raise":
            raise problem
        warnings.warn(str(problem), MXNetWarning, stacklevel=4)


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
        (also OSError, ValueError) if a file cannot be opened, the index is not one, or that of another file.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``recordio.MXIndexedRecordIO``. Beyond it, `read_idx` may be called from
    any number of threads and forked processes at once, and both files are completed together.

    Examples
    --------
    >>> with MXIndexedRecordIO("memory://doc/d.idx", "memory://doc/d.rec", "w") as record:
    ...     for i in range(3):
    ...         record.write_idx(i, b"record %d" % i)
    >>> MXIndexedRecordIO("memory://doc/d.idx", "memory://doc/d.rec", "r").read_idx(1)
    b'record 1'
    """

    def __init__(
        self, idx_path: Uri, uri: Uri, flag: str, key_type: Callable[[Any], Any] = int, on_error: str = "raise"
    ) -> None:
        self.idx_path = idx_path
        self.idx: dict[Any, int] = {}
        self.keys: list[Any] = []
        self.key_type = key_type
        self.fidx: Draft | None = None
        self._after: Array | None = None
        super().__init__(uri, flag, on_error)

    def _write_anew(self) -> None:
        uri, idx = resolve(self.uri)[0], resolve(self.idx_path)[0]
        if os.path.abspath(uri) == os.path.abspath(idx) or (
            os.path.exists(uri) and os.path.exists(idx) and os.path.samefile(uri, idx)
        ):
            raise error(ValueError, f"records and their index cannot both be {os.fspath(self.uri)!r}; name two files")
        settle(idx, uri)
        super()._write_anew()
        try:
            fidx = Draft(idx)
        except BaseException:
            self._unclosed.cancel()
            self._sink.discard()
            raise
        self._drafts.append(fidx)
        self.idx, self.keys, self.fidx = {}, [], fidx

    def _find_source(self) -> None:
        self._source, text = open_pair(self.uri, self.idx_path)
        try:
            entries = parse_index(text, self.idx_path, self.key_type)
            self.idx, self.keys = dict(entries), [key for key, _ in entries]
            if len(self.idx) < len(entries) and self.on_error != "skip":
                double = next(key for key, times in Counter(self.keys).items() if times > 1)
                warnings.warn(
                    f"the index {os.fspath(self.idx_path)!r} has the key {double!r} more than once; only the record "
                    "that stands last under it is found. mxcore_io_rec.make_index remakes an index",
                    MXNetWarning,
                    stacklevel=4,
                )
            self._after = None
            check_index(self._source, self._offsets(), self.uri, self.idx_path, self.on_error)
        except BaseException:
            self._source.close()
            raise

    def close(self) -> None:
        try:
            super().close()
        finally:
            self.fidx = None

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"fidx": None, "_after": None}

    def _offset(self, key: Any) -> int:
        try:
            return self.idx[self.key_type(key)]
        except (KeyError, TypeError, ValueError):
            such = f", such as {self.keys[0]!r}" if self.keys else ""
            raise error(
                KeyError, f"the index {os.fspath(self.idx_path)!r} has no key {key!r} among its {len(self.idx)}{such}"
            ) from None

    def seek(self, idx: Any) -> None:
        """Stand before the record of a key; `read` then goes on from there.

        Parameters
        ----------
        idx : key_type
            The key.
        """
        with self._lock:
            self._ready(writable=False)
            self._at, self._number = self._offset(idx), None

    def tell(self) -> int:
        """Return the offset of the record that is written or read next, in bytes."""
        with self._lock:
            self._ready(self.writable)
            return self._sink.position if self.writable else self._at

    def read_idx(self, idx: Any) -> bytes | None:
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
        with self._lock:  # `reset` may open another file; the reading itself waits for nobody
            self._ready(writable=False)
            source, offset = self._source, self._offset(idx)
            window = Window(source, self._reach(offset))
        try:
            payload, after = read_record(window, offset)
            if payload is None:
                raise Damage(
                    offset, f"the file ends before it, at {source.size()}; index and file may not belong together"
                )
        except Damage as damage:
            with self._lock:
                self.skipped += 1
            report(self.on_error, self.uri, f"the record of key {idx!r}", damage)
            return None
        self._at, self._number = after, None
        return payload

    def _offsets(self) -> Array:
        """The offsets of all records, in their order."""
        if self._after is None:
            self._after = np.unique(np.fromiter(self.idx.values(), np.int64, len(self.idx)))
        return self._after

    def _reach(self, offset: int) -> int:
        """How many bytes to read for the record at `offset`: up to the next one's magic word."""
        after = self._offsets()
        i = int(np.searchsorted(after, offset, "right"))
        end = int(after[i]) if i < len(after) else self._source.size()
        return min(max(end - offset, 4) + 4, 1 << 18)

    def write_idx(self, idx: Any, buf: Buffer) -> None:
        """Append a record under a key.

        Parameters
        ----------
        idx : key_type
            The key.
        buf : bytes-like
            What the record holds.
        """
        try:
            key = check_number(self.key_type(idx))
        except ValueError as e:
            raise error(ValueError, f"{idx!r} is no key: {e}") from e
        framed = frame(buf)
        if isinstance(key, str) and any(c in key for c in "\t\r\n"):
            raise error(ValueError, f"the key {key!r} holds a tab or a line break, which an index cannot")
        try:
            text = f"{key}\t".encode()
        except UnicodeEncodeError as e:
            raise error(ValueError, f"the key {key!r} cannot be written: {e}") from e
        with self._lock:
            self._ready(writable=True)
            assert self.fidx is not None  # as long as the file is open
            offset = self._sink.position
            self._sink.write(framed)
            self.fidx.write(b"%b%d\n" % (text, offset))
            self.idx[key] = offset
            self.keys.append(key)
