"""`MXDataIter`: base of the iterators that read files and make their batches as NumPy arrays."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np

from .._core.errors import warn
from ..base import error
from ..parameters import Bool, Enum, Int, Shape
from .data_batch import DataBatch
from .data_desc import DataDesc
from .data_iter import DataIter

__all__ = ["MXDataIter"]

Array: TypeAlias = np.ndarray[Any, Any]
#: Data and labels, how many examples only fill the batch, and their numbers.
Arrays: TypeAlias = tuple[list[Any], list[Any], int, Any]

#: Parameters of the iterators over files, those that only MXNet has a use for included.
_SPECS = {
    "batch_size": Int(ge=1),
    "shuffle": Bool(),
    "flat": Bool(),
    "seed": Int(),
    "silent": Bool(),
    "num_parts": Int(ge=1),
    "part_index": Int(ge=0),
    "prefetch_buffer": Int(ge=0),
    "ctx": Enum("cpu gpu"),
    "round_batch": Bool(),
    "data_shape": Shape(),
    "label_shape": Shape(),
}


class MXDataIter(DataIter):
    """Base of iterators over files: `CSVIter`, `MNISTIter`, `ImageRecordIter` and those of plugins.

    A subclass sets `provide_data` and `provide_label`, and has `next_arrays`, which works on NumPy arrays
    only; this class turns them into NDArray and offers both ways of iterating, `next` and `iter_next` with
    `getdata` and kin.

    Parameters
    ----------
    batch_size : int
        Examples per batch.
    data_name, label_name : str
        Names of the arrays in `provide_data` and `provide_label`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``io.MXDataIter``, without its handle.

    Examples
    --------
    >>> import numpy as np
    >>> class Ones(MXDataIter):
    ...     def next_arrays(self):
    ...         return [np.ones((2, 3), "float32")], [np.zeros(2, "float32")], 0, np.arange(2)
    >>> Ones(2).next().data[0].shape
    (2, 3)
    """

    def __init__(self, batch_size: int = 0, data_name: str = "data", label_name: str = "softmax_label") -> None:
        super().__init__(batch_size)
        self.data_name, self.label_name = data_name, label_name
        self.provide_data: list[DataDesc] = []
        self.provide_label: list[DataDesc] = []
        self._current: DataBatch | None = None
        self._repeat: DataBatch | None = None
        self._ahead: DataBatch | None = None
        self._taken = False

    @classmethod
    def parameters(cls, **given: Any) -> SimpleNamespace:
        """Parameters, checked, from values or from MXNet's strings, such as ``"(1, 28, 28)"``.

        Parameters
        ----------
        **given
            By name; `batch_size`, `shuffle`, `num_parts` …

        Returns
        -------
        types.SimpleNamespace

        Raises
        ------
        MXNetError
            (also TypeError or ValueError) naming iterator and parameter.
        """
        found = SimpleNamespace()
        for name, value in given.items():
            try:
                setattr(found, name, _SPECS[name].parse(value))
            except (TypeError, ValueError) as e:
                raise error(type(e), f"{cls.__name__}: {name} {e}") from None
        if getattr(found, "part_index", 0) >= getattr(found, "num_parts", 1):
            raise error(
                ValueError, f"{cls.__name__}: part_index {found.part_index} is none of the {found.num_parts} parts"
            )
        return found

    def leave_out(self, unknown: Collection[str]) -> None:
        """Tell of parameters that there are none of, in one warning; MXNet's iterators leave them out without a word.

        Parameters
        ----------
        unknown : iterable of str
            Their names.
        """
        if unknown:
            names = ", ".join(map(repr, unknown))
            warn(f"{type(self).__name__} has no parameter {names}: left out")

    def next_arrays(self) -> Arrays:
        """Return the next batch as NumPy arrays.

        Returns
        -------
        (list of numpy.ndarray, list of numpy.ndarray, int, numpy.ndarray or None)
            Data, labels, pad and the numbers of the examples. The arrays are the caller's from then on.

        Raises
        ------
        StopIteration
            At the end of the epoch.
        """
        raise StopIteration

    def reset(self) -> None:
        """Start the next epoch; a subclass does so, and calls this."""
        self._ahead, self._taken = None, False

    @property
    def first_batch(self) -> DataBatch | None:
        """The first batch of the epoch, read ahead; None once it was taken."""
        if self._ahead is None and not self._taken:
            self._ahead = self.next()
        return self._ahead

    def debug_skip_load(self) -> None:
        """Return the first batch again and again, to measure what a training step costs without reading."""
        self._repeat = self.next()
        logging.info("Set debug_skip_load to be true, will simply return first batch")

    def next(self) -> DataBatch:
        if self._repeat is not None:
            return self._repeat
        self._taken, self._current = True, self._ahead
        if self._current is None:
            data, label, pad, index = self.next_arrays()
            self._current = DataBatch([_wrap(a) for a in data], [_wrap(a) for a in label], pad=pad, index=index)
        self._ahead = None
        return self._current

    def iter_next(self) -> bool:
        try:
            self._current = self.next()
        except StopIteration:
            return False
        return True

    def _batch(self) -> DataBatch:
        if self._current is None:
            raise error(RuntimeError, f"{type(self).__name__}: there is no current batch; call next() or iter_next()")
        return self._current

    def getdata(self) -> Any:
        return _only(self._batch().data)

    def getlabel(self) -> Any:
        return _only(self._batch().label)

    def getindex(self) -> Any:
        return self._batch().index

    def getpad(self) -> Any:
        return self._batch().pad


def _only(arrays: Sequence[Any]) -> Any:
    """The array where there is one, as in MXNet, whose iterators never have more."""
    return arrays[0] if len(arrays) == 1 else arrays


def _wrap(array: Any) -> Any:
    from .. import ndarray as nd

    return array if isinstance(array, nd.NDArray) else nd.from_numpy(array)
