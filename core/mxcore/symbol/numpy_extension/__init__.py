"""The functions of ``mx.npx`` over symbols, as ``mx.sym.npx``."""

from __future__ import annotations

from ...np_functions import shown
from ..numpy.face import symbols
from . import image, random

__all__ = ["image", "random"]

__getattr__, __dir__ = shown(globals(), symbols.npx)
