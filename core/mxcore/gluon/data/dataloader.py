"""`DataLoader`: batches from a dataset, made ahead by threads or processes."""

from __future__ import annotations

import itertools
import os
import pickle
import random
import threading
import time
import weakref
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import ndarray as nd
from ..._interrupts import let_through
from ..._locks import ObjectLock, locked
from ..._scopes import modes
from ..._workers import ending
from ...base import MXNetError, error
from ...context import cpu_pinned
from .batching import default_batchify_fn, default_mp_batchify_fn, numpy_batchify
from .sampler import BatchSampler, RandomSampler, SequentialSampler
from .workers.process_pool import ProcessPool
from .workers.thread_pool import ThreadPool

if TYPE_CHECKING:
    from ...context import Context
    from .dataset import Dataset
    from .sampler import Sampler

__all__ = ["DataLoader", "default_batchify_fn", "default_mp_batchify_fn"]

_rounds = itertools.count()


class DataLoader:
    """Batches from a dataset.

    Parameters
    ----------
    dataset : Dataset or sequence
    batch_size : int, optional
        Needed unless `batch_sampler` is given.
    shuffle : bool, default False
        Visit the samples in random order (``numpy.random.seed`` decides it).
    sampler : Sampler, optional
        Which samples, in which order; instead of `shuffle`.
    last_batch : {'keep', 'discard', 'rollover'}, optional
        What to do with a last batch that is too small, see `BatchSampler`. By default it is kept.
    batch_sampler : Sampler, optional
        Gives lists of indices; instead of `batch_size`, `shuffle`, `sampler` and `last_batch`.
    batchify_fn : callable, optional
        Makes a batch of a list of samples. By default `default_batchify_fn`.
    num_workers : int, default 0
        How many workers make batches ahead; 0 makes each batch when it is asked for.
    pin_memory : bool, default False
        Put batches into page-locked memory if a GPU is there.
    pin_device_id : int, default 0
        Of the GPU for which memory is locked.
    prefetch : int, optional
        How many batches are made ahead. By default two a worker.
    thread_pool : bool, default False
        Make the workers threads instead of processes: right for datasets that spend their time in NumPy or
        OpenCV.
    timeout : float, default 120
        Seconds to wait for a batch from a worker before giving up.
    auto_reload : bool, default False
        Begin with the batches of the next round as soon as one ends.

    Raises
    ------
    MXNetError
        While iterating: a TimeoutError if no batch comes in time, a RuntimeError that names a worker that
        died. What a dataset raises in a worker is raised in the loader, with the worker's traceback as its
        cause.

    Notes
    -----
    Worker processes are forked where the system can do so safely, else spawned;
    ``multiprocessing.set_start_method`` decides otherwise. They are reused for the next round, and end with
    the loader, or with an iterator that is dropped half way. They hand batches over in anonymous files in
    memory, so nothing stays behind and ``/dev/shm`` may be small. An iterator has a `close`, which any thread may call:
    the round is over then, also for a thread that waits for a batch. A fork of the process starts workers of its own
    with its next round; it cannot go on with an iterator of the parent. Random numbers in a worker process
    (``random``, ``numpy.random``, ``mxcore.random``) depend on the seeds set in the main process and on the
    batch, not on the number of workers. Behaviour matched: MXNet 1.9.1 ``gluon.data.DataLoader``.

    Examples
    --------
    >>> import mxcore as mx
    >>> dataset = mx.gluon.data.ArrayDataset(mx.nd.ones((5, 2)), mx.nd.zeros((5,)))
    >>> [x.shape for x, y in mx.gluon.data.DataLoader(dataset, batch_size=2)]
    [(2, 2), (2, 2), (1, 2)]
    """

    def __init__(
        self,
        dataset: Dataset,
        batch_size: int | None = None,
        shuffle: bool = False,
        sampler: Sampler | None = None,
        last_batch: str | None = None,
        batch_sampler: Sampler | None = None,
        batchify_fn: Callable[..., Any] | None = None,
        num_workers: int = 0,
        pin_memory: bool = False,
        pin_device_id: int = 0,
        prefetch: int | None = None,
        thread_pool: bool = False,
        timeout: float = 120,
        auto_reload: bool = False,
    ) -> None:
        if timeout <= 0:
            raise error(AssertionError, f"timeout must be positive, given {timeout}")
        if not isinstance(num_workers, (int, Integral)):
            raise error(TypeError, f"num_workers must be a whole number, got {num_workers!r}")
        self._dataset = dataset
        self._batch_sampler = _batch_sampler(dataset, batch_size, shuffle, sampler, last_batch, batch_sampler)
        self._batchify_fn = default_batchify_fn if batchify_fn is None else batchify_fn
        self._num_workers = max(0, int(num_workers))
        self._pin_memory = pin_memory
        self._pin_device_id = pin_device_id
        self._prefetch = max(1, 2 * self._num_workers if prefetch is None else int(prefetch))
        self._thread_pool = thread_pool
        self._timeout = timeout
        self._spare_pool: ThreadPool | ProcessPool | None = None
        self._ready: _Batches | None = None
        self.auto_reload = auto_reload
        if auto_reload:
            self.refresh()

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_spare_pool": None, "_ready": None}  # a copy starts workers of its own

    def __len__(self) -> int:
        return len(self._batch_sampler)

    def __iter__(self) -> Iterator[Any]:
        if self._num_workers == 0 or ending():
            return _InTurn(self._in_this_thread())
        batches, self._ready = self._ready, None
        return batches if batches is not None and batches.owner == os.getpid() else self._start()

    def _in_this_thread(self) -> Generator[Any, None, None]:
        for indices in self._batch_sampler:
            yield self._pinned(self._batchify_fn([self._dataset[i] for i in indices]))

    def refresh(self) -> None:
        """Begin to make the batches of the next round now."""
        if self._num_workers:
            self.clean()
            self._ready = self._start()

    def clean(self) -> None:
        """Drop the batches that `refresh` made."""
        batches, self._ready = self._ready, None
        if batches is not None:
            batches.close()

    def _start(self) -> _Batches:
        pool, self._spare_pool = self._spare_pool, None
        if pool is not None and pool.modes != modes():
            pool.close()
            pool = None
        if pool is None or pool.owner != os.getpid():
            pool = self._new_pool()
        return _Batches(self, pool, iter(self._batch_sampler), self._prefetch, self._timeout)

    def _new_pool(self) -> ThreadPool | ProcessPool:
        if self._thread_pool:
            return ThreadPool(self._num_workers, self._dataset, self._batchify_fn)
        default = self._batchify_fn in (default_batchify_fn, default_mp_batchify_fn)
        return ProcessPool(self._num_workers, self._dataset, numpy_batchify if default else self._batchify_fn)

    def _give_back(self, pool: ThreadPool | ProcessPool) -> None:
        """Keep the pool of a finished round for the next one."""
        if self._spare_pool is None:
            self._spare_pool = pool
        else:
            pool.close()
        if self.auto_reload:
            self.refresh()

    def _pinned(self, batch: Any) -> Any:
        if not self._pin_memory:
            return batch
        try:
            return _pin(batch, cpu_pinned(self._pin_device_id))
        except MXNetError:
            # No device locks pages here: ordinary memory does.
            self._pin_memory = False
            return batch


