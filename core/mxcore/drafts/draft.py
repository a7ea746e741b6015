"""A draft, and how one or several of them take their places."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

from .._file_names import checked, explained
from .._interrupts import let_through, suppress
from .._locks import fork_safe_lock
from ..base import error
from ..urls import is_url
from .blocks import thread
from .names import called
from .place import Place
from .places import local_place
from .raw import again
from .stores import Remote

__all__ = ["Commit", "Draft", "commit"]


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
        self._place: Place = Remote(self.name) if is_url(self.name) else local_place(self.name)
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
    block = thread.held_by([draft.name for draft in todo])
    if block is not None:
        block.held += todo
        return
    waiting: list[Draft] = []
    now = Commit(todo)
    # Not of the dictionary itself, which a signal handler may change meanwhile.
    before = [c for ref in thread.commits.valuerefs() if (c := ref()) is not None and c.names & now.names]
    thread.commits[id(now)] = now
    try:
        for draft in todo:
            with draft._explained():
                if (problem := draft._place.problem) is not None:
                    raise again(problem)
                draft._place.seal()
        for c in before:  # this is a signal handler in the middle of them: what is older comes first
            c.hurry()
        now.placing = True
        if now.overtaken:
            for draft in todo:
                draft.discard()
            return
        for draft in todo:
            draft._place.tidy()
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
        thread.commits.pop(id(now), None)


class Commit:
    """Drafts that take their places; a signal handler that commits newer files of these names may come in between.

    Parameters
    ----------
    drafts : list of Draft

    Attributes
    ----------
    placing : bool
        Whether they are complete, and some may be in their places.
    overtaken : bool
        Whether newer ones are, so that these have no reason any more.
    """

    def __init__(self, drafts: list[Draft]) -> None:
        self.drafts, self.names = drafts, {called(draft.name) for draft in drafts}
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
