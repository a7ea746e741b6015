"""Operators of ``mx.np`` over arrays, by their own names."""

from __future__ import annotations

from ...np_functions.internal import internal
from .face import arrays

__getattr__, __dir__ = internal(__name__, arrays)
