"""`ResizeIter`: another number of batches per epoch."""

from __future__ import annotations

from typing import Any

from ..base import error
from .data_iter import WholeBatches, batch_of

__all__ = ["ResizeIter"]


class ResizeIter(WholeBatches):
    """Give an iterator epochs of a chosen number of batches.

    Parameters
    ----------
    data_iter : DataIter
        The iterator; where it ends within an epoch, it is reset and goes on.
    size : int
        Batches per epoch.
    reset_internal : bool
        Whether `reset` resets `data_iter` too.

    Raises
    ------
    MXNetError
        (also ValueError) if `data_iter` has no batch at all.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``io.ResizeIter``.

    Examples
    --------
    >>> import mxcore as mx
    >>> small = mx.io.NDArrayIter(mx.nd.ones((10, 2)), batch_size=5)
    >>> len(list(ResizeIter(small, 7)))
    7
    """

    def __init__(self, data_iter: Any, size: int, reset_internal: bool = True) -> None:
        super().__init__(data_iter.batch_size)
        self.data_iter = data_iter
        self.size = size
        self.reset_internal = reset_internal
        self.cur = 0
        self.provide_data = data_iter.provide_data
        self.provide_label = data_iter.provide_label
        if hasattr(data_iter, "default_bucket_key"):
            self.default_bucket_key = data_iter.default_bucket_key

    def reset(self) -> None:
        self.cur = 0
        if self.reset_internal:
            self.data_iter.reset()

    def iter_next(self) -> bool:
        if self.cur == self.size:
            return False
        try:
            self.current_batch = batch_of(self.data_iter)
        except StopIteration:
            self.data_iter.reset()
            try:
                self.current_batch = batch_of(self.data_iter)
            except StopIteration:
                raise error(ValueError, "ResizeIter: the inner iterator has no batch") from None
        self.cur += 1
        return True
