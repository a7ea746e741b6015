"""Where random keys stand, for a calculation that is to draw the same ones again."""

from __future__ import annotations

from itertools import count
from typing import Any

from .._core import rng

__all__ = ["get_state", "set_state"]


def get_state() -> dict[str, Any]:
    """Seeds, and how many keys each context has drawn."""
    with rng.lock:
        drawn = {ctx: next(numbers) for ctx, numbers in rng.standing["counters"].items()}
        found = {**rng.standing, "seeds": dict(rng.standing["seeds"]), "counters": drawn}
        set_state(found)  # which has taken one of each
        return found


def set_state(saved: dict[str, Any]) -> None:
    """Go back to what :func:`get_state` returned."""
    with rng.lock:
        numbers = {ctx: count(n) for ctx, n in saved["counters"].items()}
        rng.standing.update({**saved, "seeds": dict(saved["seeds"]), "counters": numbers})
