"""Where data sets and trained models are kept locally, and where they are published."""

from __future__ import annotations

import gzip
import os
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from typing import IO, Any

from .._io_files import regular
from ..base import MXNetError, error
from ..drafts import atomic_writer
from ..limits import check_member, check_unpacked, copy_unpacked
from .utils import download

__all__ = ["APACHE_URL", "data_dir", "fetch", "repo_url", "unpack"]

APACHE_URL = "https://apache-mxnet.s3-accelerate.dualstack.amazonaws.com/"


def data_dir(*parts: str) -> str:
    """Path below ``~/.mxnet``, or below the folder in the environment variable ``MXNET_HOME``."""
    return os.path.join(os.environ.get("MXNET_HOME") or os.path.join("~", ".mxnet"), *parts)


def repo_url() -> str:
    """Where files are published: the URL in the environment variable ``MXNET_GLUON_REPO``, or MXNet's."""
    base = os.environ.get("MXNET_GLUON_REPO") or APACHE_URL
    return base if base.endswith("/") else base + "/"


def fetch(remote: str, root: str, sha1_hash: str | None, what: str) -> str:
    """Path of a published file in `root`, downloading it if it is not there.

    Parameters
    ----------
    remote : str
        Path below the place of publication, or below the URL in ``MXNET_GLUON_REPO``.
    root : str
        Local folder.
    sha1_hash : str or None
        Digest that a downloaded file must have.
    what : str
        What the file is part of, for the message.

    Raises
    ------
    MXNetError (FileNotFoundError)
        If it is not there and cannot be downloaded.
    """
    path = os.path.join(root, os.path.basename(remote))
    if os.path.exists(path):
        return regular(path)
    url = repo_url() + remote
    try:
        return download(url, path, sha1_hash=sha1_hash, retries=1)
    except OSError as e:
        raise error(
            FileNotFoundError,
            f"{what}: {path} is not there and cannot be downloaded. Put the file there, or name the folder "
            f"that has it with root=. ({e})",
        ) from e


def unpack(archive: str, names: Iterable[str], root: str) -> None:
    """Take files out of a tar or zip archive, and nothing else, whatever folders it has.

    Parameters
    ----------
    archive : str
    names : iterable of str
        Names of the files, without folders.
    root : str
        Folder to put them.

    Raises
    ------
    MXNetError (ValueError)
        If the archive is damaged or lacks a file.
    """
    wanted = set(names)
    try:
        for name, source in _files(archive, wanted):
            with source, atomic_writer(os.path.join(root, name)) as out:
                copy_unpacked(source, out, archive)
            wanted.remove(name)
    except MXNetError:  # of the disk that it is unpacked to, or of what is too large
        raise
    except Exception as e:  # damaged archives raise anything
        raise error(ValueError, f"{archive} is damaged: {e}. Delete it to have it downloaded again.") from e
    if wanted:
        raise error(ValueError, f"{archive} lacks {', '.join(sorted(wanted))}")


class _Unpacked:
    """An archive without its compression, which goes as far as files may unfold: the rest is never passed through."""

    def __init__(self, path: str) -> None:
        self.name = path
        with open(path, "rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        self._file: Any = gzip.open(path) if packed else open(path, "rb")  # noqa: SIM115 (closed by __exit__)
        self.tell = self._file.tell

    def read(self, n: int) -> bytes:
        check_unpacked(self.tell() + n, self.name)
        found: bytes = self._file.read(n)
        return found

    def seek(self, position: int) -> None:
        check_unpacked(position, self.name)
        self._file.seek(position)

    def __enter__(self) -> IO[bytes]:
        return self  # type: ignore[return-value]  # as much of a file as `tarfile` needs

    def __exit__(self, *exc: object) -> None:
        self._file.close()


def _files(archive: str, wanted: set[str]) -> Iterator[tuple[str, IO[bytes]]]:
    """(name, open file) of the first file of each name."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as z:
            for member in z.infolist():
                name = os.path.basename(member.filename)
                if name in wanted:
                    check_member(member, archive)
                    yield name, z.open(member)
    else:
        with _Unpacked(archive) as file, tarfile.open(fileobj=file, mode="r:") as tar:
            for entry in tar:
                name = os.path.basename(entry.name)
                source = tar.extractfile(entry) if name in wanted else None  # None: no file
                if source is not None:
                    check_unpacked(entry.size, archive)
                    yield name, source
