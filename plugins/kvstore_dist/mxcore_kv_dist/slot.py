"""The part of a value that lies on a server."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mxcore import nd

from . import encodings

if TYPE_CHECKING:
    from .peer import Peer

__all__ = ["Slot", "over"]


class Slot:
    """The part of a value that lies here."""

    def __init__(self, number: int, key: Any, spec: list[Any], workers: int) -> None:
        self.number, self.key = number, key
        self.start, self.stop, self.shape, self.dtype, self.stype, _ = spec
        self.size = self.stop - self.start
        self.lock = threading.Lock()
        self.value: np.ndarray[Any, Any]
        self.array: Any = None
        #: For each worker what it has pushed and is not added up yet, how often it has pushed; rounds that are over.
        self.inbox: list[deque[Any]] = [deque() for _ in range(workers)]
        self.pushes = [0] * workers
        self.rounds = 0
        #: Pulls that wait: who, for which round, since when, and for which rows.
        self.waiting: list[tuple[Peer, int, float, Any]] = []
        #: Why it has no value any more; and what single workers are told at their next pull: of an asynchronous store
        #: a push that could not be computed is nobody else's matter.
        self.failed: str | None = None
        self.complaints: dict[int, str] = {}

    def fill(self, memory: np.ndarray[Any, Any], at: int) -> None:
        """Take the value from bytes, and show it as an array."""
        self.value.view(np.uint8)[:] = np.frombuffer(memory, np.uint8, self.value.nbytes, at)
        self.array = over(self.value, self.shape)
        if self.stype == "row_sparse":
            rows = nd.arange(self.shape[0], dtype="int64")
            self.array = nd.sparse.row_sparse_array((self.array.copy(), rows), shape=tuple(self.shape))

    def length(self, kind: str, extra: Any) -> int:
        """How many bytes a push has."""
        if kind == "raw":
            return int(self.value.nbytes)
        if kind == "2bit":
            return int(-(-self.size // 4))
        if kind == "rows":
            return int(extra * (8 + math.prod(self.shape[1:]) * self.value.itemsize))
        return int(self.size * encodings.narrow(kind).itemsize)

    def decode(self, kind: str, body: np.ndarray[Any, Any], extra: Any) -> Any:
        """A push from its bytes: an array of one dimension, or rows."""
        if kind == "raw":
            return body.view(self.dtype)
        if kind == "2bit":
            return encodings.unpack_two_bits(body, self.size, extra, self.dtype)
        if kind == "rows":
            ids, data = body[: extra * 8].view(np.int64), body[extra * 8 :].view(self.dtype)
            if len(ids) and not 0 <= ids.min() <= ids.max() < self.shape[0]:
                raise ValueError(f"a push of rows {ids.min()} to {ids.max()} to key {self.key!r} of {self.shape[0]}")
            values = nd.array(data.reshape(extra, *self.shape[1:]), dtype=self.dtype)
            return nd.sparse.row_sparse_array((values, nd.array(ids, dtype="int64")), shape=tuple(self.shape))
        return body.view(encodings.narrow(kind)).astype(self.dtype)


def over(memory: np.ndarray[Any, Any], shape: Sequence[int]) -> Any:
    """An NDArray over memory, which stays writable for NumPy, too."""
    return nd.from_numpy(memory.view().reshape(shape))
