"""Linear algebra over arrays of ``mx.np``, as ``mx.np.linalg``."""

from __future__ import annotations

from ..ndarray.numpy import arrays
from ..np_functions import shown

__getattr__, __dir__ = shown(globals(), arrays.linalg)
