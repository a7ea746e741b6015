"""A batch over several contexts: cut into slices, loaded into their arrays, and results put together again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import ndarray as nd
from ..base import error
from ..io import DataDesc
from ..kvstore.values import write

__all__ = ["batch_axes", "copy_into", "cut", "load", "merge", "split_rows"]


def split_rows(batch_size: int, work_load_list: Sequence[float]) -> list[slice]:
    """Cut a batch in proportion to what each context can do.

    Parameters
    ----------
    batch_size : int
    work_load_list : sequence of float
        One number a context.

    Returns
    -------
    list of slice

    Raises
    ------
    MXNetError
        (also ValueError) if a context would get nothing.

    Examples
    --------
    >>> split_rows(10, [1, 1, 2])
    [slice(0, 2, None), slice(2, 4, None), slice(4, 10, None)]
    """
    total = sum(work_load_list)
    counts = [round(load * batch_size / total) for load in work_load_list]
    counts[-1] += max(0, batch_size - sum(counts))
    slices, begin = [], 0
    for n in counts:
        end = min(begin + n, batch_size)
        if begin >= end:
            raise error(
                ValueError,
                f"a batch of {batch_size} is too small for {len(counts)} contexts with the work load "
                f"{list(work_load_list)}: one would get nothing; use larger batches or fewer contexts",
            )
        slices.append(slice(begin, end))
        begin = end
    return slices


def batch_axes(descriptions: Sequence[DataDesc]) -> list[int]:
    """The axis of each described array that counts the examples; -1 for none."""
    return [DataDesc.get_batch_axis(getattr(d, "layout", None)) for d in descriptions]


def cut(array: Any, axis: int, rows: slice) -> Any:
    """The examples `rows` of an array; all of it if it has no batch axis or no more rows than these."""
    if axis < 0 or (rows.start == 0 and array.shape[axis] == rows.stop):
        return array
    if axis == 0:
        return array[rows.start : rows.stop]
    return nd.slice_axis(array, axis=axis, begin=rows.start, end=rows.stop)


def copy_into(source: Any, target: Any, name: str) -> None:
    """Write a piece of a batch into the array that the module was bound with, which must have its shape."""
    if not isinstance(source, nd.NDArray):
        target[:] = source
        return
    if source.shape != target.shape:
        raise error(
            ValueError,
            f"the batch brings {name!r} with shape {source.shape}, the module was bound with {target.shape}; "
            "bind or reshape it for that shape, or give the batch provide_data and provide_label",
        )
    if source.stype == target.stype == "default":
        source.copyto(target)
    else:
        write(source, target)


def load(
    batch: Sequence[Any], targets: Sequence[Sequence[tuple[slice, Any]]], axes: Sequence[int], names: Sequence[str]
) -> None:
    """Copy the arrays of a batch to where the executors read them.

    Parameters
    ----------
    batch : sequence of NDArray, or of lists of NDArray
        Whole arrays, or for each one part a context.
    targets : sequence of lists of (slice, NDArray)
        For each array what each context takes, and where.
    axes : sequence of int
        Batch axis of each array.
    names : sequence of str
        For errors.
    """
    if len(batch) != len(targets):
        raise error(
            ValueError, f"the batch brings {len(batch)} arrays, the module was bound with {len(targets)}: {list(names)}"
        )
    for source, parts, axis, name in zip(batch, targets, axes, names):
        for k, (rows, target) in enumerate(parts):
            if isinstance(source, (list, tuple)):
                piece = source[k]
            else:
                piece = source if len(parts) == 1 else cut(source, axis, rows)
            copy_into(piece, target, name)


def merge(arrays: Sequence[Sequence[Any]], axes: Sequence[int]) -> list[Any]:
    """Put the parts of each array together, on the context of the first part.

    Parameters
    ----------
    arrays : sequence of lists of NDArray
        For each array its part from each context.
    axes : sequence of int
        Along which axis; arrays without one (-1) are equal on all contexts.
    """
    whole = []
    for parts, axis in zip(arrays, axes):
        if len(parts) == 1 or axis < 0:
            whole.append(parts[0])
        else:
            here = parts[0].context
            whole.append(nd.concat(*[p.as_in_context(here) for p in parts], dim=axis))
    return whole
