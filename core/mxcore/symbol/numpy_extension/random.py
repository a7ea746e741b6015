"""Random numbers that NumPy does not have, over symbols."""

from __future__ import annotations

from ...np_functions import shown
from ..numpy.face import symbols

__getattr__, __dir__ = shown(globals(), symbols.npx_random)
