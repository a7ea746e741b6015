"""Functions that make arrays: `zeros`, `arange`, `linspace`, `eye` and their kin."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from .._core.array import Array
from .._core.errors import error
from .._core.params import as_dtype
from .arguments import default_dtype, default_float, in_order, lengths, numpys_dtypes, only_arrays
from .options import refuse

__all__ = [
    "arange",
    "array",
    "asarray",
    "copy",
    "diag",
    "diag_indices_from",
    "diagflat",
    "diagonal",
    "empty",
    "empty_like",
    "eye",
    "full",
    "full_like",
    "genfromtxt",
    "identity",
    "indices",
    "linspace",
    "logspace",
    "meshgrid",
    "ones",
    "ones_like",
    "trace",
    "tri",
    "tril",
    "tril_indices_from",
    "triu",
    "triu_indices_from",
    "vander",
    "zeros",
    "zeros_like",
]


def array(F: Any, object: Any, dtype: Any = None, ctx: Any = None) -> Any:
    """An array of anything that NumPy understands; the values are copied.

    Parameters
    ----------
    object : array_like
        An array of ``mx.np``, of NumPy or of another library, numbers, or nested sequences of all these.
    dtype : dtype, optional
        That of `object` where it has one, else float32: of lists and numbers, whatever they hold.
    ctx : Context, optional
        Where to put it; the current context unless told.

    Returns
    -------
    ndarray

    Raises
    ------
    MXNetError
        (also TypeError) for what is no array: text, complex numbers, rows of several lengths; (also ValueError) for an
        array of ``mx.nd``, whose `as_np_ndarray` gives the same memory.

    Examples
    --------
    >>> from mxcore import np
    >>> np.array([[1, 2], [3, 4]])
    array([[1., 2.],
           [3., 4.]])
    """
    if isinstance(object, Array):
        if not F.is_value(object):
            raise error(
                ValueError,
                "np.array: got an array of mx.nd; x.as_np_ndarray() gives the same memory as an array of mx.np",
            )
        return F.placed(object.astype(object.dtype if dtype is None else dtype), ctx)  # type: ignore[attr-defined]
    return F.from_host(_host("array", object, dtype), ctx)


def _host(name: str, given: Any, dtype: Any) -> np.ndarray[Any, Any]:
    """What NumPy makes of something, in the dtype asked for, its own, or float32 where it has none."""
    if dtype is None:
        own = getattr(given, "dtype", None)
        dtype = None if own is not None or numpys_dtypes() else default_float()
    try:
        # A dtype of another library's is one that only its own conversion knows.
        host = np.asarray(given) if dtype is None else np.array(given, dtype=as_dtype(dtype))
        return host.astype(as_dtype(host.dtype), copy=False)
    except (TypeError, ValueError, OverflowError) as e:
        raise error(
            TypeError, f"np.{name} cannot make a {dtype or 'numeric'} array of a {type(given).__name__}: {e}"
        ) from None


def asarray(F: Any, obj: Any, dtype: Any = None, order: Any = None, ctx: Any = None) -> Any:
    """An array of anything that NumPy understands: itself if it is one of that dtype already.

    Parameters
    ----------
    obj : array_like
    dtype : dtype, optional
        As for `array`.
    order : {None, 'C'}, optional
    ctx : Context, optional
        Where it is to be; where it is unless told.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> x = np.array([1, 2])
    >>> np.asarray(x) is x
    True
    """
    in_order("asarray", order, "K", "A")
    if not F.is_value(obj):
        return array(F, obj, dtype, ctx)
    if dtype is not None and obj.dtype != as_dtype(dtype):
        obj = obj.astype(dtype)
    return obj if ctx is None else obj.as_in_ctx(ctx)


def zeros(F: Any, shape: Any, dtype: Any = None, order: Any = "C", ctx: Any = None) -> Any:
    """An array of zeros.

    Parameters
    ----------
    shape : int or tuple of int
    dtype : dtype, optional
        float32 unless told.
    order : {'C'}, optional
        Of the elements in memory.
    ctx : Context, optional
        Where it is; the current context unless told.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.zeros((2, 2), dtype="int32")
    array([[0, 0],
           [0, 0]], dtype=int32)
    """
    in_order("zeros", order)
    return F.call("_npi_zeros", shape=lengths("zeros", shape), dtype=default_float(dtype), ctx=ctx)


def ones(F: Any, shape: Any, dtype: Any = np.float32, order: Any = "C", ctx: Any = None) -> Any:
    """An array of ones.

    Parameters
    ----------
    shape : int or tuple of int
    dtype : dtype, optional
    order : {'C'}, optional
        Of the elements in memory.
    ctx : Context, optional
        Where it is; the current context unless told.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.ones(3)
    array([1., 1., 1.])
    """
    in_order("ones", order)
    return F.call("_npi_ones", shape=lengths("ones", shape), dtype=_float(dtype), ctx=ctx)


def _float(dtype: Any) -> np.dtype[Any]:
    """A dtype; ``numpy.float32``, the default of MXNet's signatures, is the default float."""
    return default_float(None if dtype is np.float32 else dtype)


