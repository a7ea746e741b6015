"""The namespace of the Python array API standard, 2024.12, over arrays of ``mx.np``.

``x.__array_namespace__()`` gives it. Its functions are strict: they take what the standard defines, and refuse what it
leaves open. They are compositions of those of ``mx.np``, so that gradients flow and all devices compute. They run under
NumPy's meaning of shapes, whatever the thread's is; indices (``x[0]``) do so after ``npx.set_np()`` only.

Examples
--------
>>> from mxcore import np
>>> x = np.array([1.0, 2.0])
>>> xp = x.__array_namespace__()
>>> xp.sum(xp.pow(x, 2))
array(5.)
"""

from __future__ import annotations

import math
from typing import Any

from . import creation, data_types, elementwise, linalg, manipulation, products, reduction, searching
from .arguments import NO_COMPLEX, in_numpys_shapes
from .data_types import *  # noqa: F403
from .info import Info as __array_namespace_info__

__all__ = [  # noqa: PLE0604
    "__array_api_version__",
    "__array_namespace_info__",
    "e",
    "inf",
    "linalg",
    "nan",
    "newaxis",
    "pi",
    *data_types.__all__,
]

__array_api_version__ = "2024.12"

e, pi, inf, nan = math.e, math.pi, math.inf, math.nan
#: Inserts a dimension of length 1: ``x[:, newaxis]``.
newaxis = None

for _subject in (data_types, creation, elementwise, manipulation, products, reduction, searching):
    for _name in _subject.__all__:
        _found = getattr(_subject, _name)
        globals()[_name] = in_numpys_shapes(_found) if callable(_found) else _found
    __all__ += [n for n in _subject.__all__ if n not in __all__]


def __getattr__(name: str) -> Any:
    told = f": {NO_COMPLEX}" if name in ("complex64", "complex128", "fft") else ""
    raise AttributeError(f"the namespace of the array API standard has no {name!r}{told}")
