"""Compiled code on disk: what plugins keep, where, and why what is read back may be trusted.

What loads compiled code runs whatever it finds: one flipped bit there ends the process. Here each entry is one file,
which begins with a digest over its name and all that follows; nothing else is looked at before that digest has been
found right. A file that is damaged, cut short or of another making counts as missing: the code is compiled again, and
the file replaced. Files are written aside and renamed, so that processes that write one entry at once do no harm.
Entries that nobody has used for three months go, those of other versions too; and where there is more than
MXCORE_CACHE_BYTES allows, those that were not used for longest. Who reads one that goes has it open, and reads on.

A digest proves that nothing was damaged, not who wrote it, and code that is loaded can do anything. So the folder and
each file must belong to the user (or to root), and nobody else may write there. A folder of one's own that others may
write to is closed to them; one of somebody else is not used. Where the folder cannot be used or written, a private one
among the system's temporary files takes its place, and one warning says so. What finds no room in the folder is
compiled again by the next process; a warning says so, too. Nothing is ever written next to the sources.
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
from typing import ClassVar, NamedTuple

from ._interrupts import descriptor, let_through, suppress

__all__ = ["CodeCache", "Places"]

_MAGIC = b"mxcore-code-1\n"
_DIGEST = 32
#: How an entry is opened: a pipe of its name would wait for its other end.
_AT_ONCE = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)
#: Seconds after which a file that was never renamed has lost its writer; after which use of an entry is noted again;
#: and after which an entry that was not used is of a version, or of a network, that is gone.
_ORPHAN, _NOTED, _UNUSED = 3600, 3600, 90 * 86400
#: Bytes of entries, those of other versions too; and which share of that is left when there were more, so that
#: one does not go for each that comes. A process that has written the rest by itself looks again.
_BYTES, _LEFT = 1 << 30, 0.8


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

    Attributes
    ----------
    unkept : dict of Path to str
        Of all caches of this process: entries that could not be written, or stay, and why.

    Examples
    --------
    >>> from mxcore.codecache import CodeCache
    >>> cache = CodeCache("example", lambda: [])
    >>> cache.save("a.code", b"machine code")
    >>> cache.load("a.code")
    b'machine code'
    """

    unkept: ClassVar[dict[Path, str]] = {}

    def __init__(self, kind: str, sources: Callable[[], Iterable[Path]]) -> None:
        self.kind, self._sources = kind, sources
        self._names = re.compile(f"{kind}-[0-9a-f]{{16}}")
        #: Folder -> bytes that this process has written there since it has looked what may go.
        self._written: dict[Path, int] = {}
        #: What it has written.
        self._saved: set[Path] = set()

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
                with descriptor(os.fspath(where / name), _AT_ONCE) as handle, open(handle, "rb", closefd=False) as f:
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
        """Write an entry, whole or not at all; what cannot be written is `unkept`, and compiled again the next time.

        Parameters
        ----------
        name : str
            Ends in ``.code``; says all that the content depends on beside the sources.
        content : bytes
        """
        where = self.places.write
        if where is None:
            self.unkept[self.folder / name] = "no folder can be written"
            return
        written = self._written.get(where)
        if written is None or written + len(content) > (most := _most()) - _LEFT * most > 0:
            written = 0
            self._sweep(where)
        self._written[where] = written + len(content)
        part = where / f".{uuid.uuid4().hex}.tmp"
        try:
            with open(part, "xb", opener=functools.partial(os.open, mode=0o600)) as f:
                f.write(_MAGIC + _digest(name, content) + content)
            os.replace(part, where / name)
            self._saved.add(where / name)
        except OSError as e:
            with contextlib.suppress(OSError):
                os.unlink(part)
            let_through(e)
            if not os.path.exists(where / name):  # a reader of it may have been in the way
                self.unkept[where / name] = why = e.strerror or str(e)
                _warn_once(
                    f"compiled code cannot be kept in {where}: {why}; each process will compile it again; "
                    "make room there, or set MXCORE_CACHE_DIR to a folder that has some"
                )

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
                    with suppress(OSError):
                        os.unlink(lock)
                    with suppress(OSError):
                        # Also of a child that was forked meanwhile, which has it open.
                        fcntl.flock(file, fcntl.LOCK_UN)

    def _sweep(self, where: Path) -> None:
        """Remove what killed writers left and what nobody uses, other versions' too; when a process begins to write."""
        beside = where.parent.glob(f"{self.kind}-*") if self._names.fullmatch(where.name) else ()
        places: list[Path] = []
        with suppress(OSError):
            places += {where, *(p for p in beside if self._names.fullmatch(p.name))}
        entries: list[_Entry] = []
        emptied: set[Path] = set()
        for place in places:
            stay, gone = _left(place)
            entries += stay
            if gone:
                emptied.add(place)
        for path in _too_much(entries):  # the folder stays: a process of another version may write to it
            if _removed(path) and path in self._saved:
                self.unkept[path] = "MXCORE_CACHE_BYTES allows less than this process needs"
        for place in emptied - {where}:
            with suppress(OSError):
                place.rmdir()  # if nothing is left in it


class _Entry(NamedTuple):
    """A file with code, by when it was last used."""

    used: float
    size: int
    path: Path


def _left(place: Path) -> tuple[list[_Entry], bool]:
    """The entries of a folder of ours, and whether others have gone."""
    stay: list[_Entry] = []
    gone, now = False, time.time()
    try:
        found = os.lstat(place)
        files = [*os.scandir(place)] if stat.S_ISDIR(found.st_mode) and _ours(found) else []
    except OSError as e:
        let_through(e)
        return [], False
    for file in files:
        path = Path(file.path)
        if path.suffix not in (".tmp", ".lock", ".code"):
            continue
        with suppress(OSError):  # another process may have removed it
            about = file.stat(follow_symlinks=False)
            if about.st_mtime < now - (_UNUSED if path.suffix == ".code" else _ORPHAN):
                gone |= _removed(path)
            elif path.suffix == ".code":
                stay.append(_Entry(about.st_mtime, about.st_size, path))
    return stay, gone


def _too_much(entries: Iterable[_Entry]) -> Iterator[Path]:
    """The entries that were not used for longest, where all of them are more than is allowed."""
    most, left = _most(), sum(e.size for e in entries)
    if not 0 < most < left:
        return
    for entry in sorted(entries):
        if left <= _LEFT * most:
            return
        left -= entry.size
        yield entry.path


def _removed(path: Path) -> bool:
    """Whether a file is gone; where it may not be removed, or somebody reads it on Windows, it stays."""
    with suppress(OSError):
        path.unlink()
        return True
    return False


def _most() -> int:
    """Bytes of entries; 0: as many as come."""
    from .base import MXNetError
    from .limits import whole_number

    try:
        return whole_number("MXCORE_CACHE_BYTES", _BYTES, least=0)
    except MXNetError as e:  # no reason to stop computing
        _warn_once(f"{e}; {_BYTES} counts")
        return _BYTES


@functools.cache
def _warn_once(text: str) -> None:
    warnings.warn(text, stacklevel=5)


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


def _digest(name: str, content: bytes) -> bytes:
    found = hashlib.blake2b(name.encode(), digest_size=_DIGEST)
    found.update(content)
    return found.digest()
