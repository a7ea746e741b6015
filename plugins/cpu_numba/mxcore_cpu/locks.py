"""The lock of all that is made once in a process."""

from __future__ import annotations

import threading

__all__ = ["setup"]

#: Held while something is made ready once: imports, the threads of kernels, what compiles a kernel.
setup = threading.RLock()
