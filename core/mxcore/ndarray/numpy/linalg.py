"""Linear algebra over arrays of ``mx.np``, as ``mx.nd.np.linalg``."""

from __future__ import annotations

from typing import Any

from ..._reexports import reexports
from .face import arrays

_functions = frozenset(dir(arrays.linalg))
_others = reexports(__name__)


def __getattr__(name: str) -> Any:
    return getattr(arrays.linalg, name) if name in _functions else _others(name)


def __dir__() -> list[str]:
    return sorted(_functions)
