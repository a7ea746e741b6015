"""Device 'cpu': NumPy buffers, Numba kernels and fused code. Numba is imported by the first kernel that needs it."""
from __future__ import annotations

from mxcore.plugin import hookimpl

API_VERSION = 1


@hookimpl
def mxcore_devices():
    from .device import CPU, CPUPinned, CPUShared

    return [CPU(), CPUPinned(), CPUShared()]
