"""Linear algebra over symbols, as ``mx.sym.np.linalg``."""

from __future__ import annotations

from ...np_functions import shown
from .face import symbols

__getattr__, __dir__ = shown(globals(), symbols.linalg)
