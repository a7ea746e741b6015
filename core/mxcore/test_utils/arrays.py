"""Random arrays, shapes and samples, and small helpers on arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from .. import ndarray as nd
from ..base import error
from .sparse import rand_sparse_ndarray
from .tolerances import default_dtype

__all__ = [
    "assign_each",
    "assign_each2",
    "collapse_sum_like",
    "create_2d_tensor",
    "create_vector",
    "get_identity_mat",
    "get_identity_mat_batch",
    "np_reduce",
    "rand_coord_2d",
    "rand_ndarray",
    "rand_shape_2d",
    "rand_shape_3d",
    "rand_shape_nd",
    "random_arrays",
    "random_sample",
    "random_uniform_arrays",
]


def random_sample(population: Iterable[Any], k: int) -> list[Any]:
    """Take `k` different members of `population`, in random order, by NumPy's global generator.

    >>> sorted(random_sample([3, 1, 2], 3))
    [1, 2, 3]
    """
    members = list(population)
    if not 0 <= k <= len(members):
        raise error(AssertionError, f"random_sample: k must be from 0 to the {len(members)} members, got {k}")
    np.random.shuffle(members)
    return members[:k]


def _one_or_all(arrays: list[Any]) -> Any:
    return arrays[0] if len(arrays) == 1 else arrays


def random_arrays(*shapes: Sequence[int]) -> Any:
    """Standard normal float32 arrays of NumPy's, from its global generator.

    Parameters
    ----------
    *shapes : tuple of int

    Returns
    -------
    numpy.ndarray or list of these
        The array itself if one shape is given.

    >>> [a.shape for a in random_arrays((2, 3), (4,))]
    [(2, 3), (4,)]
    """
    return _one_or_all([np.asarray(np.random.normal(size=tuple(s)), default_dtype()) for s in shapes])


def random_uniform_arrays(*shapes: Sequence[int], **kwargs: Any) -> list[Any]:
    """Arrays of NumPy's that are uniform in ``[low, high)``.

    Parameters
    ----------
    *shapes : tuple of int
    low, high : float
        The range, by default 0 and 1.
    dtype : dtype
        By default float32.

    Returns
    -------
    list of numpy.ndarray

    >>> a, = random_uniform_arrays((2, 3), low=2, high=3)
    >>> a.dtype, bool((a >= 2).all())
    (dtype('float32'), True)
    """
    low, high, dtype = kwargs.pop("low", 0.0), kwargs.pop("high", 1.0), kwargs.pop("dtype", default_dtype())
    if kwargs:
        raise error(TypeError, f"random_uniform_arrays takes low, high and dtype, got {sorted(kwargs)}")
    return [np.asarray(np.random.uniform(low, high, size=tuple(s)), dtype) for s in shapes]


def rand_shape_nd(num_dim: int, dim: int = 10, allow_zero_size: bool = False) -> tuple[int, ...]:
    """A random shape of `num_dim` dimensions, each from 1 (from 0, if allowed) to `dim`.

    >>> len(rand_shape_nd(4))
    4
    """
    return _shape([dim] * num_dim, allow_zero_size)


def rand_shape_2d(dim0: int = 10, dim1: int = 10, allow_zero_size: bool = False) -> tuple[int, int]:
    """A random shape of two dimensions, from 1 (from 0, if allowed) to `dim0` and `dim1`.

    >>> rand_shape_2d(1, 1)
    (1, 1)
    """
    return _shape([dim0, dim1], allow_zero_size)  # type: ignore[return-value]


def rand_shape_3d(
    dim0: int = 10, dim1: int = 10, dim2: int = 10, allow_zero_size: bool = False
) -> tuple[int, int, int]:
    """A random shape of three dimensions, from 1 (from 0, if allowed) to `dim0`, `dim1` and `dim2`.

    >>> rand_shape_3d(1, 1, 1)
    (1, 1, 1)
    """
    return _shape([dim0, dim1, dim2], allow_zero_size)  # type: ignore[return-value]


def _shape(dims: Sequence[int], allow_zero_size: bool) -> tuple[int, ...]:
    return tuple(int(np.random.randint(0 if allow_zero_size else 1, d + 1)) for d in dims)


def rand_coord_2d(x_low: int, x_high: int, y_low: int, y_high: int) -> tuple[int, int]:
    """A random place (x, y) with ``x_low <= x < x_high`` and ``y_low <= y < y_high``.

    >>> rand_coord_2d(3, 4, 7, 8)
    (3, 7)
    """
    return int(np.random.randint(x_low, x_high)), int(np.random.randint(y_low, y_high))


def rand_ndarray(
    shape: Sequence[int],
    stype: str = "default",
    density: float | None = None,
    dtype: Any = None,
    modifier_func: Callable[[Any], Any] | None = None,
    shuffle_csr_indices: bool = False,
    distribution: str | None = None,
    ctx: Any = None,
) -> Any:
    """A random array of any storage type.

    Parameters
    ----------
    shape : tuple of int
    stype : {'default', 'csr', 'row_sparse'}
        Full arrays are standard normal; `rand_sparse_ndarray` says what sparse ones hold.
    dtype : dtype, optional
        By default float32.
    density, modifier_func, shuffle_csr_indices, distribution : optional
        See `rand_sparse_ndarray`; not for full arrays.
    ctx : Context, optional

    Returns
    -------
    NDArray

    Examples
    --------
    >>> rand_ndarray((2, 3), dtype="float64").dtype.__name__
    'float64'
    >>> rand_ndarray((4, 3), "csr", density=0.5).stype
    'csr'
    """
    if stype == "default":
        return nd.array(np.random.normal(size=tuple(shape)), ctx=ctx, dtype=dtype or default_dtype())
    return rand_sparse_ndarray(
        shape,
        stype,
        density=density,
        modifier_func=modifier_func,
        dtype=dtype,
        shuffle_csr_indices=shuffle_csr_indices,
        distribution=distribution,
        ctx=ctx,
    )[0]


def create_2d_tensor(rows: int, columns: int, dtype: Any = np.int64) -> Any:
    """An NDArray whose row i holds i everywhere.

    >>> create_2d_tensor(2, 3).asnumpy().tolist()
    [[0, 0, 0], [1, 1, 1]]
    """
    return nd.array(np.arange(rows).reshape(-1, 1).repeat(columns, 1), dtype=dtype)


def create_vector(size: int, dtype: Any = np.int64) -> Any:
    """The NDArray 0, 1, …, size - 1.

    >>> create_vector(3).asnumpy().tolist()
    [0, 1, 2]
    """
    return nd.array(np.arange(size), dtype=dtype)


def get_identity_mat(size: int) -> Any:
    """The identity matrix as a float32 NDArray.

    >>> get_identity_mat(2).asnumpy().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return nd.array(np.eye(size))


