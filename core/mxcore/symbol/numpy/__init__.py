"""The functions of ``mx.np`` over symbols, as ``mx.sym.np``."""

from __future__ import annotations

from ...np_functions import shown
from . import linalg, random
from .face import symbols
from .symbol import _Symbol, load, load_json

__all__ = ["_Symbol", "linalg", "load", "load_json", "random", "symbols"]

__getattr__, __dir__ = shown(globals(), symbols)
