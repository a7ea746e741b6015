"""What stores do with arrays of any storage type: add, write, pick rows. For types of store, in any plugin."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import ndarray as nd
from .._core import tables
from .._core.call import BoundCall, eager_call, op_context
from .._core.kernels import Spec
from .._core.params import Params
from .._core.stream import ordered
from .._core.transfer import assign, wrap
from ..base import error
from ..context import Context
from ..halves import is_half
from ..ndarray import NDArray
from ..stypes import HeldRows, RowSparse

__all__ = ["add", "held", "pick_rows", "rows_asked", "write"]


def add(arrays: Sequence[NDArray], ctx: Context) -> NDArray:
    """Add up arrays of one shape from any contexts.

    Parameters
    ----------
    arrays : sequence of NDArray
        At least one.
    ctx : Context
        Where to add, from the first to the last.

    Returns
    -------
    NDArray
        On `ctx`; row-sparse if all are. A single array that lives there is returned as it is.

    Examples
    --------
    >>> import mxcore as mx
    >>> add([mx.nd.ones(2), mx.nd.ones(2, ctx=mx.cpu(1))], mx.cpu(1)).asnumpy()
    array([2., 2.], dtype=float32)
    """
    first = arrays[0]
    if len(arrays) == 1:
        return first.as_in_context(ctx)
    if len(arrays) > 2 and first.stype == "default" and is_half(first._data.dtype):
        # Servers and GPUs add what comes to what there is: each sum is rounded, as in MXNet.
        return functools.reduce(lambda a, b: add([a, b], ctx), arrays)
    if ctx.device.host and all(
        a.stype == "default" and a.shape == first.shape and a.dtype == first.dtype and _within_reach(a, ctx)
        for a in arrays
    ):
        return _add_in_host_memory(arrays, ctx)
    total: NDArray = nd.add_n(*[_readable(a, ctx) for a in arrays])
    return total


def _readable(array: NDArray, ctx: Context) -> NDArray:
    """An array that work on `ctx` can read; of rows in the host's memory no copy."""
    if array.stype == "row_sparse" and array.context is not ctx and _within_reach(array, ctx):
        array._st.wait()
        return wrap(array._data, ctx)  # type: ignore[return-value]  # all are NDArrays
    return array.as_in_context(ctx)


def held(array: NDArray, ctx: Context) -> NDArray:
    """A copy of an array on a context, for a store to keep; of one that holds all rows, with memory to update in.

    Parameters
    ----------
    array : NDArray
    ctx : Context

    Examples
    --------
    >>> import mxcore as mx
    >>> held(mx.nd.ones((2, 1)).tostype("row_sparse"), mx.cpu()).asnumpy().tolist()
    [[1.0], [1.0]]
    """
    copied = array.copy() if array.context is ctx else array.as_in_context(ctx)
    if copied.stype == "row_sparse":
        copied._st.wait()
        if (memory := copied._data.whole) is not None:
            copied._data = HeldRows(ctx.device.xp, memory)
    return copied


def _within_reach(array: NDArray, ctx: Context) -> bool:
    """Whether what runs on `ctx` can read an array where it is: it lives there, or both lie in the host's memory."""
    return array.context is ctx or (array.context.device.host and ctx.device.host)


def _add_in_host_memory(arrays: Sequence[NDArray], ctx: Context) -> NDArray:
    """Add up dense arrays in one pass, which reads them where they are, in the order of the engine."""
    datas = [a._data for a in arrays]
    shape, dtype = datas[0].shape, datas[0].dtype
    bound, p = _sum_of(ctx.device, len(datas), shape, dtype, tables.generation[0])
    total = wrap(ctx.device.empty(shape, dtype, ctx.device_id), ctx, arrays[0].dense)
    run = bound.bind(op_context(ctx, False), p, datas, [total._data])
    ordered(ctx, run, (), [a._st for a in arrays], (total._st,), "add_n", work=bound.work)
    return total  # type: ignore[return-value]  # of an NDArray's class


