"""Data sets, samplers and loaders that MXNet keeps apart."""

from __future__ import annotations

from .sampler import IntervalSampler

__all__ = ["IntervalSampler"]
