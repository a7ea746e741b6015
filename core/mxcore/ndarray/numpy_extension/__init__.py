"""The functions of ``mx.npx`` over arrays, as ``mx.nd.npx``."""

from __future__ import annotations

from ...np_functions import shown
from ..numpy.face import arrays
from . import image, random

__all__ = ["image", "random"]

__getattr__, __dir__ = shown(globals(), arrays.npx)
