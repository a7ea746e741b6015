"""Linear algebra over arrays of ``mx.np``, as ``mx.nd.np.linalg``."""

from __future__ import annotations

from ...np_functions import shown
from .face import arrays

__getattr__, __dir__ = shown(globals(), arrays.linalg)
