"""A server: it holds parts of values, adds up what workers push, updates them, and hands them out.

Each worker has a connection and a thread of its own; whoever brings the last push of a round adds up and updates.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import mxcore
from mxcore.base import error

from . import wire
from .guests import Guests
from .peer import Peer, Refused
from .space import Space

__all__ = ["PROTOCOL", "Server"]

#: Counts changes of the messages; both ends must have the same.
PROTOCOL = 4
#: How often a server looks for what waits too long, in seconds.
_POLL = 0.25


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
    gone : list of int
        The ranks of workers without a connection, in the order in which they left.
    closed : bool
    """

    def __init__(self, number: int, servers: int, workers: int, token: bytes, host: str = "127.0.0.1") -> None:
        if not token:
            raise error(ValueError, "a server of a kvstore needs a token, which its workers must know")
        self.number, self.servers, self.workers = number, servers, workers
        self._token = token
        self._lock = threading.Lock()
        self._spaces: dict[int, Space] = {}
        self._channels: set[wire.Channel] = set()
        self._guests = Guests(f"mxcore-server-{number}")
        self._left = threading.Condition(self._lock)
        #: How many connections each rank has, one for each of its stores.
        self._connections: Counter[int] = Counter()
        self.gone: list[int] = []
        self.closed = False
        self._listener = wire.Listener(host)
        self.address = self._listener.address
        for sock in self._listener.sockets:
            self._thread(self._accept, sock)
        self._thread(self._expire)

    def _thread(self, run: Callable[..., Any], *args: Any) -> None:
        threading.Thread(target=run, args=args, name=f"mxcore-server-{self.number}", daemon=True).start()

    def _accept(self, sock: socket.socket) -> None:
        while not self.closed:
            try:
                connected, _ = sock.accept()
            except OSError:  # closed, or out of descriptors, which may pass
                time.sleep(_POLL)
                continue
            self._guests.greet(connected, self._greet)

    def _greet(self, sock: socket.socket) -> None:
        """Talk with whoever has connected, until they leave."""
        try:
            channel = wire.accept(sock, self._token)
        except Exception:  # a stranger; whatever it was, nothing of it may end this server
            sock.close()
            return
        finally:
            self._guests.leave(sock)
        try:
            self._talk(channel)
        except wire.Closed:
            pass
        except Exception as e:  # a first message that no worker of ours sends
            self._answer(channel, {"refused": str(e) if isinstance(e, Refused) else f"this is no worker: {e!r}"})
        channel.close()

    def _talk(self, channel: wire.Channel) -> None:
        peer = self._enter(channel.receive()[0], channel)
        try:
            channel.send({"server": self.number, "servers": self.servers})
            channel.settle(peer.space.deadline)
        finally:
            peer.space.serve(peer)
            with self._left:
                self._channels.discard(channel)
                if peer.space.deserted:
                    self._spaces.pop(peer.space.name, None)
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
        for name in ("rank", "workers"):
            if type(hello[name]) is not int:
                raise Refused(f"{name} must be a whole number, not {hello[name]!r}")
        if hello["workers"] != self.workers or not 0 <= hello["rank"] < self.workers:
            raise Refused(
                f"rank {hello['rank']} of {hello['workers']} workers wants to join a job of {self.workers}: "
                "RANK and WORLD_SIZE (or DMLC_NUM_WORKER) are not those of this job"
            )
        folder = hello["folder"]
        with self._lock:
            if self.closed:
                raise Refused("the server is ending")
            space = self._spaces.get(hello["store"])
            if space is None:
                space = self._spaces[hello["store"]] = Space(self, hello)
            peer = space.enter(hello, channel)
            if folder and folder not in sys.path:  # an optimizer may be in a module there
                sys.path.append(str(folder))
            self._channels.add(channel)
            self._connections[peer.rank] += 1
            if peer.rank in self.gone:  # it had only closed a store, or was started again
                self.gone.remove(peer.rank)
        return peer

    def note_end(self, peer: Peer) -> None:
        """Remember in which order workers leave; called before others can hear that this connection has ended."""
        with self._lock:
            self._connections[peer.rank] -= 1
            if not self._connections[peer.rank]:
                self.gone.append(peer.rank)

    def _expire(self) -> None:
        while not self.closed:
            time.sleep(_POLL)
            now = time.monotonic()
            self._guests.expire(now - 2 * wire.PATIENCE)
            with self._lock:
                spaces = list(self._spaces.values())
            for space in spaces:
                space.expire(now)

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
            self.closed = True
            for channel in self._channels:
                channel.end()
        self._guests.close()
        self._listener.close()
