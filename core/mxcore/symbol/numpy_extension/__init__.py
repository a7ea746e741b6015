"""The functions of ``mx.npx`` over symbols, as ``mx.sym.npx``."""

from __future__ import annotations

from typing import Any

from ..._reexports import reexports
from ..numpy.face import symbols
from . import image, random

__all__ = ["image", "random"]

_functions = frozenset(dir(symbols.npx))
_others = reexports(__name__)


def __getattr__(name: str) -> Any:
    return getattr(symbols.npx, name) if name in _functions else _others(name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_functions})
