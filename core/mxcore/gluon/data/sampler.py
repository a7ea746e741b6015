"""Samplers: in which order a loader visits the samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base import error, plain

if TYPE_CHECKING:
    from .dataset import Dataset

__all__ = ["BatchSampler", "FilterSampler", "RandomSampler", "Sampler", "SequentialSampler"]


class Sampler:
    """Base of all samplers: ``__iter__`` gives indices (or lists of them), ``__len__`` says how many."""

    def __len__(self) -> int:
        raise error(NotImplementedError, f"{type(self).__name__} does not say its length: define __len__(self)")

    def __iter__(self) -> Iterator[Any]:
        raise error(NotImplementedError, f"{type(self).__name__} gives no indices: define __iter__(self)")


class SequentialSampler(Sampler):
    """Indices ``start`` to ``start + length - 1`` in order.

    Parameters
    ----------
    length : int
    start : int, default 0

    Examples
    --------
    >>> list(SequentialSampler(3))
    [0, 1, 2]
    """

    def __init__(self, length: int, start: int = 0) -> None:
        self._length = length
        self._start = start

    def __iter__(self) -> Iterator[Any]:
        return iter(range(self._start, self._start + self._length))

    def __len__(self) -> int:
        return self._length


class RandomSampler(Sampler):
    """Indices below `length` in an order that ``numpy.random.seed`` decides, a new one each time.

    Parameters
    ----------
    length : int

    Examples
    --------
    >>> sorted(RandomSampler(3))
    [0, 1, 2]
    """

    def __init__(self, length: int) -> None:
        self._length = length

    def __iter__(self) -> Iterator[Any]:
        indices = np.arange(self._length)
        np.random.shuffle(indices)
        return iter(indices.tolist())

    def __len__(self) -> int:
        return self._length


class FilterSampler(Sampler):
    """Indices of the samples that a function accepts. All samples are read once, at once.

    Parameters
    ----------
    fn : callable
        Gets a sample, returns whether to keep it.
    dataset : Dataset

    Examples
    --------
    >>> import mxcore as mx
    >>> list(FilterSampler(lambda x: x > 1, mx.gluon.data.SimpleDataset([3, 0, 2])))
    [0, 2]
    """

    def __init__(self, fn: Callable[..., Any], dataset: Dataset) -> None:
        self._fn = fn
        self._dataset = dataset
        self._indices = [i for i in range(len(dataset)) if fn(dataset[i])]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._indices)

    def __len__(self) -> int:
        return len(self._indices)


class BatchSampler(Sampler):
    """Lists of `batch_size` indices of another sampler.

    Parameters
    ----------
    sampler : Sampler
    batch_size : int
    last_batch : {'keep', 'discard', 'rollover'}
        What to do with a last batch that is too small: give it, drop it, or begin the next round with it.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gluon.data.BatchSampler``.

    Examples
    --------
    >>> list(BatchSampler(SequentialSampler(5), 2))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Sampler, batch_size: int, last_batch: str = "keep") -> None:
        if last_batch not in ("keep", "discard", "rollover"):
            raise error(ValueError, f"last_batch must be one of 'keep', 'discard', or 'rollover', but got {last_batch}")
        if not isinstance(batch_size, (int, Real)) or batch_size < 1:
            raise error(ValueError, f"batch_size must be 1 or more, got {batch_size!r}")
        self._sampler = sampler
        self._batch_size: int = plain(batch_size)
        self._last_batch = last_batch
        self._prev: list[Any] = []

    def __iter__(self) -> Iterator[Any]:
        batch, self._prev = self._prev, []
        for i in self._sampler:
            batch.append(i)
            if len(batch) == self._batch_size:
                yield batch
                batch = []
        if batch and self._last_batch == "keep":
            yield batch
        elif self._last_batch == "rollover":
            self._prev = batch

    def __len__(self) -> int:
        n = len(self._sampler) + len(self._prev)
        return -(-n // self._batch_size) if self._last_batch == "keep" else n // self._batch_size
