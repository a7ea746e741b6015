"""Whole networks by name, with trained parameters where they can be had."""

from __future__ import annotations

from typing import Any

from ... import _importing

__all__ = ["get_model", "model_store", "vision"]


def __getattr__(name: str) -> Any:
    if name in ("model_store", "vision"):
        return _importing.load(f"{__name__}.{name}")
    if name == "get_model":
        return _importing.load(f"{__name__}.vision").get_model
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
