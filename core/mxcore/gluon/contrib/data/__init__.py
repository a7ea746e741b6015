"""Data sets, samplers and loaders that MXNet keeps apart: texts, and images with their transforms."""

from __future__ import annotations

from typing import Any

from .... import _importing
from . import sampler
from .sampler import IntervalSampler

#: Loaded when first asked for.
_LAZY = ("text", "vision")

__all__ = ["IntervalSampler", "sampler", *_LAZY]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return _importing.load(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
