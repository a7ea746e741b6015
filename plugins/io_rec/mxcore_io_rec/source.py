"""Bytes at a position: local files and fsspec URLs behind one small interface.

Reads name their position, so threads share a source without a lock around seek and read, and a forked child
shares nothing with its parent that either could move. A source has a mark, of the file that it was opened as; what was
written over since, or is another file when a copy of the reader opens it, is refused.
"""

from __future__ import annotations

import errno
import os
import platform
import stat
import threading
import time
import zlib
from typing import Any, NamedTuple, TypeAlias

from mxcore.base import MXNetError, error
from mxcore.drafts import settle
from mxcore.plugin import fork_safe_lock, let_through, suppress
from mxcore.urls import archived, check_file, child, ending, facts, is_folder, is_url, store, text_of

__all__ = ["LocalFile", "RemoteFile", "ReplacedError", "list_files", "open_pair", "open_source", "read_all", "resolve"]

Uri: TypeAlias = str | os.PathLike[str]

#: Where the numbers of files and devices hold.
_MACHINE = platform.node()

#: How many bytes at its end a file that grows is known by.
_TAIL = 4096

#: So often a file is looked at, a millisecond apart, whose time has changed and whose length has not.
_LOOKS = 10

#: In seconds: a store whose look takes longer is far, and asked no more often than so.
_FAR, _SELDOM = 0.002, 1.0

_clock = time.monotonic


def resolve(uri: Uri) -> tuple[str, bool]:
    """Tell local paths from URLs.

    Parameters
    ----------
    uri : str or os.PathLike
        A path, a ``file://`` URL or any URL that fsspec knows.

    Returns
    -------
    (str, bool)
        The local path or the URL, and whether it is a URL.

    Examples
    --------
    >>> resolve("file:///data/a.rec"), resolve("s3://bucket/a.rec")
    (('/data/a.rec', False), ('s3://bucket/a.rec', True))
    """
    name = text_of(uri, "the name of a record file")
    if not name:
        raise error(TypeError, f"the name of a record file must be a non-empty string or a path, not {name!r}")
    if is_url(name):
        return name, True
    return os.path.expanduser(name[7:] if name[:7].lower() == "file://" else name), False


def failed(verb: str, uri: Uri, e: Exception) -> Exception:
    """Make the library's error of an OSError or a store's own: its class if that is Python's, file and reason."""
    kind = type(e) if isinstance(e, OSError) and type(e).__module__ == "builtins" else OSError
    said = e if isinstance(e, OSError) else f"{type(e).__name__}: {e}"
    return error(kind, f"cannot {verb} {os.fspath(uri)!r}: {getattr(e, 'strerror', None) or said}")


class ReplacedError(OSError):
    """A file is no longer the one that was opened."""


def _replaced(name: str, how: str) -> Exception:
    return error(
        ReplacedError,
        f"{name!r} was {how} since it was opened, so that what is known of its records is not true of it. Make the "
        "reader anew (the dataset, the iterator), and leave the file as it is until it has been read",
    )


class Mark(NamedTuple):
    """What tells a local file from the one that takes its place."""

    machine: str
    number: tuple[int, int]
    size: int
    time: int
    tail: int  # a sum over its last bytes


