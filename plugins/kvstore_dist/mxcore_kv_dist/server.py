"""A server: it holds parts of values, adds up what workers push, updates them, and hands them out.

Each worker has a connection and a thread of its own; whoever brings the last push of a round adds up and updates.
"""

from __future__ import annotations

import os
import secrets
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

import mxcore

from . import wire
from .space import Peer, Refused, Space

__all__ = ["PROTOCOL", "Server"]

#: Counts changes of the messages; both ends must have the same.
PROTOCOL = 1
#: How often a server looks for what waits too long, in seconds.
_LOOK = 0.25


class Server:
    """Serves the workers of one job, in threads of its own, until `close`.

    Parameters
    ----------
    number, servers, workers : int
        Which server this is, of how many, for how many workers.
    token : bytes
        What workers must know.
    host : str
        Where to listen: ``127.0.0.1`` lets nobody in from other hosts.

    Attributes
    ----------
    address : (str, int, str)
        Host and port, and the name of a socket for workers of this host.
    """

    def __init__(self, number: int, servers: int, workers: int, token: bytes, host: str = "127.0.0.1") -> None:
        self.number, self.servers, self.workers = number, servers, workers
        self._token = token
        self._lock = threading.Lock()
        self._spaces: dict[int, Space] = {}
        self._channels: set[wire.Channel] = set()
        self._left = threading.Condition(self._lock)
        self._closed = False
        tcp = socket.create_server((host, 0), backlog=1024)
        self._listening = [tcp]
        name = ""
        self._folder = None
        if hasattr(socket, "AF_UNIX"):
            if sys.platform == "linux":
                name = f"@mxcore-kv-{secrets.token_hex(8)}"  # no file, of which something could be left
            else:
                self._folder = tempfile.TemporaryDirectory(prefix="mxcore-kv-")
                name = os.path.join(self._folder.name, "socket")
            local = socket.socket(socket.AF_UNIX)
            local.bind(wire.unix_address(name))
            local.listen(1024)
            self._listening.append(local)
        self.address = (host, tcp.getsockname()[1], name)
        for sock in self._listening:
            self._thread(self._accept, sock)
        self._thread(self._look)

    def _thread(self, run: Callable[..., Any], *args: Any) -> None:
        threading.Thread(target=run, args=args, name=f"mxcore-server-{self.number}", daemon=True).start()

    def _accept(self, sock: socket.socket) -> None:
        while True:
            try:
                connected, _ = sock.accept()
            except OSError:
                return
            self._thread(self._greet, connected)

    def _greet(self, sock: socket.socket) -> None:
        """Talk with whoever has connected, until they leave."""
        try:
            channel = wire.accept(sock, self._token)
        except Exception:  # a stranger; whatever it was, nothing of it may end this server
            sock.close()
            return
        try:
            hello, size = channel.receive()
            channel.into(bytearray(min(size, 1 << 20)))
            peer = self._enter(hello, channel)
        except (wire.Closed, Refused, KeyError, TypeError, ValueError) as e:
            if not isinstance(e, wire.Closed):
                self._answer(channel, {"refused": str(e)})
            channel.close()
            return
        self._answer(channel, {"server": self.number, "servers": self.servers})
        peer.space.serve(peer)
        channel.close()
        with self._left:
            self._channels.discard(channel)
            self._left.notify_all()

    @staticmethod
    def _answer(channel: wire.Channel, header: dict[str, Any]) -> None:
        try:
            channel.send(header)
        except wire.Closed:
            pass

    def _enter(self, hello: dict[str, Any], channel: wire.Channel) -> Peer:
        """Let a worker in, or raise what it is to hear."""
        for what, theirs, ours in (
            ("the protocol of stores", hello["protocol"], PROTOCOL),
            ("mxcore", hello["mxcore"], mxcore.__version__),
        ):
            if theirs != ours:
                raise Refused(
                    f"rank {hello['rank']} has version {theirs} of {what}, the server has {ours}; "
                    "all processes of a job must have the same installation"
                )
        if hello["workers"] != self.workers or not 0 <= hello["rank"] < self.workers:
            raise Refused(
                f"rank {hello['rank']} of {hello['workers']} workers wants to join a job of {self.workers}: "
                "RANK and WORLD_SIZE (or DMLC_NUM_WORKER) are not those of this job"
            )
        with self._lock:
            if self._closed:
                raise Refused("the server is ending")
            space = self._spaces.get(hello["store"])
            if space is None:
                space = self._spaces[hello["store"]] = Space(self, hello)
            peer = space.enter(hello, channel)
            self._channels.add(channel)
        return peer

    def _look(self) -> None:
        while not self._closed:
            time.sleep(_LOOK)
            for space in list(self._spaces.values()):
                space.look(time.monotonic())

    @property
    def synchronous(self) -> bool:
        """Whether workers wait for each other; as long as there is no store, they may."""
        with self._lock:
            return not self._spaces or any(space.sync for space in self._spaces.values())

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until all workers that came have left; return whether they have."""
        with self._left:
            return self._left.wait_for(lambda: not self._channels, timeout)

    def close(self) -> None:
        """End all connections and forget all values."""
        with self._lock:
            self._closed = True
            channels = list(self._channels)
        for sock in self._listening:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            sock.close()
        for channel in channels:
            channel.close()
        if self._folder is not None:
            self._folder.cleanup()
