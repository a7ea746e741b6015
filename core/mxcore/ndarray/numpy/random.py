"""Random numbers as arrays of ``mx.np``, as ``mx.nd.np.random``."""

from __future__ import annotations

from ...np_functions import shown
from .face import arrays

__getattr__, __dir__ = shown(globals(), arrays.random)
