"""Functions that give the elements of an array another shape or order."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.errors import error
from .arguments import in_order, lengths, only_arrays

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_arrays",
    "broadcast_to",
    "expand_dims",
    "flip",
    "fliplr",
    "flipud",
    "moveaxis",
    "ndim",
    "ravel",
    "reshape",
    "resize",
    "roll",
    "rollaxis",
    "rot90",
    "shape",
    "size",
    "squeeze",
    "swapaxes",
    "transpose",
]


def _tuple(x: Any) -> tuple[Any, ...]:
    """A number or a sequence of numbers as a tuple."""
    return tuple(x) if isinstance(x, (tuple, list, np.ndarray)) else (x,)


def reshape(F: Any, a: Any, newshape: Any, order: Any = "C", out: Any = None) -> Any:
    """The elements in another shape.

    Parameters
    ----------
    a : ndarray
    newshape : int or tuple of int
        Lengths; one may be -1, and is as long as it takes.
    order : {'C'}, optional
        In which the elements are read.
    out : ndarray, optional
        Where to write.

    Returns
    -------
    ndarray
        A copy.

    Raises
    ------
    MXNetError
        (also ValueError) if the sizes differ.

    Examples
    --------
    >>> from mxcore import np
    >>> np.reshape(np.arange(4), (2, -1))
    array([[0., 1.],
           [2., 3.]])
    """
    in_order("reshape", order)
    return F.call("_np_reshape", a, newshape=_tuple(newshape), out=out)


def ravel(F: Any, x: Any, order: Any = "C") -> Any:
    """The elements in one dimension.

    Parameters
    ----------
    x : ndarray
    order : {'C'}, optional
        In which the elements are read.

    Returns
    -------
    ndarray
        A copy.

    Examples
    --------
    >>> from mxcore import np
    >>> np.ravel(np.ones((2, 2)))
    array([1., 1., 1., 1.])
    """
    in_order("ravel", order, "K", "A")
    return F.call("_npx_reshape", x, newshape=(-1,)) if not F.eager else F.call("_np_reshape", x, newshape=(-1,))


def transpose(F: Any, a: Any, axes: Any = None) -> Any:
    """Permute the axes.

    Parameters
    ----------
    a : ndarray
    axes : tuple of int, optional
        Reversed unless told.

    Returns
    -------
    ndarray
        A copy.

    Examples
    --------
    >>> from mxcore import np
    >>> np.transpose(np.array([[1, 2], [3, 4]]))
    array([[1., 3.],
           [2., 4.]])
    """
    if axes is None:
        return F.call("_np_transpose", a)
    axes = _tuple(axes)
    if F.eager and F.is_value(a) and not axes and a.ndim:
        raise error(ValueError, f"np.transpose: axes () do not match an array of shape {a.shape}")
    return F.call("_np_transpose", a, axes=axes)


def swapaxes(F: Any, a: Any, axis1: int, axis2: int) -> Any:
    """Exchange two axes.

    Parameters
    ----------
    a : ndarray
    axis1, axis2 : int

    Returns
    -------
    ndarray
        A copy.

    Examples
    --------
    >>> from mxcore import np
    >>> np.swapaxes(np.ones((2, 3)), 0, 1).shape
    (3, 2)
    """
    return F.call("SwapAxis", a, dim1=axis1, dim2=axis2)


def moveaxis(F: Any, a: Any, source: Any, destination: Any) -> Any:
    """Move axes to other places; the others keep their order.

    Parameters
    ----------
    a : ndarray
    source, destination : int or tuple of int
        Which, and where each goes.

    Returns
    -------
    ndarray
        A copy.

    Examples
    --------
    >>> from mxcore import np
    >>> np.moveaxis(np.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    return F.call("_np_moveaxis", a, source=_tuple(source), destination=_tuple(destination))


def rollaxis(F: Any, a: Any, axis: int, start: int = 0) -> Any:
    """Move an axis before another one.

    Parameters
    ----------
    a : ndarray
    axis : int
        Which.
    start : int, optional
        Before which one; behind the last if it is the number of axes.

    Returns
    -------
    ndarray
        A copy.

    Examples
    --------
    >>> from mxcore import np
    >>> np.rollaxis(np.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    only_arrays(F, "rollaxis", a)
    n = a.ndim
    if not -n <= axis < n or not -n <= start <= n:
        raise error(ValueError, f"np.rollaxis: axis={axis}, start={start} are out of range for {n} dimensions")
    axis, start = axis % n, start + n if start < 0 else start
    return moveaxis(F, a, axis, start - (axis < start))


def expand_dims(F: Any, a: Any, axis: Any) -> Any:
    """Insert dimensions of length 1.

    Parameters
    ----------
    a : ndarray
    axis : int or tuple of int
        Where, in the result.

    Returns
    -------
    ndarray
        A copy.

    Examples
    --------
    >>> from mxcore import np
    >>> np.expand_dims(np.ones(3), 1).shape
    (3, 1)
    """
    if not isinstance(axis, (tuple, list)):
        return F.call("expand_dims", a, axis=axis)
    if any(i < 0 for i in axis):
        only_arrays(F, "expand_dims with axes below 0", a)
        n = a.ndim + len(axis)
        axis = [i + n if -n <= i < 0 else i for i in axis]
    if len({*axis}) != len(axis):
        raise error(ValueError, f"np.expand_dims: axis {tuple(axis)} names one axis twice")
    for i in sorted(axis):
        a = F.call("expand_dims", a, axis=i)
    return a


def squeeze(F: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    """Remove dimensions of length 1.

    Parameters
    ----------
    a : ndarray
    axis : int or tuple of int, optional
        Which; all of length 1 unless told.
    out : ndarray, optional
        Where to write.

    Returns
    -------
    ndarray
        A copy.

    Raises
    ------
    MXNetError
        (also ValueError) if one of the axes has another length.

    Examples
    --------
    >>> from mxcore import np
    >>> np.squeeze(np.ones((1, 2, 1))).shape
    (2,)
    """
    return F.call("_np_squeeze", a, axis=axis, out=out)


def broadcast_to(F: Any, array: Any, shape: Any) -> Any:
    """Repeat along dimensions of length 1, and along new ones before the first.

    Parameters
    ----------
    array : ndarray or number
    shape : int or tuple of int
        The result's.

    Returns
    -------
    ndarray

    Raises
    ------
    MXNetError
        (also ValueError) if other lengths differ.

    Examples
    --------
    >>> from mxcore import np
    >>> np.broadcast_to(np.array([1, 2]), (2, 2))
    array([[1., 2.],
           [1., 2.]])
    """
    if not F.is_value(array):
        return F.full(shape, array)
    return F.call("_npi_broadcast_to", array, shape=_tuple(shape))


def broadcast_arrays(F: Any, *args: Any) -> Any:
    """Repeat arrays along dimensions of length 1, all to one shape.

    Parameters
    ----------
    *args : ndarray

    Returns
    -------
    list of ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> [x.shape for x in np.broadcast_arrays(np.ones(3), np.ones((2, 1)))]
    [(2, 3), (2, 3)]
    """
    if args and isinstance(args[0], (list, tuple)) and len(args) == 1:
        args = tuple(args[0])
    only_arrays(F, "broadcast_arrays", *args)
    try:
        shape = np.broadcast_shapes(*[x.shape for x in args])
    except ValueError:
        shapes = ", ".join(str(x.shape) for x in args)
        raise error(ValueError, f"np.broadcast_arrays: shapes {shapes} cannot be broadcast to one") from None
    return [broadcast_to(F, x, shape) for x in args]


def _at_least(F: Any, n: int, arys: tuple[Any, ...]) -> Any:
    if len(arys) == 1 and isinstance(arys[0], (list, tuple)) and arys[0] and F.is_value(arys[0][0]):
        arys = tuple(arys[0])
    values = [x if F.is_value(x) else F.array(x) for x in arys]
    found = F.call(f"_np_atleast_{n}d", *values, num_args=len(values))
    return found if len(values) == 1 else list(found)


def atleast_1d(F: Any, *arys: Any) -> Any:
    """Arrays of one dimension or more.

    Parameters
    ----------
    *arys : ndarray or number

    Returns
    -------
    ndarray or list of ndarray
        A list of several.

    Examples
    --------
    >>> from mxcore import np
    >>> np.atleast_1d(np.array(1))
    array([1.])
    """
    return _at_least(F, 1, arys)


def atleast_2d(F: Any, *arys: Any) -> Any:
    """Arrays of two dimensions or more; a vector is a row.

    Parameters
    ----------
    *arys : ndarray or number

    Returns
    -------
    ndarray or list of ndarray
        A list of several.

    Examples
    --------
    >>> from mxcore import np
    >>> np.atleast_2d(np.array([1, 2]))
    array([[1., 2.]])
    """
    return _at_least(F, 2, arys)


def atleast_3d(F: Any, *arys: Any) -> Any:
    """Arrays of three dimensions or more; a vector is a row, a matrix has depth 1.

    Parameters
    ----------
    *arys : ndarray or number

    Returns
    -------
    ndarray or list of ndarray
        A list of several.

    Examples
    --------
    >>> from mxcore import np
    >>> np.atleast_3d(np.ones(3)).shape
    (1, 3, 1)
    """
    return _at_least(F, 3, arys)


def flip(F: Any, m: Any, axis: Any = None, out: Any = None) -> Any:
    """Reverse the order along axes.

    Parameters
    ----------
    m : ndarray
    axis : int or tuple of int, optional
        All unless told.
    out : ndarray, optional
        Where to write.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.flip(np.arange(3))
    array([2., 1., 0.])
    """
    return F.call("_npi_flip", m, axis=None if axis is None else _tuple(axis), out=out)


def fliplr(F: Any, m: Any) -> Any:
    """Reverse the order along the second axis.

    Parameters
    ----------
    m : ndarray
        Of two or more dimensions.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.fliplr(np.array([[1, 2]]))
    array([[2., 1.]])
    """
    return flip(F, m, 1)


def flipud(F: Any, m: Any) -> Any:
    """Reverse the order along the first axis.

    Parameters
    ----------
    m : ndarray
        Of one or more dimensions.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.flipud(np.array([1, 2]))
    array([2., 1.])
    """
    return flip(F, m, 0)


def roll(F: Any, a: Any, shift: Any, axis: Any = None) -> Any:
    """Shift the elements along axes; those that leave at one end come in at the other.

    Parameters
    ----------
    a : ndarray
    shift : int or tuple of int
        How far, for each axis.
    axis : int or tuple of int, optional
        Along which axes; the flattened array unless told.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.roll(np.arange(4), 1)
    array([3., 0., 1., 2.])
    """
    return F.call("_np_roll", a, shift=_tuple(shift), axis=None if axis is None else _tuple(axis))


def rot90(F: Any, m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    """Turn the plane of two axes by right angles.

    Parameters
    ----------
    m : ndarray
        Of two or more dimensions.
    k : int, optional
        How often, from the first axis towards the second.
    axes : (int, int), optional
        The plane.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.rot90(np.array([[1, 2], [3, 4]]))
    array([[2., 4.],
           [1., 3.]])
    """
    return F.call("_npi_rot90", m, k=k, axes=_tuple(axes))


def resize(F: Any, a: Any, new_shape: Any) -> Any:
    """The elements in a shape of any size: repeated from the first on, or cut.

    Parameters
    ----------
    a : ndarray
    new_shape : int or tuple of int

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.resize(np.array([1, 2, 3]), (2, 2))
    array([[1., 2.],
           [3., 1.]])
    """
    only_arrays(F, "resize", a)
    target = lengths("resize", new_shape)
    n, size = int(np.prod(target)), a.size
    if n == 0 or size == 0:
        return F.zeros(target, dtype=a.dtype, ctx=a.ctx)
    flat = reshape(F, a, -1)
    return reshape(F, F.tile(flat, -(-n // size))[:n] if n != size else flat, target)


def shape(F: Any, a: Any) -> tuple[int, ...]:
    """The lengths of the dimensions.

    Parameters
    ----------
    a : array_like

    Returns
    -------
    tuple of int

    Examples
    --------
    >>> from mxcore import np
    >>> np.shape(np.ones((2, 3)))
    (2, 3)
    """
    only_arrays(F, "shape", a)
    return tuple(a.shape) if F.is_value(a) else np.shape(a)


def ndim(F: Any, a: Any) -> int:
    """The number of dimensions.

    Parameters
    ----------
    a : array_like

    Returns
    -------
    int

    Examples
    --------
    >>> from mxcore import np
    >>> np.ndim(np.ones((2, 3)))
    2
    """
    return len(shape(F, a))


def size(F: Any, a: Any, axis: Any = None) -> int:
    """The number of elements, or the length of an axis.

    Parameters
    ----------
    a : array_like
    axis : int, optional

    Returns
    -------
    int

    Examples
    --------
    >>> from mxcore import np
    >>> np.size(np.ones((2, 3))), np.size(np.ones((2, 3)), 1)
    (6, 3)
    """
    found = shape(F, a)
    if axis is None:
        return int(np.prod(found))
    try:
        return int(found[axis])
    except IndexError:
        raise error(IndexError, f"np.size: axis {axis} is out of range for {len(found)} dimensions") from None
