"""Device 'cpu': NumPy buffers, Numba kernels and fused code. Numba is imported by the first kernel that needs it."""

from __future__ import annotations

from mxcore.plugin import Device, Graph, GraphPass, hookimpl

from .loading import compiles
from .passes import DEVICES

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
    return dict.fromkeys(DEVICES, "mxcore_cpu.bindings:cpu")


@hookimpl
def mxcore_graph_passes() -> list[GraphPass]:
    def norm_relu(graph: Graph) -> Graph:
        from .passes.norm_relu import norm_relu

        return norm_relu(graph)

    from .passes.norm_chains import norm_chains

    if not compiles():
        return []
    return [GraphPass("norm_relu", -1, norm_relu, late=True, operators=["BatchNorm"]), norm_chains()]


@hookimpl
def mxcore_report() -> list[str]:
    from . import cache, jit, memory, threads

    state = "Numba kernels" if jit.available() else f"NumPy only: {jit.reason()}"
    spare = f", {kept / 1e6:.1f} MB of memory in reserve" if (kept := memory.held()) else ""
    return [f"cpu: {state}, {threads.count()} compute thread(s), compiled code in {cache.CODE.folder}{spare}"]
