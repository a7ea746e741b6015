"""Arrays over memory that other libraries offer through DLPack."""
from __future__ import annotations

from typing import Any

import numpy as np

from .._core.array import Storage
from .._core.context import Context
from .._core.errors import error
from .ndarray import NDArray

__all__ = ["from_dlpack"]

#: DLPack's device types that are MXNet contexts.
_CONTEXTS = {1: "cpu", 2: "gpu", 3: "cpu_pinned"}


class _Capsule:
    """Gives a bare CPU capsule the methods that NumPy asks for."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **kw: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def from_dlpack(source: Any) -> NDArray:
    """An array over the memory of `source`, which has ``__dlpack__`` or is a capsule of CPU memory."""
    if type(source).__name__ == "PyCapsule":
        source = _Capsule(source)
    if not hasattr(source, "__dlpack__"):
        raise error(TypeError, f"from_dlpack needs an object with __dlpack__ or a DLPack capsule, got {type(source).__name__}")
    kind, index = source.__dlpack_device__()
    if kind not in _CONTEXTS:
        raise error(ValueError, f"from_dlpack: no context stands for DLPack device type {kind}")
    ctx = Context(_CONTEXTS[kind], index)
    module = ctx.device.xp if kind == 2 else np
    return NDArray(module.from_dlpack(source), Storage(ctx))