class _InTurn:
    """A generator that threads may share: each batch goes to one of those that ask."""

    def __init__(self, batches: Generator[Any, None, None]) -> None:
        self._batches = batches
        self._object_lock = ObjectLock()

    def __iter__(self) -> Iterator[Any]:
        return self

    @locked
    def __next__(self) -> Any:
        return next(self._batches)

    @locked
    def close(self) -> None:
        """End the round."""
        self._batches.close()


class _Batches:
    """One round of a loader: keeps the workers supplied and gives batches in order, each to one thread that asks."""

    def __init__(
        self,
        loader: DataLoader,
        pool: ThreadPool | ProcessPool,
        batches: Iterator[Sequence[Any]],
        prefetch: int,
        timeout: float,
    ) -> None:
        self._lock = threading.RLock()
        self._closed = False
        self._loader = weakref.ref(loader)
        self._pinned = loader._pinned if loader._pin_memory else None
        self.owner = pool.owner
        self._indices = batches
        self._timeout = timeout
        self._seed = _entropy()
        self._asked = self._given = 0
        #: What makes a batch, and of what: job -> indices, until it is there.
        self._work, self._plans = (loader._dataset, loader._batchify_fn), dict[int, list[Any]]()
        #: Job -> (whether it failed, batch or exception): one that fails does so in its turn.
        self._done: dict[int, tuple[bool, Any]] = {}
        self._pool: Any = pool  # None from the end on; the last, for `__del__` goes by it after an interrupt
        try:
            for _ in range(prefetch):
                self._ask()
        except BaseException:
            self._end()
            raise

    @property
    def _worked(self) -> bool:
        """Whether there is anybody who works."""
        return self._pool.alive and not ending()

    def _ask(self) -> None:
        """Give the workers another job, if there is one left."""
        indices = next(self._indices, None)
        if indices is not None:
            seed = np.random.SeedSequence((self._seed, self._asked)).generate_state(1)
            plan = self._plans[self._asked] = [*indices]
            if self._worked:
                self._pool.submit(self._asked, int(seed[0]) >> 1, plan)
            self._asked += 1

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self.owner != os.getpid():
            raise error(
                RuntimeError,
                f"DataLoader: the workers of this iterator belong to process {self.owner}, of which this one is a "
                "fork; begin with iter(loader) here",
            )
        with self._lock:
            if self._pool is None:
                raise StopIteration
            if self._given == self._asked:
                self._finish()
                raise StopIteration
            try:
                deadline = time.monotonic() + self._timeout
                while self._given not in self._done:
                    # Batches that come out of order do not put the deadline off.
                    if self._worked or self._closed:
                        job, failed, batch = self._pool.collect(deadline - time.monotonic(), self._timeout)
                    else:
                        job, failed, batch = self._make(self._given)
                    self._done[job] = failed, batch
                failed, batch = self._done.pop(self._given)
                del self._plans[self._given]
                if failed:
                    raise batch
                self._ask()
            except Exception as e:
                self._end()
                let_through(e)
                if self._closed:  # meanwhile, which is the end and no failure
                    raise StopIteration from None
                if isinstance(e, StopIteration):  # of the dataset; it must not look like the end of the round
                    raise error(RuntimeError, "DataLoader: the dataset, or batchify_fn, raised StopIteration") from e
                raise
            except BaseException:
                self._end()
                raise
            self._given += 1
            return batch if self._pinned is None else self._pinned(batch)

    def _make(self, job: int) -> tuple[int, bool, Any]:
        """A batch as `collect` gives it, in this thread: the workers end with the process."""
        dataset, batchify = self._work
        try:
            return job, False, batchify([dataset[i] for i in self._plans[job]])
        except Exception as e:
            let_through(e)
            return job, True, e

    def _finish(self) -> None:
        pool, self._pool = self._pool, None
        loader = self._loader()
        # It may be interrupted yet, in a round that is not this one.
        if loader is None or self._closed or not pool.alive:
            pool.close()
        else:
            loader._give_back(pool)

    def _end(self) -> None:
        """Let go of the workers. A thread that is not in `__next__` holds the lock."""
        pool, self._pool = self._pool, None
        self._done.clear()
        self._plans.clear()
        if pool is not None:
            pool.close()

    def close(self) -> None:
        """End the round, also for a thread that waits for a batch; its workers end too."""
        self._closed = True
        pool = self._pool
        if pool is not None and self.owner == os.getpid():
            pool.interrupt()
            with self._lock:
                self._end()

    def __del__(self) -> None:
        if getattr(self, "_pool", None) is not None:
            self.close()


