"""Sorting, searching and sets of elements."""

from __future__ import annotations

__all__: list[str] = []
