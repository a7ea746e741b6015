"""Device 'cpu': NumPy buffers, Numba kernels and fused code. Numba is imported by the first kernel that needs it."""
from __future__ import annotations

import importlib.util

from mxcore.plugin import hookimpl

API_VERSION = 1


@hookimpl
def mxcore_devices():
    from .device import CPU, CPUPinned, CPUShared

    return [CPU(), CPUPinned(), CPUShared()]


@hookimpl
def mxcore_kernels():
    # Without Numba the reference bodies compute, and `mxcore info` says so.
    if importlib.util.find_spec("numba") is None:
        return {}
    return dict.fromkeys(("cpu", "cpu_pinned", "cpu_shared"), "mxcore_cpu.bindings:cpu")


@hookimpl
def mxcore_report():
    from . import jit, threads

    state = "Numba kernels" if jit.available() else f"NumPy only: {jit.reason()}"
    return [f"cpu: {state}, {threads.count()} compute thread(s), compiled code in {jit.cache_dir()}"]
