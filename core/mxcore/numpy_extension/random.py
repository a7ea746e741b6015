"""Random numbers that NumPy does not have, for arrays of ``mx.np``; as ``mx.npx.random``."""

from __future__ import annotations

from ..ndarray.numpy import arrays
from ..np_functions import shown

__getattr__, __dir__ = shown(globals(), arrays.npx_random)
