"""Random numbers made on the device, with the bits that the host would make."""

from __future__ import annotations

from typing import Any

import numpy as np

from mxcore.plugin import LaterKey, Rng

from .graphs import place_of
from .launching import kernel

__all__ = ["Philox"]

_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


class Philox(Rng):
    """The random numbers of one key, by kernels: a draw begins where the one before has ended.

    Attributes
    ----------
    words : int
        How many words of the stream have been used.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.words = 0
        #: What kernels are told of the key: where it will be, or its three words.
        self._key = (place_of(self.key), 0, 0, 0) if isinstance(self.key, LaterKey) else (None, *self.key)

    def fill(self, name: str, dtype: Any, words: int, n: int, *values: Any) -> None:
        """Launch a kernel of `random.cu` for a dtype: `n` results from so many further words."""
        if not n:
            return
        first, self.words = self.words, self.words + words
        blocks = (self.words + 3) // 4 - first // 4
        kernel("random", name, dtype, self.index).each(blocks, n, blocks, *self._key, first, *values)

    def numbers(self, name: str, out: Any, *values: Any) -> None:
        """Fill an array with what a kernel makes of uniform numbers, one of them or of a pair for each."""
        n = out.size + (name == "normal" and out.size % 2)  # which come in pairs
        self.fill(name, out.dtype, n if out.dtype == _DOUBLE else (n + 1) // 2, out.size, out, *values)

    def dropout(self, keep: float, mask: Any, x: Any = None, y: Any = None) -> None:
        """Fill a mask that keeps elements with a probability, scaled up, and its product with `x`; either if given."""
        like = y if mask is None else mask
        scale = float(like.dtype.type(1 / keep if keep else 0))
        self.fill("dropout", like.dtype, (like.size + 1) // 2, like.size, x, y, mask, keep, scale)

    def _empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        return self.device.empty(shape, np.dtype(dtype), self.index)

    def bits(self, n: int) -> Any:
        found = self._empty((n,), np.uint64)
        self.fill("bits", _SINGLE, n, n, found)
        return found

    def uniform(self, shape: tuple[int, ...], dtype: Any = np.float32) -> Any:
        return self._drawn("uniform", shape, dtype, 0.0, 1.0, 1.0)

    def normal(self, shape: tuple[int, ...], dtype: Any = np.float32) -> Any:
        return self._drawn("normal", shape, dtype, 0.0, 1.0)

    def _drawn(self, name: str, shape: tuple[int, ...], dtype: Any, *values: float) -> Any:
        found = self._empty(shape, _DOUBLE if np.dtype(dtype) == _DOUBLE else _SINGLE)
        self.numbers(name, found, *values)
        return found.astype(dtype, copy=False)
