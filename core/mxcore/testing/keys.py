"""Where random keys stand, for a calculation that is to draw the same ones again."""

from __future__ import annotations

from typing import Any

from .._core import rng

__all__ = ["get_state", "set_state"]


def get_state() -> dict[str, Any]:
    """Seeds, and how many keys each context has drawn."""
    with rng.lock:
        return {k: dict(v) if isinstance(v, dict) else v for k, v in rng.standing.items()}


def set_state(saved: dict[str, Any]) -> None:
    """Go back to what :func:`get_state` returned."""
    with rng.lock:
        rng.standing.update({k: dict(v) if isinstance(v, dict) else v for k, v in saved.items()})
