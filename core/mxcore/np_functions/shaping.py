"""Functions that give the elements of an array another shape or order of axes."""

from __future__ import annotations

__all__: list[str] = []
