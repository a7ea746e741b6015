"""The functions of ``mx.npx.random``."""

from __future__ import annotations

__all__: list[str] = []
