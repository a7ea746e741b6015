"""The worker's side: pushes and pulls wait here for their turn, by priority, and go to each server in batches."""

from __future__ import annotations

import hashlib
import heapq
import itertools
import math
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np

import mxcore
from mxcore.base import MXNetError, error
from mxcore.kvstore.transfers import Departure

from . import wire
from .memory import open_segment, view
from .server import PROTOCOL

__all__ = ["Link", "Pull", "Push", "Slot"]

#: How many bytes of values a message announces or carries, unless a single one has more: while the server adds up
#: these, the next are copied.
_BATCH = 4 << 20
#: How much longer than the deadline a worker waits for the server to say what was waited for, in seconds.
_GRACE = 3.0
#: How often a worker says that it is there, in seconds.
_BEAT = 2.0


class Push:
    """Values on their way to a slot.

    Parameters
    ----------
    kind : str
        ``'slot'``: they lie in the memory for it; else an encoding, whose bytes are `body`.
    """

    __slots__ = ("kind", "body", "extra", "departure")

    def __init__(self, kind: str, body: Any = None, extra: Any = None) -> None:
        self.kind, self.body, self.extra = kind, body, extra
        #: From where values are to be read into that memory, if they are not there yet.
        self.departure: Departure | None = None


class Pull:
    """A wish for the value of a slot.

    Parameters
    ----------
    arrived : callable
        Called with the value's memory, and a function to be called when that was read; or with rows.
    failed : callable
        Called with an exception.
    rows : numpy.ndarray, optional
        Row numbers.
    """

    __slots__ = ("arrived", "failed", "rows", "since")

    def __init__(
        self,
        arrived: Callable[..., Any],
        failed: Callable[[BaseException], Any],
        rows: np.ndarray[Any, Any] | None = None,
    ) -> None:
        self.arrived, self.failed, self.rows = arrived, failed, rows
        self.since = 0.0


class Slot:
    """A part of a value on a server, as the worker sees it.

    Parameters
    ----------
    key : int or str
    start, stop : int
        Which elements.
    shape : tuple of int
        Of the part.
    dtype : numpy.dtype
    """

    def __init__(self, key: Any, start: int, stop: int, shape: tuple[int, ...], dtype: Any) -> None:
        self.key, self.start, self.stop, self.shape, self.dtype = key, start, stop, shape, dtype
        self.size = stop - start
        self.nbytes = self.size * dtype.itemsize
        self.link: Link
        self.number = -1
        #: Where pushes lie and pulled values are read.
        self.push: np.ndarray[Any, Any]
        self.pull: np.ndarray[Any, Any]
        #: Whether the memory for pushes is free; what is to be sent; the pull that was sent and is not read yet, and
        #: the tickets that wait for it.
        self.free = True
        self.entries: deque[Push | Pull] = deque()
        self.pulling: Pull | None = None
        self.parked: list[tuple[int, int]] = []

    @property
    def waits(self) -> bool:
        """Whether nothing can be sent: what was pulled is not read yet, or what is to be pushed is not computed."""
        if self.pulling is not None:
            return True
        first = self.entries[0]
        return isinstance(first, Push) and first.departure is not None and not first.departure.ready

    @property
    def rows(self) -> tuple[int, int]:
        """The first of the value's rows that lies here, and the one behind the last."""
        row = max(1, math.prod(self.shape[1:]))
        return self.start // row, self.stop // row


