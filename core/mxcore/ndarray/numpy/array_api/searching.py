"""Searching, sorting, sets of elements, and indices along an axis."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...._core.errors import error
from ..face import arrays as F
from ..multiarray import ndarray
from .arguments import alike, axes_of, check, common, whole_number

__all__ = [
    "argmax",
    "argmin",
    "argsort",
    "isin",
    "nonzero",
    "searchsorted",
    "sort",
    "take",
    "take_along_axis",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "where",
]


def _place(name: str, x: Any, axis: int | None, keepdims: bool) -> Any:
    check(name, "real numeric", x)
    if axis is None:
        found = getattr(F, name)(F.reshape(x, (-1,)), 0)
        return F.reshape(found, (1,) * x.ndim) if keepdims else found
    (d,) = axes_of(name, x.ndim, whole_number(name, "axis", axis))
    return getattr(F, name)(x, d, keepdims=keepdims)


def argmax(x: ndarray, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """Place of the maximum along an axis; the first of equal ones.

    Parameters
    ----------
    x : ndarray
        The dtype must be real numeric.
    axis : int, optional
        The place in the flattened array unless told.
    keepdims : bool
        Keep reduced axes with length 1.

    Returns
    -------
    ndarray
        Of dtype int64.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.argmax(xp.asarray([[1, 5, 2], [7, 0, 3]]), axis=1)
    array([1, 0], dtype=int64)
    """
    return _place("argmax", x, axis, keepdims)


def argmin(x: ndarray, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """Place of the minimum along an axis; the first of equal ones.

    Parameters
    ----------
    x : ndarray
        The dtype must be real numeric.
    axis : int, optional
        The place in the flattened array unless told.
    keepdims : bool
        Keep reduced axes with length 1.

    Returns
    -------
    ndarray
        Of dtype int64.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.argmin(xp.asarray([[1, 5, 2], [7, 0, 3]]), axis=1)
    array([0, 1], dtype=int64)
    """
    return _place("argmin", x, axis, keepdims)


def nonzero(x: ndarray, /) -> Any:
    """Places of the elements that are not zero.

    Parameters
    ----------
    x : ndarray
        One dimension at least.

    Returns
    -------
    tuple of ndarray
        For each axis the indices along it, 1-D of dtype int64.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.nonzero(xp.asarray([0, 4, 0, 1]))
    (array([1, 3], dtype=int64),)
    """
    check("nonzero", "all", x)
    if not x.ndim:
        raise error(ValueError, "nonzero: an array without dimensions has no places")
    return F.nonzero(x)


def where(condition: ndarray, x1: Any, x2: Any, /) -> Any:
    """Elements of one array where a condition holds, of another one elsewhere.

    Parameters
    ----------
    condition : ndarray
        Of dtype bool.
    x1, x2 : ndarray or number
        All are broadcast together. One of both may be a number, which takes the dtype of the other.

    Returns
    -------
    ndarray
        Of the dtype that theirs are promoted to.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> x = xp.asarray([1.0, -2.0])
    >>> xp.where(x > 0, x, 0.0)
    array([1., 0.])
    """
    check("where", "boolean", condition)
    return F.where(condition, *common("where", *alike("where", "all", x1, x2)))


def searchsorted(x1: ndarray, x2: ndarray, /, *, side: str = "left", sorter: ndarray | None = None) -> Any:
    """Where elements go in an array in order, so that the order stays.

    Parameters
    ----------
    x1 : ndarray
        1-D, in rising order. NaNs are the largest.
    x2 : ndarray or number
        What is to be put there.
    side : {'left', 'right'}
        Before equal elements, or behind them.
    sorter : ndarray of int, optional
        Places that put `x1` in order.

    Returns
    -------
    ndarray
        Of the shape of `x2`, of dtype int64.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.searchsorted(xp.asarray([1.0, 2.0, 3.0]), xp.asarray([2.0, 9.0]))
    array([1, 3], dtype=int64)
    """
    x1, x2 = common("searchsorted", *alike("searchsorted", "real numeric", x1, x2))
    if x1.ndim != 1:
        raise error(ValueError, f"searchsorted: the first array must have one dimension, got shape {x1.shape}")
    if side not in ("left", "right"):
        raise error(ValueError, f"searchsorted: side must be 'left' or 'right', got {side!r}")
    if sorter is not None:
        check("searchsorted", "integer", sorter)
        x1 = F.take(x1, sorter, 0)
    # All are put in order together; equal ones keep theirs, so that what comes first goes before them.
    new, n = F.reshape(x2, (-1,)), x1.shape[0]
    parts = [new, x1] if side == "left" else [x1, new]
    rank = _inverse(_order(F.concatenate(parts, 0)))
    at = rank[: new.shape[0]] if side == "left" else rank[n:]
    return F.reshape(at - _inverse(_order(new)), x2.shape)


def _order(x: Any) -> Any:
    """Places that put the elements of one dimension in order, outside of any graph."""
    return F.argsort(x.detach())


def _inverse(order: Any) -> Any:
    return F.argsort(order)


def _sorted(name: str, op: Any, x: Any, axis: int, descending: bool, **options: Any) -> Any:
    check(name, "real numeric", x)
    (d,) = axes_of(name, x.ndim, whole_number(name, "axis", axis))
    return F.call(op, x, axis=d, is_ascend=not descending, **options)


def argsort(x: ndarray, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """The places that put the elements in order along an axis.

    Parameters
    ----------
    x : ndarray
        One dimension at least; the dtype must be real numeric.
    axis : int
    descending : bool
        The largest first.
    stable : bool
        Has no effect: equal elements always keep their order.

    Returns
    -------
    ndarray
        Of dtype int64.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.argsort(xp.asarray([3.0, 1.0, 2.0]), descending=True)
    array([0, 2, 1], dtype=int64)
    """
    return _sorted("argsort", "argsort", x, axis, descending, dtype="int64")


def sort(x: ndarray, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """The elements in order along an axis.

    Parameters
    ----------
    x : ndarray
        One dimension at least; the dtype must be real numeric.
    axis : int
    descending : bool
        The largest first.
    stable : bool
        Has no effect: equal elements always keep their order.

    Returns
    -------
    ndarray
        Of the dtype of `x`.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.sort(xp.asarray([3.0, 1.0, 2.0]))
    array([1., 2., 3.])
    """
    return _sorted("sort", "sort", x, axis, descending)


class UniqueAll(NamedTuple):
    """What `unique_all` gives."""

    values: ndarray
    indices: ndarray
    inverse_indices: ndarray
    counts: ndarray


class UniqueCounts(NamedTuple):
    """What `unique_counts` gives."""

    values: ndarray
    counts: ndarray


class UniqueInverse(NamedTuple):
    """What `unique_inverse` gives."""

    values: ndarray
    inverse_indices: ndarray


def unique_all(x: ndarray, /) -> UniqueAll:
    """The elements without repetitions, in order, where each comes first, which each element is, how often each comes.

    Parameters
    ----------
    x : ndarray
        Any shape.

    Returns
    -------
    (values, indices, inverse_indices, counts) : tuple of ndarray
        All 1-D but for the third, which has the shape of `x`. A NaN is equal to no other one.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> found = xp.unique_all(xp.asarray([3, 1, 3]))
    >>> found.values, found.counts
    (array([1, 3], dtype=int64), array([1, 2], dtype=int64))
    """
    check("unique_all", "all", x)
    flat = F.reshape(x, (-1,))
    order = _order(flat)
    ranked = F.take(flat, order, 0)
    n = ranked.shape[0]
    new = F.concatenate([F.ones((1 if n else 0,), dtype="bool", ctx=x.ctx), ranked[1:] != ranked[:-1]], 0)
    first = F.nonzero(new)[0]
    inverse = F.take(F.cumsum(new, dtype="int64") - 1, _inverse(order), 0)
    last = F.full((1,), n, dtype="int64", ctx=x.ctx)
    counts = F.diff(F.concatenate([first, last], 0))
    return UniqueAll(F.take(ranked, first, 0), F.take(order, first, 0), F.reshape(inverse, x.shape), counts)


def unique_counts(x: ndarray, /) -> UniqueCounts:
    """The elements without repetitions, in order, and how often each comes.

    Parameters
    ----------
    x : ndarray
        Any shape.

    Returns
    -------
    (values, counts) : tuple of ndarray
        1-D. A NaN is equal to no other one.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.unique_counts(xp.asarray([3, 1, 3])).counts
    array([1, 2], dtype=int64)
    """
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: ndarray, /) -> UniqueInverse:
    """The elements without repetitions, in order, and which of them each element is.

    Parameters
    ----------
    x : ndarray
        Any shape.

    Returns
    -------
    (values, inverse_indices) : tuple of ndarray
        The second has the shape of `x`. A NaN is equal to no other one.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.unique_inverse(xp.asarray([3, 1, 3])).inverse_indices
    array([1, 0, 1], dtype=int64)
    """
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: ndarray, /) -> Any:
    """The elements without repetitions, in order.

    Parameters
    ----------
    x : ndarray
        Any shape.

    Returns
    -------
    ndarray
        1-D. A NaN is equal to no other one.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.unique_values(xp.asarray([3, 1, 3]))
    array([1, 3], dtype=int64)
    """
    return unique_all(x).values


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Any:
    """Whether each element is among others.

    Parameters
    ----------
    x1 : ndarray or int
    x2 : ndarray or int
        The others.
    invert : bool
        Whether each is not.

    Returns
    -------
    ndarray
        Of the shape of `x1`, of dtype bool.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.isin(xp.asarray([1, 2, 3]), xp.asarray([3, 1]))
    array([ True, False,  True])
    """
    x1, x2 = common("isin", *alike("isin", "all", x1, x2))
    others = F.sort(F.reshape(x2, (-1,)).detach())
    if not others.shape[0]:
        found = F.zeros(x1.shape, dtype="bool", ctx=x1.ctx)
    else:
        if x1.dtype == bool:
            x1, others = x1.astype("uint8"), others.astype("uint8")
        at = F.minimum(searchsorted(others, x1), others.shape[0] - 1)
        found = F.take(others, at, 0) == x1
    return F.logical_not(found) if invert else found


def take(x: ndarray, indices: ndarray, /, *, axis: int | None = None) -> Any:
    """Parts of an array along an axis.

    Parameters
    ----------
    x : ndarray
    indices : ndarray of int
        1-D.
    axis : int, optional
        May be left out where there is one only.

    Returns
    -------
    ndarray

    Raises
    ------
    MXNetError
        (also IndexError) for an index that is out of range.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.take(xp.asarray([1.0, 2.0, 3.0]), xp.asarray([2, 0]))
    array([3., 1.])
    """
    check("take", "all", x)
    check("take", "integer", indices)
    if axis is None:
        if x.ndim != 1:
            raise error(ValueError, f"take: axis must be told for {x.ndim} dimensions")
        axis = 0
    if indices.ndim > 1:
        raise error(ValueError, f"take: indices must have one dimension, got shape {indices.shape}")
    (d,) = axes_of("take", x.ndim, whole_number("take", "axis", axis))
    return x[(slice(None),) * d + (indices,)]


def take_along_axis(x: ndarray, indices: ndarray, /, *, axis: int = -1) -> Any:
    """One element along an axis for each index.

    Parameters
    ----------
    x : ndarray
    indices : ndarray of int
        Of as many dimensions as `x`; the others than the axis are broadcast.
    axis : int

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.take_along_axis(xp.asarray([[3.0, 1.0], [2.0, 4.0]]), xp.asarray([[1], [0]]))
    array([[1.],
           [2.]])
    """
    check("take_along_axis", "all", x)
    check("take_along_axis", "integer", indices)
    (d,) = axes_of("take_along_axis", x.ndim, whole_number("take_along_axis", "axis", axis))
    if indices.ndim != x.ndim:
        raise error(
            ValueError,
            f"take_along_axis: indices of shape {indices.shape} must have the {x.ndim} dimensions of the array",
        )
    # Dimensions of length 1 are repeated beside the indices.
    shape = tuple(n if i == d or n != 1 else indices.shape[i] for i, n in enumerate(x.shape))
    return F.take_along_axis(x if shape == x.shape else F.broadcast_to(x, shape), indices, d)
