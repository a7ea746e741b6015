"""`DataIter`: what every data iterator offers."""

from __future__ import annotations

from typing import Any, TypeVar

from .._locks import ObjectLock, locked
from ..base import error, plain
from .data_batch import DataBatch

__all__ = ["DataIter"]

Iter = TypeVar("Iter", bound="DataIter")


def batch_of(it: Any, whole: bool = False) -> Any:
    """The next batch of an iterator, refused where there is none, or is none that is `whole`, a DataBatch."""
    batch = it.next()
    parts = ("data", "label", "pad", "index") if whole else ()
    if batch is None or not all(hasattr(batch, part) for part in parts):
        raise error(
            TypeError,
            f"next() of {type(it).__name__} of {type(it).__module__} must return a DataBatch, "
            f"or raise StopIteration; it returned {batch!r}",
        )
    return batch


class DataIter:
    """Base of data iterators.

    A subclass has `provide_data` and `provide_label`, and either overrides `next` or has `iter_next`,
    `getdata`, `getlabel`, `getpad` and, if it knows them, `getindex`. Threads may share an iterator: `next` and
    `reset` run one at a time, and each thread gets batches of its own.

    Parameters
    ----------
    batch_size : int
        Examples per batch.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``io.DataIter``. As there, ``iter(x)`` is `x` itself and does not reset it.

    Examples
    --------
    >>> class Ones(DataIter):
    ...     left = 2
    ...     def next(self):
    ...         if self.left == 0:
    ...             raise StopIteration
    ...         self.left -= 1
    ...         return DataBatch([])
    >>> len(list(Ones(4)))
    2
    """

    _object_lock: ObjectLock

    def __new__(cls: type[Iter], *args: Any, **kwargs: Any) -> Iter:
        self = super().__new__(cls)
        self._object_lock = ObjectLock()
        return self

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in ("next", "reset", "hard_reset"):
            if name in cls.__dict__:
                setattr(cls, name, locked(cls.__dict__[name]))

    def __init__(self, batch_size: int = 0) -> None:
        self.batch_size: int = plain(batch_size)

    def __iter__(self: Iter) -> Iter:
        return self

    def reset(self) -> None:
        """Go back to the beginning, for the next epoch."""

    @locked
    def next(self) -> Any:
        """Return the next batch.

        Returns
        -------
        DataBatch

        Raises
        ------
        StopIteration
            At the end of the epoch.
        """
        if not self.iter_next():
            raise StopIteration
        return DataBatch(self.getdata(), self.getlabel(), pad=self.getpad(), index=self.getindex())

    def __next__(self) -> Any:
        return batch_of(self)

    def iter_next(self) -> Any:
        """Move to the next batch; return whether there is one."""

    def getdata(self) -> Any:
        """Return the data of the current batch, a list of NDArray."""

    def getlabel(self) -> Any:
        """Return the labels of the current batch, a list of NDArray."""

    def getindex(self) -> Any:
        """Return the numbers of the examples of the current batch, or None."""

    def getpad(self) -> Any:
        """Return how many examples of the current batch only fill it."""


class WholeBatches(DataIter):
    """Base of iterators whose `iter_next` gets a whole batch from elsewhere, as `current_batch`."""

    current_batch: Any = None

    def next(self) -> Any:
        if not self.iter_next():
            raise StopIteration
        return self.current_batch

    def getdata(self) -> Any:
        return self.current_batch.data

    def getlabel(self) -> Any:
        return self.current_batch.label

    def getindex(self) -> Any:
        return self.current_batch.index

    def getpad(self) -> Any:
        return self.current_batch.pad
