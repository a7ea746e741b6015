"""Functions that make arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...._core.array import Array
from ...._core.errors import error
from ...dlpack import from_dlpack as over_dlpack
from ..face import arrays as F
from ..multiarray import ndarray
from .arguments import NO_COMPLEX, asked_dtype, check, default_dtype, kind_of, number, place, whole_number

__all__ = [
    "arange",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
]


def _lengths(name: str, shape: Any) -> tuple[int, ...]:
    found = tuple(whole_number(name, "shape", d) for d in (shape if isinstance(shape, (tuple, list)) else (shape,)))
    if any(d < 0 for d in found):
        raise error(ValueError, f"{name}: shape {found} holds a length below 0")
    return found


def _kind_of_numbers(name: str, *values: Any) -> str:
    """'b', 'i' or 'f': what arrays are made of for numbers of Python's."""
    kinds = {bool: "b", int: "i", float: "f"}
    found = [kinds.get(type(v)) for v in values]
    for kind, v in zip(found, values):
        if kind is None:
            told = f"; {NO_COMPLEX}" if isinstance(v, complex) else ""
            raise error(TypeError, f"{name}: a number of Python's is needed, got {type(v).__name__}{told}")
    return "f" if "f" in found else "i" if "i" in found else "b"


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Any:
    """An array of numbers, sequences of them, or what offers its memory.

    Parameters
    ----------
    obj : ndarray, number, nested sequences of numbers, or an object with the buffer protocol or ``__array__``
    dtype : dtype, optional
        That of `obj` where it has one; else bool of truth values, int64 of whole numbers, float32 of others
        (float64 after ``npx.set_np(dtype=True)``).
    device : Context, optional
        Where it is to be: where `obj` is, or the current context.
    copy : bool, optional
        True: copy; False: share the memory or fail; None: share where `obj` is an array of that dtype and device.

    Returns
    -------
    ndarray

    Raises
    ------
    MXNetError
        (also ValueError) for ``copy=False`` where there is no way without; (also TypeError) for complex numbers, which
        mxcore does not have, and what is no number; (also OverflowError) for numbers that the dtype does not hold.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.asarray([[1, 2], [3, 4]]).dtype
    dtype('int64')
    >>> xp.asarray([1.5, 2])
    array([1.5, 2. ])
    """
    ctx = place("asarray", device)
    dtype = None if dtype is None else asked_dtype("asarray", dtype)
    if isinstance(obj, Array):
        check("asarray", "all", obj)
        return _again("asarray", obj, dtype, ctx, copy)
    if copy is False:
        raise error(
            ValueError, f"asarray: a {type(obj).__name__} is copied to make an array of it; copy=False forbids that"
        )
    return F.from_host(_host(obj, dtype), ctx)


def _again(name: str, x: Any, dtype: Any, ctx: Any, copy: bool | None) -> Any:
    """An array in a dtype and at a place; itself if it is so already and may be."""
    same = (dtype is None or dtype == x.dtype) and (ctx is None or ctx is x.ctx)
    if not same and copy is False:
        raise error(ValueError, f"{name}: another dtype or device makes a copy, which copy=False forbids")
    if same:
        return F.copy(x) if copy else x
    x = x if dtype is None else x.astype(dtype)
    return x if ctx is None else x.as_in_ctx(ctx)


def _host(obj: Any, dtype: Any) -> np.ndarray[Any, Any]:
    """An array of NumPy's of numbers, in the dtype asked for or the one that arrays of such numbers have."""
    numbers = isinstance(obj, (bool, int, float, list, tuple))
    given = _plain(obj) if isinstance(obj, (list, tuple)) else obj
    try:
        found = np.asarray(given)
        if found.dtype.kind == "c":
            raise TypeError(NO_COMPLEX)
        if found.dtype.kind not in "biufV":
            raise TypeError(f"its elements are no numbers that an array holds ({found.dtype})")
        if numbers and dtype is None:
            dtype = default_dtype("i" if found.dtype.kind == "u" else kind_of(found.dtype))
        with np.errstate(over="ignore"):
            return found if dtype is None else np.asarray(given if numbers else found, dtype)
    except (TypeError, ValueError, OverflowError) as e:
        kind = type(e) if type(e) in (ValueError, OverflowError) else TypeError
        raise error(kind, f"asarray cannot make an array of a {type(obj).__name__}: {e}") from None


def _plain(values: Any) -> Any:
    """Sequences with arrays of no dimensions as the numbers that these hold."""
    return [
        _plain(v) if isinstance(v, (list, tuple)) else v.item() if isinstance(v, ndarray) and not v.ndim else v
        for v in values
    ]


