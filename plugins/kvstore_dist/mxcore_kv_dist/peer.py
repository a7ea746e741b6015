"""A worker as a server sees it, and what is said to it."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from .memory import Segment
from .wire import Channel, Closed

if TYPE_CHECKING:
    from .space import Space

__all__ = ["Peer", "Replies"]

#: How long a worker that is sent away may take to read why, in seconds.
_FAREWELL = 5.0


class Peer:
    """A worker, as a server sees it.

    Messages to it go through a queue: one that has stopped to read keeps nobody else waiting.
    """

    def __init__(self, space: Space, rank: int, channel: Channel) -> None:
        self.space, self.rank, self.channel = space, rank, channel
        self.heard = time.monotonic()
        self.said_goodbye = False
        #: Slot number -> memory where pushes of this worker lie, and from where it reads, where that is its own.
        self.pushed: dict[int, np.ndarray[Any, Any]] = {}
        self.pulled: dict[int, np.ndarray[Any, Any]] = {}
        #: Slots whose memory for pushes holds one that is not added up yet.
        self.full: set[int] = set()
        self._out: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._send, name=f"mxcore-to-rank-{rank}", daemon=True)
        self._thread.start()

    def tell(self, header: dict[str, Any], bodies: Iterable[Any] = (), files: Iterable[Segment] = ()) -> None:
        """Put a message into the queue; files are closed when they were sent."""
        self._out.put((header, list(bodies), list(files)))

    def end(self) -> None:
        """Send what was told, and nothing more."""
        self._out.put(None)
        self._thread.join(_FAREWELL)

    def _send(self) -> None:
        try:
            while (item := self._out.get()) is not None:
                header, bodies, files = item
                self.channel.send(header, bodies, [f.file for f in files])
                del item, header, bodies, files
        except Closed:
            pass
        finally:  # who receives from this worker learns that it is over
            self.channel.end()


class Replies:
    """What the handling of one message lets be said, by worker: each gets one message."""

    def __init__(self) -> None:
        self._said: dict[Peer, tuple[dict[str, Any], list[Any]]] = {}

    def add(self, peer: Peer, what: str, item: Any, *bodies: Any) -> None:
        """Say something more to a worker, with bytes behind it."""
        header, all_bodies = self._said.setdefault(peer, ({}, []))
        header.setdefault(what, []).append(item)
        all_bodies.extend(bodies)

    def send(self) -> None:
        """Say it."""
        for peer, (header, bodies) in self._said.items():
            peer.tell(header, bodies)
