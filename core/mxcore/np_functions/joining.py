"""Functions that join arrays, split them, and repeat them."""

from __future__ import annotations

__all__: list[str] = []
