"""How jobs get to a worker process and batches to the loader: pickled, with large arrays beside the pickle.

A message that is larger than `INLINE` goes through an anonymous file in memory, whose descriptor travels over the
socket: what the socket itself carries is bounded, however many samples a batch has. Such a file has no name: it is
gone when the last process that holds it is, however that ends, and it does not live in ``/dev/shm``. Where the system
has no such files, temporary files take their place.
"""

from __future__ import annotations

import errno
import io
import mmap
import os
import pickle
import secrets
import socket
import tempfile
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .... import ndarray as nd
from ...._interrupts import Uninterrupted, let_through
from ....base import error
from ....context import cpu
from ....util import is_np_array
from ..batching import ToNDArray

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

__all__ = ["INLINE", "pack", "receive", "send", "temporary_folder"]

#: Up to this many bytes go through the socket itself. Eight jobs, and their answers, must fit into a socket's buffer,
#: or a worker that answers and a loader that asks could wait for each other.
INLINE = 8192

_ALIGN = 64


def _to_ndarray(array: Any, of_np: bool) -> Any:
    # What came through a private mapping belongs to nobody else: no need to copy it.
    own = array.ndim and array.flags.c_contiguous and array.flags.writeable
    found = nd.from_numpy(array) if own else nd.array(array, ctx=cpu(), dtype=array.dtype)
    return found.as_np_ndarray() if of_np else found


class _Pickler(pickle.Pickler):
    """Sends NDArrays as NumPy arrays; the loader makes NDArrays of them."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, ToNDArray):
            return _to_ndarray, (obj.array, is_np_array())
        if isinstance(obj, nd.NDArray) and obj.stype == "default":
            return _to_ndarray, (obj.asnumpy(), obj.rules is not None)
        return NotImplemented


def pack(value: Any) -> list[Any]:
    """Pickle a value: the pickle itself and the buffers beside it, as a list of bytes-likes."""
    out = io.BytesIO()
    buffers: list[pickle.PickleBuffer] = []
    _Pickler(out, protocol=5, buffer_callback=buffers.append).dump(value)
    return [out.getbuffer(), *(b.raw() for b in buffers)]


def _padding(n: int) -> int:
    return -n % _ALIGN


def _write_all(fd: int, parts: Sequence[Any]) -> None:
    for part in parts:
        view = memoryview(part)
        while view:
            view = view[os.write(fd, view) :]
        os.write(fd, b"\0" * _padding(len(part)))


#: Whether a descriptor can be handed to another process; else files need names.
_CAN_HAND_OVER = hasattr(socket, "send_fds")


def temporary_folder() -> str:
    """A new name for where temporary files may go; empty where they need no names, and so no folder."""
    return "" if _CAN_HAND_OVER else os.path.join(tempfile.gettempdir(), f"mxcore-loader-{secrets.token_hex(8)}")


def _files(folder: str) -> list[Any]:
    """Ways to get a file, best first: functions that return (descriptor, name or None)."""
    if not _CAN_HAND_OVER:

        def named() -> Any:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            return tempfile.mkstemp(dir=folder)

        return [named]

    def unnamed() -> tuple[Any, Any]:
        with tempfile.TemporaryFile() as f:
            return os.dup(f.fileno()), None

    if not hasattr(os, "memfd_create"):
        return [unnamed]
    return [lambda: (os.memfd_create("mxcore-batch", os.MFD_CLOEXEC), None), unnamed]


def _fill(way: Callable[[], tuple[int, str | None]], parts: Sequence[Any]) -> tuple[int, str | None]:
    fd, path = way()
    try:
        _write_all(fd, parts)
    except BaseException:
        os.close(fd)
        if path is not None:
            os.unlink(path)
        raise
    return fd, path


def _spill(parts: Sequence[Any], folder: str) -> tuple[int, str | None]:
    """Write the parts to a file; returns its descriptor and name."""
    *others, last = _files(folder)
    for way in others:
        try:
            return _fill(way, parts)
        except OSError as e:
            let_through(e)
            # Memory for files may be short, or forbidden: the disk takes it then.
            continue
    return _fill(last, parts)


def send(conn: Connection, head: tuple[Any, ...], parts: Sequence[Any], folder: str, what: str) -> None:
    """Send a job, or the answer to one, over a connection.

    Parameters
    ----------
    conn : multiprocessing.connection.Connection
    head : tuple
        What to know of the value, such as the job that it belongs to.
    parts : list of bytes-like
        From `pack`.
    folder : str
        Where temporary files may go, if they need names. Made when needed.
    what : str
        What it is of whom, for errors.

    Raises
    ------
    MXNetError (OSError)
        If neither memory nor disk takes it; the connection is as it was.
    OSError
        If the other end is gone.
    """
    # A value may have any number of parts, so their sizes travel as one.
    contents = pickle.dumps((head, [len(p) for p in parts]))
    parts = [contents, *parts]
    if sum(map(len, parts)) <= INLINE:
        conn.send_bytes(pickle.dumps((len(contents), "inline", None)))
        conn.send_bytes(b"".join(parts))
        return
    with Uninterrupted():
        try:
            fd, path = _spill(parts, folder)
        except OSError as e:
            let_through(e)
            n = sum(map(len, parts))
            raise error(
                type(e),
                f"{what} cannot be handed over: no file takes its {n} bytes, in memory or in the folder of temporary "
                f"files: {e}. Make room there, allow larger or more files (`ulimit -f`, `ulimit -n`), take smaller "
                "batches, or thread_pool=True, which needs no files",
            ) from e
        try:
            conn.send_bytes(pickle.dumps((len(contents), "fd" if path is None else "path", path)))
            if path is None:
                with socket.socket(fileno=os.dup(conn.fileno())) as channel:
                    socket.send_fds(channel, [b"f"], [fd])
        finally:
            os.close(fd)


def _take_descriptor(conn: Connection) -> int:
    with socket.socket(fileno=os.dup(conn.fileno())) as channel:
        data, fds, _, _ = socket.recv_fds(channel, 1, 1)
    if not fds:
        # The system drops one for which this process has no room.
        raise OSError(errno.EMFILE, "no descriptor arrived") if data else EOFError("the other end is closed")
    return fds[0]


def _map(fd: int) -> mmap.mmap:
    try:
        # A private mapping: arrays made from it may be written to, and live as long as they are needed.
        return mmap.mmap(fd, os.fstat(fd).st_size, access=mmap.ACCESS_COPY)
    finally:
        os.close(fd)


def receive(conn: Connection) -> tuple[tuple[Any, ...], Any]:
    """Take a message from a connection: (head, value).

    Raises
    ------
    EOFError, OSError
        If the other end is gone.
    """
    first, place, path = pickle.loads(conn.recv_bytes())
    step = _ALIGN
    if place == "inline":
        content: bytearray | mmap.mmap = bytearray(conn.recv_bytes())
        step = 1
    elif place == "fd":
        conn.poll(None)  # which may be interrupted
        with Uninterrupted():
            content = _map(_take_descriptor(conn))
    else:
        with open(path, "rb") as f:
            content = bytearray(f.read())
        os.unlink(path)
    memory = memoryview(content)
    head, sizes = pickle.loads(memory[:first])
    parts, at = [], first + (-first % step)
    for size in sizes:
        parts.append(memory[at : at + size])
        at += size + (-size % step)
    return head, pickle.loads(parts[0], buffers=parts[1:])
