"""Files by path or URL: one way to open them, one way to replace them whole.

Every reader and writer of the library (parameters, symbol JSON, optimizer states, RecordIO) goes through
these functions, so each of them takes local paths and fsspec URLs (``s3://``, ``hdfs://``, ``memory://``)
alike, and none leaves a half-written file behind.
"""
from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from .base import MXNetError, error

__all__ = ["atomic_writer", "is_url", "local_path", "naming", "open_read", "open_write", "write_atomic"]

PathLike = str | os.PathLike

# Two letters at least, so that a Windows drive ("C:\\x") is a path.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+)://")

# Stores where an object appears only once its upload is complete: a rename there is a second full copy.
_OBJECT_STORES = frozenset(("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oss", "obs", "oci"))


@contextlib.contextmanager
def naming(path: PathLike) -> Iterator[None]:
    """Begin the errors of a with-block, which reads what stood in a file, with the name of the file."""
    try:
        yield
    except MXNetError as e:
        raise error(type(e), f"{path}: {e}") from e.__cause__


def is_url(path: PathLike) -> bool:
    """Tell whether `path` names something that is opened through fsspec.

    Parameters
    ----------
    path : str or os.PathLike
        A local path or a URL; ``file://`` URLs count as local paths.

    Returns
    -------
    bool

    Examples
    --------
    >>> is_url("s3://bucket/a.params"), is_url("C:/a.params"), is_url("file:///a.params")
    (True, False, False)
    """
    found = _SCHEME.match(os.fspath(path))
    return found is not None and found.group(1).lower() != "file"


def local_path(path: PathLike) -> str:
    """Return `path` as a plain local path, ``file://`` removed and ``~`` expanded.

    Parameters
    ----------
    path : str or os.PathLike
        A local path or a ``file://`` URL.

    Returns
    -------
    str

    Raises
    ------
    MXNetError
        (also TypeError) if `path` is not a string or a path.

    Examples
    --------
    >>> local_path("file:///data/a.params")
    '/data/a.params'
    """
    try:
        text = os.fspath(path)
    except TypeError:
        text = path
    if not isinstance(text, str):
        raise error(TypeError, f"a file name must be a string or a path, not {type(path).__name__}: {path!r}")
    if text[:7].lower() == "file://":
        text = text[7:]
        if re.match(r"/[A-Za-z]:[\\/]", text):
            text = text[1:]
    return os.path.expanduser(text) if text.startswith("~") else text


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
    name = _checked(path)
    with _explained(name, "read", foreign=is_url(name)):
        if is_url(name):
            fs, inner = _filesystem(name)
            return fs.open(inner, "rb")
        return open(local_path(name), "rb")


