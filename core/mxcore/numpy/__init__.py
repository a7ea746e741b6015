"""Deep NumPy: NumPy's functions over arrays that know devices and gradients, as ``mxnet.numpy`` and ``mx.np``.

The functions are those of :mod:`mxcore.np_functions`, bound to arrays.

Examples
--------
>>> import mxcore as mx
>>> from mxcore import np, npx
>>> x = np.array([1.0, 2.0])
>>> x.attach_grad()
>>> with mx.autograd.record():
...     y = np.exp(x) + x
>>> y.backward()
>>> x.grad
array([3.7182817, 8.389056 ])
"""

from __future__ import annotations

from ..ndarray.numpy import arrays, ndarray
from ..np_functions import shown
from . import linalg, random

__all__ = ["linalg", "ndarray", "random"]

__getattr__, __dir__ = shown(globals(), arrays, keep=True)
