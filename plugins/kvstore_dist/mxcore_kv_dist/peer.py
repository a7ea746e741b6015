"""A worker as a server sees it, and what is said to it."""

from __future__ import annotations

import builtins
import queue
import threading
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from mxcore.base import error

from .memory import Segment
from .wire import Channel, Closed

if TYPE_CHECKING:
    from .space import Space

__all__ = ["PIECE", "Peer", "Refused", "Replies", "kind_of", "told"]

#: How many bytes of a push are received, and added up while they are in the cache, at once.
PIECE = 1 << 19
#: How long a worker that is sent away may take to read why, in seconds.
_FAREWELL = 5.0


#: Built-in exceptions that need more than a text.
_WITH_MORE = {"UnicodeDecodeError", "UnicodeEncodeError", "UnicodeTranslateError", "ExceptionGroup"}
#: What one process can tell another to raise, by name.
_KINDS: dict[str, type[Exception]] = {
    name: kind
    for name, kind in vars(builtins).items()
    if isinstance(kind, type) and issubclass(kind, Exception) and name not in _WITH_MORE
}


class Refused(Exception):
    """What a worker asks for cannot be; it is told why.

    Parameters
    ----------
    text : str
    kind : type
        The built-in exception that the worker raises.
    """

    def __init__(self, text: str, kind: type[Exception] = ValueError) -> None:
        super().__init__(text)
        self.kind = kind


def kind_of(exception: BaseException) -> str:
    """The built-in type that a worker raises for an exception here, beside `MXNetError`, which is a RuntimeError."""
    if isinstance(exception, Refused):
        return exception.kind.__name__
    kinds = [c.__name__ for c in type(exception).__mro__ if _KINDS.get(c.__name__) is c]
    return next(kind for kind in kinds if kind != "RuntimeError" or kinds[1] == "Exception")


def told(kind: str, text: str) -> Exception:
    """The error that another process has told of: of a type that `kind_of` gave, else a RuntimeError."""
    return error(_KINDS.get(str(kind), RuntimeError), text)


class Peer:
    """A worker, as a server sees it.

    Messages to it go through a queue: one that has stopped to read keeps nobody else waiting.
    """

    def __init__(self, space: Space, rank: int, channel: Channel) -> None:
        self.space, self.rank, self.channel = space, rank, channel
        self.heard = time.monotonic()
        #: Whether it was lost, or has left, and come back; and whether it has not pushed since then, so that what it
        #: loads is older than what others have made meanwhile.
        self.returned = self.behind = False
        #: Why it has left, '' if nothing went wrong.
        self.goodbye: str | None = None
        #: Slots that it knows; where it is on this host, memory where its pushes lie, and from where it reads.
        self.slots: set[int] = set()
        self.pushed: dict[int, np.ndarray[Any, Any]] = {}
        self.pulled: dict[int, np.ndarray[Any, Any]] = {}
        #: Where pieces of pushes are received.
        self.piece = np.empty(PIECE, np.uint8)
        self._out: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._send, name=f"mxcore-to-rank-{rank}", daemon=True)
        self._thread.start()

    def forget(self, slot: int) -> None:
        """Give up the memory for a slot."""
        self.slots.discard(slot)
        self.pushed.pop(slot, None)
        self.pulled.pop(slot, None)

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
