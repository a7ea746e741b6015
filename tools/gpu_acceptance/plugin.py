"""The plugin in a stage's process."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from mxcore._core.manager import manager

from . import Skipped

__all__ = ["cudnn", "gpu", "torch"]


@cache
def gpu() -> Any:
    """The context gpu(0), whether the plugin is installed or only on the path; Skipped where there is none."""
    import mxcore as mx
    import mxcore_cuda
    from mxcore_cuda import probe

    manager.load()
    if "cuda" not in manager.origin:
        manager.register(mxcore_cuda, "cuda")
    if not probe.count():
        raise Skipped(f"there is no GPU: {probe.why()}")
    return mx.gpu(0)


@cache
def torch() -> Any:
    """PyTorch on its GPU, computing float32 exactly; None where it cannot."""
    try:
        import torch as found
    except ImportError:
        return None
    if not found.cuda.is_available():
        return None
    found.backends.cuda.matmul.allow_tf32 = found.backends.cudnn.allow_tf32 = False
    found.backends.cudnn.benchmark = True
    return found


def cudnn(emulate: bool) -> Any:
    """The plugin's door to cuDNN, in a rehearsal to its stand-in; None where it cannot be used."""
    if emulate:
        os.environ["MXCORE_CUDA_EMULATE_CUDNN"] = "1"
    gpu()
    from mxcore_cuda import dnn

    return dnn if dnn.describe().startswith("cuDNN") else None
