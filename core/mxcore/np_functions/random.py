"""The functions of ``mx.np.random``."""

from __future__ import annotations

__all__: list[str] = []
