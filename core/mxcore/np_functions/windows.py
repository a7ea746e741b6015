"""Windows of signal processing, and polynomials."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .arguments import default_float

__all__ = ["blackman", "hamming", "hanning", "polyval"]

_DOC = """The {} window.

    Parameters
    ----------
    M : int
        Number of points; none below 1.
    dtype : dtype
        Of the result.
    ctx : Context, optional
        Where it is made; the current context unless told.

    Returns
    -------
    ndarray
        1-D, symmetric, 1 in the middle.

    Examples
    --------
    >>> from mxcore import np
    >>> np.{}(5).shape
    (5,)
    """


def _window(name: str) -> Callable[..., Any]:
    def fn(F: Any, M: int, dtype: Any = np.float32, ctx: Any = None) -> Any:
        return F.call(f"_npi_{name}", M=M, dtype=default_float(None if dtype is np.float32 else dtype), ctx=ctx)

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = _DOC.format(name.capitalize(), name)
    return fn


blackman, hamming, hanning = map(_window, ("blackman", "hamming", "hanning"))


def polyval(F: Any, p: Any, x: Any) -> Any:
    """Values of a polynomial.

    Parameters
    ----------
    p : ndarray, 1-D
        Coefficients, that of the highest power first.
    x : ndarray
        Where, of any shape.

    Returns
    -------
    ndarray
        In the shape of `x`, of the wider dtype of both.

    Examples
    --------
    >>> from mxcore import np
    >>> np.polyval(np.array([3, 0, 1]), np.array([5, 0]))
    array([76.,  1.])
    """
    return F.call("_npi_polyval", p, x)