class LocalFile:
    """A local file, read by position.

    Parameters
    ----------
    path : str
        Path of the file.

    Raises
    ------
    MXNetError
        (also the matching OSError) if the file cannot be opened.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as f:
    ...     _ = f.write(b"abcdef"); f.flush()
    ...     LocalFile(f.name).read(2, 3)
    b'cde'
    """

    block = 1 << 20  # what sequential readers ask for at a time

    def __init__(self, path: str) -> None:
        self.name = path
        try:
            mode = os.stat(path).st_mode  # before open, which would wait for the other end of a pipe
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                raise error(OSError, f"cannot read {path!r}: it is a pipe or a device, not a file with a length")
            self._file = open(path, "rb", buffering=0)  # noqa: SIM115 (closed by close)
        except MXNetError:
            raise
        except OSError as e:
            let_through(e)
            raise failed("read", path, e) from e
        except ValueError as e:  # a name that no file can have
            raise error(ValueError, f"cannot read {path!r}: {e}") from None
        self._lock = threading.Lock()
        self._positional = hasattr(os, "pread")
        try:
            self.mark = self._look()
        except OSError as e:
            let_through(e)
            raise failed("read", path, e) from e

    def _look(self) -> Mark:
        found = os.fstat(self._file.fileno())
        return Mark(_MACHINE, (found.st_dev, found.st_ino), found.st_size, found.st_mtime_ns, self._tail(found.st_size))

    def _tail(self, size: int) -> int:
        n = min(size, _TAIL)
        return zlib.crc32(self._read(size - n, n))

    def expect(self, mark: Mark) -> None:
        """Refuse to be another file than the one of this mark, which may come from another machine."""
        mine = self.mark
        if mark.machine != mine.machine:
            same = mark.size <= mine.size
        else:
            same = mark.number == mine.number and ((mark.size, mark.time) == mine[2:4] or mark.size < mine.size)
        if not same or mark.tail != self._tail(mark.size):
            raise _replaced(self.name, "replaced by another file")

    def _unchanged(self) -> None:
        """Refuse what was written over: some programs write into the file that others have open. A file may grow."""
        for _ in range(_LOOKS):
            mark = self.mark  # first: another thread may put that of a longer file in its place
            now = os.fstat(self._file.fileno())
            if now.st_size == mark.size and now.st_mtime_ns == mark.time:
                return
            if now.st_size != mark.size:
                break
            time.sleep(0.001)  # who appends changes the time first
        if now.st_size <= mark.size or self._tail(mark.size) != mark.tail:
            raise _replaced(self.name, "written over")
        self.mark = self._look()

    def read(self, position: int, n: int) -> bytes:
        """Return the `n` bytes at `position`, fewer only where the file ends."""
        try:
            data = self._read(position, n)
            while 0 < len(data) < n:  # interrupted, or larger than one system call moves
                more = self._read(position + len(data), n - len(data))
                if not more:
                    break
                data += more
            self._unchanged()  # after the reading: what was changed by then, it may have read
        except MXNetError:
            raise
        except (OSError, ValueError) as e:
            let_through(e)
            raise self._failed(e) from e
        return data

    def _failed(self, e: Exception) -> Exception:
        """The error of ours for what reading failed with."""
        if isinstance(e, OSError) and e.errno != errno.EBADF:
            return failed("read", self.name, e)
        return error(ValueError, f"{self.name!r} was closed while another thread read it")

    def _read(self, position: int, n: int) -> bytes:
        if self._positional:
            return os.pread(self._file.fileno(), n, position)
        with self._lock:  # systems without pread
            self._file.seek(position)
            return self._file.read(n)

    def size(self) -> int:
        """Length of the file in bytes, as it is now."""
        try:
            self._unchanged()
        except MXNetError:
            raise
        except (OSError, ValueError) as e:
            let_through(e)
            raise self._failed(e) from e
        return self.mark.size

    def current(self) -> bool:
        """Whether the name still stands for this file."""
        try:
            return os.path.samestat(os.fstat(self._file.fileno()), os.stat(self.name))
        except OSError as e:
            let_through(e)
            return False

    def close(self) -> None:
        """Close the file; what its disk tells then is about nothing that was read."""
        with suppress(OSError):
            self._file.close()

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self.close()  # readers are seldom closed by hand


class RemoteFile:
    """A file behind an fsspec URL, read by ranges.

    Parameters
    ----------
    url : str
        The URL.

    Raises
    ------
    MXNetError
        (also the matching OSError) if it cannot be reached.

    Examples
    --------
    >>> import fsspec
    >>> with fsspec.open("memory://doc/a", "wb") as f:
    ...     _ = f.write(b"abcdef")
    >>> RemoteFile("memory://doc/a").read(2, 3)
    b'cde'
    """

    block = 1 << 22  # a request costs far more than its bytes

    def __init__(self, url: str) -> None:
        self.name = url
        self._connect()

    def _connect(self, fresh: bool = False) -> None:
        self._pid = os.getpid()
        try:
            self._fs, self._path = store(self.name, fresh=fresh)
            info = self._fs.info(self._path)
            check_file(self.name, self._fs, self._path)
            # An archive has one position for all that is read of it, and what is packed in one is unpacked up to there.
            self._file = self._fs.open(self._path, "rb") if archived(self.name) else None
        except MXNetError:
            raise
        except Exception as e:  # such as a damaged archive's
            let_through(e)
            raise failed("read", self.name, e) from e
        if info.get("type") == "directory":
            raise failed("read", self.name, IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR)))
        if info.get("size") is None:
            raise error(OSError, f"cannot read {self.name!r}: this store does not tell its length")
        self._size: int = info["size"]
        self.mark = facts(info)
        self._next_look, self._took = 0.0, float("inf")
        self._lock = fork_safe_lock()

    def expect(self, mark: tuple[Any, ...]) -> None:
        """Refuse to be another object than the one of this mark."""
        if self.mark != mark:
            raise _replaced(self.name, "replaced by another file")

    def _unchanged(self) -> None:
        """Refuse what has taken the object's place; a store that is far is asked now and then."""
        begun = _clock()
        if begun >= self._next_look:
            same = self.current()
            now = _clock()
            self._took = min(self._took, now - begun)  # a machine that is busy makes no store far
            self._next_look = now + _SELDOM if same and self._took > _FAR else 0.0
            if not same:
                raise _replaced(self.name, "replaced by another file")

    def read(self, position: int, n: int) -> bytes:
        """Return the `n` bytes at `position`, fewer only where the file ends."""
        if self._pid != os.getpid():  # connections and their threads do not survive a fork
            mark = self.mark
            self._connect(fresh=not self.name.startswith("memory:"))
            opened, self.mark = self.mark, mark
            if opened != mark:
                raise _replaced(self.name, "replaced by another file")
        end = min(position + n, self._size)
        if position >= end:
            return b""
        try:
            data = self._read(position, end)
        except Exception as e:
            let_through(e)
            self._unchanged()
            raise failed("read", self.name, e) from e
        self._unchanged()
        return data

    def _read(self, begin: int, end: int) -> bytes:
        data: bytes
        if self._file is None:
            data = self._fs.cat_file(self._path, start=begin, end=end)
        else:
            with self._lock:
                self._file.seek(begin)
                data = self._file.read(end - begin)
        return data

    def size(self) -> int:
        """Length of the file in bytes when it was opened."""
        return self._size

    def current(self) -> bool:
        """Whether the name still stands for this file, as far as the store tells."""
        try:
            self._fs.invalidate_cache(self._path)
            return facts(self._fs.info(self._path)) == self.mark
        except FileNotFoundError:
            return False
        except Exception as e:
            let_through(e)
            raise failed("read", self.name, e) from e

    def close(self) -> None:
        """Nothing is held open."""


