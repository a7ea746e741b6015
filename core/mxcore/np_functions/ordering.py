"""Sorting, searching and sets of elements."""

from __future__ import annotations

from typing import Any

from .._core.array import Array
from .._core.errors import error
from .options import refuse

__all__ = ["argmax", "argmin", "argsort", "nonzero", "sort", "unique"]


def sort(F: Any, a: Any, axis: int | None = -1, kind: Any = None, order: Any = None) -> Any:
    """The elements in order along an axis; NaNs last.

    Parameters
    ----------
    a : ndarray
    axis : int or None
        None: of the flattened array.
    kind : str, optional
        Has no effect: equal elements always keep their order.
    order : None
        NumPy's option for records, refused.

    Returns
    -------
    ndarray
        Of the dtype of `a`.

    Examples
    --------
    >>> from mxcore import np
    >>> np.sort(np.array([[1, 4], [3, 1]]))
    array([[1., 4.],
           [1., 3.]])
    """
    if order is not None:
        raise refuse("sort", "order", order, None)
    return F.call("sort", a, axis="None" if axis is None else axis, is_ascend=True)


def argsort(F: Any, a: Any, axis: int | None = -1, kind: Any = None, order: Any = None) -> Any:
    """The places that put the elements in order along an axis; NaNs last.

    Parameters
    ----------
    a : ndarray
    axis : int or None
        None: of the flattened array.
    kind : str, optional
        Has no effect: equal elements always keep their order.
    order : None
        NumPy's option for records, refused.

    Returns
    -------
    ndarray
        Of dtype int64.

    Examples
    --------
    >>> from mxcore import np
    >>> np.argsort(np.array([3, 1, 2]))
    array([1, 2, 0], dtype=int64)
    """
    if order is not None:
        raise refuse("argsort", "order", order, None)
    return F.call("argsort", a, axis="None" if axis is None else axis, is_ascend=True, dtype="int64")


def argmax(F: Any, a: Any, axis: int | None = None, out: Any = None, keepdims: bool = False) -> Any:
    """Place of the maximum along an axis; the first of equal ones, or of the NaNs.

    Parameters
    ----------
    a : ndarray
    axis : int, optional
        The place in the flattened array unless told.
    out : ndarray, optional
        Where to write: of the shape of the result, of dtype int64.
    keepdims : bool
        Keep the axis with length 1.

    Returns
    -------
    ndarray
        Of dtype int64.

    Examples
    --------
    >>> from mxcore import np
    >>> np.argmax(np.array([[1, 5, 2], [7, 0, 3]]), axis=1)
    array([1, 0], dtype=int64)
    """
    return F.call("_npi_argmax", a, axis=axis, keepdims=keepdims or None, out=out)


def argmin(F: Any, a: Any, axis: int | None = None, out: Any = None, keepdims: bool = False) -> Any:
    """Place of the minimum along an axis; the first of equal ones, or of the NaNs.

    Parameters
    ----------
    a : ndarray
    axis : int, optional
        The place in the flattened array unless told.
    out : ndarray, optional
        Where to write: of the shape of the result, of dtype int64.
    keepdims : bool
        Keep the axis with length 1.

    Returns
    -------
    ndarray
        Of dtype int64.

    Examples
    --------
    >>> from mxcore import np
    >>> np.argmin(np.array([[1, 5, 2], [7, 0, 3]]), axis=1)
    array([0, 1], dtype=int64)
    """
    return F.call("_npi_argmin", a, axis=axis, keepdims=keepdims or None, out=out)


def unique(
    F: Any,
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
) -> Any:
    """The elements without repetitions, in order.

    Parameters
    ----------
    ar : ndarray
    return_index : bool
        Give the first place of each, too.
    return_inverse : bool
        Give for each element of `ar` which one it is, too: ``values[inverse].reshape(ar.shape)`` is `ar`.
    return_counts : bool
        Give how often each comes, too.
    axis : int, optional
        What lies along the axis is compared; the elements of the flattened array unless told.

    Returns
    -------
    ndarray, or tuple of ndarrays
        The values, of the dtype of `ar`, and what was asked for, 1-D of dtype int64. How many there are is known by
        running only.

    Examples
    --------
    >>> from mxcore import np
    >>> np.unique(np.array([3, 1, 3]), return_counts=True)
    (array([1., 3.]), array([1, 2], dtype=int64))
    """
    asked = {"return_index": return_index, "return_inverse": return_inverse, "return_counts": return_counts}
    found = F.call("_npi_unique", ar, axis=axis, **asked)
    return tuple(found) if isinstance(found, list) else found


def nonzero(F: Any, a: Any) -> Any:
    """Places of the elements that are not zero.

    Parameters
    ----------
    a : ndarray
        No symbol: of one, ``npx.nonzero`` gives the places as rows.

    Returns
    -------
    tuple of ndarray
        For each axis the indices along it, 1-D of dtype int64, as indexing takes them.

    Examples
    --------
    >>> from mxcore import np
    >>> np.nonzero(np.array([[1, 0], [0, 4]]))
    (array([0, 1], dtype=int64), array([0, 1], dtype=int64))
    """
    if F.is_value(a) and not isinstance(a, Array):
        raise error(TypeError, "np.nonzero is for arrays, whose number of axes is known; npx.nonzero takes a symbol")
    rows = F.call("_npx_nonzero", a)
    if rows.shape[1] == 1:
        return (F.call("Reshape", rows, shape=(-1,)),)
    return tuple(F.call("SliceChannel", rows, num_outputs=rows.shape[1], axis=1, squeeze_axis=True))
