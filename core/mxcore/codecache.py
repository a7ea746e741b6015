"""Compiled code on disk: what plugins keep, where, and why what is read back may be trusted.

What loads compiled code runs whatever it finds: one flipped bit there ends the process. Here each entry is one file,
which begins with a digest over its name and all that follows; nothing else is looked at before that digest has been
found right. A file that is damaged, cut short or of another making counts as missing: the code is compiled again, and
the file replaced. Files are written aside and renamed, so that processes that write one entry at once do no harm.
Entries that nobody has used for three months go, those of other versions too.

A digest proves that nothing was damaged, not who wrote it, and code that is loaded can do anything. So the folder and
each file must belong to the user (or to root), and nobody else may write there. A folder of one's own that others may
write to is closed to them; one of somebody else is not used. Where the folder cannot be used or written, a private one
among the system's temporary files takes its place, and one warning says so. Nothing is ever written next to the
sources.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import stat
import sys
import tempfile
import time
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ._interrupts import Uninterrupted, let_through, suppress

__all__ = ["CodeCache", "Places"]

_MAGIC = b"mxcore-code-1\n"
_DIGEST = 32
#: Seconds after which a file that was never renamed has lost its writer; after which use of an entry is noted again;
#: and after which an entry that was not used is of a version, or of a network, that is gone.
_ORPHAN, _NOTED, _UNUSED = 3600, 86400, 90 * 86400


#: Seconds that an entry is waited for while another process makes it; the largest take some ten.
_PATIENCE = 30.0


class Places(NamedTuple):
    """Where compiled code is looked for, in order, and the folder it is written to; None where there is none."""

    read: tuple[Path, ...]
    write: Path | None


class CodeCache:
    """What one compiler makes, in a folder of its own: ``<kind>-<hash>`` in MXCORE_CACHE_DIR or the user's caches.

    Parameters
    ----------
    kind : str
        Of letters; begins the folder's name.
    sources : callable
        ``() -> paths``: the files that all entries depend on; their hash is part of the folder's name.

    Examples
    --------
    >>> from mxcore.codecache import CodeCache
    >>> cache = CodeCache("example", lambda: [])
    >>> cache.save("a.code", b"machine code")
    >>> cache.load("a.code")
    b'machine code'
    """

    def __init__(self, kind: str, sources: Callable[[], Iterable[Path]]) -> None:
        self.kind, self._sources = kind, sources
        self._names = re.compile(f"{kind}-[0-9a-f]{{16}}")
        self._swept: set[Path] = set()

    @functools.cached_property
    def folder(self) -> Path:
        """The folder that is wanted."""
        root = os.environ.get("MXCORE_CACHE_DIR")
        if not root:
            if sys.platform == "win32":
                base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
            elif sys.platform == "darwin":
                base = "~/Library/Caches"
            else:
                base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
            root = os.path.join(base, "mxcore")
        digest = hashlib.sha256()
        for path in self._sources():
            digest.update(path.name.encode())
            digest.update(path.read_bytes())
        root = os.path.expanduser(root)
        return Path(root if root.startswith("~") else os.path.abspath(root)) / f"{self.kind}-{digest.hexdigest()[:16]}"

    @functools.cached_property
    def places(self) -> Places:
        """The folders in use; they are made at first use, with a warning if the proper one will not do."""
        wanted = self.folder
        wrong = _unfit(wanted)
        if not wrong and os.access(wanted, os.W_OK | os.X_OK):
            return Places((wanted,), wanted)
        readable = () if wrong else (wanted,)
        makers: tuple[Callable[[], Path], ...] = (
            lambda: _own_temporary(wanted.name),
            lambda: Path(tempfile.mkdtemp(prefix="mxcore-")),
        )
        for make in makers:
            with suppress(OSError):  # also where there is no folder for temporary files at all
                path = make()
                if not _unfit(path) and os.access(path, os.W_OK | os.X_OK):
                    _warn(wanted, wrong or "it cannot be written", f"is kept in {path}")
                    return Places((*readable, path), path)
        _warn(wanted, wrong or "it cannot be written", "is kept in memory only")
        return Places(readable, None)

    def load(self, name: str) -> bytes | None:
        """The content of an entry; None if there is none that is whole and ours."""
        for where in self.places.read:
            try:
                with open(where / name, "rb", opener=_at_once) as f:
                    found = os.fstat(f.fileno())
                    data = f.read() if stat.S_ISREG(found.st_mode) and _ours(found) else b""
            except OSError as e:
                let_through(e)
                continue
            begin = len(_MAGIC) + _DIGEST
            if data[:begin] == _MAGIC + _digest(name, data[begin:]):
                if found.st_mtime < time.time() - _NOTED:
                    with suppress(OSError):
                        os.utime(where / name)
                return data[begin:]
        return None

    def save(self, name: str, content: bytes) -> None:
        """Write an entry, whole or not at all; what cannot be written is compiled again the next time.

        Parameters
        ----------
        name : str
            Ends in ``.code``; says all that the content depends on beside the sources.
        content : bytes
        """
        where = self.places.write
        if where is None:
            return
        if where not in self._swept:
            self._swept.add(where)
            self._sweep(where)
        part = where / f".{uuid.uuid4().hex}.tmp"
        try:
            with Uninterrupted():  # a file closes itself, a descriptor does not
                made = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
                file = open(made, "wb")  # noqa: SIM115
            with file as f:
                f.write(_MAGIC + _digest(name, content) + content)
            os.replace(part, where / name)
        except OSError as e:
            with contextlib.suppress(OSError):
                os.unlink(part)
            let_through(e)

    def made(self, name: str, make: Callable[[], bytes]) -> bytes:
        """The content of an entry, which is made and written if it is not there."""
        content = self.load(name)
        if content is None:
            with self.making(name):
                content = self.load(name)  # another process may have made it meanwhile
                if content is None:
                    content = make()
                    self.save(name, content)
        return content

    @contextlib.contextmanager
    def making(self, name: str) -> Iterator[None]:
        """While an entry is made: another process that wants it waits here, and finds it afterwards.

        The system ends the lock with the process; where files cannot be locked, both make it. So do they where it takes
        too long: who makes it may have been stopped, or killed while a child of its has the lock, too.
        """
        where = self.places.write
        if where is None:
            yield
            return
        lock = where / f".{name}.lock"
        try:
            import fcntl

            file = open(lock, "ab")  # noqa: SIM115  # closes itself, whatever interrupts
        except (ImportError, OSError) as e:
            let_through(e)
            yield
            return
        with file:
            mine, end, pause = False, time.monotonic() + _PATIENCE, 0.001
            try:
                with suppress(OSError):
                    while not mine and time.monotonic() < end:
                        try:
                            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                            mine = True
                        except BlockingIOError:
                            time.sleep(pause)
                            pause = min(2 * pause, 0.1)
                yield
            finally:
                if mine:
                    with contextlib.suppress(OSError):
                        os.unlink(lock)
                    with contextlib.suppress(OSError):
                        # Also of a child that was forked meanwhile, which has it open.
                        fcntl.flock(file, fcntl.LOCK_UN)

    def _sweep(self, where: Path) -> None:
        """Remove what killed writers left and what nobody uses, other versions' too; once in a process."""
        now = time.time()
        beside = where.parent.glob(f"{self.kind}-*") if self._names.fullmatch(where.name) else ()
        for place in {where, *(p for p in beside if self._names.fullmatch(p.name))}:
            with suppress(OSError):
                found = os.lstat(place)
                if not stat.S_ISDIR(found.st_mode) or not _ours(found):
                    continue
                old = [
                    p
                    for p in place.iterdir()
                    if p.lstat().st_mtime < now - (_UNUSED if p.suffix == ".code" else _ORPHAN)
                ]
                for path in old:
                    if path.suffix in (".tmp", ".lock", ".code"):
                        path.unlink()
                if old and place != where:
                    place.rmdir()  # if nothing is left in it