Source: TypeAlias = LocalFile | RemoteFile


def open_source(uri: Uri) -> Source:
    """Open a path or URL for reading by position.

    Parameters
    ----------
    uri : str or os.PathLike
        A local path or an fsspec URL.

    Returns
    -------
    LocalFile or RemoteFile

    Examples
    --------
    >>> open_source("missing.rec")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    mxcore.base.MXNetFileNotFoundError: cannot read 'missing.rec': No such file or directory
    """
    name, remote = resolve(uri)
    return RemoteFile(name) if remote else LocalFile(name)


def read_all(uri: Uri) -> bytes:
    """Return the whole content of a path or URL."""
    source = open_source(uri)
    try:
        return source.read(0, source.size())
    except MemoryError:
        raise error(
            MemoryError, f"cannot read {os.fspath(uri)!r}: its {source.size()} bytes do not fit into memory"
        ) from None
    finally:
        source.close()


def open_pair(uri: Uri, idx_path: Uri) -> tuple[Source, bytes]:
    """Open a record file and read the index that belongs to it, also while another process replaces both.

    Parameters
    ----------
    uri, idx_path : str or os.PathLike
        The record file and its index, paths or fsspec URLs.

    Returns
    -------
    (LocalFile or RemoteFile, bytes)

    Examples
    --------
    >>> open_pair("missing.rec", "missing.idx")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    mxcore.base.MXNetFileNotFoundError: cannot read 'missing.rec': No such file or directory
    """
    for _ in range(100):
        source = open_source(uri)
        try:
            name = resolve(idx_path)[0]
            text = read_all(settle(name, resolve(uri)[0]))
        except FileNotFoundError:
            source.close()
            if os.path.exists(name):
                continue  # it was renamed between the look and the reading
            raise
        except BaseException:
            source.close()
            raise
        if source.current():
            break
        source.close()
    else:
        raise error(OSError, f"{os.fspath(uri)!r} is replaced again and again; read it when its writer is done")
    return source, text


def list_files(uri: Uri, suffix: str) -> list[str]:
    """Return the files that a path or URL stands for.

    Parameters
    ----------
    uri : str or os.PathLike
        A file, a folder, or several of them with ``;`` between.
    suffix : str
        What the names of a folder's files must end in.

    Returns
    -------
    list of str
        A folder's files come in the order of their names.

    Examples
    --------
    >>> list_files("a.rec;b.rec", ".rec")
    ['a.rec', 'b.rec']
    """
    files: list[str] = []
    for part in filter(None, os.fspath(uri).split(";")):
        name, remote = resolve(part)
        found = _folder(name, remote)
        if found is None:
            files.append(name)
            continue
        chosen = [p for p in found if ending(p) == suffix]
        if not chosen:
            raise error(FileNotFoundError, f"the folder {part!r} holds no *{suffix} file")
        files += chosen
    if not files:
        raise error(ValueError, f"{uri!r} names no file")
    return files


def _folder(name: str, remote: bool) -> list[str] | None:
    """The sorted files of a folder, None if `name` is none."""
    try:
        if remote:
            fs, path = store(name)
            if not fs.isdir(path):
                return None
            return [child(name, p.rstrip("/").rpartition("/")[2]) for p in sorted(fs.ls(path, detail=False))]
        return [os.path.join(name, p) for p in sorted(os.listdir(name))] if is_folder(name) else None
    except MXNetError:
        raise
    except Exception as e:  # stores have errors of their own
        let_through(e)
        raise failed("read", name, e) from e
