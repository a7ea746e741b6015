"""The worker's side: pushes and pulls wait here for their turn, by priority, and go to each server in batches."""

from __future__ import annotations

import functools
import hashlib
import heapq
import itertools
import math
import os
import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import mxcore
from mxcore.base import error
from mxcore.kvstore.transfers import Departure
from mxcore.plugin import Promise, Uninterrupted, begin, fork_safe_lock, let_through, suppress

from . import wire
from .lifetime import enlist, forked_text
from .memory import open_segment, view
from .peer import told
from .server import PROTOCOL

__all__ = ["Link", "Pull", "Push", "Slot"]

#: How many bytes of values a message announces or carries, unless a single one has more: while the server adds up
#: these, the next are copied.
_BATCH = 4 << 20
#: How much longer than the deadline a worker waits for the server to say what was waited for, in seconds.
_GRACE = 3.0
#: How often a worker says that it is there, and looks for what waits too long, in seconds.
_BEAT, _POLL = 2.0, 0.25


class Push:
    """Values on their way to a slot.

    Parameters
    ----------
    kind : str
        ``'slot'``: they lie in the memory for it; else an encoding, whose bytes are `body`.
    """

    __slots__ = ("kind", "body", "extra", "departure", "put")

    def __init__(self, kind: str, body: Any = None, extra: Any = None) -> None:
        self.kind, self.body, self.extra = kind, body, extra
        #: From where values are to be read into that memory, if they are not there yet.
        self.departure: Departure | None = None
        #: Whether it will be sent.
        self.put = False


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
        #: Whether the memory for pushes is free; what is to be sent; the pull that was sent and is not read yet; the
        #: tickets that wait for that, or for what is to be pushed.
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
    """A worker's connection to one server; `begin` lets it work.

    One thread sends, one receives, and one looks for what nobody answers. Who uses it takes no lock, for Ctrl-C or a
    signal's handler may come anywhere: he gives the sender something to do, in one step of the interpreter.

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
        self._patience = deadline + _GRACE
        self._channel = wire.connect(address, token, transport, deadline)
        try:
            versions = {"mxcore": mxcore.__version__, "protocol": PROTOCOL}
            self._channel.send({**hello, **versions, "program": _program(), "folder": _folder()})
            answer, _ = self._channel.receive()
            if "refused" in answer:
                raise error(ConnectionError, f"kvstore: the server at {self.where} refuses: {answer['refused']}")
            self.number: int = answer["server"]
            self.servers: int = answer["servers"]
            self._channel.settle(self._patience)
        except wire.Closed as e:
            self._channel.close()
            raise error(ConnectionError, f"kvstore: the server at {self.where} has hung up: {e}") from None
        except BaseException:
            self._channel.close()
            raise
        #: What the sender is to do next: functions of this class, and their arguments.
        self._todo: queue.SimpleQueue[tuple[Callable[..., Any], tuple[Any, ...]]] = queue.SimpleQueue()
        #: Held by who does it, and by who looks what becomes of it: threads of this object, until it is over.
        self._lock = fork_safe_lock()
        self._slots: dict[int, Slot] = {}
        #: What is to be sent: messages as they are; and tickets, each for the first entry of a slot.
        self._messages: deque[tuple[dict[str, Any] | bytes, Sequence[Any]]] = deque()
        self._tickets: list[tuple[int, int, Slot]] = []
        self._count = itertools.count()
        #: Pushes that were not sent yet, and pulls whose values were not read yet.
        self._pushes = self._pulls = 0
        #: Who waits until there are none of the former, or of both.
        self._waiting: list[tuple[Promise, bool]] = []
        #: Whether values, and not only words, are being sent.
        self._sending = False
        #: Question -> where its answer goes, since when, and what it is.
        self._asked: dict[int, tuple[Promise, float, str]] = {}
        #: Seconds of this link's life, without those for which the process was stopped.
        self._clock = 0.0
        #: What new calls are told, once there is a reason to refuse them.
        self._refusal: tuple[type[Exception], str] | None = None
        self._ending = self._over = self._dropped = False
        #: Who sends, who receives and who looks; none before it has begun.
        self._threads: list[threading.Thread] = []

    def begin(self) -> None:
        """Send and receive from now on, until it is closed, dropped or lost.

        Raises
        ------
        MXNetError
            (also RuntimeError or MemoryError) if the system has no room for the threads; it is closed then.
        """
        with Uninterrupted():  # nobody would end what has begun in part
            try:
                for run in (self._send, self._receive, self._expire):
                    name = f"mxcore-kv-{run.__name__[1:]}"
                    thread = threading.Thread(target=run, name=name, daemon=True)
                    begin(thread, f"kvstore: {name}, a thread for the server at {self.where},", "use fewer stores")
                    self._threads.append(thread)
            except BaseException:
                self._break("was left: there was no room for its threads")
                for thread in self._threads:
                    thread.join()
                self._channel.close()
                raise
            enlist(self)

    def _give(self, what: Callable[..., Any], *args: Any) -> None:
        """Let the sender do something; if it has ended, that does what remains to be done of it: who waits is told."""
        self._todo.put((what, args))
        if self._over:
            self._do_all()

    def _do_all(self) -> None:
        """Do what there is to do."""
        with Uninterrupted(), suppress(queue.Empty):
            while True:
                self._do(*self._todo.get_nowait())

    def _do(self, what: Callable[..., Any], args: tuple[Any, ...]) -> None:
        with self._lock:
            what(*args)

    # -- questions ---------------------------------------------------------------------------------------------------

    def ask(self, call: str, bodies: Sequence[Any] = (), **header: Any) -> Promise:
        """Ask the server something, after all that was pushed before; its header and bytes will come."""
        number = next(self._count)
        try:
            text = wire.encode({"ask": number, "call": call, **header})
        except (TypeError, ValueError) as e:
            raise error(TypeError, f"kvstore: a question ({call}) that cannot be sent: {e}") from None
        self.flush()
        self.check()
        answer = Promise()
        self._give(self._ask, number, answer, call, text, bodies)
        return answer

    def _ask(self, number: int, answer: Promise, call: str, text: bytes, bodies: Sequence[Any]) -> None:
        if self._over:
            answer.set_exception(self._why())
        else:
            self._asked[number] = answer, self._clock, call
            self._messages.append((text, bodies))

    def check(self) -> None:
        """Raise why nothing can be sent, if so."""
        if self._refusal is not None:
            raise self._why()

    def _why(self) -> Exception:
        assert self._refusal is not None
        return error(*self._refusal)

    def flush(self) -> None:
        """Wait until all pushes were sent."""
        self._drain(pulls=False)

    def settle(self) -> None:
        """Wait until all pushes were sent, and all that was pulled has been read."""
        self._drain(pulls=True)

    def _drain(self, pulls: bool) -> None:
        """Wait until nothing is left; an error if for the deadline it becomes no less."""
        patience = self._patience + _GRACE  # what is the server's fault shows before
        drained = Promise()
        self._give(self._wait, drained, pulls)
        before, since = None, self._clock
        while not drained.wait(_POLL):
            now = self._pushes, self._pulls
            if now != before or self._sending:  # which the channel ends if it takes too long
                before, since = now, self._clock
            elif self._clock > since + patience:
                slots = [*self._slots.values()]
                keys = sorted({repr(slot.key) for slot in slots if slot.pulling or slot.entries})
                raise error(
                    TimeoutError,
                    f"kvstore: for {patience:g} s nothing has gone to server {self.number} at {self.where}: what "
                    f"is pushed and pulled of {', '.join(keys[:5])} waits for arrays that something computes with, "
                    "which does not end",
                )

    def _wait(self, drained: Promise, pulls: bool) -> None:
        self._waiting.append((drained, pulls))
        self._look()

    def _look(self) -> None:
        """Tell who waits for that if nothing is left, or will come."""
        waiting, self._waiting = self._waiting, []
        for drained, pulls in waiting:
            if self._over or not (self._pushes or pulls and self._pulls):
                drained.set_result(None)
            else:
                self._waiting.append((drained, pulls))

    def lend(self, header: dict[str, Any], slots: Sequence[Slot], segments: list[Any] | None) -> None:
        """Take memory for slots: what the server sent along, or our own."""
        for slot, number, offset in zip(slots, header["slots"], header["offsets"]):
            slot.number = number
            if segments is None:
                slot.push, slot.pull = np.empty(slot.size, slot.dtype), np.empty(slot.size, slot.dtype)
            else:
                slot.push = view(segments[0], offset, slot.size, slot.dtype)
                slot.pull = view(segments[-1], offset, slot.size, slot.dtype)
        self._give(self._take, slots)

    def _take(self, slots: Sequence[Slot]) -> None:
        if not self._over:  # they know this link: shared memory is not to wait for the garbage collector
            self._slots.update((slot.number, slot) for slot in slots)

    # -- values ------------------------------------------------------------------------------------------------------

    def put(self, entries: Sequence[tuple[Slot, Push | Pull]], priority: int) -> None:
        """Send pushes and pulls when their turn comes; those of one slot in the order in which they were put.

        If the server is lost, pulls fail, and pushes come to nothing: `check` tells the next who pushes.
        """
        if self._refusal is None:
            for _, entry in entries:
                if isinstance(entry, Push):
                    entry.put = True
            self._give(self._put, entries, priority)
            return
        for _, entry in entries:
            if isinstance(entry, Pull):
                entry.failed(self._why())

    def _put(self, entries: Sequence[tuple[Slot, Push | Pull]], priority: int) -> None:
        for slot, entry in entries:
            if self._over:
                if isinstance(entry, Pull):
                    entry.failed(self._why())
                continue
            if isinstance(entry, Pull):
                self._pulls += 1
            else:
                self._pushes += 1
            slot.entries.append(entry)
            heapq.heappush(self._tickets, (-priority, next(self._count), slot))

    def _send(self) -> None:
        try:
            while (work := self._next()) is not None:
                messages, batch = work
                for header, bodies in messages:
                    self._channel.send(header, bodies)
                if batch:
                    self._send_batch(batch)
                del work, messages, batch  # what was pushed may be written to again
        except wire.Stuck as e:
            self._break(f"is lost: {e}", TimeoutError)
        except wire.Closed:
            pass  # who receives hears what the server had to say
        except Exception as e:
            let_through(e)
            self._break(f"is lost: a message could not be sent: {e!r}")

    def _next(self) -> tuple[list[Any], list[tuple[Slot, Push | Pull]]] | None:
        """Wait for what can be sent; None: nothing will come."""
        while True:
            self._do_all()
            with self._lock:
                if self._over:
                    return None
                messages = list(self._messages)
                self._messages.clear()
                batch = self._batch()
                self._sending = bool(batch) or any(bodies for _, bodies in messages)
            if messages or batch:
                return messages, batch
            if self._ending:
                return None
            with suppress(queue.Empty):  # who has heard that it is over may have taken what was to wake it
                self._do(*self._todo.get(timeout=_POLL))

    def _batch(self) -> list[tuple[Slot, Push | Pull]]:
        """Take what is first in line; of slots whose value is being read, or whose push is not computed, nothing."""
        batch: list[tuple[Slot, Push | Pull]] = []
        size = 0
        while self._tickets and size < _BATCH:
            rank, count, slot = heapq.heappop(self._tickets)
            if slot.waits:
                heapq.heappush(slot.parked, (rank, count))
                continue
            entry = slot.entries.popleft()
            if isinstance(entry, Pull):
                slot.pulling = entry
                entry.since = self._clock
            else:
                size += slot.nbytes
            batch.append((slot, entry))
            if slot.parked and not slot.waits:
                self._unpark(slot)
        return batch

    def _send_batch(self, batch: list[tuple[Slot, Push | Pull]]) -> None:
        header: dict[str, Any] = {}
        bodies: list[Any] = []
        pushes = 0
        for slot, entry in batch:
            if isinstance(entry, Pull):
                if entry.rows is None:
                    header.setdefault("pull", []).append(slot.number)
                continue
            pushes += 1
            if entry.departure is not None:
                try:
                    entry.departure.read(slot.push if entry.kind == "slot" else entry.body, slot.start)
                except Exception as e:
                    let_through(e)
                    header.setdefault("failed", []).append([slot.number, str(e)])
                    slot.free |= entry.kind == "slot"
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
        with self._lock:
            self._pushes -= pushes
            self._look()

    def _receive(self) -> None:
        try:
            while True:
                self._hear(*self._channel.receive())
        except wire.Closed as e:
            self._break(f"is lost: {e}")
        except Exception as e:
            let_through(e)
            self._break(f"is lost: its message was not understood: {e!r}")
        self._threads[0].join()
        self._channel.close()

    def _hear(self, header: dict[str, Any], size: int) -> None:
        if "broken" in header:
            raise wire.Closed(header["broken"])
        if "answer" in header:
            self._hear_answer(header, size)
            return
        for number in header.get("free", ()):
            self._slots[number].free = True
        for item in header.get("here", ()):
            slot = self._slots[item if isinstance(item, int) else item[0]]
            pull = slot.pulling
            assert pull is not None, f"nobody has asked for key {slot.key!r}"
            pull.since = math.inf
            if isinstance(item, int):
                if not self._channel.local:
                    self._channel.into(slot.pull)
                pull.arrived(slot.start, slot.pull, functools.partial(self._give, self._read, slot))
            else:
                _, rows, nbytes = item
                ids, data = np.empty(rows, np.int64), np.empty(nbytes, np.uint8)
                self._channel.into(ids)
                self._channel.into(data)
                self._give(self._read, slot)
                pull.arrived(ids, data.view(slot.dtype))
        for number, text in header.get("failed", ()):
            slot = self._slots[number]
            pull = slot.pulling
            assert pull is not None, f"nobody has asked for key {slot.key!r}"
            self._give(self._read, slot)
            pull.failed(error(RuntimeError, f"kvstore: key {slot.key!r}: {text}"))

    def _hear_answer(self, header: dict[str, Any], size: int) -> None:
        found: Any = np.empty(size, np.uint8)
        self._channel.into(found)
        if header.get("files"):
            found = [open_segment(f, header["size"]) for f in self._channel.files(header["files"])]
        with self._lock:
            answer, *_ = self._asked.pop(header["answer"])
        if "error" in header:
            kind, text = header["error"]
            answer.set_exception(told(kind, f"kvstore: {text}"))
        else:
            answer.set_result((header, found))

    def _read(self, slot: Slot) -> None:
        """The value of a slot was read, or will not come: what waits for that goes on."""
        slot.pulling = None
        self._pulls -= 1
        self._unpark(slot)
        self._look()

    def go_on(self, slot: Slot) -> None:
        """What is to be pushed to a slot is computed."""
        self._give(self._unpark, slot)

    def _unpark(self, slot: Slot) -> None:
        """Let a ticket wait for its turn again; the next of the slot follows it, or what it has pulled."""
        if slot.parked and not self._over:  # one: all would be parked again behind it
            heapq.heappush(self._tickets, (*heapq.heappop(slot.parked), slot))

    # -- ends --------------------------------------------------------------------------------------------------------

    def _expire(self) -> None:
        """Say from time to time that this worker is there, and end what nobody answers."""
        while not self._over:
            time.sleep(_POLL)
            self._clock += _POLL
            with self._lock:
                if self._clock % _BEAT == 0 and not self._messages:
                    self._give(self._messages.append, ({"beat": 1}, ()))
                waits = [(since, what) for _, since, what in self._asked.values()]
                for slot in self._slots.values():
                    if slot.pulling is not None:
                        waits.append((slot.pulling.since, f"the value of key {slot.key!r}"))
                    elif slot.parked and not slot.waits:  # a computation that fails says so to nobody
                        self._give(self._unpark, slot)
                idle = not (self._pushes or self._pulls or self._asked) and self._todo.empty()
            for since, what in waits:
                if self._clock > since + self._patience:
                    return self._break(f"has not answered for {self._patience:g} s ({what})", TimeoutError)
            if self._dropped and idle:
                return self.close()

    def _break(self, why: str, kind: type[Exception] = ConnectionError) -> None:
        """Let all who wait know that nothing will come."""
        with Uninterrupted():
            with self._lock:
                if self._over:
                    return
                reason = kind, f"kvstore: server {self.number} at {self.where} {why}"
                if not self._ending or self._refusal is None:  # else the server has heard the goodbye, and hung up
                    self._refusal = reason
                self._over = True
                answers = [answer for answer, *_ in self._asked.values()]
                pulls = [s.pulling for s in self._slots.values() if s.pulling is not None]
                pulls += [e for s in self._slots.values() for e in s.entries if isinstance(e, Pull)]
                for slot in self._slots.values():
                    slot.entries.clear()
                self._slots = {}  # which know this link: shared memory is not to wait for the garbage collector
                self._asked.clear()
                self._tickets.clear()
                self._look()
            for answer in answers:
                answer.set_exception(self._why())
            for pull in pulls:
                pull.failed(self._why())
            self._give(self._look)  # the sender may wait for something to do
            self._channel.end()

    def drop(self) -> None:
        """Leave when all that was asked for has come: nobody has the store any more. This takes no lock."""
        self._dropped = True

    def close(self, failure: str = "") -> None:
        """Send what waits, let come what was asked for, say goodbye, and end.

        Parameters
        ----------
        failure : str
            What went wrong in this program: nothing is waited for, and other workers are told.

        Raises
        ------
        MXNetError
            (also TimeoutError) if what waits could not be sent or read before the deadline; the link has ended then.
        """
        left = "was left: the store was closed"
        if self._refusal is None:
            self._refusal = ConnectionError, f"kvstore: server {self.number} at {self.where} {left}"
        if not self._threads:
            self._over = True
            self._channel.close()
            return
        try:
            if not failure:
                self.settle()
        finally:
            self._give(self._say_goodbye, failure)
            self._threads[0].join(self._patience)
            self._break(left)

    def _say_goodbye(self, failure: str) -> None:
        if not self._ending:
            self._ending = True
            self._messages.append(({"bye": failure}, ()))

    def forked(self) -> None:
        """Know in a forked child that the connection and the threads are its parent's."""
        self._todo = queue.SimpleQueue()
        self._over = True
        self._refusal = RuntimeError, forked_text()


def _main_file() -> str:
    """The path of the main module, '' if it has none."""
    return getattr(sys.modules.get("__main__"), "__file__", None) or ""


def _program() -> str:
    """A digest of the text of the main module, which all workers must share; what that imports is not compared."""
    if os.environ.get("MXCORE_KV_ANY_PROGRAM"):
        return ""
    try:
        with open(_main_file(), "rb") as f:
            return hashlib.sha256(f.read()).hexdigest()
    except OSError as e:
        let_through(e)
        return ""


def _folder() -> str:
    """The folder of the main module, where Python finds the modules beside it, and servers are to find them, too."""
    path = _main_file()
    return os.path.dirname(os.path.realpath(path)) if path else ""
