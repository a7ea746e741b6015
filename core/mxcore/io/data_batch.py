"""`DataBatch`: the arrays that a data iterator returns at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..base import asserted

if TYPE_CHECKING:
    from .data_desc import DataDesc

__all__ = ["DataBatch"]


class DataBatch:
    """One batch of data and labels.

    Parameters
    ----------
    data : list of NDArray
        Input arrays, each with `batch_size` examples.
    label : list of NDArray, optional
        Label arrays.
    pad : int, optional
        How many examples at the end only fill the batch and do not count.
    index : numpy.ndarray, optional
        Numbers of the examples in the data set.
    bucket_key : object, optional
        Which bucket the batch belongs to.
    provide_data, provide_label : list of DataDesc, optional
        Descriptions of the arrays, for batches that differ from their iterator's.

    Raises
    ------
    MXNetError
        (also TypeError) if `data` or `label` is no list.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``io.DataBatch``.

    Examples
    --------
    >>> import mxcore as mx
    >>> print(DataBatch([mx.nd.ones((2, 3))], [mx.nd.ones(2)]))
    DataBatch: data shapes: [(2, 3)] label shapes: [(2,)]
    """

    def __init__(
        self,
        data: Any,
        label: Any = None,
        pad: int | None = None,
        index: Any = None,
        bucket_key: Any = None,
        provide_data: list[DataDesc] | None = None,
        provide_label: list[DataDesc] | None = None,
    ) -> None:
        for name, arrays in (("data", data), ("label", label)):
            if arrays is not None and not isinstance(arrays, (list, tuple)):
                raise asserted(
                    TypeError,
                    f"DataBatch: {name} must be a list of NDArray, not one {type(arrays).__name__}; write [{name}]",
                )
        self.data = data
        self.label = label
        self.pad = pad
        self.index = index
        self.bucket_key = bucket_key
        self.provide_data = provide_data
        self.provide_label = provide_label

    def __str__(self) -> str:
        labels = [a.shape for a in self.label] if self.label else None
        return f"{type(self).__name__}: data shapes: {[a.shape for a in self.data]} label shapes: {labels}"