def get_identity_mat_batch(size: int) -> Any:
    """Two identity matrices in an NDArray (2, size, size).

    >>> get_identity_mat_batch(3).shape
    (2, 3, 3)
    """
    return nd.array(np.stack([np.eye(size)] * 2))


def np_reduce(dat: Any, axis: Any, keepdims: bool, numpy_reduce_func: Callable[..., Any]) -> Any:
    """Reduce an array by a function that may know neither several axes nor `keepdims`.

    Parameters
    ----------
    dat : numpy.ndarray
    axis : None, int or sequence of int
    keepdims : bool
    numpy_reduce_func : callable
        ``f(array, axis=i)``, such as ``np.sum``.

    >>> np_reduce(np.ones((2, 3, 4)), (0, 2), True, np.sum).shape
    (1, 3, 1)
    """
    dat = np.asarray(dat)
    axes = range(dat.ndim) if axis is None else [axis] if isinstance(axis, (int, np.integer)) else axis
    axes = sorted({int(i) % dat.ndim for i in axes}, reverse=True)
    result = dat
    for i in axes:
        result = numpy_reduce_func(result, axis=i)
    return np.reshape(result, [1 if i in axes else d for i, d in enumerate(dat.shape)]) if keepdims else result


def collapse_sum_like(a: Any, shape: Sequence[int]) -> Any:
    """Sum an array over the axes that broadcasting `shape` to it would stretch.

    Parameters
    ----------
    a : numpy.ndarray
    shape : tuple of int
        The shape of the result, which can be broadcast to that of `a`.

    >>> collapse_sum_like(np.ones((2, 3, 4)), (3, 1)).tolist()
    [[8.0], [8.0], [8.0]]
    """
    a, shape = np.asarray(a), tuple(shape)
    full = (1,) * (a.ndim - len(shape)) + shape
    if len(full) != a.ndim or any(d not in (1, have) for d, have in zip(full, a.shape)):
        raise error(
            AssertionError, f"collapse_sum_like: {shape} cannot be broadcast to the shape {a.shape} of the array"
        )
    stretched = tuple(i for i, (d, have) in enumerate(zip(full, a.shape)) if d != have)
    return a.sum(axis=stretched, keepdims=True).reshape(shape)


def assign_each(the_input: Any, function: Callable[[Any], Any] | None) -> Any:
    """`function` of every element of an array; a copy without a function.

    >>> assign_each(np.arange(3), lambda x: x * 2).tolist()
    [0, 2, 4]
    """
    return _each(function, the_input)


def assign_each2(input1: Any, input2: Any, function: Callable[[Any, Any], Any] | None) -> Any:
    """`function` of every pair of elements of two arrays of one shape; a copy of the first without a function.

    >>> assign_each2(np.arange(3), np.ones(3), lambda x, y: x + y).tolist()
    [1.0, 2.0, 3.0]
    """
    return _each(function, input1, input2)


def _each(function: Callable[..., Any] | None, *inputs: Any) -> Any:
    arrays = [x.asnumpy() if hasattr(x, "asnumpy") else np.asarray(x) for x in inputs]
    if function is None:
        return arrays[0].copy()
    results = [function(*values) for values in zip(*(a.reshape(-1) for a in arrays))]
    return np.asarray(results, None if results else arrays[0].dtype).reshape(arrays[0].shape)
