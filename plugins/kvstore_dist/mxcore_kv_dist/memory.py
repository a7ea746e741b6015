"""Memory that two processes of one host see.

It has no name, and is gone with the last of its users, whatever ends them: nothing can be left behind.
"""

from __future__ import annotations

import errno
import mmap
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from mxcore.base import error

__all__ = ["Segment", "layout", "open_segment", "view"]

#: Arrays begin at multiples of this many bytes.
_ALIGN = 64
#: How many zeros are written at once where the system cannot reserve memory.
_ZEROS = 1 << 20
#: Which groups of processes this one is in, and what the kernel says of groups.
_MINE, _GROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


class _Account(NamedTuple):
    """Where the memory of groups is told: a folder, files with limit and use, and what of the use is to spare."""

    folder: str
    limit: str
    used: str
    spare: str


#: By the name of the controller: that of version 1, and what stands in its place in version 2.
_ACCOUNTS = {
    "memory": _Account("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    "": _Account("", "memory.max", "memory.current", "inactive_file"),
}


class Segment:
    """Shared memory, and the descriptor of the file behind it until `close` is called, or nobody has this object.

    Parameters
    ----------
    size : int
        In bytes.
    what : str
        What lies there, for whoever reads that there is no room.

    Raises
    ------
    MXNetError
        (also MemoryError) if the system has no room: all is had now, for whoever touches a page that cannot be had is
        ended by a signal.
    """

    file = -1

    def __init__(self, size: int, what: str) -> None:
        if hasattr(os, "memfd_create"):
            self.file = os.memfd_create("mxcore-kvstore", os.MFD_CLOEXEC)
        else:
            with tempfile.TemporaryFile() as f:
                self.file = os.dup(f.fileno())
        self.size = max(size, 1)
        try:
            _reserve(self.file, self.size)
            self.memory = mmap.mmap(self.file, self.size)
        except OSError as e:
            self.close()
            raise error(
                MemoryError,
                f"no room for {what}: {size:,} bytes of shared memory cannot be had ({e.strerror}); let other programs "
                "end, allow this one more, or spread workers and servers over more hosts",
            ) from None

    def share(self) -> Segment:
        """The same memory with a descriptor of its own."""
        other = object.__new__(Segment)
        other.file, other.size, other.memory = os.dup(self.file), self.size, self.memory
        return other

    def close(self) -> None:
        """Close the file. The memory stays as long as somebody has an array in it."""
        file, self.file = self.file, -1
        if file >= 0:
            os.close(file)

    __del__ = close


def _reserve(file: int, size: int) -> None:
    """Let a file have so many bytes, or raise an OSError."""
    room = _room()
    if room is not None and size > room:
        raise OSError(errno.ENOMEM, f"{room:,} are free")
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
    else:
        for at in range(0, size, _ZEROS):
            os.pwrite(file, bytes(min(_ZEROS, size - at)), at)


def _room() -> int | None:
    """Bytes that this host, and the groups of processes that this one is in, can still have; None: nobody knows.

    Whoever asks for more than there is is not refused: the kernel ends some process.
    """
    rooms = []
    with suppress(OSError, ValueError):
        text = Path("/proc/meminfo").read_text()
        rooms.append(sum(int(kb) << 10 for kb in re.findall(r"^(?:MemAvailable|SwapFree):\s+(\d+)", text, re.M)))
    with suppress(OSError):
        for folder, account in _groups(_MINE.read_text()):
            with suppress(OSError, ValueError):  # no folder, in a container that sees its own only; or no limit
                limit, used = (int((folder / name).read_text()) for name in (account.limit, account.used))
                spare = re.search(rf"^{account.spare} (\d+)", (folder / "memory.stat").read_text(), re.M)
                rooms.append(limit - used + (int(spare[1]) if spare else 0))
    return min(rooms, default=None)


def _groups(mine: str) -> Iterator[tuple[Path, _Account]]:
    """The folders of a process's groups, and of those that these are in: the limits of all of them count."""
    for line in mine.splitlines():
        _, controllers, path = line.split(":", 2)
        for account in (_ACCOUNTS[name] for name in controllers.split(",") if name in _ACCOUNTS):
            group = PurePosixPath(path).relative_to("/")
            for folder in (group, *group.parents):
                yield _GROUPS / account.folder / folder, account


def open_segment(file: int, size: int) -> mmap.mmap:
    """See the memory behind a descriptor that came from another process, and close that."""
    try:
        return mmap.mmap(file, max(size, 1))
    finally:
        os.close(file)


def view(memory: Any, offset: int, size: int, dtype: Any) -> np.ndarray[Any, Any]:
    """An array of one dimension in memory."""
    seen: np.ndarray[Any, Any] = np.ndarray(size, dtype, memory, offset)
    return seen


def layout(sizes: list[int]) -> tuple[list[int], int]:
    """Where arrays of so many bytes begin if they lie one behind the other, and where they end."""
    offsets, end = [], 0
    for size in sizes:
        offsets.append(end)
        end += -(-size // _ALIGN) * _ALIGN
    return offsets, end