@functools.lru_cache(BoundCall.LIMIT)
def _sum_of(device: Any, n: int, shape: tuple[int, ...], dtype: Any, generation: int) -> tuple[BoundCall, Params]:
    op = tables.ops.get("add_n")
    p = op.parse({"num_args": n})
    return eager_call(op, p, device, [Spec(shape, dtype)] * n), p


tables.on_forget.append(_sum_of.cache_clear)


def write(value: NDArray, out: NDArray, mine: bool = False) -> None:
    """Write a value into an array of any context, storage type and dtype.

    Parameters
    ----------
    value, out : NDArray
        Of one shape.
    mine : bool
        Nobody else has the value.
    """
    if value.stype != out.stype or out.stype != "default" and not mine:  # a sparse array takes over what it gets
        value = value.tostype(out.stype)
    if out.stype != "default" and value.dtype != out.dtype:
        value = value.astype(out.dtype)
    if not _within_reach(value, out.context):
        value = value.as_in_context(out.context)
    assign(out, value)


def rows_asked(row_ids: NDArray, total: int) -> np.ndarray[Any, Any]:
    """Row numbers as users give them, each once, rising.

    Parameters
    ----------
    row_ids : NDArray
        Of any dtype and shape.
    total : int
        How many rows there are.

    Returns
    -------
    numpy.ndarray of int64

    Raises
    ------
    MXNetError
        (also IndexError) if there is no such row.

    Examples
    --------
    >>> import mxcore as mx
    >>> rows_asked(mx.nd.array([3, 1, 3]), 4)
    array([1, 3])
    """
    rows = row_ids.asnumpy().astype(np.int64).reshape(-1)
    if not (rows[1:] > rows[:-1]).all():
        rows = np.unique(rows)
    if len(rows) and (rows[0] < 0 or rows[-1] >= total):
        bad = rows[0] if rows[0] < 0 else rows[-1]
        raise error(IndexError, f"row {bad} was asked for, but there are {total} rows")
    return rows


def pick_rows(value: NDArray, row_ids: NDArray) -> NDArray:
    """Some rows of a row-sparse array.

    Parameters
    ----------
    value : RowSparseNDArray
        Rows that it does not hold are zero.
    row_ids : NDArray
        Row numbers, of any dtype and shape.

    Returns
    -------
    RowSparseNDArray
        With exactly these rows, zero or not.

    Raises
    ------
    MXNetError
        (also IndexError) if there is no such row.

    Examples
    --------
    >>> import mxcore as mx
    >>> a = mx.nd.sparse.row_sparse_array(mx.nd.ones((4, 2)))
    >>> pick_rows(a, mx.nd.array([3, 1, 3])).indices.asnumpy()
    array([1, 3])
    """
    rows = rows_asked(row_ids, value.shape[0])
    value.wait_to_read()
    data, ctx = value._data, value.context
    ctx.activate()
    device = ctx.device
    whole = data.todense(device.xp) if data.whole is None else data.whole
    at = device.from_host(rows, ctx.device_id)
    if not len(rows):
        return wrap(RowSparse(value.shape, at, whole[:0].copy()), ctx)  # type: ignore[return-value]
    if device.async_:
        picked = nd.take(wrap(whole, ctx), wrap(at, ctx))
        picked.wait_to_read()
        return wrap(RowSparse(value.shape, at, picked._data), ctx)  # type: ignore[return-value]
    # Here, for it is waited for at once.
    bound, p = _take_of(device, Spec(whole.shape, whole.dtype), Spec(rows.shape, rows.dtype))
    (taken,), _ = bound.run(op_context(ctx, False), p, [whole, at])
    return wrap(RowSparse(value.shape, at, taken), ctx)  # type: ignore[return-value]  # all are NDArrays


def _take_of(device: Any, data: Spec, indices: Spec) -> tuple[BoundCall, Params]:
    op = tables.ops.get("take")
    p = op.parse({})
    return eager_call(op, p, device, [data, indices]), p
