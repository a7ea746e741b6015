"""Sums, means, extremes and truth over axes; running sums and differences."""

from __future__ import annotations

import math
from typing import Any

from ...._core.errors import error
from ..face import arrays as F
from ..multiarray import ndarray
from .arguments import Axis, axes_of, check, common, summed, whole_number

__all__ = [
    "all",
    "any",
    "count_nonzero",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
]


def _over(name: str, category: str, x: Any, axis: Any, keepdims: bool, **options: Any) -> Any:
    """A reduction of ``mx.np`` over axes."""
    check(name, category, x)
    axes = axes_of(name, x.ndim, axis)
    return getattr(F, name)(x, axis=axes, keepdims=keepdims, **options)


def all(x: ndarray, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """Whether all elements are true over axes; anything but zero is.

    Parameters
    ----------
    x : ndarray
    axis : int or tuple of int, optional
        All axes unless told.
    keepdims : bool
        Keep reduced axes with length 1.

    Returns
    -------
    ndarray
        Of dtype bool; True of nothing.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.all(xp.asarray([[1, 0], [3, 4]]), axis=1)
    array([False,  True])
    """
    return _over("all", "all", x, axis, keepdims)


def any(x: ndarray, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """Whether any element is true over axes; anything but zero is.

    Parameters
    ----------
    x : ndarray
    axis : int or tuple of int, optional
        All axes unless told.
    keepdims : bool
        Keep reduced axes with length 1.

    Returns
    -------
    ndarray
        Of dtype bool; False of nothing.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.any(xp.asarray([[1, 0], [0, 0]]), axis=1)
    array([ True, False])
    """
    return _over("any", "all", x, axis, keepdims)


def count_nonzero(x: ndarray, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """How many elements are not zero over axes.

    Parameters
    ----------
    x : ndarray
    axis : int or tuple of int, optional
        All axes unless told.
    keepdims : bool
        Keep reduced axes with length 1.

    Returns
    -------
    ndarray
        Of dtype int64.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.count_nonzero(xp.asarray([[1, 0], [3, 4]]), axis=1)
    array([1, 2], dtype=int64)
    """
    check("count_nonzero", "all", x)
    axes = axes_of("count_nonzero", x.ndim, axis)
    return F.sum(x != 0, axis=axes, dtype="int64", keepdims=keepdims)


def max(x: ndarray, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """Maximum over axes; NaN where one is.

    Parameters
    ----------
    x : ndarray
        The dtype must be real numeric.
    axis : int or tuple of int, optional
        All axes unless told.
    keepdims : bool
        Keep reduced axes with length 1.

    Returns
    -------
    ndarray
        Of the dtype of `x`.

    Raises
    ------
    MXNetError
        (also ValueError) of nothing.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.max(xp.asarray([[1.0, 5.0], [3.0, 4.0]]), axis=1)
    array([5., 4.])
    """
    return _over("max", "real numeric", x, axis, keepdims)


def min(x: ndarray, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """Minimum over axes; NaN where one is.

    Parameters
    ----------
    x : ndarray
        The dtype must be real numeric.
    axis : int or tuple of int, optional
        All axes unless told.
    keepdims : bool
        Keep reduced axes with length 1.

    Returns
    -------
    ndarray
        Of the dtype of `x`.

    Raises
    ------
    MXNetError
        (also ValueError) of nothing.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.min(xp.asarray([[1.0, 5.0], [3.0, 4.0]]), axis=1)
    array([1., 3.])
    """
    return _over("min", "real numeric", x, axis, keepdims)


def mean(x: ndarray, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """Mean over axes.

    Parameters
    ----------
    x : ndarray
        The dtype must be floating-point.
    axis : int or tuple of int, optional
        All axes unless told.
    keepdims : bool
        Keep reduced axes with length 1.

    Returns
    -------
    ndarray
        Of the dtype of `x`; NaN of nothing.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.mean(xp.asarray([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    array([2., 3.])
    """
    return _over("mean", "floating-point", x, axis, keepdims)


def _summed(name: str, x: Any, axis: Any, dtype: Any, keepdims: bool) -> Any:
    check(name, "numeric", x)
    return _over(name, "numeric", x, axis, keepdims, dtype=summed(name, x, dtype))


def sum(x: ndarray, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Sum over axes.

    Parameters
    ----------
    x : ndarray
        The dtype must be numeric.
    axis : int or tuple of int, optional
        All axes unless told.
    dtype : dtype, optional
        Of the result, and to add up in: that of `x` for floats, else int64 or uint64.
    keepdims : bool
        Keep reduced axes with length 1.

    Returns
    -------
    ndarray
        0 of nothing.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.sum(xp.asarray([[1, 2], [3, 4]], dtype=xp.int8), axis=0)
    array([4, 6], dtype=int64)
    """
    return _summed("sum", x, axis, dtype, keepdims)


def prod(x: ndarray, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Product over axes.

    Parameters
    ----------
    x : ndarray
        The dtype must be numeric.
    axis : int or tuple of int, optional
        All axes unless told.
    dtype : dtype, optional
        Of the result, and to multiply in: that of `x` for floats, else int64 or uint64.
    keepdims : bool
        Keep reduced axes with length 1.

    Returns
    -------
    ndarray
        1 of nothing.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.prod(xp.asarray([2.0, 3.0, 4.0]))
    array(24.)
    """
    return _summed("prod", x, axis, dtype, keepdims)


def var(x: ndarray, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """Variance over axes.

    Parameters
    ----------
    x : ndarray
        The dtype must be real floating-point.
    axis : int or tuple of int, optional
        All axes unless told.
    correction : int or float
        The sum of squares is divided by the number of elements less this one.
    keepdims : bool
        Keep reduced axes with length 1.

    Returns
    -------
    ndarray
        Of the dtype of `x`.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.var(xp.asarray([1.0, 5.0, 1.0, 5.0]))
    array(4.)
    """
    check("var", "real floating-point", x)
    if correction == int(correction):
        return _over("var", "real floating-point", x, axis, keepdims, ddof=int(correction))
    n = math.prod(x.shape[d] for d in axes_of("var", x.ndim, axis))
    return _over("var", "real floating-point", x, axis, keepdims) * (n / (n - correction))


def std(x: ndarray, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """Standard deviation over axes: the root of the variance.

    Parameters
    ----------
    x : ndarray
        The dtype must be real floating-point.
    axis : int or tuple of int, optional
        All axes unless told.
    correction : int or float
        The sum of squares is divided by the number of elements less this one.
    keepdims : bool
        Keep reduced axes with length 1.

    Returns
    -------
    ndarray
        Of the dtype of `x`.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.std(xp.asarray([1.0, 5.0, 1.0, 5.0]))
    array(2.)
    """
    check("std", "real floating-point", x)
    if correction == int(correction):
        return _over("std", "real floating-point", x, axis, keepdims, ddof=int(correction))
    n = math.prod(x.shape[d] for d in axes_of("std", x.ndim, axis))
    return _over("std", "real floating-point", x, axis, keepdims) * math.sqrt(n / (n - correction))


def _running(name: str, x: Any, axis: int | None, dtype: Any, initial: bool) -> Any:
    check(f"cumulative_{name}", "numeric", x)
    if not x.ndim:
        raise error(ValueError, f"cumulative_{name}: an array without dimensions has no axis to run along")
    if axis is None:
        if x.ndim > 1:
            raise error(ValueError, f"cumulative_{name}: axis must be told for {x.ndim} dimensions")
        axis = 0
    (d,) = axes_of(f"cumulative_{name}", x.ndim, whole_number(f"cumulative_{name}", "axis", axis))
    wanted = summed(f"cumulative_{name}", x, dtype)
    x = x.astype(wanted, copy=False)
    if initial:
        shape = tuple(1 if i == d else n for i, n in enumerate(x.shape))
        first = F.full(shape, 0 if name == "sum" else 1, dtype=wanted, ctx=x.ctx)
        x = F.concatenate([first, x], d)
    return F.cumsum(x, d) if name == "sum" else _products(x, d)


def _products(x: Any, d: int) -> Any:
    """Products up to each element, of twice as many elements in each round; zeros keep their gradients."""
    step, n = 1, x.shape[d]
    x = x if n > 1 else F.copy(x)
    while step < n:
        shape = tuple(step if i == d else m for i, m in enumerate(x.shape))
        ones = F.ones(shape, dtype=x.dtype, ctx=x.ctx)
        x = x * F.concatenate([ones, x[(slice(None),) * d + (slice(None, -step),)]], d)
        step *= 2
    return x


def cumulative_sum(x: ndarray, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """Sums of the elements up to each one, along an axis.

    Parameters
    ----------
    x : ndarray
        One dimension at least; the dtype must be numeric.
    axis : int, optional
        May be left out where there is one only.
    dtype : dtype, optional
        Of the result, and to add up in: that of `x` for floats, else int64 or uint64.
    include_initial : bool
        Put a 0 in front.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.cumulative_sum(xp.asarray([1, 2, 3]), include_initial=True)
    array([0, 1, 3, 6], dtype=int64)
    """
    return _running("sum", x, axis, dtype, include_initial)


def cumulative_prod(x: ndarray, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """Products of the elements up to each one, along an axis.

    Parameters
    ----------
    x : ndarray
        One dimension at least; the dtype must be numeric.
    axis : int, optional
        May be left out where there is one only.
    dtype : dtype, optional
        Of the result, and to multiply in: that of `x` for floats, else int64 or uint64.
    include_initial : bool
        Put a 1 in front.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.cumulative_prod(xp.asarray([1, 2, 3]))
    array([1, 2, 6], dtype=int64)
    """
    return _running("prod", x, axis, dtype, include_initial)


def diff(
    x: ndarray, /, *, axis: int = -1, n: int = 1, prepend: ndarray | None = None, append: ndarray | None = None
) -> Any:
    """Differences of each element and the one before, along an axis.

    Parameters
    ----------
    x : ndarray
        One dimension at least; the dtype must be numeric.
    axis : int
    n : int
        How often.
    prepend, append : ndarray, optional
        What stands before and behind `x` along the axis, of its dtype.

    Returns
    -------
    ndarray
        Of the dtype of `x`.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.diff(xp.asarray([1, 2, 4, 7]))
    array([1, 2, 3], dtype=int64)
    """
    check("diff", "numeric", *(v for v in (prepend, x, append) if v is not None))
    (d,) = axes_of("diff", x.ndim, whole_number("diff", "axis", axis))
    if n < 0:
        raise error(ValueError, f"diff: n must not be below 0, got {n}")
    parts = common("diff", *(v for v in (prepend, x, append) if v is not None))
    found = F.concatenate(parts, d) if len(parts) > 1 else parts[0]
    before, behind = ((slice(None),) * d + (s,) for s in (slice(None, -1), slice(1, None)))
    for _ in range(n):
        found = found[behind] - found[before]
    return found if n else F.copy(found)
