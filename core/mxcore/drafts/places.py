"""Where local files are written: beside their targets, or in place where nothing can be put beside them."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
from typing import Any

from .._file_names import explained, local_path
from .._interrupts import Uninterrupted, descriptor
from .locks import alone, create, fcntl, same, sync_folder
from .names import behind_links, waits_at
from .place import Place
from .raw import Raw
from .rights import may_be_replaced, takes_over
from .sweep import settle_waiting, sweep

__all__ = ["local_place"]

_BUFFER = 1 << 18


class _InPlace(Place):
    """A pipe, a device, a file that nothing can be put beside."""

    def __init__(self, path: str) -> None:
        self._raw = Raw(path, "w", 0o666)
        self.file = io.BufferedWriter(self._raw, _BUFFER)

    @property
    def problem(self) -> OSError | None:
        return self._raw.problem

    def seal(self) -> None:
        self.file.flush()

    def put(self) -> None:
        self.file.close()

    def drop(self, mine: bool) -> None:
        with contextlib.suppress(OSError):
            self.file.close()


class _Beside(_InPlace):
    """A file beside a local target, under a lock."""

    def __init__(self, target: str, old: os.stat_result | None) -> None:
        self.target = target
        #: What it is called while it waits, from when it may be.
        self.waiting: str | None = None
        sweep(target)  # what dead writers have left takes room on the disk
        raw: Raw | None = None
        try:
            with Uninterrupted():  # else a draft would stay until the next file is written
                # Nobody opens it before it has the old mode.
                raw, self.path = create(target, 0o666 if old is None else 0o600)
                self._raw = raw
                if old is not None and not takes_over(raw.fileno(), self.path, target, old):
                    raise PermissionError(errno.EPERM, "not all rights can be kept", target)
                self.file = io.BufferedWriter(self._raw, _BUFFER)
        except BaseException:
            if raw is not None:
                raw.close()
                os.unlink(self.path)
            raise

    def seal(self) -> None:
        self.file.flush()
        os.fsync(self.file.fileno())

    def alone(self) -> Any:
        return alone(os.path.dirname(self.target))

    def tidy(self) -> None:
        settle_waiting(self.target)

    def wait_for(self, other: Place) -> bool:
        if not isinstance(other, _Beside):
            return False
        self.waiting = waits_at(self.target, os.fstat(other.file.fileno()))
        os.replace(self.path, self.waiting)
        self.path = self.waiting
        return True

    def placed(self) -> bool:
        # It has been renamed: nobody else has a reason to touch its name.
        return not os.path.lexists(self.path)

    def put(self) -> None:
        if fcntl is None:
            self.file.close()  # an open file cannot be renamed
        try:
            try:
                os.replace(self.path, self.target)
            except FileNotFoundError:
                if self.waiting is None:
                    raise
                os.replace(self.waiting, self.target)  # its new name was not noted yet
        except FileNotFoundError:
            # Where a machine sees no locks of others, as on some network disks, a reader there may have settled it
            # already.
            if fcntl is None or not same(self.file.fileno(), self.target):
                raise
        self.file.close()
        sync_folder(os.path.dirname(self.target))

    def drop(self, mine: bool) -> None:
        if mine and not self.kept and fcntl is not None:
            for path in {self.path, self.waiting or self.path}:
                with contextlib.suppress(OSError):
                    os.unlink(path)
        super().drop(mine)
        if mine and not self.kept and fcntl is None:
            with contextlib.suppress(OSError):
                os.unlink(self.path)


def _try_to_write(path: str) -> None:
    """Open a file that is there as a writer would; an OSError tells why it cannot be."""
    try:
        # It has an owner from the first moment on: a signal's handler may raise at any time.
        with Uninterrupted(), io.FileIO(path, "r+"):
            pass
    except PermissionError:
        # It may be one that can be written and not read.
        with Uninterrupted(), descriptor(path, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0)):
            pass


def local_place(name: str) -> _InPlace:
    """Where a local file is written: beside it wherever a new one may take its place, else in place.

    Parameters
    ----------
    name : str
        Its path.
    """
    path = local_path(name)
    with explained(name, "write"):
        if path.endswith((os.sep, os.altsep or os.sep)):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        target = behind_links(path)
        try:
            old = os.stat(path)
        except FileNotFoundError:
            old = None
        if target is None or (old is not None and not stat.S_ISREG(old.st_mode)):
            return _InPlace(path)
        if old is not None:
            try:  # opening tells, too, that another process has removed it meanwhile
                _try_to_write(path)
            except FileNotFoundError:
                old = None
        if old is not None and not may_be_replaced(target, old):
            return _InPlace(path)
        try:
            return _Beside(target, old)
        except PermissionError:
            if old is None:
                raise
            return _InPlace(path)  # no new file can take its place, but it may be written
