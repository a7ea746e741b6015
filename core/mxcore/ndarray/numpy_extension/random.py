"""Random numbers that NumPy does not have, over arrays."""

from __future__ import annotations

from typing import Any

from ..._reexports import reexports
from ..numpy.face import arrays

_functions = frozenset(dir(arrays.npx_random))
_others = reexports(__name__)


def __getattr__(name: str) -> Any:
    return getattr(arrays.npx_random, name) if name in _functions else _others(name)


def __dir__() -> list[str]:
    return sorted(_functions)
