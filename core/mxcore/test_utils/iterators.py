"""`DummyIter`: an iterator without the work of one."""

from __future__ import annotations

from typing import Any

from ..io import DataIter

__all__ = ["DummyIter"]


class DummyIter(DataIter):
    """Gives the first batch of another iterator for ever, so that a measured loop is nothing but training.

    Parameters
    ----------
    real_iter : DataIter
        Its next batch is taken once.

    Attributes
    ----------
    real_iter : DataIter
    the_batch : DataBatch

    Examples
    --------
    >>> import mxcore as mx
    >>> it = DummyIter(mx.io.NDArrayIter(mx.nd.ones((4, 2)), batch_size=2))
    >>> it.next() is it.next()
    True
    """

    def __init__(self, real_iter: Any) -> None:
        super().__init__(real_iter.batch_size)
        self.real_iter = real_iter
        self.provide_data = real_iter.provide_data
        self.provide_label = real_iter.provide_label
        self.the_batch = next(real_iter)

    def next(self) -> Any:
        return self.the_batch

    def iter_next(self) -> bool:
        return True

    def getdata(self) -> Any:
        return self.the_batch.data

    def getlabel(self) -> Any:
        return self.the_batch.label

    def getpad(self) -> Any:
        return self.the_batch.pad

    def getindex(self) -> Any:
        return self.the_batch.index
