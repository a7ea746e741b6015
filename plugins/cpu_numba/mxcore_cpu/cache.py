"""Compiled code on disk: what is kept, where, and why what is read back may be trusted.

Numba's own cache unpickles and links whatever it finds in its files: one flipped bit there ends the process. Here each
overload of a kernel is one file, which begins with a digest over its name and all that follows; nothing else is looked
at before that digest has been found right. A file that is damaged, cut short or of another making counts as missing:
the kernel is compiled again, and the file replaced. The name holds all that the code depends on: the kernel's source,
the functions and constants that it names, types of arguments, processor, and the versions of Python, Numba, llvmlite
and NumPy. Files are written aside and renamed, so that processes that write one entry at once do no harm. Entries that
nobody has used for three months go, those of other versions too.

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
import pickle
import platform
import re
import stat
import sys
import tempfile
import time
import types
import uuid
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Places", "attach", "folder", "load", "places", "save", "source_stamp"]

_MAGIC = b"mxcore-code-1\n"
_DIGEST = 32
#: Seconds after which a file that was never renamed has lost its writer; after which use of an entry is noted again;
#: and after which an entry that was not used is of a version, or of a network, that is gone.
_ORPHAN, _NOTED, _UNUSED = 3600, 86400, 90 * 86400
_FOLDER = re.compile("numba-[0-9a-f]{16}")
_HERE = Path(__file__).parent


class Places(NamedTuple):
    """Where compiled code is looked for, in order, and the folder it is written to; None where there is none."""

    read: tuple[Path, ...]
    write: Path | None


@functools.cache
def folder() -> Path:
    """Return the folder for compiled code: ``numba-<hash>`` in ``MXCORE_CACHE_DIR`` or the user's cache folder."""
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
    for path in (_HERE / "cache.py", _HERE / "jit.py", _HERE / "math.py", *sorted((_HERE / "kernels").glob("*.py"))):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    root = os.path.expanduser(root)
    return Path(root if root.startswith("~") else os.path.abspath(root)) / f"numba-{digest.hexdigest()[:16]}"


@functools.cache
def places() -> Places:
    """Return the folders in use; the first call makes them, and warns if the proper one will not do."""
    wanted = folder()
    wrong = _unfit(wanted)
    if not wrong and os.access(wanted, os.W_OK | os.X_OK):
        return Places((wanted,), wanted)
    readable = () if wrong else (wanted,)
    makers: tuple[Callable[[], Path], ...] = (
        lambda: _own_temporary(wanted.name),
        lambda: Path(tempfile.mkdtemp(prefix="mxcore-")),
    )
    for make in makers:
        with contextlib.suppress(OSError):  # also where there is no folder for temporary files at all
            path = make()
            if not _unfit(path) and os.access(path, os.W_OK | os.X_OK):
                _warn(wanted, wrong or "it cannot be written", f"is kept in {path}")
                return Places((*readable, path), path)
    _warn(wanted, wrong or "it cannot be written", "is kept in memory only")
    return Places(readable, None)


