"""Random numbers as symbols, as ``mx.sym.np.random``."""

from __future__ import annotations

from ...np_functions import shown
from .face import symbols

__getattr__, __dir__ = shown(globals(), symbols.random)
