"""Ranges of NVTX around the launches of operators, which NVIDIA's profilers show; with MXCORE_NVTX=1."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from mxcore.plugin import unwatch, watch

__all__ = ["start", "stop"]


def _ranges() -> Any:
    """NVTX, by CuPy."""
    from cupy.cuda import nvtx

    return nvtx


def _within_range(fn: Callable[..., Any], name: str, ctx: Any, ins: Any, outs: Any, node: Any) -> Callable[..., Any]:
    """The observer: a call whose launches lie in a range that is named like the operator, or the node."""
    if ctx.device_type != "gpu":
        return fn
    nvtx, text = _ranges(), name if node is None else f"{name} {node}"

    def call(*args: Any) -> Any:
        nvtx.RangePush(text)
        try:
            return fn(*args)
        finally:
            nvtx.RangePop()

    return call


def start() -> None:
    """Show operators from now on, if that is wanted."""
    if os.environ.get("MXCORE_NVTX", "0").strip() == "1":
        watch(_within_range)


def stop() -> None:
    """Show no further ones."""
    unwatch(_within_range)
