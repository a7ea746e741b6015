"""`CSVIter`: batches of rows of CSV files."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np

from .._io_files import checked, reading
from ..base import MXNetError, error
from ..urls import PathLike
from .cursor import BatchCursor
from .data_desc import DataDesc
from .mx_data_iter import Array, Arrays
from .rows_iter import RowsIter, files_of

__all__ = ["CSVIter"]

_TYPES = ("float32", "int32", "int64")
#: What some programs put before a text, how much is read at a time, and how long a line may be, or so many for each of
#: its values, if these are more; in bytes.
_BOM, _PIECE, _LONGEST, _EACH = b"\xef\xbb\xbf", 1 << 20, 1 << 24, 64


class _Lines:
    """The lines of a file for NumPy's parser, which must see nothing but ASCII: it reads beyond its tables else.

    `number` is that of the line given last.
    """

    def __init__(self, file: BinaryIO, name: PathLike, width: int) -> None:
        self.file, self.name, self.number = file, name, 0
        self.longest = max(_LONGEST, _EACH * width)

    def __iter__(self) -> Iterator[str]:
        begun = [self.file.read(len(_BOM))]  # the line so far
        if begun == [_BOM]:
            begun = []
        while block := self.file.read(_PIECE):
            if block.endswith(b"\r"):
                block += self.file.read(1)  # an end of line may be two bytes
            self._check(block, begun)
            begun.append(block)
            if b"\n" in block or b"\r" in block:
                whole = b"".join(begun).splitlines()
                begun = [] if block.endswith((b"\r", b"\n")) else [whole.pop()]
                yield from self._checked(whole)
        yield from self._checked(b"".join(begun).splitlines())

    def _check(self, block: bytes, begun: list[bytes]) -> None:
        """Refuse what is no text, and a line that never ends."""
        if b"\0" in block:
            self.number += len((block[: block.index(b"\0")] + b"0").splitlines())
            raise self.error("it holds a byte 0; is this a text?")
        if sum(map(len, begun)) > self.longest:
            self.number += 1
            raise self.error(f"it has more than {self.longest} bytes; is this a text, and the shape right?")

    def _checked(self, lines: list[bytes]) -> Iterator[str]:
        text = b"\n".join(lines)
        if b",\n" in text or text.endswith(b","):  # as who writes a comma behind each value leaves it
            lines = [line[:-1] if line[-1:] == b"," and len(line) > 1 else line for line in lines]
            text = b"\n".join(lines)
        if lines and text.isascii():
            for plain in text.decode().split("\n"):
                self.number += 1
                yield plain
            return
        for line in lines:
            self.number += 1
            for part in line.split(b","):
                if not part.isascii():
                    raise self.error(f"{part.decode('utf-8', 'replace').strip()[:40]!r} is no number")
            yield line.decode()

    def error(self, text: str) -> Exception:
        return error(ValueError, f"CSVIter: {os.fspath(self.name)!r}, line {self.number}: {text}")


def _read(path: PathLike, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """All rows of a file or of a folder's files, each reshaped."""
    width, parts = math.prod(shape), []
    for name in files_of(path):
        with reading(name) as f:
            lines = _Lines(f, name, width)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UserWarning)  # a file without rows adds none
                    warnings.simplefilter("error", DeprecationWarning)  # a fraction among integers
                    rows = np.loadtxt(lines, dtype, comments=None, delimiter=",", ndmin=2)
            except MXNetError:
                raise
            except (ValueError, OverflowError, DeprecationWarning) as e:
                raise lines.error(
                    f"{_said(e)}; every line must hold the same number of {dtype.name} values with commas between"
                ) from e
            except MemoryError:
                raise error(
                    MemoryError,
                    f"CSVIter: {os.fspath(name)!r} does not fit into memory; {lines.number} lines were read",
                ) from None
        if rows.size and rows.shape[1] != width:
            raise error(
                ValueError,
                f"CSVIter: a row of {os.fspath(name)!r} has {rows.shape[1]} values, but shape {shape} takes {width}",
            )
        parts.append(rows.reshape(-1, *shape))
    rows = np.concatenate(parts) if parts else np.empty((0, *shape), dtype)
    if not len(rows):
        raise error(ValueError, f"CSVIter: {os.fspath(path)!r} holds no row")
    return rows


def _said(problem: Exception) -> str:
    text = str(problem).split("; use `usecols`")[0]
    return text if len(text) < 300 else f"{text[:300]} …"


class CSVIter(RowsIter):
    """Iterate over the rows of CSV files.

    Parameters
    ----------
    data_csv : str or os.PathLike
        A file, a folder of files, or an fsspec URL. Lines of numbers with commas between, without a heading.
    data_shape : tuple of int
        Shape of one example: what a row is reshaped to.
    batch_size : int
        Examples per batch.
    label_csv : str or os.PathLike, optional
        The same for labels, which are 0 without it.
    label_shape : tuple of int
        Shape of one label.
    round_batch : bool
        Fill the last batch from the next epoch, which then starts behind those rows; see `BatchCursor`.
    dtype : {'float32', 'int32', 'int64'}, optional
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
        (also OSError) if a file cannot be read, (also ValueError) naming file and line, if it holds something
        else.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``io.CSVIter``.

    Examples
    --------
    >>> import fsspec
    >>> with fsspec.open("memory://doc/a.csv", "w") as f:
    ...     _ = f.write("1,2\\n3,4\\n5,6\\n")
    >>> it = CSVIter(data_csv="memory://doc/a.csv", data_shape=(2,), batch_size=2)
    >>> [b.data[0].asnumpy().tolist() for b in it]
    [[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [1.0, 2.0]]]
    """

    def __init__(
        self,
        *,
        data_csv: PathLike,
        data_shape: Sequence[int],
        batch_size: int,
        label_csv: PathLike | None = None,
        label_shape: Sequence[int] = (1,),
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
            round_batch=round_batch,
            prefetch_buffer=prefetch_buffer,
            ctx=ctx,
        )
        batch_size = p.batch_size
        super().__init__(batch_size, data_name, label_name)
        self.leave_out(unknown)
        kind = "float32" if dtype in (None, "None") else dtype if isinstance(dtype, str) else np.dtype(dtype).name
        if kind not in _TYPES:
            raise error(TypeError, f"CSVIter: dtype must be one of {', '.join(_TYPES)}; got {dtype!r}")
        own = np.dtype(kind)
        self._data = _read(checked(data_csv, "CSVIter: data_csv"), p.data_shape, own)
        each = () if p.label_shape == (1,) else p.label_shape
        if label_csv is None or label_csv == "NULL":
            self._label = np.zeros((len(self._data), *each), own)
        else:
            self._label = _read(checked(label_csv, "CSVIter: label_csv"), each, own)
            self._check_labels(data_csv, len(self._data), label_csv, len(self._label))
        self._cursor = BatchCursor(len(self._data), batch_size, p.round_batch)
        self.provide_data = [DataDesc(data_name, (batch_size, *self._data.shape[1:]), own.type)]
        self.provide_label = [DataDesc(label_name, (batch_size, *self._label.shape[1:]), own.type)]

    def next_arrays(self) -> Arrays:
        rows, pad = self._next_rows()
        return [self._data[rows]], [self._label[rows]], pad, rows.astype(np.uint64)
