"""A plugin for mxcore: the data iterator `mx.io.ToyIterator`, which cuts windows out of a series."""

import numpy as np

import mxcore as mx
from mxcore.io import DataBatch, DataDesc, DataIter
from mxcore.plugin import hookimpl

API_VERSION = 1


class ToyIterator(DataIter):
    """Windows of a series, each with the value that follows it.

    Parameters
    ----------
    series : array_like
        One dimension.
    window : int
        How many values a window has.
    batch_size : int
        How many windows a batch has; what remains at the end is left out.
    """

    def __init__(self, series, window, batch_size=1):
        super().__init__(batch_size)
        self.series = np.asarray(series, "float32")
        if self.series.ndim != 1 or len(self.series) < window + batch_size:
            raise ValueError(
                f"ToyIterator: a series of shape {self.series.shape} holds no batch of {batch_size} windows of {window}"
            )
        self.windows = np.lib.stride_tricks.sliding_window_view(self.series, window)[:-1]
        self.provide_data = [DataDesc("data", (batch_size, window))]
        self.provide_label = [DataDesc("label", (batch_size,))]
        self.reset()

    def reset(self):
        """Begin again."""
        self.at = 0

    def next(self):
        """The next batch."""
        rows = slice(self.at, self.at + self.batch_size)
        if rows.stop > len(self.windows):
            raise StopIteration
        self.at = rows.stop
        label = self.series[self.windows.shape[1] :][rows]
        return DataBatch([mx.nd.array(self.windows[rows])], [mx.nd.array(label)], pad=0)


@hookimpl
def mxcore_iterators():
    """Bring the iterator; "module:attr" in the place of the class would be imported when somebody asks for it."""
    return {"ToyIterator": ToyIterator}
