"""`NDArrayIter`: batches of arrays in memory."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .._core.errors import warn
from ..base import asserted, error
from .data_desc import DataDesc
from .data_iter import DataIter
from .mx_data_iter import Array

if TYPE_CHECKING:
    from ..ndarray import NDArray

__all__ = ["NDArrayIter"]

#: What rows are taken from: an NDArray, a NumPy array, or a data set of a file.
Source: TypeAlias = Any

_LAST = ("pad", "discard", "roll_over")


def _is_ndarray(value: Any) -> bool:
    from .. import ndarray as nd

    return isinstance(value, nd.NDArray)


def _source(name: str, value: Any) -> Source:
    """What rows are taken from: an NDArray, a float32 copy of a NumPy array, or a file's data set as it is."""
    from .. import ndarray as nd

    if _is_ndarray(value):
        return value
    if type(value).__module__.partition(".")[0] == "scipy":
        return nd.array(value)
    if isinstance(value, np.ndarray) or not (hasattr(value, "shape") and hasattr(value, "dtype")):
        try:
            # Not the caller's memory, who may fill it anew; except that of a file, which may be larger than ours.
            value = (np.asarray if getattr(value, "_mmap", None) is not None else np.array)(value, np.float32)
        except (TypeError, ValueError) as e:
            raise error(
                TypeError,
                f"NDArrayIter: {name} must be an NDArray, a numpy.ndarray, a data set of h5py, "
                f"a list of them or a dict of them, not {type(value).__name__}: {e}",
            ) from e
    if not value.shape:
        raise error(ValueError, f"NDArrayIter: {name} is a scalar; its first axis must count the examples")
    return value


def named_sources(arrays: Any, what: str, default_name: str) -> list[tuple[str, Source]]:
    """Named sources, ordered by name."""
    if isinstance(arrays, dict):
        named = arrays
    elif isinstance(arrays, (list, tuple)):
        named = {default_name if len(arrays) == 1 else f"_{i}_{default_name}": a for i, a in enumerate(arrays)}
    elif arrays is None and what == "label":
        named = {}
    else:
        named = {default_name: arrays}
    if what == "data" and (not named or arrays is None or isinstance(arrays, (str, bytes))):
        raise asserted(
            TypeError, f"NDArrayIter: data must be an array, a list of arrays or a dict of them, got {arrays!r}"
        )
    return [(name, _source(name, value)) for name, value in sorted(named.items())]


def _rows(source: Source, rows: Array) -> NDArray:
    """NDArray of the given rows of a source, with memory of its own: a batch is often scaled in place."""
    from .. import ndarray as nd

    first, count = int(rows[0]), len(rows)
    straight = int(rows[-1]) - first + 1 == count and bool((np.diff(rows) == 1).all())
    if _is_ndarray(source):
        taken: NDArray = (
            source[first : first + count].copy() if straight else nd.take(source, nd.array(rows, dtype="int64"))
        )
        return taken
    if isinstance(source, np.ndarray):
        return nd.array(source[first : first + count] if straight else source[rows])
    if straight:
        return nd.array(np.asarray(source[first : first + count], np.float32))
    sorted_rows, back = np.unique(rows, return_inverse=True)  # data sets in files want rising rows
    return nd.array(np.asarray(source[sorted_rows], np.float32)[back])


def _whole(source: Source) -> NDArray:
    """NDArray of a source."""
    return source if _is_ndarray(source) else _rows(source, np.arange(source.shape[0]))