def _warn(wanted: Path, why: str, instead: str) -> None:
    warnings.warn(
        f"compiled code {instead}, because {wanted} cannot be used: "
        f"{why}; set MXCORE_CACHE_DIR to a folder of your own",
        stacklevel=2,
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
            with contextlib.suppress(OSError):
                os.chmod(path, found.st_mode & 0o755)
                found = os.stat(path)
    except OSError as e:
        return f"{type(e).__name__}: {e.strerror}"
    if not _ours(found):
        return "it belongs to another user, or others may write to it"
    return None


def _others_write(found: os.stat_result) -> bool:
    return os.name == "posix" and bool(found.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _ours(found: os.stat_result) -> bool:
    """Whether nobody but this user or root can have written it."""
    return os.name != "posix" or found.st_uid in (os.geteuid(), 0) and not _others_write(found)


# -- entries ------------------------------------------------------------------------------------------------------
def load(name: str) -> bytes | None:
    """Return the content of an entry; None if there is none that is whole and ours."""
    for where in places().read:
        try:
            with open(where / name, "rb", opener=_at_once) as f:
                found = os.fstat(f.fileno())
                data = f.read() if stat.S_ISREG(found.st_mode) and _ours(found) else b""
        except OSError:
            continue
        begin = len(_MAGIC) + _DIGEST
        if data[:begin] == _MAGIC + _digest(name, data[begin:]):
            if found.st_mtime < time.time() - _NOTED:
                with contextlib.suppress(OSError):
                    os.utime(where / name)
            return data[begin:]
    return None


def _at_once(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # a pipe would wait for its other end


def save(name: str, content: bytes) -> None:
    """Write an entry, whole or not at all; what cannot be written is compiled again the next time."""
    where = places().write
    if where is None:
        return
    _sweep(where)
    part = where / f".{uuid.uuid4().hex}.tmp"
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600), "wb") as f:
            f.write(_MAGIC + _digest(name, content) + content)
        os.replace(part, where / name)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(part)


def _digest(name: str, content: bytes) -> bytes:
    found = hashlib.blake2b(name.encode(), digest_size=_DIGEST)
    found.update(content)
    return found.digest()


@functools.cache
def _sweep(where: Path) -> None:
    """Remove what killed writers left and what nobody uses, other versions' too; once in a process."""
    now = time.time()
    beside = where.parent.glob("numba-*") if _FOLDER.fullmatch(where.name) else ()
    for place in {where, *(p for p in beside if _FOLDER.fullmatch(p.name))}:
        with contextlib.suppress(OSError):
            found = os.lstat(place)
            if not stat.S_ISDIR(found.st_mode) or not _ours(found):
                continue
            old = [
                p for p in place.iterdir() if p.lstat().st_mtime < now - (_ORPHAN if p.suffix == ".tmp" else _UNUSED)
            ]
            for path in old:
                if path.suffix in (".tmp", ".code"):
                    path.unlink()
            if old and place != where:
                place.rmdir()  # if nothing is left in it


# -- Numba --------------------------------------------------------------------------------------------------------
@functools.lru_cache(256)
def _file_digest(path: str, mtime: int, size: int) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _of_file(path: str) -> str:
    found = os.stat(path)
    return _file_digest(path, found.st_mtime_ns, found.st_size)


def source_stamp(function: Callable[..., Any], *options: Any) -> str | None:
    """Return what tells the code of a function from any other.

    Parameters
    ----------
    function : callable
    *options
        What it is compiled with.

    Returns
    -------
    str or None
        A digest over its file, what it has taken from around it, and all this of the functions and constants that it
        names, wherever they are from; None where that cannot be told, so that nothing may be kept.
    """
    found = hashlib.sha256(repr(options).encode())
    try:
        _of_file(function.__code__.co_filename)
        _take_in(function, found, set())
    except (OSError, _Untold):
        return None
    return found.hexdigest()


class _Untold(Exception):
    """A value that may be another one the next time, and does not say so."""


def _take_in(value: Any, digest: Any, seen: set[int]) -> None:
    """Add a value that code depends on to its digest."""
    if id(value) in seen:
        return
    kind = type(value)
    if isinstance(value, types.FunctionType):
        seen.add(id(value))
        with contextlib.suppress(FileNotFoundError):  # made from a text: its code tells all
            digest.update(_of_file(value.__code__.co_filename).encode())
        _take_in((value.__module__, value.__qualname__, value.__defaults__), digest, seen)
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or ()):
            _take_in((name, cell.cell_contents), digest, seen)
        _take_in_code(value.__code__, value.__globals__, digest, seen)
    elif hasattr(value, "__wrapped__"):  # a kernel or helper; what one has several bodies of, its maker holds
        seen.add(id(value))
        _take_in(value.__wrapped__, digest, seen)
        for cell in getattr(getattr(value, "_make", None), "__closure__", None) or ():
            _take_in(cell.cell_contents, digest, seen)
    elif isinstance(value, np.ndarray):
        digest.update(f"{value.dtype.str}{value.shape}".encode() + value.tobytes())
    elif kind in (tuple, list, dict, set, frozenset):
        digest.update(f"{kind.__name__}{len(value)}".encode())
        for item in sorted(value, key=repr) if kind in (set, frozenset) else value.items() if kind is dict else value:
            _take_in(item, digest, seen)
    elif isinstance(value, (type, types.ModuleType, types.BuiltinFunctionType, np.ufunc)):
        digest.update(f"{getattr(value, '__module__', '')}.{value.__name__};".encode())
    elif " at 0x" not in (text := repr(value)):
        digest.update(f"{kind.__qualname__}:{text};".encode())
    else:
        raise _Untold


