"""The functions of ``mx.np.linalg``."""

from __future__ import annotations

__all__: list[str] = []
