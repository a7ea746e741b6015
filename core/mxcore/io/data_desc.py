"""`DataDesc`: name, shape, type and layout of an array in a batch."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..base import error, plain

__all__ = ["DataDesc"]


class DataDesc(namedtuple("DataDesc", ["name", "shape"])):
    """Describe one array of a batch.

    It is a pair of name and shape; `dtype` and `layout` are attributes beside.

    Parameters
    ----------
    name : str
        Name of the array.
    shape : tuple of int
        Its shape, batch axis included.
    dtype : dtype or str
        Its type.
    layout : str
        One letter per axis; ``'N'`` is the batch axis.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``io.DataDesc``.

    Examples
    --------
    >>> DataDesc("data", (32, 3, 224, 224), "float32").layout
    'NCHW'
    """

    dtype: Any
    layout: str | None

    def __new__(cls, name: str, shape: Sequence[int], dtype: Any = np.float32, layout: str | None = "NCHW") -> DataDesc:
        self = super().__new__(cls, name, plain(tuple(shape)))
        self.dtype = dtype
        self.layout = layout
        return self

    def __repr__(self) -> str:
        return f"DataDesc[{self.name},{self.shape},{self.dtype},{self.layout}]"

    @staticmethod
    def get_batch_axis(layout: str | None) -> int:
        """Return the axis of a layout that counts the examples.

        Parameters
        ----------
        layout : str or None
            One letter per axis; None means that it is the first.

        Returns
        -------
        int
            -1 if the layout has no ``'N'``.

        Examples
        --------
        >>> DataDesc.get_batch_axis("TNC")
        1
        """
        return 0 if layout is None else layout.find("N")

    @staticmethod
    def get_list(
        shapes: Sequence[tuple[str, Sequence[int]]], types: Iterable[tuple[str, Any]] | None
    ) -> list[DataDesc]:
        """Make descriptions of pairs.

        Parameters
        ----------
        shapes : sequence of (str, tuple of int)
            Names and shapes.
        types : sequence of (str, dtype) or None
            Names and types.

        Returns
        -------
        list of DataDesc

        Raises
        ------
        MXNetError
            (also KeyError) if a name has no type.

        Examples
        --------
        >>> DataDesc.get_list([("data", (2, 3))], [("data", "int32")])
        [DataDesc[data,(2, 3),int32,NCHW]]
        """
        if types is None:
            return [DataDesc(name, shape) for name, shape in shapes]
        known = dict(types)
        missing = [name for name, _ in shapes if name not in known]
        if missing:
            raise error(KeyError, f"DataDesc.get_list: no type for {missing}; types are given for {list(known)}")
        return [DataDesc(name, shape, known[name]) for name, shape in shapes]
