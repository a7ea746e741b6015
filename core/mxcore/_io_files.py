"""Files by path or URL: one way to open them, one way to replace them whole.

Every reader and writer of the library (parameters, symbol JSON, optimizer states, RecordIO) goes through
these functions, so each of them takes local paths and fsspec URLs (``s3://``, ``hdfs://``, ``memory://``)
alike, and none leaves a half-written file behind.
"""

from __future__ import annotations

import contextlib
import io
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO

from ._file_names import checked, explained, local_path
from ._interrupts import let_through, suppress
from .base import MXNetError, error
from .urls import PathLike, check_file, is_url, store

__all__ = [
    "LARGEST_PICTURE",
    "checked",
    "explained",
    "lines_of",
    "local_path",
    "make_folder",
    "modified",
    "names_in",
    "naming",
    "open_read",
    "open_write",
    "read_text",
    "read_whole",
    "reading",
    "regular",
    "remove",
    "write_atomic",
]

#: How much is read of a picture that comes from a pipe or a device.
LARGEST_PICTURE = 1 << 28
#: How much is read at a time of what may have no end, where that ends at the latest, the longest JSON, and the longest
#: line of a text.
_PIECE, _ENDLESS, _LONGEST_TEXT, _LONGEST_LINE = 1 << 20, 1 << 32, 1 << 28, 1 << 24


@contextlib.contextmanager
def naming(path: PathLike) -> Iterator[None]:
    """Begin the errors of a with-block, which reads what stood in a file, with the name of the file."""
    try:
        yield
    except MXNetError as e:
        raise error(type(e), f"{path}: {e}") from e.__cause__


def open_read(path: PathLike) -> BinaryIO:
    """Open a local file or a URL for reading bytes.

    Parameters
    ----------
    path : str or os.PathLike
        A local path, or any URL that fsspec knows (``s3://``, ``hdfs:///``, ``memory://``, ``https://``).

    Returns
    -------
    binary file object
        Seekable wherever the store allows it. Close it, or use it in a ``with`` statement.

    Raises
    ------
    MXNetError
        (also the matching OSError, e.g. FileNotFoundError) naming the file and the reason.

    Examples
    --------
    >>> write_atomic("memory://doc/a.bin", b"abc")
    >>> with open_read("memory://doc/a.bin") as f:
    ...     f.read()
    b'abc'
    """
    name = checked(path)
    with explained(name, "read", foreign=is_url(name)):
        if is_url(name):
            fs, inner = store(name)
            check_file(name, fs, inner)
            file: BinaryIO = fs.open(inner, "rb")
            if isinstance(file, io.BytesIO):  # what a store has in memory it may give to all, with one position
                file = io.BytesIO(file.getvalue())
            with contextlib.suppress(AttributeError):  # of a type that takes none, which holds what it reads
                file.store = fs  # type: ignore[attr-defined]  # an archive that nobody holds closes its files
            return file
        return open(local_path(name), "rb")


@contextlib.contextmanager
def reading(path: PathLike) -> Iterator[BinaryIO]:
    """Give a file as `open_read` does, to read it within a ``with`` block, where disks and networks may fail, too.

    Parameters
    ----------
    path : str or os.PathLike
        A local path or an fsspec URL.

    Yields
    ------
    binary file object

    Raises
    ------
    MXNetError
        (also the matching OSError) naming the file and the reason; (also OSError) if a local file was written to within
        the block, of which one part may be old then and the next one new, or if one of a store ends before its size.

    Examples
    --------
    >>> write_atomic("memory://doc/f.bin", b"abc")
    >>> with reading("memory://doc/f.bin") as f:
    ...     f.read(2)
    b'ab'
    """
    name = checked(path)
    with explained(name, "read", foreign=is_url(name)), _closing(open_read(name)) as file:
        before, problem, size = _written(file), None, getattr(file, "size", None)
        try:
            yield io.BufferedReader(_Whole(file, size)) if is_url(name) and isinstance(size, int) else file
        except Exception as e:
            let_through(e)
            if _written(file) in (before, None):
                raise
            problem = e  # what was found wrong with it is no more than a consequence
        if _written(file) not in (before, None):
            raise error(
                OSError, f"{name!r} was written to while it was read; read it again when its writer is done"
            ) from problem


@contextlib.contextmanager
def _closing(file: BinaryIO) -> Iterator[BinaryIO]:
    """Close a file that is only read behind a with-block: what a disk tells then is about nothing that was read."""
    try:
        yield file
    finally:
        with suppress(OSError):
            file.close()


