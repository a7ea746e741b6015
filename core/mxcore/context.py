"""Contexts and what can be asked of devices, as ``mxnet.context``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from . import _ending  # noqa: F401
from ._core.context import Context, current_context, declare_types
from ._core.device import Device
from ._core.errors import error
from ._core.tables import devices
from ._reexports import reexports

__all__ = ["Context", "cpu", "cpu_pinned", "cpu_shared", "gpu", "num_gpus", "gpu_memory_info", "current_context"]

declare_types({"cpu": 1, "gpu": 2, "cpu_pinned": 3, "cpu_shared": 5}, {"gpu": "pip install mxcore-cuda"})


def cpu(device_id: int = 0) -> Context:
    """The CPU context with the given index (all share the host's memory)."""
    return Context("cpu", device_id)


def cpu_pinned(device_id: int = 0) -> Context:
    """Page-locked host memory, for fast transfers to a GPU."""
    return Context("cpu_pinned", device_id)


def cpu_shared(device_id: int = 0) -> Context:
    """Host memory shared between processes."""
    return Context("cpu_shared", device_id)


def gpu(device_id: int = 0) -> Context:
    """The GPU context with the given index; needs the plugin ``mxcore-cuda``."""
    return Context("gpu", device_id)


def contexts(value: Any, what: str) -> list[Context]:
    """One context, or several, as a list.

    Raises
    ------
    MXNetError
        (also TypeError) that names `what` the value is, if it is neither.

    >>> import mxcore as mx
    >>> contexts(mx.cpu(), "ctx")
    [cpu(0)]
    """
    found = list(value) if isinstance(value, Iterable) else [value]
    if not found or not all(isinstance(c, Context) for c in found):
        raise error(TypeError, f"{what} must be a Context such as mx.cpu(), or a list of them, got {value!r}")
    return found


def num_gpus() -> int:
    """How many GPUs can be used: 0 without the plugin mxcore-cuda, and where its driver is missing.

    >>> import mxcore as mx
    >>> mx.context.num_gpus() >= 0
    True
    """
    device = devices.find("gpu")
    return 0 if device is None else int(device.count())


def gpu_memory_info(device_id: int = 0) -> tuple[int, int]:
    """(free, total) bytes of a GPU.

    Raises
    ------
    MXNetError
        If there is no such GPU.
    """
    if device_id >= num_gpus():
        raise error(ValueError, f"gpu({device_id}) does not exist: {num_gpus()} GPU(s) found")
    return tuple(gpu(device_id).device.memory(device_id))  # type: ignore[return-value]


def pinning() -> Device | None:
    """The device that pins memory of the host: the first by name that can be used."""
    for name in devices.names():
        found = devices.get(name)
        if found.pins and found.count():
            return found
    return None


__getattr__ = reexports(__name__)
