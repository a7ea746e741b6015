"""Blocks and samplers that MXNet keeps apart from the stable ones."""

from __future__ import annotations

from typing import Any

from ... import _importing

_LAZY = ("cnn", "data", "estimator", "nn", "rnn")

__all__ = [*_LAZY]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return _importing.load(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
