"""The store without servers: workers add up among themselves, in a ring, and each updates its own copy."""

from __future__ import annotations

import atexit
import itertools
import threading
import time
import weakref
from collections import deque
from typing import Any, NamedTuple

import numpy as np

import mxcore as mx
from mxcore import nd
from mxcore.autograd import pause
from mxcore.base import error
from mxcore.kvstore import KVStore, KVStoreBase
from mxcore.kvstore.keys import Key, group
from mxcore.kvstore.transfers import Arrival, Departure
from mxcore.kvstore.values import add, write
from mxcore.ndarray import NDArray

from .client import Link
from .job import Job, Member, current_job
from .ring import ROOM, Ring

__all__ = ["AllReduce", "create"]

_ordinals = itertools.count()


def create(type: str) -> KVStoreBase:
    """Make the store, alone where there is no job."""
    job = current_job(type)
    return AllReduce(type, job, next(_ordinals)) if job is not None and job.workers > 1 else _Alone()


class _Value:
    """A value that goes round, and where its sum is to be written."""

    def __init__(self, key: Key, total: NDArray, mine: bool, arrival: Arrival, number: int) -> None:
        self.key, self.size, self.dtype = key, total.size, np.dtype(total.dtype)
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
        return [self.value.key, self.start, self.size, self.value.dtype.name]