def _take_in_code(code: types.CodeType, around: dict[str, Any], digest: Any, seen: set[int]) -> None:
    digest.update(f"{code.co_firstlineno};{code.co_names}{code.co_varnames}".encode() + code.co_code)
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            _take_in_code(const, around, digest, seen)
        else:
            _take_in(const, digest, seen)
    for name in code.co_names:
        if name in around:
            _take_in((name, around[name]), digest, seen)


@functools.cache
def _versions() -> str:
    import llvmlite
    import numba

    return "|".join((numba.__version__, llvmlite.__version__, np.__version__, sys.version, platform.platform()))


def attach(dispatcher: Any, stamp: str | None) -> Any:
    """Let a dispatcher of Numba keep what it compiles here.

    Parameters
    ----------
    dispatcher : numba dispatcher
    stamp : str or None
        What its code depends on beside the sources in this folder; None: nothing is kept.
    """
    if stamp is not None:
        with contextlib.suppress(ImportError, AttributeError):  # a Numba with other insides: compiled in memory
            dispatcher._cache = _overloads()(dispatcher.py_func, stamp)
    return dispatcher


@functools.cache
def _overloads() -> Any:
    from numba.core import caching, serialize
    from numba.core.compiler import CompileResult

    class Overloads(caching._Cache):  # type: ignore[misc]  # Numba comes without types
        """The overloads of one function."""

        def __init__(self, function: Callable[..., Any], stamp: str) -> None:
            self._name = f"{function.__module__}.{function.__qualname__}".replace("<", "").replace(">", "")[-80:]
            self._stamp = "\n".join(
                (
                    stamp,
                    function.__module__,
                    function.__qualname__,
                    str(function.__code__.co_firstlineno),
                    hashlib.sha256(function.__code__.co_code).hexdigest(),
                    _versions(),
                )
            )

        def _entry(self, sig: Any, codegen: Any) -> str:
            text = "\n".join((self._stamp, str(sig), str(codegen.magic_tuple())))
            return f"{self._name}-{hashlib.sha256(text.encode()).hexdigest()[:32]}.code"

        @property
        def cache_path(self) -> str:
            return str(places().write)

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            try:
                target_context.refresh()
                content = load(self._entry(sig, target_context.codegen()))
                return None if content is None else CompileResult._rebuild(target_context, *pickle.loads(content))
            except Exception:  # whole, and yet not for this process: compiled again
                return None

        def save_overload(self, sig: Any, data: Any) -> None:
            if any(not x.can_cache for x in data.lifted) or data.library.has_dynamic_globals:
                return
            try:
                content = serialize.dumps(data._reduce())
            except Exception:  # something that cannot be pickled
                return
            save(self._entry(sig, data.codegen), content)

        def enable(self) -> None:
            """Nothing to do."""

        def disable(self) -> None:
            """Nothing to do."""

        def flush(self) -> None:
            """Nothing to do: a name is never used for other code."""

    return Overloads
