"""Means, variances, quantiles, histograms and counts."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from .._core.array import Array
from .._core.errors import error
from .options import refuse, whole

__all__ = ["average", "bincount", "histogram", "mean", "median", "percentile", "quantile", "std", "var"]


def mean(
    F: Any, a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, where: Any = True
) -> Any:
    """Mean over axes.

    Parameters
    ----------
    a : ndarray
    axis : int or tuple of int, optional
        All axes unless told.
    dtype : dtype, optional
        Of the result, and to compute in.
    out : ndarray, optional
        Where to write: of the shape and dtype of the result.
    keepdims : bool
        Keep reduced axes with length 1.
    where : True
        NumPy's option, refused.

    Returns
    -------
    ndarray
        Unless told of the dtype of `a`, float32 of whole numbers; NaN of nothing.

    Examples
    --------
    >>> from mxcore import np
    >>> np.mean(np.array([[1, 2], [3, 4]]), axis=0)
    array([2., 3.])
    """
    whole("mean", where)
    return F.call("_npi_mean", a, axis=axis, dtype=dtype, keepdims=keepdims or None, out=out)


def std(
    F: Any,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: Any = True,
) -> Any:
    """Standard deviation over axes.

    Parameters
    ----------
    a : ndarray
    axis : int or tuple of int, optional
        All axes unless told.
    dtype : dtype, optional
        Of the result, and to compute in.
    out : ndarray, optional
        Where to write: of the shape and dtype of the result.
    ddof : int
        The sum of squares is divided by the number of elements less this one.
    keepdims : bool
        Keep reduced axes with length 1.
    where : True
        NumPy's option, refused.

    Returns
    -------
    ndarray
        Unless told of the dtype of `a`, float32 of whole numbers. Where all elements are equal, the gradient is zero.

    Examples
    --------
    >>> from mxcore import np
    >>> np.std(np.array([1, 3, 1, 3]))
    array(1.)
    """
    whole("std", where)
    return F.call("_npi_std", a, axis=axis, dtype=dtype, ddof=ddof or None, keepdims=keepdims or None, out=out)


def var(
    F: Any,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: Any = True,
) -> Any:
    """Variance over axes.

    Parameters
    ----------
    a : ndarray
    axis : int or tuple of int, optional
        All axes unless told.
    dtype : dtype, optional
        Of the result, and to compute in.
    out : ndarray, optional
        Where to write: of the shape and dtype of the result.
    ddof : int
        The sum of squares is divided by the number of elements less this one.
    keepdims : bool
        Keep reduced axes with length 1.
    where : True
        NumPy's option, refused.

    Returns
    -------
    ndarray
        Unless told of the dtype of `a`, float32 of whole numbers.

    Examples
    --------
    >>> from mxcore import np
    >>> np.var(np.array([1, 5, 1, 5]))
    array(4.)
    """
    whole("var", where)
    return F.call("_npi_var", a, axis=axis, dtype=dtype, ddof=ddof or None, keepdims=keepdims or None, out=out)


def average(F: Any, a: Any, axis: Any = None, weights: Any = None, returned: bool = False, out: Any = None) -> Any:
    """Weighted mean over axes.

    Parameters
    ----------
    a : ndarray
    axis : int or tuple of int, optional
        All axes unless told.
    weights : ndarray, optional
        Of the shape of `a`, or 1-D along `axis`; 1 for all unless told.
    returned : bool
        Give the sum of the weights, too.
    out : ndarray, optional
        Where to write the mean: of its shape and dtype.

    Returns
    -------
    ndarray, or tuple of two
        The mean, and with `returned` the sums of weights, in its shape; of the wider dtype of `a` and `weights`,
        float32 of whole numbers. NaN or infinite where weights add up to zero.

    Examples
    --------
    >>> from mxcore import np
    >>> np.average(np.array([[1, 2], [3, 4]]), axis=1, weights=np.array([3, 1]))
    array([1.25, 3.25])
    """
    given = () if weights is None else (weights,)
    found = F.call("_npi_average", a, *given, axis=axis, returned=returned, weighted=weights is not None, out=out)
    return tuple(found) if returned else found


def percentile(
    F: Any,
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: Any = None,
    interpolation: str = "linear",
    keepdims: bool = False,
    method: str | None = None,
) -> Any:
    """Percentiles over axes.

    Parameters
    ----------
    a : ndarray
    q : number, ndarray, or list of numbers
        From 0 to 100.
    axis : int or tuple of int, optional
        All axes unless told.
    out : ndarray, optional
        Where to write: of the shape and dtype of the result.
    overwrite_input : bool, optional
        Has no effect: `a` stays as it is.
    interpolation : {'linear', 'lower', 'higher', 'nearest', 'midpoint'}
        What counts between two elements.
    keepdims : bool
        Keep reduced axes with length 1.
    method : str, optional
        NumPy's newer name of `interpolation`.

    Returns
    -------
    ndarray
        In front of the axes that are left stand those of `q`; float64 of float64, float32 of all else. NaN where one
        is.

    Examples
    --------
    >>> from mxcore import np
    >>> np.percentile(np.array([10, 7, 4, 3, 2, 1]), 50)
    array(3.5)
    >>> np.percentile(np.array([[10, 7, 4], [3, 2, 1]]), [0, 50], axis=1)
    array([[4., 1.],
           [7., 2.]])
    """
    how = {"axis": axis, "interpolation": method or interpolation, "keepdims": keepdims, "out": out}
    if isinstance(q, numbers.Real):
        return F.call("_npi_percentile", a, q_scalar=float(q), **how)
    return F.call("_npi_percentile", a, q if F.is_value(q) else F.array(q, dtype="float64", ctx=a.ctx), **how)


def quantile(
    F: Any,
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: Any = None,
    interpolation: str = "linear",
    keepdims: bool = False,
    method: str | None = None,
) -> Any:
    """Quantiles over axes: percentiles that are counted from 0 to 1.

    Parameters
    ----------
    a : ndarray
    q : number, ndarray, or list of numbers
        From 0 to 1.
    axis : int or tuple of int, optional
        All axes unless told.
    out : ndarray, optional
        Where to write: of the shape and dtype of the result.
    overwrite_input : bool, optional
        Has no effect: `a` stays as it is.
    interpolation : {'linear', 'lower', 'higher', 'nearest', 'midpoint'}
        What counts between two elements.
    keepdims : bool
        Keep reduced axes with length 1.
    method : str, optional
        NumPy's newer name of `interpolation`.

    Returns
    -------
    ndarray
        As `percentile` gives it.

    Examples
    --------
    >>> from mxcore import np
    >>> np.quantile(np.array([[10, 7, 4], [3, 2, 1]]), 0.5, axis=0)
    array([6.5, 4.5, 2.5])
    """
    percent = q * 100 if F.is_value(q) or isinstance(q, numbers.Real) else np.multiply(q, 100)
    return F.percentile(a, percent, axis, out, overwrite_input, interpolation, keepdims, method)


def median(
    F: Any, a: Any, axis: Any = None, out: Any = None, overwrite_input: Any = None, keepdims: bool = False
) -> Any:
    """Median over axes: half of the elements are not greater.

    Parameters
    ----------
    a : ndarray
    axis : int or tuple of int, optional
        All axes unless told.
    out : ndarray, optional
        Where to write: of the shape and dtype of the result.
    overwrite_input : bool, optional
        Has no effect: `a` stays as it is.
    keepdims : bool
        Keep reduced axes with length 1.

    Returns
    -------
    ndarray
        As `percentile` gives it.

    Examples
    --------
    >>> from mxcore import np
    >>> np.median(np.array([10, 7, 4, 1]))
    array(5.5)
    """
    return F.percentile(a, 50, axis, out, overwrite_input, keepdims=keepdims)


def bincount(F: Any, x: Any, weights: Any = None, minlength: int = 0) -> Any:
    """How often each number from 0 on occurs.

    Parameters
    ----------
    x : ndarray, 1-D, of whole numbers from 0 on
    weights : ndarray, optional
        As many: their sums instead of counts. They get gradients.
    minlength : int
        The least length of the result.

    Returns
    -------
    ndarray
        1-D; int32 of int32 and else int64, or of the dtype of `weights`. Its length is known by running only.

    Examples
    --------
    >>> from mxcore import np
    >>> np.bincount(np.array([0, 1, 1, 3], dtype="int64"))
    array([1, 2, 0, 1], dtype=int64)
    """
    given = () if weights is None else (weights,)
    return F.call("_npi_bincount", x, *given, minlength=minlength, has_weights=weights is not None)


def histogram(
    F: Any, a: Any, bins: Any = 10, range: Any = None, normed: Any = None, weights: Any = None, density: Any = None
) -> Any:
    """Counts of the elements in bins, and the edges of these.

    Parameters
    ----------
    a : ndarray
    bins : int, ndarray, or list of numbers
        How many bins of one width, or their edges; where their dtype is another one, both are made NumPy's common one.
    range : (number, number), optional
        First and last edge of bins of one width; the least and the greatest element unless told (not of a symbol).
    normed, weights, density
        NumPy's options, refused.

    Returns
    -------
    tuple of two ndarrays
        Counts as int64, and edges in the dtype of `a`.

    Examples
    --------
    >>> from mxcore import np
    >>> np.histogram(np.array([1, 2, 1, 4]), bins=3, range=(0, 6))
    (array([2, 1, 1], dtype=int64), array([0., 2., 4., 6.]))
    """
    for name, value in (("normed", normed), ("weights", weights), ("density", density)):
        if value is not None and value is not False:
            raise refuse("histogram", name, value, None)
    if isinstance(bins, str):
        raise refuse("histogram", "bins", bins, 10)
    if isinstance(bins, numbers.Integral):
        return tuple(F.call("_histogram", a, bin_cnt=int(bins), range=_ends(F, a) if range is None else range))
    if not F.is_value(bins):
        bins = F.array(np.asarray(bins), ctx=a.ctx)
    if _computed(a) and a.dtype != bins.dtype:
        common = np.result_type(a.dtype, bins.dtype)
        a, bins = (F.call("Cast", x, dtype=common) for x in (a, bins))
    return tuple(F.call("_histogram", a, bins))


def _computed(a: Any) -> bool:
    """Whether it is an array, not a symbol."""
    return isinstance(a, Array)


def _ends(F: Any, a: Any) -> tuple[float, float]:
    """The least and the greatest element."""
    if not _computed(a):
        raise error(ValueError, "np.histogram of a symbol needs the range of its bins: range=(first, last)")
    if not a.size:
        return 0.0, 1.0
    return float(F.min(a).asnumpy()), float(F.max(a).asnumpy())
