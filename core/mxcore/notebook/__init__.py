"""What shows a training run in a notebook, as ``mxnet.notebook``."""

from __future__ import annotations

from . import callback

__all__ = ["callback"]
