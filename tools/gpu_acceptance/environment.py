"""What the figures were measured on."""

from __future__ import annotations

import importlib.metadata
import os
import platform

from . import Report
from .plugin import gpu, torch

__all__ = ["all_of_it"]

PACKAGES = ("numpy", "numba", "cupy-cuda13x", "cupy-cuda12x", "cupy", "torch", "nvidia-cuda-nvrtc", "nvidia-cudnn-cu13")


def all_of_it(report: Report) -> None:
    """Tell names and versions."""
    report.tell("machine", figure=f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    for name in PACKAGES:
        try:
            report.tell(name, figure=importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            continue
    ctx = gpu()
    free, total = ctx.device.memory(ctx.device_id)
    report.tell("memory", figure=f"{free / 1e9:.1f} of {total / 1e9:.1f} GB are free")
    if not report.emulate:
        from cupy.cuda import runtime

        properties = runtime.getDeviceProperties(0)
        report.tell("GPU", figure=f"{properties['name'].decode()}, sm_{properties['major']}{properties['minor']}")
        report.tell("CUDA", figure=f"driver {runtime.driverGetVersion()}, runtime {runtime.runtimeGetVersion()}")
    from mxcore_cuda import dnn

    report.tell("cuDNN", figure=dnn.describe())
    found = torch()
    report.tell("PyTorch", figure=found.__version__ if found else "none with a GPU: nothing is compared with it")
