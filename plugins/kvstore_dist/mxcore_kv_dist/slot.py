"""The part of a value that lies on a server, and rounds of pushes to it."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mxcore import nd
from mxcore.context import cpu
from mxcore.kvstore.compression import narrow
from mxcore.kvstore.values import add
from mxcore.ndarray import NDArray

from . import encodings

if TYPE_CHECKING:
    from .peer import Peer, Replies

__all__ = ["Round", "Slot", "Wait", "over"]


class Wait(NamedTuple):
    """Who waits until so many rounds of a value are over, since when, and what follows: then, or if they never are."""

    peer: Peer
    needs: int
    since: float
    over: Callable[[Replies], None]
    failed: Callable[[Replies, str], None]


class Round:
    """Pushes that are added up together, one of each worker that takes part.

    What comes over connections is added up as it comes, in pieces: more workers take no more memory. What workers of
    this host push lies in memory that both see, and is added up at the end, in the order of their ranks.

    Parameters
    ----------
    slot : Slot
    workers : int
        How many take part.
    """

    def __init__(self, slot: Slot, workers: int) -> None:
        self.workers = self.missing = workers
        self._slot = slot
        #: The sum of what came, of which so many elements have begun; and that of rows.
        self._sum: np.ndarray[Any, Any] | None = None
        self._begun = 0
        self._rows: Any = None
        #: Rank -> its worker, and the push in the memory of both.
        self._lent: dict[int, tuple[Peer, np.ndarray[Any, Any]]] = {}

    @property
    def sum(self) -> np.ndarray[Any, Any]:
        """Memory for the sum; a single worker's push may be received there."""
        if self._sum is None:
            self._sum = self._slot.scratch()
        return self._sum

    def lend(self, peer: Peer, pushed: np.ndarray[Any, Any]) -> None:
        """Count a push that lies in memory which its worker does not write to until it is told."""
        self._lent[peer.rank] = peer, pushed

    def add(self, start: int, numbers: np.ndarray[Any, Any]) -> None:
        """Add elements; whoever has added some has added all before them."""
        total, stop = self.sum, start + numbers.size
        known = min(self._begun, stop)
        np.add(total[start:known], numbers[: known - start], out=total[start:known])
        total[known:stop] = numbers[known - start :]
        self._begun = max(self._begun, stop)

    def add_rows(self, rows: Any) -> None:
        """Add a row-sparse array."""
        self._rows = rows if self._rows is None else add([self._rows, rows], cpu())

    def parts(self) -> list[Any]:
        """What remains to be added up: arrays of one dimension, which may be written to, and rows."""
        found: list[Any] = [] if self._rows is None else [self._rows]
        if self._sum is not None:
            found.append(self._sum)
        return found + [pushed for _, (_, pushed) in sorted(self._lent.items())]

    def end(self) -> list[Peer]:
        """Give memory back; return the workers whose memory was used."""
        if self._sum is not None:
            self._slot.spare = self._sum
        return [peer for peer, _ in self._lent.values()]


class Slot:
    """The part of a value that lies here."""

    def __init__(self, number: int, key: Any, spec: list[Any], workers: int) -> None:
        self.number, self.key = number, key
        self.start, self.stop, self.shape, self.dtype, self.stype = spec
        self.size = self.stop - self.start
        self.lock = threading.Lock()
        self.value: np.ndarray[Any, Any]
        self.array: Any = None
        #: How often each worker has pushed, rounds that have begun, and how many are over.
        self.pushes = [0] * workers
        self.begun: deque[Round] = deque()
        self.rounds = 0
        #: Memory of a round that is over, for the next.
        self.spare: np.ndarray[Any, Any] | None = None
        #: Pulls, and questions about what comes of pushes.
        self.waiting: list[Wait] = []
        #: Why it has no value any more; and what single workers are told at their next pull: of an asynchronous store
        #: a push that could not be computed is nobody else's matter.
        self.failed: str | None = None
        self.complaints: dict[int, str] = {}

    def scratch(self) -> np.ndarray[Any, Any]:
        """Memory for as many numbers."""
        spare, self.spare = self.spare, None
        return np.empty(self.size, self.dtype) if spare is None else spare

    def round_of(self, rank: int) -> Round:
        """The round to which the next push of a worker belongs, in a synchronous store."""
        ahead = self.pushes[rank] - self.rounds
        if ahead == len(self.begun):
            self.begun.append(Round(self, len(self.pushes)))
        return self.begun[ahead]

    def fill(self, memory: np.ndarray[Any, Any], at: int) -> None:
        """Take the value from bytes, and show it as an array."""
        self.value.view(np.uint8)[:] = np.frombuffer(memory, np.uint8, self.value.nbytes, at)
        self.array = over(self.value, self.shape)
        if self.stype == "row_sparse":
            self.array = rows_from(np.arange(self.shape[0]), self.value.reshape(self.shape), self.shape)

    def length(self, kind: str, numbers: int) -> int:
        """How many bytes so many numbers have in an encoding."""
        if kind == "raw":
            return int(numbers * self.value.itemsize)
        if kind == "2bit":
            return -(-numbers // 4)
        return int(numbers * narrow(kind).itemsize)

    def decode(self, kind: str, body: np.ndarray[Any, Any], numbers: int, threshold: float) -> np.ndarray[Any, Any]:
        """Numbers from their bytes, perhaps of a smaller dtype."""
        if kind == "raw":
            return body.view(self.dtype)
        if kind == "2bit":
            return encodings.unpack_two_bits(body, numbers, threshold, self.dtype)
        return body.view(narrow(kind))

    def rows_length(self, rows: int) -> int:
        """How many bytes so many rows have, with their numbers."""
        return int(rows * (8 + math.prod(self.shape[1:]) * self.value.itemsize))

    def decode_rows(self, body: np.ndarray[Any, Any], rows: int) -> Any:
        """A row-sparse array from its bytes."""
        ids, data = body[: rows * 8].view(np.int64), body[rows * 8 :].view(self.dtype)
        if len(ids) and not 0 <= ids.min() <= ids.max() < self.shape[0]:
            raise ValueError(f"a push of rows {ids.min()} to {ids.max()} to key {self.key!r} of {self.shape[0]}")
        return rows_from(ids, data.reshape(rows, *self.shape[1:]), self.shape)


def over(memory: np.ndarray[Any, Any], shape: Sequence[int]) -> Any:
    """An NDArray over memory, which stays writable for NumPy, too."""
    return nd.from_numpy(memory.view().reshape(shape))


def rows_from(ids: np.ndarray[Any, Any], data: np.ndarray[Any, Any], shape: Sequence[int]) -> NDArray:
    """A row-sparse array of the CPU, whatever the default context is, with a copy of what it is given."""
    values, rows = nd.array(data, cpu(), data.dtype), nd.array(ids, cpu(), "int64")
    found: NDArray = nd.sparse.row_sparse_array((values, rows), shape=tuple(shape), ctx=cpu())
    return found
