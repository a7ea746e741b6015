"""Random numbers that NumPy does not have, over arrays."""

from __future__ import annotations

from ...np_functions import shown
from ..numpy.face import arrays

__getattr__, __dir__ = shown(globals(), arrays.npx_random)
