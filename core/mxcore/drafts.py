"""Drafts: files that are written aside and take their place whole, or not at all.

The one mechanism behind every writer of the library and its plugins. Locally a draft is a file beside its target; it is
locked while its writer lives, and reaches the disk (fsync) before it is renamed over the target. A writer that is
killed leaves the old file as it was, and a draft that nobody holds, which the next writer of that file removes, and
after an hour the next writer of any file of the folder.

Files that belong together, such as records and their index, or arrays, their graph and the states of their optimizer,
are completed by :func:`commit`, or :func:`together` where several writers make them. Between the renames the others
wait under names that are made of what the first now is, so that :func:`settle` can finish what a killed writer had
begun.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import inspect
import io
import os
import re
import signal
import stat
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FrameType
from typing import Any, TypeVar

from ._interrupts import Uninterrupted, let_through, suppress
from ._io_files import checked, explained, local_path
from ._locks import fork_safe_lock
from .base import error
from .urls import facts, is_url, links, store, uncached

try:
    import fcntl
except ImportError:  # Windows, where a file that is open cannot be removed
    fcntl = None  # type: ignore[assignment]

__all__ = ["Draft", "atomic_writer", "atomic_writers", "commit", "read_pair", "settle", "together"]

_BUFFER = 1 << 18

#: How often a pair is read anew that its writers replace meanwhile.
_TRIES = 100

Found = TypeVar("Found")


class _Block:
    """A block of `together`: the files it is for, and what was committed of them and waits for its end."""

    def __init__(self, paths: tuple[str | os.PathLike[str], ...], frame: FrameType) -> None:
        self.held: list[Draft] = []
        self.names = set(map(_called, paths))
        self.frame = frame
        self.handlers = _handlers()

    def __del__(self) -> None:
        """Leave nothing of one that an interrupt ended unseen."""
        for draft in self.held:
            draft.discard()

    def is_for(self, paths: Iterable[str | os.PathLike[str]]) -> bool:
        """Whether one of these is its own, and written by its own code.

        A signal handler may run in between, and what it saves must not wait: it may end the process. An interrupt
        between two instructions may have ended the block unseen, with the function that it is in.
        """
        return not self.names.isdisjoint(map(_called, paths)) and self._writes()

    def lives(self) -> bool:
        """Whether the function that it is in runs still."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame is not self.frame:
            frame = frame.f_back
        return frame is not None

    def _writes(self) -> bool:
        """Whether the code that runs now is the block's."""
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and frame is not self.frame:
            if frame.f_code in self.handlers or _gets(frame, frame.f_back):
                return False
            frame = frame.f_back
        return frame is not None


def _handlers() -> set[CodeType]:
    """The code of all functions that handle signals; they run in the main thread alone."""
    if threading.current_thread() is not threading.main_thread():
        return set()
    found: set[CodeType] = set()
    for number in signal.valid_signals():
        handler: Any = signal.getsignal(number)
        while isinstance(handler, functools.partial):
            handler = handler.func
        if callable(handler) and not inspect.isroutine(handler):
            handler = type(handler).__call__
        code = getattr(inspect.unwrap(handler) if callable(handler) else None, "__code__", None)
        found.update(c for c in (code, getattr(handler, "__code__", None)) if c is not None)
    return found


def _gets(frame: FrameType, below: FrameType | None) -> bool:
    """Whether a function has the frame of its caller as an argument: signal handlers are given that."""
    code = frame.f_code
    more = bool(code.co_flags & inspect.CO_VARARGS)
    for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + more]:
        value = frame.f_locals.get(name)
        if value is below or type(value) is tuple and any(v is below for v in value):
            return below is not None
    return False


class _Thread(threading.local):
    def __init__(self) -> None:
        #: The innermost block of `together`.
        self.block: _Block | None = None
        #: What is taking its place now, by id, in the order of beginning; a signal handler may come in between. What an
        #: interrupt has ended unseen is gone.
        self.commits: weakref.WeakValueDictionary[int, _Commit] = weakref.WeakValueDictionary()

    def held_by(self, paths: Iterable[str | os.PathLike[str]]) -> _Block | None:
        """The block that files wait for, if any."""
        block = self.block
        return block if block is not None and block.is_for(paths) else None