def empty(F: Any, shape: Any, dtype: Any = np.float32, order: Any = "C", ctx: Any = None) -> Any:
    """An array to be written to; until then it holds zeros.

    Parameters
    ----------
    shape : int or tuple of int
    dtype : dtype, optional
    order : {'C'}, optional
        Of the elements in memory.
    ctx : Context, optional
        Where it is; the current context unless told.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.empty((2, 3)).shape
    (2, 3)
    """
    in_order("empty", order)
    return F.call("_npi_zeros", shape=lengths("empty", shape), dtype=_float(dtype), ctx=ctx)


def full(
    F: Any, shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C", ctx: Any = None, out: Any = None
) -> Any:
    """An array of one value.

    Parameters
    ----------
    shape : int or tuple of int
    fill_value : number or ndarray
        An array is broadcast to the shape.
    dtype : dtype, optional
        Of a bool, bool; of an array, its own; else float32.
    order : {'C'}, optional
        Of the elements in memory.
    ctx : Context, optional
        Where it is; the current context unless told.
    out : ndarray, optional
        Where to write.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.full((2,), 7)
    array([7., 7.])
    """
    in_order("full", order)
    shape = lengths("full", shape)
    if F.is_value(fill_value):
        found = F.broadcast_to(fill_value, shape)
        found = found if dtype is None else found.astype(dtype)
        return found if out is None else F.copy(found, out=out)
    value, dtype = _filling("full", fill_value, dtype)
    return F.call("_full", shape=shape, value=value, dtype=default_dtype(dtype, value), ctx=ctx, out=out)


def _filling(name: str, value: Any, dtype: Any) -> tuple[Any, Any]:
    """The number to fill an array with, and the dtype, which is bool for one of both truth values."""
    truth = isinstance(value, (bool, np.bool_))
    if not isinstance(value, numbers.Real) and not truth:
        raise error(TypeError, f"np.{name}: fill_value must be a number or an array of mx.np, got {value!r}")
    return (int(value) if truth else value), (np.bool_ if truth and dtype is None else dtype)


def full_like(
    F: Any, a: Any, fill_value: Any, dtype: Any = None, order: Any = "C", ctx: Any = None, out: Any = None
) -> Any:
    """An array of one value, of the shape and dtype of another one.

    Parameters
    ----------
    a : ndarray
    fill_value : number
    dtype : dtype, optional
        That of `a` unless told.
    order : {'C'}, optional
        Of the elements in memory.
    ctx : Context, optional
        Where it is; where `a` is unless told.
    out : ndarray, optional
        Where to write.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.full_like(np.ones(2), 3)
    array([3., 3.])
    """
    in_order("full_like", order, "K", "A")
    value, _ = _filling("full_like", fill_value, dtype)
    return _like(F, a, value, dtype, ctx, out)


def _like(F: Any, a: Any, value: Any, dtype: Any, ctx: Any, out: Any) -> Any:
    if isinstance(a, numbers.Number):  # NumPy's functions take numbers
        a = array(F, a, getattr(a, "dtype", None), ctx)
    found = F.call("_npi_full_like", a, fill_value=value, dtype=dtype, out=out)
    return found if ctx is None else F.placed(found, ctx)


def zeros_like(F: Any, a: Any, dtype: Any = None, order: Any = "C", ctx: Any = None, out: Any = None) -> Any:
    """An array of zeros, of the shape and dtype of another one.

    Parameters
    ----------
    a : ndarray
    dtype : dtype, optional
        That of `a` unless told.
    order : {'C'}, optional
        Of the elements in memory.
    ctx : Context, optional
        Where it is; where `a` is unless told.
    out : ndarray, optional
        Where to write.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.zeros_like(np.ones((1, 2)))
    array([[0., 0.]])
    """
    in_order("zeros_like", order, "K", "A")
    return _like(F, a, 0, dtype, ctx, out)


