"""Kernels of oneDNN for device 'cpu', where the library is installed and the processor has AVX2."""

from __future__ import annotations

from functools import partial
from importlib import import_module

from mxcore.plugin import Graph, GraphPass, hookimpl

API_VERSION = 1
#: The devices of the host's memory, for which the kernels and passes are.
DEVICES = ("cpu", "cpu_pinned", "cpu_shared")
#: Without one of these a graph stays as it is.
CONVOLUTIONS = ("Convolution", "_backward_Convolution")


@hookimpl
def mxcore_kernels() -> dict[str, str]:
    from .library import found

    if found() is None:
        return {}
    return dict.fromkeys(DEVICES, "mxcore_onednn.bindings:kernels")


@hookimpl
def mxcore_graph_passes() -> list[GraphPass]:
    from .library import found

    if found() is None:
        return []
    modules = {"onednn_layers": "gather", "onednn_channels_last": "channels_last"}
    return [
        GraphPass(name, 0, partial(_passed, module), late=True, operators=CONVOLUTIONS)
        for name, module in modules.items()
    ]


def _passed(module: str, graph: Graph) -> Graph:
    """By the function of a module of the same name, which is imported for the first graph."""
    passed: Graph = getattr(import_module(f".{module}", __name__), module)(graph)
    return passed


@hookimpl
def mxcore_report() -> list[str]:
    from .library import found, library, reason

    lib = library()
    if lib is None:
        return [f"oneDNN: not used, {reason()}"]
    return [f"oneDNN: {'.'.join(map(str, lib.version))}, {found()}"]
