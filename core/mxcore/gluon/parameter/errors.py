"""The error that says: run a batch first."""

from __future__ import annotations

from ...base import MXNetError

__all__ = ["DeferredInitializationError"]


class DeferredInitializationError(MXNetError, RuntimeError):
    """A parameter was asked for before the first batch told its shape."""
