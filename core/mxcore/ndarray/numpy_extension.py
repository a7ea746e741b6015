"""The functions of ``mx.npx`` over arrays, as ``mx.nd.npx``."""

from __future__ import annotations

from .numpy import arrays

__getattr__ = arrays.npx.__getattr__
__dir__ = arrays.npx.__dir__
