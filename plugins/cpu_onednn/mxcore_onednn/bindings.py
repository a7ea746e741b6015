"""The library's kernels, all of them."""

from __future__ import annotations

from . import (
    convolutions,
    eight_bits,
    halves,
    normalization,
    pointwise,
    products,
    recurrent,
    response,
    softmax,
    windows,
)
from .calls import kernels

__all__ = [
    "convolutions",
    "eight_bits",
    "halves",
    "kernels",
    "normalization",
    "pointwise",
    "products",
    "recurrent",
    "response",
    "softmax",
    "windows",
]