class AllReduce(Member, KVStoreBase):
    """Adds up what workers have, without servers: for ``gluon.Trainer(…, kvstore='allreduce')``.

    Workers must ask for the same keys in the same order. Arrays that wait at the same time go round together.

    Parameters
    ----------
    type : str
        Its name.
    job : Job
        Who this worker is.
    ordinal : int
        Which of the job's stores this is.
    """

    def __init__(self, type: str, job: Job, ordinal: int = 0) -> None:
        self._type, self._job = type, job
        hello = job.hello(f"ring {ordinal}", type, sync=True)
        #: A server knows who is there; values do not go through it.
        self._tracker = Link(job.servers[0], job.token, hello, job.deadline, job.transport)
        self._ring = Ring(job.rank, job.workers, job.token, job.host, job.deadline, job.transport)
        (answer, _) = self._tracker.ask("gather", value=self._ring.address).result()
        self._ring.join(answer["values"], ordinal)
        self._work = threading.Condition()
        #: What waits, and what goes round.
        self._pieces: deque[_Piece] = deque()
        self._taken: list[_Piece] = []
        self._failed: BaseException | None = None
        self._ending = False
        self._thread = threading.Thread(target=self._run, name="mxcore-allreduce", daemon=True)
        self._thread.start()
        _open.add(self)

    # -- values ------------------------------------------------------------------------------------------------------

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """Hand out the values of the first worker."""
        outs = group(key, out)
        with pause():
            for k, arrays in group(key, value).items():
                # As bytes, of which those of other workers are zero: the sum is exact, whatever they mean.
                sent = arrays[0].tostype("default").asnumpy().view(np.uint8).reshape(-1)
                whole = nd.array(sent if self.rank == 0 else np.zeros_like(sent), dtype="uint8")
                self._enter({k: (whole, True)}, {k: [whole]})
                found = nd.array(whole.asnumpy().view(arrays[0].dtype).reshape(arrays[0].shape), dtype=arrays[0].dtype)
                for target in outs[k]:
                    write(found, target)

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """Add up values of all devices and workers, and hand out the sums; the priority changes nothing."""
        outs = group(key, value if out is None else out)
        with pause():
            totals: dict[Key, tuple[NDArray, bool]] = {}
            for k, arrays in group(key, value).items():
                total = arrays[0] if len(arrays) == 1 else add(arrays, arrays[0].context)
                dense = total.tostype("default")
                totals[k] = dense, len(arrays) > 1 or dense is not total or any(t is total for t in outs[k])
            targets = {k: [t for t in outs[k] if t.stype == "default"] for k in totals}
            sparse = [(k, t) for k in totals for t in outs[k] if t.stype != "default"]
            for k, _ in sparse:  # by way of an array of their own
                if not targets[k]:
                    targets[k] = [nd.empty(totals[k][0].shape, dtype=totals[k][0].dtype)]
            self._enter(totals, targets)
            for k, target in sparse:
                write(targets[k][0], target)

    def _enter(self, totals: dict[Key, tuple[NDArray, bool]], outs: dict[Key, list[NDArray]]) -> None:
        """Let values go round: each with whether nobody else will write to it."""
        for k, (total, _) in totals.items():
            for target in outs[k]:
                if target.shape != total.shape:
                    raise error(
                        ValueError,
                        f"kvstore: pushpull of key {k!r}: the sum has shape {total.shape}, but the array on "
                        f"{target.context} has shape {target.shape}",
                    )
        arrival = Arrival([outs[k] for k in totals])
        values = [_Value(k, total, mine, arrival, i) for i, (k, (total, mine)) in enumerate(totals.items())]
        with self._work:
            if self._failed is not None:
                raise error(RuntimeError, f"{self._failed}")
            for v in values:
                most = ROOM // 2 // v.dtype.itemsize
                self._pieces.extend(_Piece(v, at, min(most, v.size - at)) for at in range(0, v.size, most))
            self._work.notify_all()
        arrival.expect()

    # -- the ring ----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        """Let pieces go round until the end, or until something fails."""
        try:
            for number in itertools.count():
                pieces = self._agree()
                if not pieces:
                    if not self._ending:
                        raise error(RuntimeError, "kvstore: rank 0 has left the ring of allreduce")
                    return
                self._go_round(number, pieces)
        except BaseException as e:
            with self._work:
                self._failed = e
                waiting = [*self._taken, *self._pieces]
                self._pieces.clear()
            self._ring.close(str(e))
            for piece in waiting:
                piece.value.arrival.fail(e)

    def _agree(self) -> list[_Piece]:
        """The pieces that go round next, which the first worker chooses: what it has by now."""
        if self.rank == 0:
            pieces = self._take(None)
            self._ring.tell({"pieces": [p.describe() for p in pieces]})
            self._ring.hear()
            return pieces
        while not self._ring.coming(0.5):
            with self._work:
                if self._pieces and time.monotonic() - self._pieces[0].value.since > self._job.deadline:
                    raise self._ring.late()
        said = self._ring.hear()
        chosen = said["pieces"]
        self._ring.tell(said)
        pieces = self._take(len(chosen))
        for piece, theirs in zip(pieces, chosen):
            if piece.describe() != theirs:
                raise error(
                    RuntimeError,
                    "kvstore: workers must ask for the same values in the same order, but where rank 0 has elements "
                    "{1}:{2} of key {0!r} ({3}), rank {4} has {6}:{7} of key {5!r} ({8})".format(
                        *_span(theirs), self.rank, *_span(piece.describe())
                    ),
                )
        return pieces

    def _take(self, count: int | None) -> list[_Piece]:
        """So many pieces, or as many as there are, of one dtype, and fit into a room; none at the end."""
        with self._work:
            end = None if count is None else time.monotonic() + self._job.deadline
            while len(self._pieces) < (1 if count is None else count) and not (self._ending and count is None):
                if end is not None and time.monotonic() > end:
                    raise error(
                        TimeoutError,
                        f"kvstore: rank 0 has waited {self._job.deadline:g} s for what rank {self.rank} did not push",
                    )
                self._work.wait(0.5 if end is not None else None)
            taken = self._taken = []
            room = ROOM
            while self._pieces and (count is None or len(taken) < count):
                piece = self._pieces[0]
                room -= piece.size * piece.value.dtype.itemsize
                # What is not computed yet may need the sums of those before it.
                fits = room >= 0 and (not taken or piece.value.ready and piece.value.dtype == taken[0].value.dtype)
                if count is None and not fits:
                    break
                taken.append(self._pieces.popleft())
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
        for read in unread:  # the room is to be used again
            read.wait()
        with self._work:
            self._taken = []
            self._work.notify_all()

    # -- what Trainer asks -------------------------------------------------------------------------------------------

    @staticmethod
    def is_capable(capability: str) -> bool:
        """Return False: each worker updates its own copy."""
        return not KVStore.is_capable(capability)

    @property
    def type(self) -> str:
        return self._type

    def barrier(self) -> None:
        """Wait until all workers have come here."""
        self._tracker.ask("barrier").result()

    _barrier = barrier

    def close(self) -> None:
        """Leave the ring when all that was asked for has gone round."""
        with self._work:
            end = time.monotonic() + self._job.deadline
            while (self._pieces or self._taken) and self._failed is None and time.monotonic() < end:
                self._work.wait(0.1)
            self._ending = True
            self._work.notify_all()
        if self.rank == 0:
            self._thread.join(1)
        if self._failed is None:
            self._ring.close()
        self._tracker.close()


class _Alone(KVStoreBase):
    """The store of a single worker."""

    type, rank, num_workers = "allreduce", 0, 1
    broadcast = mx.kv.base.TestStore.broadcast
    pushpull = mx.kv.base.TestStore.pushpull
    is_capable = AllReduce.is_capable

    def barrier(self) -> None:
        """Go on."""

    _barrier = barrier


#: Stores to be closed at the end of the program.
_open: weakref.WeakSet[AllReduce] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for store in list(_open):
        store.close()


def _span(piece: list[Any]) -> tuple[Any, int, int, str]:
    """Key, first and last element, and dtype of a piece that `describe` described."""
    key, start, size, dtype = piece
    return key, start, start + size, dtype
