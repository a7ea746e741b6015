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

from typing import Any

from .._reexports import reexports
from ..ndarray.numpy import arrays, ndarray
from . import linalg, random

__all__ = ["linalg", "ndarray", "random"]

_others = reexports(__name__)


def __getattr__(name: str) -> Any:
    if name in arrays.names:
        found = globals()[name] = getattr(arrays, name)
        return found
    return _others(name)


def __dir__() -> list[str]:
    return sorted({*__all__, *arrays.names})
