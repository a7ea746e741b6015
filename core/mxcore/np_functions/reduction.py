"""Sums, products, extremes and truth over axes; running sums and differences."""

from __future__ import annotations

from typing import Any

from .options import whole

__all__ = [
    "all",
    "alltrue",
    "amax",
    "amin",
    "any",
    "cumsum",
    "diff",
    "ediff1d",
    "max",
    "min",
    "nansum",
    "prod",
    "product",
    "sometrue",
    "sum",
]


def sum(
    F: Any,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    out: Any = None,
    where: Any = True,
) -> Any:
    """Sum over axes.

    Parameters
    ----------
    a : ndarray
    axis : int or tuple of int, optional
        All axes unless told.
    dtype : dtype, optional
        Of the result, and to add up in.
    keepdims : bool
        Keep reduced axes with length 1.
    initial : number, optional
        Added to the sum.
    out : ndarray, optional
        Where to write: of the shape and dtype of the result.
    where : True
        NumPy's option, refused.

    Returns
    -------
    ndarray
        Unless told of the dtype of `a`, int64 of truth values. Half precision is added up in float32.

    Examples
    --------
    >>> from mxcore import np
    >>> np.sum(np.array([[1, 2], [3, 4]]), axis=0)
    array([4., 6.])
    """
    whole("sum", where)
    if axis is dtype is out is initial is None and not keepdims:  # most calls
        return F.call("_np_sum", a)
    return F.call("_np_sum", a, axis=axis, dtype=dtype, keepdims=keepdims or None, initial=initial, out=out)


