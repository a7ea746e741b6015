"""Transforms that MXNet keeps apart: of images together with the boxes of their objects."""

from __future__ import annotations

from . import bbox

__all__ = ["bbox"]
