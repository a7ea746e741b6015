"""The library's kernels, all of them."""

from __future__ import annotations

from . import convolutions, eight_bits, products, recurrent, response, windows
from .calls import kernels

__all__ = ["convolutions", "eight_bits", "kernels", "products", "recurrent", "response", "windows"]