def open_write(path: PathLike) -> BinaryIO:
    """Open a local file or a URL for writing bytes as they come, emptying what was there.

    For streams that grow for hours, such as RecordIO; use `write_atomic` for everything else.

    Parameters
    ----------
    path : str or os.PathLike
        A local path or an fsspec URL.

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
    name = _checked(path)
    with _explained(name, "write", foreign=is_url(name)):
        if is_url(name):
            fs, inner = _filesystem(name)
            return fs.open(inner, "wb")
        return open(local_path(name), "wb")


def write_atomic(path: PathLike, data: bytes | bytearray | memoryview | Iterable[bytes]) -> None:
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
    pieces = (data,) if isinstance(data, (bytes, bytearray, memoryview)) else data
    with atomic_writer(path) as file:
        for piece in pieces:
            file.write(piece)


@contextlib.contextmanager
def atomic_writer(path: PathLike) -> Iterator[BinaryIO]:
    """Give a binary file whose content takes the place of `path` when the ``with`` block ends well.

    Locally the content goes to a temporary file in the same folder, reaches the disk (fsync) and is renamed
    over the old file; if the block or the disk fails, the old file stays as it was. For URLs the content is
    staged locally and uploaded once complete.

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
        (also the matching OSError) naming the file and the reason.

    Examples
    --------
    >>> with atomic_writer("memory://doc/c.bin") as f:
    ...     _ = f.write(b"abc")
    """
    name = _checked(path)
    with (_staged if is_url(name) else _replaced)(name) as file:
        yield file


def _checked(path: PathLike) -> str:
    name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else path
    if not isinstance(name, str) or not name:
        raise error(TypeError, f"a file name must be a non-empty string or a path, not {name!r}")
    return name


@contextlib.contextmanager
def _explained(name: str, verb: str, foreign: bool = False) -> Iterator[None]:
    """Turn OSErrors into library errors that keep their class and name the file.

    `foreign` turns everything into them: remote stores have errors of their own.
    """
    try:
        yield
    except MXNetError:
        raise
    except OSError as problem:
        new = error(type(problem), f"cannot {verb} {name!r}: {_reason(name, problem)}")
        new.errno = problem.errno
        raise new from problem
    except Exception as problem:
        if not foreign:
            raise
        kind = type(problem).__name__
        raise error(OSError, f"cannot {verb} {name!r}: {kind}: {problem}") from problem


def _reason(name: str, problem: OSError) -> str:
    reason = problem.strerror or str(problem) or type(problem).__name__
    path = None if is_url(name) else local_path(name)
    if problem.filename not in (None, path) and ".mxcore-" not in str(problem.filename):
        reason = str(problem)       # it is about another file
    if path and isinstance(problem, FileNotFoundError):
        folder = os.path.dirname(path) or "."
        if not os.path.isdir(folder):
            return f"the folder {folder!r} does not exist"
        if not os.path.isabs(path):
            return f"{reason} (looked in {os.getcwd()!r})"
    return reason


def _filesystem(url: str):
    """Resolve `url` into (fsspec file system, path inside it)."""
    scheme = _SCHEME.match(url).group(1)
    try:
        import fsspec
    except ImportError:
        raise error(ImportError, f"{url!r} needs the package fsspec: pip install fsspec") from None
    try:
        return fsspec.core.url_to_fs(url)
    except ImportError as problem:
        raise error(ImportError, f"{url!r}: the store {scheme!r} is not installed: {problem}") from problem
    except ValueError as problem:
        raise error(ValueError, f"cannot open {url!r}: {problem}") from problem


@contextlib.contextmanager
def _replaced(name: str) -> Iterator[BinaryIO]:
    target = os.path.realpath(local_path(name))     # a link keeps pointing where it did
    with _explained(name, "write"):
        mode = os.stat(target).st_mode if os.path.exists(target) else None
    if mode is not None and not stat.S_ISREG(mode):
        # A pipe or a device cannot be replaced; a folder is refused by open().
        with _explained(name, "write"), open_write(target) as file:  # closing may be what fails
            yield file
        return
    temporary = os.path.join(os.path.dirname(target), f".mxcore-{secrets.token_hex(8)}.tmp")
    with _explained(name, "write"):
        # os.open and not tempfile: the new file's mode follows the umask.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        file = os.fdopen(os.open(temporary, flags, 0o666), "wb")
    try:
        with _explained(name, "write"), file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with _explained(name, "write"):
            if mode is not None:
                os.chmod(temporary, stat.S_IMODE(mode))
            os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(os.path.dirname(target))


def _sync_folder(folder: str) -> None:
    """Make a rename survive a power cut, where the system can."""
    if hasattr(os, "O_DIRECTORY"):
        with contextlib.suppress(OSError):
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


@contextlib.contextmanager
def _staged(url: str) -> Iterator[BinaryIO]:
    fs, inner = _filesystem(url)
    with tempfile.TemporaryDirectory(prefix="mxcore-") as folder:
        stage = os.path.join(folder, "upload")
        with _explained(url, "write"), open(stage, "wb") as file:
            yield file
        with _explained(url, "write", foreign=True):
            _upload(fs, stage, inner, url)


def _upload(fs, stage: str, inner: str, url: str) -> None:
    if _SCHEME.match(url).group(1).lower() in _OBJECT_STORES:
        fs.put_file(stage, inner)
        return
    folder, slash, _ = inner.rpartition("/")
    temporary = f"{folder}{slash}.mxcore-{secrets.token_hex(8)}.tmp"
    try:
        fs.put_file(stage, temporary)
        fs.mv(temporary, inner)
    except BaseException:
        with contextlib.suppress(Exception):
            fs.rm_file(temporary)
        raise
