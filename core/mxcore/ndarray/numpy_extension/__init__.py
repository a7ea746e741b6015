"""The functions of ``mx.npx`` over arrays, as ``mx.nd.npx``."""

from __future__ import annotations

from typing import Any

from ..._reexports import reexports
from ..numpy.face import arrays
from . import image, random

__all__ = ["image", "random"]

_functions = frozenset(dir(arrays.npx))
_others = reexports(__name__)


def __getattr__(name: str) -> Any:
    return getattr(arrays.npx, name) if name in _functions else _others(name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_functions})
