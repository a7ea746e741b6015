"""`LibSVMIter`: batches of sparse rows of LibSVM files."""

from __future__ import annotations

import math
import os
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._io_files import lines_of
from ..base import error
from ..urls import PathLike
from .cursor import BatchCursor
from .data_desc import DataDesc
from .mx_data_iter import Array, Arrays
from .rows_iter import RowsIter, files_of

if TYPE_CHECKING:
    from ..ndarray.sparse import CSRNDArray

__all__ = ["LibSVMIter"]


def _number(text: bytes) -> float:
    if b"_" in text:  # Python reads 1_0 as 10
        raise ValueError(f"{text[:40].decode('ascii', 'replace')!r} is no number")
    return float(text)


class _Rows:
    """The rows of a file: their labels, and their sparse values one behind the other.

    Parameters
    ----------
    path : str or os.PathLike
        A file, a folder of files, or an fsspec URL.
    width : int
        Numbers of a row.
    """

    def __init__(self, path: PathLike, width: int) -> None:
        self.path, self.width = path, width
        labels, values, columns, ends = array("f"), array("f"), array("q"), array("q", [0])
        for name in files_of(path):
            for number, line in lines_of(name, "LibSVMIter"):
                words = (line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line).partition(b"#")[0].split()
                if not words:
                    continue
                try:
                    label, _, weight = words[0].partition(b":")
                    labels.append(_number(label))
                    if weight:
                        _number(weight)  # no other words
                    for word in words[1:]:
                        column, _, value = word.partition(b":")
                        if column == b"qid":
                            continue
                        if not column.isdigit() or not 0 <= int(column) < width:
                            raise ValueError(
                                f"{word[:40].decode('ascii', 'replace')!r} is no column below {width} with its "
                                "value; columns count from 0"
                            )
                        columns.append(int(column))
                        values.append(_number(value) if value else 1.0)
                except ValueError as e:
                    raise error(
                        ValueError,
                        f"LibSVMIter: {os.fspath(name)!r}, line {number}: "
                        f"{str(e)[:200]}; a line must be a label and column:value ...",
                    ) from None
                ends.append(len(columns))
        if not labels:
            raise error(ValueError, f"LibSVMIter: {os.fspath(path)!r} holds no row")
        self.labels, self.values = np.array(labels, np.float32), np.array(values, np.float32)
        self.columns, self.ends = np.array(columns, np.int64), np.array(ends, np.int64)

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: Array) -> CSRNDArray:
        """Some of them as a CSRNDArray."""
        from ..ndarray.sparse import csr_matrix

        first, last = self.ends[rows], self.ends[rows + 1]
        places = np.concatenate([np.arange(a, b) for a, b in zip(first, last)])
        indptr = np.concatenate([[0], np.cumsum(last - first)])
        parts = self.values[places], self.columns[places], indptr
        return csr_matrix(parts, shape=(len(rows), self.width), dtype="float32")


class LibSVMIter(RowsIter):
    """Iterate over the rows of LibSVM files, as sparse arrays.

    A line is a label and ``column:value`` for each value that is not zero; columns count from 0. A weight of the row
    behind its label (``label:weight``) is left out.

    Parameters
    ----------
    data_libsvm : str or os.PathLike
        A file, a folder of files, or an fsspec URL.
    data_shape : tuple of int
        (columns,) of data.
    batch_size : int
        Examples per batch.
    label_libsvm : str or os.PathLike, optional
        The same for labels, which then are sparse rows, too; the labels of `data_libsvm` without it.
    label_shape : tuple of int
        (columns,) of labels.
    num_parts, part_index : int
        Read only this of so many equal parts.
    round_batch : bool
        Fill the last batch from the next epoch, which then starts behind those rows; nothing else is offered, as in
        MXNet.
    dtype : {'float32'}, optional
        Type of data and labels.
    data_name, label_name : str
        Names of the arrays.
    prefetch_buffer, ctx : optional
        Taken for MXNet's sake; the rows lie in memory.
    **unknown
        Other parameters are left out, with one warning.

    Raises
    ------
    MXNetError
        (also OSError) if a file cannot be read, (also ValueError) naming file and line, if it holds something else.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``io.LibSVMIter``. Data are CSRNDArrays, labels dense unless `label_libsvm` is given.

    Examples
    --------
    >>> import fsspec
    >>> with fsspec.open("memory://doc/a.svm", "w") as f:
    ...     _ = f.write("1 0:0.5 2:1.5\\n0 1:2\\n")
    >>> batch = LibSVMIter(data_libsvm="memory://doc/a.svm", data_shape=(3,), batch_size=2).next()
    >>> batch.data[0].asnumpy().tolist(), batch.label[0].asnumpy().tolist()
    ([[0.5, 0.0, 1.5], [0.0, 2.0, 0.0]], [1.0, 0.0])
    """

    def __init__(
        self,
        *,
        data_libsvm: PathLike,
        data_shape: Sequence[int],
        batch_size: int,
        label_libsvm: PathLike | None = None,
        label_shape: Sequence[int] = (1,),
        num_parts: int = 1,
        part_index: int = 0,
        round_batch: bool = True,
        dtype: Any = None,
        data_name: str = "data",
        label_name: str = "softmax_label",
        prefetch_buffer: int = 4,
        ctx: Any = "cpu",
        **unknown: Any,
    ) -> None:
        p = self.parameters(
            batch_size=batch_size,
            data_shape=data_shape,
            label_shape=label_shape,
            num_parts=num_parts,
            part_index=part_index,
            round_batch=round_batch,
            prefetch_buffer=prefetch_buffer,
            ctx=ctx,
        )
        batch_size, data_shape, label_shape = p.batch_size, p.data_shape, p.label_shape
        super().__init__(batch_size, data_name, label_name)
        self.leave_out(unknown)
        if dtype not in (None, "None", "float32", np.float32, np.dtype("float32")):
            raise error(TypeError, f"LibSVMIter: dtype must be float32, got {dtype!r}")
        if not p.round_batch:
            raise error(
                ValueError,
                "LibSVMIter: batches of sparse rows are filled "
                "from the next epoch; round_batch must be True, as in MXNet",
            )
        if len(data_shape) != 1 or len(label_shape) != 1:
            raise error(
                ValueError,
                "LibSVMIter: data_shape and label_shape must be "
                f"(columns,), got {tuple(data_shape)} and {tuple(label_shape)}",
            )
        self._data = _Rows(data_libsvm, math.prod(data_shape))
        self._label: _Rows | None = None
        if label_libsvm is not None and label_libsvm != "NULL":
            self._label = _Rows(label_libsvm, math.prod(label_shape))
            self._check_labels(data_libsvm, len(self._data), label_libsvm, len(self._label))
        total = len(self._data)
        self._first, end = total * p.part_index // p.num_parts, total * (p.part_index + 1) // p.num_parts
        self._cursor = BatchCursor(end - self._first, batch_size, True)
        self.provide_data = [DataDesc(data_name, (batch_size, self._data.width), np.float32)]
        self.provide_label = [
            DataDesc(label_name, (batch_size,) if self._label is None else (batch_size, self._label.width), np.float32)
        ]

    def next_arrays(self) -> Arrays:
        rows, pad = self._next_rows()
        label = self._data.labels[rows] if self._label is None else self._label.take(rows)
        return [self._data.take(rows)], [label], pad, rows.astype(np.uint64)