def _warn(wanted: Path, why: str, instead: str) -> None:
    warnings.warn(
        f"compiled code {instead}, because {wanted} cannot be used: "
        f"{why}; set MXCORE_CACHE_DIR to a folder of your own",
        stacklevel=4,
    )


def _own_temporary(name: str) -> Path:
    """This user's folder among the temporary files: one for all processes, so that they share what they compile."""
    user = os.geteuid() if hasattr(os, "geteuid") else os.environ.get("USERNAME", "user")
    return Path(tempfile.gettempdir()) / f"mxcore-{user}" / name


def _unfit(path: Path) -> str | None:
    """Make a folder if it is missing; return why it must not be used, or None."""
    if path.parts[0].startswith("~"):
        return "this user has no home folder"
    try:
        for here in (path.parent, path):
            with contextlib.suppress(FileExistsError):
                os.makedirs(here, mode=0o700)
        found = os.stat(path)
        if not stat.S_ISDIR(found.st_mode):
            return "it is no folder"
        if _others_write(found) and found.st_uid == os.geteuid():
            with suppress(OSError):
                os.chmod(path, found.st_mode & 0o755)
                found = os.stat(path)
    except OSError as e:
        let_through(e)
        return f"{type(e).__name__}: {e.strerror}"
    if not _ours(found):
        return "it belongs to another user, or others may write to it"
    return None


def _others_write(found: os.stat_result) -> bool:
    return os.name == "posix" and bool(found.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _ours(found: os.stat_result) -> bool:
    """Whether nobody but this user or root can have written it."""
    return os.name != "posix" or found.st_uid in (os.geteuid(), 0) and not _others_write(found)


def _at_once(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # a pipe would wait for its other end


def _digest(name: str, content: bytes) -> bytes:
    found = hashlib.blake2b(name.encode(), digest_size=_DIGEST)
    found.update(content)
    return found.digest()
