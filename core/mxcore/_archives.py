"""Files in archives, for fsspec: zip and tar, searched with the memory and the time that strangers may have.

fsspec's own list all the folders of all names, look a link up among all members, and read what headers tell of.
"""

from __future__ import annotations

import posixpath
import tarfile
import zipfile
from typing import IO, Any

import fsspec
from fsspec.compression import compr
from fsspec.utils import infer_compression

from ._interrupts import suppress
from .limits import Searched
from .limits.tars import Tar

__all__ = ["TarFiles", "ZipFiles"]

#: Links that lead from one to the next, as the systems' own.
_MOST_LINKS = 40
#: How much memory the list of files of a zip archive takes, as a multiple of its bytes.
_PER_BYTE = 16


def _tidy(name: str) -> str:
    """A name in an archive without what does not tell files apart; empty of the topmost folder."""
    return posixpath.normpath("/" + name.lstrip("/"))[1:]


def _folder(name: str) -> dict[str, Any]:
    return {"name": name, "size": 0, "type": "directory"}


class _Files(fsspec.AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """What lies in an archive, which is searched when this is made; a member of a name seen before takes its place.

    Parameters
    ----------
    fo : str
        The archive, in the store of `target_protocol`.
    target_protocol, target_options
        As of fsspec's archives.
    """

    cachable = False
    root_marker = ""

    def __init__(self, fo: str, target_protocol: str | None = None, target_options: Any = None, **options: Any) -> None:
        super().__init__(**options)
        self._members: dict[str, Any] = {}
        self._of = fsspec.open(fo, protocol=target_protocol, **(target_options or {}))
        try:
            file = self._of.open()
            self._search(file, fo, getattr(file, "unfolds", False))
        except BaseException:
            self._close()
            raise

    def __del__(self) -> None:
        if hasattr(self, "_of"):
            self._close()

    def _close(self) -> None:
        with suppress(OSError):  # it was only read
            self._of.close()

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return _tidy(super()._strip_protocol(path))

    def _search(self, file: Any, name: str, unfolds: bool) -> None:
        raise NotImplementedError

    def _info(self, name: str, member: Any) -> dict[str, Any]:
        raise NotImplementedError

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Name, size and type of a file or folder, and whether it is larger than it lies there."""
        path = self._strip_protocol(path)
        if path in self._members:
            return self._info(path, self._members[path])
        if not path or any(name.startswith(path + "/") for name in self._members):
            return _folder(path)
        raise FileNotFoundError(path)

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        """What a folder holds."""
        path = self._strip_protocol(path)
        found = self.info(path)
        if found["type"] != "directory":
            return [found if detail else path]
        begin = path + "/" if path else ""
        below = (name[len(begin) :] for name in self._members if name.startswith(begin) and name != path)
        names = sorted({begin + name.partition("/")[0] for name in below})
        if not detail:
            return names
        members = self._members
        return [self._info(name, members[name]) if name in members else _folder(name) for name in names]


class TarFiles(_Files):
    """Files in a tar archive, which may be compressed as its name tells."""

    protocol = "mxcore-tar"

    def _search(self, file: Any, name: str, unfolds: bool) -> None:
        packing = infer_compression(name)
        if packing == "zip":  # whose methods may unfold it at once; tar://…::zip://… goes in pieces
            packing = None
        self._packed = unfolds or packing is not None
        self._tar = Tar(compr[packing](file, mode="rb"), name, self._packed)
        for member in self._tar:
            # What a hard link names lies before it.
            linked = self._members.get(_tidy(member.linkname)) if member.islnk() else member
            self._members[_tidy(member.name)] = linked or member

    def _target(self, name: str) -> tarfile.TarInfo:
        """What a name leads to."""
        for _ in range(_MOST_LINKS):
            found: tarfile.TarInfo | None = self._members.get(name)
            if found is None or found.islnk():
                break
            if not found.issym():
                return found
            name = _tidy(posixpath.join(posixpath.dirname(found.name), found.linkname))
        raise FileNotFoundError(name)

    def _info(self, name: str, member: tarfile.TarInfo) -> dict[str, Any]:
        try:
            member = self._target(name)
        except FileNotFoundError:  # a link to nothing is there nevertheless
            return {"name": name, "size": 0, "type": "file"}
        kind = "directory" if member.isdir() else "file"
        unfolds = self._packed or member.issparse()
        return {"name": name, "size": member.size, "type": kind, "mtime": member.mtime, "unfolds": unfolds}

    def _open(self, path: str, mode: str = "rb", **_: Any) -> IO[bytes]:
        member = self._target(self._strip_protocol(path))
        file: Any = self._tar.extractfile(member)
        if file is None:
            raise IsADirectoryError(f"{path} is a folder or a device")
        file.size, file.unfolds = member.size, self._packed or member.issparse()
        return file  # type: ignore[no-any-return]


class _Directory(Searched):
    """The file of a zip archive as `zipfile` reads the list of files in it."""

    def read(self, n: int = -1) -> bytes:
        self.charge(_PER_BYTE * max(n, 0))
        return super().read(n)


def _unfolds(member: zipfile.ZipInfo) -> bool:
    """Whether a file may be larger than it lies there: both of its sizes are what the archive says."""
    return member.compress_type != zipfile.ZIP_STORED or member.compress_size != member.file_size


class ZipFiles(_Files):
    """Files in a zip archive."""

    protocol = "mxcore-zip"

    def _search(self, file: Any, name: str, unfolds: bool) -> None:
        directory: Any = _Directory(file, name, unfolds)  # as much of a file as it needs
        self._zip = zipfile.ZipFile(directory)
        self._zip.fp = file
        self._members = {_tidy(member.filename): member for member in self._zip.infolist()}

    def _info(self, name: str, member: zipfile.ZipInfo) -> dict[str, Any]:
        return {
            "name": name,
            "size": member.file_size,
            "type": "directory" if member.is_dir() else "file",
            "compress_type": member.compress_type,
            "unfolds": _unfolds(member),
        }

    def _open(self, path: str, mode: str = "rb", **_: Any) -> IO[bytes]:
        member = self._members.get(self._strip_protocol(path))
        if member is None:
            raise FileNotFoundError(path)
        file: Any = self._zip.open(member)
        file.size, file.unfolds = member.file_size, _unfolds(member)
        return file  # type: ignore[no-any-return]