_thread = _Thread()

# Stores where an object appears only once its upload is complete: a rename there is a second full copy.
_OBJECT_STORES = frozenset(("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oss", "obs", "oci"))


class Draft:
    """A file that is being written and takes the place of `path` when it is committed.

    Parameters
    ----------
    path : str or os.PathLike
        A local path or an fsspec URL; a link is written through. Pipes and devices are written in place, and so are
        files that no new one can replace: because the folder takes none, or because this user cannot give it the
        owner, the group or the access control list of the old one.

    Raises
    ------
    MXNetError
        (also the matching OSError) naming the file and the reason, by every method. The old file is then untouched.

    Notes
    -----
    Mode, owner, group, access control list and extended attributes of an old file are kept, other names of it (hard
    links) keep the old content. A file may become this user's where its owner and this user have the same rights to it
    as members of its group. What is written in place is empty from the beginning, and half there if the writer fails.

    A forked child that inherits a draft can neither write nor complete it. Threads may share a draft: who commits or
    discards it waits for those that are in the middle of a write, and those that come later get an error.

    Examples
    --------
    >>> draft = Draft("memory://doc/draft")
    >>> draft.write(b"abc")
    >>> draft.position
    3
    >>> draft.commit()
    """

    __slots__ = ("_lock", "_pid", "_place", "done", "ended", "file", "name", "position")

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name = checked(path)
        self.position = 0
        #: Whether it takes no more, and whether it is in its place, or gone.
        self.ended = self.done = False
        self._pid = os.getpid()
        self._lock = fork_safe_lock()
        self._place: Any = _Remote(self.name) if is_url(self.name) else _local(self.name)
        #: The binary file object that `write` writes to.
        self.file = self._place.file

    def write(self, data: Any) -> None:
        """Append bytes."""
        try:
            size = memoryview(data).nbytes
        except TypeError:
            raise error(TypeError, f"cannot write {self.name!r}: bytes are needed, not {type(data).__name__}") from None
        with self._lock:
            self._still_open()
            try:
                self.file.write(data)
            except Exception as e:
                let_through(e)
                with self._explained():
                    raise e
            self.position += size

    def flush(self) -> None:
        """Hand what is buffered to the system; readers still see the old file."""
        with self._lock:
            self._still_open()
            with self._explained():
                self.file.flush()

    @property
    def failed(self) -> bool:
        """Whether a write has failed, so that the draft can only be discarded."""
        return self._place.problem is not None

    def commit(self) -> None:
        """Complete the file: it takes its place."""
        commit(self)

    def discard(self) -> None:
        """Leave everything as it was before."""
        if not self.done:
            self.done = True
            self._finish_writes()
            self._place.drop(mine=self._pid == os.getpid())

    def _finish_writes(self) -> None:
        """Take no more, and wait for who is in the middle of a write."""
        self.ended = True  # before the lock, which who writes on and on would hardly let go
        with self._lock:
            pass

    def _still_open(self) -> None:
        if self.ended:
            raise error(
                ValueError, f"cannot write {self.name!r}: its draft was committed or discarded; begin another Draft"
            )

    def _explained(self) -> Any:
        return explained(self.name, "write", foreign=is_url(self.name))


