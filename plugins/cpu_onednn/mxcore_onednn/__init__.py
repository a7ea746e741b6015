"""Kernels of oneDNN for device 'cpu', where the library is installed and the processor has AVX2."""

from __future__ import annotations

from typing import Any

from mxcore.plugin import GraphPass, hookimpl

API_VERSION = 1


@hookimpl
def mxcore_kernels() -> dict[str, str]:
    from .library import found

    if found() is None:
        return {}
    return dict.fromkeys(("cpu", "cpu_pinned", "cpu_shared"), "mxcore_onednn.bindings:kernels")


@hookimpl
def mxcore_graph_passes() -> list[GraphPass]:
    from .library import found

    def gather(graph: Any) -> Any:
        from .gather import gather

        return gather(graph)

    def channels_last(graph: Any) -> Any:
        from .channels_last import channels_last

        return channels_last(graph)

    if found() is None:
        return []
    passes = {"onednn_layers": gather, "onednn_channels_last": channels_last}
    return [GraphPass(name, 0, passed, late=True) for name, passed in passes.items()]


@hookimpl
def mxcore_report() -> list[str]:
    from .library import found, library, reason

    lib = library()
    if lib is None:
        return [f"oneDNN: not used, {reason()}"]
    return [f"oneDNN: {'.'.join(map(str, lib.version))}, {found()}"]
