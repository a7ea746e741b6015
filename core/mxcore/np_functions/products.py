"""Products of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.errors import error
from .options import legal, refuse

__all__ = ["dot", "einsum", "inner", "matmul", "outer", "tensordot", "vdot"]


def _values(F: Any, name: str, **given: Any) -> None:
    """Refuse what is no value of the face."""
    for key, x in given.items():
        if not F.is_value(x):
            raise error(
                TypeError,
                f"np.{name}: {key} must be an array of mx.np, got {type(x).__name__}"
                + ("; x.as_np_ndarray() shares its memory" if hasattr(x, "as_np_ndarray") else "; np.array makes one"),
            )


def dot(F: Any, a: Any, b: Any, out: Any = None) -> Any:
    """The product of two arrays: of vectors their inner product, of matrices their matrix product.

    Parameters
    ----------
    a, b : ndarray
        The last axis of `a` is as long as the last but one of `b`, or its only one. A number, or an array of no
        dimensions, multiplies the other.
    out : ndarray, optional
        Where to write: of the shape and dtype of the result.

    Returns
    -------
    ndarray
        Of the wider dtype of both; floats win over whole numbers.

    Examples
    --------
    >>> from mxcore import np
    >>> np.dot(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    array(11.)
    """
    if not F.is_value(b) and isinstance(b, (int, float, np.number)):
        _values(F, "dot", a=a)
        return F.multiply(a, b, out=out)
    if not F.is_value(a) and isinstance(a, (int, float, np.number)):
        _values(F, "dot", b=b)
        return F.multiply(a, b, out=out)
    return F.call("_np_dot", a, b, out=out)


def matmul(F: Any, a: Any, b: Any, out: Any = None, **kwargs: Any) -> Any:
    """The product of matrices; of stacks of them, which are broadcast, of each pair.

    Parameters
    ----------
    a, b : ndarray
        (..., m, n) and (..., n, k). One of one dimension is a vector.
    out : ndarray, optional
        Where to write: of the shape and dtype of the result.
    **kwargs
        NumPy's options `casting`, `order`, `dtype`, `subok`: refused unless they change nothing.

    Returns
    -------
    ndarray
        (..., m, k), of the wider dtype of both; floats win over whole numbers.

    Examples
    --------
    >>> from mxcore import np
    >>> np.matmul(np.ones((2, 3, 4)), np.ones((4, 5))).shape
    (2, 3, 5)
    """
    if kwargs:
        legal("matmul", kwargs)
    return F.call("_npi_matmul", a, b, out=out)


def inner(F: Any, a: Any, b: Any) -> Any:
    """The products of two arrays, summed over the last axis of both.

    Parameters
    ----------
    a, b : ndarray
        Their last axes have one length. A number, or an array of no dimensions, multiplies the other.

    Returns
    -------
    ndarray
        Of the dimensions of `a` but the last, then those of `b` but the last.

    Examples
    --------
    >>> from mxcore import np
    >>> np.inner(np.ones((2, 3)), np.ones((4, 3))).shape
    (2, 4)
    """
    if not (F.is_value(a) and F.is_value(b)):
        return F.dot(a, b)
    if 0 in (getattr(a, "ndim", 1), getattr(b, "ndim", 1)):  # of a symbol nobody knows, and it has dimensions
        return F.call("_np_dot", a, b)
    return F.call("_npi_tensordot", a, b, a_axes_summed=(-1,), b_axes_summed=(-1,))


def outer(F: Any, a: Any, b: Any) -> Any:
    """The products of each element of an array with each of another one.

    Parameters
    ----------
    a, b : ndarray
        Of any shape; they are flattened.

    Returns
    -------
    ndarray
        (size of `a`, size of `b`).

    Examples
    --------
    >>> from mxcore import np
    >>> np.outer(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    array([[3., 4.],
           [6., 8.]])
    """
    _values(F, "outer", a=a, b=b)
    return F.call("_npi_tensordot_int_axes", F.reshape(a, -1), F.reshape(b, -1), axes=0)


def vdot(F: Any, a: Any, b: Any) -> Any:
    """The sum of the products of two arrays' elements.

    Parameters
    ----------
    a, b : ndarray
        As many elements each; they are flattened.

    Returns
    -------
    ndarray
        Of no dimensions.

    Examples
    --------
    >>> from mxcore import np
    >>> np.vdot(np.ones((2, 3)), np.ones((3, 2)))
    array(6.)
    """
    _values(F, "vdot", a=a, b=b)
    return F.call("_npi_tensordot_int_axes", F.reshape(a, -1), F.reshape(b, -1), axes=1)


def tensordot(F: Any, a: Any, b: Any, axes: Any = 2) -> Any:
    """The products of two arrays, summed over some axes of both.

    Parameters
    ----------
    a, b : ndarray
    axes : int or (axes of `a`, axes of `b`)
        A number: so many of the last axes of `a` with the first of `b`. Else one axis of each, or as many of each.

    Returns
    -------
    ndarray
        Of the other dimensions of `a`, then those of `b`.

    Examples
    --------
    >>> from mxcore import np
    >>> np.tensordot(np.ones((2, 3, 4)), np.ones((4, 3, 5)), axes=([1, 2], [1, 0])).shape
    (2, 5)
    """
    if isinstance(axes, (int, np.integer)):
        return F.call("_npi_tensordot_int_axes", a, b, axes=int(axes))
    try:
        left, right = ((x,) if isinstance(x, (int, np.integer)) else tuple(x) for x in axes)
    except (TypeError, ValueError):
        raise error(
            TypeError, f"np.tensordot: axes must be a number, or a pair of axes or sequences of axes, got {axes!r}"
        ) from None
    return F.call("_npi_tensordot", a, b, a_axes_summed=left, b_axes_summed=right)


_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def _letters(labels: Any) -> str:
    """A list of numbers and ellipses as letters, which NumPy orders likewise."""
    found = ""
    for x in labels:
        if x is Ellipsis:
            found += "..."
        elif isinstance(x, (int, np.integer)) and 0 <= x < len(_LETTERS):
            found += _LETTERS[x]
        else:
            raise error(
                TypeError, f"np.einsum: labels of axes are whole numbers from 0 to 51 and ..., got {x!r} in {labels!r}"
            )
    return found


def einsum(F: Any, *operands: Any, **kwargs: Any) -> Any:
    """The sum of products that Einstein's notation says.

    Parameters
    ----------
    *operands
        ``subscripts, *arrays``, as in ``'ij,jk->ik'``: labels of the axes of each array, then of the result; labels
        that it lacks are summed over. Without ``->``, the result has the labels that come once, in the order of the
        alphabet. ``...`` stands for axes that are broadcast. Or ``array, labels, array, labels, …`` and, at will,
        labels of the result, where labels are lists of whole numbers and ``...``.
    out : ndarray, optional
        Where to write: of the shape and dtype of the result.
    optimize : bool, {'greedy', 'optimal'} or path
        In which order arrays are multiplied: as they stand (False), in a good one (True), in the best one, or as a path
        of `numpy.einsum_path` says.
    dtype, order, casting
        NumPy's: refused unless they change nothing.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> a, b = np.ones((2, 3)), np.ones((3, 4))
    >>> np.einsum("ij,jk->ik", a, b)
    array([[3., 3., 3., 3.],
           [3., 3., 3., 3.]])
    >>> np.einsum(a, [0, 1], b, [1, 2])
    array([[3., 3., 3., 3.],
           [3., 3., 3., 3.]])
    """
    out, optimize = kwargs.pop("out", None), kwargs.pop("optimize", False)
    for key, value in kwargs.items():
        if key not in ("dtype", "order", "casting"):
            raise error(TypeError, f"np.einsum has no argument '{key}'; it takes out, optimize, dtype, order, casting")
        only = {"dtype": None, "order": "K", "casting": "safe"}[key]
        if value != only:
            raise refuse("einsum", key, value, only)
    if not operands:
        raise error(ValueError, "np.einsum takes subscripts and arrays, or arrays and labels; got nothing")
    if isinstance(operands[0], str):
        subscripts, *arrays = operands
    else:
        arrays, labels = [*operands[::2]], [*operands[1::2]]
        result = ""
        if len(arrays) > len(labels):
            result = "->" + _letters(arrays.pop())
        subscripts = ",".join(map(_letters, labels)) + result
    if not arrays:
        raise error(ValueError, f"np.einsum: there are no arrays for the subscripts {subscripts!r}")
    return F.call(
        "_npi_einsum", *arrays, out=out, num_args=len(arrays), subscripts=subscripts, optimize=_order(optimize)
    )


def _order(optimize: Any) -> Any:
    """The parameter of the operator for what `optimize` may be."""
    if isinstance(optimize, (tuple, list)) and optimize:
        first, *rest = optimize
        if first == "einsum_path":
            return tuple(map(tuple, rest))
        if first in ("greedy", "optimal"):  # and the limit of memory for intermediate results, which is none here
            return first
    if isinstance(optimize, (bool, np.bool_)) or optimize in (0, 1):
        return int(optimize)
    if optimize in ("greedy", "optimal"):
        return optimize
    raise error(ValueError, f"np.einsum: optimize must be True, False, 'greedy', 'optimal' or a path, got {optimize!r}")
