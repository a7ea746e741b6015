"""`MXDataIter`: base of the iterators that read files and make their batches as NumPy arrays."""

from __future__ import annotations

from .._core.errors import warn
from ..base import error
from .data_batch import DataBatch
from .data_iter import DataIter

__all__ = ["MXDataIter"]


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

    def __init__(self, batch_size=0, data_name="data", label_name="softmax_label"):
        super().__init__(batch_size)
        self.data_name, self.label_name = data_name, label_name
        self.provide_data, self.provide_label = [], []
        self._current = None
        self._repeat = None

    def leave_out(self, unknown):
        """Tell of parameters that there are none of, in one warning; MXNet's iterators leave them out without a word.

        Parameters
        ----------
        unknown : iterable of str
            Their names.
        """
        if unknown:
            names = ", ".join(map(repr, unknown))
            warn(f"{type(self).__name__} has no parameter {names}: left out")

    def next_arrays(self):
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

    def debug_skip_load(self):
        """Return the first batch again and again, to measure what a training step costs without reading."""
        self._repeat = self.next()

    def next(self):
        if self._repeat is not None:
            return self._repeat
        self._current = None
        data, label, pad, index = self.next_arrays()
        self._current = DataBatch([_wrap(a) for a in data], [_wrap(a) for a in label], pad=pad, index=index)
        return self._current

    def iter_next(self):
        try:
            self._current = self.next()
        except StopIteration:
            return False
        return True

    def _batch(self):
        if self._current is None:
            raise error(
                RuntimeError, f"{type(self).__name__}: there is no current batch; call next() or iter_next()"
            )
        return self._current

    def getdata(self):
        return self._batch().data

    def getlabel(self):
        return self._batch().label

    def getindex(self):
        return self._batch().index

    def getpad(self):
        return self._batch().pad


def _wrap(array):
    from .. import ndarray as nd

    return array if isinstance(array, nd.NDArray) else nd.from_numpy(array)
