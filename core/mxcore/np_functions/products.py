"""Products of matrices and sums over indices: `dot`, `matmul`, `einsum`, `tensordot`."""

from __future__ import annotations

__all__: list[str] = []
