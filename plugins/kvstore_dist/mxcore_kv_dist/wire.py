"""Messages between workers and servers: a header in JSON, and bytes behind it.

Both ends prove first that they know the job's token, which is not sent. Nothing that arrives is executed. States of
optimizers come as pickles, MXNet's format for them, which mxcore's own reader takes apart: it makes nothing but data.
"""

from __future__ import annotations

import array
import json
import os
import secrets
import select
import socket
import struct
import sys
import tempfile
import weakref
from collections.abc import Sequence
from multiprocessing import AuthenticationError
from multiprocessing.connection import answer_challenge, deliver_challenge
from typing import Any

import numpy as np

from mxcore.base import error
from mxcore.plugin import let_through

__all__ = ["PATIENCE", "TRANSPORTS", "Channel", "Closed", "Listener", "Stuck", "accept", "connect", "encode", "shut"]

#: What a message begins with: a mark, the length of its header and of the bytes behind it.
_HEAD = struct.Struct("<4sIQ")
_MARK = b"MXKV"
#: How long a header may be, and how many parts one system call sends.
_LONGEST_HEADER, _MOST_PARTS = 1 << 26, 512
#: How many may wait to be let in.
_BACKLOG = 1024
#: How long the other end may take for each step until both know whom they talk to, in seconds.
PATIENCE = 30
#: How bytes can go: through shared memory where both ends are on one host; or always through the network.
TRANSPORTS = ("auto", "tcp")
#: When a host that says nothing at all is asked whether it is there, how often, and after how many failures it is lost:
#: (option, seconds or number).
_ALIVE = (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 4))


#: Why a server may close a connection before anything was said.
_WORDLESS = (
    "it was closed without a word; the server has ended, or more connect to it at once than it has room for: let it "
    "have more open files (`ulimit -n`), or start the job again"
)


class Closed(Exception):
    """The other end is gone."""


class Stuck(Closed):
    """The other end is there, but does nothing."""


#: Open ones: a forked child gives them up, for as long as it had one, nobody would see that its parent is gone.
_open: weakref.WeakSet[Channel] = weakref.WeakSet()


