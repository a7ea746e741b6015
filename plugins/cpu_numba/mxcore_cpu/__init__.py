"""Device 'cpu': NumPy buffers, Numba kernels and fused code. Numba is imported by the first kernel that needs it."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import os
import re

import numpy as np

from mxcore.plugin import Device, hookimpl

API_VERSION = 1


@hookimpl
def mxcore_devices() -> list[Device]:
    from .device import CPU, CPUPinned, CPUShared

    return [CPU(), CPUPinned(), CPUShared()]


@hookimpl
def mxcore_kernels() -> dict[str, str]:
    # Without Numba the reference bodies compute, and `mxcore info` says so.
    if not compiles():
        return {}
    return dict.fromkeys(("cpu", "cpu_pinned", "cpu_shared"), "mxcore_cpu.bindings:cpu")


@hookimpl
def mxcore_report() -> list[str]:
    from . import cache, jit, threads

    state = "Numba kernels" if jit.available() else f"NumPy only: {jit.reason()}"
    return [f"cpu: {state}, {threads.count()} compute thread(s), compiled code in {cache.CODE.folder}"]


@functools.cache
def compiles() -> bool:
    """Whether Numba will work, as far as can be told without its import, which takes longer than mxcore's."""
    if importlib.util.find_spec("numba") is None or os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return False
    try:
        needs = importlib.metadata.requires("numba") or []
    except importlib.metadata.PackageNotFoundError:
        return True
    # It refuses a newer NumPy.
    below = next((m for m in (re.match(r"numpy\b.*?<\s*(\d+)\.(\d+)", r) for r in needs) if m), None)
    return below is None or tuple(map(int, np.__version__.split(".")[:2])) < (int(below[1]), int(below[2]))
