"""`DataLoaderIter`: a Gluon DataLoader as a data iterator, for Module."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import ndarray as nd
from ..base import error
from ..io import DataBatch, DataDesc, DataIter

__all__ = ["DataLoaderIter"]


class DataLoaderIter(DataIter):
    """Iterate over a Gluon DataLoader whose batches are (data, label).

    Parameters
    ----------
    loader : DataLoader
        Or anything that gives such batches each time it is iterated over.
    data_name, label_name : str
        Names in `provide_data` and `provide_label`.
    dtype : str or numpy dtype
        Of data and labels.

    Raises
    ------
    MXNetError
        (also ValueError) if the loader is empty; (also TypeError) if its batches are no pairs of arrays.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``contrib.io.DataLoaderIter``. A last batch that is smaller is filled with zeros;
    `pad` tells how many.

    Examples
    --------
    >>> import mxcore as mx
    >>> from mxcore.contrib.io import DataLoaderIter
    >>> data = mx.gluon.data.ArrayDataset(mx.nd.ones((5, 2)), mx.nd.arange(5))
    >>> [(b.label[0].asnumpy().tolist(), b.pad) for b in DataLoaderIter(mx.gluon.data.DataLoader(data, 3))]
    [([0.0, 1.0, 2.0], 0), ([3.0, 4.0, 0.0], 1)]
    """

    def __init__(
        self, loader: Any, data_name: str = "data", label_name: str = "softmax_label", dtype: Any = "float32"
    ) -> None:
        super().__init__()
        self._loader = loader
        self.dtype = dtype
        self._batches: Iterator[Any] = iter(loader)
        try:
            data, label = self._pair(next(self._batches))
        except StopIteration:
            raise error(ValueError, "DataLoaderIter: the loader gives no batch") from None
        self.batch_size = data.shape[0]
        self.provide_data = [DataDesc(data_name, data.shape, dtype)]
        self.provide_label = [DataDesc(label_name, label.shape, dtype)]
        self.reset()

    @staticmethod
    def _pair(batch: Any) -> tuple[Any, Any]:
        if not isinstance(batch, (list, tuple)) or len(batch) != 2 or not all(isinstance(a, nd.NDArray) for a in batch):
            found = f"{len(batch)} parts" if isinstance(batch, (list, tuple)) else type(batch).__name__
            raise error(
                TypeError, f"DataLoaderIter: batches of the loader must be pairs of arrays (data, label), got {found}"
            )
        return batch[0], batch[1]

    def reset(self) -> None:
        """Begin the next epoch."""
        self._batches = iter(self._loader)

    def next(self) -> DataBatch:
        """Return the next batch.

        Raises
        ------
        StopIteration
            At the end of the epoch.
        """
        data, label = self._pair(next(self._batches))
        pad = self.batch_size - data.shape[0]
        full = [
            a.astype(self.dtype)
            if not pad
            else nd.concat(a.astype(self.dtype), nd.zeros((pad, *a.shape[1:]), ctx=a.context, dtype=self.dtype), dim=0)
            for a in (data, label)
        ]
        return DataBatch([full[0]], [full[1]], pad=pad)