def commit(*drafts: Draft) -> None:
    """Complete drafts that belong together, all or none.

    Parameters
    ----------
    *drafts : Draft
        One, or several of which the others belong to the first, as an index does to records. What a writer that is
        killed between two of them leaves, `settle` finishes.

    Examples
    --------
    >>> records, index = Draft("memory://doc/a"), Draft("memory://doc/b")
    >>> commit(records, index)
    """
    todo = [draft for draft in drafts if not draft.done]
    for draft in todo:  # in their order: what the first has not taken, no other refers to
        draft._finish_writes()
    if any(draft._pid != os.getpid() for draft in todo):  # inherited: they are the parent's to complete
        for draft in todo:
            draft.discard()
        return
    block = _thread.held_by([draft.name for draft in todo])
    if block is not None:
        block.held += todo
        return
    waiting: list[Draft] = []
    now = _Commit(todo)
    # Not of the dictionary itself, which a signal handler may change meanwhile.
    before = [c for ref in _thread.commits.valuerefs() if (c := ref()) is not None and c.names & now.names]
    _thread.commits[id(now)] = now
    try:
        for draft in todo:
            with draft._explained():
                if draft.failed:
                    raise _again(draft._place.problem)
                draft._place.seal()
        for c in before:  # this is a signal handler in the middle of them: what is older comes first
            c.hurry()
        now.placing = True
        if now.overtaken:
            for draft in todo:
                draft.discard()
            return
        with todo[0]._place.alone() if len(todo) > 1 else contextlib.nullcontext():
            for draft in todo[1:]:
                with _unless_done(draft):
                    if draft._place.wait_for(todo[0]._place):
                        waiting.append(draft)
            now.put()
        for c in before:
            c.overtaken = True
    except BaseException:
        if waiting and todo[0]._place.placed():  # also if a signal came right behind the first renaming
            for draft in waiting:
                draft._place.kept = True  # they belong together: whoever reads or writes them next completes them
        for draft in todo:
            draft.discard()
        raise
    finally:
        _thread.commits.pop(id(now), None)


class _Commit:
    """Drafts that take their places; a signal handler that commits newer files of these names may come in between.

    Attributes
    ----------
    placing : bool
        Whether they are complete, and some may be in their places.
    overtaken : bool
        Whether newer ones are, so that these have no reason any more.
    """

    def __init__(self, drafts: list[Draft]) -> None:
        self.drafts, self.names = drafts, {_called(draft.name) for draft in drafts}
        self.placing = self.overtaken = False

    def put(self) -> None:
        """Let each be in its place that is not there yet."""
        for draft in self.drafts:
            with _unless_done(draft):
                if not draft.done:
                    draft._place.put()
            draft.done = True

    def hurry(self) -> None:
        """Do what is left of it, if its first one may be in its place: else they would be of two times."""
        if self.placing:
            # Where it cannot be done, whoever is in the middle of it goes on.
            with suppress(Exception):
                self.put()


@contextlib.contextmanager
def _unless_done(draft: Draft) -> Iterator[None]:
    """Explain errors, which do not matter where somebody in between has done it."""
    try:
        with draft._explained():
            yield
    except Exception as e:
        let_through(e)
        if not draft.done:
            raise


class together:
    """Let files that this thread writes in the ``with`` block take their places when it ends well: all of them or none.

    They must lie in one folder, and belong to the one that is complete first, such as the arrays of a checkpoint: for
    `settle` and `read_pair` that one is the owner. A block inside another that has one of its files is part of that.

    Parameters
    ----------
    *paths : str or os.PathLike
        The files. Others, and those that a signal handler writes meanwhile, take their places at once.

    Raises
    ------
    MXNetError
        As `commit`.

    Examples
    --------
    >>> import mxcore as mx
    >>> with together("memory://doc/f.params", "memory://doc/f.states"):
    ...     mx.nd.save("memory://doc/f.params", {"w": mx.nd.ones(2)})
    ...     with atomic_writer("memory://doc/f.states") as f:
    ...         _ = f.write(b"abc")
    """

    def __init__(self, *paths: str | os.PathLike[str]) -> None:
        self._paths = paths
        self._block: _Block | None = None
        self._outer: _Block | None = None

    def __enter__(self) -> None:
        outer = _thread.held_by(self._paths)
        if outer is not None:
            outer.names.update(map(_called, self._paths))
            return
        before = _thread.block
        # One that an interrupt has ended unseen is forgotten.
        self._outer = before if before is not None and before.lives() else None
        self._block = _thread.block = _Block(self._paths, sys._getframe(1))

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        block = self._block
        if block is None:
            return
        _thread.block = self._outer
        if kind is None:
            commit(*block.held)
        for draft in block.held:
            draft.discard()  # nothing, where it is done


def _called(path: str | os.PathLike[str]) -> str:
    """What a file is called by everybody: its URL, or its absolute path."""
    name = checked(path)
    if is_url(name):
        return name
    with suppress(OSError):  # the folder of this process was removed
        return os.path.abspath(local_path(name))
    return name