def ones_like(F: Any, a: Any, dtype: Any = None, order: Any = "C", ctx: Any = None, out: Any = None) -> Any:
    """An array of ones, of the shape and dtype of another one.

    Parameters
    ----------
    a : ndarray
    dtype : dtype, optional
        That of `a` unless told.
    order : {'C'}, optional
        Of the elements in memory.
    ctx : Context, optional
        Where it is; where `a` is unless told.
    out : ndarray, optional
        Where to write.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.ones_like(np.zeros(2), dtype=bool)
    array([ True,  True])
    """
    in_order("ones_like", order, "K", "A")
    return _like(F, a, 1, dtype, ctx, out)


def empty_like(
    F: Any, prototype: Any, dtype: Any = None, order: Any = "C", subok: bool = False, shape: Any = None
) -> Any:
    """An array to be written to, of the shape and dtype of another one; until then it holds zeros.

    Parameters
    ----------
    prototype : ndarray
    dtype : dtype, optional
        That of `prototype` unless told.
    order : {'C'}, optional
        Of the elements in memory.
    subok : bool, optional
        Only False.
    shape : int or tuple of int, optional
        Another shape.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.empty_like(np.ones((2, 3))).shape
    (2, 3)
    """
    in_order("empty_like", order, "K", "A")
    if subok:
        raise refuse("empty_like", "subok", subok, False)
    if shape is not None:
        only_arrays(F, "empty_like with a shape", prototype)
        return zeros(F, shape, prototype.dtype if dtype is None else dtype, ctx=prototype.ctx)
    return _like(F, prototype, 0, dtype, None, None)


def arange(F: Any, start: Any, stop: Any = None, step: Any = 1, dtype: Any = None, ctx: Any = None) -> Any:
    """Evenly spaced values from `start` up to, but without, `stop`.

    Parameters
    ----------
    start, stop : number
        Without `stop` from 0 up to `start`.
    step : number, optional
    dtype : dtype, optional
        float32 unless told, also of whole numbers.
    ctx : Context, optional
        Where it is; the current context unless told.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.arange(3)
    array([0., 1., 2.])
    >>> np.arange(1, 7, 2, dtype="int64")
    array([1, 3, 5], dtype=int64)
    """
    if stop is None:
        start, stop = 0, start
    if step is None:
        step = 1
    start, stop, step = (_number("arange", x) for x in (start, stop, step))
    if step == 0:
        raise error(ValueError, "np.arange: step must not be 0")
    dtype = default_dtype(dtype, start, stop, step)
    return F.call("_npi_arange", start=start, stop=stop, step=step, dtype=dtype, ctx=ctx)


def _number(name: str, x: Any) -> Any:
    """A number, also of an array with one element."""
    if isinstance(x, numbers.Real):
        return x
    try:
        return x.item()
    except (AttributeError, ValueError):
        raise error(TypeError, f"np.{name} takes numbers, got {type(x).__name__}") from None


