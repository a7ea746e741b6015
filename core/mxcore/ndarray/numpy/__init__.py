"""The functions of ``mx.np`` over arrays, as ``mx.nd.np``."""

from __future__ import annotations

from typing import Any

from ..._reexports import reexports
from . import linalg, random
from .face import arrays
from .multiarray import ndarray

__all__ = ["arrays", "linalg", "ndarray", "random"]

_others = reexports(__name__)


def __getattr__(name: str) -> Any:
    return getattr(arrays, name) if name in arrays.names else _others(name)


def __dir__() -> list[str]:
    return sorted({*__all__, *arrays.names})
