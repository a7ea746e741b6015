"""Where an image iterator's samples come from: a record file, a list file, or a list; by key or in order."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .. import ndarray as nd
from .. import recordio
from .._io_files import checked, lines_of
from ..base import error
from ..ndarray import NDArray
from ..urls import PathLike

__all__ = ["listed", "objects", "open_records", "read_list"]


def open_records(path: PathLike, index: PathLike | None, owner: str) -> tuple[Any, list[Any] | None]:
    """A record file, with its keys if there is an index.

    Returns
    -------
    MXRecordIO or MXIndexedRecordIO
    list of int or None
    """
    if not index:
        return recordio.MXRecordIO(path, "r"), None
    records = recordio.MXIndexedRecordIO(index, path, "r")
    if not records.keys:
        raise error(ValueError, f"{owner}: the index {os.fspath(index)!r} has no entry")
    return records, list(records.keys)


def read_list(path: PathLike, owner: str, dtype: Any) -> dict[Any, tuple[NDArray, str]]:
    """A list file: lines of key, label and file name with tabs between, as ``im2rec`` writes them.

    Returns
    -------
    dict of int to (NDArray, str)
        Label and file name by key.
    """
    found = {}
    for number, line in lines_of(path, owner):
        if not line.strip():
            continue
        try:
            first, *label, name = line.decode(errors="surrogateescape").strip().split("\t")  # names may be any bytes
            if not label:
                raise ValueError(f"{line[:40]!r} has no label")
            if (key := int(first)).bit_length() > 64:  # such numbers may share one hash, and take quadratic time
                raise ValueError("the number has more than 64 bits")
            if key in found:
                raise ValueError(f"the number {key} stands in an earlier line, too, whose image would be lost")
            with np.errstate(over="raise"):  # a label beyond the dtype would be infinite
                found[key] = nd.array([float(x) for x in label], dtype=dtype), checked(name)
        except (TypeError, ValueError, OverflowError, FloatingPointError) as e:
            raise error(
                ValueError,
                f"{owner}: {os.fspath(path)!r}, line {number}: {str(e)[:200]}; "
                "a line must hold a whole number, a label of numbers and a file name, with tabs between",
            ) from None
    return found


def listed(entries: list[Any], owner: str, dtype: Any) -> dict[Any, tuple[NDArray, Any]]:
    """A list in memory, whose entries are ``[label, …, file name]``; keys are "1", "2" and so on, as in MXNet."""
    found = {}
    for number, entry in enumerate(entries, 1):
        try:
            *label, name = entry
            with np.errstate(over="raise"):
                values = np.asarray(label[0] if len(label) == 1 else label, dtype)
        except (TypeError, ValueError, OverflowError, FloatingPointError) as e:
            raise error(
                ValueError, f"{owner}: entry {number} of imglist is {entry!r}: {e}; it must be [label, …, file name]"
            ) from None
        if not label or not isinstance(name, (str, os.PathLike)):
            raise error(
                ValueError, f"{owner}: entry {number} of imglist is {entry!r}; it must be [label, …, file name]"
            )
        found[str(number)] = nd.array(values.reshape(-1), dtype=dtype), name
    return found


def objects(label: Any, where: str) -> np.ndarray[Any, Any]:
    """The rows of a label of objects: a head of A >= 2 numbers that begins with A and B, then B >= 5 for each."""
    raw = np.ravel(label.asnumpy() if isinstance(label, nd.NDArray) else np.asarray(label, "float32"))
    head, width = map(int, raw[:2]) if raw.size > 1 and np.isfinite(raw[:2]).all() else (0, 0)
    if head < 2 or width < 5 or raw.size <= head or (raw.size - head) % width:
        raise error(
            RuntimeError,
            f"{where} has a label of {raw.size} numbers that begins with {raw[:4].tolist()}; it must be [A, B, A - 2 "
            "numbers, rows of B >= 5 numbers]",
        )
    return raw[head:].reshape(-1, width)
