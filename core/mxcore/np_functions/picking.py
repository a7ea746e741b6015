"""Functions that pick elements by indices or conditions, and put elements in."""

from __future__ import annotations

__all__: list[str] = []
