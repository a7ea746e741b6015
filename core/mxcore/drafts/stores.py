"""Where files in stores are written."""

from __future__ import annotations

import contextlib
import errno
import os

from .._file_names import explained
from ..urls import links, store, uncached
from .caches import forget
from .names import OURS, token
from .place import Place

__all__ = ["Remote"]

# Stores where an object appears only once its upload is complete: a rename there is a second full copy.
_OBJECT_STORES = frozenset(("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oss", "obs", "oci"))


class Remote(Place):
    """A file in a store: written under another name and moved, or uploaded, and shown once it is complete.

    Parameters
    ----------
    url : str
    """

    def __init__(self, url: str) -> None:
        with explained(url, "write", foreign=True):  # an archive may be damaged
            found, self._path = store(url, writing=True)
            self._fs, self._caches = uncached(found)
        self._moved = _OBJECT_STORES.isdisjoint(links(url))
        folder, slash, _ = self._path.rpartition("/")
        self._at = f"{folder}{slash}{OURS}{token()}.tmp" if self._moved else self._path
        with explained(url, "write", foreign=True):
            # A move to a folder goes into it; an object may be named as others begin.
            if url.endswith("/") or (self._moved and self._fs.isdir(self._path)):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            self.file = self._fs.open(self._at, "wb")

    def seal(self) -> None:
        """Upload what is moved afterwards; of an object the upload is the last step."""
        if self._moved:
            self.file.close()

    def put(self) -> None:
        """Let it take its place; caches forget what was there."""
        self.file.close()
        if self._moved:
            try:
                self._fs.mv(self._at, self._path)
            except NotImplementedError:
                raise OSError("the store cannot rename files, so it cannot replace one whole; use another") from None
        forget(self._caches, self._path)

    def drop(self, mine: bool) -> None:
        with contextlib.suppress(Exception):
            self.file.discard()
        with contextlib.suppress(Exception):
            self.file.closed = True  # else it would complete itself when it is collected
        if mine and self._moved:
            with contextlib.suppress(Exception):
                self._fs.rm_file(self._at)
