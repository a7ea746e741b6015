"""Which driver there is: CUDA's through CuPy or, where MXCORE_CUDA_EMULATE says how many devices, the emulated one.

Nothing else knows.
"""

from __future__ import annotations

import os
from functools import cache

from .driver import Driver

__all__ = ["driver", "emulated"]


def emulated() -> int:
    """How many devices are emulated, as MXCORE_CUDA_EMULATE says; 0 if none."""
    text = os.environ.get("MXCORE_CUDA_EMULATE", "").strip()
    return int(text) if text.isdecimal() else 0


@cache
def driver() -> Driver:
    """The driver, made at first use."""
    n = emulated()
    if n:
        return _emulation(n)
    from .cupy_driver import CupyDriver

    return CupyDriver()


@cache
def _emulation(n: int) -> Driver:
    """The emulated driver: one in a process, as CUDA's, for kernels and devices keep its streams and its faults."""
    from .emulation import EmulatedDriver

    return EmulatedDriver(n)
