"""The functions of ``mx.npx``: layers and what else NumPy does not have."""

from __future__ import annotations

__all__: list[str] = []