def settle(path: str | os.PathLike[str], owner: str | os.PathLike[str]) -> str:
    """Finish what a writer of files that belong together began, and was killed between them.

    Parameters
    ----------
    path : str or os.PathLike
        A file that belongs to another one, such as an index.
    owner : str or os.PathLike
        The first of them.

    Returns
    -------
    str
        Where the file that belongs to `owner` can be read: `path`, as a rule.

    Examples
    --------
    >>> settle("memory://doc/b", "memory://doc/a")
    'memory://doc/b'
    """
    if is_url(path) or is_url(owner):
        return os.fspath(path)
    path = os.fspath(path)
    try:
        first, target = (_target(local_path(name)) for name in (owner, path))
        if first is None or target is None or not _trusted(_waiting(target, os.stat(first)), os.stat(first)):
            return path
        with _alone(os.path.dirname(first)):
            waiting = _waiting(target, os.stat(first))
            if not _trusted(waiting, os.stat(first)):
                return path  # another has finished it
            try:
                if _unless_alive(waiting, lambda: os.replace(waiting, target)):
                    _sync_folder(os.path.dirname(target))
                    return path
            except FileNotFoundError:
                return path  # another has finished it
            except OSError as e:
                let_through(e)
                # a folder that cannot be written
        return waiting
    except (OSError, ValueError) as e:  # nothing there, or a name that no file can have
        let_through(e)
        return path


def read_pair(path: str | os.PathLike[str], owner: str | os.PathLike[str], read: Callable[[str], Found]) -> Found:
    """Read two files that belong together, also while a writer replaces both.

    Parameters
    ----------
    path, owner : str or os.PathLike
        As for `settle`.
    read : callable
        Reads both, and gets where the second can be read. It is called again if the first was replaced meanwhile.

    Returns
    -------
    object
        What `read` returns.

    Raises
    ------
    MXNetError
        (also OSError) if the files never stay as they are while they are read.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.model.save_checkpoint("memory://doc/e", 1, mx.sym.Variable("data"), {"w": mx.nd.ones(2)}, {})
    >>> graph, params = "memory://doc/e-symbol.json", "memory://doc/e-0001.params"
    >>> read_pair(graph, params, lambda graph: (mx.sym.load(graph).name, list(mx.nd.load(params))))
    ('data', ['arg:w'])
    """
    if _copied(owner) != _copied(path):  # each of them may be of another time
        _renew(owner, path)
    for _ in range(_TRIES):
        before, place = _version(owner), settle(path, owner)
        try:
            found = read(place)
        except Exception as e:
            let_through(e)
            # Where it waited it is no longer once its writer is done.
            if _version(owner) == before and (place == os.fspath(path) or os.path.exists(place)):
                raise
        else:
            if _version(owner) == before:
                return found
        _renew(owner, path)
    raise error(OSError, f"{os.fspath(owner)!r} is replaced again and again; read it when its writer is done")


@contextlib.contextmanager
def atomic_writer(path: str | os.PathLike[str]) -> Iterator[Draft]:
    """Give a draft whose content takes the place of `path` when the ``with`` block ends well.

    If the block or the disk fails, the old file stays as it was.

    Parameters
    ----------
    path : str or os.PathLike
        A local path or an fsspec URL.

    Yields
    ------
    Draft
        To `write` bytes to.

    Raises
    ------
    MXNetError
        (also the matching OSError) naming the file and the reason.

    Examples
    --------
    >>> with atomic_writer("memory://doc/c.bin") as f:
    ...     _ = f.write(b"abc")
    """
    with atomic_writers(path) as (draft,):
        yield draft


@contextlib.contextmanager
def atomic_writers(*paths: str | os.PathLike[str]) -> Iterator[list[Draft]]:
    """Give drafts of files that belong together; all take their place when the ``with`` block ends well, or none.

    Parameters
    ----------
    *paths : str or os.PathLike
        One, or several as for `commit`: whoever reads another than the first asks `settle` where it is.

    Yields
    ------
    list of Draft
        To `write` bytes to.

    Raises
    ------
    MXNetError
        (also the matching OSError) naming the file and the reason.

    Examples
    --------
    >>> with atomic_writers("memory://doc/d.rec", "memory://doc/d.idx") as (records, index):
    ...     records.write(b"abc")
    ...     index.write(b"0")
    """
    drafts: list[Draft] = []
    try:
        for path in paths:
            drafts.append(Draft(path))
        yield drafts
        commit(*drafts)
    except BaseException:
        for draft in drafts:
            draft.discard()
        raise


