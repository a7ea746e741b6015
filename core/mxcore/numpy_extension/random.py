"""Random numbers that NumPy does not have, for arrays of ``mx.np``; as ``mx.npx.random``."""

from __future__ import annotations

from typing import Any

from .._reexports import reexports
from ..ndarray.numpy import arrays
from ..random import seed

__all__ = ["seed"]

_functions = frozenset(dir(arrays.npx_random))
_others = reexports(__name__)


def __getattr__(name: str) -> Any:
    return getattr(arrays.npx_random, name) if name in _functions else _others(name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_functions})