def nansum(F: Any, a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    """Sum over axes, NaNs counted as 0.

    Parameters
    ----------
    a : ndarray
    axis : int or tuple of int, optional
        All axes unless told.
    dtype : dtype, optional
        Of the result, and to add up in.
    out : ndarray, optional
        Where to write: of the shape and dtype of the result.
    keepdims : bool
        Keep reduced axes with length 1.

    Returns
    -------
    ndarray
        Of the dtype that `sum` gives.

    Examples
    --------
    >>> from mxcore import np
    >>> np.nansum(np.array([1, float("nan"), 2]))
    array(3.)
    """
    return F.call("_npi_nansum", a, axis=axis, dtype=dtype, keepdims=keepdims or None, out=out)


def prod(
    F: Any,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """Product over axes.

    Parameters
    ----------
    a : ndarray
    axis : int or tuple of int, optional
        All axes unless told.
    dtype : dtype, optional
        Of the result, and to multiply in.
    out : ndarray, optional
        Where to write: of the shape and dtype of the result.
    keepdims : bool
        Keep reduced axes with length 1.
    initial : number, optional
        A further factor.
    where : True
        NumPy's option, refused.

    Returns
    -------
    ndarray
        Unless told of the dtype of `a`, int64 of truth values.

    Examples
    --------
    >>> from mxcore import np
    >>> np.prod(np.array([2, 3, 4]))
    array(24.)
    """
    whole("prod", where)
    return F.call("_np_prod", a, axis=axis, dtype=dtype, keepdims=keepdims or None, initial=initial, out=out)


def max(
    F: Any, a: Any, axis: Any = None, keepdims: bool = False, out: Any = None, initial: Any = None, where: Any = True
) -> Any:
    """Maximum over axes; NaN where one is.

    Parameters
    ----------
    a : ndarray
    axis : int or tuple of int, optional
        All axes unless told.
    keepdims : bool
        Keep reduced axes with length 1.
    out : ndarray, optional
        Where to write: of the shape and dtype of the result.
    initial : number, optional
        The least that the result may be; what the maximum of nothing is.
    where : True
        NumPy's option, refused.

    Returns
    -------
    ndarray
        Of the dtype of `a`. The gradient goes to all elements that are equal to the maximum.

    Examples
    --------
    >>> from mxcore import np
    >>> np.max(np.array([[1, 5], [3, 4]]), axis=1)
    array([5., 4.])
    """
    whole("max", where)
    return F.call("_np_max", a, axis=axis, keepdims=keepdims or None, initial=initial, out=out)


def min(
    F: Any, a: Any, axis: Any = None, keepdims: bool = False, out: Any = None, initial: Any = None, where: Any = True
) -> Any:
    """Minimum over axes; NaN where one is.

    Parameters
    ----------
    a : ndarray
    axis : int or tuple of int, optional
        All axes unless told.
    keepdims : bool
        Keep reduced axes with length 1.
    out : ndarray, optional
        Where to write: of the shape and dtype of the result.
    initial : number, optional
        The most that the result may be; what the minimum of nothing is.
    where : True
        NumPy's option, refused.

    Returns
    -------
    ndarray
        Of the dtype of `a`. The gradient goes to all elements that are equal to the minimum.

    Examples
    --------
    >>> from mxcore import np
    >>> np.min(np.array([[1, 5], [3, 4]]), axis=1)
    array([1., 3.])
    """
    whole("min", where)
    return F.call("_np_min", a, axis=axis, keepdims=keepdims or None, initial=initial, out=out)


def all(F: Any, a: Any, axis: Any = None, keepdims: bool = False, out: Any = None, where: Any = True) -> Any:
    """Whether all elements are true over axes; anything but zero is.

    Parameters
    ----------
    a : ndarray
    axis : int or tuple of int, optional
        All axes unless told.
    keepdims : bool
        Keep reduced axes with length 1.
    out : ndarray, optional
        Where to write: of the shape of the result, of dtype bool.
    where : True
        NumPy's option, refused.

    Returns
    -------
    ndarray
        Of dtype bool; True of nothing.

    Examples
    --------
    >>> from mxcore import np
    >>> np.all(np.array([[1, 0], [3, 4]]), axis=1)
    array([False,  True])
    """
    whole("all", where)
    return F.call("_np_all", a, axis=axis, keepdims=keepdims or None, out=out)


def any(F: Any, a: Any, axis: Any = None, keepdims: bool = False, out: Any = None, where: Any = True) -> Any:
    """Whether any element is true over axes; anything but zero is.

    Parameters
    ----------
    a : ndarray
    axis : int or tuple of int, optional
        All axes unless told.
    keepdims : bool
        Keep reduced axes with length 1.
    out : ndarray, optional
        Where to write: of the shape of the result, of dtype bool.
    where : True
        NumPy's option, refused.

    Returns
    -------
    ndarray
        Of dtype bool; False of nothing.

    Examples
    --------
    >>> from mxcore import np
    >>> np.any(np.array([[1, 0], [0, 0]]), axis=1)
    array([ True, False])
    """
    whole("any", where)
    return F.call("_np_any", a, axis=axis, keepdims=keepdims or None, out=out)


def cumsum(F: Any, a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Sums of the elements up to each one, along an axis.

    Parameters
    ----------
    a : ndarray
    axis : int, optional
        The flattened array unless told.
    dtype : dtype, optional
        Of the result, and to add up in.
    out : ndarray, optional
        Where to write: of the shape and dtype of the result.

    Returns
    -------
    ndarray
        Of the shape of `a`, or 1-D; unless told of its dtype, int64 of truth values.

    Examples
    --------
    >>> from mxcore import np
    >>> np.cumsum(np.array([1, 2, 3]))
    array([1., 3., 6.])
    """
    return F.call("_np_cumsum", a, axis=axis, dtype=dtype, out=out)


def diff(F: Any, a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of each element and the one before, along an axis.

    Parameters
    ----------
    a : ndarray
    n : int
        How often.
    axis : int
    prepend, append : ndarray, optional
        What stands before and behind `a` along the axis: an array with the other axes of `a`, of its dtype.

    Returns
    -------
    ndarray
        Of the dtype of `a`, shorter by `n` along the axis.

    Examples
    --------
    >>> from mxcore import np
    >>> np.diff(np.array([1, 2, 4, 7]))
    array([1., 2., 3.])
    """
    parts = [x for x in (prepend, a, append) if x is not None]
    if len(parts) > 1:
        a = F.call("Concat", *parts, dim=axis, num_args=len(parts))
    return F.call("_npi_diff", a, n=n, axis=axis)


def ediff1d(F: Any, ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Differences of each element and the one before, of the flattened array.

    Parameters
    ----------
    ary : ndarray
    to_end, to_begin : ndarray or number, optional
        What to put behind the differences, and in front; cast to the dtype of `ary`.

    Returns
    -------
    ndarray
        1-D, of the dtype of `ary`.

    Examples
    --------
    >>> from mxcore import np
    >>> np.ediff1d(np.array([1, 2, 4, 7]), to_begin=-99, to_end=np.array([88, 99]))
    array([-99.,   1.,   2.,   3.,  88.,  99.])
    """
    given = {"begin": to_begin, "end": to_end}
    arrays = {end: x for end, x in given.items() if F.is_value(x)}
    return F.call(
        "_npi_ediff1d",
        ary,
        *arrays.values(),
        **{f"to_{end}_arr_given": end in arrays for end in given},
        **{f"to_{end}_scalar": x for end, x in given.items() if end not in arrays},
    )


amax, amin, product, alltrue, sometrue = max, min, prod, all, any
