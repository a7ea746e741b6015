"""Sums, products, extremes and truth over axes."""

from __future__ import annotations

__all__: list[str] = []
