"""Operators of ``mx.np`` over symbols, by their own names."""

from __future__ import annotations

from ...np_functions.internal import internal
from .face import symbols

__getattr__, __dir__ = internal(__name__, symbols)