def linspace(
    F: Any,
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    ctx: Any = None,
) -> Any:
    """A given number of evenly spaced values.

    Parameters
    ----------
    start, stop : number or ndarray
        Of arrays, the values go from the elements of one to those of the other.
    num : int, optional
    endpoint : bool, optional
        Whether `stop` is the last value.
    retstep : bool, optional
        Whether to give the distance, too.
    dtype : dtype, optional
        float32 unless told.
    axis : int, optional
        Along which axis the values of arrays go.
    ctx : Context, optional
        Where it is; the current context unless told.

    Returns
    -------
    ndarray, or (ndarray, distance)

    Examples
    --------
    >>> from mxcore import np
    >>> np.linspace(0, 1, 5)
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    num = _length("linspace", num)
    parts = num - 1 if endpoint else num
    if F.is_value(start) or F.is_value(stop):
        t = F.linspace(0.0, 1.0, num, endpoint, dtype=dtype, ctx=ctx)
        along = F.expand_dims(start * 1.0 if F.is_value(start) else stop * 0.0 + start, axis)
        width = F.expand_dims(stop - start, axis)
        only_arrays(F, "linspace of arrays", start, stop)
        shape = [1] * width.ndim
        shape[axis] = num
        found, step = along + width * F.reshape(t, shape), (stop - start) / parts if parts else None
    else:
        start, stop = _number("linspace", start), _number("linspace", stop)
        step = (stop - start) / parts if parts > 0 else float("nan")
        found = F.call(
            "_linspace", start=start, stop=stop, num=num, endpoint=bool(endpoint), dtype=default_float(dtype), ctx=ctx
        )
    return (found, step) if retstep else found


def _length(name: str, num: Any) -> int:
    try:
        found = int(num.__index__())
    except (AttributeError, TypeError):
        raise error(TypeError, f"np.{name}: num must be a whole number, got {num!r}") from None
    if found < 0:
        raise error(ValueError, f"np.{name}: num={num} must not be negative")
    return found


def logspace(
    F: Any,
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: float = 10.0,
    dtype: Any = None,
    axis: int = 0,
    ctx: Any = None,
) -> Any:
    """A given number of values whose logarithms are evenly spaced.

    Parameters
    ----------
    start, stop : number
        Exponents: the first value is ``base**start``.
    num : int, optional
    endpoint : bool, optional
        Whether ``base**stop`` is the last value.
    base : number, optional
    dtype : dtype, optional
        float32 unless told.
    axis : {0}, optional
    ctx : Context, optional
        Where it is; the current context unless told.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.logspace(0, 2, 3)
    array([  1.,  10., 100.])
    """
    if axis not in (0, -1):
        raise refuse("logspace", "axis", axis, 0)
    start, stop, base = (_number("logspace", x) for x in (start, stop, base))
    return F.call(
        "_npi_logspace",
        start=start,
        stop=stop,
        num=_length("logspace", num),
        endpoint=bool(endpoint),
        base=base,
        dtype=default_float(dtype),
        ctx=ctx,
    )


def eye(F: Any, N: int, M: int | None = None, k: int = 0, dtype: Any = np.float32, **kwargs: Any) -> Any:
    """A matrix with ones on a diagonal.

    Parameters
    ----------
    N, M : int
        Rows and columns; as many columns as rows unless told.
    k : int, optional
        Which diagonal: above the main one if positive.
    dtype : dtype, optional
    **kwargs
        `ctx`, where it is; `order`, only 'C'.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.eye(2)
    array([[1., 0.],
           [0., 1.]])
    """
    ctx = kwargs.pop("ctx", None)
    in_order("eye", kwargs.pop("order", None))
    if kwargs:
        raise error(TypeError, f"np.eye has no argument '{next(iter(kwargs))}'; it takes N, M, k, dtype, order and ctx")
    return F.call("_npi_eye", N=N, M=M, k=k, dtype=_float(dtype), ctx=ctx)


def identity(F: Any, n: int, dtype: Any = None, ctx: Any = None) -> Any:
    """The identity matrix.

    Parameters
    ----------
    n : int
        Rows and columns.
    dtype : dtype, optional
        float32 unless told.
    ctx : Context, optional
        Where it is; the current context unless told.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.identity(2)
    array([[1., 0.],
           [0., 1.]])
    """
    return F.call("_npi_identity", shape=lengths("identity", (n, n)), dtype=default_float(dtype), ctx=ctx)


def indices(F: Any, dimensions: Any, dtype: Any = np.int32, ctx: Any = None) -> Any:
    """The indices of a grid.

    Parameters
    ----------
    dimensions : sequence of int
        The shape of the grid.
    dtype : dtype, optional
    ctx : Context, optional
        Where it is; the current context unless told.

    Returns
    -------
    ndarray
        One array of the grid's shape for each of its dimensions.

    Examples
    --------
    >>> from mxcore import np
    >>> np.indices((2, 2))[0]
    array([[0, 0],
           [1, 1]], dtype=int32)
    """
    return F.call("_npi_indices", dimensions=lengths("indices", dimensions), dtype=as_dtype(dtype), ctx=ctx)


def copy(F: Any, a: Any, out: Any = None) -> Any:
    """A copy of an array.

    Parameters
    ----------
    a : ndarray or number
    out : ndarray, optional
        Where to write.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> x = np.ones(2)
    >>> y = np.copy(x)
    >>> y[0] = 5
    >>> x
    array([1., 1.])
    """
    if not F.is_value(a):
        a = array(F, a)
        if out is None:
            return a
    return F.call("_np_copy", a, out=out)


def tri(F: Any, N: int, M: int | None = None, k: int = 0, dtype: Any = None, ctx: Any = None) -> Any:
    """A matrix with ones on and below a diagonal.

    Parameters
    ----------
    N, M : int
        Rows and columns; as many columns as rows unless told.
    k : int, optional
        Which diagonal: above the main one if positive.
    dtype : dtype, optional
        float32 unless told.
    ctx : Context, optional
        Where it is; the current context unless told.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.tri(2, 3)
    array([[1., 0., 0.],
           [1., 1., 0.]])
    """
    return tril(F, ones(F, (N, N if M is None else M), default_float(dtype), ctx=ctx), k)


def tril(F: Any, m: Any, k: int = 0) -> Any:
    """The lower triangles of the matrices that the last two axes make; zeros above.

    Parameters
    ----------
    m : ndarray
        A vector stands for a matrix with it in each row.
    k : int, optional
        Up to which diagonal: above the main one if positive.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.tril(np.ones((2, 2)))
    array([[1., 0.],
           [1., 1.]])
    """
    return F.call("_npi_tril", m, k=k)


def triu(F: Any, m: Any, k: int = 0) -> Any:
    """The upper triangles of the matrices that the last two axes make; zeros below.

    Parameters
    ----------
    m : ndarray
        A vector stands for a matrix with it in each row.
    k : int, optional
        From which diagonal on: above the main one if positive.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.triu(np.ones((2, 2)))
    array([[1., 1.],
           [0., 1.]])
    """
    return F.call("_npi_triu", m, k=k)


def _triangle_indices(F: Any, name: str, arr: Any, k: int) -> Any:
    only_arrays(F, name, arr)
    if arr.ndim != 2:
        raise error(ValueError, f"np.{name} takes a matrix, got an array of shape {arr.shape}")
    found = getattr(np, name.removesuffix("_from"))(arr.shape[0], k, arr.shape[1])
    return tuple(F.from_host(i, arr.ctx) for i in found)


def tril_indices_from(F: Any, arr: Any, k: int = 0) -> Any:
    """The indices of the lower triangle of a matrix.

    Parameters
    ----------
    arr : ndarray
        A matrix.
    k : int, optional
        Up to which diagonal.

    Returns
    -------
    tuple of ndarray
        Rows and columns, of int64.

    Examples
    --------
    >>> from mxcore import np
    >>> np.tril_indices_from(np.ones((2, 2)))
    (array([0, 1, 1], dtype=int64), array([0, 0, 1], dtype=int64))
    """
    return _triangle_indices(F, "tril_indices_from", arr, k)


def triu_indices_from(F: Any, arr: Any, k: int = 0) -> Any:
    """The indices of the upper triangle of a matrix.

    Parameters
    ----------
    arr : ndarray
        A matrix.
    k : int, optional
        From which diagonal on.

    Returns
    -------
    tuple of ndarray
        Rows and columns, of int64.

    Examples
    --------
    >>> from mxcore import np
    >>> np.triu_indices_from(np.ones((2, 2)))
    (array([0, 0, 1], dtype=int64), array([0, 1, 1], dtype=int64))
    """
    return _triangle_indices(F, "triu_indices_from", arr, k)


def diag_indices_from(F: Any, arr: Any) -> Any:
    """The indices of the main diagonal of an array whose axes have one length.

    Parameters
    ----------
    arr : ndarray
        Of two or more dimensions of one length.

    Returns
    -------
    tuple of ndarray
        One for each dimension, of int64.

    Examples
    --------
    >>> from mxcore import np
    >>> np.diag_indices_from(np.ones((2, 2)))
    (array([0, 1], dtype=int64), array([0, 1], dtype=int64))
    """
    only_arrays(F, "diag_indices_from", arr)
    return tuple(F.call("_npi_diag_indices_from", arr))


def diag(F: Any, array: Any, k: int = 0) -> Any:
    """A diagonal of a matrix; of a vector, the matrix with it on that diagonal.

    Parameters
    ----------
    array : ndarray
        Of one or two dimensions.
    k : int, optional
        Which diagonal: above the main one if positive.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.diag(np.array([1, 2]))
    array([[1., 0.],
           [0., 2.]])
    """
    return F.call("_np_diag", array, k=k)


def diagflat(F: Any, array: Any, k: int = 0) -> Any:
    """The matrix with the elements of an array on a diagonal.

    Parameters
    ----------
    array : ndarray
        Any shape; its elements in order.
    k : int, optional
        Which diagonal: above the main one if positive.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.diagflat(np.array([[1, 2]]))
    array([[1., 0.],
           [0., 2.]])
    """
    return F.call("_np_diagflat", array, k=k)


def diagonal(F: Any, a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The diagonals of the matrices that two axes make.

    Parameters
    ----------
    a : ndarray
        Of two or more dimensions.
    offset : int, optional
        Which diagonal: above the main one if positive.
    axis1, axis2 : int, optional
        The axes of the rows and columns.

    Returns
    -------
    ndarray
        Without these axes; the diagonals lie along its last one.

    Examples
    --------
    >>> from mxcore import np
    >>> np.diagonal(np.array([[1, 2], [3, 4]]))
    array([1., 4.])
    """
    return F.call("_np_diagonal", a, offset=offset, axis1=axis1, axis2=axis2)


