"""Functions that give the elements of arrays another shape or order, and join arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...._core.errors import error
from ..face import arrays as F
from ..multiarray import ndarray
from .arguments import Axis, axes_of, check, common, whole_number

__all__ = [
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "concat",
    "expand_dims",
    "flip",
    "moveaxis",
    "permute_dims",
    "repeat",
    "reshape",
    "roll",
    "squeeze",
    "stack",
    "tile",
    "unstack",
]


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that arrays of several shapes are broadcast to.

    Parameters
    ----------
    *shapes : tuple of int

    Returns
    -------
    tuple of int

    Raises
    ------
    MXNetError
        (also ValueError) for shapes that do not fit.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    try:
        return tuple(int(d) for d in np.broadcast_shapes(*shapes))
    except ValueError:
        raise error(ValueError, f"shapes {', '.join(map(str, shapes))} do not broadcast") from None


def broadcast_arrays(*arrays: ndarray) -> list[ndarray]:
    """Arrays, repeated up to the shape that they have together.

    Parameters
    ----------
    *arrays : ndarray

    Returns
    -------
    list of ndarray

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> [x.shape for x in xp.broadcast_arrays(xp.ones((2, 1)), xp.ones(3))]
    [(2, 3), (2, 3)]
    """
    check("broadcast_arrays", "all", *arrays)
    shape = broadcast_shapes(*(x.shape for x in arrays))
    return [F.broadcast_to(x, shape) for x in arrays]


def broadcast_to(x: ndarray, /, shape: tuple[int, ...]) -> Any:
    """An array repeated along dimensions of length 1, or new leading ones.

    Parameters
    ----------
    x : ndarray
    shape : tuple of int

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.broadcast_to(xp.asarray([1, 2]), (2, 2))
    array([[1, 2],
           [1, 2]], dtype=int64)
    """
    check("broadcast_to", "all", x)
    if broadcast_shapes(x.shape, shape) != tuple(shape):
        raise error(ValueError, f"broadcast_to: an array of shape {x.shape} is not broadcast to {shape}")
    return F.broadcast_to(x, shape)


def _several(name: str, arrays: Any) -> list[Any]:
    found = list(arrays)
    if not found:
        raise error(ValueError, f"{name}: one array is needed at least")
    check(name, "all", *found)
    return common(name, *found)


def concat(arrays: Sequence[ndarray], /, *, axis: int | None = 0) -> Any:
    """Arrays one after the other along an axis.

    Parameters
    ----------
    arrays : sequence of ndarray
        Of one shape but for the axis.
    axis : int or None
        None: the flattened arrays.

    Returns
    -------
    ndarray
        Of the dtype that theirs are promoted to.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.concat([xp.ones(2), xp.zeros(1)])
    array([1., 1., 0.])
    """
    found = _several("concat", arrays)
    if axis is None:
        return F.concatenate([F.reshape(x, (-1,)) for x in found], 0)
    if len({x.ndim for x in found}) > 1 or not found[0].ndim:
        shapes = ", ".join(str(x.shape) for x in found)
        raise error(ValueError, f"concat: arrays of one number of dimensions, 1 at least, are needed, got {shapes}")
    (d,) = axes_of("concat", found[0].ndim, whole_number("concat", "axis", axis))
    return F.concatenate(found, d)


def stack(arrays: Sequence[ndarray], /, *, axis: int = 0) -> Any:
    """Arrays of one shape, joined along a new axis.

    Parameters
    ----------
    arrays : sequence of ndarray
    axis : int
        Where the new axis is.

    Returns
    -------
    ndarray
        Of the dtype that theirs are promoted to.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.stack([xp.ones(2), xp.zeros(2)], axis=1)
    array([[1., 0.],
           [1., 0.]])
    """
    found = _several("stack", arrays)
    (d,) = axes_of("stack", found[0].ndim + 1, whole_number("stack", "axis", axis))
    return F.stack(found, d)


def unstack(x: ndarray, /, *, axis: int = 0) -> tuple[ndarray, ...]:
    """The parts of an array along an axis, without it.

    Parameters
    ----------
    x : ndarray
    axis : int

    Returns
    -------
    tuple of ndarray

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.unstack(xp.asarray([[1, 2], [3, 4]]), axis=1)
    (array([1, 3], dtype=int64), array([2, 4], dtype=int64))
    """
    check("unstack", "all", x)
    if not x.ndim:
        raise error(ValueError, "unstack: an array without dimensions has no parts")
    (d,) = axes_of("unstack", x.ndim, whole_number("unstack", "axis", axis))
    return tuple(x[(slice(None),) * d + (i,)] for i in range(x.shape[d]))


def expand_dims(x: ndarray, /, axis: int | tuple[int, ...] = 0) -> Any:
    """A new dimension of length 1.

    Parameters
    ----------
    x : ndarray
    axis : int or tuple of int
        Where it is in the result.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.expand_dims(xp.ones(2), axis=-1).shape
    (2, 1)
    """
    check("expand_dims", "all", x)
    n = x.ndim + (len(axis) if isinstance(axis, tuple) else 1)
    at = axes_of("expand_dims", n, axis)
    rest = iter(x.shape)
    return F.reshape(x, tuple(1 if d in at else next(rest) for d in range(n)))


def squeeze(x: ndarray, /, axis: int | tuple[int, ...]) -> Any:
    """The array without dimensions of length 1.

    Parameters
    ----------
    x : ndarray
    axis : int or tuple of int
        Which.

    Returns
    -------
    ndarray

    Raises
    ------
    MXNetError
        (also ValueError) for a dimension of another length.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.squeeze(xp.ones((2, 1)), axis=1).shape
    (2,)
    """
    check("squeeze", "all", x)
    at = axes_of("squeeze", x.ndim, axis)
    if any(x.shape[d] != 1 for d in at):
        raise error(ValueError, f"squeeze: axis {axis} of an array of shape {x.shape} is not of length 1")
    return F.reshape(x, tuple(n for d, n in enumerate(x.shape) if d not in at))


def flip(x: ndarray, /, *, axis: Axis = None) -> Any:
    """The elements in reverse order along axes.

    Parameters
    ----------
    x : ndarray
    axis : int or tuple of int, optional
        All axes unless told.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.flip(xp.asarray([1.0, 2.0]))
    array([2., 1.])
    """
    check("flip", "all", x)
    at = axes_of("flip", x.ndim, axis)
    return F.flip(x, at) if at else F.copy(x)


def moveaxis(x: ndarray, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> Any:
    """Axes moved to other places.

    Parameters
    ----------
    x : ndarray
    source : int or tuple of int
    destination : int or tuple of int
        Where each goes.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.moveaxis(xp.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    check("moveaxis", "all", x)
    of, to = axes_of("moveaxis", x.ndim, source), axes_of("moveaxis", x.ndim, destination)
    if len(of) != len(to):
        raise error(ValueError, f"moveaxis: source {source} and destination {destination} must be equally many")
    order = [d for d in range(x.ndim) if d not in of]
    for place, d in sorted(zip(to, of)):
        order.insert(place, d)
    return permute_dims(x, tuple(order))


def permute_dims(x: ndarray, /, axes: tuple[int, ...]) -> Any:
    """The axes in another order.

    Parameters
    ----------
    x : ndarray
    axes : tuple of int

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.permute_dims(xp.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    check("permute_dims", "all", x)
    order = axes_of("permute_dims", x.ndim, tuple(axes))
    if len(order) != x.ndim:
        raise error(ValueError, f"permute_dims: axes {axes} must name each of the {x.ndim} dimensions")
    return F.transpose(x, order) if order else F.copy(x)


def repeat(x: ndarray, repeats: int | ndarray, /, *, axis: int | None = None) -> Any:
    """Each element repeated, one after the other.

    Parameters
    ----------
    x : ndarray
    repeats : int or ndarray of int
        How often; or how often for each place along the axis.
    axis : int, optional
        Along which; of the flattened array unless told.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.repeat(xp.asarray([1.0, 2.0]), 2)
    array([1., 1., 2., 2.])
    """
    check("repeat", "all", x)
    if isinstance(repeats, ndarray):
        check("repeat", "integer", repeats)
        if repeats.ndim == 0 or repeats.shape == (1,):
            repeats = int(repeats.item())
    if axis is None:
        x, axis = F.reshape(x, (-1,)), 0
    (d,) = axes_of("repeat", x.ndim, whole_number("repeat", "axis", axis))
    return F.repeat(x, repeats, d)


def reshape(x: ndarray, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Any:
    """The elements in another shape.

    Parameters
    ----------
    x : ndarray
    shape : tuple of int
        Lengths; one may be -1, and is as long as it takes.
    copy : bool, optional
        False: a view; True, or unless told, a copy.

    Returns
    -------
    ndarray

    Raises
    ------
    MXNetError
        (also ValueError) if the sizes differ.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.reshape(xp.arange(4), (2, -1))
    array([[0, 1],
           [2, 3]], dtype=int64)
    """
    check("reshape", "all", x)
    lengths = tuple(whole_number("reshape", "shape", d) for d in (shape if isinstance(shape, tuple) else (shape,)))
    if sum(d < 0 for d in lengths) > 1 or min(lengths, default=0) < -1:
        raise error(ValueError, f"reshape: shape {shape} may hold one length that is not known, as -1")
    return x.reshape_view(lengths) if copy is False else F.reshape(x, lengths)


def roll(x: ndarray, /, shift: int | tuple[int, ...], *, axis: Axis = None) -> Any:
    """The elements moved along axes; those that leave at the end come in at the front.

    Parameters
    ----------
    x : ndarray
    shift : int or tuple of int
        By how many places.
    axis : int or tuple of int, optional
        Along which; of the flattened array, which gets its shape back, unless told.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.roll(xp.asarray([1.0, 2.0, 3.0]), 1)
    array([3., 1., 2.])
    """
    check("roll", "all", x)
    if axis is None:
        flat = F.reshape(x, (-1,))
        return F.reshape(roll(flat, whole_number("roll", "shift", shift), axis=0), x.shape)
    asked = axis if isinstance(axis, tuple) else (axis,)
    shifts = shift if isinstance(shift, tuple) else (shift,) * len(asked)
    if len(shifts) != len(asked):
        raise error(ValueError, f"roll: shift {shift} and axis {axis} must be equally many")
    for by, a in zip(shifts, asked):
        (d,) = axes_of("roll", x.ndim, a)
        n = x.shape[d]
        x = F.roll(x, whole_number("roll", "shift", by) % n if n else 0, d)
    return x


def tile(x: ndarray, repetitions: tuple[int, ...], /) -> Any:
    """The whole array repeated.

    Parameters
    ----------
    x : ndarray
    repetitions : tuple of int
        How often along each axis, counted from the last; more items than axes add axes before the first.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.tile(xp.asarray([1.0, 2.0]), (2, 2))
    array([[1., 2., 1., 2.],
           [1., 2., 1., 2.]])
    """
    check("tile", "all", x)
    times = tuple(repetitions)
    shape = (1,) * (len(times) - x.ndim) + x.shape
    times = (1,) * (len(shape) - len(times)) + times
    if 0 in times or 0 in shape:
        check("tile", "all", x)
        return F.zeros(tuple(n * m for n, m in zip(shape, times)), dtype=x.dtype, ctx=x.ctx)
    return F.tile(x, times)
