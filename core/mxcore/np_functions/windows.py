"""Windows of signal processing, and polynomials."""

from __future__ import annotations

__all__: list[str] = []