def arange(
    start: float, /, stop: float | None = None, step: float = 1, *, dtype: Any = None, device: Any = None
) -> Any:
    """Numbers of one distance, the last one excluded.

    Parameters
    ----------
    start, stop : int or float
        With one alone, from 0 up to that.
    step : int or float
    dtype : dtype, optional
        int64 of whole numbers, else the default float.
    device : Context, optional
        Where it is; the current context unless told.

    Returns
    -------
    ndarray
        1-D.

    Raises
    ------
    MXNetError
        (also ValueError) for a step of 0.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.arange(2, 8, 2)
    array([2, 4, 6], dtype=int64)
    """
    if stop is None:
        start, stop = 0, start
    kind = _kind_of_numbers("arange", start, stop, step)
    if not step:
        raise error(ValueError, "arange: step must not be 0")
    wanted = asked_dtype("arange", dtype) if dtype is not None else default_dtype("f" if kind == "f" else "i")
    if kind == "f" and kind_of(wanted) != "f":
        return asarray(np.arange(start, stop, step), dtype=wanted, device=device)
    if math.ceil((stop - start) / step) <= 0:
        return zeros((0,), dtype=wanted, device=device)
    if kind_of(wanted) in "iu":
        host: Any = np.arange  # whose declared overloads do not know of dtypes
        return asarray(host(start, stop, step, wanted), device=device)
    return F.arange(start, stop, step, dtype=wanted, ctx=place("arange", device))


def _new(name: str, shape: Any, value: Any, dtype: Any, device: Any) -> Any:
    return F.full(_lengths(name, shape), value, dtype=dtype, ctx=place(name, device))


def _float(name: str, dtype: Any) -> Any:
    return default_dtype("f") if dtype is None else asked_dtype(name, dtype)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """An array of zeros.

    Parameters
    ----------
    shape : int or tuple of int
    dtype : dtype, optional
        The default float unless told.
    device : Context, optional
        Where it is; the current context unless told.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.zeros((2,), dtype=xp.uint8)
    array([0, 0], dtype=uint8)
    """
    return _new("zeros", shape, 0, _float("zeros", dtype), device)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """An array of ones.

    Parameters
    ----------
    shape : int or tuple of int
    dtype : dtype, optional
        The default float unless told.
    device : Context, optional
        Where it is; the current context unless told.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.ones(2)
    array([1., 1.])
    """
    return _new("ones", shape, 1, _float("ones", dtype), device)


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """An array to be written to; until then it holds zeros.

    Parameters
    ----------
    shape : int or tuple of int
    dtype : dtype, optional
        The default float unless told.
    device : Context, optional
        Where it is; the current context unless told.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.empty((2, 0)).shape
    (2, 0)
    """
    return _new("empty", shape, 0, _float("empty", dtype), device)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """An array of one value.

    Parameters
    ----------
    shape : int or tuple of int
    fill_value : bool, int or float
        Or an array of one without dimensions.
    dtype : dtype, optional
        Unless told, that which `asarray` gives the value.
    device : Context, optional
        Where it is; the current context unless told.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.full(3, 7)
    array([7, 7, 7], dtype=int64)
    """
    fill_value = _one(fill_value)
    wanted = default_dtype(_kind_of_numbers("full", fill_value)) if dtype is None else asked_dtype("full", dtype)
    return _filled("full", _lengths("full", shape), fill_value, wanted, place("full", device))


def _one(value: Any) -> Any:
    """A number of Python's, also of an array without dimensions."""
    return value.item() if getattr(value, "shape", None) == () else value


def _filled(name: str, shape: tuple[int, ...], value: Any, dtype: Any, ctx: Any) -> Any:
    if isinstance(value, bool) or kind_of(dtype) == "f" and isinstance(value, (int, float)):
        return F.full(shape, value, dtype=dtype, ctx=ctx)
    return F.copy(F.broadcast_to(number(name, value, dtype, ctx), shape))


def _like(name: str, x: Any, value: Any, dtype: Any, device: Any) -> Any:
    check(name, "all", x)
    wanted = x.dtype if dtype is None else asked_dtype(name, dtype)
    return _filled(name, x.shape, value, wanted, x.ctx if device is None else place(name, device))


def zeros_like(x: ndarray, /, *, dtype: Any = None, device: Any = None) -> Any:
    """Zeros in the shape of an array.

    Parameters
    ----------
    x : ndarray
    dtype : dtype, optional
        That of `x` unless told.
    device : Context, optional
        Where it is; where `x` is unless told.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.zeros_like(xp.asarray([1.5, 2.5]))
    array([0., 0.])
    """
    return _like("zeros_like", x, False, dtype, device)


def ones_like(x: ndarray, /, *, dtype: Any = None, device: Any = None) -> Any:
    """Ones in the shape of an array.

    Parameters
    ----------
    x : ndarray
    dtype : dtype, optional
        That of `x` unless told.
    device : Context, optional
        Where it is; where `x` is unless told.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.ones_like(xp.asarray([1.5, 2.5]))
    array([1., 1.])
    """
    return _like("ones_like", x, True, dtype, device)


def empty_like(x: ndarray, /, *, dtype: Any = None, device: Any = None) -> Any:
    """An array of the shape of another one, to be written to; until then it holds zeros.

    Parameters
    ----------
    x : ndarray
    dtype : dtype, optional
        That of `x` unless told.
    device : Context, optional
        Where it is; where `x` is unless told.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.empty_like(xp.asarray([1.5, 2.5])).shape
    (2,)
    """
    return _like("empty_like", x, False, dtype, device)


