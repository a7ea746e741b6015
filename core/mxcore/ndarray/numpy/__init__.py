"""The functions of ``mx.np`` over arrays, as ``mx.nd.np``."""

from __future__ import annotations

from ...np_functions import shown
from . import linalg, protocols, random  # noqa: F401  what NumPy asks arrays for
from .face import arrays
from .multiarray import ndarray

__all__ = ["arrays", "linalg", "ndarray", "random"]

__getattr__, __dir__ = shown(globals(), arrays)
