"""`PrefetchingIter`: the next batch is made while the current one is used."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from .._workers import Job, Workers
from ..base import asserted, error
from .data_batch import DataBatch
from .data_desc import DataDesc
from .data_iter import WholeBatches, batch_of

__all__ = ["PrefetchingIter"]

#: For each iterator, old name -> new name.
Renaming: TypeAlias = Sequence[Mapping[str, str]]


def _next(it: Any) -> DataBatch | None:
    try:
        batch: DataBatch = batch_of(it, True)
    except StopIteration:  # which a future cannot carry
        return None
    if not isinstance(batch.data, (list, tuple)):
        raise error(
            TypeError,
            f"next() of {type(it).__name__} of {type(it).__module__} returned a batch whose data is {batch.data!r}; "
            "a list of arrays is needed",
        )
    return batch


class PrefetchingIter(WholeBatches):
    """Join iterators side by side and let threads make their next batches.

    Parameters
    ----------
    iters : DataIter or list of DataIter
        Iterators with the same batch size and number of batches.
    rename_data, rename_label : list of dict, optional
        For each iterator, old name -> new name of its arrays.

    Raises
    ------
    MXNetError
        (also ValueError) if the iterators do not fit together. What an iterator raises in its thread is
        raised by `next`.

    Notes
    -----
    A fork of the process goes on with the batches that were made ahead; where it came in the midst of making one, it
    needs an iterator of its own. Behaviour matched: MXNet 1.9.1 ``io.PrefetchingIter``.

    Examples
    --------
    >>> import mxcore as mx
    >>> inner = mx.io.NDArrayIter(mx.nd.ones((10, 2)), batch_size=5)
    >>> PrefetchingIter(inner, rename_data=[{"data": "x"}]).provide_data
    [DataDesc[x,(5, 2),<class 'numpy.float32'>,NCHW]]
    """

    def __init__(self, iters: Any, rename_data: Renaming | None = None, rename_label: Renaming | None = None) -> None:
        self.iters = list(iters) if isinstance(iters, (list, tuple)) else [iters]
        self.n_iter = len(self.iters)
        self.rename_data, self.rename_label = rename_data, rename_label
        if not self.iters:
            raise asserted(ValueError, "PrefetchingIter: needs at least one iterator")
        for name, maps in (("rename_data", rename_data), ("rename_label", rename_label)):
            if maps is not None and len(maps) != self.n_iter:
                raise error(ValueError, f"PrefetchingIter: {name} has {len(maps)} entries for {self.n_iter} iterators")
        super().__init__(self.provide_data[0].shape[0])
        self._closed = False
        self._workers = self._threads()
        self._fetch()

    def _threads(self) -> Workers:
        return Workers(self.n_iter, "PrefetchingIter")

    def _fetch(self) -> None:
        # They are known before a thread has them: whoever was interrupted meanwhile waits for them nevertheless.
        self._coming = [Job(partial(_next, it)) for it in self.iters]
        self._workers.put(*self._coming)

    def _check_open(self) -> None:
        if self._closed:
            raise error(RuntimeError, "PrefetchingIter: it is closed")

    def _wait(self) -> None:
        """Wait for the batches that are made ahead."""
        self._check_open()
        if self._workers.pid != os.getpid():  # the threads stayed with the parent
            if any(job.begun and not job.done for job in self._coming):
                raise error(
                    RuntimeError,
                    f"PrefetchingIter: process {self._workers.pid} was forked while a thread made a batch; make an "
                    "iterator in the fork",
                )
            self._workers = self._threads()
        self._workers.put(*self._coming)
        for job in self._coming:
            job.error()
        self._check_open()  # another thread may have closed it meanwhile

    def close(self) -> None:
        """Wait for the threads and end them; who waits for a batch gets an error. Doing it twice is harmless."""
        self._closed = True
        if self._workers.pid == os.getpid():
            with self._object_lock:  # whoever waits begins no other batch
                self._workers.close()

    def _described(self, which: str, maps: Renaming | None) -> list[DataDesc]:
        found: list[DataDesc] = []
        for it, names in zip(self.iters, maps or [{}] * self.n_iter):
            told = getattr(it, which)
            try:
                described = [d if isinstance(d, DataDesc) else DataDesc(*d) for d in told]
            except TypeError:
                raise error(
                    TypeError,
                    f"PrefetchingIter: {which} of {type(it).__name__} must be a list of DataDesc or of (name, shape), "
                    f"got {told!r}",
                ) from None
            found += [DataDesc(names.get(d.name, d.name), d.shape, d.dtype, d.layout) for d in described]
        return found

    @property
    def provide_data(self) -> list[DataDesc]:
        """Descriptions of the data arrays of all iterators, list of DataDesc."""
        return self._described("provide_data", self.rename_data)

    @property
    def provide_label(self) -> list[DataDesc]:
        """Descriptions of the label arrays of all iterators, list of DataDesc."""
        return self._described("provide_label", self.rename_label)

    def reset(self) -> None:
        self._wait()  # what went wrong before the reset does not matter any more
        for it in self.iters:
            it.reset()
        self._fetch()

    def iter_next(self) -> bool:
        self._wait()
        found = [job.result() for job in self._coming]
        batches = [b for b in found if b is not None]
        if not batches:
            return False
        if len(batches) < len(found):
            raise error(ValueError, "PrefetchingIter: the iterators have different numbers of batches")
        if len({b.pad for b in batches}) > 1:
            raise error(ValueError, f"PrefetchingIter: the iterators' pads differ: {[b.pad for b in batches]}")
        self._fetch()
        self.current_batch = DataBatch(
            sum((list(b.data) for b in batches), []),
            sum((list(b.label or []) for b in batches), []),
            batches[0].pad,
            batches[0].index,
            provide_data=self.provide_data,
            provide_label=self.provide_label,
        )
        return True
