"""Datasets: samples by index, and views of other datasets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import ndarray as nd
from ..._io_files import checked
from ...base import error
from ...urls import with_ending
from .sampler import FilterSampler, Sampler, SequentialSampler

__all__ = ["ArrayDataset", "Dataset", "RecordFileDataset", "SimpleDataset"]


class Dataset:
    """Base of all datasets: ``__getitem__(index)`` gives a sample, ``__len__`` says how many there are.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gluon.data.Dataset``.

    Examples
    --------
    >>> import mxcore as mx
    >>> class Squares(mx.gluon.data.Dataset):
    ...     def __getitem__(self, i):
    ...         return i * i
    ...     def __len__(self):
    ...         return 4
    >>> list(Squares().take(3).transform(lambda x: x + 1))
    [1, 2, 5]
    """

    def __getitem__(self, idx: Any) -> Any:
        raise error(NotImplementedError, f"{type(self).__name__} gives no samples: define __getitem__(self, idx)")

    def __len__(self) -> int:
        raise error(NotImplementedError, f"{type(self).__name__} does not say its length: define __len__(self)")

    def filter(self, fn: Callable[..., Any]) -> _SampledDataset:
        """The samples that a function accepts.

        Parameters
        ----------
        fn : callable
            Gets a sample, returns whether to keep it. All samples are read once, at once.
        """
        return self.sample(FilterSampler(fn, self))

    def shard(self, num_shards: int, index: int) -> _SampledDataset:
        """One of `num_shards` parts, of sizes that differ by one at most.

        Parameters
        ----------
        num_shards : int
        index : int
            Which part, from 0.
        """
        if not 0 <= index < num_shards:
            raise error(AssertionError, f"Shard index out of bound: {index} out of {num_shards}")
        small, larger = divmod(len(self), num_shards)
        start = small * index + min(index, larger)
        return _SampledDataset(self, SequentialSampler(small + (index < larger), start))

    def take(self, count: int | None) -> _SampledDataset:
        """The first `count` samples, all if it is None or more than there are."""
        n = len(self)
        return _SampledDataset(self, SequentialSampler(n if count is None else max(0, min(count, n))))

    def sample(self, sampler: Sampler) -> _SampledDataset:
        """The samples that a sampler names, in its order."""
        if not isinstance(sampler, Sampler):
            raise error(TypeError, f"Invalid sampler type: {type(sampler)}. Expected gluon.data.Sampler instead.")
        return _SampledDataset(self, sampler)

    def transform(self, fn: Callable[..., Any], lazy: bool = True) -> Dataset:
        """Every sample passed through a function.

        Parameters
        ----------
        fn : callable
            Gets the elements of a sample as arguments, returns the new sample.
        lazy : bool, default True
            Transform a sample whenever it is asked for, so that random augmentations differ each time. If
            False, all samples are transformed once, now.
        """
        transformed: Any = _TransformedDataset(self, fn)
        return transformed if lazy else SimpleDataset(list(transformed))

    def transform_first(self, fn: Callable[..., Any], lazy: bool = True) -> Dataset:
        """The first element of every sample passed through a function, e.g. the image but not the label.

        Parameters
        ----------
        fn : callable
            Gets the first element, returns the new one.
        lazy : bool, default True
            As for `transform`.
        """
        return self.transform(_First(fn), lazy)


class _First:
    """Applies a function to the first of its arguments. A class, so that it can be pickled."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self._fn = fn

    def __call__(self, first: Any, *others: Any) -> Any:
        return (self._fn(first), *others) if others else self._fn(first)


class _TransformedDataset(Dataset):
    def __init__(self, data: Dataset, fn: Callable[..., Any]) -> None:
        self._data = data
        self._fn = fn

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, idx: Any) -> Any:
        item = self._data[idx]
        return self._fn(*item) if isinstance(item, tuple) else self._fn(item)


class _SampledDataset(Dataset):
    def __init__(self, data: Dataset, sampler: Any) -> None:
        self._data = data
        # Ranges are kept as they are; anything else is asked once, so that the order stays.
        is_range = isinstance(sampler, SequentialSampler)
        self._indices = range(sampler._start, sampler._start + len(sampler)) if is_range else list(sampler)

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, idx: Any) -> Any:
        return self._data[self._indices[idx]]


class SimpleDataset(Dataset):
    """A list, or anything else with ``len`` and ``[]``, as a dataset.

    Parameters
    ----------
    data : sequence

    Examples
    --------
    >>> SimpleDataset(['a', 'b'])[1]
    'b'
    """

    def __init__(self, data: Any) -> None:
        self._data = data

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, idx: Any) -> Any:
        return self._data[idx]


class ArrayDataset(Dataset):
    """Samples put together from several arrays or lists of one length, e.g. images and labels.

    Parameters
    ----------
    *args : NDArray or array_like or Dataset
        Arrays of one axis are kept as NumPy arrays: their samples are numbers.

    Raises
    ------
    MXNetError (AssertionError)
        If there is no array, or the lengths differ.

    Notes
    -----
    A sample is a tuple, or an element if there is one array only. Behaviour matched: MXNet 1.9.1
    ``gluon.data.ArrayDataset``.

    Examples
    --------
    >>> ArrayDataset([1, 2, 3], ['a', 'b', 'c'])[1]
    (2, 'b')
    """

    def __init__(self, *args: Any) -> None:
        if not args:
            raise error(AssertionError, "Needs at least 1 arrays")
        self._length = len(args[0])
        self._data = []
        for i, data in enumerate(args):
            if len(data) != self._length:
                raise error(
                    AssertionError,
                    f"All arrays must have the same length; array[0] has length {self._length} while "
                    f"array[{i}] has {len(data)}.",
                )
            self._data.append(data.asnumpy() if isinstance(data, nd.NDArray) and len(data.shape) == 1 else data)

    def __getitem__(self, idx: Any) -> Any:
        if len(self._data) == 1:
            return self._data[0][idx]
        return tuple(data[idx] for data in self._data)

    def __len__(self) -> int:
        return self._length


class RecordFileDataset(Dataset):
    """The records of a RecordIO file with an index; a sample is a record's bytes.

    Parameters
    ----------
    filename : str
        The ``.rec`` file; the ``.idx`` file lies beside it.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gluon.data.RecordFileDataset``. Threads and forked workers may share it.
    """

    def __init__(self, filename: str) -> None:
        from ...recordio import MXIndexedRecordIO

        self.filename = filename = checked(filename, "RecordFileDataset: filename")
        self.idx_file = with_ending(filename, ".idx")
        self._record = MXIndexedRecordIO(self.idx_file, filename, "r")

    def __getitem__(self, idx: Any) -> Any:
        return self._record.read_idx(self._record.keys[idx])

    def __len__(self) -> int:
        return len(self._record.keys)
