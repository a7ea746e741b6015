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

    def picked_softmax(graph: Graph) -> Graph:
        from .passes.picked_softmax import picked_softmax

        return picked_softmax(graph)

    if not compiles():
        return []
    wanted = {norm_relu: "BatchNorm", picked_softmax: "pick"}
    return [GraphPass(f.__name__, -1, f, late=True, operators=[op]) for f, op in wanted.items()]


@hookimpl
def mxcore_report() -> list[str]:
    from . import cache, jit, threads

    state = "Numba kernels" if jit.available() else f"NumPy only: {jit.reason()}"
    return [f"cpu: {state}, {threads.count()} compute thread(s), compiled code in {cache.CODE.folder}"]