def _again(e: OSError) -> OSError:
    """The same error without a traceback."""
    return type(e)(*e.args)


class _Raw(io.FileIO):
    """A file that is written by the process that opened it, until a write fails.

    It has its descriptor from the first moment on: what a signal's handler raises then leaves none open.
    """

    def __init__(self, path: str, how: str, mode: int) -> None:
        super().__init__(path, how, opener=functools.partial(os.open, mode=mode))
        self.problem: OSError | None = None
        self._pid = os.getpid()

    def write(self, data: Any) -> int:
        if self.problem is not None or self._pid != os.getpid():
            return memoryview(data).nbytes  # what a child finds in an inherited buffer is not its own
        try:
            return super().write(data)
        except OSError as e:
            let_through(e)
            self.problem = _again(e)  # not the error itself: its traceback holds what all callers have open
            raise


class _InPlace:
    """A pipe, a device, a file that nothing can be put beside."""

    def __init__(self, path: str) -> None:
        self._raw = _Raw(path, "w", 0o666)
        self.file = io.BufferedWriter(self._raw, _BUFFER)

    @property
    def problem(self) -> OSError | None:
        return self._raw.problem

    def seal(self) -> None:
        self.file.flush()

    def alone(self) -> Any:
        return contextlib.nullcontext()

    def wait_for(self, other: Any) -> bool:
        return False

    def put(self) -> None:
        self.file.close()

    def drop(self, mine: bool) -> None:
        with contextlib.suppress(OSError):
            self.file.close()


class _Beside(_InPlace):
    """A file beside a local target, under a lock."""

    def __init__(self, target: str, old: os.stat_result | None) -> None:
        self.target, self.kept = target, False
        #: What it is called while it waits, from when it may be.
        self.waiting: str | None = None
        _sweep(target)
        raw: _Raw | None = None
        try:
            with Uninterrupted():  # else a draft would stay until the next file is written
                # Nobody opens it before it has the old mode.
                raw, self.path = _create(target, 0o666 if old is None else 0o600)
                self._raw = raw
                if old is not None and not _takes_over(raw.fileno(), self.path, target, old):
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
        return _alone(os.path.dirname(self.target))

    def wait_for(self, other: Any) -> bool:
        if not isinstance(other, _Beside):
            return False
        self.waiting = _waiting(self.target, os.fstat(other.file.fileno()))
        os.replace(self.path, self.waiting)
        self.path = self.waiting
        return True

    def placed(self) -> bool:
        """Whether the draft has been renamed: nobody else has a reason to touch its name."""
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
            if fcntl is None or not _same(self.file.fileno(), self.target):
                raise
        self.file.close()
        _sync_folder(os.path.dirname(self.target))

    def drop(self, mine: bool) -> None:
        if mine and not self.kept and fcntl is not None:
            for path in {self.path, self.waiting or self.path}:
                with contextlib.suppress(OSError):
                    os.unlink(path)
        super().drop(mine)
        if mine and not self.kept and fcntl is None:
            with contextlib.suppress(OSError):
                os.unlink(self.path)


class _Remote:
    """A file in a store: written under another name and moved, or uploaded, and shown once it is complete."""

    def __init__(self, url: str) -> None:
        with explained(url, "write", foreign=True):  # an archive may be damaged
            found, self._path = store(url, writing=True)
            self._fs, self._caches = uncached(found)
        self._moved = _OBJECT_STORES.isdisjoint(links(url))
        folder, slash, _ = self._path.rpartition("/")
        self._at = f"{folder}{slash}.mxcore-{_token()}.tmp" if self._moved else self._path
        self.problem = None
        with explained(url, "write", foreign=True):
            # A move to a folder goes into it; an object may be named as others begin.
            if url.endswith("/") or (self._moved and self._fs.isdir(self._path)):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            self.file = self._fs.open(self._at, "wb")

    def seal(self) -> None:
        """Upload what is moved afterwards; of an object the upload is the last step."""
        if self._moved:
            self.file.close()

    def alone(self) -> Any:
        return contextlib.nullcontext()

    def wait_for(self, other: Any) -> bool:
        return False

    def put(self) -> None:
        self.file.close()
        if self._moved:
            try:
                self._fs.mv(self._at, self._path)
            except NotImplementedError:
                raise OSError("the store cannot rename files, so it cannot replace one whole; use another") from None
        _forget(self._caches, self._path)

    def drop(self, mine: bool) -> None:
        with contextlib.suppress(Exception):
            self.file.discard()
        with contextlib.suppress(Exception):
            self.file.closed = True  # else it would complete itself when it is collected
        if mine and self._moved:
            with contextlib.suppress(Exception):
                self._fs.rm_file(self._at)