class Link:
    """A worker's connection to one server.

    Parameters
    ----------
    address : (str, int, str)
    token : bytes
    hello : dict
        Who this is, and what store it makes.
    deadline : float
        How long anything may take, in seconds.
    transport : str
    """

    def __init__(
        self, address: Sequence[Any], token: bytes, hello: dict[str, Any], deadline: float, transport: str
    ) -> None:
        self.where = f"{address[0]}:{address[1]}"
        self._deadline = deadline
        self._channel = wire.connect(address, token, transport)
        try:
            self._channel.send({**hello, "mxcore": mxcore.__version__, "protocol": PROTOCOL, "program": _program()})
            answer, _ = self._channel.receive()
        except wire.Closed as e:
            raise error(ConnectionError, f"kvstore: the server at {self.where} has hung up: {e}") from None
        if "refused" in answer:
            self._channel.close()
            raise error(ConnectionError, f"kvstore: the server at {self.where} refuses: {answer['refused']}")
        self.number: int = answer["server"]
        self._slots: dict[int, Slot] = {}
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)
        self._tickets: list[tuple[int, int, Slot]] = []
        self._count = itertools.count()
        self._unsent = 0  # pushes
        self._asked: dict[int, tuple[Future[Any], float]] = {}
        self._broken: str | None = None
        self._ending = False
        for run in (self._send, self._receive, self._beat):
            threading.Thread(target=run, name=f"mxcore-kv-{run.__name__[1:]}", daemon=True).start()

    # -- questions ---------------------------------------------------------------------------------------------------

    def ask(self, call: str, bodies: Sequence[Any] = (), **header: Any) -> Future[tuple[dict[str, Any], Any]]:
        """Ask the server something, after all that was pushed before; the future gives its header and bytes."""
        future: Future[Any] = Future()
        self.flush()
        with self._lock:
            number = next(self._count)
            self._asked[number] = future, time.monotonic() + self._deadline + _GRACE
            if self._broken:
                del self._asked[number]
                raise error(ConnectionError, self._broken)
        try:
            self._channel.send({"ask": number, "call": call, **header}, bodies)
        except wire.Closed as e:
            self._break(f"the connection has ended ({e})")
        return future

    def flush(self) -> None:
        """Wait until all pushes were sent."""
        with self._work:
            end = time.monotonic() + self._deadline + _GRACE
            while self._unsent and not self._broken and time.monotonic() < end:
                self._work.wait(0.05)

    def lend(self, header: dict[str, Any], slots: Sequence[Slot], segments: list[Any] | None) -> None:
        """Take memory for slots: what the server sent along, or our own."""
        for slot, number, offset in zip(slots, header["slots"], header["offsets"]):
            slot.number = number
            if segments is None:
                slot.push, slot.pull = np.empty(slot.size, slot.dtype), np.empty(slot.size, slot.dtype)
            else:
                slot.push = view(segments[0], offset, slot.size, slot.dtype)
                slot.pull = view(segments[-1], offset, slot.size, slot.dtype)
            self._slots[number] = slot

    # -- values ------------------------------------------------------------------------------------------------------

    def put(self, entries: Iterable[tuple[Slot, Push | Pull]], priority: int) -> None:
        """Send pushes and pulls when their turn comes; those of one slot in the order in which they were put."""
        with self._work:
            if self._broken is None:
                for slot, entry in entries:
                    slot.entries.append(entry)
                    self._unsent += isinstance(entry, Push)
                    heapq.heappush(self._tickets, (-priority, next(self._count), slot))
                self._work.notify_all()
                return
        for _, entry in entries:
            if isinstance(entry, Pull):
                entry.failed(error(ConnectionError, self._broken))

    def _send(self) -> None:
        while True:
            with self._work:
                while not self._tickets or self._broken:
                    if self._ending or self._broken:
                        return
                    self._work.wait()
                batch = self._batch()
            if batch:
                try:
                    self._send_batch(batch)
                except wire.Closed as e:
                    return self._break(f"the connection has ended ({e})")
                with self._work:
                    self._unsent -= sum(isinstance(entry, Push) for _, entry in batch)
                    self._work.notify_all()

    def _batch(self) -> list[tuple[Slot, Push | Pull]]:
        """Take what is first in line; of slots whose value is being read, nothing."""
        batch, size = [], 0
        while self._tickets and size < _BATCH:
            rank, count, slot = heapq.heappop(self._tickets)
            if slot.waits:
                slot.parked.append((rank, count))
                continue
            entry = slot.entries.popleft()
            if isinstance(entry, Pull):
                slot.pulling = entry
                entry.since = time.monotonic()
            else:
                size += slot.nbytes
            batch.append((slot, entry))
        return batch

    def _send_batch(self, batch: list[tuple[Slot, Push | Pull]]) -> None:
        header: dict[str, Any] = {}
        bodies: list[Any] = []
        for slot, entry in batch:
            if isinstance(entry, Pull):
                if entry.rows is None:
                    header.setdefault("pull", []).append(slot.number)
                continue
            if entry.departure is not None:
                try:
                    entry.departure.read(slot.push if entry.kind == "slot" else entry.body, slot.start)
                except MXNetError as e:
                    header.setdefault("failed", []).append([slot.number, str(e)])
                    continue
            if entry.kind == "slot":
                header.setdefault("push", []).append(slot.number)
                if not self._channel.local:
                    bodies.append(slot.push)
            else:
                header.setdefault("push", []).append([slot.number, entry.kind, entry.body.nbytes, entry.extra])
                bodies.append(entry.body)
        for slot, entry in batch:
            if isinstance(entry, Pull) and entry.rows is not None:
                header.setdefault("pull", []).append([slot.number, len(entry.rows)])
                bodies.append(entry.rows)
        self._channel.send(header, bodies)
        if not self._channel.local:
            for slot, entry in batch:
                if isinstance(entry, Push) and entry.kind == "slot":
                    slot.free = True

    def _receive(self) -> None:
        try:
            while True:
                self._hear(*self._channel.receive())
        except wire.Closed as e:
            if not self._ending:
                self._break(f"the connection has ended ({e})")
        except Exception as e:
            self._break(f"its message was not understood: {e!r}")

    def _hear(self, header: dict[str, Any], size: int) -> None:
        if "broken" in header:
            raise wire.Closed(header["broken"])
        if "answer" in header:
            self._hear_answer(header, size)
            return
        for number in header.get("free", ()):
            self._slots[number].free = True
        for item in header.get("here", ()):
            if isinstance(item, int):
                slot = self._slots[item]
                if not self._channel.local:
                    self._channel.into(slot.pull)
                assert slot.pulling is not None
                slot.pulling.arrived(slot.start, slot.pull, lambda slot=slot: self._read(slot))
            else:
                number, rows, nbytes = item
                slot = self._slots[number]
                ids, data = np.empty(rows, np.int64), np.empty(nbytes, np.uint8)
                self._channel.into(ids)
                self._channel.into(data)
                self._read(slot).arrived(ids, data.view(slot.dtype))
        for number, text in header.get("failed", ()):
            slot = self._slots[number]
            if slot.pulling is not None:
                self._read(slot).failed(error(RuntimeError, f"kvstore: key {slot.key!r}: {text}"))

    def _hear_answer(self, header: dict[str, Any], size: int) -> None:
        body = bytearray(size)
        self._channel.into(body)
        segments = None
        if header.get("files"):
            segments = [open_segment(f, header["size"]) for f in self._channel.files(header["files"])]
        with self._lock:
            future, _ = self._asked.pop(header["answer"], (None, 0.0))
        if future is None:
            return
        if "error" in header:
            kind, text = header["error"]
            future.set_exception(error(getattr(__import__("builtins"), kind, RuntimeError), f"kvstore: {text}"))
        else:
            future.set_result((header, segments if header.get("files") else body))

    def _read(self, slot: Slot) -> Pull:
        """The value of a slot was read: what waits for that goes on."""
        with self._work:
            pull, slot.pulling = slot.pulling, None
            self._unpark(slot)
        assert pull is not None
        return pull

    def go_on(self, slot: Slot) -> None:
        """What is to be pushed to a slot is computed."""
        with self._work:
            self._unpark(slot)

    def _unpark(self, slot: Slot) -> None:
        """Let tickets wait for their turn again."""
        for ticket in slot.parked:
            heapq.heappush(self._tickets, (*ticket, slot))
        slot.parked = []
        self._work.notify_all()

    # -- ends --------------------------------------------------------------------------------------------------------

    def _beat(self) -> None:
        """Say from time to time that this worker is there, and end what nobody answers."""
        while not (self._ending or self._broken):
            time.sleep(0.25)
            now = time.monotonic()
            if int(now / _BEAT) != int((now - 0.25) / _BEAT):
                try:
                    self._channel.send({"beat": 1})
                except wire.Closed:
                    return
            with self._lock:
                for slot in self._slots.values():  # what could not be computed never says that it is ready
                    if slot.parked and not slot.waits:
                        self._unpark(slot)
                late = [f for f, end in self._asked.values() if now > end]
                late_slots = [
                    s for s in self._slots.values() if s.pulling and now > s.pulling.since + self._deadline + _GRACE
                ]
            text = f"kvstore: the server at {self.where} has not answered for {self._deadline + _GRACE:g} s"
            for future in late:
                if not future.done():
                    future.set_exception(error(TimeoutError, text))
            for slot in late_slots:
                if slot.pulling is not None:
                    slot.pulling.failed(error(TimeoutError, text))

    def _break(self, why: str) -> None:
        """Let all who wait know that nothing will come."""
        with self._work:
            if self._broken is not None:
                return
            self._broken = f"kvstore: server {self.number} at {self.where} is lost: {why}"
            asked, self._asked = self._asked, {}
            pulls = [s.pulling for s in self._slots.values() if s.pulling is not None]
            for slot in self._slots.values():
                pulls += [e for e in slot.entries if isinstance(e, Pull)]
                slot.entries.clear()
            self._tickets.clear()
            self._work.notify_all()
        for future, _ in asked.values():
            if not future.done():
                future.set_exception(error(ConnectionError, self._broken))
        for pull in pulls:
            pull.failed(error(ConnectionError, self._broken))

    def close(self) -> None:
        """Send what waits, say goodbye, and end."""
        if self._ending:
            return
        if self._broken is None:
            self.flush()
            self._ending = True
            try:
                self._channel.send({"bye": 1})
            except wire.Closed:
                pass
        with self._work:
            self._ending = True
            self._work.notify_all()
        self._channel.close()


def _program() -> str:
    """A digest of the text of the program, which all workers must share."""
    if os.environ.get("MXCORE_KV_ANY_PROGRAM"):
        return ""
    path = getattr(sys.modules.get("__main__"), "__file__", None)
    try:
        with open(path, "rb") as f:  # type: ignore[arg-type]
            return hashlib.sha256(f.read()).hexdigest()
    except (OSError, TypeError):
        return ""