def trace(F: Any, a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, out: Any = None) -> Any:
    """The sums along the diagonals of the matrices that two axes make.

    Parameters
    ----------
    a : ndarray
        Of two or more dimensions.
    offset : int, optional
        Which diagonal: above the main one if positive.
    axis1, axis2 : int, optional
        The axes of the rows and columns.
    out : ndarray, optional
        Where to write.

    Returns
    -------
    ndarray
        Without these axes.

    Examples
    --------
    >>> from mxcore import np
    >>> np.trace(np.array([[1, 2], [3, 4]]))
    array(5.)
    """
    return F.call("_np_trace", a, offset=offset, axis1=axis1, axis2=axis2, out=out)


def meshgrid(F: Any, *xi: Any, **kwargs: Any) -> Any:
    """The coordinates of a grid, from those along its axes.

    Parameters
    ----------
    *xi : ndarray
        Vectors.
    **kwargs
        `indexing`: 'xy' (the first vector runs along the second axis) or 'ij'; `sparse`: leave length 1 where values
        repeat; `copy`: only True.

    Returns
    -------
    list of ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> x, y = np.meshgrid(np.array([1, 2]), np.array([3, 4]))
    >>> x
    array([[1., 2.],
           [1., 2.]])
    >>> y
    array([[3., 3.],
           [4., 4.]])
    """
    indexing, sparse = kwargs.pop("indexing", "xy"), kwargs.pop("sparse", False)
    if not kwargs.pop("copy", True):
        raise refuse("meshgrid", "copy", False, True)
    if kwargs:
        raise error(TypeError, f"np.meshgrid has no argument '{next(iter(kwargs))}'; it takes sparse, indexing, copy")
    if indexing not in ("xy", "ij"):
        raise error(ValueError, f"np.meshgrid: indexing must be 'xy' or 'ij', got {indexing!r}")
    only_arrays(F, "meshgrid", *xi)
    n = len(xi)
    at = [1, 0, *range(2, n)] if indexing == "xy" and n > 1 else list(range(n))
    lines = [F.reshape(x, tuple(x.size if i == at[j] else 1 for i in range(n))) for j, x in enumerate(xi)]
    if sparse:
        return lines
    shape = [1] * n
    for i, x in zip(at, xi):
        shape[i] = x.size
    return [F.broadcast_to(x, tuple(shape)) for x in lines]


