"""Blocks and samplers that MXNet keeps apart from the stable ones."""

from __future__ import annotations

import importlib
from typing import Any

_LAZY = ("cnn", "data", "estimator", "nn", "rnn")

__all__ = [*_LAZY]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