def full_like(x: ndarray, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """One value in the shape of an array.

    Parameters
    ----------
    x : ndarray
    fill_value : bool, int or float
        Or an array of one without dimensions.
    dtype : dtype, optional
        That of `x` unless told.
    device : Context, optional
        Where it is; where `x` is unless told.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.full_like(xp.asarray([1.5, 2.5]), 7)
    array([7., 7.])
    """
    return _like("full_like", x, _one(fill_value), dtype, device)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Any:
    """A matrix with ones on a diagonal and zeros elsewhere.

    Parameters
    ----------
    n_rows, n_cols : int
        A square unless both are told.
    k : int
        Which diagonal: above the main one, or below for numbers below 0.
    dtype : dtype, optional
        The default float unless told.
    device : Context, optional
        Where it is; the current context unless told.

    Returns
    -------
    ndarray, (n_rows, n_cols)

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.eye(2, 3, k=1)
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """
    return F.eye(n_rows, n_cols, k, dtype=_float("eye", dtype), ctx=place("eye", device))


def linspace(
    start: float, stop: float, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True
) -> Any:
    """So many numbers of one distance between two.

    Parameters
    ----------
    start, stop : int or float
    num : int
    dtype : dtype, optional
        The default float unless told.
    device : Context, optional
        Where it is; the current context unless told.
    endpoint : bool
        Whether `stop` is the last of them.

    Returns
    -------
    ndarray, (num,)

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.linspace(0, 1, 5)
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    _kind_of_numbers("linspace", start, stop)
    ctx = place("linspace", device)
    return F.linspace(start, stop, num, endpoint, dtype=_float("linspace", dtype), ctx=ctx)


def meshgrid(*arrays: ndarray, indexing: str = "xy") -> list[ndarray]:
    """Coordinates of a grid.

    Parameters
    ----------
    *arrays : ndarray
        The coordinates along each axis, 1-D, of one dtype.
    indexing : {'xy', 'ij'}
        'xy': the first array goes along the second axis, and the other way round.

    Returns
    -------
    list of ndarray

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.meshgrid(xp.asarray([1.0, 2.0]), xp.asarray([3.0]))
    [array([[1., 2.]]), array([[3., 3.]])]
    """
    check("meshgrid", "all", *arrays)
    if len({x.dtype for x in arrays}) > 1:
        raise error(ValueError, "meshgrid: the arrays must have one dtype")
    if any(x.ndim != 1 for x in arrays):
        raise error(ValueError, "meshgrid: the arrays must have one dimension")
    return list(F.meshgrid(*arrays, indexing=indexing))


def _triangle(name: str, x: Any, k: Any) -> Any:
    check(name, "all", x)
    if x.ndim < 2:
        raise error(ValueError, f"{name}: matrices are needed, got shape {x.shape}")
    return getattr(F, name)(x, whole_number(name, "k", k))


def tril(x: ndarray, /, *, k: int = 0) -> Any:
    """The lower triangles of matrices, zeros above.

    Parameters
    ----------
    x : ndarray, (..., m, n)
    k : int
        The last diagonal that is kept.

    Returns
    -------
    ndarray, (..., m, n)

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.tril(xp.ones((2, 2)))
    array([[1., 0.],
           [1., 1.]])
    """
    return _triangle("tril", x, k)


def triu(x: ndarray, /, *, k: int = 0) -> Any:
    """The upper triangles of matrices, zeros below.

    Parameters
    ----------
    x : ndarray, (..., m, n)
    k : int
        The first diagonal that is kept.

    Returns
    -------
    ndarray, (..., m, n)

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.triu(xp.ones((2, 2)))
    array([[1., 1.],
           [0., 1.]])
    """
    return _triangle("triu", x, k)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
    """An array over the memory of another library's.

    Parameters
    ----------
    x : object
        With ``__dlpack__`` and ``__dlpack_device__``.
    device : Context, optional
        Where it is to be; where `x` is unless told.
    copy : bool, optional
        True: copy; False: share the memory or fail; None: share it where the device allows.

    Returns
    -------
    ndarray

    Raises
    ------
    MXNetError
        (also BufferError) for ``copy=False`` and another device; (also TypeError) for a dtype that mxcore does not
        have.

    Examples
    --------
    >>> import numpy
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> host = numpy.ones(2, dtype="float32")
    >>> x = xp.from_dlpack(host)
    >>> host[0] = 5
    >>> x
    array([5., 1.])
    """
    found: Any = over_dlpack(x).as_np_ndarray()
    ctx = place("from_dlpack", device)
    if ctx is not None and ctx is not found.ctx:
        if copy is False:
            raise error(BufferError, f"from_dlpack: from {found.ctx} to {ctx} is a copy, which copy=False forbids")
        return found.as_in_ctx(ctx)
    return F.copy(found) if copy else found
