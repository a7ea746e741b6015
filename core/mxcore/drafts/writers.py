"""With-blocks at whose end files take their places."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

from .blocks import Block, thread
from .draft import Draft, commit
from .names import called

__all__ = ["atomic_writer", "atomic_writers", "together"]


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
        self._block: Block | None = None
        self._outer: Block | None = None

    def __enter__(self) -> None:
        outer = thread.held_by(self._paths)
        if outer is not None:
            outer.names.update(map(called, self._paths))
            return
        before = thread.block
        # One that an interrupt has ended unseen is forgotten.
        self._outer = before if before is not None and before.lives() else None
        self._block = thread.block = Block(self._paths, sys._getframe(1))

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        block = self._block
        if block is None:
            return
        thread.block = self._outer
        if kind is None:
            commit(*block.held)
        for draft in block.held:
            draft.discard()  # nothing, where it is done


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
