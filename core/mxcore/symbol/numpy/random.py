"""Random numbers as symbols, as ``mx.sym.np.random``."""

from __future__ import annotations

from typing import Any

from ..._reexports import reexports
from .face import symbols

_functions = frozenset(dir(symbols.random))
_others = reexports(__name__)


def __getattr__(name: str) -> Any:
    return getattr(symbols.random, name) if name in _functions else _others(name)


def __dir__() -> list[str]:
    return sorted(_functions)