class Channel:
    """One end of a connection. One thread sends, one receives, and that one closes; any may end it.

    Parameters
    ----------
    sock : socket.socket
        Connected.
    patience : float
        How long it waits for the other end, in seconds.
    """

    def __init__(self, sock: socket.socket, patience: float) -> None:
        self._sock, self._patience = sock, patience
        _open.add(self)
        #: Whether both ends are on one host, and can share memory.
        self.local = sock.family == getattr(socket, "AF_UNIX", None)
        if not self.local:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in _ALIVE:
                if hasattr(socket, name):
                    sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    def settle(self, patience: float) -> None:
        """From now on wait for ever for messages, but not for room for one's own.

        Parameters
        ----------
        patience : float
            For how many seconds the other end may take nothing of a message.
        """
        self._patience = patience
        _limit(self._sock, receiving=0, sending=patience)

    def send(self, header: dict[str, Any] | bytes, bodies: Sequence[Any] = (), files: Sequence[int] = ()) -> None:
        """Send a message.

        Parameters
        ----------
        header : dict or bytes
            What JSON can say, or that, encoded.
        bodies : sequence of buffers
            Bytes behind it; they are sent without a copy.
        files : sequence of int
            Descriptors of open files for the other end, on one host.

        Raises
        ------
        Closed
            If the other end is gone, or takes nothing: half of the message may be on its way, no other can follow.
        """
        views = [v for v in map(_bytes, bodies) if v.nbytes]
        text = header if isinstance(header, bytes) else encode(header)
        parts = [memoryview(_HEAD.pack(_MARK, len(text), sum(v.nbytes for v in views)) + text), *views]
        try:
            while parts:
                sent = self._sock.sendmsg(parts[:_MOST_PARTS])
                while parts and sent >= parts[0].nbytes:
                    sent -= parts.pop(0).nbytes
                if sent:
                    parts[0] = parts[0][sent:]
            if files:
                rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))]
                self._sock.sendmsg([b"F"], rights)
        except BlockingIOError:
            raise Stuck(f"it has taken nothing for {self._patience:g} s") from None
        except OSError as e:
            let_through(e)
            raise Closed(str(e)) from None

    def receive(self) -> tuple[dict[str, Any], int]:
        """Wait for a message; return its header, and how many bytes come behind it, which are to be read `into` memory.

        Raises
        ------
        Closed
            If there is none any more.
        TimeoutError
            If there is one, but it is silent for as long as `timeout` allows.
        ValueError
            If what comes is no message.
        """
        head = bytearray(_HEAD.size)
        self.into(head)
        mark, header, body = _HEAD.unpack(head)
        if mark != _MARK or header > _LONGEST_HEADER:
            raise ValueError("this is no message of mxcore's stores")
        text = bytearray(header)
        self.into(text)
        found = json.loads(text)
        if not isinstance(found, dict):
            raise ValueError("the header of a message is no object")
        return found, body

    def into(self, memory: Any) -> None:
        """Read bytes behind a header until memory is full."""
        view = _bytes(memory)
        try:
            while len(view):
                n = self._sock.recv_into(view)
                if not n:
                    raise Closed("the connection has ended")
                view = view[n:]
        except TimeoutError:
            raise
        except BlockingIOError:
            raise Stuck(f"it has said nothing for {self._patience:g} s") from None
        except OSError as e:
            let_through(e)
            raise Closed(str(e)) from None

    def coming(self, seconds: float) -> bool:
        """Whether something to receive, or the end, comes within so many seconds."""
        try:
            poll = select.poll()
            poll.register(self._sock, select.POLLIN)
            return bool(poll.poll(1000 * seconds))
        except (OSError, ValueError) as e:  # it is closed, as who receives will learn
            let_through(e)
            return True

    def timeout(self, seconds: float | None) -> None:
        """Let who receives wait so long and no longer: a TimeoutError ends it."""
        try:
            self._sock.settimeout(seconds)
        except OSError as e:
            let_through(e)
            raise Closed(str(e)) from None

    def files(self, n: int) -> list[int]:
        """Take over the descriptors of `n` open files that came with a message."""
        found = array.array("i")
        _, ancillary, _, _ = self._sock.recvmsg(1, socket.CMSG_SPACE(n * found.itemsize))
        for level, kind, data in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                found.frombytes(data[: len(data) // found.itemsize * found.itemsize])
        if len(found) != n:
            for file in found:
                os.close(file)
            raise Closed(f"{n} open files were announced, but {len(found)} came")
        return list(found)

    def abandon(self) -> None:
        """Close this process's end without a word to the other: another process has it, too."""
        self._sock.close()

    def end(self) -> None:
        """End the connection; who receives gets what has come, and then the end."""
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError as e:
            let_through(e)

    def close(self) -> None:
        """End the connection, and give its descriptor back."""
        self.end()
        self._sock.close()


def encode(header: dict[str, Any]) -> bytes:
    """The header of a message as it is sent."""
    return json.dumps(header, separators=(",", ":")).encode()


def _bytes(memory: Any) -> memoryview:
    """The bytes of a buffer or an array in one piece, whatever its dtype."""
    if isinstance(memory, np.ndarray):
        memory = memory.reshape(-1).view(np.uint8)  # bfloat16 is no format of buffers
    return memoryview(memory).cast("B")


class Listener:
    """Where others connect: from anywhere, and from this host also through a socket of its own.

    Parameters
    ----------
    host : str
        ``127.0.0.1`` lets nobody in from other hosts.

    Attributes
    ----------
    address : (str, int, str)
        Host and port, and the name of the socket for this host.
    sockets : list of socket.socket
    """

    def __init__(self, host: str) -> None:
        tcp = socket.create_server((host, 0), backlog=_BACKLOG)
        self.sockets = [tcp]
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        name = ""
        if hasattr(socket, "AF_UNIX"):
            if sys.platform == "linux":
                name = f"@mxcore-kv-{secrets.token_hex(8)}"  # no file, of which something could be left
            else:
                self._folder = tempfile.TemporaryDirectory(prefix="mxcore-kv-")
                name = os.path.join(self._folder.name, "socket")
            local = socket.socket(socket.AF_UNIX)
            local.bind(_unix_address(name))
            local.listen(_BACKLOG)
            self.sockets.append(local)
        self.address: tuple[str, int, str] = (host, tcp.getsockname()[1], name)

    def close(self) -> None:
        """Let nobody in any more, in whatever thread somebody waits for them."""
        for sock in self.sockets:
            shut(sock)
            sock.close()
        if self._folder is not None:
            self._folder.cleanup()


def shut(sock: socket.socket) -> None:
    """End a connection, or the waiting for one, in whatever thread."""
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError as e:
        let_through(e)


def _unix_address(name: str) -> str:
    """The address of a local socket: a path, or with a ``@`` in front, as tools show it, a name that is no file."""
    return "\0" + name[1:] if name.startswith("@") else name


def accept(sock: socket.socket, token: bytes) -> Channel:
    """A channel to whoever has connected to a server, who must know the token.

    Raises
    ------
    AuthenticationError, EOFError or OSError
        If it does not, or takes too long.
    """
    _prove(sock, token, True, PATIENCE)
    return Channel(sock, PATIENCE)


def connect(address: Sequence[Any], token: bytes, transport: str = "auto", deadline: float = PATIENCE) -> Channel:
    """A channel to a server: through a socket of the host where that is ours, else through the network.

    Parameters
    ----------
    address : (str, int, str)
        Host and port, and the name of a socket on the server's host.
    token : bytes
        What both ends must know.
    transport : {'auto', 'tcp'}
        'tcp': as between hosts, whatever the host is.
    deadline : float
        How long the other end may take for each step, in seconds, if that is less than `PATIENCE`.

    Raises
    ------
    MXNetError
        (also ConnectionError) if there is no server, or it does not know the token, or refuses ours.
    """
    host, port, name = address
    patience = min(PATIENCE, deadline)
    try:
        sock = transport == "auto" and _nearby(name, patience) or socket.create_connection((host, port), patience)
        sock.settimeout(None)
    except (OSError, ValueError, OverflowError) as e:  # a name or port that cannot be
        raise error(ConnectionError, f"kvstore: no server answers at {ascii(host)[1:-1]}:{port}: {e}") from None
    try:
        _prove(sock, token, False, patience)
    except AuthenticationError:
        sock.close()
        raise error(
            ConnectionError,
            f"kvstore: the server at {host}:{port} and this worker do not have the same token; both must come from "
            "one `mxcore launch`, or get the same MXCORE_KV_TOKEN",
        ) from None
    except (EOFError, OSError) as e:
        sock.close()
        let_through(e)
        if isinstance(e, BlockingIOError):
            what = f"said nothing for {patience:g} s"
        else:
            what = f"refused the connection: {str(e) or _WORDLESS}"
        raise error(ConnectionError, f"kvstore: the server at {host}:{port} has {what}") from None
    return Channel(sock, patience)


def _nearby(name: str, patience: float) -> socket.socket | None:
    """A connection to a socket of this host, if there is one of that name."""
    if not (name and hasattr(socket, "AF_UNIX")):
        return None
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(patience)
    try:
        sock.connect(_unix_address(name))
    except OSError as e:
        sock.close()
        let_through(e)
        return None
    except BaseException:
        sock.close()
        raise
    return sock


def _prove(sock: socket.socket, token: bytes, first: bool, patience: float) -> None:
    """Let each end prove that it knows the token, which is not sent, by the challenge of `multiprocessing`."""
    _limit(sock, receiving=patience, sending=patience)
    connection: Any = _Proof(sock)
    for challenge in (first, not first):
        (deliver_challenge if challenge else answer_challenge)(connection, token)


class _Proof:
    """What a challenge needs of a `multiprocessing.Connection`, whose own would have a descriptor beside the socket's.

    Parameters
    ----------
    sock : socket.socket
        Connected, without a timeout of Python's.
    """

    _size = struct.Struct("!i")

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def send_bytes(self, data: bytes) -> None:
        self._sock.sendall(self._size.pack(len(data)) + data)

    def recv_bytes(self, most: int) -> bytes:
        (size,) = self._size.unpack(self._receive(self._size.size))
        if not 0 <= size <= most:
            raise OSError("what came is no proof that it belongs to the job")
        return self._receive(size)

    def _receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self._sock.recv(size - len(data))
            if not part:
                raise EOFError
            data += part
        return data


def _limit(sock: socket.socket, receiving: float, sending: float) -> None:
    """Let the kernel end what waits longer than so many seconds; 0: nothing."""
    for option, seconds in ((socket.SO_RCVTIMEO, receiving), (socket.SO_SNDTIMEO, sending)):
        sock.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", int(seconds), int(seconds % 1 * 1e6)))


def _give_up() -> None:
    for channel in list(_open):
        channel.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_give_up)
