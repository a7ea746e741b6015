"""Deep NumPy: NumPy's functions over arrays that know devices and gradients, as ``mxnet.numpy`` and ``mx.np``.

The functions are those of :mod:`mxcore.np_functions`, bound to arrays.

Examples
--------
>>> import mxcore as mx
>>> from mxcore import np, npx
>>> x = np.array([1.0, 2.0])
>>> x.attach_grad()
>>> with mx.autograd.record():
...     y = np.square(x) + x
>>> y.backward()
>>> x.grad
array([3., 5.])
"""

from __future__ import annotations

from typing import Any

import numpy

from ..ndarray.numpy import arrays, ndarray
from ..np_functions import shown
from . import constants, linalg, random
from .constants import *  # noqa: F403

__all__ = ["linalg", "ndarray", "random", "set_printoptions", *constants.__all__]  # noqa: PLE0604


def set_printoptions(precision: Any = None, threshold: Any = None, **kwarg: Any) -> None:
    """Set how arrays are printed, those of NumPy as well.

    Parameters
    ----------
    precision : int, optional
        Digits behind the point.
    threshold : int, optional
        From how many elements on only the first and the last are printed.
    **kwarg
        As in ``numpy.set_printoptions``.
    """
    numpy.set_printoptions(precision=precision, threshold=threshold, **kwarg)


__getattr__, __dir__ = shown(globals(), arrays, keep=True)
