"""How long it takes to see whether there may be a GPU, which is asked once in a process."""

from __future__ import annotations

import ctypes
import time

from mxcore._core.manager import manager
from mxcore_cuda import probe

__all__ = ["seconds_of_probing"]


def seconds_of_probing(driver):
    """How long the answer takes once plugins are found; with a `driver`, all that is looked for behind one, too."""
    manager.load()
    probe.absence.cache_clear()
    if driver:
        ctypes.CDLL = lambda name: None
    start = time.perf_counter()
    probe.absence()
    return time.perf_counter() - start