def _forget(caches: Iterable[Any], path: str) -> None:
    """Let fsspec's caches drop their copies of an object."""
    for cache in caches:
        with contextlib.suppress(Exception):  # it has none
            cache.pop_from_cache(path)
        with contextlib.suppress(Exception):  # one that notes nothing
            os.unlink(os.path.join(cache.storage[-1], cache.hash_name(path)))


def _caches(path: str | os.PathLike[str]) -> tuple[list[Any], str]:
    """fsspec's caches in front of the store of a file, and its name there."""
    if not is_url(path):
        return [], ""
    found, name = store(os.fspath(path))
    return uncached(found)[1], name


def _renew(*paths: str | os.PathLike[str]) -> None:
    """Let caches drop what they have of files."""
    for path in paths:
        _forget(*_caches(path))


def _copied(path: str | os.PathLike[str]) -> bool:
    """Whether a cache has a copy of a file."""
    try:
        caches, name = _caches(path)
        return any(bool(cache._check_file(name)) for cache in caches)
    except Exception as e:  # reading it will tell what is wrong
        let_through(e)
        return False


def _local(name: str) -> _InPlace:
    path = local_path(name)
    with explained(name, "write"):
        if path.endswith((os.sep, os.altsep or os.sep)):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        target = _target(path)
        try:
            old = os.stat(path)
        except FileNotFoundError:
            old = None
        if target is None or (old is not None and not stat.S_ISREG(old.st_mode)):
            return _InPlace(path)
        if old is not None:
            try:  # opening tells, too, that another process has removed it meanwhile
                with Uninterrupted():
                    os.close(os.open(path, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0)))
            except FileNotFoundError:
                old = None
        if old is not None and not _may_be_replaced(target, old):
            return _InPlace(path)
        try:
            return _Beside(target, old)
        except PermissionError:
            if old is None:
                raise
            return _InPlace(path)  # no new file can take its place, but it may be written


def _may_be_replaced(target: str, old: os.stat_result) -> bool:
    """Whether the system lets this user rename another file over one that is there.

    In a sticky folder, such as /tmp, only who owns the file or the folder may, whoever may write to the file.
    """
    folder = os.stat(os.path.dirname(target))
    if not folder.st_mode & stat.S_ISVTX or not hasattr(os, "geteuid"):
        return True
    return os.geteuid() in (0, old.st_uid, folder.st_uid)


def _target(path: str) -> str | None:
    """What a path names behind all links; None for a descriptor of a process, such as /dev/stdout."""
    path = os.path.abspath(path)
    for _ in range(40):
        folder = os.path.realpath(os.path.dirname(path))
        if folder.startswith(("/proc/", "/dev/fd")):
            return None
        path = os.path.join(folder, os.path.basename(path))
        try:
            path = os.path.join(folder, os.readlink(path))
        except OSError as e:
            let_through(e)
            return path
    return path  # a ring of links, which opening will tell


#: How the names of all drafts begin.
_OURS = ".mxcore-"

#: A draft, or what waits for the file of a key.
_DRAFT = re.compile(r"\.mxcore-[0-9a-f]{32}-(?:[0-9a-f]{16}|([0-9a-f]+-[0-9a-f]+-[0-9a-f]+))\.tmp")

#: In seconds: who writes another file removes a draft that nobody has written to for so long. A dead writer's lock is
#: free, but some network disks show no locks of other machines, and no living writer should rest for so long there.
_FORGOTTEN = 3600.0

#: How many drafts of other files a writer looks at: for each the system is asked, or a server.
_LOOKED_AT = 100


