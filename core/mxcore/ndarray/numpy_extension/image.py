"""Operators of images, over arrays of ``mx.np``."""

from __future__ import annotations

from typing import Any

from .. import image as _operators


def __getattr__(name: str) -> Any:
    return getattr(_operators, name)


def __dir__() -> list[str]:
    return dir(_operators)