class _Whole(io.RawIOBase):
    """A file of a store that tells its size: where it ends before, as where a server cuts it off, that is an error."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self._size = file, size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._file.seekable()

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def readinto(self, into: Any) -> int:
        found = self._file.read(len(into))
        if not found and len(into) and (at := self.tell()) < self._size:
            raise OSError(f"it ended after {at} of {self._size} bytes")
        into[: len(found)] = found
        return len(found)


def _written(file: BinaryIO) -> tuple[int, int] | None:
    """Length and time of a regular local file, which change when somebody writes into it; None if it tells none."""
    try:
        found = os.fstat(file.fileno())
    except (OSError, AttributeError, ValueError) as e:
        let_through(e)
        return None
    return (found.st_size, found.st_mtime_ns) if stat.S_ISREG(found.st_mode) else None


def read_whole(
    path: PathLike,
    most: int | None = None,
    what: str = "",
    begins: Callable[[bytes], bool] | None = None,
    endless: int | None = None,
) -> bytes:
    """Read all of a file that must be in memory at once; what has no end, such as ``/dev/zero``, is refused in time.

    Parameters
    ----------
    path : str or os.PathLike
        A local path or an fsspec URL.
    most : int, optional
        How many bytes it may have. By default as many as a regular file has, and `endless` of anything else.
    what : str
        What kind of file it is, for errors.
    begins : callable, optional
        Tells from the first bytes whether it can be such a file at all.
    endless : int, optional
        How many bytes there may be of what is no regular file; 4 GiB unless told.

    Returns
    -------
    bytes

    Raises
    ------
    MXNetError
        (also the matching OSError) if it cannot be read, (also ValueError) if it is longer or begins otherwise, (also
        MemoryError) if it does not fit into memory.

    Examples
    --------
    >>> write_atomic("memory://doc/d.bin", b"abc")
    >>> read_whole("memory://doc/d.bin")
    b'abc'
    """
    name = path
    with reading(path) as file:
        first = file.read(_PIECE)
        if begins is not None and first and not begins(first):
            raise error(ValueError, f"{name} is no {what or 'such file'}: it begins with {first[:12]!r}")
        limit = (endless or _ENDLESS) if most is None and not _is_regular(file) else most
        pieces, size = [first], len(first)
        try:
            while pieces[-1] and (limit is None or size <= limit):
                pieces.append(file.read(_PIECE if limit is not None else -1))
                size += len(pieces[-1])
            if limit is not None and size > limit:
                raise error(
                    ValueError,
                    f"{name} {f'is no {what}' if what else 'cannot be read whole'}: it is longer than {limit} bytes",
                )
            return b"".join(pieces)
        except MemoryError:
            raise error(MemoryError, f"{name}: it does not fit into memory, {size} bytes were read") from None


def read_text(path: PathLike, what: str = "JSON text") -> bytes:
    """Read a JSON file or a list: `read_whole`, which refuses what is no text, or far longer than any graph.

    Parameters
    ----------
    path : str or os.PathLike
        A local path or an fsspec URL.
    what : str
        What the file must be, for errors.

    Returns
    -------
    bytes

    Examples
    --------
    >>> write_atomic("memory://doc/e.json", b"{}")
    >>> read_text("memory://doc/e.json")
    b'{}'
    """
    return read_whole(path, most=_LONGEST_TEXT, what=what, begins=lambda first: b"\0" not in first)


def lines_of(path: PathLike, owner: str) -> Iterator[tuple[int, bytes]]:
    """The lines of a text with their numbers, without their ends; what has none, as ``/dev/zero``, is refused.

    Parameters
    ----------
    path : str or os.PathLike
        A local path or an fsspec URL.
    owner : str
        Who reads it, for errors.

    Examples
    --------
    >>> write_atomic("memory://doc/g.txt", b"a b\\nc")
    >>> list(lines_of("memory://doc/g.txt", "Somebody"))
    [(1, b'a b'), (2, b'c')]
    """
    number, rest = 0, b""
    with reading(path) as file:
        while piece := file.read(_PIECE):
            if piece.endswith(b"\r"):
                piece += file.read(1)  # an end of line may be two bytes
            lines = (rest + piece).splitlines()
            rest = b"" if piece.endswith((b"\r", b"\n")) else lines.pop()
            for line in lines:
                number += 1
                yield number, line
            if len(rest) > _LONGEST_LINE:
                raise error(
                    ValueError,
                    f"{owner}: {os.fspath(path)!r}, line {number + 1}: "
                    f"it is longer than {_LONGEST_LINE} bytes; is this a text?",
                )
    if rest:
        yield number + 1, rest


def names_in(folder: PathLike) -> list[str]:
    """The names in a folder, sorted.

    Parameters
    ----------
    folder : str or os.PathLike
        A local path or an fsspec URL.

    Raises
    ------
    MXNetError
        (also the matching OSError) naming the folder and the reason.

    Examples
    --------
    >>> "null" in names_in("/dev")
    True
    """
    name = checked(folder, "a folder")
    with explained(name, "read", foreign=is_url(name)):
        if is_url(name):
            fs, inner = store(name)
            return sorted({path.rstrip("/").rpartition("/")[2] for path in fs.ls(inner, detail=False)})
        return sorted(os.listdir(local_path(name)))


def regular(path: PathLike) -> str:
    """Return what names a file of a folder or a list: a stranger may have put pipes and devices there.

    Parameters
    ----------
    path : str or os.PathLike
        A local path or an fsspec URL.

    Raises
    ------
    MXNetError
        (also OSError) if it is no file with a length, or not there.

    Examples
    --------
    >>> write_atomic("memory://doc/h.bin", b"abc")
    >>> regular("memory://doc/h.bin")
    'memory://doc/h.bin'
    """
    name = checked(path)
    if not is_url(name):
        with explained(name, "read"):
            mode = os.stat(local_path(name)).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise error(OSError, f"cannot read {name!r}: it is a pipe or a device, not a file with a length")
    return name


def _is_regular(file: BinaryIO) -> bool:
    """Whether a file has a size: a regular one, or an object in a store."""
    try:
        return stat.S_ISREG(os.fstat(file.fileno()).st_mode)
    except (OSError, AttributeError) as e:
        let_through(e)
        return True


def open_write(path: PathLike, buffered: bool = True) -> BinaryIO:
    """Open a local file or a URL for writing bytes as they come, emptying what was there.

    For files that others read while they grow, such as event files; use `write_atomic` for everything else.

    Parameters
    ----------
    path : str or os.PathLike
        A local path or an fsspec URL.
    buffered : bool
        Whether a local file may keep what is written, until it is flushed. One that may not can write less than it is
        given, and tells how much.

    Returns
    -------
    binary file object

    Raises
    ------
    MXNetError
        (also the matching OSError) naming the file and the reason.

    Examples
    --------
    >>> with open_write("memory://doc/stream.bin") as f:
    ...     f.write(b"abc")
    3
    """
    name = checked(path)
    with explained(name, "write", foreign=is_url(name)):
        if is_url(name):
            fs, inner = store(name, writing=True)
            file: BinaryIO = fs.open(inner, "wb")
            return file
        return open(local_path(name), "wb", buffering=-1 if buffered else 0)


def write_atomic(
    path: PathLike, data: bytes | bytearray | memoryview | Iterable[bytes | bytearray | memoryview]
) -> None:
    """Replace a file by `data`, wholly or not at all.

    Parameters
    ----------
    path : str or os.PathLike
        A local path or an fsspec URL. The folder must exist.
    data : bytes-like or iterable of bytes-like
        The content; an iterable is written piece by piece, so that the whole need not be in memory.

    Raises
    ------
    MXNetError
        (also the matching OSError) naming the file and the reason. The previous file is then untouched.

    Examples
    --------
    >>> write_atomic("memory://doc/b.bin", [b"ab", b"c"])
    """
    from .drafts import atomic_writer  # which is not loaded with mxcore

    pieces = (data,) if isinstance(data, (bytes, bytearray, memoryview)) else data
    with atomic_writer(path) as file:
        for piece in pieces:
            file.write(piece)


def make_folder(path: PathLike) -> None:
    """Make a folder and those above it, where they are missing.

    Parameters
    ----------
    path : str or os.PathLike
        A local path or an fsspec URL.

    Raises
    ------
    MXNetError
        (also the matching OSError) naming the folder and the reason.

    Examples
    --------
    >>> make_folder("/tmp")
    """
    name = checked(path, "a folder")
    with explained(name, "make the folder", foreign=is_url(name)):
        if is_url(name):
            fs, inner = store(name, writing=True)
            fs.makedirs(inner, exist_ok=True)
            return
        os.makedirs(local_path(name), exist_ok=True)


def modified(path: PathLike) -> float:
    """When a file was written, in seconds; of two files in a store that does not tell, the same.

    Parameters
    ----------
    path : str or os.PathLike
        A local path or an fsspec URL.

    Raises
    ------
    MXNetError
        (also the matching OSError) naming the file and the reason.

    Examples
    --------
    >>> write_atomic("memory://doc/i.bin", b"")
    >>> modified("memory://doc/i.bin") > 0
    True
    """
    name = checked(path)
    with explained(name, "read", foreign=is_url(name)):
        if not is_url(name):
            return os.stat(local_path(name)).st_mtime
        fs, inner = store(name)
        try:
            return float(fs.modified(inner).timestamp())
        except NotImplementedError:
            return 0.0


def remove(path: PathLike) -> None:
    """Remove a file, if it is there.

    Parameters
    ----------
    path : str or os.PathLike
        A local path or an fsspec URL.

    Raises
    ------
    MXNetError
        (also the matching OSError) naming the file and the reason.

    Examples
    --------
    >>> remove("memory://doc/none.bin")
    """
    name = checked(path)
    with explained(name, "remove", foreign=is_url(name)), contextlib.suppress(FileNotFoundError):
        if is_url(name):
            fs, inner = store(name, writing=True)
            fs.rm_file(inner)
        else:
            os.unlink(local_path(name))
