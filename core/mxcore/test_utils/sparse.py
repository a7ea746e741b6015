"""Random sparse arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base import error
from ..ndarray import sparse
from .tolerances import default_dtype

__all__ = ["create_sparse_array", "create_sparse_array_zd", "rand_sparse_ndarray", "shuffle_csr_column_indices"]


def _uniform(shape: Sequence[int], dtype: Any) -> np.ndarray[Any, Any]:
    """Random values: in [0, 1), or of integers from 1 to 99."""
    if dtype.kind in "iu":
        return np.random.randint(1, 100, size=tuple(shape)).astype(dtype)
    values = np.random.uniform(size=tuple(shape)).astype(dtype)
    # Casts to short floats round what is near 1 up to it.
    return np.minimum(values, np.nextafter(dtype.type(1), dtype.type(0))) if dtype.kind == "f" else values


def _values(
    shape: Sequence[int], dtype: Any, data_init: float | None, modifier_func: Callable[[Any], Any] | None
) -> Any:
    values = _uniform(shape, dtype) if data_init is None else np.full(tuple(shape), data_init, dtype)
    if modifier_func is not None:
        flat = [modifier_func(v) for v in values.reshape(-1)]
        values = np.asarray(flat, dtype).reshape(values.shape)
    return values


def _check_density(density: float, what: str) -> None:
    if not 0 <= density <= 1:
        raise error(ValueError, f"{what}: density has to be between 0 and 1, got {density}")


def _starts(counts: Any) -> np.ndarray[Any, Any]:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _even_pattern(shape: tuple[int, int], density: float) -> tuple[Any, Any]:
    """(indptr, indices) of the given share of the elements, chosen at random."""
    rows, cols = shape
    n = round(rows * cols * density)
    flat = np.sort(np.random.choice(rows * cols, n, replace=False)) if n else np.zeros(0, np.int64)
    return _starts(np.bincount(flat // max(cols, 1), minlength=rows)), (flat % max(cols, 1)).astype(np.int64)


def _powerlaw_pattern(shape: tuple[int, int], density: float) -> tuple[Any, Any]:
    """(indptr, indices) of rows with 2, 4, 8, … elements from the first column on; every row has one at least."""
    rows, cols = shape
    total = int(rows * cols * density)
    if total < 2 * rows:
        raise error(
            ValueError,
            f"powerlaw: density {density} of a matrix {shape} gives {total} elements; {2 * rows} are needed, two a row",
        )
    counts, left = [], total
    for i in range(rows):
        # What later rows need is set aside first.
        counts.append(min(2 ** min(i + 1, 62), cols, left - (rows - i - 1)))
        left -= counts[-1]
    if left:
        raise error(
            ValueError,
            f"powerlaw: density {density} of a matrix {shape} gives {total} elements; rows that double hold "
            f"only {total - left}. Take a lower density or more rows",
        )
    return _starts(counts), np.concatenate([np.arange(n) for n in counts]).astype(np.int64)


def shuffle_csr_column_indices(csr: Any) -> None:
    """Shuffle the column indices within each row, in place, so that each value gets another column.

    Those of a SciPy matrix no longer rise then; an array keeps its places in order, and the values move.

    Parameters
    ----------
    csr : CSRNDArray or scipy.sparse.csr_matrix

    >>> import mxcore as mx
    >>> x = mx.nd.sparse.csr_matrix(np.arange(1, 51).reshape(1, 50))
    >>> shuffle_csr_column_indices(x)
    >>> sorted(x.data.asnumpy()) == list(range(1, 51)) != x.data.asnumpy().tolist()
    True
    """
    starts, columns = csr.indptr, csr.indices
    if hasattr(columns, "asnumpy"):
        starts, columns = starts.asnumpy(), columns.asnumpy()
        csr[:] = sparse.csr_matrix((csr.data, _shuffled(starts, columns), starts), csr.shape, csr.context, csr.dtype)
    else:
        columns[:] = _shuffled(starts, np.array(columns))


def _shuffled(starts: Any, columns: Any) -> Any:
    columns = columns.copy()
    for begin, end in zip(starts, starts[1:]):
        np.random.shuffle(columns[begin:end])
    return columns


def rand_sparse_ndarray(
    shape: Sequence[int],
    stype: str,
    density: float | None = None,
    dtype: Any = None,
    distribution: str | None = None,
    data_init: float | None = None,
    rsp_indices: Any = None,
    modifier_func: Callable[[Any], Any] | None = None,
    shuffle_csr_indices: bool = False,
    ctx: Any = None,
) -> tuple[Any, tuple[Any, ...]]:
    """A random sparse array and its parts; NumPy's global generator decides.

    Parameters
    ----------
    shape : tuple of int
        Two dimensions for csr, one or more for row_sparse.
    stype : {'csr', 'row_sparse'}
    density : float, optional
        From 0 to 1, random by default: the share of elements of a csr matrix that are stored, or the chance of each
        row of a row-sparse array.
    dtype : dtype, optional
        By default float32.
    distribution : {'uniform', 'powerlaw'}, optional
        How the elements are spread. 'powerlaw' (csr only) gives each row twice as many as the row before, until all
        are spent, and every row at least one; their values lie between 1 and 3.
    data_init : float, optional
        The value of all stored elements; else they are uniform in [0, 1), those of integers from 1 to 99.
    rsp_indices : sequence of int, optional
        The rows of a row-sparse array that are stored, instead of random ones.
    modifier_func : callable, optional
        Applied to each stored value.
    shuffle_csr_indices : bool
        The values within each row of a csr matrix change their columns at random.
    ctx : Context, optional

    Returns
    -------
    array : CSRNDArray or RowSparseNDArray
    parts : tuple
        (indptr, indices, data), NDArrays, or (data, indices), NumPy arrays.

    Raises
    ------
    MXNetError
        (also ValueError) if the density is not between 0 and 1, or does not fit the distribution; (also AssertionError)
        if the storage type or the distribution is unknown, or the shape has the wrong rank.

    Examples
    --------
    >>> x, (indptr, indices, data) = rand_sparse_ndarray((5, 16), "csr", density=0.5, distribution="powerlaw")
    >>> np.diff(indptr.asnumpy()).tolist()
    [2, 4, 8, 16, 10]
    >>> x, (data, rows) = rand_sparse_ndarray((5, 2), "row_sparse", rsp_indices=[1, 3])
    >>> rows.tolist(), data.shape
    ([1, 3], (2, 2))
    """
    if stype not in ("csr", "row_sparse"):
        raise error(AssertionError, f"unknown storage type {stype!r}; use 'csr' or 'row_sparse'")
    shape, dtype = tuple(int(d) for d in shape), np.dtype(default_dtype() if dtype is None else dtype)
    distribution = distribution or "uniform"
    allowed = {"csr": ("uniform", "powerlaw"), "row_sparse": ("uniform",)}[stype]
    if distribution not in allowed:
        raise error(
            AssertionError,
            f"distribution {distribution!r} is not supported for {stype}; use {' or '.join(map(repr, allowed))}",
        )
    density = float(np.random.uniform()) if density is None else density
    _check_density(density, "rand_sparse_ndarray")
    if stype == "row_sparse":
        return _row_sparse(shape, density, dtype, data_init, rsp_indices, modifier_func, ctx)
    if len(shape) != 2:
        raise error(AssertionError, f"a csr array has two dimensions, got shape {shape}")
    indptr, indices = (_powerlaw_pattern if distribution == "powerlaw" else _even_pattern)(shape, density)
    if distribution == "powerlaw" and data_init is None:
        data = np.random.uniform(1.0, 3.0, size=len(indices)).astype(dtype)
        if modifier_func is not None:
            data = np.asarray([modifier_func(v) for v in data], dtype)
    else:
        data = _values((len(indices),), dtype, data_init, modifier_func)
    made = sparse.csr_matrix((data, indices, indptr), shape=shape, ctx=ctx, dtype=dtype)
    if shuffle_csr_indices:
        shuffle_csr_column_indices(made)
    return made, (made.indptr, made.indices, made.data)


def _row_sparse(
    shape: tuple[int, ...],
    density: float,
    dtype: Any,
    data_init: float | None,
    rsp_indices: Any,
    modifier_func: Callable[[Any], Any] | None,
    ctx: Any,
) -> tuple[Any, tuple[Any, Any]]:
    if not shape:
        raise error(AssertionError, "a row_sparse array has one dimension at least, got shape ()")
    if rsp_indices is not None:
        given = rsp_indices.asnumpy() if hasattr(rsp_indices, "asnumpy") else rsp_indices
        rows = np.sort(np.asarray(given, np.int64).reshape(-1))
    else:
        rows = np.flatnonzero(np.random.uniform(size=shape[0]) < density).astype(np.int64)
    data = _values((len(rows), *shape[1:]), dtype, data_init, modifier_func)
    return sparse.row_sparse_array((data, rows), shape=shape, ctx=ctx, dtype=dtype), (data, rows)


def create_sparse_array(
    shape: Sequence[int],
    stype: str,
    data_init: float | None = None,
    rsp_indices: Any = None,
    dtype: Any = None,
    modifier_func: Callable[[Any], Any] | None = None,
    density: float = 0.5,
    shuffle_csr_indices: bool = False,
) -> Any:
    """A random sparse array; see `rand_sparse_ndarray` for the parameters.

    Of a row-sparse array the rows `rsp_indices` are stored, or random ones.

    >>> create_sparse_array((3, 2), "row_sparse", data_init=2, rsp_indices=[0, 2]).asnumpy().tolist()
    [[2.0, 2.0], [0.0, 0.0], [2.0, 2.0]]
    """
    return rand_sparse_ndarray(
        shape,
        stype,
        density=density,
        dtype=dtype,
        data_init=data_init,
        rsp_indices=rsp_indices,
        modifier_func=modifier_func,
        shuffle_csr_indices=shuffle_csr_indices,
    )[0]


def create_sparse_array_zd(
    shape: Sequence[int],
    stype: str,
    density: float,
    data_init: float | None = None,
    rsp_indices: Any = None,
    dtype: Any = None,
    modifier_func: Callable[[Any], Any] | None = None,
    shuffle_csr_indices: bool = False,
) -> Any:
    """A random sparse array whose row-sparse form is empty unless `rsp_indices` says otherwise, whatever the density.

    >>> create_sparse_array_zd((3, 2), "row_sparse", density=0.5).indices.shape
    (0,)
    """
    if stype == "row_sparse" and rsp_indices is None:
        density = 0.0
    return create_sparse_array(
        shape,
        stype,
        data_init=data_init,
        rsp_indices=rsp_indices,
        dtype=dtype,
        density=density,
        modifier_func=modifier_func,
        shuffle_csr_indices=shuffle_csr_indices,
    )