class NDArrayIter(DataIter):
    """Iterate over arrays in memory.

    Parameters
    ----------
    data : array, list of array or dict of str to array
        Inputs, shape (examples, ...): NDArray, numpy.ndarray, data sets of h5py or scipy sparse matrices.
        NumPy arrays become float32, as everywhere in MXNet, and are copied unless they are maps of files; NDArray keep
        their type.
    label : array, list of array or dict of str to array, optional
        Labels, in the same forms.
    batch_size : int
        Examples per batch.
    shuffle : bool
        Draw a new order at every `reset`, from NumPy's global generator.
    last_batch_handle : {'pad', 'discard', 'roll_over'}
        What to do with examples that fill no batch: fill it with the first ones of the epoch, leave them
        out, or put them in front of the next epoch.
    data_name, label_name : str
        Names of arrays that come without.
    layout : str
        Layout in `provide_data`.

    Raises
    ------
    MXNetError
        (also TypeError, ValueError) if the arrays are none, or one has fewer examples than the first. Of longer ones
        the first examples are used, and a warning says so.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``io.NDArrayIter``, the order after ``numpy.random.seed`` included.

    Examples
    --------
    >>> import mxcore as mx
    >>> it = mx.io.NDArrayIter(np.arange(10).reshape(5, 2), np.arange(5), batch_size=2)
    >>> [(b.label[0].asnumpy().tolist(), b.pad) for b in it]
    [([0.0, 1.0], 0), ([2.0, 3.0], 0), ([4.0, 0.0], 1)]
    """

    def __init__(
        self,
        data: Any,
        label: Any = None,
        batch_size: Any = 1,
        shuffle: bool = False,
        last_batch_handle: str = "pad",
        data_name: str = "data",
        label_name: str = "softmax_label",
        layout: str = "NCHW",
    ) -> None:
        if not isinstance(batch_size, Integral) or batch_size < 1:
            raise error(ValueError, f"NDArrayIter: batch_size must be a whole number from 1, got {batch_size!r}")
        super().__init__(int(batch_size))
        if last_batch_handle not in _LAST:
            raise error(
                ValueError,
                f"NDArrayIter: last_batch_handle must be one of {', '.join(_LAST)}; got {last_batch_handle!r}",
            )
        self._data, self._label = named_sources(data, "data", data_name), named_sources(label, "label", label_name)
        every = self._data + self._label
        counts = {name: source.shape[0] for name, source in every}
        total: int = every[0][1].shape[0]
        if min(counts.values()) < total:
            raise error(ValueError, f"NDArrayIter: the arrays differ in their number of examples: {counts}")
        if max(counts.values()) > total:
            warn(f"NDArrayIter: the first array has {total} examples, and only so many of each are used: {counts}")
        if total == 0:
            raise error(ValueError, "NDArrayIter: the arrays hold no example")
        if last_batch_handle != "discard":
            for name, source in every:
                if getattr(source, "stype", "default") != "default":
                    raise error(
                        ValueError,
                        f"NDArrayIter: {name} is sparse ({source.stype}), which needs last_batch_handle='discard'",
                    )
        self.idx = np.arange(total)
        self._order = self.idx.copy()
        self.shuffle, self.last_batch_handle, self.layout = shuffle, last_batch_handle, layout
        self.num_data = total
        #: Examples before which an epoch ends.
        self._end = total - total % self.batch_size if last_batch_handle == "discard" else total
        self.num_source = len(every)
        self.hard_reset()

    @property
    def data(self) -> list[tuple[str, NDArray]]:
        """Names and whole data arrays, list of (str, NDArray)."""
        return [(name, _whole(source)) for name, source in self._data]

    @property
    def label(self) -> list[tuple[str, NDArray]]:
        """Names and whole label arrays, list of (str, NDArray)."""
        return [(name, _whole(source)) for name, source in self._label]

    def _describe(self, sources: list[tuple[str, Source]]) -> list[DataDesc]:
        return [
            DataDesc(name, (self.batch_size, *s.shape[1:]), s.dtype if _is_ndarray(s) else np.float32, self.layout)
            for name, s in sources
        ]

    @property
    def provide_data(self) -> list[DataDesc]:
        """Descriptions of the data arrays, list of DataDesc."""
        return self._describe(self._data)

    @property
    def provide_label(self) -> list[DataDesc]:
        """Descriptions of the label arrays, list of DataDesc."""
        return self._describe(self._label)

    def hard_reset(self) -> None:
        """Start the next epoch without the examples that rolled over."""
        self._left = self._order[:0]
        self.reset()

    def reset(self) -> None:
        self._first = self._left.copy()  # examples of the epoch before, in front of this one's
        self._left = self._order[:0]
        self.cursor = -self.batch_size - len(self._first)
        if self.shuffle:
            # MXNet permutes the permuted arrays by a permutation that is itself shuffled on and on.
            np.random.shuffle(self.idx)
            self._order = self._order[self.idx]

    def iter_next(self) -> bool:
        self.cursor += self.batch_size
        if self.last_batch_handle == "roll_over" and self.cursor + self.batch_size > self._end:
            if self.cursor < self._end:
                self._left = self._chosen()
            return False
        return self.cursor < self._end

    def _chosen(self) -> Array:
        """Numbers of the examples of the current batch."""
        begin, end = self.cursor, self.cursor + self.batch_size
        if begin < 0:
            return np.concatenate([self._first, self._order[:end]])
        rows: Array = self._order[begin : min(end, self._end)]
        if self.last_batch_handle == "pad" and end > self._end:
            rows = np.concatenate([rows, np.resize(self._order, end - self._end)])
        return rows

    def getdata(self) -> list[NDArray]:
        rows = self._chosen()
        return [_rows(source, rows) for _, source in self._data]

    def getlabel(self) -> list[NDArray]:
        rows = self._chosen()
        return [_rows(source, rows) for _, source in self._label]

    def getpad(self) -> int:
        if self.last_batch_handle == "roll_over":
            return max(0, -self.cursor)
        if self.last_batch_handle == "pad":
            return max(0, self.cursor + self.batch_size - self._end)
        return 0
