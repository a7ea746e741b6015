"""Samples of :mod:`mxcore.ops.control`."""

from __future__ import annotations

from ..control.samples import SAMPLES

__all__ = ["SAMPLES"]
