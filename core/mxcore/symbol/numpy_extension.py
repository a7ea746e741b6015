"""The functions of ``mx.npx`` over symbols, as ``mx.sym.npx``."""

from __future__ import annotations

from .numpy import symbols

__getattr__ = symbols.npx.__getattr__
__dir__ = symbols.npx.__dir__
