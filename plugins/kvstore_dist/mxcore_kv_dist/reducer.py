"""What an allreduce store does behind its calls: values go round in a ring of workers, as many at once as there are."""

from __future__ import annotations

import itertools
import queue
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from mxcore.base import MXNetError, error
from mxcore.kvstore.keys import Key
from mxcore.kvstore.transfers import Arrival, Departure
from mxcore.ndarray import NDArray
from mxcore.plugin import Uninterrupted, begin

from .client import Link
from .job import Job
from .lifetime import enlist, forked_text
from .ring import ROOM, Ring

__all__ = ["Entry", "Reducer"]

#: How often it is looked whether somebody still has the store, and how long a server may take to say when it has heard
#: of somebody, in seconds.
_POLL, _GRACE = 0.5, 3.0
#: How often who closes a store looks whether all has gone round, in seconds.
_LOOK = 0.02


class Entry(NamedTuple):
    """A value that is to go round."""

    key: Key
    #: A dense array of what is sent, and whether nobody else will write to it.
    sent: NDArray
    mine: bool
    #: What the user gave, which may be of another shape and dtype.
    given: NDArray


class _Value:
    """A value that goes round, and where its sum is to be written."""

    def __init__(self, entry: Entry, arrival: Arrival, number: int) -> None:
        self.key, total, mine, given = entry
        self.size, self.dtype = total.size, np.dtype(total.dtype)
        #: What it must be for all workers.
        self.description = f"shape {given.shape} of {np.dtype(given.dtype).name}, sent as {self.dtype.name}"
        self.arrival, self.number, self.since = arrival, number, time.monotonic()
        self._departure = Departure(total)
        self._elements: np.ndarray[Any, Any] | None = None
        if self._departure.ready:
            self._elements = self._departure.elements() if mine else self._copy()

    @property
    def ready(self) -> bool:
        """Whether `elements` has nothing to wait for."""
        return self._elements is not None or self._departure.ready

    def _copy(self) -> np.ndarray[Any, Any]:
        memory = np.empty(self.size, self.dtype)
        self._departure.read(memory)
        return memory

    @property
    def elements(self) -> np.ndarray[Any, Any]:
        """In one dimension; in memory that nobody else writes to."""
        if self._elements is None:
            self._elements = self._copy()
        return self._elements


class _Piece(NamedTuple):
    """Elements of a value that go round together."""

    value: _Value
    start: int
    size: int

    def describe(self) -> list[Any]:
        return [self.value.key, self.start, self.size, self.value.description]


