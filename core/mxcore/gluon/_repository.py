"""Where data sets and trained models are kept locally, and where they are published."""

from __future__ import annotations

import gzip
import os
import zipfile
from collections.abc import Container, Iterable, Iterator
from typing import IO, Any

from .._core.errors import MXNetError, error, warn
from .._interrupts import let_through
from .._io_files import regular
from ..drafts import atomic_writers
from ..limits import check_member, check_unpacked, copy_unpacked
from ..limits.tars import Tar
from .utils import check_sha1, download

__all__ = ["APACHE_URL", "data_dir", "fetch", "intact", "repo_url", "unpack"]

#: Bytes of an archive that are passed through at a time.
_PIECE = 1 << 20

APACHE_URL = "https://apache-mxnet.s3-accelerate.dualstack.amazonaws.com/"


def data_dir(*parts: str) -> str:
    """Path below ``~/.mxnet``, or below the folder in the environment variable ``MXNET_HOME``."""
    return os.path.join(os.environ.get("MXNET_HOME") or os.path.join("~", ".mxnet"), *parts)


def repo_url() -> str:
    """Where files are published: the URL in the environment variable ``MXNET_GLUON_REPO``, or MXNet's."""
    base = os.environ.get("MXNET_GLUON_REPO") or APACHE_URL
    return base if base.endswith("/") else base + "/"


def intact(path: str, sha1_hash: str | None, remedy: str = "Downloading again.") -> bool:
    """Whether a published file is there, as it was published; a warning tells of one that is not.

    Parameters
    ----------
    path : str
    sha1_hash : str or None
        Digest of the published file. A file without a known one is taken as it is.
    remedy : str
        What the caller does next, for the warning.
    """
    if not os.path.exists(path):
        return False
    try:
        found = regular(path)
        if sha1_hash is None or check_sha1(found, sha1_hash):
            return True
    except FileNotFoundError:  # somebody has removed it since
        return False
    warn(
        f"Mismatch in the content of {path} detected: its SHA-1 digest is not {sha1_hash}, "
        f"the published file's. {remedy}"
    )
    return False


def fetch(remote: str, root: str, sha1_hash: str | None, what: str) -> str:
    """Path of a published file in `root`, downloading it if it is not there, or is another one.

    Parameters
    ----------
    remote : str
        Path below the place of publication, or below the URL in ``MXNET_GLUON_REPO``.
    root : str
        Local folder.
    sha1_hash : str or None
        Digest that the file must have, whether it is there or downloaded.
    what : str
        What the file is part of, for the message.

    Raises
    ------
    MXNetError (FileNotFoundError)
        If it is not there and cannot be downloaded.
    MXNetError (ValueError)
        If what is there has another digest, and it cannot be downloaded.
    """
    path = os.path.join(root, os.path.basename(remote))
    if intact(path, sha1_hash):
        return path
    url = repo_url() + remote
    try:
        return download(url, path, overwrite=True, sha1_hash=sha1_hash, retries=1)
    except OSError as e:
        let_through(e)
        if sha1_hash is not None and os.path.exists(path):
            raise error(
                ValueError,
                f"{what}: {path} is damaged, or another file: its SHA-1 digest is not {sha1_hash}, the published "
                "file's, which cannot be downloaded. Put the published file there, or name the folder that has it "
                f"with root=. ({e})",
            ) from e
        raise error(
            FileNotFoundError,
            f"{what}: {path} is not there and cannot be downloaded. Put the file there, or name the folder "
            f"that has it with root=. ({e})",
        ) from e


def unpack(archive: str, names: Iterable[str], root: str) -> None:
    """Take files out of a tar or zip archive, all or none, and nothing else, whatever folders it has.

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
    listed = sorted(set(names))
    try:
        # Whether an archive is damaged is known only behind its last byte, so none of its files appears before.
        with atomic_writers(*[os.path.join(root, name) for name in listed]) as drafts:
            wanted = dict(zip(listed, drafts))
            for name, source in _files(archive, wanted):
                with source:
                    copy_unpacked(source, wanted.pop(name), archive)
            if wanted:
                raise error(ValueError, f"{archive} lacks {', '.join(wanted)}")
    except MXNetError:  # of the disk that it is unpacked to, or of what is too large
        raise
    except Exception as e:  # damaged archives raise anything
        raise error(ValueError, f"{archive} is damaged: {e}. Delete it to have it downloaded again.") from e


def _unpacked(path: str) -> Any:
    """An archive without its compression."""
    with open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return gzip.open(path) if packed else open(path, "rb")


def _files(archive: str, wanted: Container[str]) -> Iterator[tuple[str, IO[bytes]]]:
    """(name, open file) of the first file of each name."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as z:
            for member in z.infolist():
                name = os.path.basename(member.filename)
                if name in wanted:
                    check_member(member, archive)
                    yield name, z.open(member)
    else:
        with _unpacked(archive) as file:
            tar = Tar(file, archive, packed=True)
            for entry in tar:
                name = os.path.basename(entry.name)
                source = tar.extractfile(entry) if name in wanted and entry.isreg() else None
                if source is not None:
                    check_unpacked(entry.size, archive)
                    yield name, source
            while file.read(_PIECE):  # up to the checksum of what is packed, before which `tarfile` stops
                check_unpacked(file.tell(), archive)
