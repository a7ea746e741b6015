"""Kernels of oneDNN for device 'cpu', where the library is installed and the processor has AVX2."""

from __future__ import annotations

import sys
from functools import partial
from importlib import import_module

from mxcore.plugin import Graph, GraphPass, hookimpl

API_VERSION = 1
#: The devices of the host's memory, for which the kernels and passes are.
DEVICES = ("cpu", "cpu_pinned", "cpu_shared")
#: Where images come to have their channels last.
CONVOLUTIONS = ("Convolution", "_backward_Convolution")
#: Name of a pass -> its module, of which a function has the name, and operators without which a graph stays as it is.
_PASSES = {
    "onednn_layers": ("gather", ("Convolution", "FullyConnected")),
    "onednn_channels_last": ("channels_last", CONVOLUTIONS),
}


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
    return [
        GraphPass(name, 0, partial(_passed, module), late=True, operators=operators)
        for name, (module, operators) in _PASSES.items()
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
    lines = [f"oneDNN: {'.'.join(map(str, lib.version))}, {found()}"]
    if f"{__name__}.plan" in sys.modules:
        from . import keeping, rooms

        held = rooms.held(), keeping.held()
        if not any(held):
            return lines
        scratch, weights = (f"{n / 1e6:.1f} MB" for n in held)
        lines.append(f"oneDNN: {scratch} of scratch memory, {weights} of weights in its layouts")
    return lines
