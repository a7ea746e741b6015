"""The function of ``mx.npx`` that gives the elements of an array another shape."""

from __future__ import annotations

from typing import Any

from .arguments import in_order

__all__ = ["reshape"]


def reshape(F: Any, a: Any, newshape: Any, reverse: bool = False, order: Any = "C") -> Any:
    """The elements in another shape, told by codes.

    Parameters
    ----------
    a : ndarray
    newshape : int or tuple of int
        Lengths, or codes: -1 is inferred, -2 copies a dimension, -3 drops one of length 1, -4 copies all that remain,
        -5 merges two, -6 splits one into the next two (of which one may be -1).
    reverse : bool, optional
        Read the codes from right to left.
    order : {'C'}, optional
        In which the elements are read.

    Returns
    -------
    ndarray
        A copy.

    Examples
    --------
    >>> from mxcore import np
    >>> from mxcore import npx
    >>> npx.reshape(np.ones((8, 3, 4)), (-2, -5)).shape
    (8, 12)
    """
    in_order("reshape", order)
    codes = tuple(newshape) if isinstance(newshape, (tuple, list)) else (newshape,)
    return F.call("_npx_reshape", a, newshape=codes, reverse=reverse)
