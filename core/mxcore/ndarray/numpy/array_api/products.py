"""Products of matrices and vectors, which the standard shows in the namespace and in `linalg`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...._core.errors import error
from ..face import arrays as F
from ..multiarray import ndarray
from .arguments import alike, check, common

__all__ = ["matmul", "matrix_transpose", "tensordot", "vecdot"]


def matmul(x1: ndarray, x2: ndarray, /) -> Any:
    """The product of matrices, of stacks of them, or of vectors.

    Parameters
    ----------
    x1, x2 : ndarray
        One dimension at least; the dtypes must be numeric.

    Returns
    -------
    ndarray
        Of the dtype that theirs are promoted to.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.matmul(xp.ones((2, 3)), xp.ones((3,)))
    array([3., 3.])
    """
    check("matmul", "numeric", x1, x2)
    return F.matmul(*common("matmul", x1, x2))


def matrix_transpose(x: ndarray, /) -> Any:
    """Matrices with rows and columns exchanged.

    Parameters
    ----------
    x : ndarray, (..., m, n)

    Returns
    -------
    ndarray, (..., n, m)

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.matrix_transpose(xp.ones((4, 2, 3))).shape
    (4, 3, 2)
    """
    check("matrix_transpose", "all", x)
    if x.ndim < 2:
        raise error(ValueError, f"matrix_transpose: matrices are needed, got shape {x.shape}")
    return F.swapaxes(x, -2, -1)


def tensordot(x1: ndarray, x2: ndarray, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Any:
    """The products of two arrays, summed over some axes of both.

    Parameters
    ----------
    x1, x2 : ndarray
        The dtypes must be numeric.
    axes : int or (axes of `x1`, axes of `x2`)
        A number: so many of the last axes of `x1` with the first of `x2`.

    Returns
    -------
    ndarray
        Of the other dimensions of `x1`, then those of `x2`.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.tensordot(xp.ones((2, 3, 4)), xp.ones((4, 3, 5)), axes=((1, 2), (1, 0))).shape
    (2, 5)
    """
    check("tensordot", "numeric", x1, x2)
    return F.tensordot(*common("tensordot", x1, x2), axes)


def vecdot(x1: ndarray, x2: ndarray, /, *, axis: int = -1) -> Any:
    """The scalar products of vectors.

    Parameters
    ----------
    x1, x2 : ndarray
        Shapes that broadcast but for the axis, of one length there; the dtypes must be numeric.
    axis : int
        That of the vectors, below 0.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.vecdot(xp.asarray([[1.0, 2.0], [3.0, 4.0]]), xp.asarray([1.0, 1.0]))
    array([3., 7.])
    """
    check("vecdot", "numeric", x1, x2)
    a, b = common("vecdot", *alike("vecdot", "numeric", x1, x2))
    d = vectors_axis("vecdot", axis, a, b)
    if a.shape[d] != b.shape[d]:
        raise error(ValueError, f"vecdot: vectors of {a.shape[d]} and of {b.shape[d]} elements have no product")
    a, b = (F.moveaxis(x, d, -1) for x in (a, b))
    rows, columns = F.expand_dims(a, -2), F.expand_dims(b, -1)
    return F.squeeze(F.matmul(rows, columns), (-2, -1))


def vectors_axis(name: str, axis: Any, *given: Any) -> int:
    """The axis that vectors lie along, counted from the last, which all arrays must have."""
    d: int = axis.__index__()
    if d >= 0:  # before or behind broadcasting: the standard leaves it open
        raise error(ValueError, f"{name}: axis must be below 0, for it is counted from the last, got {axis}")
    if -d > min(x.ndim for x in given):
        shapes = " and ".join(str(x.shape) for x in given)
        raise error(IndexError, f"{name}: axis {axis} is out of bounds for arrays of shapes {shapes}")
    return d
