"""The store without servers: workers add up among themselves, in a ring, and each updates its own copy."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from mxcore import nd
from mxcore.autograd import pause
from mxcore.context import cpu
from mxcore.kvstore import KVStore, KVStoreBase
from mxcore.kvstore.checks import check_arrays
from mxcore.kvstore.compression import Compression, Narrow, compressor
from mxcore.kvstore.keys import Key, group, singles
from mxcore.kvstore.kvstore import writable
from mxcore.kvstore.values import add, write
from mxcore.ndarray import NDArray
from mxcore.plugin import Uninterrupted

from .job import Job, Member, current_job
from .reducer import Entry, Reducer

__all__ = ["AllReduce", "create"]

_ordinals = itertools.count()


def create(type: str) -> KVStoreBase:
    """Make the store, alone where there is no job."""
    job = current_job(type)
    return AllReduce(type, job, next(_ordinals)) if job is not None and job.workers > 1 else LoneAllReduce(type)


class _Summing(KVStoreBase):
    """What stores that keep no values share: how sums begin and end."""

    def __init__(self, type: str) -> None:
        self._type = type
        self._compress: Compression | None = None

    @property
    def type(self) -> str:
        return self._type

    @staticmethod
    def is_capable(capability: str) -> bool:
        """Return False: each worker updates its own copy."""
        return not KVStore.is_capable(capability)

    def set_gradient_compression(self, compression_params: Mapping[str, Any]) -> None:
        """Compress the sum of a worker's devices, dense arrays of float32, before it goes to the others.

        Parameters
        ----------
        compression_params : dict
            As for a `KVStore`; ``'fp16'`` and ``'bfloat16'`` add up in these numbers, ``'2bit'`` sends as much as
            without.
        """
        self._compress = compressor(compression_params)

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """Hand out the values of the first worker."""
        values, outs = singles("broadcast", key, value), writable("broadcast", key, out)
        for k, array in values:
            check_arrays("broadcast", k, array, outs[k])
        with pause():
            for k, array in values:
                self._hand_out(k, array, outs[k])

    def _hand_out(self, key: Key, value: NDArray, outs: list[NDArray]) -> None:
        """Write the first worker's value to arrays of all."""
        raise NotImplementedError

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """Add up values of all devices and workers, and hand out the sums; the priority changes nothing."""
        outs = writable("pushpull", key, value if out is None else out)
        given = group(key, value)
        for k, arrays in given.items():
            check_arrays("pushpull", k, arrays[0], [*arrays[1:], *outs[k]])
        if self._compress is not None:
            for k, arrays in given.items():
                self._compress.check(k, arrays)
        with pause():
            entries = []
            for k, arrays in given.items():
                total = arrays[0] if len(arrays) == 1 else add(arrays, arrays[0].context)
                sent = self._sent(k, total)
                mine = len(arrays) > 1 or sent is not total or any(t is total for t in outs[k])
                entries.append(Entry(k, sent, mine, total))
            targets = {e.key: [t for t in outs[e.key] if t.stype == "default"] for e in entries}
            sparse = [(e.key, t) for e in entries for t in outs[e.key] if t.stype != "default"]
            for e in entries:  # sparse ones by way of an array of their own
                targets[e.key] = targets[e.key] or [nd.empty(e.sent.shape, cpu(), e.sent.dtype)]
            self._enter(entries, targets)
            for k, target in sparse:
                write(targets[k][0], target)

    def _sent(self, key: Key, total: NDArray) -> NDArray:
        """A dense array of the numbers that go to the others."""
        if isinstance(self._compress, Narrow):
            return total.astype(self._compress.dtype)
        return total.tostype("default") if self._compress is None else self._compress(key, total)

    def _enter(self, entries: list[Entry], outs: dict[Key, list[NDArray]]) -> None:
        """Let values be added up."""
        raise NotImplementedError


class AllReduce(Member, _Summing):
    """Adds up what workers have, without servers: for ``gluon.Trainer(…, kvstore='allreduce')``.

    Workers must ask for the same keys in the same order, for a value goes round when all of them are at it: what one
    sent ahead by its own priorities would keep the ring waiting. So priorities, which may differ, change nothing.
    Arrays that wait at the same time go round together.

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
        super().__init__(type)
        self._job = job
        begun: list[Reducer] = []
        weakref.finalize(self, _drop, begun).atexit = False  # first: an interrupt may come anywhere
        self._reducer = Reducer(type, job, ordinal)
        with Uninterrupted():
            begun.append(self._reducer)
            self._reducer.begin()

    # -- values ------------------------------------------------------------------------------------------------------

    def _hand_out(self, key: Key, value: NDArray, outs: list[NDArray]) -> None:
        # As bytes, of which those of other workers are zero: the sum is exact, whatever they mean.
        sent = value.tostype("default").asnumpy().view(np.uint8).reshape(-1)
        whole = nd.array(sent if self.rank == 0 else np.zeros_like(sent), cpu(), "uint8")
        self._enter([Entry(key, whole, True, value)], {key: [whole]})
        found = nd.array(whole.asnumpy().view(value.dtype).reshape(value.shape), cpu(), value.dtype)
        for target in outs:
            write(found, target)

    def _enter(self, entries: list[Entry], outs: dict[Key, list[NDArray]]) -> None:
        """Let values go round."""
        self._reducer.enter(entries, [outs[e.key] for e in entries])

    # -- workers -----------------------------------------------------------------------------------------------------

    def barrier(self) -> None:
        """Wait until all workers have come here."""
        self._reducer.barrier()

    def _count_dead(self, seconds: float) -> int:
        return self._reducer.dead(seconds)

    def close(self) -> None:
        """Leave the ring when all that was asked for has gone round."""
        self._reducer.close()


def _drop(reducers: Iterable[Reducer]) -> None:
    for reducer in reducers:
        reducer.drop()


class LoneAllReduce(_Summing):
    """The store of a single worker."""

    rank, num_workers = 0, 1

    def _hand_out(self, key: Key, value: NDArray, outs: list[NDArray]) -> None:
        for target in outs:
            write(value, target)

    def _enter(self, entries: list[Entry], outs: dict[Key, list[NDArray]]) -> None:
        for key, sent, *_ in entries:
            for target in outs[key]:
                write(sent, target)