def _prefix(target: str) -> str:
    """How the names of all drafts of a file begin: with a hash that nobody can find another name for."""
    from hashlib import sha256

    return f"{_OURS}{sha256(os.fsencode(os.path.basename(target))).hexdigest()[:32]}-"


def _token() -> str:
    return os.urandom(8).hex()


def _key(owner: os.stat_result) -> str:
    """What a file is known by to those that wait for it."""
    return f"{owner.st_ino:x}-{owner.st_size:x}-{owner.st_mtime_ns:x}"


def _waiting(target: str, owner: os.stat_result) -> str:
    """Where the second file waits, until it is renamed too, once the first one is this."""
    return os.path.join(os.path.dirname(target), f"{_prefix(target)}{_key(owner)}.tmp")


def _version(path: str | os.PathLike[str]) -> tuple[Any, ...] | None:
    """What changes when a file is replaced, as far as a store tells; None for what is not there."""
    try:
        if is_url(path):
            fs, name = store(os.fspath(path))
            fs.invalidate_cache(name)
            return facts(fs.info(name))
        found = os.stat(local_path(path))
    except Exception as e:  # a store may raise anything
        let_through(e)
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _trusted(waiting: str, owner: os.stat_result) -> bool:
    """Whether what waits is a file by its owner, this user or root: anybody may take a name in /tmp."""
    try:
        found = os.lstat(waiting)
    except FileNotFoundError:
        return False
    return stat.S_ISREG(found.st_mode) and (
        not hasattr(os, "geteuid") or found.st_uid in (owner.st_uid, os.geteuid(), 0)
    )


def _create(target: str, mode: int) -> tuple[_Raw, str]:
    """Make a draft and lock it."""
    while True:
        path = os.path.join(os.path.dirname(target), f"{_prefix(target)}{_token()}.tmp")
        raw = _Raw(path, "x+", mode)  # and not tempfile: the new file's mode follows the umask
        if fcntl is None:
            return raw, path
        with suppress(OSError):  # a file system without locks: nobody else can tell that we live
            fcntl.flock(raw, fcntl.LOCK_EX)
        if _same(raw.fileno(), path):
            return raw, path
        raw.close()  # another writer took it for a dead one's before it was locked


def _takes_over(descriptor: int, path: str, target: str, old: os.stat_result) -> bool:
    """Give a draft what the file has that it replaces, and tell whether everybody has the same rights to it.

    What the system grants is seen afterwards: some file systems refuse, others say yes and do nothing.
    """
    mode = stat.S_IMODE(old.st_mode) & ~(stat.S_ISUID | stat.S_ISGID)  # as every write to a file clears them
    if not hasattr(os, "fchown"):
        os.chmod(path, mode)
        return True
    for owner in (old.st_uid, -1):  # who may not give files away may give them to a group of theirs
        with suppress(OSError):
            os.fchown(descriptor, owner, old.st_gid)
            break
    # Before the mode, which else would be for the group and not for those whom the list names.
    wanted, found = _attributes(target), _attributes(descriptor)
    for name in found.keys() - wanted.keys():  # which the folder gives to new files
        with suppress(OSError):
            os.removexattr(descriptor, name)
    for name, value in wanted.items():
        if found.get(name) != value:
            with suppress(OSError):
                os.setxattr(descriptor, name, value)
    if stat.S_IMODE(os.fstat(descriptor).st_mode) != mode:
        with suppress(OSError):
            os.chmod(path, mode)
    new, lists = os.fstat(descriptor), _lists(_attributes(target))
    return (
        (new.st_gid, stat.S_IMODE(new.st_mode)) == (old.st_gid, mode)
        and _lists(_attributes(descriptor)) == lists
        and (new.st_uid == old.st_uid or not lists and _shared_by_group(old))
    )


def _attributes(file: int | str) -> dict[str, bytes]:
    """The extended attributes of a file, among them its access control list, as far as this user may read them."""
    found: dict[str, bytes] = {}
    if hasattr(os, "listxattr"):
        with suppress(OSError):  # a file system that has none
            for name in os.listxattr(file):
                if not name.startswith("system.") or "acl" in name:  # the others are times, places on the disk, …
                    with suppress(OSError):
                        found[name] = os.getxattr(file, name)
    return found


