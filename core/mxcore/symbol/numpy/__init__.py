"""The functions of ``mx.np`` over symbols, as ``mx.sym.np``."""

from __future__ import annotations

from typing import Any

from ..._reexports import reexports
from . import linalg, random
from .face import symbols
from .symbol import _Symbol

__all__ = ["_Symbol", "linalg", "random", "symbols"]

_others = reexports(__name__)


def __getattr__(name: str) -> Any:
    return getattr(symbols, name) if name in symbols.names else _others(name)


def __dir__() -> list[str]:
    return sorted({*__all__, *symbols.names})