def _batch_sampler(
    dataset: Dataset,
    batch_size: int | None,
    shuffle: bool,
    sampler: Sampler | None,
    last_batch: str | None,
    batch_sampler: Sampler | None,
) -> Sampler:
    if batch_sampler is not None:
        if batch_size is not None or shuffle or sampler is not None or last_batch is not None:
            raise error(
                ValueError,
                "batch_size, shuffle, sampler and last_batch must not be specified if batch_sampler is specified.",
            )
        return batch_sampler
    if batch_size is None:
        raise error(ValueError, "batch_size must be specified unless batch_sampler is specified")
    if sampler is None:
        sampler = RandomSampler(len(dataset)) if shuffle else SequentialSampler(len(dataset))
    elif shuffle:
        raise error(ValueError, "shuffle must not be specified if sampler is specified")
    return BatchSampler(sampler, batch_size, last_batch or "keep")


def _entropy() -> int:
    """A number made of the seeds the user set and of how many rounds came before; draws nothing."""
    states = np.random.get_state(), random.getstate()[1], next(_rounds)
    return zlib.crc32(pickle.dumps(states, protocol=4))


def _pin(batch: Any, ctx: Context) -> Any:
    if isinstance(batch, nd.NDArray):
        return batch.as_in_context(ctx)
    if isinstance(batch, (list, tuple)):
        return [_pin(item, ctx) for item in batch]
    return batch