def _lists(attributes: dict[str, bytes]) -> dict[str, bytes]:
    """Those that say who may do what."""
    return {name: value for name, value in attributes.items() if name.startswith("system.")}


def _shared_by_group(old: os.stat_result) -> bool:
    """Whether its owner and this user are members of a file's group, which may do what its owner may."""
    import pwd

    try:
        owner = pwd.getpwuid(old.st_uid)
        theirs = os.getgrouplist(owner.pw_name, owner.pw_gid)
    except (KeyError, OSError) as e:  # nobody whom this machine knows
        let_through(e)
        return False
    ours = [os.getegid(), *os.getgroups()]
    return old.st_mode >> 6 & 7 == old.st_mode >> 3 & 7 and old.st_gid in theirs and old.st_gid in ours


def _same(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False


def _sweep(target: str) -> None:
    """Remove the drafts of a file whose writers are dead; one that waits for a file of the folder takes its place.

    Those of other files are removed only later, as their names may never be written again.
    """
    prefix = _prefix(target)
    with suppress(OSError), os.scandir(os.path.dirname(target)) as entries:
        found = list(entries)
        drafts = [entry for entry in found if entry.name.startswith(_OURS)]
        for draft in [entry for entry in drafts if entry.name.startswith(prefix)]:
            for owner in found:
                if draft.name.startswith(f"{prefix}{owner.inode():x}-"):
                    settle(target, owner.path)
            with suppress(OSError):
                _unless_alive(draft.path, lambda path=draft.path: os.unlink(path))
        _sweep_forgotten([entry for entry in drafts if not entry.name.startswith(prefix)])


def _sweep_forgotten(drafts: list[os.DirEntry[str]]) -> None:
    """Remove drafts that nobody holds or has written to for long.

    What waits for a file stays until somebody reads or writes it, as the file may be in another folder; unless that
    file was never completed, and is removed here.
    """
    known = [(match[1], entry) for entry in drafts if (match := _DRAFT.fullmatch(entry.name))]
    known.sort(key=lambda each: each[0] is not None)  # what others wait for comes first
    last = time.time() - _FORGOTTEN
    gone: set[str | None] = {None}
    for waits_for, entry in known[:_LOOKED_AT]:
        with suppress(OSError):
            found = entry.stat(follow_symlinks=False)
            if waits_for in gone and stat.S_ISREG(found.st_mode) and found.st_mtime < last:
                _unless_alive(entry.path, functools.partial(_remove, entry.path, _key(found), gone))


def _remove(path: str, key: str, gone: set[str | None]) -> None:
    os.unlink(path)
    gone.add(key)


def _unless_alive(path: str, action: Any) -> bool:
    """Do something with a draft if its writer is dead."""
    if fcntl is None:
        action()
        return True
    with Uninterrupted(), io.FileIO(path, "r+", opener=_no_link) as draft:
        try:
            fcntl.flock(draft, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _same(draft.fileno(), path):
                action()
            return True
        except BlockingIOError:
            return False


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0))


@contextlib.contextmanager
def _opened(folder: str) -> Iterator[int]:
    """A folder's descriptor, which is put into a list in one call: a signal's handler comes before it or behind it."""
    held: list[int] = []
    try:
        held.extend(map(os.open, (folder,), (os.O_RDONLY | getattr(os, "O_DIRECTORY", 0),)))
        yield held[0]
    finally:
        if held:
            with suppress(OSError):
                os.close(held[0])


@contextlib.contextmanager
def _alone(folder: str) -> Iterator[None]:
    """Keep others from renaming two files of a folder at the same time, where the system can, a second long at most."""
    with Uninterrupted(), contextlib.ExitStack() as until_the_end:
        with suppress(OSError):
            if fcntl is not None:
                handle = until_the_end.enter_context(_opened(folder))
                for _ in range(200):
                    try:
                        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        break
                    except BlockingIOError:
                        time.sleep(0.005)
        yield


def _sync_folder(folder: str) -> None:
    """Make a rename survive a power cut, where the system can."""
    if hasattr(os, "O_DIRECTORY"):
        with suppress(OSError), Uninterrupted(), _opened(folder) as handle:
            os.fsync(handle)
