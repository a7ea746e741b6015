"""Functions that pick elements by index or condition, and tell indices."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from .._core.errors import error
from .arguments import in_order, lengths, only_arrays

__all__ = [
    "choose",
    "compress",
    "extract",
    "ix_",
    "may_share_memory",
    "select",
    "shares_memory",
    "take",
    "take_along_axis",
    "unravel_index",
    "where",
]

_MODES = ("raise", "clip", "wrap")


def _mode(name: str, mode: Any) -> None:
    if mode not in _MODES:
        raise error(ValueError, f"np.{name}: mode must be one of {', '.join(_MODES)}, got {mode!r}")


def _indices(F: Any, name: str, indices: Any, ctx: Any) -> Any:
    """Indices as an array of the face."""
    if F.is_value(indices):
        return indices
    host = np.asarray(indices)
    if not host.size:
        host = host.astype(np.int64)
    if host.dtype.kind not in "iub":
        raise error(TypeError, f"np.{name}: indices must be whole numbers, got {indices!r}")
    return F.from_host(host.astype(np.int64, copy=False), ctx)


def take(F: Any, a: Any, indices: Any, axis: Any = None, mode: Any = "raise", out: Any = None) -> Any:
    """Elements along an axis.

    Parameters
    ----------
    a : ndarray
    indices : ndarray or sequence of int
        Of any shape, which takes the place of the axis; floats are cut to whole numbers.
    axis : int, optional
        The flattened array unless told.
    mode : {'raise', 'clip', 'wrap'}, optional
        What becomes of an index out of range: an error (those below 0 count from the end), the nearest valid one, or
        the index modulo the length.
    out : ndarray, optional
        Where to write.

    Returns
    -------
    ndarray

    Raises
    ------
    MXNetError
        (also IndexError) for an index out of range.

    Examples
    --------
    >>> from mxcore import np
    >>> np.take(np.array([3, 4, 5]), np.array([0, 2]))
    array([3., 5.])
    """
    _mode("take", mode)
    if not F.eager:
        a, axis = (F.ravel(a), 0) if axis is None else (a, axis)
        return F.call("take", a, indices, axis=axis, mode=mode, out=out)
    indices = _indices(F, "take", indices, a.ctx)
    if axis is None:
        a, axis = (a if a.ndim == 1 else F.ravel(a)), 0
    if mode != "raise":
        return F.call("take", a, indices, axis=axis, mode=mode, out=out)
    if not -a.ndim <= axis < a.ndim:
        raise error(ValueError, f"np.take: axis {axis} is out of range for an array of shape {a.shape}")
    pattern = (("s", None, None, None),) * (axis % a.ndim) + (("a", 0),)
    return F.call("_advanced_index", a, indices, index=pattern, num_args=1, out=out)


def take_along_axis(F: Any, arr: Any, indices: Any, axis: Any) -> Any:
    """One element along an axis for each index.

    Parameters
    ----------
    arr : ndarray
    indices : ndarray of int
        Of as many dimensions as `arr`; the others than the axis are broadcast.
    axis : int or None
        None takes from the flattened array.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> x = np.array([[3, 1], [2, 4]])
    >>> np.take_along_axis(x, np.array([[1], [0]], dtype="int64"), 1)
    array([[1.],
           [2.]])
    """
    only_arrays(F, "take_along_axis", arr, indices)
    indices = _indices(F, "take_along_axis", indices, arr.ctx)
    if axis is None:
        arr, axis = F.ravel(arr), 0
    if indices.ndim != arr.ndim or not -arr.ndim <= axis < arr.ndim:
        raise error(
            ValueError,
            f"np.take_along_axis: indices of shape {indices.shape} and axis {axis} do not fit an array of shape "
            f"{arr.shape}",
        )
    axis %= arr.ndim
    n = arr.ndim
    grid = [
        indices
        if i == axis
        else F.reshape(F.arange(d, dtype="int64", ctx=arr.ctx), tuple(d if i == j else 1 for j in range(n)))
        for i, d in enumerate(arr.shape)
    ]
    return F.call("_advanced_index", arr, *grid, index=tuple(("a", i) for i in range(n)), num_args=n)


def where(F: Any, condition: Any, x: Any = None, y: Any = None) -> Any:
    """Elements of one array where a condition holds, of another one elsewhere.

    Parameters
    ----------
    condition : ndarray or bool
        True, or not zero.
    x, y : ndarray or number, optional
        All are broadcast together. A number is cast to the dtype of the array; two numbers give float32. Without both,
        the indices are given where the condition holds, as `nonzero` does.

    Returns
    -------
    ndarray or tuple of ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> x = np.array([1, -2, 3])
    >>> np.where(x > 0, x, 0)
    array([1., 0., 3.])
    """
    if x is None and y is None:
        return F.nonzero(condition)
    if x is None or y is None:
        raise error(ValueError, "np.where takes either both x and y or none of them")
    arrays = [F.is_value(v) for v in (x, y)]
    for name, v, is_array in zip("xy", (x, y), arrays):
        if not is_array and not isinstance(v, (numbers.Real, np.bool_)):
            raise error(
                TypeError,
                f"np.where: {name} must be an array of mx.np or a number, got {type(v).__name__}; np.array makes one",
            )
    if not F.is_value(condition):
        if not isinstance(condition, (numbers.Number, np.bool_)):
            condition = F.array(condition)
        elif all(arrays) or not any(arrays):
            condition = F.array(condition, dtype=np.bool_)
        else:
            condition = F.array(condition, dtype=np.bool_, ctx=(x if arrays[0] else y).ctx)
    if all(arrays):
        return F.call("_npi_where", condition, x, y)
    if arrays[0]:
        return F.call("_npi_where_rscalar", condition, x, scalar=float(y))
    if arrays[1]:
        return F.call("_npi_where_lscalar", condition, y, scalar=float(x))
    return F.call("_npi_where_scalar2", condition, x=float(x), y=float(y))


def choose(F: Any, a: Any, choices: Any, out: Any = None, mode: Any = "raise") -> Any:
    """For each place, the element of the array of that number.

    Parameters
    ----------
    a : ndarray of int
        Which of `choices`.
    choices : sequence of ndarray, or ndarray
        All are broadcast together, and with `a`.
    out : ndarray, optional
        Where to write.
    mode : {'raise', 'clip', 'wrap'}, optional
        What becomes of numbers out of range.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.choose(np.array([0, 1], dtype="int64"), [np.array([1, 2]), np.array([3, 4])])
    array([1., 4.])
    """
    _mode("choose", mode)
    only_arrays(F, "choose", a)
    a, *choices = F.broadcast_arrays(a, *[c if F.is_value(c) else F.array(c) for c in choices])
    n = len(choices)
    if not n:
        raise error(ValueError, "np.choose needs one choice or more")
    number = a.asnumpy().astype(np.int64)
    if mode == "raise" and number.size and not (number.min() >= 0 and number.max() < n):
        raise error(ValueError, f"np.choose: a holds a number out of range; there are {n} choices")
    number = number.clip(0, n - 1) if mode == "clip" else number % n if mode == "wrap" else number
    found = take_along_axis(F, F.stack(choices), F.from_host(number[None], a.ctx), 0)[0]
    return found if out is None else F.copy(found, out=out)


def compress(F: Any, condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    """The places along an axis where a condition holds.

    Parameters
    ----------
    condition : ndarray or sequence of bool
        A vector, which may be shorter than the axis.
    a : ndarray
    axis : int, optional
        The flattened array unless told.
    out : ndarray, optional
        Where to write.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.compress([True, False, True], np.array([1, 2, 3]))
    array([1., 3.])
    """
    only_arrays(F, "compress", condition, a)
    host = condition.asnumpy() if F.is_value(condition) else np.asarray(condition)
    if host.ndim != 1:
        raise error(ValueError, f"np.compress: the condition must be a vector, got the shape {host.shape}")
    return take(F, a, F.from_host(np.flatnonzero(host), a.ctx), axis, out=out)


def extract(F: Any, condition: Any, arr: Any) -> Any:
    """The elements where a condition holds.

    Parameters
    ----------
    condition : ndarray
        Of as many elements as `arr`.
    arr : ndarray

    Returns
    -------
    ndarray
        A vector.

    Examples
    --------
    >>> from mxcore import np
    >>> x = np.array([[1, 2], [3, 4]])
    >>> np.extract(x > 2, x)
    array([3., 4.])
    """
    only_arrays(F, "extract", condition, arr)
    host = condition.asnumpy() if F.is_value(condition) else np.asarray(condition)
    return take(F, arr, F.from_host(np.flatnonzero(host), arr.ctx))


def select(F: Any, condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """For each place, the element of the array whose condition is the first that holds.

    Parameters
    ----------
    condlist : list of ndarray
    choicelist : list of ndarray
        As many.
    default : number or ndarray, optional
        Where no condition holds.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> x = np.array([1, 2, 3])
    >>> np.select([x < 2, x > 2], [x, x * 10])
    array([ 1.,  0., 30.])
    """
    if len(condlist) != len(choicelist) or not condlist:
        raise error(
            ValueError,
            f"np.select: there must be one choice for each condition, got {len(condlist)} and {len(choicelist)}",
        )
    found = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist)):
        found = where(F, condition, choice, found)
    return found


def ix_(F: Any, *args: Any) -> Any:
    """Vectors in shapes that make an index of their grid.

    Parameters
    ----------
    *args : ndarray or sequence
        Vectors; of truth values, those places that are true.

    Returns
    -------
    tuple of ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> x = np.arange(9).reshape(3, 3)
    >>> x[np.ix_([0, 2], [1, 2])]
    array([[1., 2.],
           [7., 8.]])
    """
    only_arrays(F, "ix_", *args)
    n, found = len(args), []
    for i, v in enumerate(args):
        host = v.asnumpy() if F.is_value(v) else np.asarray(v)
        if host.ndim != 1:
            raise error(ValueError, f"np.ix_: item {i} must be a vector, got the shape {host.shape}")
        host = np.flatnonzero(host) if host.dtype == np.bool_ else host.astype(np.int64) if not host.size else host
        shape = tuple(host.size if i == j else 1 for j in range(n))
        found.append(F.from_host(host.reshape(shape), v.ctx if F.is_value(v) else None))
    return tuple(found)


def unravel_index(F: Any, indices: Any, shape: Any, order: Any = "C") -> Any:
    """Places in the flattened array as an index for each dimension.

    Parameters
    ----------
    indices : ndarray or int
    shape : tuple of int
        Of the array.
    order : {'C'}, optional
        In which the elements are counted.

    Returns
    -------
    tuple of ndarray
        One for each dimension, of int64; of an int, of ints.

    Raises
    ------
    MXNetError
        (also ValueError) for a place out of range.

    Examples
    --------
    >>> from mxcore import np
    >>> np.unravel_index(5, (2, 3))
    (1, 2)
    """
    in_order("unravel_index", order)
    only_arrays(F, "unravel_index", indices)
    whole = F.is_value(indices)
    host = indices.asnumpy() if whole else np.asarray(indices)
    try:
        found = np.unravel_index(
            host.astype(np.int64, casting="unsafe" if whole else "same_kind"), lengths("unravel_index", shape)
        )
    except (ValueError, TypeError) as e:
        raise error(type(e), f"np.unravel_index: {e}") from None
    if isinstance(indices, numbers.Integral):
        return tuple(int(i) for i in found)
    return tuple(F.from_host(np.asarray(i), indices.ctx if whole else None) for i in found)


def _share(F: Any, name: str, a: Any, b: Any) -> bool:
    for x in (a, b):
        if not F.is_value(x):
            raise error(TypeError, f"np.{name} takes arrays of mx.np, got {type(x).__name__}")
    only_arrays(F, name, a, b)
    return bool(a._st is b._st and a._st.ctx.device.shares(a._data, b._data))


def shares_memory(F: Any, a: Any, b: Any, max_work: Any = None) -> bool:
    """Whether two arrays share memory.

    Parameters
    ----------
    a, b : ndarray
    max_work : optional
        Has no effect.

    Returns
    -------
    bool

    Examples
    --------
    >>> from mxcore import np
    >>> x = np.ones((2, 2))
    >>> np.shares_memory(x, x[0])
    True
    """
    return _share(F, "shares_memory", a, b)


def may_share_memory(F: Any, a: Any, b: Any, max_work: Any = None) -> bool:
    """Same as `shares_memory`: whether two arrays share memory.

    Parameters
    ----------
    a, b : ndarray
    max_work : optional
        Has no effect.

    Returns
    -------
    bool

    Examples
    --------
    >>> from mxcore import np
    >>> np.may_share_memory(np.ones(2), np.ones(2))
    False
    """
    return _share(F, "may_share_memory", a, b)
