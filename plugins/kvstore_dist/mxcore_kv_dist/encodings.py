"""Values on the wire: as they are, in half the bytes, in two bits each, or as rows."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["pack_two_bits", "unpack_two_bits"]


def pack_two_bits(quantised: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Pack numbers that are -t, 0 or t, four in a byte.

    Examples
    --------
    >>> packed = pack_two_bits(np.array([0.5, 0, -0.5, 0, 0.5], np.float32))
    >>> packed.nbytes, unpack_two_bits(packed, 5, 0.5, np.float32)
    (2, array([ 0.5,  0. , -0.5,  0. ,  0.5], dtype=float32))
    """
    codes = np.zeros(-(-quantised.size // 4) * 4, np.uint8)
    codes[: quantised.size] = (quantised > 0) + 2 * (quantised < 0)
    four = codes.reshape(-1, 4)
    return four[:, 0] | four[:, 1] << 2 | four[:, 2] << 4 | four[:, 3] << 6


def unpack_two_bits(packed: np.ndarray[Any, Any], size: int, threshold: float, dtype: Any) -> np.ndarray[Any, Any]:
    """The numbers that `pack_two_bits` packed."""
    meanings = np.array([0, threshold, -threshold, 0], dtype)
    # Four numbers of each of the 256 bytes.
    table = meanings[(np.arange(256)[:, None] >> np.array([0, 2, 4, 6])) & 3]
    numbers: np.ndarray[Any, Any] = table[packed].reshape(-1)[:size]
    return numbers