def vander(F: Any, x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """The matrix whose columns are powers of a vector.

    Parameters
    ----------
    x : ndarray
        A vector.
    N : int, optional
        How many columns; as many as rows unless told.
    increasing : bool, optional
        Whether the powers rise from left to right.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.vander(np.array([1, 2, 3]), 2)
    array([[1., 1.],
           [2., 1.],
           [3., 1.]])
    """
    only_arrays(F, "vander", x)
    if x.ndim != 1:
        raise error(ValueError, f"np.vander takes a vector, got an array of shape {x.shape}")
    n = x.shape[0] if N is None else N
    powers = F.arange(n, dtype=x.dtype, ctx=x.ctx)
    return F.expand_dims(x, 1) ** (powers if increasing else F.flip(powers, 0))


def genfromtxt(F: Any, *args: Any, ctx: Any = None, **kwargs: Any) -> Any:
    """The numbers of a text file, as NumPy's ``genfromtxt`` reads them.

    Parameters
    ----------
    *args, **kwargs
        Those of ``numpy.genfromtxt``: the file, `delimiter`, `dtype`, `skip_header` …
    ctx : Context, optional
        Where the array goes; the current context unless told.

    Returns
    -------
    ndarray
        Of the dtype that was asked for, float32 unless told.

    Examples
    --------
    >>> from mxcore import np
    >>> np.genfromtxt(["1,2", "3,4"], delimiter=",")
    array([[1., 2.],
           [3., 4.]])
    """
    found = np.genfromtxt(*args, **{"dtype": np.float32, **kwargs})
    return F.array(found, dtype=found.dtype, ctx=ctx)
