"""Functions that make arrays: `zeros`, `arange`, `linspace`, `eye` and their kin."""

from __future__ import annotations

__all__: list[str] = []