class Reducer:
    """A worker's part in adding up: a place in the ring, and a thread that lets go round what `enter` is given.

    `begin` lets it work. Who uses it takes no lock, as with a `Link`.

    Parameters
    ----------
    type : str
        Of the store.
    job : Job
    ordinal : int
        Which of the job's stores it is.
    """

    def __init__(self, type: str, job: Job, ordinal: int) -> None:
        self.rank, self._deadline = job.rank, job.deadline
        hello = job.hello(f"ring {ordinal}", type, sync=True)
        #: A server knows who is there; values do not go through it.
        self._tracker = Link(job.servers[0], job.token, hello, job.deadline, job.transport)
        try:
            self._tracker.begin()
            self._ring = Ring(job.rank, job.workers, job.token, job.host, job.deadline, job.transport, self._last_heard)
            (answer, _) = self._tracker.ask("gather", value=self._ring.address).result()
            self._ring.join(answer["values"], ordinal)
        except BaseException:
            self._tracker.drop()  # it ends also if an interrupt comes now
            self._tracker.close()
            raise
        #: What waits, a word for each time that something was added, and what goes round.
        self._pieces: deque[_Piece] = deque()
        self._bell: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._taken: list[_Piece] = []
        self._failed: BaseException | None = None
        self._ending = self._dropped = False
        self._thread = threading.Thread(target=self._run, name="mxcore-kv-allreduce", daemon=True)

    def begin(self) -> None:
        """Let values go round from now on, until it is closed or dropped, or something fails."""
        with Uninterrupted():
            try:
                self._ring.begin()
                begin(self._thread, "kvstore: the thread of an allreduce store", "use fewer stores")
            except BaseException:
                self._dropped = True
                self._ring.close()
                self._tracker.close("there was no room for a thread")
                raise
            enlist(self)

    def _last_heard(self, rank: int) -> str:
        """A rank, and when it was heard of."""
        try:
            return str(self._tracker.ask("heard", ranks=[rank]).result(_GRACE)[0]["heard"])
        except (MXNetError, TimeoutError):
            return f"rank {rank}"

    def barrier(self) -> None:
        """Wait until all workers have come here."""
        self._tracker.ask("barrier").result()

    def dead(self, timeout: float) -> int:
        """How many workers are gone, or were not heard of for so many seconds."""
        return int(self._tracker.ask("dead", timeout=timeout).result()[0]["dead"])

    def enter(self, entries: Sequence[Entry], outs: Sequence[Sequence[NDArray]]) -> None:
        """Let values go round.

        Parameters
        ----------
        entries : sequence of Entry
        outs : sequence of sequences of NDArray
            Dense arrays of the same shapes, where the sums are written.
        """
        arrival = Arrival(outs)
        entered = [_Value(entry, arrival, i) for i, entry in enumerate(entries)]
        if self._failed is not None:
            raise error(RuntimeError, f"{self._failed}")
        pieces = []
        for v in entered:
            most = ROOM // 2 // v.dtype.itemsize
            pieces += [_Piece(v, at, min(most, v.size - at)) for at in range(0, v.size, most)]
        arrival.expect(lambda: self._add(pieces))

    def _add(self, pieces: Sequence[_Piece]) -> None:
        self._pieces.extend(pieces)
        self._bell.put(None)
        if self._failed is not None:  # meanwhile
            self._fail_all(self._failed)

    def _fail_all(self, why: BaseException) -> None:
        """Let what waits know that it will not go round."""
        with suppress(IndexError):
            while True:
                self._pieces.popleft().value.arrival.fail(why)

    # -- the ring ----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        """Let pieces go round until the end, or until something fails."""
        try:
            for number in itertools.count():
                pieces = self._agree()
                if not pieces:
                    if not self._leaving:
                        raise error(RuntimeError, "kvstore: rank 0 has left the ring of allreduce")
                    break
                self._go_round(number, pieces)
        except BaseException as e:
            self._failed = e
            self._ring.close(e)
            for piece in self._taken:
                piece.value.arrival.fail(e)
            self._fail_all(e)
        else:
            self._ring.close()

    @property
    def _leaving(self) -> bool:
        """Whether nothing more will go round."""
        return self._ending or self._dropped and not self._pieces

    def _agree(self) -> list[_Piece]:
        """The pieces that go round next, which the first worker chooses: what it has by now; none at the end."""
        if self.rank == 0:
            pieces = self._take(None)
            self._ring.tell({"pieces": [p.describe() for p in pieces]})
            self._ring.hear()
            return pieces
        while not self._ring.coming(_POLL):
            if self._dropped and not self._pieces:
                return []
            if self._pieces and time.monotonic() - self._pieces[0].value.since > self._deadline:
                raise self._ring.late()
        said = self._ring.hear()
        chosen = said["pieces"]
        self._ring.tell(said)
        pieces = self._take(len(chosen))
        for piece, theirs in zip(pieces, chosen):
            if piece.describe() != theirs:
                raise error(
                    ValueError,
                    "kvstore: workers must ask for the same values in the same order, but where rank 0 has elements "
                    "{1}:{2} of key {0!r} ({3}), rank {4} has {6}:{7} of key {5!r} ({8})".format(
                        *_span(theirs), self.rank, *_span(piece.describe())
                    ),
                )
        return pieces

    def _take(self, count: int | None) -> list[_Piece]:
        """So many pieces, or as many as there are, of one dtype, and fit into a room; none at the end."""
        end = None if count is None else time.monotonic() + self._deadline
        while len(self._pieces) < (1 if count is None else count) and not (self._leaving and count is None):
            if end is not None and time.monotonic() > end:
                raise error(
                    TimeoutError,
                    f"kvstore: rank 0 has waited {self._deadline:g} s for what rank {self.rank} did not push",
                )
            with suppress(queue.Empty):
                self._bell.get(timeout=_POLL)
        taken = self._taken = []
        room = ROOM
        while self._pieces and (count is None or len(taken) < count):
            piece = self._pieces[0]
            room -= piece.size * piece.value.dtype.itemsize
            # What is not computed yet may need the sums of those before it.
            fits = room >= 0 and (not taken or piece.value.ready and piece.value.dtype == taken[0].value.dtype)
            if count is None and not fits:
                break
            taken.append(piece)  # first: it is always somewhere
            self._pieces.popleft()
        return taken

    def _go_round(self, number: int, pieces: list[_Piece]) -> None:
        dtype = pieces[0].value.dtype
        size = sum(p.size for p in pieces)
        room = self._ring.room(number, dtype, size)
        at = 0
        for piece in pieces:
            room[at : at + piece.size] = piece.value.elements[piece.start : piece.start + piece.size]
            at += piece.size
        self._ring.add_up(number, dtype, size)
        at = 0
        unread = []
        for piece in pieces:
            read = threading.Event()
            piece.value.arrival.write(piece.value.number, piece.start, room[at : at + piece.size], read.set)
            unread.append(read)
            at += piece.size
        for piece, read in zip(pieces, unread):  # the room is to be used again
            if not read.wait(self._deadline):
                raise error(
                    TimeoutError,
                    f"kvstore: rank {self.rank} has waited {self._deadline:g} s for its own arrays of key "
                    f"{piece.value.key!r}, which something computes with that does not end",
                )
        self._taken = []

    # -- ends --------------------------------------------------------------------------------------------------------

    def drop(self) -> None:
        """Leave when all that was asked for has gone round: nobody has the store any more. This takes no lock."""
        self._dropped = True
        self._tracker.drop()

    def close(self, failure: str = "") -> None:
        """Leave when all that was asked for has gone round; at once if this program has failed, which others hear."""
        end = time.monotonic() + self._deadline
        while (self._pieces or self._taken) and not (failure or self._failed) and time.monotonic() < end:
            time.sleep(_LOOK)
        self._ending = True
        self._bell.put(None)
        if self.rank == 0 and not failure:
            self._thread.join(1)
        if self._failed is None:
            self._ring.close(RuntimeError(f"kvstore: rank {self.rank} failed ({failure})") if failure else None)
        self._tracker.close(failure)

    def forked(self) -> None:
        """Know in a forked child that ring and thread are its parent's."""
        self._failed = error(RuntimeError, forked_text())


def _span(piece: list[Any]) -> tuple[Any, int, int, str]:
    """Key, first and last element, and what the value of a piece is that `describe` described."""
    key, start, size, description = piece
    return key, start, start + size, description
